"""Checkers of selected columns: scores, greedy searches, screening by a dual point."""
