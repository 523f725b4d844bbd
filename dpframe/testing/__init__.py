"""Tests of what uses dpframe."""
