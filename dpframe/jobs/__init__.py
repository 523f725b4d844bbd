"""Jobs: plan files, and the commands of a terminal."""
