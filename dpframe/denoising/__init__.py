"""Denoisers of released values: arrays in, arrays out, and never the private data."""
