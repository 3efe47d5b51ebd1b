"""The few products that matter, for dense and CSR rows alike, and the shift that keeps them accurate."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from certifit.rows import Array, Matrix

ENOUGH = 2048  # rows that tell where a column lies


def far(dtype: Any) -> float:
    """Standard deviations from zero beyond which squares lose too many of a type's digits (four of 16, one of 7)."""
    return 100.0 if dtype == np.float64 else 3.0


def choose_shift(X: Matrix, w: Array) -> Array | None:
    """A centre to subtract before squaring, or None where squares of the raw values lose nothing.

    Σ (x-c)² with a centre c within `far` standard deviations of the mean keeps nearly all digits; at offset
    1e8 and spread 1 the raw Σ x² keeps none. Columns near zero keep c = 0, so that most tables need no copy.
    CSR rows are never shifted.
    """
    if sparse.issparse(X) or not w.any():
        return None
    used = np.flatnonzero(w)
    used = used[:: -(-len(used) // ENOUGH)]
    X, w = X[used], w[used]
    first = X[0].astype(np.float64)
    Z = X - first
    mean = w @ Z / w.sum()
    with np.errstate(over="ignore", invalid="ignore"):  # squares that overflow ask for no shift
        spread = np.sqrt(np.maximum(w @ Z**2 / w.sum() - mean**2, 0.0))
    mean += first
    shift = np.where(np.abs(mean) > far(X.dtype) * spread, mean, 0.0)
    return shift if shift.any() else None


def shifted(X: Matrix, shift: Array | None) -> Matrix:
    """X - shift in float64 (dense where there is a shift); X itself where there is nothing to do."""
    if shift is not None:
        return np.subtract(X.toarray() if sparse.issparse(X) else X, shift, dtype=np.float64)
    return X if X.dtype == np.float64 else X.astype(np.float64)


def adjoint(X: Matrix, R: Array) -> Array:
    """Xᵀ R."""
    return X.T @ R


def gram(X: Matrix) -> Array:
    """XᵀX, dense (d, d); BLAS computes one triangle."""
    product = X.T @ X
    return product.toarray() if sparse.issparse(product) else product


def scale_rows(X: Matrix, s: Array) -> Matrix:
    """diag(s) X."""
    return sparse.diags_array(s) @ X if sparse.issparse(X) else X * s[:, None]
