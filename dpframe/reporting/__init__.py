"""The page to decide by."""
