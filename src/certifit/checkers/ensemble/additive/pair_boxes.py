"""Terms of two columns for the checker of additive models, in plain NumPy: where rows lie, and sums over boxes.

A box is a half-line of one column times a half-line of another; a pair's term is a sum of boxes, and its size the sum
of their coefficients' sizes. In the dual, |Σ s u| over the rows of every box is then at most α.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from certifit.exceptions import DataError
from certifit.rows import Array


@dataclass(frozen=True)
class PlainPair:
    """The term of two columns."""

    columns: tuple[int, int]
    thresholds: tuple[Array, Array]
    missing: tuple[bool, bool]  # whether missing values are the lowest level of a column
    coefficients: Array  # (4, k₁ - 1, k₂ - 1) of boxes: low and low, low and high, high and low, high and high
    centre: float  # what is taken off
    counts: Array  # (k₁, k₂) rows of the fit

    @property
    def shape(self) -> tuple[int, int]:
        return self.coefficients.shape[1] + 1, self.coefficients.shape[2] + 1

    @property
    def size(self) -> float:
        return float(np.abs(self.coefficients).sum())

    def values(self) -> Array:
        """The term at every pair of levels (k₁, k₂): one box after another is added."""
        found = np.full(self.shape, -self.centre)
        for kind, i, j in zip(*np.nonzero(self.coefficients), strict=True):
            first = slice(i + 1, None) if kind >= 2 else slice(0, i + 1)
            second = slice(j + 1, None) if kind % 2 else slice(0, j + 1)
            found[first, second] += self.coefficients[kind, i, j]
        return found

    def cells(self, X: Array) -> Array:
        """The cell of each row among k₁ k₂ (n,); -1 where an entry is missing that never was in the fit."""
        places = []
        for j, cuts, lost in zip(self.columns, self.thresholds, self.missing, strict=True):
            x = X[:, j]
            places.append(np.where(np.isnan(x), 0 if lost else -1, np.searchsorted(cuts, x, side="left") + int(lost)))
        first, second = places
        return np.where((first >= 0) & (second >= 0), first * self.shape[1] + second, -1)

    def scores(self, X: Array) -> Array:
        """The term of every row (n,)."""
        return np.append(self.values().ravel(), 0.0)[self.cells(X)]

    def sums(self, X: Array, v: Array) -> Array:
        """Sums of v by cell (k₁ k₂,)."""
        at = self.cells(X)
        return np.bincount(at[at >= 0], v[at >= 0], self.shape[0] * self.shape[1])

    def largest_sum(self, flows: Array) -> float:
        """The largest |sum| over the cells of any box."""
        table = flows.reshape(self.shape)
        sides = []
        for k in self.shape:
            low = (np.arange(k) <= np.arange(k - 1)[:, None]).astype(np.float64)
            sides.append((low, 1 - low))
        boxes = [first @ table @ second.T for first in sides[0] for second in sides[1]]
        return float(np.abs(boxes).max(initial=0.0))


def plain_pair(term: Any, d: int) -> PlainPair:
    """Read a fitted term; what is no term of two of the d columns is refused."""
    columns, missing = np.asarray(term.columns), np.asarray(term.missing)
    cuts = tuple(np.asarray(a) for a in (term.first_thresholds, term.second_thresholds))
    coefficients, counts, centre = np.asarray(term.coefficients), np.asarray(term.counts), np.asarray(term.centre)
    right = columns.shape == (2,) and columns.dtype.kind in "iu" and 0 <= columns[0] < columns[1] < d
    right = right and missing.shape == (2,) and missing.dtype == bool and centre.shape == ()
    if not right or any(a.ndim != 1 or a.dtype != np.float64 or not (np.diff(a) > 0).all() for a in cuts):
        raise _no_term()
    shape = tuple(len(a) + 1 + int(lost) for a, lost in zip(cuts, missing, strict=True))
    floats = (*cuts, coefficients, centre)
    if coefficients.shape != (4, shape[0] - 1, shape[1] - 1) or counts.shape != shape or counts.dtype.kind != "i":
        raise _no_term()
    if any(a.dtype.kind != "f" or not np.isfinite(a).all() for a in floats):
        raise _no_term()
    pair = int(columns[0]), int(columns[1])
    return PlainPair(
        pair, (cuts[0], cuts[1]), (bool(missing[0]), bool(missing[1])), coefficients, float(centre), counts
    )


def _no_term() -> DataError:
    return DataError(got="a term of two columns whose parts do not fit together", wanted="one that fit left")


def asked_pairs(interactions: Any, d: int, names: Sequence[Any] | Array | None) -> list[tuple[int, int]] | int:
    """How many pairs a setting asks for, or which, as ascending numbers of columns."""
    if isinstance(interactions, (int, np.integer)):
        return int(interactions)
    known: Mapping[str, int] = {} if names is None else {str(name): j for j, name in enumerate(names)}
    found = []
    for pair in interactions:
        two = [known.get(c, -1) if isinstance(c, str) else int(c) for c in pair]
        if len(two) != 2 or two[0] == two[1] or not all(0 <= j < d for j in two):
            raise DataError(
                got=f"interactions={interactions!r}", wanted=f"pairs of two of the {d} columns, by number or name",
                fix="interactions=[(0, 1), (0, 2)], or a number of pairs to choose.",
            )  # fmt: skip
        found.append((min(two), max(two)))
    return list(dict.fromkeys(found))


def wrong_pairs(pairs: Sequence[PlainPair], asked: list[tuple[int, int]] | int, directions: Array) -> int:
    """How many terms were not asked for, are there twice, or have a column with a direction; or are not there."""
    columns = [pair.columns for pair in pairs]
    wrong = len(columns) - len(set(columns)) + sum(bool(directions[[*two]].any()) for two in columns)
    return wrong + (max(0, len(columns) - asked) if isinstance(asked, int) else len(set(columns) ^ set(asked)))
