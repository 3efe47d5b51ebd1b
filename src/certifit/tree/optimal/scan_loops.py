"""The compiled loops of best trees: histograms of rows by region and bin, and the best split of every region.

Statistics have the shape (regions, bins and missing, channels). Channels are the weights of the classes, or Σw, Σwy
and Σwy² of an amount. A candidate sends codes below `low` to the left and those from `high` on to the right; what lies
between is given away: it counts on no side.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from certifit.rows import Array


class ColumnCandidates(NamedTuple):
    """The candidates of one column."""

    low: Array  # (c,) int64
    high: Array  # (c,) int64
    missing_left: Array  # (c,) bool
    first: int  # the number of the first of them among those of all columns


@njit(cache=True, nogil=True)
def count_labels(region, codes, y, w, stats):
    """Add the weights of rows to the statistics of their region, bin and class."""
    for i in range(len(codes)):
        stats[region[i], codes[i], y[i]] += w[i]


@njit(cache=True, nogil=True)
def count_moments(region, codes, moments, stats):
    """Add the moments (n, 3) of rows to the statistics of their region and bin."""
    for i in range(len(codes)):
        r, c = region[i], codes[i]
        stats[r, c, 0] += moments[i, 0]
        stats[r, c, 1] += moments[i, 1]
        stats[r, c, 2] += moments[i, 2]


@njit(cache=True, nogil=True)
def fold_sides(stats, candidates, out):
    """Replace the bins (o, m + 1, k) by the sides of all candidates (o, 2c, k): left and right of one, of the next."""
    outer, m, channels = stats.shape[0], stats.shape[1] - 1, stats.shape[2]
    below = np.zeros((m + 1, channels))
    for o in range(outer):
        for b in range(m):
            for k in range(channels):
                below[b + 1, k] = below[b, k] + stats[o, b, k]
        for c in range(len(candidates.low)):
            low, high, left = candidates.low[c], candidates.high[c], candidates.missing_left[c]
            for k in range(channels):
                missing = stats[o, m, k]
                out[o, 2 * c, k] = below[low, k] + (missing if left else 0.0)
                out[o, 2 * c + 1, k] = below[m, k] - below[high, k] + (0.0 if left else missing)


@njit(cache=True, nogil=True)
def leaf_costs(stats, amounts, cost):
    """Fill in the cost of regions (r, k) as leaves: the weight beside the largest class, or the sum of squares."""
    for r in range(len(stats)):
        if amounts:
            w, s, q = stats[r, 0], stats[r, 1], stats[r, 2]
            cost[r] = max(q - s * s / w, 0.0) if w > 0 else 0.0
        else:
            total = largest = 0.0
            for k in range(stats.shape[1]):
                total += stats[r, k]
                largest = max(largest, stats[r, k])
            cost[r] = total - largest


@njit(cache=True, nogil=True)
def best_splits(stats, candidates, amounts, best, chosen):
    """Lower the best costs (r,) of regions by splits along one column, and note the candidate chosen.

    Of equal costs the first that was found stays.
    """
    regions, m, channels = stats.shape[0], stats.shape[1] - 1, stats.shape[2]
    count = len(candidates.low)
    sides, costs = np.zeros((1, 2 * count, channels)), np.zeros(2 * count)
    for r in range(regions):
        fold_sides(stats[r : r + 1], candidates, sides)
        leaf_costs(sides[0], amounts, costs)
        for c in range(count):
            cost = costs[2 * c] + costs[2 * c + 1]
            if cost < best[r]:
                best[r] = cost
                chosen[r] = candidates.first + c
