"""Bagging: one estimator, fitted to many samples of the rows."""
