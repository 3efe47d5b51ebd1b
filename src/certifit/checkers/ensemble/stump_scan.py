"""The best of all stumps by plain sums: every threshold of every column, missing values on either side.

Columns are sorted once; a scan is a cumulative sum along each of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from certifit.rows import Array
from certifit.rows.threads import parallel_map


class SortedColumn(NamedTuple):
    """The order of a column's rows, missing values last."""

    order: Array  # (n,) int32
    after: Array  # (t,) so many rows have a value up to a threshold; all thresholds that part rows with values
    known: int  # rows with a value


class StumpScan:
    """All stumps on these rows: sums over the rows on either side of every threshold."""

    def __init__(self, X: Array) -> None:
        self.n = len(X)
        self.columns = parallel_map(_sort_column, [X[:, j] for j in range(X.shape[1])])

    def largest_sum(self, v: Array) -> float:
        """max over stumps of |Σ v| over the rows of one side, for numbers v (n,); over all rows too."""
        found = parallel_map(lambda column: _largest_along(column, v), self.columns)
        return max([abs(float(v.sum())), *found])

    def largest_leaf_edge(self, v: Array) -> float:
        """max over stumps with answers ±1 in each leaf, constants among them, of Σ v h."""
        total = float(v.sum())
        found = parallel_map(lambda column: _leaf_edge_along(column, v, total), self.columns)
        return max([abs(total), *found])

    def largest_purity(self, labels: Array, classes: int, w: Array) -> float:
        """max over stumps of Σ S²/W over both leaves, S the weight of each class; that of all rows together too."""
        sums = [np.where(labels == c, w, 0.0) for c in range(classes)]
        total = np.array([float(s.sum()) for s in sums])
        found = parallel_map(lambda column: _purity_along(column, sums, total), self.columns)
        return max([float((total**2).sum() / total.sum()), *found])


def _sort_column(x: Array) -> SortedColumn:
    # Sums are asked for between values only, so that rows of one value may come in any order.
    order = np.argsort(np.ascontiguousarray(x)).astype(np.int32)
    known = len(x) - int(np.isnan(x).sum())
    value = x[order[:known]]
    after = np.flatnonzero(value[1:] > value[:-1]) + 1
    if 0 < known < len(x):
        after = np.append(after, known)
    return SortedColumn(order, after, known)


def _sides(column: SortedColumn, v: Array) -> tuple[Array, float]:
    """The sums on the left of every threshold, without missing rows, and the sum over these."""
    along = np.cumsum(np.take(v, column.order))
    lost = float(along[-1] - (along[column.known - 1] if column.known else 0.0))
    return along[column.after - 1], lost


def _largest_along(column: SortedColumn, v: Array) -> float:
    if not len(column.after):
        return 0.0
    left, lost = _sides(column, v)
    total = v.sum()
    sums = [left, total - left]
    if column.known < len(v):
        sums += [left + lost, total - left - lost]
    return max(float(np.abs(s).max()) for s in sums)


def _leaf_edge_along(column: SortedColumn, v: Array, total: float) -> float:
    if not len(column.after):
        return 0.0
    left, lost = _sides(column, v)
    sides = (left, left + lost) if column.known < len(v) else (left,)
    return max(float((np.abs(side) + np.abs(total - side)).max()) for side in sides)


def _purity_along(column: SortedColumn, sums: list[Array], total: Array) -> float:
    """The largest Σ S²/W over both leaves; `sums` are the weights of rows (n,) in one class after another."""
    if not len(column.after):
        return 0.0
    parts = [_sides(column, one) for one in sums]
    best = 0.0
    for also_left in (False, True) if column.known < len(column.order) else (False,):
        weight, squares, others = (np.zeros(len(column.after)) for _ in range(3))
        for (left, lost), whole in zip(parts, total, strict=True):
            side = left + lost if also_left else left
            weight += side
            squares += side * side
            others += (whole - side) ** 2
        rest = float(total.sum()) - weight
        both = (weight > 0) & (rest > 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            score = squares / weight + others / rest
        best = max(best, float(score[both].max(initial=0.0)))
    return best
