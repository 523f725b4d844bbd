"""Pictures of released frames."""
