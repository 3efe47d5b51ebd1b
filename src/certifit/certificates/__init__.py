"""Independent checkers: plain float64 NumPy and SciPy on the data and the fitted attributes, no fast code."""
