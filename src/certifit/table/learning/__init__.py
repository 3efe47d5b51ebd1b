"""What becomes of each column of a table, learnt in one pass over its blocks."""
