"""The compiled loops that grow a tree on few rows, from the order of each column's codes.

A small node fills few cells of a histogram: to empty, copy, subtract and search them takes longer than to go through
the node's rows in the order of each column. The sums are the same whole numbers as those of histograms, and splits
are compared in the same order, so that the tree is the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from certifit.numerics.compiled.compiling import called_by_loops, called_from_python
from certifit.rows import Array
from certifit.tree.binned.growth_loops import add_children, next_node
from certifit.tree.binned.histogram_loops import part_rows


class SortedColumns(NamedTuple):
    """The rows of every node in the order of each column's codes: an entry is code · 2¹⁶ + row."""

    first: Array  # (d, n) int32: of all rows, missing values last
    order: Array  # (d, n) int32: those of each node one after another; rearranged while a tree grows
    scratch: Array  # (n,) int32
    on_left: Array  # (n,) uint8: whether a row went left in the last split of its node


_FIRST = np.int64(0)


@called_by_loops
def _search_order(order, packed, node, rules, best):
    """Look at every border of a column; note a split that is better than `best` in the node, and return its gain."""
    shift, l2, total, rows = rules.shift, rules.l2, node.total, len(order)
    mask = (np.int64(1) << shift) - 1
    H = float(total & mask)
    known, missing = rows, np.int64(0)
    while known > 0 and order[known - 1] >> 16 == 255:
        known -= 1
        missing += packed[order[known] & 65535]
    for side in range(2 if known < rows else 1):  # missing values go right, then left
        s, more = (missing, rows - known) if side == 1 else (np.int64(0), 0)
        for i in range(min(known, rows - rules.leaf_rows - more)):
            entry = order[i]
            s += packed[entry & 65535]
            if i + 1 + more < rules.leaf_rows or (i + 1 < known and order[i + 1] >> 16 == entry >> 16):
                continue
            below = float(s & mask)
            above = H - below
            if below < rules.leaf_hessian:
                continue
            if above < rules.leaf_hessian:
                break
            GL, GR = float(s >> shift), float((total - s) >> shift)
            gain = GL * GL / (below + l2) + GR * GR / (above + l2)
            if gain > best:
                best = gain
                node.border, node.missing_left, node.left_total = entry >> 16, side, s
    return best


@called_by_loops
def _search(tree, rules, k, order):
    """Find the best split of a node: note it, and where each code goes."""
    node = tree.nodes[k]
    node.gain, node.column = 0.0, -1
    if node.count < 2 * rules.leaf_rows or node.depth >= rules.depth:
        return
    mask = (np.int64(1) << rules.shift) - 1
    G, H = float(node.total >> rules.shift), float(node.total & mask)
    v = -G / (H + rules.l2) * rules.value_unit / rules.value_unit
    whole = -2.0 * G * v - (H + rules.l2) * v * v
    best, start, stop = whole, tree.runs[k, 0, 0], tree.runs[k, 0, 1]
    for j in range(len(tree.columns)):
        gain = _search_order(order[j, start:stop], tree.packed, node, rules, best)
        if gain > best:
            best, node.column = gain, j
    node.gain = best - whole
    if node.column < 0:
        return
    if order[node.column, stop - 1] >> 16 != 255:  # what no row of the node has goes with the heavier child
        node.missing_left = np.int64(2 * (node.left_total & mask) > (node.total & mask))
    goes_left = tree.goes_left[k]
    for b in range(255):
        goes_left[b] = b <= node.border
    goes_left[255] = node.missing_left


@called_by_loops
def _part_columns(tree, sorted_columns, k, left):
    """Put the entries of the rows that went left before the others, column by column, each in their order."""
    order, scratch, on_left = sorted_columns.order, sorted_columns.scratch, sorted_columns.on_left
    start, stop = tree.runs[k, 0, 0], tree.runs[k, 0, 1]
    for i in range(start, stop):
        on_left[tree.rows[i]] = i < start + left
    for j in range(len(order)):
        at, others = start, np.int64(0)
        here = order[j]
        # Written to both sides, and one counted: a branch would be guessed wrong for half of the rows.
        for i in range(start, stop):
            entry = here[i]
            to_left = np.int64(on_left[entry & 65535])
            here[at] = entry
            scratch[others] = entry
            at += to_left
            others += 1 - to_left
        for i in range(others):
            here[at + i] = scratch[i]


@called_from_python
def grow_sorted(tree, rules, sorted_columns):
    """Grow a whole tree, whose root is there: the leaf that gains most is split next."""
    order = sorted_columns.order
    for j in range(len(order)):
        for i in range(len(tree.rows)):
            order[j, i] = sorted_columns.first[j, i]
    root = tree.nodes[0]
    root.total = 0
    for i in range(len(tree.rows)):
        root.total += tree.packed[i]
    _search(tree, rules, _FIRST, order)
    left_rows = np.zeros(1, np.int64)
    while True:
        k = next_node(tree.nodes, tree.free[-2], tree.free[-1], rules.leaves)
        if k < 0:
            return
        node, made = tree.nodes[k], tree.free[-2]
        span = tree.runs[k, 0, 0], tree.runs[k, 0, 1]
        left_rows[0] = part_rows(
            tree.rows, tree.scratch, span, tree.codes, len(tree.columns), node.column, tree.goes_left[k]
        )
        add_children(tree.nodes, tree.runs, k, made, left_rows)
        tree.free[-2] += 2
        tree.free[-1] += 1
        if node.depth + 1 >= rules.depth or (rules.leaves > 0 and tree.free[-1] >= rules.leaves):
            continue
        if max(left_rows[0], node.count - left_rows[0]) >= 2 * rules.leaf_rows:
            _part_columns(tree, sorted_columns, k, left_rows[0])
            _search(tree, rules, made, order)
            _search(tree, rules, made + 1, order)
