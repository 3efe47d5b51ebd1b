"""Small trees as bits of leaves, by which many rows ask all questions at once, and what rows find in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from certifit.rows import Array
from certifit.tree.routing.mask_loops import BY_SET, MISSING_LEFT
from certifit.tree.routing.packed_trees import TreeNodes


@dataclass(frozen=True)
class MaskTuning:
    """When to ask all questions is faster than to walk down."""

    most_leaves: int = 64  # of a tree: as many as a word has bits
    fewest_rows: int = 64
    columns_per_tree: int = 4  # to lay columns side by side pays for enough trees


class LeafMasks(NamedTuple):
    """The questions of trees of few leaves, one tree after another, and which leaves they leave."""

    column: Array  # (q,) int64
    threshold: Array  # (q,)
    mask: Array  # (q,) uint64: the leaves that stay for rows that go right
    mark: Array  # (q,) uint8
    first: Array  # (T + 1,) int64: the first question of each tree
    leaves: Array  # (l,) int64: the nodes that are leaves, those of a tree from left to right
    first_leaf: Array  # (T + 1,) int64
    sets: Array  # (s, c) uint8: whether a category goes left


def leaf_masks(
    nodes: TreeNodes, first: Array, chosen: Array, sets: Array, tuning: MaskTuning = MaskTuning()
) -> LeafMasks | None:
    """The questions of trees whose nodes begin at `first`, children after parents; None where a tree is too large."""
    left, right, column, threshold, missing_left = (np.asarray(part) for part in nodes)
    levels, level = [], np.asarray(first[:-1])
    while len(level := level[left[level] >= 0]):
        levels.append(level)
        level = np.concatenate([left[level], right[level]])
    leaf = left < 0
    below = leaf.astype(np.int64)  # leaves below each node
    for level in reversed(levels):
        below[level] = below[left[level]] + below[right[level]]
    if below[first[:-1]].max(initial=0) > tuning.most_leaves:
        return None
    place = np.zeros(len(left), np.int64)  # of the leftmost leaf below each node, in its tree
    for level in levels:
        place[left[level]] = place[level]
        place[right[level]] = place[level] + below[left[level]]
    first_leaf = np.cumsum(np.append(0, below[first[:-1]]))
    tree = np.searchsorted(first, np.flatnonzero(leaf), side="right") - 1
    leaves = np.empty(int(first_leaf[-1]), np.int64)
    leaves[first_leaf[tree] + place[leaf]] = np.flatnonzero(leaf)
    inner = np.flatnonzero(~leaf)
    # A left branch has at most 63 leaves: the other has one.
    lefts, moved = below[left[inner]].astype(np.uint64), place[inner].astype(np.uint64)
    kept = ~(((np.uint64(1) << lefts) - np.uint64(1)) << moved)
    by_set = chosen[inner] >= 0
    mark = np.where(missing_left[inner] != 0, MISSING_LEFT, 0) | np.where(by_set, BY_SET, 0)
    return LeafMasks(
        column[inner].astype(np.int64), np.where(by_set, chosen[inner], threshold[inner]).astype(np.float64), kept,
        mark.astype(np.uint8), np.searchsorted(inner, first).astype(np.int64), leaves, first_leaf,
        np.ascontiguousarray(sets if len(sets) else np.zeros((0, 1)), np.uint8),
    )  # fmt: skip
