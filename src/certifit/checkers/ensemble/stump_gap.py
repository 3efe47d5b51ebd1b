"""How far an ensemble of stumps is from the best additive model of its size: a duality gap for boosting.

Stumps are indicators h of a half-line of one column, with missing values on either side, or of a set of categories.
For every additive model F' = b + Σ βₕ h with Σ |βₕ| <= Λ and any intercept b, and for all slopes u in the range of φ'
with Σ wᵢ uᵢ = 0,

    Σ wᵢ φ(yᵢ, F'ᵢ)  >=  Σ wᵢ (g(uᵢ) + uᵢ F'ᵢ)  >=  Σ wᵢ g(uᵢ) - Λ max over h of |Σ wᵢ uᵢ h(xᵢ)|,

the first by Fenchel and Young (g = -φ*), the second because u is balanced. With u = φ'(F) and the best intercept the
bound is exact where F is optimal. The maximum is what a weak learner looks for: one cumulative sum a column.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from certifit.checkers.ensemble.score_losses import PlainScoreLoss
from certifit.checkers.plain.dual_points import EPS
from certifit.rows import Array


@dataclass(frozen=True)
class StumpGap:
    """The loss of a model, and a proved lower bound on that of every additive model of stumps of its size."""

    objective: float  # Σ w φ(y, F)
    bound: float
    size: float  # Λ = Σ |β|, which is the total variation of the column functions
    largest_edge: float  # max over h of |Σ w u h|
    scale: float  # the sizes of all terms added up, to which rounding is relative

    @property
    def gap(self) -> float:
        return max(0.0, self.objective - self.bound)


def stump_gap(
    X: Array, y: Array, w: Array, F: Array, size: float, loss: PlainScoreLoss, categorical: Array | None = None
) -> StumpGap:
    """The gap of scores F (n,) or (n, k), made by stumps with Σ |β| = `size`, on rows X (n, d) with weights w > 0.

    With several scores, `size` is that of all of them together. `categorical` (d,) marks columns of categories.
    """
    return dual_gap(y, w, F, size, loss, lambda v: largest_edge(X, v, categorical))


def dual_gap(
    y: Array, w: Array, F: Array, size: float, loss: PlainScoreLoss, largest: Callable[[Array], float]
) -> StumpGap:
    """The same for any set of functions h with values 0 and 1: `largest` gives max |Σ v h| for v (n, k)."""
    if loss.translates:
        # Far from 0 the digits of y would be lost in sums that are balanced.
        centre = float(np.average(y, weights=w))
        y, F = y - centre, F - centre
    values = loss.value(y, F)
    u = loss.balanced(y, w, loss.slope(y, F + best_shift(y, w, F, loss)))
    v = w[:, None] * u.reshape(len(u), -1)
    # So much can be lost where n numbers are added one after another.
    edge = largest(v) + 4 * EPS * len(v) * float(np.abs(v).sum())
    shares = loss.gain(y, u)
    rounding = 8 * (1 + np.log2(len(w))) * EPS
    scale = float(w @ np.abs(values) + w @ (np.abs(shares) + np.abs(u.reshape(len(u), -1)).sum(axis=1)) + size * edge)
    bound = float(w @ shares) - size * edge - rounding * scale
    return StumpGap(float(w @ values), bound, float(size), edge, scale)


def best_shift(y: Array, w: Array, F: Array, loss: PlainScoreLoss, passes: int = 50) -> Array:
    """The constant that lowers the loss most when it is added to all scores: () or (k,), by Newton's method.

    Whatever it finds, the bound is true; the better the constant, the closer the bound.
    """
    if not loss.smooth:
        return _shift_by_bisection(y, w, F, loss)
    shift = np.zeros(F.shape[1:])
    found = w @ loss.value(y, F)
    for _ in range(passes):
        slope, curve = w @ loss.slope(y, F + shift), w @ loss.curvature(y, F + shift)
        step = -slope / np.where(curve > 0, curve, 1.0)
        while True:
            with np.errstate(over="ignore", invalid="ignore"):
                next_found = w @ loss.value(y, F + shift + step)
            if next_found <= found or np.abs(step).max() < EPS:
                break
            step = step / 2
        shift = shift + step
        gained, found = found - next_found, next_found
        if not gained > EPS * abs(found):
            break
    return shift


def _shift_by_bisection(y: Array, w: Array, F: Array, loss: PlainScoreLoss) -> Array:
    """The same for losses with kinks, whose slope rises from below 0 to above."""
    rest = y - F if F.ndim == 1 else y[:, None] - F
    low, high = rest.min(axis=0), rest.max(axis=0)
    for _ in range(60):
        middle = low / 2 + high / 2
        below = w @ loss.slope(y, F + middle) < 0
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray(low / 2 + high / 2)


def largest_edge(X: Array, v: Array, categorical: Array | None = None) -> float:
    """The largest |Σ vᵢ h(xᵢ)| of any stump h, over the columns of v (n, k), which each sum up to 0."""
    best = 0.0
    for j in range(X.shape[1]):
        of_column = _category_edge if categorical is not None and categorical[j] else _column_edge
        best = max(best, of_column(np.asarray(X[:, j], np.float64), v))
    return best


def _column_edge(x: Array, v: Array) -> float:
    order = np.argsort(x, kind="stable")  # NaN comes last
    known = len(x) - int(np.isnan(x).sum())
    sums = np.cumsum(v[order], axis=0)[:known]
    ends = np.append(x[order[1:known]] > x[order[: known - 1]], True) if known else np.zeros(0, bool)
    missing = v[order[known:]].sum(axis=0)
    at_ends = np.concatenate([sums[ends], np.zeros((1, v.shape[1]))])
    return float(np.maximum(np.abs(at_ends), np.abs(at_ends + missing)).max())


def _category_edge(x: Array, v: Array) -> float:
    """Of all sets of categories the heaviest has those with a positive sum, or those with a negative one."""
    _, place = np.unique(x, return_inverse=True)  # missing values are a category too
    sums = np.stack([np.bincount(place, column) for column in v.T], axis=1)
    return float(max(np.maximum(sums, 0).sum(axis=0).max(), np.maximum(-sums, 0).sum(axis=0).max()))
