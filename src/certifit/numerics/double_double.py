"""Sums and products to twice the working precision ("double-double"), from float64 arithmetic alone.

Each operation returns its rounded result and the exact rounding error. Checkers have such code of their own.
References: Dekker, "A floating-point technique for extending the available precision" (1971);
Knuth, The Art of Computer Programming, vol. 2, section 4.2.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit.rows import Array


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Return s and e: s is a + b rounded, and a + b = s + e exactly.

    >>> s, e = two_sum(np.float64(1.0), np.float64(1e-20))
    >>> float(s), float(e)
    (1.0, 1e-20)
    """
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """Return p and e: p is a b rounded, and a b = p + e exactly, for |a| and |b| below 1e150."""
    p = a * b
    # Dekker's split of a number into two halves of 26 bits.
    a_high, b_high = (2.0**27 + 1) * a, (2.0**27 + 1) * b
    a_high, b_high = a_high - (a_high - a), b_high - (b_high - b)
    a_low, b_low = a - a_high, b - b_high
    return p, ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low


@dataclass(frozen=True)
class Double:
    """Numbers high + low with twice the precision of float64."""

    high: Array  # any shape
    low: Array  # the same shape, much smaller

    def __add__(self, other: Double) -> Double:
        high, error = two_sum(self.high, other.high)
        return Double(high, self.low + other.low + error)

    @property
    def value(self) -> Array:
        return self.high + self.low


def column_sums(A: Double) -> Double:
    """Return the pairwise sum over the first axis."""
    high, low = A.high, A.low
    while len(high) > 1:
        half = len(high) // 2
        pairs, error = two_sum(high[:half], high[half : 2 * half])
        rest_high, rest_low = high[2 * half :], low[2 * half :]
        low = np.concatenate([low[:half] + low[half : 2 * half] + error, rest_low])
        high = np.concatenate([pairs, rest_high])
    return Double(high[0], low[0])
