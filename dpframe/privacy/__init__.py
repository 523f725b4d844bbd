"""The exact mathematics of privacy loss, movement and noise."""
