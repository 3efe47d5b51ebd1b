"""Checkers of linear models whose penalty was chosen by cross-validation."""
