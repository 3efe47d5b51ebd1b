"""Operations on whole arrays with the bits of compiled loops, for their twins.

A loop adds one row after another and takes exponentials and logarithms from the C library, which `math` does too;
NumPy has its own, which differ in the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from certifit.rows import Array

LARGEST_EXPONENT = 709.782712893384  # of a float64


def exponentials(x: Array) -> Array:
    """Return exp of every entry."""
    return _each(_exp, x)


def logarithms(x: Array) -> Array:
    """Return the natural logarithm of every entry: -inf of 0, NaN below."""
    return _each(_log, x)


def binary_logarithms(x: Array) -> Array:
    """Return the logarithm to base 2 of every entry, all above 0."""
    return _each(math.log2, x)


def logarithms_of_one_more(x: Array) -> Array:
    """Return log(1 + x) of every entry, all at least 0."""
    return _each(math.log1p, x)


def running_total(x: Array) -> float:
    """Return the sum of x (n,), one entry after another."""
    return float(np.add.accumulate(x)[-1]) if len(x) else 0.0


def add_one_after_another(total: Array, rows: Array) -> None:
    """Add rows (n, …) to the total, in place, one after another."""
    if len(rows):
        total += rows[0]
        for row in rows[1:] if len(rows) < 8 else ():
            total += row
        if len(rows) >= 8:
            rows = np.concatenate((total[None], rows[1:]))
            total[...] = np.add.accumulate(rows, axis=0)[-1]


def in_fours(rows: Array) -> Array:
    """Return sums (n / 4, …) of four rows each, (a + b) + (c + d), and the rows that are left, one by one."""
    whole = len(rows) // 4 * 4
    a, b, c, d = (rows[i:whole:4] for i in range(4))
    return np.concatenate(((a + b) + (c + d), rows[whole:]))


def _each(function: Callable[[float], float], x: Array) -> Array:
    return np.fromiter(map(function, x.ravel().tolist()), np.float64, x.size).reshape(x.shape)


def _exp(x: float) -> float:
    return math.inf if x > LARGEST_EXPONENT else math.exp(x)


def _log(x: float) -> float:
    if x > 0.0 or math.isnan(x):
        return math.log(x)
    return -math.inf if x == 0.0 else math.nan


def sums_by_place(places: Array, values: Array, size: int) -> Array:
    """Return the sums (size,) of the values (n,) of every place, one after another."""
    return np.bincount(places, weights=values, minlength=size)
