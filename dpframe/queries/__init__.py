"""What can be asked, as frozen values, and what an engine is asked for it."""
