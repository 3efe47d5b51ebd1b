"""The compiled loop that asks every question of small trees, of many rows at a time, instead of walking down.

A tree of at most 64 leaves has a bit for each, from left to right. A row begins with all bits set, and every node
that sends it to the right clears those of its left branch. The lowest bit that stays is the row's leaf: where its way
turns right, all leaves further left lose their bits, and its own leaf is in no branch that is cleared (Lucchese et
al. 2015, "QuickScorer"). No step waits for another, and several rows take one instruction.
"""

from __future__ import annotations

import numpy as np

from certifit.numerics.compiled.compiling import called_by_loops, called_from_python

# Marks of a node: missing values go left; the threshold is the number of a set of categories.
MISSING_LEFT, BY_SET = np.uint8(1), np.uint8(2)
RUN = 128  # rows side by side, whose values stay in the cache
ALL, ONE = np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64(1)


@called_by_loops
def _turn_columns(X, start, columns):
    """Write a run of rows column by column (d, RUN), and return whether values are missing."""
    lost = False
    for i in range(min(RUN, len(X) - start)):
        for j in range(X.shape[1]):
            x = float(X[start + i, j])
            columns[j, i] = x
            lost = lost or x != x
    return lost


@called_by_loops
def _clear_bits(masks, t, columns, alive):
    """Ask the questions of tree t of rows without missing values, four at a time."""
    column, threshold, mask = masks.column, masks.threshold, masks.mask
    first, last = masks.first[t], masks.first[t + 1]
    fours = first + (last - first) // 4 * 4
    for k in range(first, fours, 4):
        x0, x1, x2, x3 = columns[column[k]], columns[column[k + 1]], columns[column[k + 2]], columns[column[k + 3]]
        t0, t1, t2, t3 = threshold[k], threshold[k + 1], threshold[k + 2], threshold[k + 3]
        m0, m1, m2, m3 = mask[k], mask[k + 1], mask[k + 2], mask[k + 3]
        for i in range(RUN):
            two = (m0 if x0[i] > t0 else ALL) & (m1 if x1[i] > t1 else ALL)
            alive[i] &= two & (m2 if x2[i] > t2 else ALL) & (m3 if x3[i] > t3 else ALL)
    for k in range(fours, last):
        x4, t4, m4 = columns[column[k]], threshold[k], mask[k]
        for i in range(RUN):
            alive[i] &= m4 if x4[i] > t4 else ALL


@called_by_loops
def _clear_bits_one_by_one(masks, t, columns, alive):
    """Ask the questions of tree t where values may be missing, or categories are asked for."""
    for k in range(masks.first[t], masks.first[t + 1]):
        x, threshold, mask, mark = columns[masks.column[k]], masks.threshold[k], masks.mask[k], masks.mark[k]
        missing_right = mark & MISSING_LEFT == 0
        for i in range(len(alive)):
            right = x[i] > threshold
            if x[i] != x[i]:
                right = missing_right
            elif mark & BY_SET:
                right = masks.sets[np.int64(threshold), np.int64(x[i])] == 0
            if right:
                alive[i] &= mask


@called_from_python
def add_masked_scores(X, masks, value, span, out):
    """Add the values (m,) of the leaves that rows reach in the trees [first, last): tree t to column t mod k."""
    columns, bits = np.zeros((X.shape[1], RUN)), np.empty(RUN, np.uint64)
    k, by_set = out.shape[1], len(masks.sets) > 0
    for start in range(0, len(X), RUN):
        rows = min(RUN, len(X) - start)
        lost = _turn_columns(X, start, columns)
        for t in range(span[0], span[1]):
            bits[:] = ALL
            if lost or by_set:
                _clear_bits_one_by_one(masks, t, columns, bits[:rows])
            else:
                _clear_bits(masks, t, columns, bits)
            first, score = masks.first_leaf[t], t % k
            for i in range(rows):
                # The exponent of the lowest bit, as a number, is its place.
                lowest = np.float64(bits[i] & (~bits[i] + ONE))
                place = (lowest.view(np.int64) >> 52) - 1023
                out[start + i, score] += value[masks.leaves[first + place]]
