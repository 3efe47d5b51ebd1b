"""Gaps of many least squares fits on the same rows at once, by a dual point of each.

    P(β, b) = ½ Σ wᵢ (yᵢ - β·xᵢ - b)² + λ₁ |β|₁ + λ₂/2 |β|²

Let u be the residuals less their mean, where an intercept is free, v = Σ wᵢ uᵢ xᵢ and y likewise less its mean.

| penalty | lower bound |
|---|---|
| λ₁ > 0 | τ Σ w u y - τ²/2 (Σ w u² + λ₂ |β|²) with τ max |v - λ₂ β| <= λ₁: the ridge penalty as further rows |
| λ₂ > 0 | Σ w u y - ½ Σ w u² - Σⱼ (|vⱼ| - λ₁)₊² / 2λ₂ |
| none | ½ Σ w u² - ½ |Q'√w u|² with Q a basis of the weighted columns |

With coefficients of at least 0 only positive slopes count. The larger bound is taken, and the rounding of all sums is
allowed for beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import svd

from certifit.checkers.plain.dual_points import EPS, summation_error
from certifit.rows import Array, ArrayRows, Matrix


@dataclass(frozen=True)
class SquaresTuning:
    """How much memory the residuals of several fits may take, and what counts as an independent direction."""

    entries: int = 10_000_000
    rank: float = 1e-12  # of the largest singular value


class SquaredFits(NamedTuple):
    """Fits of one target on the same rows, each with the strengths of its penalty beside the sum over rows."""

    coef: Array  # (m, d)
    intercept: Array  # (m,)
    lam1: Array  # (m,)
    lam2: Array  # (m,)
    free: bool  # whether the intercept is
    positive: bool = False


class FitGaps(NamedTuple):
    """Objectives and proved gaps of fits, and how much of a gap may be rounding."""

    objective: Array  # (m,)
    gap: Array  # (m,)
    rounding: float

    def unproved(self, tol: float) -> Array:
        """Whether each fit (m,) is further than tol times its objective from its minimum, as far as is proved."""
        return ~(self.gap <= tol * self.objective + self.rounding)


class CentredTable(NamedTuple):
    """Rows less their weighted means, where an intercept is free; sparse ones stay, beside their means."""

    X: Matrix  # (n, d)
    means: Array  # (d,) that X still has: 0 for dense rows
    y: Array  # (n,) or (n, t)
    w: Array  # (n,)

    def slopes(self, u: Array) -> Array:
        """Σ wᵢ uᵢ (xᵢ - means) (d, m), of u (n, m)."""
        weighted = self.w[:, None] * u
        return np.asarray(self.X.T @ weighted) - np.outer(self.means, weighted.sum(axis=0))

    def dense(self) -> Array:
        """The rows as a dense array, less their means."""
        return self.X.toarray() - self.means if sparse.issparse(self.X) else self.X


def centred(data: ArrayRows, y: Array, free: bool) -> CentredTable:
    """Rows and targets less their weighted means, in float64."""
    X: Any = data.X.astype(np.float64) if sparse.issparse(data.X) else np.asarray(data.X, dtype=np.float64)
    y, w, none = np.asarray(y, dtype=np.float64), data.w, np.zeros(data.n_features)
    if not free:
        return CentredTable(X, none, y, w)
    y = y - w @ y / w.sum()
    means = np.asarray(X.T @ w) / w.sum()
    return CentredTable(X, means, y, w) if sparse.issparse(X) else CentredTable(X - means, none, y, w)


def squared_gaps(data: ArrayRows, y: Array, fits: SquaredFits, tuning: SquaresTuning = SquaresTuning()) -> FitGaps:
    """The gap of every fit to these rows with the targets y (n,)."""
    rows = centred(data, y, fits.free)
    step = max(1, tuning.entries // max(1, data.n_rows))
    parts = []
    for i in range(0, len(fits.coef), step):
        coef, intercept, lam1, lam2 = (part[i : i + step] for part in fits[:4])
        some = SquaredFits(coef, intercept, lam1, lam2, fits.free, fits.positive)
        parts.append(_some_gaps(data, y, rows, some, tuning))
    objective, gap = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    return FitGaps(objective, gap, 16 * summation_error(data.n_rows) * float(rows.w @ rows.y**2))


def _some_gaps(
    data: ArrayRows, y: Array, rows: CentredTable, fits: SquaredFits, tuning: SquaresTuning
) -> tuple[Array, Array]:
    w, beta = rows.w, fits.coef
    left = np.asarray(y, dtype=np.float64)[:, None] - np.asarray(data.X @ beta.T) - fits.intercept
    u = left - w @ left / w.sum() if fits.free else left
    squares, along = w @ u**2, w @ (u * rows.y[:, None])
    ridge = (beta**2).sum(axis=1)
    objective = 0.5 * (w @ left**2) + fits.lam1 * np.abs(beta).sum(axis=1) + 0.5 * fits.lam2 * ridge
    v = rows.slopes(u).T
    bound = np.zeros(len(beta))  # no square is negative
    with np.errstate(divide="ignore", invalid="ignore"):
        # The ridge penalty as d further rows √λ₂ of targets 0.
        steepest = _outward(v - fits.lam2[:, None] * beta, fits.positive).max(axis=1, initial=0.0)
        most = np.where(steepest > 0, fits.lam1 / (steepest * (1 + 8 * EPS)), np.inf)
        size = squares + fits.lam2 * ridge
        tau = np.clip(np.where(size > 0, along / size, 0.0), 0.0, most)
        bound = np.maximum(bound, np.where(fits.lam1 > 0, tau * along - 0.5 * tau**2 * size, 0.0))
        beyond = np.maximum(_outward(v, fits.positive) - fits.lam1[:, None], 0.0)
        paid = (beyond**2).sum(axis=1) / (2 * fits.lam2)
        bound = np.maximum(bound, np.where(fits.lam2 > 0, along - 0.5 * squares - paid, 0.0))
    free = (fits.lam1 == 0) & (fits.lam2 == 0)
    if free.any() and not fits.positive:
        bound[free] = 0.5 * squares[free] - _left_along_columns(rows, u[:, free], tuning)
    return objective, np.maximum(objective - bound, 0.0)


def _outward(slopes: Array, positive: bool) -> Array:
    """The sizes of slopes along which a coefficient could move."""
    return np.maximum(slopes, 0.0) if positive else np.abs(slopes)


def _left_along_columns(rows: CentredTable, u: Array, tuning: SquaresTuning) -> Array:
    """Half the squares of residuals that the columns could still explain (m,)."""
    root = np.sqrt(rows.w)[:, None]
    basis, sizes, _ = svd(root * rows.dense(), full_matrices=False)
    kept = basis[:, sizes > tuning.rank * sizes.max(initial=0.0)]
    return np.asarray(0.5 * ((kept.T @ (root * u)) ** 2).sum(axis=0))
