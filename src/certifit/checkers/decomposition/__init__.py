"""Checkers of principal components: PCA, probabilistic, robust and trimmed PCA."""
