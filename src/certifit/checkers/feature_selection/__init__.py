"""The checkers of selected columns: of scores, of greedy searches, and of columns proved 0 by a dual point."""
