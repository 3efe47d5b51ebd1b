"""The compiled loop that grows all of a small subtree, depth first."""

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
from certifit.tree.exact.entries import NodeRoom, NodeToSplit, _row_of
from certifit.tree.exact.median_loops import _median_of, _rank_targets
from certifit.tree.exact.split_loops import (
    _best_split,
    _columns_to_try,
    _mark_sides,
    _node_score,
    _node_sums,
    _part_rows,
)


class GrowthRules(NamedTuple):
    """When a node is split."""

    depth: int  # of the deepest leaf allowed
    split_rows: int  # fewest rows of a node that is split
    decrease: float  # least gain in score


class NodeTable(NamedTuple):
    """Nodes in the order in which they were made; a parent comes before its children."""

    start: Array  # first entry in the columns of `SortedTable`
    end: Array
    depth: Array
    key: Array  # uint64: random bits of this node, by its path from the root alone
    limits: Array  # (m, 2) values that monotone columns allow
    left: Array  # number of the left child; -1 for a leaf
    right: Array
    column: Array
    threshold: Array
    missing_left: Array
    met_missing: Array
    gain: Array  # how much the split raises the score
    weight: Array  # int64
    sums: Array  # (m, c) int64


def empty_nodes(m: int, channels: int) -> NodeTable:
    """Room for m nodes."""
    columns: list[Array] = [np.zeros(m, np.int64) for _ in range(3)]
    columns += [np.zeros(m, np.uint64), np.tile([-np.inf, np.inf], (m, 1))]
    columns += [np.full(m, -1, np.int64) for _ in range(3)]
    columns += [np.full(m, np.nan), np.zeros(m, np.bool_), np.zeros(m, np.bool_), np.zeros(m)]
    return NodeTable._make([*columns, np.zeros(m, np.int64), np.zeros((m, channels), np.int64)])


# What is known of a node. A structured array takes Numba a fraction of the time that an array for each field would.
NODE = np.dtype(
    [
        *((name, np.int64) for name in ("start", "end", "depth")),
        ("key", np.uint64),
        *((name, np.int64) for name in ("left", "right", "column")),
        ("threshold", np.float64),
        *((name, np.bool_) for name in ("missing_left", "met_missing")),
        ("gain", np.float64),
        ("weight", np.int64),
    ]
)


class SubtreeNodes(NamedTuple):
    """The nodes of a subtree while it grows, as those of `NodeTable`."""

    node: Array  # (m,) NODE
    limits: Array  # (m, 2)
    sums: Array  # (m, c) int64
    room: NodeRoom

    def as_table(self, made: int) -> NodeTable:
        """The first nodes, so many of them."""
        node = self.node[:made].view(NODE, np.ndarray)  # record arrays take long to find their fields
        columns = {name: node[name].copy() for name in NODE.names or ()}
        return NodeTable(limits=self.limits[:made].copy(), sums=self.sums[:made].copy(), **columns)


def empty_subtree(m: int, root: NodeTable, k: int, room: NodeRoom) -> SubtreeNodes:
    """Places for m nodes, the first of which is node k of a table, and room in which to look at one."""
    node = np.zeros(m, NODE)
    node["left"] = node["right"] = node["column"] = -1
    node["threshold"] = np.nan
    for name in NODE.names or ():
        node[name][0] = getattr(root, name)[k]
    sums = np.zeros((m, root.sums.shape[1]), np.int64)
    sums[0] = root.sums[k]
    # A record array: its entries have fields by name also where loops are run as Python.
    limits = np.empty((m, 2))
    limits[:] = root.limits[k]
    return SubtreeNodes(node.view(np.recarray), limits, sums, room)


@written_into_loops_uncounted
def _node_to_split(nodes, k):
    """Return node k, as the search for its best split wants it."""
    node = nodes.node[k]
    key = np.int64(node.key)  # with its sign: Python's own numbers pass between the two
    return NodeToSplit(node.start, node.end, nodes.sums[k], node.weight, nodes.limits[k], key, nodes.room)


@called_by_loops_uncounted
def _is_pure(table, y, start, end):
    """Whether a node's rows have one and the same target."""
    first = _row_of(table.entries[0, start])
    for i in range(start + 1, end):
        r = _row_of(table.entries[0, i])
        for t in range(y.shape[1]):
            if y[r, t] != y[first, t]:
                return False
    return True


@written_into_loops_uncounted
def _may_split(table, y, growth, rules, node):
    """Whether a node is one that the rules let be split, whatever its best split is."""
    rows = node.end - node.start
    if node.depth >= growth.depth or rows < growth.split_rows or rows < 2 * rules.leaf_rows:
        return False
    if node.weight < 2 * rules.leaf_weight:
        return False
    return not _is_pure(table, y, node.start, node.end)


@written_into_loops_uncounted
def _add_children(table, rules, nodes, k, children, split, medians):
    """Write down the split of node k and its two children, the first of them node `made` with `count` rows."""
    made, count = children
    node, one, two = nodes.node[k], nodes.node[made], nodes.node[made + 1]
    node.column, node.threshold = split.column, split.threshold
    node.missing_left, node.met_missing = split.missing_left, split.met_missing
    node.left, node.right = made, made + 1
    one.start, one.end, two.start, two.end = node.start, node.start + count, node.start + count, node.end
    one.depth = two.depth = node.depth + 1
    one.key, two.key = random_bits(node.key, np.int64(0)), random_bits(node.key, np.int64(1))
    for side in range(2):
        nodes.limits[made + side, 0], nodes.limits[made + side, 1] = nodes.limits[k, 0], nodes.limits[k, 1]
    one.weight = _node_sums(table, one.start, one.end, nodes.sums[made])
    two.weight = node.weight - one.weight
    for c in range(nodes.sums.shape[1]):  # a loop: to compile the arithmetic of arrays takes seconds
        nodes.sums[made + 1, c] = nodes.sums[k, c] - nodes.sums[made, c]
    direction = table.monotone[split.column]
    if direction != 0:
        # Between the children's values lies the border that neither side's descendants may cross.
        if medians is None:
            channel = rules.channels - 1
            a, b = nodes.sums[made, channel] / one.weight, nodes.sums[made + 1, channel] / two.weight
        else:
            a = _median_of(table, medians, one.start, one.end, nodes.room)
            b = _median_of(table, medians, two.start, two.end, nodes.room)
        nodes.limits[made, 1 if direction > 0 else 0] = (a + b) / 2
        nodes.limits[made + 1, 0 if direction > 0 else 1] = (a + b) / 2


@called_from_python_uncounted
def grow_subtree(table, y, both_rules, nodes, medians, means, categories):
    """Grow from node 0, whose run of rows and sums are there, until no node may be split; return how many nodes.

    `both_rules` are those of growth and of splits.
    """
    growth, rules = both_rules
    made, d = 1, len(table.entries)
    k = 0
    while k < made:
        if _may_split(table, y, growth, rules, nodes.node[k]):
            node = _node_to_split(nodes, k)
            if medians is not None:
                _rank_targets(table, medians, node.start, node.end, nodes.room)
            columns = _columns_to_try(table, rules, node, nodes.room.columns)
            split = _best_split(table, rules, columns, node, medians, means, categories)
            gain = split.score - _node_score(table, rules, node, medians, means)
            if split.column >= 0 and gain >= growth.decrease:
                nodes.node[k].gain = gain
                count = _mark_sides(table, rules, split, node, categories)
                _part_rows(table, 0, d, node.start, node.end, nodes.room.kept[0])
                _add_children(table, rules, nodes, k, (made, count), split, medians)
                made += 2
        k += 1
    return made
