"""What was promised, as typed records."""
