"""Rides of a bicycle scheme, published by zone."""
