"""The support of a family, the set of values with positive density: in words for messages and as a test for arrays.

`lattice` gives the points at which sums over whole numbers are evaluated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from certifit.rows import Array


@dataclass(frozen=True)
class Support:
    """An interval of numbers to which a family gives positive density.

    >>> import numpy as np
    >>> from certifit.families import Poisson
    >>> support = Poisson(3.0).support
    >>> support.words, support.contains(np.array([-1.0, 0.0, 2.5, 3.0])).tolist()
    ('whole numbers 0, 1, 2, …', [False, True, False, True])
    """

    words: str
    low: float = -np.inf
    high: float = np.inf
    closed: bool = False  # whether `low` and `high` belong to it

    discrete: ClassVar[bool] = False
    vector: ClassVar[bool] = False

    def contains(self, x: Array) -> Array:
        """Return for each value, or each row of vectors, whether it lies in the support."""
        if self.closed:
            return (x >= self.low) & (x <= self.high)
        return (x > self.low) & (x < self.high)


class WholeNumbers(Support):
    """The support is the whole numbers from `low` to `high`."""

    discrete = True

    def contains(self, x: Array) -> Array:
        with np.errstate(invalid="ignore"):
            return np.logical_and((x >= self.low) & (x <= self.high), np.floor(x) == x)


class RealVectors(Support):
    """The support is all of R^d."""

    vector = True

    def contains(self, x: Array) -> Array:
        finite: Any = np.isfinite(x)
        return finite.all(axis=1)


class SimplexVectors(Support):
    """The support is the positive vectors that sum to one."""

    vector = True

    def contains(self, x: Array) -> Array:
        return (x > 0).all(axis=1) & (np.abs(x.sum(axis=1) - 1) <= 1e-6)  # float32 rows sum to one only so far


class CountVectors(Support):
    """The support is the vectors of counts that sum to `high`."""

    discrete = True
    vector = True

    def contains(self, x: Array) -> Array:
        return (x >= 0).all(axis=1) & (np.floor(x) == x).all(axis=1) & (x.sum(axis=1) == self.high)


REALS = Support("finite numbers")
POSITIVE = Support("positive numbers", low=0.0)
NOT_NEGATIVE = Support("numbers of at least 0", low=0.0, high=np.finfo(float).max, closed=True)
UNIT = Support("numbers strictly between 0 and 1", low=0.0, high=1.0)
COUNTS = WholeNumbers("whole numbers 0, 1, 2, …", low=0.0, high=np.finfo(float).max)
VECTORS = RealVectors("rows of finite numbers")
SIMPLEX = SimplexVectors("rows of positive numbers that sum to 1")


def lattice(mean: float, variance: float, high: float) -> tuple[Array, Array]:
    """Return points and weights that sum a function over 0, 1, … high under a distribution with these moments.

    Up to 65,536 values are taken one by one. A bell-shaped density wider than that is so smooth that evenly spaced
    values suffice: the error falls faster than any power of the step. Where a long tail starts at 0, as a negative
    binomial's can, steps double with the distance, with Euler-Maclaurin corrections where the step changes.
    """
    spread = np.sqrt(variance)
    reach = 40.0  # standard deviations, and tail lengths, beyond which less than 1e-16 of the mass is left
    one_by_one = 2**16
    low = max(0.0, np.floor(mean - reach * spread - reach))
    tail = variance / mean if mean > 0 else 0.0
    high = min(high, np.ceil(mean + reach * (spread + tail) + reach))
    if high - low < one_by_one:
        points = np.arange(low, high + 1)
        return points, np.ones_like(points)
    if low > 0:
        step = np.ceil((high - low) / 2**14)
        points = np.arange(low, high + 1, step)
        return points, np.full_like(points, step)
    start = one_by_one // 4
    x, w = [np.arange(float(start))], [np.ones(start)]
    steps = start // 2
    while start <= high:
        h = start / steps
        slope = (h * h - 1) / (24 * h)  # weight of (h² - 1)/12 times the derivative, a difference over 2h
        weights = np.full(steps + 3, h)
        weights[:3] = -slope, (h + 1) / 2, h + slope
        weights[-3:] = h + slope, (h - 1) / 2, -slope
        x.append(start + h * np.arange(-1, steps + 2))
        w.append(weights)
        start *= 2
    return np.concatenate(x), np.concatenate(w)
