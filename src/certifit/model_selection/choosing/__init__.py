"""Choosing among settings by folds, and the score of the chosen one, corrected for the choice."""
