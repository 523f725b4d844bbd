"""What can be done with a released frame, and be certified."""
