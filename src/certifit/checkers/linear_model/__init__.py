"""Checkers of linear, generalised linear and logistic regression."""
