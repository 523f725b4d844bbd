"""The public calls that read private frames."""
