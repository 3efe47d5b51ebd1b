"""What checkers share, in plain NumPy and SciPy: rows as float64, kernels, losses, families."""
