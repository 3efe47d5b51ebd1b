"""The compiled loops of splits by absolute error: weighted medians of every prefix of a node's rows.

The rows of a node are numbered in the order of their targets; two Fenwick trees over these numbers hold the weights
and the sums of the rows on one side. A row enters, and the median is found, in O(log n) steps (Fenwick 1994).
With the median m, Σ w |y - m| = Σ w y - 2 Σ_{y <= m} w y + m (2 Σ_{y <= m} w - Σ w): whole numbers where weights are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from certifit.numerics.compiled.compiling import called_by_loops_uncounted, written_into_loops_uncounted
from certifit.numerics.compiled.random_bits import random_bits
from certifit.rows import Array
from certifit.tree.exact.entries import Split, _rank_of, _row_of, _threshold_between


class MedianTable(NamedTuple):
    """Targets in order; rows of a node are ranked in its own run of the last two, while a tree grows."""

    keys: Array  # (t, n) int64: place of a row's target among all, and its row in the lower 32 bits
    amounts: Array  # (t, n) targets in the unit of the moments: whole numbers where weights are, else float64
    place: Array  # (t, n) int64: scratch, place of a row's target among those of its node
    rows: Array  # (t, n) int64: scratch, a node's rows in the order of their targets


@written_into_loops_uncounted
def sorted_keys(keys, spare, n):
    """Return the first n keys int64 ascending, by merging runs; they are in one of the two lists, the other is lost.

    To compile NumPy's own sorts takes seconds.
    """
    run = 1
    while run < n:
        for start in range(0, n, 2 * run):
            i, middle = start, min(start + run, n)
            j, end = middle, min(start + 2 * run, n)
            for k in range(start, end):
                if j == end or (i < middle and keys[i] < keys[j]):
                    spare[k] = keys[i]
                    i += 1
                else:
                    spare[k] = keys[j]
                    j += 1
        keys, spare, run = spare, keys, 2 * run
    return keys


@called_by_loops_uncounted
def _rank_targets(table, medians, start, end, room):
    """Number the rows of a node in the order of their targets."""
    for t in range(len(medians.keys)):
        keys = room.kept[0]
        for i in range(start, end):
            keys[i - start] = medians.keys[t, _row_of(table.entries[0, i])]
        keys = sorted_keys(keys, room.kept[1], end - start)
        for i in range(end - start):
            r = _row_of(keys[i])
            medians.place[t, r] = i
            medians.rows[t, start + i] = r


@called_by_loops_uncounted
def _median_score(table, medians, start, end):
    """Return the score of a node whose targets are ranked: minus the sum of absolute errors from the median."""
    found = 0.0
    for t in range(len(medians.keys)):
        weight = total = 0
        for i in range(start, end):
            r = medians.rows[t, i]
            weight += table.weight[r]
            total += table.moments[r, t]
        below = below_sum = 0
        for i in range(start, end):
            r = medians.rows[t, i]
            below += table.weight[r]
            below_sum += table.moments[r, t]
            if 2 * below >= weight:
                found -= float(total - 2 * below_sum + medians.amounts[t, r] * (2 * below - weight))
                break
    return found


@called_by_loops_uncounted
def _median_of(table, medians, start, end, room):
    """Return the median of a node's first target, in the unit of the amounts; the targets need not be ranked."""
    _rank_targets(table, medians, start, end, room)
    weight = 0
    for i in range(start, end):
        weight += table.weight[medians.rows[0, i]]
    below = 0
    for i in range(start, end):
        r = medians.rows[0, i]
        below += table.weight[r]
        if 2 * below == weight:
            return (float(medians.amounts[0, r]) + float(medians.amounts[0, medians.rows[0, i + 1]])) / 2
        if 2 * below > weight:
            return float(medians.amounts[0, r])
    return 0.0


@written_into_loops_uncounted
def _enter(sums, m, place, weight, moment):
    """Add a row to both Fenwick trees of m rows."""
    k = place + 1
    while k <= m:
        sums[0, k] += weight
        sums[1, k] += moment
        k += k & -k


@called_by_loops_uncounted
def _half_place(sums, m, weight):
    """Return the first place up to which rows have half of the weight, and the sums before it."""
    step = 1
    while 2 * step <= m:
        step *= 2
    at = below = below_sum = 0
    while step > 0:
        k = at + step
        if k <= m and 2 * (below + sums[0, k]) < weight:
            at = k
            below += sums[0, k]
            below_sum += sums[1, k]
        step //= 2
    return at, below, below_sum


@written_into_loops_uncounted
def _side_errors(table, medians, node, entering, middle):
    """Add to the errors what the rows up to each border are off by, and note the medians of their first target."""
    m, room = node.end - node.start, node.room
    sums, rows, borders, errors = room.entered, room.walk[0], room.walk[1], room.errors[0]
    for t in range(len(medians.keys)):
        for i in range(m + 1):
            sums[0, i] = sums[1, i] = 0
        weight = total = 0
        for i in range(entering):
            r = rows[i]
            _enter(sums, m, medians.place[t, r], table.weight[r], table.moments[r, t])
            weight += table.weight[r]
            total += table.moments[r, t]
            if borders[i] < 0:
                continue
            at, below, below_sum = _half_place(sums, m, weight)
            here = medians.rows[t, node.start + at]
            below += table.weight[here]
            below_sum += table.moments[here, t]
            amount = medians.amounts[t, here]
            errors[borders[i]] += float(total - 2 * below_sum + amount * (2 * below - weight))
            if t == 0:
                above = medians.rows[0, node.start + _half_place(sums, m, weight + 1)[0]]  # more than half
                middle[borders[i]] = (float(amount) + float(medians.amounts[0, above])) / 2


@written_into_loops_uncounted
def _walk(entries, node, last, walk, forward, missing):
    """Note the rows of one side as they enter it, and the border after each, or -1; return how many they are."""
    start, end, rows, after, borders = node.start, node.end, walk[0], walk[1], walk[2]
    for i in range(end - start):
        after[i] = -1
    m = 0
    if missing:
        for i in range(last, end):
            rows[m] = _row_of(entries[i])
            m += 1
        if not forward and m > 0 and borders[last - 1 - start] != 0:
            after[m - 1] = last - 1 - start
    for step in range(last - start):
        i = start + step if forward else last - 1 - step
        rows[m] = _row_of(entries[i])
        border = i if forward else i - 1
        if border >= start and borders[border - start] != 0:
            after[m] = border - start
        m += 1
    return m


@written_into_loops_uncounted
def _borders(table, rules, j, node, last, order, borders):
    """Note after which of a node's rows column j may be split, and return the threshold drawn, if it is random."""
    entries, values, start = table.entries[j], table.values[table.first[j] : table.first[j + 1]], node.start
    share = float(random_bits(random_bits(rules.seed, node.key), j) >> np.uint64(11)) / 2.0**53
    low, high = values[_rank_of(entries[start])], values[_rank_of(entries[last - 1])]
    drawn = low * (1 - share) + high * share
    drawn = low if not low <= drawn < high else drawn
    groups = 0
    for i in range(start, last - 1):
        rank, above = _rank_of(entries[i]), _rank_of(entries[i + 1])
        borders[i - start] = rank != above
        groups += rank != above
        if rules.random and order < 0:
            borders[i - start] = values[rank] <= drawn < values[above]
    if rules.random and order >= 0:
        chosen, seen = int(share * groups), 0
        for i in range(last - start):
            if borders[i] != 0:
                borders[i] = seen == chosen
                seen += 1
    borders[last - start - 1] = last < node.end
    return drawn


@called_by_loops_uncounted
def _best_median_split(table, rules, j, node, medians, order):
    """Return the split of a node along column j with the least sum of absolute errors; its targets are ranked."""
    start, end, limits = node.start, node.end, node.limits
    entries, values = table.entries[j], table.values[table.first[j] : table.first[j + 1]]
    last = end
    while last > start and _rank_of(entries[last - 1]) == len(values):
        last -= 1
    none = Split(-np.inf, -1, 0, False, False, np.nan, -1)
    if last == start or (last == end and _rank_of(entries[start]) == _rank_of(entries[last - 1])):
        return none
    borders = node.room.walk[2]
    drawn = _borders(table, rules, j, node, last, order, borders)
    direction = table.monotone[j]
    constrained = limits[0] > -np.inf or limits[1] < np.inf or direction != 0
    best, position, missing_left, threshold = -np.inf, -1, False, np.nan
    errors, middles = node.room.errors[0], node.room.errors[1:]
    for side in range(2 if last < end else 1):
        for i in range(last - start):
            errors[i] = 0.0
        for right in range(2):
            entering = _walk(entries, node, last, node.room.walk, right == 0, side != right)
            _side_errors(table, medians, node, entering, middles[right])
        w = 0
        for i in range(last, end if side == 1 else last):
            w += table.weight[_row_of(entries[i])]
        for i in range(start, last):
            w += table.weight[_row_of(entries[i])]
            if borders[i - start] == 0 or (side == 1 and i + 1 == last):
                continue
            count = i + 1 - start + (end - last if side == 1 else 0)
            if count < rules.leaf_rows or end - start - count < rules.leaf_rows:
                continue
            if w < rules.leaf_weight or node.weight - w < rules.leaf_weight or -errors[i - start] <= best:
                continue
            a, b = middles[0, i - start], middles[1, i - start]
            if constrained and not (
                (a - b) * direction <= 0 and limits[0] <= a <= limits[1] and limits[0] <= b <= limits[1]
            ):
                continue
            best, position, missing_left = -errors[i - start], i + 1 - start, side == 1
            if i + 1 == last:
                threshold = np.inf
            elif rules.random:
                threshold = drawn
            else:
                threshold = _threshold_between(values[_rank_of(entries[i])], values[_rank_of(entries[i + 1])])
    return Split(best, j, position, missing_left, last < end, threshold, order) if position > 0 else none
