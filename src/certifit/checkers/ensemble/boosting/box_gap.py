"""How far an ensemble of trees of depth 2 is from the best sum of boxes of its size: the duality gap of boosting.

A box is the set of rows that satisfies at most two conditions, each a half-line of a column with missing values on
either side. A tree of depth 2 is a constant and a sum of boxes. The bound is that of `stump_gap`, with boxes in the
place of stumps: for slopes u that are balanced, no F = b + Σ βₕ h with Σ |βₕ| <= Λ has a smaller loss than
Σ w g(u) - Λ max over boxes of |Σ w u h|. The maximum is found from two-way tables of sums, over a grid of borders in
each column: all that the trees ask, and quantiles of the rows. What is proved is about sums of boxes on this grid.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from certifit.checkers.ensemble.boosting.plain_trees import PlainTrees
from certifit.checkers.ensemble.score_losses import PlainScoreLoss
from certifit.checkers.ensemble.stump_gap import StumpGap, dual_gap
from certifit.rows import Array


@dataclass(frozen=True)
class BoxTuning:
    """Borders of a column beside those of the trees, and entries that sums and two-way tables are made from."""

    borders: int = 31
    stump_entries: int = 5_000_000
    entries: int = 100_000_000
    pair: int = 20_000  # entries that take as long as the sums over a pair's borders


class Condition(NamedTuple):
    """x <= threshold, or x > threshold where `left` is false; missing values as said."""

    column: int
    threshold: float
    missing_left: bool
    left: bool

    def holds(self, X: Array) -> Array:
        x = X[:, self.column]
        goes_left = np.where(np.isnan(x), self.missing_left, x <= self.threshold)
        return goes_left if self.left else ~goes_left


ConditionBox = tuple[Condition, ...]


def is_shallow(trees: PlainTrees) -> bool:
    """Whether no tree is deeper than 2, and no question is about categories."""
    if np.diff(trees.first).max(initial=0) > 7:  # more nodes than such a tree has
        return False
    depth = np.zeros(len(trees.left), np.int64)
    for i in np.flatnonzero(trees.left >= 0):  # parents come first
        depth[trees.left[i]] = depth[trees.right[i]] = depth[i] + 1
    return bool(depth.max(initial=0) <= 2 and not (trees.kinds >= 0).any())


def is_quick(n: int, d: int, trees: PlainTrees) -> bool:
    """Whether the gap of shallow trees on so many rows and columns takes seconds."""
    tuning = BoxTuning()
    stumps = bool((np.diff(trees.first) <= 3).all())
    return n * d <= tuning.stump_entries and (stumps or (n + tuning.pair) * d * (d + 1) // 2 <= tuning.entries)


def boxes_of(trees: PlainTrees) -> dict[tuple[int, ConditionBox], float]:
    """Boxes and their coefficients, by score: trees up to constants; boxes that are the same are taken together."""
    found: dict[tuple[int, ConditionBox], float] = {}
    for t, root in enumerate(trees.first[:-1]):
        for box, height in _boxes_of_tree(trees, int(root)):
            key = (t % len(trees.baseline), box)
            found[key] = found.get(key, 0.0) + height
    return found


def _boxes_of_tree(trees: PlainTrees, root: int) -> list[tuple[ConditionBox, float]]:
    """One tree as a constant, a box for one side of its root, and one for a side of each child; or a box a leaf."""
    if trees.left[root] < 0:
        return []
    leaves: list[list[tuple[ConditionBox, float]]] = []
    for side, child in ((True, int(trees.left[root])), (False, int(trees.right[root]))):
        first = (_condition(trees, root, side),)
        if trees.left[child] < 0:
            leaves.append([(first, float(trees.value[child]))])
        else:
            ends = ((True, int(trees.left[child])), (False, int(trees.right[child])))
            leaves.append([((*first, _condition(trees, child, s)), float(trees.value[e])) for s, e in ends])
    values = [value for part in leaves for _, value in part]
    middle = float(np.median(values))
    apart = [(box, value - middle) for part in leaves for box, value in part]
    pairs = [(a, b) for a in range(len(leaves[0])) for b in range(len(leaves[1]))]
    a, b = min(pairs, key=lambda pair: abs(leaves[0][pair[0]][1] - leaves[1][pair[1]][1]))
    base, other = leaves[0][a][1], leaves[1][b][1]
    nested: list[tuple[ConditionBox, float]] = [((_condition(trees, root, True),), base - other)]
    nested += [(box, value - base) for i, (box, value) in enumerate(leaves[0]) if i != a]
    nested += [(box, value - other) for i, (box, value) in enumerate(leaves[1]) if i != b]
    return min(apart, nested, key=lambda boxes: sum(abs(height) for _, height in boxes))


def _condition(trees: PlainTrees, node: int, left: bool) -> Condition:
    return Condition(int(trees.column[node]), float(trees.threshold[node]), bool(trees.missing_left[node] != 0), left)


def box_size(trees: PlainTrees) -> float:
    """Λ = Σ |β| of all boxes."""
    return float(sum(map(abs, boxes_of(trees).values())))


def border_grid(X: Array, asked: list[Array], most: int) -> list[Array]:
    """Borders of each column: those that trees ask, and quantiles of its values; all of them where they are few."""
    grid = []
    for x, own in zip(X.T, asked, strict=True):
        values = np.unique(x[~np.isnan(x)])
        cuts = values[:-1]
        if len(cuts) > most:
            cuts = np.quantile(x[~np.isnan(x)], np.arange(1, most + 1) / (most + 1), method="lower")
        grid.append(np.unique(np.concatenate([cuts, own[np.isfinite(own)]])))
    return grid


def asked_borders(trees: PlainTrees, d: int) -> list[Array]:
    """The thresholds of the trees by column."""
    inner = trees.left >= 0
    return [np.unique(trees.threshold[inner & (trees.column == j)]) for j in range(d)]


def box_gap(X: Array, y: Array, w: Array, F: Array, size: float, loss: PlainScoreLoss, grid: list[Array]) -> StumpGap:
    """The gap of scores F (n,) or (n, k), made by boxes with Σ |β| = `size`, on rows X (n, d) with weights w > 0."""
    table = GridTable(X, grid)
    return dual_gap(y, w, F, size, loss, lambda v: max(table.largest_sum(column) for column in v.T))


class GridTable:
    """Rows as codes of their place among the borders of each column; missing values have the last."""

    def __init__(self, X: Array, grid: list[Array]) -> None:
        self.grid = grid
        self.codes = [
            np.where(np.isnan(x), len(g) + 1, np.searchsorted(g, x)) for x, g in zip(X.T, grid, strict=True)
        ]
        self.missing = [bool(np.isnan(x).any()) for x in X.T]

    def largest_sum(self, v: Array) -> float:
        """max over boxes of |Σ v| over their rows, for v (n,) that sums up to 0."""
        d, best = len(self.codes), 0.0
        for j in range(d):
            for k in range(j, d):
                best = max(best, float(np.abs(self.quadrants(v, j, k)).max(initial=0.0)))
        return best

    def quadrants(self, v: Array, j: int, k: int) -> Array:
        """Σ v over the boxes of two columns: (4, sides of j, sides of k), the four by which sides are turned."""
        rows, columns = len(self.grid[j]) + 2, len(self.grid[k]) + 2
        table: Array = (
            np.diag(np.bincount(self.codes[j], v, rows))
            if j == k
            else np.bincount(self.codes[j] * columns + self.codes[k], v, rows * columns).reshape(rows, columns)
        )
        low = _sides(_sides(table, self.missing[j]).T, self.missing[k]).T
        of_row = _sides(table, self.missing[j]).sum(axis=1)[:, None]
        of_column = _sides(table.sum(axis=0)[:, None], self.missing[k]).T
        return np.stack([low, of_row - low, of_column - low, table.sum() - of_row - of_column + low])


def _sides(table: Array, missing: bool) -> Array:
    """Sums over the rows of a table up to each border, the last row (missing values) beside them, or among them."""
    up_to = np.cumsum(table[:-1], axis=0)
    return np.concatenate([up_to, up_to + table[-1]]) if missing else up_to
