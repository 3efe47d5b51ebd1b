"""Sums by class for the checkers of naive Bayes, recomputed from the rows in plain float64 NumPy.

Means and variances take two passes, counts one. Missing entries and rows of weight 0 are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from certifit.checkers.plain.blocks import dense
from certifit.rows import Array, Block, Rows, Sums


@dataclass(frozen=True)
class _CentredClassSums(Sums):
    """The sums of one pass about given centres."""

    weight: Array  # Σ w of the rows in which the column is not missing  (k, d)
    z: Array  # Σ w (x - centre)  (k, d)
    zz: Array  # Σ w (x - centre)²  (k, d)


@dataclass(frozen=True)
class PlainClassMoments:
    """The weight, mean and sum of squared deviations of every class and column."""

    weight: Array  # Σ w of the rows in which the column is not missing  (k, d)
    centre: Array  # (k, d)
    delta: Array  # mean - centre: far from 0 it has digits that the mean cannot hold  (k, d)
    ssd: Array  # Σ w (x - mean)²  (k, d)

    @property
    def mean(self) -> Array:
        """The mean of every class and column (k, d)."""
        return self.centre + self.delta

    def pooled(self) -> PlainClassMoments:
        """Return the moments of all classes together (1, d)."""
        weight = self.weight.sum(axis=0, keepdims=True)
        heaviest = self.weight.argmax(axis=0)[None]
        centre, delta = (np.take_along_axis(a, heaviest, axis=0) for a in (self.centre, self.delta))
        away = (self.centre - centre) + (self.delta - delta)  # of each class's mean from the heaviest one's
        step = safe_ratio((self.weight * away).sum(axis=0, keepdims=True), weight)
        between = (self.weight * (away - step) ** 2).sum(axis=0, keepdims=True)
        delta, ssd = delta + step, self.ssd.sum(axis=0, keepdims=True) + between
        return PlainClassMoments(weight, centre, delta, _without_rounding(ssd, weight, centre + delta))

    def largest_variance(self) -> float:
        """Return the largest variance of any column over all rows."""
        all_rows = self.pooled()
        return float(safe_ratio(all_rows.ssd, all_rows.weight).max())


@dataclass(frozen=True)
class _CellWeights(Sums):
    """The weights of the rows in each cell of a partition."""

    mass: Array  # (k, …)


def _positive_rows(block: Block) -> Iterator[tuple[Array, Array, Array]]:
    """Yield rows with a positive weight, their class numbers and weights, about two million entries at a time."""
    step = max(1, 2**21 // block.X.shape[1])
    for first in range(0, len(block.w), step):
        here = slice(first, first + step)
        assert block.y is not None
        X, y, w = dense(block.X[here]), block.y[here], block.w[here]
        positive = w > 0
        yield (X, y, w) if positive.all() else (X[positive], y[positive], w[positive])


def _centred_sums(centre: Array, block: Block, squares: bool = True) -> _CentredClassSums:
    """Sums about the centres (k, d); squares are 0 where they are not asked for."""
    weight, z, zz = np.zeros((3, *centre.shape))
    for X, y, w in _positive_rows(block):
        # Sums of all classes are one product, unless there are so many that its first factor is mostly 0.
        few = len(centre) <= 16
        classes = [np.arange(len(centre))] if few else [np.array([c]) for c in np.unique(y)]
        for own in classes:
            here = slice(None) if few else y == own[0]
            Z, codes = X[here].astype(np.float64, copy=False), y[here]
            Z = Z - centre[codes] if centre.any() else Z
            member = (codes == own[:, None]) * w[here]
            if np.isnan(Z.sum()):  # a cheap way to ask whether any is missing
                present = ~np.isnan(Z)
                Z = np.where(present, Z, 0.0)
                weight[own] += member @ present
            else:
                weight[own] += member.sum(axis=1)[:, None]
            z[own] += member @ Z
            if squares:
                zz[own] += member @ np.square(Z)
    return _CentredClassSums(weight, z, zz)


def class_totals(rows: Rows, k: int) -> Array:
    """Return Σ w x by class (k, d)."""
    return rows.sum(partial(_centred_sums, np.zeros((k, rows.n_features)), squares=False)).z


def class_moments(rows: Rows, k: int) -> PlainClassMoments:
    """Return the moments of every class and column: a pass for the means, then one for squares about them."""
    first = rows.sum(partial(_centred_sums, np.zeros((k, rows.n_features)), squares=False))
    mean = safe_ratio(first.z, first.weight)
    second = rows.sum(partial(_centred_sums, mean))
    delta = safe_ratio(second.z, second.weight)
    ssd = second.zz - second.weight * delta**2
    return PlainClassMoments(second.weight, mean, delta, _without_rounding(ssd, second.weight, mean + delta))


def _without_rounding(ssd: Array, weight: Array, mean: Array) -> Array:
    """Return sums of squares, 0 where they are what rounding leaves of equal rows: numbers differ by eps or more."""
    deviation = np.sqrt(np.maximum(safe_ratio(ssd, weight), 0.0))
    return np.where(deviation > 32 * np.finfo(np.float64).eps ** 1.5 * np.abs(mean), ssd, 0.0)


def counted_once(rows: Rows) -> Rows:
    """Return all rows, also those of weight 0, each with weight 1 and all in one class."""
    return rows.relabel(_one_class)


def _one_class(_y: Array | None, w: Array) -> tuple[Array, Array]:
    return np.zeros(len(w), np.int64), np.ones(len(w))


def _threshold_cells(t: float, k: int, block: Block) -> _CellWeights:
    mass = np.zeros((k, block.X.shape[1], 2))
    for X, y, w in _positive_rows(block):
        for c in np.unique(y):
            Z, v = X[y == c], w[y == c]
            mass[c] += np.stack([v @ (t >= Z), v @ (t < Z)], axis=-1)
    return _CellWeights(mass)


def threshold_counts(rows: Rows, k: int, t: float) -> Array:
    """Return the weights of x <= t and x > t by class (k, d, 2)."""
    return rows.sum(partial(_threshold_cells, t, k)).mass


def _category_cells(sizes: Array, k: int, block: Block) -> _CellWeights:
    first = np.concatenate([[0], np.cumsum(sizes + 1)])  # the last cell of a column is for unknown categories
    mass = np.zeros((k, first[-1]))
    for X, y, w in _positive_rows(block):
        for j, size in enumerate(sizes):
            x = X[:, j]
            present = ~np.isnan(x)
            known = (x >= 0) & (x < size)
            cell = np.where(known, np.floor(x), size)[present].astype(np.int64)
            np.add.at(mass, (y[present], first[j] + cell), w[present])
    return _CellWeights(mass)


def category_counts(rows: Rows, k: int, sizes: Array) -> list[Array]:
    """Return weights of categories by class, (k, categories + 1) for each column, unknown ones in the last cell."""
    mass = rows.sum(partial(_category_cells, np.asarray(sizes, np.int64), k)).mass
    return np.split(mass, np.cumsum(np.asarray(sizes) + 1)[:-1], axis=1)


def seen_categories(mass: list[Array]) -> Array:
    """Return one more than the largest category that has any weight (d,); `mass` are those of `category_counts`."""
    return np.array([max(np.flatnonzero(m[:, :-1].sum(axis=0)), default=-1) + 1 for m in mass], np.int64)


def largest_categories(rows: Rows) -> Array:
    """Return one more than the largest category of each column (d,), of all rows whatever their weight."""
    found = np.fmax.reduce(rows.each(_largest_entries), axis=0)
    return np.where(np.isnan(found), 0, np.floor(found) + 1).astype(np.int64)


def _largest_entries(block: Block) -> Array:
    return np.fmax.reduce(dense(block.X), axis=0, initial=-1.0)


def safe_ratio(a: Array, b: Array | float) -> Array:
    """Return a / b, and 0 where b is 0."""
    return np.divide(a, b, out=np.zeros(np.broadcast_shapes(np.shape(a), np.shape(b))), where=np.asarray(b) > 0)
