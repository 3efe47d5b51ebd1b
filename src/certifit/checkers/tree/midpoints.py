"""Whether thresholds lie where the rule puts them: for exact trees in the middle between a node's nearest rows.

Rows that a tree has not seen may lie between these: where they go depends on the threshold itself, not only on the
two sides that it makes of the node's rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from certifit.checkers.ensemble.forest.drawn_splits import drawn_borders
from certifit.checkers.ensemble.forest.plain_bootstrap import mixed, node_keys, share_of
from certifit.checkers.tree.plain_tree import PlainTree
from certifit.rows import Array, Block

DRAWN_ELSEWHERE = "thresholds that are not those that random_state draws"
STRANGE = "thresholds that are not in the middle between a node's nearest rows"


def strange_thresholds(tree: PlainTree, X: Array) -> int:
    """How many thresholds are not in the middle between the rows X (n, d) of their node that are nearest to them.

    Where the middle rounds to the upper value it is the lower one, and where only missing values go right infinity.
    Sets of categories have none. Trees that round values may have the middle of these or of the values themselves.
    """
    below, above = _nearest_values(tree, X.astype(tree.dtype).astype(np.float64))
    ends = np.isinf(above)
    with np.errstate(invalid="ignore"):
        middle = below / 2 + np.where(ends, below, above) / 2
    wanted = np.where(ends, np.inf, np.where((below <= middle) & (middle < above), middle, below))
    asks = tree.left >= 0
    if tree.categories is not None:
        asks = asks & (tree.categories.chosen < 0)
    strange = tree.threshold != wanted
    if tree.dtype != np.float64:
        here = np.isfinite(wanted) & np.isfinite(tree.threshold)
        slack = np.finfo(tree.dtype).eps * np.maximum(np.abs(below), np.abs(above))
        strange[here] = np.abs(tree.threshold - wanted)[here] > slack[here]
    return int(strange[asks].sum())


def _nearest_values(tree: PlainTree, X: Array) -> tuple[Array, Array]:
    """The largest value that goes left at each node, and the smallest that goes right (m,); infinite where none."""
    m = len(tree.left)
    below, above = np.full(m, -np.inf), np.full(m, np.inf)
    for rows, node in tree.levels(Block(X, None, np.ones(len(X)), 0)):
        asked = tree.left[node] >= 0
        node, x = node[asked], X[rows[asked], tree.column[node[asked]]]
        left, known = x <= tree.threshold[node], ~np.isnan(x)
        np.maximum.at(below, node[left & known], x[left & known])
        np.minimum.at(above, node[~left & known], x[~left & known])
    return below, above


def drawn_elsewhere(tree: PlainTree, X: Array, seed: int) -> int:
    """How many thresholds are not those that a random splitter with this seed draws between a node's extremes.

    Sets of categories, and splits of missing values from all others, have none.
    """
    low, high = _extreme_values(tree, X)
    asks = (tree.left >= 0) & np.isfinite(tree.threshold) & (low < high)
    low, high = low[asks], high[asks]
    keys = node_keys(tree.left, tree.right, seed, 0)[asks]
    share = share_of(mixed(mixed(seed, keys), tree.column[asks]))
    drawn = low * (1 - share) + high * share
    wanted = np.where((low <= drawn) & (drawn < high), drawn, low)
    return int((tree.threshold[asks] != wanted).sum())


def drawn_borders_elsewhere(tree: PlainTree, X: Array, borders: Sequence[Array], seed: int) -> int:
    """The same of trees whose thresholds are borders of bins."""
    low, high = _extreme_values(tree, X)
    asks, found = (tree.left >= 0) & np.isfinite(tree.threshold) & (low < high), 0
    keys = node_keys(tree.left, tree.right, seed, X.shape[1])
    for j in np.unique(tree.column[asks]):
        nodes = np.flatnonzero(asks & (tree.column == j))
        first, last = (np.searchsorted(borders[j], ends[nodes], side="left") for ends in (low, high))
        nodes, first, last = (part[first < last] for part in (nodes, first, last))
        found += int(
            (tree.threshold[nodes] != borders[j][drawn_borders(borders[j], keys[nodes], j, first, last)]).sum()
        )
    return found


def _extreme_values(tree: PlainTree, X: Array) -> tuple[Array, Array]:
    """The smallest and the largest value, at each node, of the column that it asks (m,)."""
    m = len(tree.left)
    low, high = np.full(m, np.inf), np.full(m, -np.inf)
    for rows, node in tree.levels(Block(X, None, np.ones(len(X)), 0)):
        asked = tree.left[node] >= 0
        node, x = node[asked], X[rows[asked], tree.column[node[asked]]]
        known = ~np.isnan(x)
        np.minimum.at(low, node[known], x[known])
        np.maximum.at(high, node[known], x[known])
    return low, high


def off_middle_borders(tree: PlainTree, X: Array, borders: Sequence[Array]) -> int:
    """How many thresholds are not the middle one of the borders (bins - 1,) of their column that split X alike.

    Of an even number it is the lower middle.
    """
    below, above = _nearest_values(tree, X)
    asks = (tree.left >= 0) & np.isfinite(below) & np.isfinite(above)
    found = 0
    for j in np.unique(tree.column[asks]):
        nodes = np.flatnonzero(asks & (tree.column == j))
        low, high = (np.searchsorted(borders[j], ends[nodes], side="left") for ends in (below, above))
        found += int((tree.threshold[nodes] != borders[j][np.maximum(low + high - 1, 0) // 2]).sum())
    return found


def thresholds_off_middle(tree: PlainTree, X: Array, borders: Sequence[Array]) -> int:
    """How many thresholds are not midway between two neighbouring values of their column that a border parts.

    The values are those of all rows X (n, d), and borders (bins - 1,) those of every column's bins.
    """
    asks, found = (tree.left >= 0) & (tree.threshold < np.inf), 0
    for j in np.unique(tree.column[asks]):
        value = np.unique(X[~np.isnan(X[:, j]), j])
        threshold = tree.threshold[asks & (tree.column == j)]
        place = np.searchsorted(value, threshold, side="right")
        within = (place > 0) & (place < len(value))
        low, high = value[np.maximum(place - 1, 0)], value[np.minimum(place, len(value) - 1)]
        middle = low / 2 + high / 2
        wanted = np.where((low <= middle) & (middle < high), middle, low)
        border = np.append(borders[j], np.inf)[np.searchsorted(borders[j], low, side="left")]
        found += int((~within | (threshold != wanted) | (border >= high)).sum())
    return found
