"""Conformal prediction: intervals and sets of classes that cover new rows as often as they say, for any model."""
