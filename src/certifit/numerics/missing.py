"""Missing entries of a table, which are written as NaN."""

from __future__ import annotations

import numpy as np

from certifit.rows import Array


def has_missing(X: Array) -> bool:
    """Say whether any entry of X is missing.

    >>> has_missing(np.array([[1.0, np.nan]])), has_missing(np.array([[np.inf, -np.inf]]))
    (True, False)
    """
    with np.errstate(over="ignore", invalid="ignore"):
        # A sum is faster than a mask, but it is NaN too where both infinities occur.
        return bool(np.isnan(X.sum()) and np.isnan(X).any())
