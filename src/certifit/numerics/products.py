"""Products of rows, dense or CSR, and the shift that keeps sums of their squares accurate.

Σ (x - c)² with a centre c near the mean keeps nearly all digits; with mean 1e8 and deviation 1, Σ x² keeps none.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from certifit.rows import Array, Matrix, transpose

ENOUGH = 2048  # rows from which a shift is estimated


def far(dtype: Any) -> float:
    """Return how many standard deviations from zero a column may lie before its squares lose too many digits.

    At these distances, squares lose four of the 16 digits of float64, and one of the 7 of float32.
    """
    return 100.0 if dtype == np.float64 else 3.0


def choose_shift(X: Matrix, w: Array, most: float | None = None) -> Array | None:
    """Return a centre c (d,) to subtract before squaring, or None where that is not needed.

    c is 0 in columns whose mean is within `most` standard deviations of zero, by default those of `far`, so that most
    tables need no copy. CSR rows are never shifted.
    """
    most = far(X.dtype) if most is None else most
    if sparse.issparse(X) or not w.any():
        return None
    used = np.flatnonzero(w)
    step = -(-len(used) // ENOUGH)
    taken = slice(None, None, step) if len(used) == len(w) else used[::step]  # to pick rows by number is slow
    X, w = X[taken], w[taken]
    first = X[0].astype(np.float64)
    Z = X - first
    mean = w @ Z / w.sum()
    # Powers of two cost no digit, and keep squares of huge or tiny columns from overflow and underflow.
    with np.errstate(over="ignore", invalid="ignore"):
        largest = np.maximum(Z.max(axis=0), -Z.min(axis=0))
        unit = np.exp2(np.clip(np.frexp(largest)[1], -1000, 1000))
        Z /= unit
        Z *= Z
        spread = np.sqrt(np.maximum(w @ Z / w.sum() - (mean / unit) ** 2, 0.0)) * unit
    mean += first
    shift = np.where(np.abs(mean) > most * spread, mean, 0.0)
    return round_shift(shift, X.dtype) if shift.any() else None


def round_shift(shift: Array, dtype: Any) -> Array:
    """Return the nearest shift (d,) that rows of this type can hold: what is subtracted is then what is added back.

    >>> float(round_shift(np.array([1e7 + 0.3]), np.float32)[0])
    10000000.0
    """
    return shift.astype(dtype).astype(np.float64)


def weighted_sum(X: Matrix, w: Array, shift: Array | None) -> Array:
    """Return Σ w (x - c) (d,) in float64; dense rows of float32 are converted a few at a time, within the cache."""
    if sparse.issparse(X):
        total = transpose(X) @ w
        return total if shift is None else total - w.sum() * shift
    step = max(1, 2**15 // X.shape[1])
    total = np.zeros(X.shape[1])
    for i in range(0, len(w), step):
        total += w[i : i + step] @ shifted(X[i : i + step], shift)
    return total


def shifted(X: Matrix, shift: Array | None) -> Matrix:
    """Return X - shift in float64, dense where there is a shift; X itself where it is float64 and there is none."""
    if shift is not None:
        return np.subtract(X.toarray() if sparse.issparse(X) else X, shift, dtype=np.float64)
    return X if X.dtype == np.float64 else X.astype(np.float64)


def adjoint(X: Matrix, R: Array) -> Array:
    """Return the product Xᵀ R."""
    return transpose(X) @ R


def gram(X: Matrix) -> Array:
    """Return XᵀX as a dense array (d, d)."""
    product = X.T @ X
    return product.toarray() if sparse.issparse(product) else product


def scale_rows(X: Matrix, s: Array) -> Matrix:
    """Return the rows of X multiplied by s, diag(s) X."""
    return sparse.diags_array(s) @ X if sparse.issparse(X) else X * s[:, None]
