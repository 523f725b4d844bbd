"""Which released cell each cell of a table is, whatever its layout."""
