"""The compiled loops of best trees: histograms of rows by bin and region, and the best split of every region.

Where splits are compared, statistics have the shape (bins and missing, channels, regions): regions come last, so that
the loops over them are done several at a time. Channels are the weights of the classes, or Σw, Σwy and Σwy² of an
amount. A candidate sends codes below `low` to the left and those from `high` on to the right; what lies between is
given away: it counts on no side.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from certifit.numerics.compiled.compiling import TwinTuning, called_by_loops, called_from_python, twin_of
from certifit.numerics.compiled.whole_arrays import binary_logarithms
from certifit.rows import Array

# What a leaf costs: the weight beside the largest class; the sum of squares; the weight times its impurity
MISCLASSIFIED, SQUARES, GINI, ENTROPY = 0, 1, 2, 3


# Thousands of calls are to be compiled, some hundred are not. Histograms are large where the rows in them are few.
FEW = TwinTuning(most_entries=1_000_000, seconds=0.1)
SPLITS = TwinTuning(most_entries=1_000_000)
AT_ONCE = 2**15  # numbers of a side of several candidates, which the cache holds


class ColumnCandidates(NamedTuple):
    """The candidates of one column."""

    low: Array  # (c,) int64
    high: Array  # (c,) int64
    missing_left: Array  # (c,) bool
    first: int  # the number of the first of them among those of all columns


@called_by_loops
def _place_values(x, keys, place):
    """Find how many of the keys (m,), ascending, lie below each value."""
    for i in range(len(x)):
        place[i] = 0
    if len(keys) < 64:
        # To compare with all of few keys takes several values at a time; halves would be guessed wrong.
        for key in keys:
            for i in range(len(x)):
                place[i] += np.int64(key < x[i])
        return
    for i in range(len(x)):
        step = (len(keys) + 1) >> 1
        while step > 0:
            place[i] += step * (keys[place[i] + step - 1] < x[i])
            step >>= 1


@called_from_python
def code_columns(X, keys, bins, codes, ranges):
    """Fill in the codes (d, n) of rows X (n, d), and widen the ranges (2, d, bins) of the bins to their values.

    `keys` (d, 2ᵐ - 1) are borders, ascending, and +inf behind the last; missing values get the number `bins` (d,).
    """
    some, places = np.empty(256), np.empty(256, np.int64)
    for start in range(0, X.shape[0], 256):
        stop = min(start + 256, X.shape[0])
        x, place = some[: stop - start], places[: stop - start]
        for j in range(X.shape[1]):
            for i in range(len(x)):
                x[i] = float(X[start + i, j])
            _place_values(x, keys[j], place)
            low, high = ranges[0, j], ranges[1, j]
            for i in range(len(x)):
                at = place[i]
                if x[i] < low[at]:
                    low[at] = x[i]
                if x[i] > high[at]:
                    high[at] = x[i]
                codes[j, start + i] = bins[j] if np.isnan(x[i]) else at


@twin_of(code_columns)
def _code_columns_of_arrays(X, keys, bins, codes, ranges):
    for j in range(X.shape[1]):
        x = X[:, j].astype(np.float64)
        missing = np.isnan(x)
        place = np.where(missing, 0, np.searchsorted(keys[j], x, side="left"))
        np.fmin.at(ranges[0, j], place, x)
        np.fmax.at(ranges[1, j], place, x)
        codes[j] = np.where(missing, bins[j], place)


@called_from_python
def count_labels(region, codes, y, w, stats):
    """Add the weights of rows to those of their region, bin and class (regions, bins and missing, channels)."""
    for i in range(len(codes)):
        stats[region[i], codes[i], y[i]] += w[i]


@twin_of(count_labels, FEW)
def _count_labels_of_arrays(region, codes, y, w, stats):
    np.add.at(stats, (region, codes, y), w)


@called_from_python
def count_moments(region, codes, away, w, stats):
    """Add weights of rows, and these times the first and second power of `away`, to those of their region and bin."""
    for i in range(len(codes)):
        r, c = region[i], codes[i]
        stats[r, c, 0] += w[i]
        stats[r, c, 1] += w[i] * away[i]
        stats[r, c, 2] += w[i] * (away[i] * away[i])


@twin_of(count_moments, FEW)
def _count_moments_of_arrays(region, codes, away, w, stats):
    np.add.at(stats, (region, codes), np.column_stack([w, w * away, w * away**2]))


@called_by_loops
def _impurity_costs(stats, kind, cost):
    """Add the weights of regions (k, r) times their Gini impurities or entropies."""
    for r in range(stats.shape[1]):
        weight = 0.0
        for k in range(stats.shape[0]):
            weight += stats[k, r]
        if weight <= 0.0:
            continue
        found = weight if kind == GINI else 0.0
        for k in range(stats.shape[0]):
            s = stats[k, r]
            if kind == GINI:
                found -= s * s / weight
            elif s > 0.0:
                found -= s * np.log2(s / weight)
        cost[r] += found


@called_from_python
def leaf_costs(stats, kind, least, cost, scratch):
    """Add the costs of regions (k, r) as leaves; inf where their weight is less than the least allowed.

    `scratch` is (2, r): arrays that a loop makes itself take long to compile.
    """
    regions = stats.shape[1]
    if kind == SQUARES:
        for r in range(regions):
            w, s = stats[0, r], stats[1, r]
            if w < least:
                cost[r] = np.inf
            left = stats[2, r] - s * s / (w if w > 0.0 else 1.0)
            cost[r] += left if left > 0.0 and w > 0.0 else 0.0
        return
    if kind != MISCLASSIFIED:
        _impurity_costs(stats, kind, cost)
        return
    largest, total = scratch[0], scratch[1]
    for r in range(regions):
        largest[r] = total[r] = 0.0
    for k in range(stats.shape[0]):
        for r in range(regions):
            v = stats[k, r]
            total[r] += v
            largest[r] = v if v > largest[r] else largest[r]
    for r in range(regions):
        cost[r] += total[r] - largest[r] if total[r] >= least else np.inf


@twin_of(leaf_costs, FEW)
def _leaf_costs_of_arrays(stats, kind, least, cost, _=None):
    if kind == SQUARES:
        w, s = stats[0], stats[1]
        left = stats[2] - s * s / np.where(w > 0.0, w, 1.0)
        cost[w < least] = np.inf
        cost += np.where((left > 0.0) & (w > 0.0), left, 0.0)
        return
    total = np.zeros(stats.shape[1:])
    for s in stats:
        total += s
    if kind == MISCLASSIFIED:
        cost += np.where(total >= least, total - np.maximum(stats.max(axis=0), 0.0), np.inf)
        return
    full = total > 0.0
    found = total[full] if kind == GINI else np.zeros(full.sum())
    for s in stats[:, full]:
        if kind == GINI:
            found = found - s * s / total[full]
        else:
            there = s > 0.0
            found[there] -= s[there] * binary_logarithms(s[there] / total[full][there])
    cost[full] += found


@called_from_python
def best_splits(below, missing, candidates, rules, best, chosen, scratch):
    """Lower the best costs (r,) of regions by splits along one column, and note the candidate chosen.

    `below` (m + 1, k, r) are the statistics of the codes below each, `missing` (k, r) those of missing values,
    `rules` what a leaf costs and its least weight, `scratch` is (k + 3, r). Of equal costs the first that was found
    stays.
    """
    m, channels, regions = below.shape[0] - 1, below.shape[1], below.shape[2]
    side, cost = scratch[:channels], scratch[channels]
    kind, least = rules
    for c in range(len(candidates.low)):
        low, high = candidates.low[c], candidates.high[c]
        to_left = 1.0 if candidates.missing_left[c] else 0.0
        for r in range(regions):
            cost[r] = 0.0
        for k in range(channels):
            for r in range(regions):
                side[k, r] = below[low, k, r] + to_left * missing[k, r]
        leaf_costs(side, kind, least, cost, scratch[channels + 1 :])
        for k in range(channels):
            for r in range(regions):
                side[k, r] = below[m, k, r] - below[high, k, r] + (1.0 - to_left) * missing[k, r]
        leaf_costs(side, kind, least, cost, scratch[channels + 1 :])
        number = candidates.first + c
        for r in range(regions):
            better = cost[r] < best[r]
            chosen[r] = number if better else chosen[r]
            best[r] = cost[r] if better else best[r]


@twin_of(best_splits, SPLITS)
def _best_splits_of_arrays(below, missing, candidates, rules, best, chosen, _):
    kind, least = rules
    step = max(1, AT_ONCE // missing.size)
    for first in range(0, len(candidates.low), step):
        some = slice(first, first + step)
        to_left = candidates.missing_left[some, None, None].astype(np.float64)
        left = below[candidates.low[some]] + to_left * missing
        right = below[-1] - below[candidates.high[some]] + (1.0 - to_left) * missing
        cost = np.zeros((len(left), below.shape[2]))
        for side in (left, right):
            _leaf_costs_of_arrays(side.transpose(1, 0, 2), kind, least, cost)
        lowest = cost.argmin(axis=0)  # the first of equal costs
        found = cost[lowest, np.arange(len(best))]
        better = found < best
        chosen[better] = candidates.first + first + lowest[better]
        best[better] = found[better]
