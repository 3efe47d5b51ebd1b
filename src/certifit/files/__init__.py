"""Files that a fit writes on its way: whole or not at all, rows that need not fit in memory, and checkpoints."""
