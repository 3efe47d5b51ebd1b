"""Class means and covariances for the checker of discriminant analysis, in plain float64 NumPy, class by class."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from certifit.checkers.plain.blocks import dense_rows
from certifit.exceptions import DataError
from certifit.rows import Array, Block, Rows, Sums


@dataclass(frozen=True)
class _CentredRowSums(Sums):
    """Sums over the rows of one class about a centre."""

    weight: float  # Σ w
    z: Array  # Σ w (x - c)  (d,)
    zz: Array  # Σ w (x - c)(x - c)ᵀ  (d, d)


@dataclass(frozen=True)
class _QuarticSum(Sums):
    total: float  # Σ w (Σⱼ zⱼ²)²


@dataclass(frozen=True)
class PlainClass:
    """The moments of one class."""

    weight: float  # Σ w
    mean: Array  # (d,)
    covariance: Array  # (d, d), divided by Σ w


def _rows_of_class(c: int | None, block: Block) -> tuple[Array, Array]:
    used = block.w > 0
    if c is not None:
        assert block.y is not None
        used = used & (block.y == c)
    return dense_rows(block.X, used), block.w[used]


def _centred_sums(c: int | None, centre: Array, block: Block) -> _CentredRowSums:
    X, w = _rows_of_class(c, block)
    Z = X - centre
    return _CentredRowSums(float(w.sum()), w @ Z, (Z.T * w) @ Z)


def _mean_sums(c: int | None, centre: Array, block: Block) -> _CentredRowSums:
    X, w = _rows_of_class(c, block)
    return _CentredRowSums(float(w.sum()), w @ (X - centre), np.zeros((0, 0)))


def _quartic_sum(c: int | None, mean: Array, deviation: Array, block: Block) -> _QuarticSum:
    X, w = _rows_of_class(c, block)
    return _QuarticSum(float(w @ (((X - mean) / deviation) ** 2).sum(axis=1) ** 2))


def class_moments(rows: Rows, c: int | None) -> PlainClass:
    """Return the moments of class c, of all rows where c is None: a pass for the mean, one for squares about it.

    Where the mean was off by more than its rows lie apart, by rounding, squares are summed again about a better one.
    """
    zero = np.zeros(rows.n_features)
    first = rows.sum(partial(_mean_sums, c, zero))
    weight = first.weight or 1.0
    centre = first.z / weight
    with np.errstate(over="ignore", invalid="ignore"):
        found = rows.sum(partial(_centred_sums, c, centre))
        step = found.z / weight
        covariance = found.zz / weight - step[:, None] * step
        moved = weight * step * step
        if not (np.isfinite(covariance).all() and (moved <= 0.5 * np.diag(found.zz)).all()):
            centre = centre + step
            found = rows.sum(partial(_centred_sums, c, centre))
            # Rounded as well, it may still be off by what counts beside rows that hardly differ.
            step = found.z / weight
            covariance = found.zz / weight - step[:, None] * step
    return PlainClass(first.weight, centre + step, covariance)


def column_deviations(variances: Array, size: Array) -> Array:
    """Return the roots of variances, and 1 where a column is constant up to the rounding of values of this size."""
    root = np.sqrt(np.maximum(variances, 0.0))
    return np.where(root > 8 * np.finfo(np.float64).eps * size, root, 1.0)


def shrunk(S: Array, share: float) -> Array:
    """Return (1 - s) S + s (tr S / d) I."""
    return (1 - share) * S + share * np.trace(S) / len(S) * np.eye(len(S))


def ledoit_wolf(rows: Rows, c: int | None, found: PlainClass) -> Array:
    """Return Ledoit and Wolf's (2004) covariance of a class, shrunk in units of its own standard deviations."""
    deviation = column_deviations(np.diag(found.covariance), np.abs(found.mean))
    R = found.covariance / np.outer(deviation, deviation)
    d, n = len(R), found.weight or 1.0
    if d == 1:
        return found.covariance
    quartic = rows.sum(partial(_quartic_sum, c, found.mean, deviation)).total
    m = np.trace(R) / d
    d2 = float(((R - m * np.eye(d)) ** 2).sum()) / d  # |S - m I|², with |A|² = tr(AAᵀ) / d
    b2 = (quartic / n - float((R**2).sum())) / (d * n)  # Σ |xxᵀ - S|² / n²
    share = min(max(b2, 0.0) / d2, 1.0) if d2 > 0 else 0.0
    return shrunk(R, share) * np.outer(deviation, deviation)


def estimated(rows: Rows, c: int | None, estimator: Any) -> Array:
    """Return the covariance that a copy of the caller's estimator finds in the rows of a class."""
    parts = [_rows_of_class(c, block) for block in rows]
    if any((w != 1).any() for _, w in parts):
        raise DataError(
            got="sample_weight with covariance_estimator", wanted="rows that all count once", fix="Use shrinkage."
        )
    fitted = copy.deepcopy(estimator)
    fitted.fit(np.concatenate([X for X, _ in parts]))
    return np.asarray(fitted.covariance_, dtype=np.float64)
