"""Checkers of answers about matrices: eigenpairs, singular values, definiteness, diagonalisation."""
