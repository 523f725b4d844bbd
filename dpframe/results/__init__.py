"""A released frame and what can be done with it; nothing here can reach private data."""
