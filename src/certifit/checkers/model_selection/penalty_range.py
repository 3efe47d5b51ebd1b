"""Whether no C of a whole range has a cross-validated error that is lower by more than eps.

The minimum w of ½|w|² + C Σ loss(y (x'w + b)) moves with C, but not far. Let ŵ solve the problem at Ĉ up to a
gradient r, and c = C/Ĉ. Slopes of a convex loss are monotone, so (w - c (ŵ - r))'(w - ŵ) <= 0: w is in the ball whose
diameter reaches from ŵ to c (ŵ - r). Every row's score then is in a range, the intercept's follows from the scores of
the fitted rows, and rows left out whose class is wrong all over the range count against every C in it (Shibagaki,
Suzuki, Karasuyama & Takeuchi, Regularization path of cross-validation error lower bounds, 2015).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from certifit.core import Certificate, Check
from certifit.rows import Array


class FoldedTable(NamedTuple):
    """Rows of two classes in folds."""

    X: Array  # (n, p)
    y: Array  # (n,) 1 or -1
    folds: Array  # (n,)
    free: bool  # whether there is an intercept beside w that is not penalised
    logistic: bool  # or the squared hinge


@dataclass(frozen=True)
class PenaltyClaim:
    """Solutions without each fold at some C, and what follows for all between the first and the last."""

    Cs: Array  # (m,) ascending
    models: Array  # (m, folds, p + free) the intercept last
    best: int  # place of the C whose error is smallest
    error: float  # its share of rows left out that are not certainly right
    eps: float  # no C in the range has an error below error - eps


def certify_penalty(claim: PenaltyClaim, table: FoldedTable) -> Certificate:
    """Prove the claim from the solutions: gradients, balls and classes are worked out anew."""
    n = len(table.y)
    uppers = [not_certainly_right(table, C, models) / n for C, models in zip(claim.Cs, claim.models, strict=True)]
    lowest = min(
        segment_bound(table, (claim.Cs[i], claim.models[i]), (claim.Cs[i + 1], claim.models[i + 1])) / n
        for i in range(len(claim.Cs) - 1)
    )
    checks = (
        Check("C out of order", float(np.count_nonzero(np.diff(claim.Cs) <= 0)), 0.0),
        Check("error of the best C off by", abs(claim.error - uppers[claim.best]), 1e-12),
    )
    words = (
        f"no C between {claim.Cs[0]:.4g} and {claim.Cs[-1]:.4g} has a cross-validated error below "
        f"{max(0.0, claim.error - claim.eps):.4g}; that of C = {claim.Cs[claim.best]:.4g} is {claim.error:.4g}"
    )
    facts: dict[str, float | str] = {"C solved for": len(claim.Cs)}
    return Certificate(
        "optimal", words, objective=claim.error, bound=lowest, limit=claim.eps + 1e-12, checks=checks, facts=facts
    )


def not_certainly_right(table: FoldedTable, C: float, models: Array) -> int:
    """Return how many rows left out are not proved to be classified right at this C."""
    return sum(_undecided(table, k, (C, model), C, wrong=False) for k, model in enumerate(models))


def segment_bound(table: FoldedTable, first: tuple[float, Array], last: tuple[float, Array]) -> int:
    """Return how many rows left out are wrong at least, for every C between two that were solved for."""
    middle = float(np.sqrt(first[0] * last[0]))
    return min(
        sum(_undecided(table, k, (C, model), middle, wrong=True) for k, model in enumerate(models))
        for C, models in (first, last)
    )


def _undecided(table: FoldedTable, fold: int, solved: tuple[float, Array], C: float, wrong: bool) -> int:
    """Return rows of a fold that are wrong all over from the solved C to this one, or not right all over."""
    test = table.folds == fold
    low, high = score_ranges(table, test, solved, C)
    y = table.y[test]
    # A score of 0 says the first class, -1.
    surely_up, surely_down = low > 0, high <= 0
    if wrong:
        return int(np.count_nonzero(np.where(y > 0, surely_down, surely_up)))
    return int(np.count_nonzero(~np.where(y > 0, surely_up, surely_down)))


def score_ranges(table: FoldedTable, test: Array, solved: tuple[float, Array], C: float) -> tuple[Array, Array]:
    """Return the range of the scores of tested rows (m,), (m,) for all C from the solved one to this one."""
    start, model = solved
    w, b = (model[:-1], float(model[-1])) if table.free else (model, 0.0)
    X, y = table.X[~test], table.y[~test]
    slopes = start * y * loss_slope(table.logistic, y * (X @ w + b))
    r, lean = w + X.T @ slopes, abs(float(slopes.sum())) if table.free else 0.0
    ranges = []
    for c in (1.0, C / start):
        # The intercept's slope is 0 but for rounding, which widens the ball by what it may gain; 10 is far for it.
        radius = np.sqrt(0.25 * float(np.sum((c * (w - r) - w) ** 2)) + 10 * c * lean)
        ranges.append((0.5 * (c * (w - r) + w), radius))
    inner = _extremes(X, ranges)
    outer = _extremes(table.X[test], ranges)
    if not table.free:
        return outer
    step = max(abs(b), 1.0)
    ends = [_intercept(table.logistic, y, scores, step) for scores in (inner[1], inner[0])]
    if max(abs(end - b) for end in ends) > 10:
        return np.full(len(outer[0]), -np.inf), np.full(len(outer[0]), np.inf)
    return outer[0] + ends[0], outer[1] + ends[1]


def _extremes(X: Array, balls: list[tuple[Array, float]]) -> tuple[Array, Array]:
    """Return the least and the largest x'w over balls (centre, radius): between them the bounds are convex in C."""
    lengths = np.sqrt(np.einsum("ij,ij->i", X, X))
    middles = [X @ centre for centre, _ in balls]
    low = np.minimum(*(m - lengths * radius for m, (_, radius) in zip(middles, balls, strict=True)))
    high = np.maximum(*(m + lengths * radius for m, (_, radius) in zip(middles, balls, strict=True)))
    return low, high


def loss_slope(logistic: bool, m: Array) -> Array:
    """Return the slope of the loss at margins m (any shape)."""
    return -expit(-m) if logistic else -2 * np.maximum(1 - m, 0)


def _intercept(logistic: bool, y: Array, scores: Array, step: float) -> float:
    """Return the intercept that balances given scores (n,): the larger the scores, the smaller it is."""

    def lean(b: float) -> float:
        return float((y * loss_slope(logistic, y * (scores + b))).sum())

    low, high = -step, step
    while lean(low) > 0 and low > -1e6:
        low *= 2
    while lean(high) < 0 and high < 1e6:
        high *= 2
    if lean(low) >= 0 or lean(high) <= 0:
        return low if lean(low) >= 0 else high
    return float(brentq(lean, low, high, xtol=1e-12))
