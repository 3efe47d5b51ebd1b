"""Mean and scatter of weighted rows in one pass, or the triangular (QR) factor of the centred rows.

The scatter is summed about a shift, so that no digits cancel where rows lie far from zero. In the scatter, variances
below about 1e-10 of the largest are rounding; the triangular factor squares nothing and keeps them. Both are summed
over blocks.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import qr

from certifit.exceptions import DataError
from certifit.numerics.products import choose_shift, far, gram, round_shift, scale_rows, weighted_sum
from certifit.rows import Array, Block, Rows, Sums


@dataclass(frozen=True)
class MomentsTuning:
    """Numbers that steer how moments are summed."""

    double_columns: int = 128  # columns up to which float32 rows are converted; reading them takes as long
    # Standard deviations from 0 up to which a column of float64 is not shifted: its variance keeps 14 of 16 digits,
    # which a direction of hardly any variance needs.
    shifted_beyond: float = 8.0

    def far(self, dtype: Any) -> float:
        """How many standard deviations from 0 a column of this type may lie."""
        return min(far(dtype), self.shifted_beyond)


@dataclass(frozen=True)
class ShiftedMoments(Sums):
    """Sums of weighted rows about a shift c."""

    count: int  # rows with w > 0
    weight: float  # Σ w
    z: Array  # (d,) Σ w (x - c)
    zz: Array  # (d, d) Σ w (x - c)(x - c)ᵀ


def _weighted_rows(block: Block, shift: Array | None) -> tuple[Array, Array]:
    """Return the rows sqrt(w) (x - c) and Σ w (x - c); X itself where there is no shift and every weight is 1."""
    X, w = block.X, block.w
    total = None if X.dtype == np.float64 else weighted_sum(X, w, shift)
    if shift is not None:
        X = (X.toarray() if sparse.issparse(X) else X) - shift.astype(X.dtype)
    total = w @ X if total is None else total
    if (w != 1).any():
        X = scale_rows(X, np.sqrt(w).astype(X.dtype))
    return X, total


def _block_moments(shift: Array | None, block: Block, double: bool = False) -> ShiftedMoments:
    if double:
        block = block._replace(X=block.X.astype(np.float64, copy=False))
    # Overflow is found by `check_overflow`, once all blocks are summed.
    with np.errstate(over="ignore", invalid="ignore"):
        Z, total = _weighted_rows(block, shift)
        zz = gram(Z).astype(np.float64, copy=False)
    return ShiftedMoments(int((block.w > 0).sum()), float(block.w.sum()), total, zz)


@dataclass(frozen=True)
class MeanAndScatter:
    """The mean of weighted rows, and their scatter about it."""

    count: int  # rows with w > 0
    weight: float  # Σ w
    mean: Array  # (d,)
    S: Array  # (d, d) Σ w (x - mean)(x - mean)ᵀ

    def __add__(self, other: MeanAndScatter) -> MeanAndScatter:
        """Merge two tables, each with the scatter about its own mean (Chan, Golub & LeVeque 1983)."""
        weight = self.weight + other.weight
        between = other.mean - self.mean
        S = self.S + other.S + (self.weight * other.weight / weight) * between[:, None] * between
        mean = self.mean + other.weight / weight * between
        return MeanAndScatter(self.count + other.count, weight, mean, check_overflow(S))


def scatter(
    rows: Rows, centred: bool = True, double: bool = False, tuning: MomentsTuning = MomentsTuning()
) -> MeanAndScatter:
    """Return the weighted mean and the scatter about it, in one pass, or two where the first shift was bad.

    Where not `centred`, the scatter is about zero, and zero is returned as the mean. Squares of float32 rows are
    summed in float64 where `double`, and where columns are so few that this takes no longer.
    """
    double = double or rows.n_features <= tuning.double_columns
    if not centred:
        raw = rows.sum(partial(_block_moments, None, double=double))
        return MeanAndScatter(raw.count, raw.weight, np.zeros(rows.n_features), check_overflow(raw.zz))
    first = next(iter(rows))
    shift = choose_shift(first.X, first.w, tuning.far(first.X.dtype))
    m = rows.sum(partial(_block_moments, shift, double=double))
    check_overflow(m.zz)
    delta = m.z / m.weight
    # The shift comes from the first block, which the other rows need not resemble.
    if (delta**2 > tuning.far(rows.dtype) ** 2 * _variances(m)).any():
        shift = round_shift(delta if shift is None else shift + delta, rows.dtype)
        m = rows.sum(partial(_block_moments, shift, double=double))
        delta = m.z / m.weight
    S = m.zz
    S -= m.weight * delta[:, None] * delta
    return MeanAndScatter(m.count, m.weight, delta if shift is None else shift + delta, S)


def fold_scatters(rows: Rows, folds: int) -> list[MeanAndScatter]:
    """Return the mean and scatter of each fold, in one pass; row i is in fold i mod `folds`."""
    first = next(iter(rows))
    shift = choose_shift(first.X, first.w)
    m: Any = rows.sum(partial(_fold_moments, shift, folds))
    check_overflow(m.zz)
    out = []
    for count, weight, z, zz in zip(m.count, m.weight, m.z, m.zz, strict=True):
        delta = z / (weight or 1.0)
        S = zz - weight * delta[:, None] * delta
        mean = delta if shift is None else shift + delta
        out.append(MeanAndScatter(int(count), float(weight), mean, S))
    return out


def _fold_moments(shift: Array | None, folds: int, block: Block) -> ShiftedMoments:
    """Return the moments of each fold, stacked along a first axis."""
    parts = []
    for fold in range(folds):
        mine = slice((fold - block.start) % folds, None, folds)
        parts.append(_block_moments(shift, Block(block.X[mine], None, block.w[mine], 0)))
    stacked: Any = [np.array(field) for field in zip(*map(astuple, parts), strict=True)]
    return ShiftedMoments(*stacked)


def check_overflow(squares: Array) -> Array:
    """Return sums of squares, or refuse them where one is not finite."""
    if not np.isfinite(squares).all():
        raise DataError(
            got="values so large that their squares overflow",
            wanted="values whose squares, summed over the rows, stay finite",
            fix="Rescale the columns, for instance to unit variance.",
        )
    return squares


def _variances(m: ShiftedMoments) -> Array:
    return np.maximum(np.diag(m.zz) / m.weight - (m.z / m.weight) ** 2, 0.0)


@dataclass(frozen=True)
class Triangle:
    """An upper triangular R with RᵀR = Σ w (x - c)(x - c)ᵀ; `+` factors two of them, one above the other."""

    R: Array  # (<= d, d)

    def __add__(self, other: Triangle) -> Triangle:
        return Triangle(_qr_triangle(np.concatenate([self.R, other.R])))


def _qr_triangle(A: Array) -> Array:
    return qr(A, mode="r", overwrite_a=True, check_finite=False)[0][: A.shape[1]]


def block_triangle(Z: Array, w: Array) -> Triangle:
    """Return the triangular factor of the rows Z (rows, d) with row weights w (rows,)."""
    return Triangle(_qr_triangle(np.sqrt(w)[:, None] * Z))


def _centred_triangle(mean: Array, block: Block) -> Triangle:
    X = block.X.toarray() if sparse.issparse(block.X) else block.X
    return block_triangle(X - mean, block.w)


def triangle(rows: Rows, mean: Array) -> Array:
    """Return R (<= d, d) of the QR factorisation of the centred, weighted rows."""
    return rows.sum(partial(_centred_triangle, mean)).R
