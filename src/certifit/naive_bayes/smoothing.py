"""Smoothing: what keeps a class that has seen few rows from being certain. Every rule of the room is in this file.

| columns | rule | the parameters minimise |
|---|---|---|
| counted | α pseudo-counts in every cell, `smoothed_counts` | - Σ (N + α) log p, by p = (N + α) / Σ (N + α) |
| counted, complement | α pseudo-counts, N of all other classes, `complement_counts` | the same |
| Gaussian | ε added to every variance, `variance_floor` | Σ weight [log(2π v) + (spread + ε) / v] / 2 |

A rule has two sides: the parameters that it gives, and what it adds to the objective (`pseudo_count_loss`,
`variance_floor_loss`); a column model calls both, and the certificate counts the second. A new rule goes here, with
its two sides, and is called from `params` and `penalty` of the column models that use it.
With α = 0 a cell that was never seen has log p = -inf, and 0 · log 0 = 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit.exceptions import DataError
from certifit.rows import Array


def safe_log(p: Array) -> Array:
    """log p with log 0 = -inf and no warning."""
    with np.errstate(divide="ignore"):
        return np.log(p)


def weighted_log_sum(mass: Array, log_p: Array) -> float:
    """Σ mass log p with 0 log 0 = 0."""
    some = mass > 0
    return float((mass[some] * log_p[some]).sum())


# ---------------------------------------------------------------------------------------------------- pseudo-counts
LEAST_PSEUDO_COUNT = 1e-10  # as in scikit-learn, unless `force_alpha`


def pseudo_counts(alpha: Any, d: int, force_alpha: bool) -> Any:
    """The setting `alpha` as a number or an array (d,); at least 1e-10, as in scikit-learn, unless `force_alpha`."""
    counts = np.asarray(alpha, dtype=np.float64)
    if counts.ndim and counts.shape != (d,):
        raise DataError(got=f"alpha of shape {counts.shape}", wanted=f"a number, or {d} of them")
    counts = counts if force_alpha else np.maximum(counts, LEAST_PSEUDO_COUNT)
    return counts if counts.ndim else float(counts)


def are_pseudo_counts(alpha: Any) -> bool:
    """Whether a setting is an array of finite numbers of at least 0."""
    try:
        counts = np.asarray(alpha, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return bool(((counts >= 0) & np.isfinite(counts)).all())


def smoothed_counts(counts: Array, alpha: Any) -> Array:
    """N + α: counts with α pseudo-counts in every cell."""
    return counts + alpha


def log_shares(mass: Array) -> Array:
    """log(mass / Σ mass) over the last axis: the log-probabilities that smoothed counts give.

    Where there is no mass at all the shares are equal.
    """
    total = mass.sum(axis=-1, keepdims=True)
    return np.where(total > 0, safe_log(mass) - np.log(np.where(total > 0, total, 1.0)), -np.log(mass.shape[-1]))


def complement_counts(counts: Array, alpha: Any) -> Array:
    """Smoothed counts of all other classes (k, d)."""
    return smoothed_counts(sums_of_others(counts), alpha)


def sums_of_others(counts: Array) -> Array:
    """The counts of all other classes together (k, d), added up and not subtracted: one class may have nearly all.

    >>> sums_of_others(np.array([[1e20], [3.0], [4.0]])).ravel().tolist()
    [7.0, 1e+20, 1e+20]
    """
    none = np.zeros((1, *counts.shape[1:]))
    before = np.concatenate([none, np.cumsum(counts, axis=0)[:-1]])
    after = np.concatenate([np.cumsum(counts[::-1], axis=0)[-2::-1], none])
    return before + after


def pseudo_count_loss(alpha: Any, log_p: Array) -> float:
    """- Σ_cells α log p: what α pseudo-counts in every cell add to the objective."""
    return -weighted_log_sum(np.broadcast_to(alpha, log_p.shape), log_p)


# ---------------------------------------------------------------------------------------------------------- variances
def variance_floor(var_smoothing: float, variances: Array) -> float:
    """ε: this share of the largest variance of any column over all rows."""
    return float(var_smoothing * variances.max())


def variance_floor_loss(epsilon: float, weight: Array, var: Array) -> float:
    """Σ weight ε / 2v over classes and columns (k, d): what the floor adds to the objective."""
    return 0.5 * epsilon * float((weight / var).sum())
