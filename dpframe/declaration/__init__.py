"""What is public about a frame: bounds, keys, privacy unit, caps and neighboring relation."""
