"""What every linear model's pass needs of the rows (z, 1), z = x - shift: moments, Gram matrices, their reach."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from certifit.linear_model.logistic.softmax_loops import root_rows
from certifit.numerics.products import ENOUGH, adjoint, choose_shift, gram, scale_rows, shifted
from certifit.optimise.self_concordance import Ask, Reached
from certifit.rows import Array, Largest, Matrix

SINGLE = 4 * np.finfo(np.float32).eps  # rounding of a product in single precision, relative to the sizes in it
FULL = 0.9  # share of entries that are not 0 without which no column is even 3 standard deviations from 0


def row_shift(X: Matrix, w: Array) -> Array | None:
    """What a free intercept lets us subtract from the columns: see `choose_shift`, here for CSR rows too.

    A column that lies far from 0 for its spread has hardly a 0: shifting it fills in next to nothing.
    """
    if not sparse.issparse(X):
        return choose_shift(X, w)
    every = -(-X.shape[0] // ENOUGH)
    X, w = X[::every], w[::every]
    full = np.flatnonzero(np.bincount(X.indices, minlength=X.shape[1]) >= FULL * X.shape[0])
    part = choose_shift(X[:, full].toarray(), w)
    if part is None:
        return None
    shift = np.zeros(X.shape[1])
    shift[full] = part
    return shift


def shift_rows(X: Matrix, shift: Array | None) -> Matrix:
    """X - shift in float64; CSR stays CSR, its shifted columns full."""
    if shift is None or not sparse.issparse(X):
        return shifted(X, shift)
    n, full = X.shape[0], np.flatnonzero(shift)
    taken = np.tile(shift[full], n), np.tile(full, n), len(full) * np.arange(n + 1)
    return X.astype(np.float64) - type(X)(taken, shape=X.shape)


def moment(Z: Matrix, R: Array, intercept: bool) -> Array:
    """Rᵀ (Z, 1): (k, d1)."""
    product = adjoint(Z, R).T
    return np.column_stack([product, R.sum(axis=0)]) if intercept else product


def sandwich(Z: Matrix, h: Array, intercept: bool) -> Array:
    """(Z, 1)ᵀ diag(h) (Z, 1), h >= 0."""
    if isinstance(Z, np.ndarray):  # one buffer, one symmetric product
        scaled = np.empty((len(h), Z.shape[1] + intercept))
        root_rows(Z, h, scaled)
        with np.errstate(over="ignore", invalid="ignore"):  # the sum is looked at: see `check_overflow`
            return gram(scaled)
    inner = gram(scale_rows(Z, np.sqrt(h)))
    if not intercept:
        return inner
    border = adjoint(Z, h)
    return np.block([[inner, border[:, None]], [border[None], np.array([[h.sum()]])]])


def reached(Z: Matrix, ask: Ask, intercept: bool) -> Reached:
    """What a proof asks of these rows (with weight)."""
    reach = extent = Largest(0.0)
    if ask.root is not None:
        reach = Largest(_reach(Z, ask.root, intercept))
    if ask.extent:
        most = np.zeros(Z.shape[1])
        if Z.shape[0]:
            most = np.maximum(_dense(Z.max(axis=0)), -_dense(Z.min(axis=0)))
        extent = Largest(np.append(most, 1.0) if intercept else most)
    return Reached(reach, extent)


def _reach(Z: Matrix, root: Array, intercept: bool) -> float:
    """max |(z, 1) W|², rounded up: single precision is enough for a bound once its own rounding is added."""
    with np.errstate(over="ignore", invalid="ignore"):
        Z, W = Z.astype(np.float32), root.astype(np.float32)
        whitened = Z @ W[: Z.shape[1]]
        if intercept:
            whitened += W[-1]
        largest = np.sqrt(float(_squares(whitened).max(initial=0.0)))
        rounding = SINGLE * len(root) ** 0.5 * np.linalg.norm(root) * np.sqrt(1 + float(_squares(Z).max(initial=0.0)))
        bound = (largest + rounding) ** 2
    return bound if np.isfinite(bound) else np.inf


def _squares(A: Matrix) -> Array:
    """|a|² of each row."""
    return np.einsum("ij,ij->i", A, A) if isinstance(A, np.ndarray) else np.asarray(A.multiply(A).sum(axis=1)).ravel()


def _dense(row: Any) -> Array:
    return np.asarray(row.toarray() if hasattr(row, "toarray") else row, dtype=np.float64).ravel()
