"""What is spent of a budget and what is left, in memory or in a file."""
