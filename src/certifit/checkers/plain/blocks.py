"""The rows of a block as a plain float64 array, which every checker needs."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from certifit.rows import Array


def dense_rows(X: Any, used: Array) -> Array:
    """The rows of a block for which `used` is true, as a float64 array; not a copy where that is all of them."""
    return dense(X) if used.all() else dense(X[used])


def dense(X: Any) -> Array:
    """Return the rows of a block, dense or CSR, as a float64 array (rows, d)."""
    return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
