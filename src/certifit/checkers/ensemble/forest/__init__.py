"""Forests checked: bootstrap samples, nodes, splits and out-of-bag answers, recomputed in plain NumPy."""
