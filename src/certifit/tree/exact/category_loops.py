"""The compiled loop that puts the categories of a node in order, so that they are split as numbers are.

Of two classes, or of one amount, the best of all 2^g ways to part g categories lies along the order of their means
(Fisher 1958; Breiman et al. 1984, theorem 4.5). Of several classes or targets, the order by each of them is tried.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from certifit.numerics.compiled.compiling import called_by_loops
from certifit.numerics.compiled.random_bits import random_bits
from certifit.rows import Array
from certifit.tree.exact.entries import _rank_of, _row_of


class CategoryOrders(NamedTuple):
    """Which columns hold categories, and the channels by whose means these are put in order."""

    columns: Array  # (d,) bool
    channels: Array  # (c,) int64


@called_by_loops
def _arrange_categories(table, rules, node, j, channel):
    """Put a node's entries of column j in the order of their categories' means in a channel, missing ones last.

    Equal means keep the order of the categories. A random splitter puts categories in a random order.
    """
    entries, start = table.entries[j], node.start
    missing, last = table.first[j + 1] - table.first[j], node.end
    while last > start and _rank_of(entries[last - 1]) == missing:
        last -= 1
    begin = np.empty(last - start + 1, np.int64)
    mean, rank = np.empty(last - start), np.empty(last - start, np.int64)
    g, i = 0, start
    while i < last:
        begin[g], rank[g] = i, _rank_of(entries[i])
        weight = total = 0
        while i < last and _rank_of(entries[i]) == rank[g]:
            r = _row_of(entries[i])
            weight += table.weight[r]
            for t in range(table.labels.shape[1]):
                if table.labels[r, t] == channel:
                    total += table.weight[r]
            if table.moments.shape[1] > 0:
                total += table.moments[r, channel]
            i += 1
        mean[g] = total / weight
        if rules.random:
            mean[g] = float(random_bits(random_bits(rules.seed, node.key), rank[g]) >> np.uint64(11))
        g += 1
    begin[g] = last
    order = np.argsort(rank[:g])
    order = order[np.argsort(mean[:g][order], kind="mergesort")]
    kept = entries[start:last].copy()
    at = start
    for k in order:
        for i in range(begin[k] - start, begin[k + 1] - start):
            entries[at] = kept[i]
            at += 1
    return g
