"""Errors of released numbers."""
