"""What is read off totals: one form for every statistic."""
