"""The weighted median of each column, a centre that gross errors hardly change."""

from __future__ import annotations

import numpy as np

from certifit.rows import Array


def weighted_medians(X: Array, w: Array) -> Array:
    """Return the weighted median of each column of X (n, d); midway between two if half the weight is on each side.

    >>> weighted_medians(np.array([[1.0], [2.0], [7.0], [9.0]]), np.array([1.0, 1.0, 1.0, 1.0]))
    array([4.5])
    >>> weighted_medians(np.array([[1.0], [7.0]]), np.array([2.0, 1.0]))
    array([1.])
    """
    order = np.argsort(X, axis=0, kind="stable")
    # The weight of all rows up to and including each row.
    below = np.cumsum(w[order], axis=0)
    half = below[-1] / 2
    low = (below < half).sum(axis=0)
    high = np.minimum((below <= half).sum(axis=0), len(X) - 1)
    column = np.arange(X.shape[1])
    a, b = X[order[low, column], column], X[order[high, column], column]
    return a + (b - a) / 2
