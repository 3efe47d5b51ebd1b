"""Checkers of answers about matrices: eigenpairs, singular values, definiteness, diagonalisation.

`eigenvalue_bounds` has the textbook inequalities that several checkers use.
"""
