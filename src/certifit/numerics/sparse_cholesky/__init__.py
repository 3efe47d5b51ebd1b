"""Cholesky factors of sparse symmetric matrices."""
