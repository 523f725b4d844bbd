"""What comes in, the same for every door: files, kinds of values, and cells of text files."""
