"""The intercept of a machine whose losses have kinks: of all that are best for its function, the one in the middle.

    min over b of   Σᵢ Cᵢ max(0, sᵢ (tᵢ - b)),     s = ±1

is a sum of hinges with kinks at t. Its slope at b is the weight of all t below b minus that of all s = +1: where it
is 0 on an interval, every b of the interval is best, and none of them is told from the others by the objective.
"""

from __future__ import annotations

import numpy as np

from certifit.rows import Array


def middle_of_best(t: Array, s: Array, C: Array) -> float:
    """The middle of the best intercepts; weights that differ by no more than the rounding of their sum are equal.

    >>> middle_of_best(np.array([1.0, -1.0]), np.array([1.0, -1.0]), np.ones(2))
    0.0
    >>> middle_of_best(np.array([1.0, -1.0, 5.0]), np.array([1.0, -1.0, 1.0]), np.ones(3))
    3.0
    """
    counted = C > 0
    if not counted.all():
        t, s, C = t[counted], s[counted], C[counted]
    if not len(t):
        return 0.0
    order = np.argsort(t, kind="stable")
    below, level = np.cumsum(C[order], dtype=np.float64), float(C[s > 0].sum())
    slack = 4 * float(np.finfo(float).eps) * float(np.sqrt(len(t)) * below[-1])
    # right of the last kink the slope is the weight of s = -1: where that is 0, so is the slope
    low, high = (t[order[min(int(at), len(t) - 1)]] for at in below.searchsorted([level - slack, level + slack]))
    return float((low + high) / 2)


def middle_without_loss(t: Array, s: Array, C: Array) -> float:
    """The middle of the intercepts at which no row has a loss; 0 where there are none, or where they have no end.

    >>> middle_without_loss(np.array([1.0, 4.0]), np.array([1.0, -1.0]), np.ones(2))
    2.5
    >>> middle_without_loss(np.array([1.0, 0.0]), np.array([1.0, -1.0]), np.ones(2))
    0.0
    """
    low = float(t[(s > 0) & (C > 0)].max(initial=-np.inf))
    high = float(t[(s < 0) & (C > 0)].min(initial=np.inf))
    return (low + high) / 2 if -np.inf < low <= high < np.inf else 0.0


def middle_of_quantile(m: Array, C: Array, total: float) -> float:
    """The middle of the r with the smallest - total r + Σ C max(0, r - m): below it lies the weight `total`.

    >>> middle_of_quantile(np.array([3.0, 1.0, 2.0, 4.0]), np.ones(4), 2.0)
    2.5
    """
    counted = C > 0
    if not counted.all():
        m, C = m[counted], C[counted]
    order = np.argsort(m, kind="stable")
    below = np.cumsum(C[order], dtype=np.float64)
    slack = 4 * float(np.finfo(float).eps) * float(np.sqrt(len(m)) * below[-1])
    low, high = (m[order[min(int(at), len(m) - 1)]] for at in below.searchsorted([total - slack, total + slack]))
    return float((low + high) / 2)
