"""Checkers of splits, intervals, conformal sets and comparisons."""
