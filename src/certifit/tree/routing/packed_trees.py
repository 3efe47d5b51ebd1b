"""Trees packed so that a step of a row touches the memory once, and what rows find in them.

A node is 16 bytes: the threshold, the column with three marks, and the left child; the right child is the next one.
Few rows are sent down by operations on whole arrays, as long as the loops are not compiled: both find the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from certifit.numerics.compiled.compiling import PlainFirst
from certifit.rows import Array
from certifit.tree.routing.route_loops import (
    BY_SET,
    COLUMN,
    LEAF,
    MISSING_LEFT,
    add_answers,
    add_scores,
    find_leaves,
)

# A node of a packed tree; a leaf leads to itself.
STEP = np.dtype([("threshold", np.float64), ("left", np.uint32), ("column", np.uint32)])


class PackedTrees(NamedTuple):
    """Trees as rows walk through them: the root, then the children of one node after another."""

    steps: Array  # (m,) STEP
    number: Array  # (m,) int64: of each place, the node that was packed there
    first: Array  # (T + 1,) int64: the root of each tree; at the end the number of nodes
    sets: Array  # (s, c) uint8: whether a category goes left


class TreeNodes(NamedTuple):
    """Nodes of trees, one tree after another; numbers of children count all nodes, or those of their own tree."""

    left: Array  # (m,) -1 for a leaf
    right: Array  # (m,)
    column: Array  # (m,)
    threshold: Array  # (m,)
    missing_left: Array  # (m,)


def packed_trees(nodes: TreeNodes, first: Array, own: bool, chosen: Array, sets: Array) -> PackedTrees:
    """Pack trees whose nodes begin at `first`; `own`: children are counted from their own tree's first node.

    `chosen` (m,) is the number of a node's set in `sets`, -1 where it asks for a number; empty where none has a set.
    """
    left, right, column, threshold, missing_left = nodes
    inner = np.flatnonzero(left >= 0)
    tree = np.searchsorted(first, inner, side="right") - 1
    root = first[tree]
    before = np.searchsorted(inner, first)[tree]  # inner nodes of earlier trees
    children = root + 1 + 2 * (np.arange(len(inner)) - before)
    base = root if own else 0
    place = np.empty(len(left), np.int64)
    place[first[:-1]] = first[:-1]
    place[left[inner] + base], place[right[inner] + base] = children, children + 1
    steps = np.zeros(len(left), STEP)
    number = np.empty(len(left), np.int64)
    number[place] = np.arange(len(left))
    steps["left"], steps["threshold"], steps["column"] = np.arange(len(left)), np.inf, LEAF | MISSING_LEFT
    at = place[inner]
    steps["left"][at], steps["threshold"][at] = children, threshold[inner]
    steps["column"][at] = column[inner].astype(np.uint32) | np.where(missing_left[inner] != 0, MISSING_LEFT, 0)
    if len(chosen):
        by_set = inner[chosen[inner] >= 0]
        steps["column"][place[by_set]] |= BY_SET
        steps["threshold"][place[by_set]] = chosen[by_set]
    sets = np.asarray(sets, np.uint8) if len(sets) else np.zeros((0, 1), np.uint8)
    return PackedTrees(steps.view(np.recarray), number, np.asarray(first, np.int64), np.ascontiguousarray(sets))


PLAIN_LEAVES, PLAIN_ANSWERS, PLAIN_SCORES = (PlainFirst(loop) for loop in (find_leaves, add_answers, add_scores))


def leaves_of_rows(X: Array, trees: PackedTrees) -> Array:
    """The leaf of each row in each tree (n, T), counted from the tree's first node."""
    if PLAIN_LEAVES.suffices(X.size):
        with PLAIN_LEAVES.timed():
            return plain_leaves(X, trees, 0, len(trees.first) - 1) - trees.first[:-1]
    out = np.empty((len(X), len(trees.first) - 1), np.int64)
    find_leaves(X, trees, out)
    return out


def add_leaf_values(X: Array, trees: PackedTrees, value: Array, out: Array) -> None:
    """Add to `out` (n, k) the values (m, k) of the leaves that each row reaches, tree after tree."""
    if not PLAIN_ANSWERS.suffices(X.size):
        add_answers(X, trees, value, out)
        return
    with PLAIN_ANSWERS.timed():
        for leaf in plain_leaves(X, trees, 0, len(trees.first) - 1).T:
            out += value[leaf]


def scores_are_few(X: Array, trees: int) -> bool:
    """Whether to send these rows down so many trees without a compiled loop: few rows, or many down a few trees."""
    return PLAIN_SCORES.suffices(min(X.size, len(X) * trees // 4))  # a way down costs less than looking at a table


def add_tree_scores(X: Array, trees: PackedTrees, value: Array, span: tuple[int, int], out: Array) -> None:
    """Add the values (m,) of the leaves that rows reach in the trees [first, last): tree t to column t mod k."""
    if not scores_are_few(X, span[1] - span[0]):
        add_scores(X, trees, value, span, out)
        return
    with PLAIN_SCORES.timed():
        for t, leaf in enumerate(plain_leaves(X, trees, *span).T, start=span[0]):
            out[:, t % out.shape[1]] += value[leaf]


def plain_leaves(X: Array, trees: PackedTrees, first: int, last: int) -> Array:
    """The leaf of each row in the trees [first, last), its number among all nodes (n, trees)."""
    steps, shape = trees.steps, (len(X), last - first)
    at, row = np.tile(trees.first[first:last], len(X)), np.repeat(np.arange(len(X)), last - first)
    going = np.flatnonzero(steps["column"][at] & LEAF == 0)
    while len(going):
        step = steps[at[going]]
        column, x = step["column"], X[row[going], step["column"] & COLUMN]
        right = ~(x <= step["threshold"])
        lost = np.isnan(x)
        right[lost] = column[lost] & MISSING_LEFT == 0
        by_set = ~lost & (column & BY_SET != 0)
        if by_set.any():
            right[by_set] = trees.sets[step["threshold"][by_set].astype(np.int64), x[by_set].astype(np.int64)] == 0
        at[going] = step["left"].astype(np.int64) + right
        going = going[steps["column"][at[going]] & LEAF == 0]
    return trees.number[at].reshape(shape)
