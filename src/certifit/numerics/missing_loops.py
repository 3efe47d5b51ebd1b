"""Rows with missing entries (NaN), centred."""

from __future__ import annotations

from numba import njit


@njit(cache=True, nogil=True)
def centre(X, mean, Z):
    """Write X - mean to Z, with 0 where an entry of X is missing."""
    for r in range(len(X)):
        x, z = X[r], Z[r]
        for j in range(len(x)):
            away = x[j] - mean[j]
            # NaN is not equal to itself.
            z[j] = away if away == away else 0.0
