"""The compiled loops of exact trees: the best split of a node along presorted columns, and its rows put in two parts.

A node is a run [start, end) of every column's entries. What rows add up to are whole numbers (`target_sums`), so sums
are exact: mirrored splits tie to the last bit, and nothing depends on the order in which rows are added. Amounts are
scored about the mean of their node, so that a node far from the others has all its digits. Of equal splits the one of
the lowest column wins, then the one of the lowest threshold.
"""

from __future__ import annotations

import math

import numpy as np

from certifit.numerics.compiled.compiling import called_by_loops_uncounted, written_into_loops_uncounted
from certifit.numerics.compiled.random_bits import random_bits
from certifit.tree.exact.category_loops import _arrange_categories
from certifit.tree.exact.entries import NodeCentre, Split, _add_row, _rank_of, _row_of, _threshold_between
from certifit.tree.exact.median_loops import _best_median_split, _median_score

# Σ S²/W; Σ S log(S/W); the same where every S must be above 0; -Σ w |y - median|
QUADRATIC, LOGARITHMIC, POSITIVE, ABSOLUTE = 0, 1, 2, 3


# Some are written into their callers: to hand a named tuple of arrays over for every row costs more than the sums.
@written_into_loops_uncounted
def _side_score(score, sums, weight, centre):
    """Return the score of one child: the larger, the purer."""
    found, heavy = 0.0, float(weight)
    if score == QUADRATIC:
        for c in range(len(sums)):
            s = float(sums[c] - centre.whole[c] * weight) - centre.part[c] * heavy
            found += s * s
        return found / heavy
    for c in range(len(sums)):
        s = float(sums[c])
        if s > 0:
            found += s * math.log(s / heavy)
        elif score == POSITIVE:
            return -np.inf
    return found


@written_into_loops_uncounted
def _node_centre(moments, node):
    """Return the mean amounts of a node; of classes 0, whose sums are scored as they are."""
    total, weight, whole, part = node.total, node.weight, node.room.sums[2], node.room.part
    for c in range(len(total)):
        whole[c], part[c] = 0, 0.0
    for c in range(moments.shape[1]):
        whole[c] = np.int64(np.rint(float(total[c]) / float(weight)))
        part[c] = float(total[c] - whole[c] * weight) / float(weight)
    return NodeCentre(whole, part)


@called_by_loops_uncounted
def _node_sums(table, start, end, sums):
    """Fill in the sums over a node's rows and return their weight."""
    for c in range(len(sums)):
        sums[c] = 0
    labels, moments, weights, entries = table.labels, table.moments, table.weight, table.entries[0]
    weight = 0
    for i in range(start, end):
        r = _row_of(entries[i])
        _add_row(labels, moments, weights, r, sums)
        weight += weights[r]
    return weight


@called_by_loops_uncounted
def _breaks_monotony(direction, rules, left, right, weights, limits):
    """Whether the children's values are in the wrong order, or beyond what ancestors' splits leave them."""
    # The value is the mean of an amount, or the share of the second of two classes.
    channel = rules.channels - 1
    a, b = left[channel] / weights[0], right[channel] / weights[1]
    if (a - b) * direction > 0:
        return True
    return not (limits[0] <= a <= limits[1] and limits[0] <= b <= limits[1])


@called_by_loops_uncounted
def _best_along(table, rules, j, node, order):
    """Return the best split of a node along column j, whose categories, if it has them, are in order."""
    start, end, total, weight, limits = node.start, node.end, node.total, node.weight, node.limits
    entries, values = table.entries[j], table.values[table.first[j] : table.first[j + 1]]
    labels, moments, row_weights = table.labels, table.moments, table.weight
    score, leaf_rows, leaf_weight, drawing = rules.score, rules.leaf_rows, rules.leaf_weight, rules.random
    last = end  # one past the last row with a value
    while last > start and _rank_of(entries[last - 1]) == len(values):
        last -= 1
    none = Split(-np.inf, -1, 0, False, False, np.nan, -1)
    if last == start or (last == end and _rank_of(entries[start]) == _rank_of(entries[last - 1])):
        return none
    best, position, missing_left, threshold = -np.inf, -1, False, np.nan
    left, right = node.room.sums[0], node.room.sums[1]
    centre = _node_centre(moments, node)
    constrained = limits[0] > -np.inf or limits[1] < np.inf or table.monotone[j] != 0
    drawn, chosen = np.inf, -1
    if rules.random:
        share = float(random_bits(random_bits(rules.seed, node.key), j) >> np.uint64(11)) / 2.0**53
        low, high = values[_rank_of(entries[start])], values[_rank_of(entries[last - 1])]
        drawn = low * (1 - share) + high * share
        drawn = low if not low <= drawn < high else drawn
        if order >= 0:  # categories are in a random order, and a drawn number of them goes left
            chosen = int(share * (_groups(entries, start, last) - 1))
    for side in range(2 if last < end else 1):  # missing rows go right, then left
        for c in range(len(left)):
            left[c] = 0
        w = seen = 0
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
                if above == rank:
                    continue
                seen += 1
                if drawing and not (seen - 1 == chosen if order >= 0 else values[rank] <= drawn < values[above]):
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
            found = _side_score(score, left, w, centre) + _side_score(score, right, weight - w, centre)
            if found > best:
                weights = float(w), float(weight - w)
                if constrained and _breaks_monotony(table.monotone[j], rules, left, right, weights, limits):
                    continue
                best, position, missing_left = found, i + 1 - start, side == 1
                if i + 1 == last:  # only missing values go right
                    threshold = np.inf
                else:
                    threshold = drawn if drawing else _threshold_between(values[rank], values[above])
    return Split(best, j, position, missing_left, last < end, threshold, order) if position > 0 else none


@called_by_loops_uncounted
def _groups(entries, start, last):
    """Return how many runs of equal ranks there are."""
    found = 1
    for i in range(start + 1, last):
        found += _rank_of(entries[i]) != _rank_of(entries[i - 1])
    return found


@written_into_loops_uncounted
def _varies(table, j, start, end):
    """Whether the node's rows differ in column j, missing ones from the others too."""
    return _rank_of(table.entries[j, start]) != _rank_of(table.entries[j, end - 1])


@written_into_loops_uncounted
def _columns_to_try(table, rules, node, found):
    """Return the columns that vary in a node; with fewer columns allowed, some of them drawn at random, ascending."""
    d = len(table.entries)
    m = 0
    for j in range(d):
        if _varies(table, j, node.start, node.end):
            found[m] = j
            m += 1
    if m <= rules.columns:
        return found[:m]
    key = random_bits(rules.seed, node.key) ^ np.uint64(0x5851F42D4C957F2D)
    for i in range(rules.columns):  # a shuffle that stops early, and a sort by insertion
        other = i + int(random_bits(key, i) % np.uint64(m - i))
        drawn = found[other]
        found[other] = found[i]
        at = i
        while at > 0 and found[at - 1] > drawn:
            found[at] = found[at - 1]
            at -= 1
        found[at] = drawn
    return found[: rules.columns]


# Where `medians` or `categories` are None, nothing of theirs is compiled; nor what belongs to means where `means` is,
# which stands for nothing else: Numba leaves out what a None rules out, and not what follows from there being one.
@written_into_loops_uncounted
def _along(table, rules, j, node, medians, means, order):
    found = Split(-np.inf, -1, 0, False, False, np.nan, -1)
    if medians is not None:
        found = _best_median_split(table, rules, j, node, medians, order)
    if means is not None:
        found = _best_along(table, rules, j, node, order)
    return found


@written_into_loops_uncounted
def _best_split(table, rules, columns, node, medians, means, categories):
    """Return the best split of a node along any of these columns; categories are tried in every order they have."""
    best = Split(-np.inf, -1, 0, False, False, np.nan, -1)
    for j in columns:
        order, orders = np.int64(-1), 1
        if categories is not None:
            orders = len(categories.channels) if categories.columns[j] else 1
        for k in range(orders):
            if categories is not None:  # noqa: SIM102 - what a None leaves out is not compiled
                if categories.columns[j]:
                    order = categories.channels[k]
                    _arrange_categories(table, rules, node, j, order)
            found = _along(table, rules, j, node, medians, means, order)
            if found.score > best.score:
                best = found
    return best


@written_into_loops_uncounted
def _node_score(table, rules, node, medians, means):
    """Return the score of a node that is not split; its targets are ranked where medians are asked for."""
    found = 0.0
    if medians is not None:
        found = _median_score(table, medians, node.start, node.end)
    if means is not None:
        centre = _node_centre(table.moments, node)
        found = _side_score(rules.score, node.total, node.weight, centre)
    return found


@written_into_loops_uncounted
def _mark_sides(table, rules, split, node, categories):
    """Note which of a node's rows go left, and return how many."""
    j, start, end = split.column, node.start, node.end
    if categories is not None:  # noqa: SIM102 - what a None leaves out is not compiled
        if split.order >= 0:
            _arrange_categories(table, rules, node, j, split.order)
    missing, count = table.first[j + 1] - table.first[j], 0
    for i in range(start, end):
        entry = table.entries[j, i]
        left = split.missing_left if _rank_of(entry) == missing else i - start < split.position
        table.left[_row_of(entry)] = left
        count += left
    return count


@written_into_loops_uncounted
def _part_rows(table, first, last, start, end, kept):
    """Put the rows that go left before the others, in the order of each of the columns [first, last)."""
    goes_left = table.left
    for j in range(first, last):
        entries = table.entries[j]
        at, others = start, np.int64(0)
        # Written to both sides, and one counted: a branch would be guessed wrong for half of the rows.
        for i in range(start, end):
            entry = entries[i]
            left = np.int64(goes_left[_row_of(entry)])
            entries[at] = entry
            kept[others] = entry
            at += left
            others += 1 - left
        for i in range(others):  # a loop: to compile the assignment of a slice takes seconds
            entries[at + i] = kept[i]
