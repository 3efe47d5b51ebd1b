"""Products of a linear model's rows (z, 1), z = x - shift, dense or CSR: moments, Gram matrices, their reach.

A free intercept absorbs any shift of the columns exactly. Shifting columns that lie far from 0 keeps the digits that
products of large numbers would lose.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from certifit.linear_model.row_scaling_loops import SparseEntries, add_pairs, root_rows
from certifit.numerics.products import adjoint, choose_shift, gram, scale_rows, shifted
from certifit.optimise.self_concordance import ReachRequest, RowReach
from certifit.optimise.sparse_curvature import SparseCurvature
from certifit.rows import Array, Largest, Matrix


@dataclass(frozen=True)
class SparseShiftTuning:
    """Which columns of CSR rows may be shifted."""

    enough_rows: int = 2048  # rows that tell where a column lies
    full_share: float = 0.9  # share of entries that are not 0; with fewer, a column is within 3 deviations of 0


def row_shift(X: Matrix, w: Array, tuning: SparseShiftTuning = SparseShiftTuning()) -> Array | None:
    """A shift (d,) that keeps products of the columns accurate: see `choose_shift`, here for CSR rows too.

    A column that lies far from 0 for its spread has hardly any zeros, so that shifting it fills in next to nothing.
    """
    if not sparse.issparse(X):
        return choose_shift(X, w)
    every = -(-X.shape[0] // tuning.enough_rows)
    X, w = X[::every], w[::every]
    full = np.flatnonzero(np.bincount(X.indices, minlength=X.shape[1]) >= tuning.full_share * X.shape[0])
    part = choose_shift(X[:, full].toarray(), w)
    if part is None:
        return None
    shift = np.zeros(X.shape[1])
    shift[full] = part
    return shift


def shift_rows(X: Matrix, shift: Array | None) -> Matrix:
    """Return X - shift in float64; CSR stays CSR, its shifted columns full."""
    if shift is None or not sparse.issparse(X):
        return shifted(X, shift)
    n, full = X.shape[0], np.flatnonzero(shift)
    taken = np.tile(shift[full], n), np.tile(full, n), len(full) * np.arange(n + 1)
    return X.astype(np.float64) - type(X)(taken, shape=X.shape)


def moment(Z: Matrix, R: Array, intercept: bool) -> Array:
    """Return Rᵀ (Z, 1), (k, d1), of R (rows, k)."""
    product = adjoint(Z, R).T
    return np.column_stack([product, R.sum(axis=0)]) if intercept else product


def sandwich(Z: Matrix, h: Array, intercept: bool) -> Array:
    """Return the weighted Gram matrix (Z, 1)ᵀ diag(h) (Z, 1), (d1, d1), of weights h (rows,) >= 0."""
    if isinstance(Z, np.ndarray):  # one buffer, one symmetric product
        scaled = np.empty((len(h), Z.shape[1] + intercept))
        root_rows(Z, h, scaled)
        with np.errstate(over="ignore", invalid="ignore"):  # `check_overflow` looks at the sum
            return gram(scaled)
    inner = gram(scale_rows(Z, np.sqrt(h)))
    if not intercept:
        return inner
    border = adjoint(Z, h)
    return np.block([[inner, border[:, None]], [border[None], np.array([[h.sum()]])]])


@dataclass(frozen=True)
class SparseHessianTuning:
    """In which form the Hessian of some columns of CSR rows is measured."""

    compiled_entries: int = 2**17  # stored entries of a block from which on they are multiplied in pairs
    factored_columns: int = 500  # columns beyond which the rows themselves stand for it


def sandwich_of(
    Z: Matrix,
    h: Array,
    intercept: bool,
    columns: Array | None,
    at_hand: bool = False,
    tuning: SparseHessianTuning = SparseHessianTuning(),
) -> Array | SparseCurvature:
    """The same in these columns of (Z, 1) alone; of many columns of CSR rows as its factors.

    Where the table's columns are at hand elsewhere, h is all that is needed of these.
    """
    if columns is None:
        return sandwich(Z, h, intercept)
    d = Z.shape[1]
    picked, one = columns[columns < d], bool(intercept and (columns == d).any())
    if isinstance(Z, np.ndarray):
        return sandwich(Z[:, picked], h, one)
    if len(picked) > tuning.factored_columns:
        return SparseCurvature(((None if at_hand else sparse.csr_array(Z)[:, picked], h),), one)
    if Z.nnz < tuning.compiled_entries:
        return sandwich(Z[:, picked], h, one)
    place, out = np.full(d, -1), np.zeros((len(picked) + one, len(picked) + one))
    place[picked] = np.arange(len(picked))
    add_pairs(SparseEntries(Z.indptr, Z.indices, Z.data), h, place, out)
    return out


def row_reach(Z: Matrix, request: ReachRequest, intercept: bool) -> RowReach:
    """Measure what a proof asks of these rows, all of positive weight."""
    reach = extent = Largest(0.0)
    if request.diagonal is not None:
        reach = Largest(_largest_sum_of_squares(Z, request.diagonal, intercept))
    elif request.root is not None:
        reach = Largest(_reach(Z, request.root, intercept))
    if request.extent:
        most = largest_sizes(Z)
        extent = Largest(np.append(most, 1.0) if intercept else most)
    return RowReach(reach, extent)


def largest_sizes(Z: Matrix, together: int = 16) -> Array:
    """The largest |z| of each column (d,), 0 of no rows; dense rows `together` at once, which is faster than one."""
    n, d = Z.shape
    if n == 0:
        return np.zeros(d)
    if not isinstance(Z, np.ndarray):
        return np.maximum(_dense(Z.max(axis=0)), -_dense(Z.min(axis=0)))
    whole = n - n % together
    ends = [Z[whole:]]
    if whole:
        wide = Z[:whole].reshape(-1, together * d)
        ends += [wide.max(axis=0).reshape(together, d), wide.min(axis=0).reshape(together, d)]
    few = np.concatenate(ends)
    return np.maximum(few.max(axis=0), -few.min(axis=0)).astype(np.float64)


def _largest_sum_of_squares(Z: Matrix, weights: Array, intercept: bool) -> float:
    """The largest Σ s z² of a row (z, 1), with weights s (m,) >= 0, rounded up."""
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.square(Z) if isinstance(Z, np.ndarray) else Z.multiply(Z)
        sums = squares @ weights[: Z.shape[1]]
        return rounded_up(float(sums.max(initial=0.0)) + (weights[-1] if intercept else 0.0), len(weights))


def rounded_up(total: float, terms: int) -> float:
    """A bound on what so many terms of one sign add up to, in whatever order they were added; no NaN."""
    bound = total * (1 + 4 * terms * np.finfo(float).eps)
    return bound if np.isfinite(bound) else np.inf


def _reach(Z: Matrix, root: Array, intercept: bool) -> float:
    """The largest |(z, 1) W|² of a row, rounded up.

    Single precision is enough for a bound once its own rounding is added.
    """
    single = 4 * np.finfo(np.float32).eps  # rounding of a product, relative to the sizes in it
    with np.errstate(over="ignore", invalid="ignore"):
        Z, W = Z.astype(np.float32), root.astype(np.float32)
        whitened = Z @ W[: Z.shape[1]]
        if intercept:
            whitened += W[-1]
        largest = np.sqrt(float(_squares(whitened).max(initial=0.0)))
        rounding = single * len(root) ** 0.5 * np.linalg.norm(root) * np.sqrt(1 + float(_squares(Z).max(initial=0.0)))
        bound = (largest + rounding) ** 2
    return bound if np.isfinite(bound) else np.inf


def _squares(A: Matrix) -> Array:
    """The squared length of each row."""
    return np.einsum("ij,ij->i", A, A) if isinstance(A, np.ndarray) else np.asarray(A.multiply(A).sum(axis=1)).ravel()


def _dense(row: Any) -> Array:
    return np.asarray(row.toarray() if hasattr(row, "toarray") else row, dtype=np.float64).ravel()
