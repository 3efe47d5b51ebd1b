"""The compiled loops over the rows of leaves: their sums, and scores moved by their values."""

from __future__ import annotations

import numpy as np

from certifit.numerics.compiled.compiling import called_from_python, twin_of


@called_from_python
def add_leaf_sums(rows, runs, leaves, pairs, scales, sums):
    """Add gradients and Hessians of each leaf's rows, as whole numbers of fine units, which add up in any order.

    `runs` (m, 2) are this chunk's places of the nodes, `pairs` (2, n) are g and h. What a unit cannot tell apart is
    added in units of 2⁻³¹ of it: rows with equal gradients are all off by the same, which would add up. `sums` are
    (2, leaves, 2): of units and of parts of them, g and h.
    """
    for a in range(len(leaves)):
        for c in range(2):
            units, parts = np.int64(0), np.int64(0)
            for i in range(runs[leaves[a], 0], runs[leaves[a], 1]):
                x = pairs[c, rows[i]] * scales[c]
                whole = np.rint(x)
                units += np.int64(whole)
                parts += np.int64(np.rint((x - whole) * 2147483648.0))
            sums[0, a, c] = units
            sums[1, a, c] = parts


@twin_of(add_leaf_sums)
def _add_leaf_sums_of_arrays(rows, runs, leaves, pairs, scales, sums):
    if not len(leaves):
        return
    first, last = runs[leaves, 0], runs[leaves, 1]
    start = first.min()
    x = pairs[:, rows[start : last.max()]] * np.asarray(scales)[:, None]
    whole = np.rint(x)
    for k, found in enumerate((whole, np.rint((x - whole) * 2147483648.0))):
        # Whole numbers up to a place, less those up to another: exact.
        up_to = np.zeros((2, x.shape[1] + 1), np.int64)
        np.cumsum(found.astype(np.int64), axis=1, out=up_to[:, 1:])
        sums[k, : len(leaves)] = (up_to[:, last - start] - up_to[:, first - start]).T


@called_from_python
def move_scores(rows, runs, leaves, values, F):
    """Add to the score of each row the value of its leaf."""
    for a in range(len(leaves)):
        for i in range(runs[leaves[a], 0], runs[leaves[a], 1]):
            F[rows[i]] += values[a]


@twin_of(move_scores)
def _move_scores_of_arrays(rows, runs, leaves, values, F):
    for leaf, value in zip(leaves, values, strict=True):
        F[rows[runs[leaf, 0] : runs[leaf, 1]]] += value


@called_from_python
def sort_by_leaf(codes, walk, span, places, rows, runs):
    """Put the numbers of a span of rows in the order of their leaves, and write where each leaf's begin and end.

    `walk` are the left and right children of the nodes, their columns, and where each code goes (m, 256); `span` are
    the first row of `codes`, one past the last, and the number of the first of all; `runs` are (m, 2) and 0.
    """
    left, right, column, goes_left = walk
    first, last, offset = span
    for i in range(first, last):
        k = 0
        while left[k] >= 0:
            k = left[k] if goes_left[k, codes[i, column[k]]] else right[k]
        places[offset + i] = k
        runs[k, 1] += 1
    at = offset + first
    for k in range(len(left)):
        size = runs[k, 1]
        runs[k, 0], runs[k, 1] = at, at
        at += size
    for i in range(offset + first, offset + last):
        k = places[i]
        rows[runs[k, 1]] = i
        runs[k, 1] += 1
