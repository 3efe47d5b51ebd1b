"""The compiled loops of exact trees: the best split of a node along presorted columns, and its rows put in two parts.

A node is a run [start, end) of every column's entries. What rows add up to are whole numbers (`target_sums`), so sums
are exact: mirrored splits tie to the last bit, and nothing depends on the order in which rows are added. Of equal
splits the one of the lowest column wins, then the one of the lowest threshold.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from certifit.rows import Array

QUADRATIC, LOGARITHMIC, POSITIVE = 0, 1, 2  # Σ S²/W; Σ S log(S/W); the same where every S must be above 0


class SortedTable(NamedTuple):
    """Every column's rows in the order of their values; `entries` are rearranged while a tree grows.

    An entry is the rank of a value among the column's distinct ones, and below it (32 bits) the number of its row: a
    node is read from its start to its end, where values looked up by row would be misses of the cache.
    """

    entries: Array  # (d, n) int64: rank << 32 | row; missing values have the rank after the last
    values: Array  # (v,) float64: the distinct values of one column after another, ascending
    first: Array  # (d + 1,) where those of each column begin
    labels: Array  # (n, t) int32: channels that a row's weight enters; t = 0 for amounts
    moments: Array  # (n, c) int64: what a row adds to each channel; c = 0 for classes
    weight: Array  # (n,) int64
    left: Array  # (n,) uint8: scratch, whether a row goes left
    monotone: Array  # (d,) int8: -1, 0 or 1


class SplitRules(NamedTuple):
    """What a split must satisfy, and how it is scored."""

    score: int  # QUADRATIC, LOGARITHMIC or POSITIVE
    channels: int
    leaf_rows: int  # fewest rows of a child
    leaf_weight: float  # least weight of a child, in the statistics' unit
    columns: int  # how many columns that vary are looked at; all of them if as many as there are
    random: bool  # thresholds drawn between a node's extremes instead of the best
    seed: int


class NodeToSplit(NamedTuple):
    """A node: its run of entries and what its rows add up to."""

    start: int
    end: int
    total: Array  # (c,) int64
    weight: int
    limits: Array  # (2,) values that monotone columns allow
    key: Any  # int64: random bits of this node


class Split(NamedTuple):
    """The best split of a node; `column` is -1 where there is none."""

    score: float
    column: int
    position: int  # number of the node's rows with a value that go left, in the column's order
    missing_left: bool
    met_missing: bool  # whether any of the node's rows lacks a value in the column
    threshold: float


@njit(cache=True, nogil=True)
def _mixed(a, b):
    """Return 64 random bits that depend on two numbers alone: SplitMix64's finaliser (Steele, Lea & Flood 2014)."""
    z = np.uint64(a) + np.uint64(0x9E3779B97F4A7C15) * (np.uint64(b) + np.uint64(1))
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


# Some are written into their callers: to hand a named tuple of arrays over for every row costs more than the sums.
@njit(cache=True, nogil=True, inline="always")
def side_score(score, sums, weight):
    """Return the score of one child: the larger, the purer."""
    found = 0.0
    if score == QUADRATIC:
        for c in range(len(sums)):
            s = float(sums[c])
            found += s * s
        return found / weight
    for c in range(len(sums)):
        s = float(sums[c])
        if s > 0:
            found += s * np.log(s / weight)
        elif score == POSITIVE:
            return -np.inf
    return found


@njit(cache=True, nogil=True, inline="always")
def _add_row(labels, moments, weight, r, sums):
    """Add a row's statistics to the sums of a child."""
    for t in range(labels.shape[1]):
        sums[labels[r, t]] += weight[r]
    for c in range(moments.shape[1]):
        sums[c] += moments[r, c]


@njit(cache=True, nogil=True, inline="always")
def _row_of(entry):
    return entry & 0xFFFFFFFF


@njit(cache=True, nogil=True, inline="always")
def _rank_of(entry):
    return entry >> 32


@njit(cache=True, nogil=True)
def node_sums(table, start, end, sums):
    """Fill in the sums over a node's rows and return their weight."""
    sums[:] = 0
    labels, moments, weights, entries = table.labels, table.moments, table.weight, table.entries[0]
    weight = 0
    for i in range(start, end):
        r = _row_of(entries[i])
        _add_row(labels, moments, weights, r, sums)
        weight += weights[r]
    return weight


@njit(cache=True, nogil=True)
def _threshold_between(low, high):
    """Return a number t with low <= t < high: the middle, or the lower value where the middle rounds to the upper."""
    middle = low / 2 + high / 2
    return middle if low <= middle < high else low


@njit(cache=True, nogil=True)
def _breaks_monotony(direction, rules, left, right, weights, limits):
    """Whether the children's values are in the wrong order, or beyond what ancestors' splits leave them."""
    # The value is the mean of an amount, or the share of the second of two classes.
    channel = rules.channels - 1
    a, b = left[channel] / weights[0], right[channel] / weights[1]
    if (a - b) * direction > 0:
        return True
    return not (limits[0] <= a <= limits[1] and limits[0] <= b <= limits[1])


@njit(cache=True, nogil=True)
def _best_along(table, rules, j, node):
    """Return the best split of a node along column j."""
    start, end, total, weight, limits = node.start, node.end, node.total, node.weight, node.limits
    entries, values = table.entries[j], table.values[table.first[j] : table.first[j + 1]]
    labels, moments, row_weights = table.labels, table.moments, table.weight
    score, leaf_rows, leaf_weight, drawing = rules.score, rules.leaf_rows, rules.leaf_weight, rules.random
    last = end  # one past the last row with a value
    while last > start and _rank_of(entries[last - 1]) == len(values):
        last -= 1
    none = Split(-np.inf, -1, 0, False, False, np.nan)
    if last == start or (last == end and _rank_of(entries[start]) == _rank_of(entries[last - 1])):
        return none
    best, position, missing_left, threshold = -np.inf, -1, False, np.nan
    left, right = np.zeros_like(total), np.zeros_like(total)
    weights = np.zeros(2)
    constrained = limits[0] > -np.inf or limits[1] < np.inf or table.monotone[j] != 0
    drawn = np.inf
    if rules.random:
        share = float(_mixed(_mixed(rules.seed, node.key), j) >> np.uint64(11)) / 2.0**53
        low, high = values[_rank_of(entries[start])], values[_rank_of(entries[last - 1])]
        drawn = low * (1 - share) + high * share
        drawn = low if not low <= drawn < high else drawn
    for side in range(2 if last < end else 1):  # missing rows go right, then left
        left[:] = 0
        w = 0
        if side == 1:
            for i in range(last, end):
                r = _row_of(entries[i])
                _add_row(labels, moments, row_weights, r, left)
                w += row_weights[r]
        for i in range(start, last):
            r, rank = _row_of(entries[i]), _rank_of(entries[i])
            _add_row(labels, moments, row_weights, r, left)
            w += row_weights[r]
            if i + 1 < last:
                above = _rank_of(entries[i + 1])
                if above == rank or (drawing and not values[rank] <= drawn < values[above]):
                    continue
            elif side == 1 or last == end:
                break
            count = i + 1 - start + (end - last if side == 1 else 0)
            if count < leaf_rows or end - start - count < leaf_rows:
                continue
            if w < leaf_weight or weight - w < leaf_weight:
                continue
            for c in range(len(total)):
                right[c] = total[c] - left[c]
            weights[0], weights[1] = float(w), float(weight - w)
            found = side_score(score, left, weights[0]) + side_score(score, right, weights[1])
            if found > best:
                if constrained and _breaks_monotony(table.monotone[j], rules, left, right, weights, limits):
                    continue
                best, position, missing_left = found, i + 1 - start, side == 1
                if i + 1 == last:  # only missing values go right
                    threshold = np.inf
                else:
                    threshold = drawn if drawing else _threshold_between(values[rank], values[above])
    return Split(best, j, position, missing_left, last < end, threshold) if position > 0 else none


@njit(cache=True, nogil=True)
def _varies(table, j, start, end):
    """Whether the node's rows differ in column j, missing ones from the others too."""
    return _rank_of(table.entries[j, start]) != _rank_of(table.entries[j, end - 1])


@njit(cache=True, nogil=True)
def columns_to_try(table, rules, node):
    """Return the columns that vary in a node; with fewer columns allowed, those whose random numbers are smallest."""
    d = len(table.entries)
    found = np.empty(d, np.int64)
    m = 0
    for j in range(d):
        if _varies(table, j, node.start, node.end):
            found[m] = j
            m += 1
    found = found[:m]
    if m <= rules.columns:
        return found
    keys = np.empty(m, np.uint64)
    for i in range(m):
        keys[i] = _mixed(_mixed(rules.seed, node.key) ^ np.uint64(0x5851F42D4C957F2D), found[i])
    return np.sort(found[np.argsort(keys)[: rules.columns]])


@njit(cache=True, nogil=True)
def best_split(table, rules, columns, node):
    """Return the best split of a node along any of these columns."""
    best = Split(-np.inf, -1, 0, False, False, np.nan)
    for j in columns:
        found = _best_along(table, rules, j, node)
        if found.score > best.score:
            best = found
    return best


@njit(cache=True, nogil=True)
def mark_sides(table, split, start, end):
    """Note which of a node's rows go left, and return how many."""
    j = split.column
    missing, count = table.first[j + 1] - table.first[j], 0
    for i in range(start, end):
        entry = table.entries[j, i]
        left = split.missing_left if _rank_of(entry) == missing else i - start < split.position
        table.left[_row_of(entry)] = left
        count += left
    return count


@njit(cache=True, nogil=True)
def part_rows(table, first, last, start, end):
    """Put the rows that go left before the others, in the order of each of the columns [first, last)."""
    kept = np.empty(end - start, np.int64)
    goes_left = table.left
    for j in range(first, last):
        entries = table.entries[j]
        at, others = start, 0
        # Written to both sides, and one counted: a branch would be guessed wrong for half of the rows.
        for i in range(start, end):
            entry = entries[i]
            left = goes_left[_row_of(entry)]
            entries[at] = entry
            kept[others] = entry
            at += left
            others += 1 - left
        entries[at:end] = kept[:others]
