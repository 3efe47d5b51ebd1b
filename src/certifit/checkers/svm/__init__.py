"""Checkers of support vector machines: dual points and the gaps they prove."""
