"""Terms of two columns: sums of boxes, each a half-line of one column times a half-line of another.

A border of each column makes four boxes, by which side of it is meant. The term of a pair is Σ β 1[box] over all
borders of a coarse grid, and Σ |β| is its size, as total variation, the sum of the sizes of steps, is that of a
function of one column. Along an axis levels are in order, missing values below all others where the fit met any.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from certifit.rows import Array


@dataclass(frozen=True, eq=False)
class PairTerm:
    """The term of two columns: values[a, b] at level a of the first and b of the second, 0 on average."""

    columns: Array  # (2,) their numbers
    first_thresholds: Array  # (k₁ - 1,), less one where missing values are a level
    second_thresholds: Array
    missing: Array  # (2,) bool: whether the fit met missing values, which are the lowest level then
    coefficients: Array  # (4, k₁ - 1, k₂ - 1) of the boxes low and low, low and high, high and low, high and high
    centre: float  # the mean of the boxes' sum, which is taken off
    counts: Array  # (k₁, k₂) rows of the fit

    @cached_property
    def values(self) -> Array:
        """The term at every pair of levels (k₁, k₂)."""
        return box_values(self.coefficients) - self.centre

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "values"}

    def levels(self, axis: int, x: Array) -> Array:
        """The level of each entry along an axis (n,); -1 for missing ones that the fit did not meet."""
        thresholds = (self.first_thresholds, self.second_thresholds)[axis]
        low = int(self.missing[axis])
        return np.where(np.isnan(x), low - 1, np.searchsorted(thresholds, x, side="left") + low)

    def __call__(self, X: Array) -> Array:
        """The term of rows (n, d); 0, the mean, where an entry is missing that never was in the fit."""
        a, b = (self.levels(axis, X[:, j]) for axis, j in enumerate(self.columns))
        return np.where((a >= 0) & (b >= 0), self.values[a, b], 0.0)

    @property
    def size(self) -> float:
        return float(np.abs(self.coefficients).sum())


@dataclass(frozen=True)
class PairLevels:
    """A pair of columns on a coarse grid."""

    columns: tuple[int, int]
    shape: tuple[int, int]  # levels of each


def box_values(coefficients: Array) -> Array:
    """The sum of boxes (4, a, b) at every pair of levels (a + 1, b + 1)."""
    low_low, low_high, high_low, high_high = coefficients
    return (
        _from(_from(low_low).T).T + _before(_from(low_high).T).T + _from(_before(high_low).T).T
        + _before(_before(high_high).T).T
    )  # fmt: skip


def box_sums(cells: Array) -> Array:
    """The sums of cells (k₁, k₂) over all boxes (4, k₁ - 1, k₂ - 1)."""
    low, high = np.cumsum(cells, axis=0)[:-1], np.cumsum(cells[::-1], axis=0)[::-1][1:]
    parts = [
        (np.cumsum(side, axis=1)[:, :-1], np.cumsum(side[:, ::-1], axis=1)[:, ::-1][:, 1:]) for side in (low, high)
    ]
    return np.stack([part for pair in parts for part in pair])


def box_cells(boxes: Array, shape: tuple[int, int]) -> Array:
    """Which cells lie in each of some boxes (cells, m); boxes are numbers among (4, k₁ - 1, k₂ - 1)."""
    kind, i, j = np.unravel_index(boxes, (4, shape[0] - 1, shape[1] - 1))
    first = (np.arange(shape[0])[:, None] > i) == (kind >= 2)
    second = (np.arange(shape[1])[:, None] > j) == (kind % 2 == 1)
    return (first[:, None] & second[None]).reshape(shape[0] * shape[1], len(boxes)).astype(np.float64)


def _from(x: Array) -> Array:
    """Sums over the borders at or after each level, along the first axis."""
    return np.concatenate([np.cumsum(x[::-1], axis=0)[::-1], np.zeros((1, *x.shape[1:]))])


def _before(x: Array) -> Array:
    """Sums over the borders before each level, along the first axis."""
    return np.concatenate([np.zeros((1, *x.shape[1:])), np.cumsum(x, axis=0)])


def coarse_levels(mass: Array, missing: bool, most: int) -> Array:
    """For each level of a column the coarse one it belongs to (k,), of about equal mass; missing values are alone."""
    known, room = mass[int(missing) :], most - int(missing)
    if len(known) <= room:
        return np.arange(len(mass))
    reached = np.cumsum(known)
    last = np.unique(np.searchsorted(reached, np.arange(1, room) / room * reached[-1]))
    ends = np.zeros(len(known), np.int64)
    ends[last[last + 1 < len(known)] + 1] = 1
    found = np.cumsum(ends)
    return np.append(0, found + 1) if missing else found
