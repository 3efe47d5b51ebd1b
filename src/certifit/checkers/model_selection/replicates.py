"""Whether coefficients are those of fits to rows drawn with replacement: some are drawn again, and put to the test.

Which rows a replicate draws follows from the seed by a hash (SplitMix64), written out here once more in plain NumPy.
Least squares and ridge are proved by their normal equations over the drawn rows; other models are fitted again.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from certifit.core import Certificate, Check
from certifit.rows import Array


@dataclass(frozen=True)
class ReplicateClaim:
    """Coefficients of B replicates, the intercept last where there is one."""

    values: Array  # (B, p)
    estimate: Array  # (p,) of all rows
    low: Array  # (p,) percentiles over replicates
    high: Array  # (p,)
    confidence: float
    seed: int
    intercept: bool
    alpha: float | None  # ridge penalty; None for other models, which are fitted again


def certify_replicates(
    claim: ReplicateClaim, X: Array, y: Array, estimator: Any = None, most_replicates: int = 5
) -> Certificate:
    """Prove some replicates, spread over all of them, and the percentiles of all."""
    B = len(claim.values)
    keys = replicate_keys(claim.seed, B)
    worst = 0.0
    asked = np.unique(np.linspace(0, B - 1, min(B, most_replicates)).astype(int))
    drawn = [drawn_rows(int(keys[b]), len(y)) for b in asked]
    if claim.alpha is None:
        worst = _distance_of_refit(claim, claim.estimate, (X, y), estimator)
        for b, rows in zip(asked, drawn, strict=True):
            worst = max(worst, _distance_of_refit(claim, claim.values[b], (X[rows], y[rows]), estimator))
    else:
        counts = [np.ones(len(y)), *(np.bincount(rows, minlength=len(y)) for rows in drawn)]
        worst = relative_residual(np.vstack([claim.estimate, claim.values[asked]]), claim, (X, y), np.stack(counts))
    ends = np.quantile(claim.values, [(1 - claim.confidence) / 2, (1 + claim.confidence) / 2], axis=0)
    size = np.maximum(np.abs(claim.values).max(axis=0), 1e-300)
    off = float((np.abs(np.stack([claim.low, claim.high]) - ends) / size).max())
    name = "normal equations off by" if claim.alpha is not None else "replicates fitted again off by"
    checks = (
        Check("coefficients that are no numbers", float(np.count_nonzero(~np.isfinite(claim.values))), 0.0),
        Check(name, worst, 1e-9 if claim.alpha is not None else 1e-6),
        Check("percentiles off by", off, 1e-9),
    )
    facts: dict[str, float | str] = {"replicates": B, "replicates put to the test": len(asked)}
    facts["assumed"] = "rows are independent draws, and many; percentiles of the bootstrap"
    return Certificate(
        "statistical", f"coefficients of {B} fits to rows drawn with replacement", checks=checks, facts=facts
    )


def replicate_keys(seed: int, n_replicates: int) -> Array:
    """Return the key that each replicate's draws begin with (B,)."""
    with np.errstate(over="ignore"):
        return _mix(_mix(np.uint64(seed) + np.zeros(1, np.uint64)) + np.arange(n_replicates, dtype=np.uint64))


def drawn_rows(key: int, n: int) -> Array:
    """Return the rows that a replicate draws (n,): the upper and the lower half of each hash, as shares of n."""
    with np.errstate(over="ignore"):
        start = np.uint64(key) + np.arange((n + 1) // 2, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        mixed = _mix(start)
        halves = np.stack([mixed >> np.uint64(32), mixed & np.uint64(0xFFFFFFFF)], axis=1)
        return (halves.ravel()[:n] * np.uint64(n) >> np.uint64(32)).astype(np.intp)


def _mix(x: Array) -> Array:
    """Return the next number of SplitMix64 after each state (any shape)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def relative_residual(values: Array, claim: ReplicateClaim, table: tuple[Array, Array], drawn: Array) -> float:
    """Return the largest slope of the objectives at coefficients (r, p), in those of its terms one by one.

    Rows of the table X (n, d), y (n,) count as often as each replicate has `drawn` them (r, n).
    """
    X, y = table
    d, w = X.shape[1], drawn.astype(np.float64)
    slopes, heights = values[:, :d], np.zeros(len(values))
    level = 0.0
    if claim.intercept:
        # About the mean of all rows, near those of the rows drawn, nothing cancels.
        mean, level = X.mean(axis=0), float(y.mean())
        X, heights = X - mean, values[:, d] + slopes @ mean
    total, means = w.sum(axis=1), w @ X
    weighed = w * (y - slopes @ X.T - heights[:, None])
    gradient = weighed @ X - claim.alpha * slopes
    squares, spread = w @ (X * X), w @ (y - level) ** 2
    if claim.intercept:
        means /= total[:, None]
        gradient -= weighed.sum(axis=1)[:, None] * means
        squares -= total[:, None] * means**2
        spread -= (w @ (y - level)) ** 2 / total
    scale = np.sqrt(np.maximum(squares * spread[:, None], 0.0))
    found = float((np.abs(gradient) / np.maximum(scale, 1e-300)).max())
    if claim.intercept:
        found = max(found, float((np.abs(weighed.sum(axis=1)) / np.maximum(w @ np.abs(y), 1e-300)).max()))
    return found


def _distance_of_refit(claim: ReplicateClaim, values: Array, table: tuple[Array, Array], estimator: Any) -> float:
    """Return how far coefficients (p,) are from those of an estimator that is fitted again, each in its own size."""
    fitted = copy.deepcopy(estimator).fit(*table)
    again = np.ravel(np.asarray(fitted.coef_, dtype=np.float64))
    if claim.intercept:
        again = np.append(again, np.ravel(fitted.intercept_)[0])
    if again.shape != values.shape or not np.isfinite(values).all():
        return math.inf
    # A coefficient is as large as it is, or as its replicates differ.
    size = np.maximum(np.abs(again), np.std(claim.values, axis=0))
    return float((np.abs(values - again) / np.maximum(size, 1e-300)).max())
