"""Splits of rows into those to fit and those to test, and the proof that a split is what it says."""
