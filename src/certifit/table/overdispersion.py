"""Counts that vary more than Poisson's law allows, and the negative binomial's theta for them.

score test    Σ w ((y - μ)² - y) / √(2 Σ w μ²),  standard normal under Poisson's law (Dean & Lawless 1989)
theta         maximises the likelihood of y at means μ: variance μ + μ²/theta (Lawless 1987)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.special import digamma, polygamma

from certifit.rows import Array, Block, Rows


@dataclass(frozen=True)
class OverdispersionTuning:
    """When counts are overdispersed, and how theta is found."""

    significant: float = 3.0  # of the score test: a probability of 0.0013 under Poisson's law
    smallest: float = 1e-6  # theta is sought between these
    largest: float = 1e6  # beyond it, rounding hides on which side of the maximum theta is
    close: float = 1e-7  # theta's last relative step, when fits of means and of theta alternate
    rounds: int = 60  # of alternation at most
    log_step: float = 1e-10  # the last step of log theta
    newton_steps: int = 100  # at most


CountTerms: TypeAlias = Callable[[Array, Array, Array], Array]  # sums over rows of (y, mean, w)


class PredictedCounts(NamedTuple):
    """Rows whose targets are counts, and a model that predicts their means."""

    rows: Rows
    model: Any

    def total(self, f: CountTerms) -> Array:
        """The sum of f over all blocks."""
        return self.rows.sum(partial(_of_block, f, self.model))


def _of_block(f: CountTerms, model: Any, block: Block) -> Array:
    return f(np.asarray(block.y), model.predict(block.X), block.w)


def score_statistic(counts: PredictedCounts) -> float:
    """The score test's statistic; large where counts vary more about their means than Poisson's law allows.

    >>> from types import SimpleNamespace
    >>> from certifit.rows import ArrayRows
    >>> rows = ArrayRows(np.full((16, 1), 5.0), np.array([0.0, 10.0] * 8))
    >>> round(score_statistic(PredictedCounts(rows, SimpleNamespace(predict=np.ravel))), 2)
    11.31
    """
    excess, squares = counts.total(_score_terms)
    return float(excess / np.sqrt(2 * squares))


def _score_terms(y: Array, mean: Array, w: Array) -> Array:
    return np.array([w @ ((y - mean) ** 2 - y), w @ mean**2])


def likeliest_theta(
    counts: PredictedCounts, tuning: OverdispersionTuning = OverdispersionTuning(), start: float = 0.0
) -> float:
    """Theta at which counts with these means are likeliest; infinity where Poisson's law is likelier.

    By Newton's method on log theta from `start`, or from theta's moments; a step that leaves where the maximum must
    be is replaced by half of the way there.

    >>> from types import SimpleNamespace
    >>> from certifit.rows import ArrayRows
    >>> rows = ArrayRows(np.full((16, 1), 5.0), np.array([0.0, 10.0] * 8))
    >>> round(likeliest_theta(PredictedCounts(rows, SimpleNamespace(predict=np.ravel))), 3)
    0.307
    """
    low, high = np.log([tuning.smallest, tuning.largest])
    if start == 0.0:
        excess, squares = counts.total(_score_terms)
        if excess <= 0 or counts.total(partial(_slopes, tuning.largest))[0] >= 0:
            return float("inf")
        start = squares / excess
    at = float(np.clip(np.log(start), low, high))
    for _ in range(tuning.newton_steps):
        slope, curvature = counts.total(partial(_slopes, float(np.exp(at))))
        low, high = (at, high) if slope > 0 else (low, at)
        step = -slope / curvature if curvature < 0 else np.inf
        following = at + step if low < at + step < high else (low + high) / 2
        if abs(following - at) <= tuning.log_step:
            break
        at = following
    return float(np.exp(at)) if at < np.log(tuning.largest) - tuning.close else float("inf")


def _slopes(theta: float, y: Array, mean: Array, w: Array) -> Array:
    """The first two derivatives of the likelihood by log theta, over all rows."""
    first = digamma(y + theta) - digamma(theta) - np.log1p(mean / theta) + (mean - y) / (mean + theta)
    second = polygamma(1, y + theta) - polygamma(1, theta) + mean / (theta * (mean + theta))
    second -= (mean - y) / (mean + theta) ** 2
    slope = theta * (w @ first)
    return np.array([slope, slope + theta**2 * (w @ second)])
