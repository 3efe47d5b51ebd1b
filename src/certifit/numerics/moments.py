"""Mean and scatter of weighted rows in one pass, and the triangular factor for directions that squaring would drown.

Both are measured about a shift, so nothing cancels at offset 1e8; both merge over blocks.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import qr

from certifit.exceptions import DataError
from certifit.numerics.products import choose_shift, far, gram, scale_rows
from certifit.rows import Array, Block, Rows, Sums


@dataclass(frozen=True)
class Moments(Sums):
    count: int  # rows with w > 0
    weight: float  # Σ w
    z: Array  # Σ w (x - c)  (d,)
    zz: Array  # Σ w (x - c)(x - c)ᵀ  (d, d)


def _weighted(block: Block, shift: Array | None) -> tuple[Array, Array]:
    """sqrt(w) (x - c) and Σ w (x - c); no copy where there is neither shift nor weight."""
    X, w = block.X, block.w
    if shift is not None:
        X = (X.toarray() if sparse.issparse(X) else X) - shift.astype(X.dtype)
    total = (w.astype(X.dtype, copy=False) @ X).astype(np.float64)
    if (w != 1).any():
        X = scale_rows(X, np.sqrt(w).astype(X.dtype))
    return X, total


def _moments(shift: Array | None, block: Block) -> Moments:
    with np.errstate(over="ignore", invalid="ignore"):  # see `check_overflow`
        Z, total = _weighted(block, shift)
        zz = gram(Z).astype(np.float64, copy=False)
    return Moments(int((block.w > 0).sum()), float(block.w.sum()), total, zz)


@dataclass(frozen=True)
class Scatter:
    count: int  # rows with w > 0
    weight: float  # Σ w
    mean: Array  # (d,)
    S: Array  # Σ w (x - mean)(x - mean)ᵀ  (d, d)

    def __add__(self, other: Scatter) -> Scatter:
        """Of both tables' rows, each measured about its own mean (Chan, Golub & LeVeque 1983)."""
        weight = self.weight + other.weight
        apart = other.mean - self.mean
        S = self.S + other.S + (self.weight * other.weight / weight) * apart[:, None] * apart
        return Scatter(self.count + other.count, weight, self.mean + other.weight / weight * apart, check_overflow(S))


def scatter(rows: Rows, centred: bool = True) -> Scatter:
    """Weighted mean and scatter about it; one pass, or two where the first shift was far from the mean.

    Where the rows are not to be `centred`, the scatter is about zero, which then stands for the mean.
    """
    if not centred:
        raw = rows.sum(partial(_moments, None))
        return Scatter(raw.count, raw.weight, np.zeros(rows.n_features), check_overflow(raw.zz))
    first = next(iter(rows))
    shift = choose_shift(first.X, first.w)
    m = rows.sum(partial(_moments, shift))
    check_overflow(m.zz)
    delta = m.z / m.weight
    if (delta**2 > far(rows.dtype) ** 2 * _variances(m)).any():  # the first block was not like the rest
        shift = delta if shift is None else shift + delta
        m = rows.sum(partial(_moments, shift))
        delta = m.z / m.weight
    S = m.zz
    S -= m.weight * delta[:, None] * delta
    return Scatter(m.count, m.weight, delta if shift is None else shift + delta, S)


def fold_scatters(rows: Rows, folds: int) -> list[Scatter]:
    """The scatter of each fold's rows, in one pass; row i is in fold i mod `folds`."""
    first = next(iter(rows))
    shift = choose_shift(first.X, first.w)
    m: Any = rows.sum(partial(_folded, shift, folds))  # arrays, one entry a fold
    check_overflow(m.zz)
    out = []
    for count, weight, z, zz in zip(m.count, m.weight, m.z, m.zz, strict=True):
        delta = z / (weight or 1.0)
        S = zz - weight * delta[:, None] * delta
        out.append(Scatter(int(count), float(weight), delta if shift is None else shift + delta, S))
    return out


def _folded(shift: Array | None, folds: int, block: Block) -> Moments:
    """Moments with a leading axis of folds."""
    parts = []
    for fold in range(folds):
        mine = slice((fold - block.start) % folds, None, folds)
        parts.append(_moments(shift, Block(block.X[mine], None, block.w[mine], 0)))
    stacked: Any = [np.array(field) for field in zip(*map(astuple, parts), strict=True)]
    return Moments(*stacked)


def check_overflow(squares: Array) -> Array:
    """Refuse sums of squares that are too large for their type."""
    if not np.isfinite(squares).all():
        raise DataError(
            got="values so large that their squares overflow",
            wanted="values whose squares, summed over the rows, stay finite",
            fix="Rescale the columns, for instance to unit variance.",
        )
    return squares


def _variances(m: Moments) -> Array:
    return np.maximum(np.diag(m.zz) / m.weight - (m.z / m.weight) ** 2, 0.0)


@dataclass(frozen=True)
class Triangle:
    """Upper triangular R with RᵀR = Σ w (x - c)(x - c)ᵀ; `+` stacks two and factors again."""

    R: Array  # (<= d, d)

    def __add__(self, other: Triangle) -> Triangle:
        return Triangle(_triangle(np.concatenate([self.R, other.R])))


def _triangle(A: Array) -> Array:
    return qr(A, mode="r", overwrite_a=True, check_finite=False)[0][: A.shape[1]]


def block_triangle(Z: Array, w: Array) -> Triangle:
    """Of the rows Z with weights w."""
    return Triangle(_triangle(np.sqrt(w)[:, None] * Z))


def _centred_triangle(mean: Array, block: Block) -> Triangle:
    X = block.X.toarray() if sparse.issparse(block.X) else block.X
    return block_triangle(X - mean, block.w)


def triangle(rows: Rows, mean: Array) -> Array:
    """R of the QR factorisation of the centred, weighted rows."""
    return rows.sum(partial(_centred_triangle, mean)).R
