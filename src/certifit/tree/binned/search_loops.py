"""The compiled loops that find the best split of a node from its histogram.

With G and H the sums of gradients and Hessians of a node's rows, the value v = -G / (H + λ) lowers the quadratic
G v + (H + λ) v² / 2 by half of G² / (H + λ). A split gains what its children lower more than their parent. Sums are
whole numbers, so a gain has the same bits for any order of the rows; of equal splits the lowest column wins, then
missing values on the right, then the lowest border.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from certifit.numerics.compiled.compiling import (
    called_by_loops,
    called_by_loops_uncounted,
    written_into_loops_uncounted,
)
from certifit.numerics.compiled.random_bits import random_bits

# What is known of a node. A structured array takes Numba a fraction of the time that an array for each field would.
NODE = np.dtype(
    [
        ("total", np.int64),  # packed sums of its rows
        ("count", np.int64),  # its rows
        ("counted", np.int64),  # whether its histogram counts rows too
        ("slot", np.int64),  # the place of its histogram; -1 where it has none
        ("parent", np.int64),
        ("depth", np.int64),
        ("key", np.int64),  # random bits, by its path from the root alone
        ("low", np.float64),  # values that monotone columns allow
        ("high", np.float64),
        ("left", np.int64),  # its children; -1 for a leaf
        ("right", np.int64),
        ("gain", np.float64),  # of the best split; 0 where it has been made or there is none
        ("column", np.int64),
        ("border", np.int64),  # codes up to this go left; of categories, how many go left less 1
        ("missing_left", np.int64),
        ("left_total", np.int64),
        ("made_gain", np.float64),  # of the split that was made
    ]
)


class BinnedRules(NamedTuple):
    """What trees and their splits must satisfy, in the units of the packed sums."""

    shift: int  # bits of the Hessian's part
    l2: float  # λ in units of the Hessian
    value_unit: float  # what -G / (H + λ) has to be multiplied by to be a value
    leaf_rows: int  # fewest rows of a leaf
    leaf_hessian: float  # least Hessian of a leaf
    columns: int  # how many columns each split looks at; all of them if as many as there are
    seed: int
    constrained: bool  # whether any column is monotone
    leaves: int  # most leaves of the tree; less than 0 for any number
    depth: int  # of the deepest leaf allowed
    counted_rows: int  # children of nodes with at most so many rows have their rows counted bin by bin
    by_hessian: bool  # whether every row's Hessian is 1 unit, so that its sums are counts
    largest_hessian: int  # of any row, in units


@called_by_loops_uncounted
def bounded_value(total, rules, low, high):
    """Return the best value of a node with these packed sums, within what monotone columns allow."""
    mask = (np.int64(1) << rules.shift) - 1
    value = -float(total >> rules.shift) / (float(total & mask) + rules.l2) * rules.value_unit
    return min(max(value, low), high)


@called_by_loops_uncounted
def _bounded_gain(total, rules, low, high):
    """Return twice what the best allowed value lowers a node's quadratic by."""
    mask = (np.int64(1) << rules.shift) - 1
    v = bounded_value(total, rules, low, high) / rules.value_unit
    return -2.0 * float(total >> rules.shift) * v - (float(total & mask) + rules.l2) * v * v


@called_by_loops_uncounted
def _filled_bins(sums, n_bins, filled):
    """Write down which of the first bins hold any rows, in their order, and return how many."""
    m = np.int64(0)
    # Always written, and sometimes counted: in small nodes a branch would be guessed wrong again and again.
    for b in range(n_bins):
        filled[m] = b
        m += np.int64(sums[b] != 0)
    return m


@called_by_loops_uncounted
def _search_numbers(cells, node, rules, column, best, special):
    """Look at every border of a column; note a split that is better than `best` in the node, and return its gain."""
    sums, counts, filled = cells
    n_bins, direction = column
    shift, l2, total, all_rows = rules.shift, rules.l2, node.total, node.count
    leaf_rows, leaf_hessian, constrained = rules.leaf_rows, rules.leaf_hessian, rules.constrained
    by_hessian, counted = rules.by_hessian, node.counted != 0
    mask = (np.int64(1) << shift) - 1
    G, H = float(total >> shift), float(total & mask)
    nearly = best * (1.0 - 1e-13)
    missing = sums[255]
    m = _filled_bins(sums, n_bins if missing != 0 else n_bins - 1, filled)
    for side in range(2 if missing != 0 else 1):  # missing values go right, then left
        s, c = np.int64(0), np.int64(0)
        if side == 1:
            s, c = missing, counts[255]
        for i in range(m):
            b = filled[i]
            s += sums[b]
            if by_hessian or counted:
                c = s & mask if by_hessian else c + counts[b]
                if c < leaf_rows:
                    continue
                if all_rows - c < leaf_rows:
                    break
            below = float(s & mask)
            above = H - below
            if below < leaf_hessian:
                continue
            if above < leaf_hessian:
                break
            if special is not None and constrained:
                gain = _bounded_gain(s, rules, node.low, node.high)
                gain += _bounded_gain(total - s, rules, node.low, node.high)
                a = bounded_value(s, rules, node.low, node.high)
                if (a - bounded_value(total - s, rules, node.low, node.high)) * direction > 0:
                    continue
            else:
                # Exact: gradients have at most 52 bits, and Hessians never borrow from them.
                GL = float(s >> shift)
                GR = G - GL
                down, up = below + l2, above + l2
                # Two divisions take longer than all the rest: few splits come so near to the best that they are done.
                if GL * GL * up + GR * GR * down < nearly * (down * up):
                    continue
                gain = GL * GL / down + GR * GR / up
            if gain > best:
                best, nearly = gain, gain * (1.0 - 1e-13)
                node.border, node.missing_left, node.left_total = b, side, s
    return best


@called_by_loops
def _sorted_categories(sums, rules, order):
    """Fill `order` with the codes that a node's rows have, by G / (H + λ); return how many."""
    mask = (np.int64(1) << rules.shift) - 1
    ratio = np.empty(256)
    m = 0
    for b in range(256):
        if sums[b] == 0:
            continue
        r = float(sums[b] >> rules.shift) / (float(sums[b] & mask) + rules.l2)
        at = m
        while at > 0 and ratio[at - 1] > r:
            ratio[at], order[at] = ratio[at - 1], order[at - 1]
            at -= 1
        ratio[at], order[at] = r, b
        m += 1
    return m


@called_by_loops
def _search_categories(sums, counts, node, rules, best):
    """Look at every cut of the categories in the order of their ratios, missing values being one of them.

    Of all sets of categories the best is such a cut (Fisher 1958): no other has to be looked at.
    """
    order = np.empty(256, np.int64)
    mask = (np.int64(1) << rules.shift) - 1
    s, c = np.int64(0), np.int64(0)
    for i in range(_sorted_categories(sums, rules, order) - 1):
        s += sums[order[i]]
        c = s & mask if rules.by_hessian else c + counts[order[i]]
        if (rules.by_hessian or node.counted != 0) and (c < rules.leaf_rows or node.count - c < rules.leaf_rows):
            continue
        rest = node.total - s
        if min(float(s & mask), float(rest & mask)) < rules.leaf_hessian:
            continue
        gain = _bounded_gain(s, rules, node.low, node.high) + _bounded_gain(rest, rules, node.low, node.high)
        if gain > best:
            best = gain
            node.border, node.missing_left, node.left_total = i, 0, s
    return best


@called_by_loops
def _drop_columns(asked, rules, key):
    """Of the columns that may be asked, leave those that chance picks for this node."""
    d = len(asked)
    keys = np.empty(d, np.uint64)
    for j in range(d):
        keys[j] = random_bits(random_bits(rules.seed, key) ^ np.uint64(0x5851F42D4C957F2D), j)
    first = asked.copy()
    for j in range(d):
        below = 0
        for i in range(d):
            below += first[i] != 0 and keys[i] < keys[j]
        if below >= rules.columns:
            asked[j] = 0


@written_into_loops_uncounted
def search_histogram(cells, columns, node, rules, asked, goes_left, special):
    """Find the best split of a node along the columns that are asked: note it, and where each code goes.

    `cells` are flat sums and counts (d · 256,), and room for 256 numbers; `columns` (d, 3) bins, whether categorical,
    and direction; `asked` (d,) the columns that are. `special` is None where no column is categorical or monotone and
    none are drawn: then nothing of these is compiled.
    """
    sums, counts, filled = cells
    whole = _bounded_gain(node.total, rules, node.low, node.high)
    best, column = whole, -1
    if special is not None:  # noqa: SIM102 - what a None leaves out is not compiled
        if rules.columns < len(asked):
            _drop_columns(asked, rules, node.key)
    for j in range(len(asked)):
        if asked[j] == 0:
            continue
        here, some = sums[j * 256 : j * 256 + 256], counts[j * 256 : j * 256 + 256]
        gain = best
        if special is None or columns[j, 1] == 0:
            gain = _search_numbers((here, some, filled), node, rules, (columns[j, 0], columns[j, 2]), best, special)
        elif special is not None:
            gain = _search_categories(here, some, node, rules, best)
        if gain > best:
            best, column = gain, j
    node.column, node.gain = column, best - whole
    if column >= 0:
        here = sums[column * 256 : column * 256 + 256]
        if special is None or columns[column, 1] == 0:
            _note_sides(here, node, rules, goes_left)
        elif special is not None:
            _note_sides_of_categories(here, node, rules, goes_left)


@called_by_loops_uncounted
def _heavier_is_left(node, rules):
    """Whether the left child is the heavier, 1, or not, 0: what no row of the node has goes with the heavier one."""
    mask = (np.int64(1) << rules.shift) - 1
    return np.int64(2 * (node.left_total & mask) > (node.total & mask))


@called_by_loops_uncounted
def _note_sides(sums, node, rules, goes_left):
    """Write down for each code of a column of numbers whether it goes left."""
    for b in range(255):
        goes_left[b] = b <= node.border
    if sums[255] == 0:
        node.missing_left = _heavier_is_left(node, rules)
    goes_left[255] = node.missing_left


@called_by_loops
def _note_sides_of_categories(sums, node, rules, goes_left):
    """Write down for each category whether it goes left."""
    order, heavier = np.empty(256, np.int64), _heavier_is_left(node, rules)
    for b in range(256):
        goes_left[b] = heavier
    for i in range(_sorted_categories(sums, rules, order)):
        goes_left[order[i]] = i <= node.border
    node.missing_left = np.int64(goes_left[255])
