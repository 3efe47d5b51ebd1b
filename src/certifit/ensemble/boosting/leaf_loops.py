"""The compiled loops over the rows of leaves: their sums, and scores moved by their values."""

from __future__ import annotations

import numpy as np

from certifit.numerics.compiling import called_from_python


@called_from_python
def add_leaf_sums(rows, runs, leaves, pairs, scales, sums):
    """Add gradients and Hessians of each leaf's rows, as whole numbers of fine units, which add up in any order.

    `runs` (m, 2) are this chunk's places of the nodes, `pairs` (2, n) are g and h, `sums` (leaves, 2).
    """
    for a in range(len(leaves)):
        G, H = np.int64(0), np.int64(0)
        for i in range(runs[leaves[a], 0], runs[leaves[a], 1]):
            r = rows[i]
            G += np.int64(np.rint(pairs[0, r] * scales[0]))
            H += np.int64(np.rint(pairs[1, r] * scales[1]))
        sums[a, 0] = G
        sums[a, 1] = H


@called_from_python
def move_scores(rows, runs, leaves, values, F):
    """Add to the score of each row the value of its leaf."""
    for a in range(len(leaves)):
        for i in range(runs[leaves[a], 0], runs[leaves[a], 1]):
            F[rows[i]] += values[a]


@called_from_python
def sort_by_leaf(codes, walk, span, places, rows, runs):
    """Put the numbers of a span of rows in the order of their leaves, and write where each leaf's begin and end.

    `walk` are the left and right children of the nodes, their columns, and where each code goes (m, 256); `runs` are
    (m, 2) and 0.
    """
    left, right, column, goes_left = walk
    for i in range(span[0], span[1]):
        k = 0
        while left[k] >= 0:
            k = left[k] if goes_left[k, codes[i, column[k]]] else right[k]
        places[i] = k
        runs[k, 1] += 1
    at = span[0]
    for k in range(len(left)):
        size = runs[k, 1]
        runs[k, 0], runs[k, 1] = at, at
        at += size
    for i in range(span[0], span[1]):
        k = places[i]
        rows[runs[k, 1]] = i
        runs[k, 1] += 1
