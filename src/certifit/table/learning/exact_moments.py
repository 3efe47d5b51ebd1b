"""Weighted sums of powers of numbers, to twice the working precision: means and deviations are right at any offset.

Powers are of the distance from the first number. The sums depend on how rows are cut into blocks by some 1e-32 only,
so that a table in memory, one that is read block by block and one in pieces on a cluster teach the same encoding.
"""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np

from certifit.numerics.double_double import Double, column_sums, two_product, two_sum
from certifit.rows import Array


class ExactMoments:
    """Σ w and Σ w (x - x₀)ᵖ for p = 1 … powers; x₀ is the first number.

    >>> found = ExactMoments()
    >>> found.add(1e8 + np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 2.0]))
    >>> found.mean, found.variance
    (100000002.25, 0.6875)
    """

    def __init__(self, powers: int = 2) -> None:
        self.first: float | None = None  # x₀
        self.sums = [Double(np.zeros(()), np.zeros(())) for _ in range(powers + 1)]

    def add(self, x: Array, w: Array) -> None:
        """Add numbers x (n,) with weights w (n,)."""
        if not len(x):
            return
        self.first = float(x[0]) if self.first is None else self.first
        term = Double(np.asarray(w, dtype=np.float64), np.zeros(len(x)))
        with np.errstate(over="ignore", invalid="ignore"):
            away, rest = two_sum(x, np.asarray(-self.first))
            for power in range(len(self.sums)):
                if power:
                    high, error = two_product(term.high, away)
                    term = Double(high, error + term.low * away + term.high * rest)
                self.sums[power] = self.sums[power] + column_sums(term)

    def merge(self, other: ExactMoments) -> None:
        """Add the sums of other rows, as distances from the first number of these."""
        if other.first is None:
            return
        if self.first is None:
            self.first = other.first
        sums = other.sums
        if other.first != self.first and other._is_finite():
            step, theirs = Fraction(other.first) - Fraction(self.first), [_exact(total) for total in sums]
            sums = [
                _rounded(sum((comb(p, q) * step ** (p - q) * theirs[q] for q in range(p + 1)), Fraction(0)))
                for p in range(len(sums))
            ]
        self.sums = [mine + more for mine, more in zip(self.sums, sums, strict=True)]

    @property
    def weight(self) -> float:
        """Σ w."""
        return float(self.sums[0].value)

    @property
    def mean(self) -> float:
        """Σ w x / Σ w."""
        return float(Fraction(self.first or 0.0) + self._average(1))

    @property
    def variance(self) -> float:
        """Σ w (x - mean)² / Σ w; NaN where squares overflow."""
        return float(self._second()) if self._is_finite() else np.nan

    @property
    def skewness(self) -> float:
        """Σ w (x - mean)³ / Σ w in cubes of the deviation; 0 where there is none, or cubes overflow."""
        if not self._is_finite() or self.variance <= 0:
            return 0.0
        mean, second = self._average(1), self._average(2)
        return float(self._average(3) - 3 * mean * second + 2 * mean**3) / self.variance**1.5

    def _second(self) -> Fraction:
        return max(self._average(2) - self._average(1) ** 2, Fraction(0))

    def _average(self, power: int) -> Fraction:
        return _exact(self.sums[power]) / _exact(self.sums[0])

    def _is_finite(self) -> bool:
        return all(np.isfinite(total.value) for total in self.sums)


def _exact(total: Double) -> Fraction:
    return Fraction(float(total.high)) + Fraction(float(total.low))


def _rounded(value: Fraction) -> Double:
    high = float(value)
    return Double(np.asarray(high), np.asarray(float(value - Fraction(high))))
