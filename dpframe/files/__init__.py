"""Released frames in files."""
