"""Missing entries, which are NaN here."""

from __future__ import annotations

import numpy as np

from certifit.rows import Array


def has_holes(X: Array) -> bool:
    """Whether any entry is missing.

    >>> has_holes(np.array([[1.0, np.nan]])), has_holes(np.array([[np.inf, -np.inf]]))
    (True, False)
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isnan(X.sum()) and np.isnan(X).any())  # a sum is quicker than a mask
