"""Counts that vary more than Poisson's law allows, and the negative binomial's theta for them.

score test    Σ w ((y - μ)² - y) / √(2 Σ w μ²),  standard normal under Poisson's law (Dean & Lawless 1989)
theta         maximises the likelihood of y at means μ: variance μ + μ²/theta (Lawless 1987)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma

from certifit.rows import Array


@dataclass(frozen=True)
class OverdispersionTuning:
    """When counts are overdispersed, and how theta is found."""

    significant: float = 3.0  # of the score test: a probability of 0.0013 under Poisson's law
    smallest: float = 1e-6  # theta is sought between these
    largest: float = 1e6  # beyond it, rounding hides on which side of the maximum theta is
    close: float = 1e-7  # theta's last relative step, when fits of means and of theta alternate
    rounds: int = 60  # of alternation at most


def score_statistic(y: Array, mean: Array, w: Array) -> float:
    """The score test's statistic; large where counts y (n,) vary more about their means than Poisson's law allows.

    >>> y = np.array([0.0, 10.0] * 8)
    >>> round(score_statistic(y, np.full(16, 5.0), np.ones(16)), 2)
    11.31
    """
    return float(w @ ((y - mean) ** 2 - y) / np.sqrt(2 * (w @ mean**2)))


def likeliest_theta(y: Array, mean: Array, w: Array, tuning: OverdispersionTuning = OverdispersionTuning()) -> float:
    """Theta at which counts y (n,) with these means are likeliest; infinity where Poisson's law is likelier.

    >>> round(likeliest_theta(np.array([0.0, 10.0] * 8), np.full(16, 5.0), np.ones(16)), 3)
    0.307
    """

    def slope(log_theta: float) -> float:
        theta = np.exp(log_theta)
        terms = digamma(y + theta) - digamma(theta) - np.log1p(mean / theta) + (mean - y) / (mean + theta)
        return float(w @ terms)

    ends = np.log([tuning.smallest, tuning.largest])
    if score_statistic(y, mean, w) <= 0 or slope(ends[1]) >= 0:
        return float("inf")
    return float(np.exp(brentq(slope, *ends, xtol=1e-12)))
