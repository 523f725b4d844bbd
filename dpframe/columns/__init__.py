"""What one private column says, whatever its dtype; a value is read without regard to others."""
