"""From queries to integers, noise, cost and error, without data."""
