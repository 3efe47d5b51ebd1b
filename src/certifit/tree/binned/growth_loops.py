"""The compiled loops that grow a tree from histograms: the leaf that gains most is split next.

Rows are shared out to chunks, each with a run of `rows` of its own for every node, so that threads never write to the
same place. A split is one visit of each chunk (`_visit_chunk`), and then `_finish_split`, which adds up the whole
numbers of the chunks: how many there are changes nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from certifit.numerics.compiled.compiling import (
    called_by_loops_uncounted,
    called_from_python_uncounted,
    written_into_loops_uncounted,
)
from certifit.numerics.compiled.random_bits import random_bits
from certifit.rows import Array
from certifit.tree.binned.histogram_loops import add_counts, add_histogram, count_left, part_rows
from certifit.tree.binned.search_loops import bounded_value, search_histogram


class GrowingTree(NamedTuple):
    """The rows that a tree grows on, its nodes in the order in which they were made, and their histograms."""

    codes: Array  # (n · d,) uint8, a row after another
    packed: Array  # (n,) int64: gradient and Hessian of each row
    rows: Array  # (n,) int32: row numbers, chunk by chunk; rearranged while the tree grows
    scratch: Array  # (n,) int32
    columns: Array  # (d, 3) int64: bins, whether categorical, and direction of a monotone column
    groups: Array  # (g, d) uint8: columns that may meet in a branch; g = 0 where all may
    nodes: Array  # (m,) NODE
    runs: Array  # (m, chunks, 2) first place of a node in `rows`, and one past the last
    goes_left: Array  # (m, 256) uint8: where each code goes
    sums: Array  # (chunks + s, d · 256) int64: histograms, first those of the chunks, then those of nodes that wait
    counts: Array  # (chunks + s, d · 256) int32: the same for rows
    free: Array  # (s + 3,) histograms not in use, and at the end how many, the nodes made, and the leaves
    asked: Array  # (d,) uint8: scratch, the columns that a node may ask
    filled: Array  # (256,) int64: scratch, the bins of a column that hold any rows
    left_rows: Array  # (chunks,) int64: how many rows of each chunk go left


# Numba compiles a function anew for every literal number that it is called with: so these are typed.
_FIRST, _BEFORE = np.int64(0), np.int64(-1)


@called_by_loops_uncounted
def _clear(table, to):
    row = table[to]
    for i in range(len(row)):
        row[i] = 0


@called_by_loops_uncounted
def _copy(table, to, other):
    a, b = table[to], table[other]
    for i in range(len(a)):
        a[i] = b[i]


@called_by_loops_uncounted
def _add(table, to, other):
    a, b = table[to], table[other]
    for i in range(len(a)):
        a[i] += b[i]


@called_by_loops_uncounted
def _subtract(table, to, other):
    a, b = table[to], table[other]
    for i in range(len(a)):
        a[i] -= b[i]


@called_by_loops_uncounted
def _next_node(nodes, made, leaves, most):
    """Return the node to split next, or -1 if the tree is done: the best, or, with no limit on leaves, the last."""
    best = -1
    if most < 0 or leaves < most:
        for k in range(made):
            if nodes[k].gain > 0 and (best < 0 or most < 0 or nodes[k].gain > nodes[best].gain):
                best = k
    return best


@called_by_loops_uncounted
def _left_is_lighter(node, shift):
    """Whether the left child is the one whose histogram is built from its rows; the other's is the rest."""
    mask = (np.int64(1) << shift) - 1
    return 2 * (node.left_total & mask) <= (node.total & mask)


@written_into_loops_uncounted
def _visit_chunk(tree, rules, k, chunk):
    """Part a chunk's rows of node k, add the lighter child's to its histogram, return how many go left.

    With k = -1 all rows of the chunk are added, for the root.
    """
    if k < 0:
        first, last, left, rows = tree.runs[0, chunk, 0], tree.runs[0, chunk, 1], 0, tree.nodes[0].count
    else:
        node = tree.nodes[k]
        start, stop, rows = tree.runs[k, chunk, 0], tree.runs[k, chunk, 1], node.count
        left = part_rows(
            tree.rows, tree.scratch, (start, stop), tree.codes, len(tree.columns), node.column, tree.goes_left[k]
        )
        first, last = (start, start + left) if _left_is_lighter(node, rules.shift) else (start + left, stop)
        if node.depth + 1 >= rules.depth or (rules.leaves > 0 and tree.free[-1] + 1 >= rules.leaves):
            return left
        # Where there is one chunk, it knows whether both children are too small to be split.
        if tree.runs.shape[1] == 1 and max(left, rows - left) < 2 * rules.leaf_rows:
            return left
    _clear(tree.sums, chunk)
    add_histogram(tree.rows, first, last, tree.codes, tree.packed, tree.sums[chunk])
    if not rules.by_hessian and rows <= rules.counted_rows:
        _clear(tree.counts, chunk)
        add_counts(tree.rows, first, last, tree.codes, tree.counts[chunk])
    return left


@called_by_loops_uncounted
def _count_rows(rows, runs, codes, counts):
    """Count a node's rows bin by bin."""
    for i in range(len(counts)):
        counts[i] = 0
    for chunk in range(len(runs)):
        add_counts(rows, runs[chunk, 0], runs[chunk, 1], codes, counts)


@written_into_loops_uncounted
def _ask_of_groups(nodes, k, columns, groups, asked):
    """Mark the columns that a node may ask: of the groups that hold every column of its branch, all columns."""
    for j in range(len(asked)):
        asked[j] = 0
    for g in range(len(groups)):
        at, alive = k, True
        while nodes[at].parent >= 0:
            at = nodes[at].parent
            alive = alive and groups[g, nodes[at].column] != 0
        for j in range(len(asked)):
            if alive and groups[g, j] and columns[j, 0] > 0:
                asked[j] = 1


@written_into_loops_uncounted
def _are_large(tree, rules, k):
    """Whether both children of the best split have enough rows: by their Hessians, else by counting."""
    node = tree.nodes[k]
    mask = (np.int64(1) << rules.shift) - 1
    enough = rules.leaf_rows * rules.largest_hessian
    if min(node.left_total & mask, (node.total - node.left_total) & mask) >= enough:
        return True
    left, d = 0, len(tree.columns)
    for chunk in range(tree.runs.shape[1]):
        start, stop = tree.runs[k, chunk, 0], tree.runs[k, chunk, 1]
        left += count_left(tree.rows, start, stop, tree.codes, d, node.column, tree.goes_left[k])
    return min(left, node.count - left) >= rules.leaf_rows


@called_by_loops_uncounted
def _search(tree, rules, k, place, special):
    """Find the best split of a node whose histogram is in this place."""
    node = tree.nodes[k]
    node.gain = 0.0
    if node.count < 2 * rules.leaf_rows or node.depth >= rules.depth:
        return
    cells, columns = (tree.sums[place], tree.counts[place], tree.filled), tree.columns
    while True:
        for j in range(len(columns)):
            tree.asked[j] = columns[j, 0] > 0
        if special is not None:  # noqa: SIM102 - what a None leaves out is not compiled
            if len(tree.groups) > 0:
                _ask_of_groups(tree.nodes, k, columns, tree.groups, tree.asked)
        search_histogram(cells, columns, node, rules, tree.asked, tree.goes_left[k], special)
        if node.column < 0 or node.counted or rules.by_hessian or _are_large(tree, rules, k):
            return
        # The best split of all leaves a child too few rows: only now is it worth counting.
        _count_rows(tree.rows, tree.runs[k], tree.codes, tree.counts[place])
        node.counted = 1


@called_by_loops_uncounted
def _add_children(nodes, runs, k, made, left_rows):
    """Make the two children of node k; `left_rows` (chunks,) say how many rows of each chunk went left."""
    node = nodes[k]
    left = 0
    for chunk in range(len(left_rows)):
        middle = runs[k, chunk, 0] + left_rows[chunk]
        runs[made, chunk, 0], runs[made, chunk, 1] = runs[k, chunk, 0], middle
        runs[made + 1, chunk, 0], runs[made + 1, chunk, 1] = middle, runs[k, chunk, 1]
        left += left_rows[chunk]
    for side in range(2):
        child = nodes[made + side]
        child.total = node.total - node.left_total if side else node.left_total
        child.count = node.count - left if side else left
        child.parent, child.depth, child.key = k, node.depth + 1, np.int64(random_bits(node.key, side))
        child.low, child.high, child.left, child.right = node.low, node.high, -1, -1
        child.gain, child.column, child.slot, child.counted = 0.0, -1, -1, 0
    node.left, node.right, node.made_gain, node.gain = made, made + 1, node.gain, 0.0


@written_into_loops_uncounted
def _bound_children(nodes, k, rules, direction):
    """Between the children's values lies the border that neither side's descendants may cross."""
    node = nodes[k]
    a, b = nodes[node.left], nodes[node.right]
    middle = bounded_value(a.total, rules, node.low, node.high) / 2
    middle += bounded_value(b.total, rules, node.low, node.high) / 2
    if direction > 0:
        a.high, b.low = middle, middle
    elif direction < 0:
        a.low, b.high = middle, middle


@called_by_loops_uncounted
def _keep(tree, k, place):
    """Keep a node's histogram, if it has a split to be made later and there is room."""
    node, m = tree.nodes[k], tree.free[-3]
    if node.gain > 0 and m > 0:
        node.slot = tree.free[m - 1]
        tree.free[-3] = m - 1
        _copy(tree.sums, node.slot, place)
        if node.counted:
            _copy(tree.counts, node.slot, place)


@called_by_loops_uncounted
def _give_back(free, node):
    """Let others have a node's histogram."""
    if node.slot >= 0:
        free[free[-3]] = node.slot
        free[-3] += 1
        node.slot = -1


@called_by_loops_uncounted
def _add_chunks(tree, rules, rows):
    """Add the whole numbers of all chunks up in the first; return whether rows were counted."""
    counting = not rules.by_hessian and rows <= rules.counted_rows
    for chunk in range(1, tree.runs.shape[1]):
        _add(tree.sums, _FIRST, chunk)
        if counting:
            _add(tree.counts, _FIRST, chunk)
    return counting


@written_into_loops_uncounted
def _start_root(tree, rules, special):
    """Find the best split of the root, of which all chunks have been visited."""
    root = tree.nodes[0]
    root.counted = _add_chunks(tree, rules, root.count)
    root.total = 0
    for b in range(256):
        root.total += tree.sums[0, b]
    _search(tree, rules, _FIRST, _FIRST, special)
    _keep(tree, _FIRST, _FIRST)


@written_into_loops_uncounted
def _finish_split(tree, rules, k, special):
    """Make the children of node k, of which all chunks have been visited, and find their best splits."""
    node, made = tree.nodes[k], tree.free[-2]
    _add_children(tree.nodes, tree.runs, k, made, tree.left_rows)
    if special is not None:
        _bound_children(tree.nodes, k, rules, tree.columns[node.column, 2])
    tree.free[-2] += 2
    tree.free[-1] += 1
    light = made if _left_is_lighter(node, rules.shift) else made + 1
    heavy = 2 * made + 1 - light
    full = rules.leaves > 0 and tree.free[-1] >= rules.leaves
    most = max(tree.nodes[light].count, tree.nodes[heavy].count)
    if full or node.depth + 1 >= rules.depth or most < 2 * rules.leaf_rows:
        _give_back(tree.free, node)
        return
    counting = _add_chunks(tree, rules, node.count)
    tree.nodes[light].counted = tree.nodes[heavy].counted = counting
    place = node.slot
    if place >= 0:
        # What the lighter child leaves of its parent's sums is the heavier one's.
        _subtract(tree.sums, place, _FIRST)
        if counting and node.counted:
            _subtract(tree.counts, place, _FIRST)
        elif counting:
            _count_rows(tree.rows, tree.runs[heavy], tree.codes, tree.counts[place])
        tree.nodes[heavy].slot, node.slot = place, -1
    _search(tree, rules, light, _FIRST, special)
    _keep(tree, light, _FIRST)
    if place >= 0:
        _search(tree, rules, heavy, place, special)
        if not tree.nodes[heavy].gain > 0:
            _give_back(tree.free, tree.nodes[heavy])
        return
    _clear(tree.sums, _FIRST)
    for chunk in range(tree.runs.shape[1]):
        start, stop = tree.runs[heavy, chunk, 0], tree.runs[heavy, chunk, 1]
        add_histogram(tree.rows, start, stop, tree.codes, tree.packed, tree.sums[0])
    if counting:
        _count_rows(tree.rows, tree.runs[heavy], tree.codes, tree.counts[0])
    _search(tree, rules, heavy, _FIRST, special)
    _keep(tree, heavy, _FIRST)


@called_from_python_uncounted
def grow_alone(tree, rules, special):
    """Grow a whole tree on one thread.

    `special` is None where no column is categorical, monotone or in groups, and none are drawn: then nothing of these
    is compiled.
    """
    k = _BEFORE
    while True:
        tree.left_rows[0] = _visit_chunk(tree, rules, k, _FIRST)
        if k < 0:
            _start_root(tree, rules, special)
        else:
            _finish_split(tree, rules, k, special)
        k = _next_node(tree.nodes, tree.free[-2], tree.free[-1], rules.leaves)
        if k < 0:
            return


@called_from_python_uncounted
def take_step(tree, rules, k, chunk, special):
    """Take one of the steps above for threads; small tables never compile it.

    Of a chunk: part its rows of node k, add the lighter child's to its histogram, and return how many go left; with
    k = -1 all its rows are added, for the root. With chunk = -1: make the children of node k, of which all chunks are
    visited, find their best splits, and return the next node; with k = -1 find that of the root.
    They are one function, because the search, and the way in from Python, would be compiled for each.
    """
    if chunk >= 0:
        return _visit_chunk(tree, rules, k, chunk)
    if k < 0:
        _start_root(tree, rules, special)
    else:
        _finish_split(tree, rules, k, special)
    return _next_node(tree.nodes, tree.free[-2], tree.free[-1], rules.leaves)
