"""Checkers of features that stand for a kernel."""
