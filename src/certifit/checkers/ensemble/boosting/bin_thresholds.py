"""Whether thresholds of a boosting on binned columns are the borders of bins that its rule asks for.

Borders lie midway between neighbouring values of a column, and of the borders that split a node's rows alike the
lowest is taken. New rows may lie between these: where they go depends on the threshold itself.
"""

from __future__ import annotations

import numpy as np

from certifit.checkers.ensemble.boosting.plain_trees import PlainTrees
from certifit.core import Check
from certifit.rows import Array


def border_check(trees: PlainTrees, X: Array, grown_on: Array | None, most_bins: int) -> Check:
    """Count thresholds that are no such border; `X` (n, d) are coded rows with a weight.

    `grown_on` (n,) marks the rows that splits were chosen on, None where that is not known: then the lowest border is
    not asked for. Nor is it in columns with more values than bins, whose borders are some of the middles.
    """
    values = [np.unique(x[~np.isnan(x)]) for x in X.T]
    below = np.full(len(trees.left), np.nan)
    if grown_on is not None:
        few = np.array([len(value) <= most_bins for value in values])
        below = np.where(few[trees.column], _largest_on_the_left(trees, X[grown_on]), np.nan)
    asks = (trees.left >= 0) & (trees.kinds < 0) & (trees.threshold < np.inf)
    strange = 0
    for j in np.unique(trees.column[asks]):
        nodes = np.flatnonzero(asks & (trees.column == j))
        known = np.isfinite(below[nodes])
        place = np.searchsorted(values[j], np.where(known, below[nodes], trees.threshold[nodes]), side="right")
        between = (place > 0) & (place < len(values[j]))
        low, high = (values[j][np.clip(place - k, 0, len(values[j]) - 1)] for k in (1, 0))
        middle = low / 2 + high / 2
        wanted = np.where((low <= middle) & (middle < high), middle, low)
        strange += int((~between | (trees.threshold[nodes] != wanted)).sum())
    return Check("thresholds that are not the lowest border between their node's rows", float(strange), 0.0)


def _largest_on_the_left(trees: PlainTrees, X: Array) -> Array:
    """The largest value that goes left at each node (m,), of the column that it asks; -inf where none does."""
    found, n = np.full(len(trees.left), -np.inf), len(X)
    for root in trees.first[:-1]:
        row, node = np.arange(n), np.full(n, root)
        while len(row := row[inner := trees.left[node] >= 0]):
            node = node[inner]
            x = X[row, trees.column[node]]
            goes_left = np.where(np.isnan(x), trees.missing_left[node] != 0, x <= trees.threshold[node])
            kind = trees.kinds[node]
            sets = (kind >= 0) & ~np.isnan(x)
            goes_left[sets] = trees.sides[kind[sets], x[sets].astype(np.int64)] != 0
            seen = goes_left & ~np.isnan(x)
            np.maximum.at(found, node[seen], x[seen])
            node = np.where(goes_left, trees.left[node], trees.right[node])
    return found
