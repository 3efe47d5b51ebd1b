"""Checkers of naive Bayes: the moment equations of every parameter."""
