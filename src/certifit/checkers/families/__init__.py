"""Checkers of fitted exponential families."""
