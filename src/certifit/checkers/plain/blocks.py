"""The rows of a block as plain float64 numbers, which every checker needs."""

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


def is_wide(X: Any, most: int = 4096) -> bool:
    """Whether CSR rows have so many columns that dense ones would fill the memory with zeros."""
    return sparse.issparse(X) and X.shape[1] > most


def float_rows(X: Any) -> Any:
    """Return the rows of a block as float64: CSR where they are wide, else an array (rows, d)."""
    return X.astype(np.float64) if is_wide(X) else dense(X)


def row_squares(Z: Any) -> Array:
    """Return the squared length of each row, dense or CSR (rows,)."""
    if not sparse.issparse(Z):
        return np.einsum("ij,ij->i", Z, Z)
    return np.asarray(Z.multiply(Z).sum(axis=1)).ravel()
