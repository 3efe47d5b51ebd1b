"""A fitted tree as plain arrays, whichever library grew it; where rows go in it, and whether it is a tree at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from certifit.checkers.plain.blocks import dense
from certifit.exceptions import DataError
from certifit.rows import Array, Block


@dataclass(frozen=True)
class PlainTree:
    """One entry for each node; a row goes left where x <= threshold, or is missing and `missing_left` says so."""

    left: Array  # (m,) -1 for a leaf
    right: Array  # (m,)
    column: Array  # (m,)
    threshold: Array  # (m,)
    missing_left: Array  # (m,) bool
    depth: Array  # (m,) of the root 0
    dtype: Any = np.float64  # to which values are rounded before they are compared

    @property
    def inner(self) -> Array:
        """The numbers of the nodes that are split."""
        return np.flatnonzero(self.left >= 0)

    def leaves(self, block: Block) -> Array:
        """The number of the leaf that each row of a block reaches."""
        X = dense(block.X).astype(self.dtype)
        at = np.zeros(len(X), np.int64)
        moving = np.flatnonzero(self.left[at] >= 0)
        while len(moving):
            node = at[moving]
            x = X[moving, self.column[node]]
            goes_left = np.where(np.isnan(x), self.missing_left[node], x <= self.threshold[node])
            at[moving] = np.where(goes_left, self.left[node], self.right[node])
            moving = moving[self.left[at[moving]] >= 0]
        return at

    def adds_up(self, of_leaves: Array) -> Array:
        """The sums over the leaves below each node, of numbers (m, …) that are 0 at inner nodes."""
        total = np.array(of_leaves, copy=True)
        for k in self.inner[np.argsort(-self.depth[self.inner], kind="stable")]:  # children before their parents
            total[k] = total[self.left[k]] + total[self.right[k]]
        return total


def plain_tree(tree: Any, n_columns: int, dtype: Any = np.float64) -> PlainTree:
    """Read scikit-learn's arrays; what is no binary tree over these columns is refused."""
    left, right = (np.asarray(getattr(tree, name)) for name in ("children_left", "children_right"))
    column, threshold = np.asarray(tree.feature), np.asarray(tree.threshold, dtype=np.float64)
    m = len(left)
    missing = np.asarray(getattr(tree, "missing_go_to_left", np.zeros(m)), dtype=bool)
    if not (m and left.shape == right.shape == column.shape == threshold.shape == missing.shape):
        raise _no_tree("arrays of different lengths")
    classes, value = np.asarray(tree.n_classes), np.asarray(tree.value)
    if tree.n_features != n_columns or value.shape != (m, len(classes), max(classes, default=0)):
        raise _no_tree("numbers of columns, targets or classes that are not those of its nodes")
    inner = left >= 0
    if any(a.dtype.kind not in "iu" for a in (left, right, column, np.asarray(tree.n_features), classes)):
        raise _no_tree("numbers of children or columns that are not whole")
    if not np.array_equal(inner, right >= 0):
        raise _no_tree("a node with one child")
    children = np.concatenate([left[inner], right[inner]])
    if not np.array_equal(np.sort(children), np.arange(1, m)):
        raise _no_tree("a node that is not the child of exactly one other")
    if inner.any() and not (column[inner].min() >= 0 and column[inner].max() < n_columns):
        raise _no_tree(f"a split on a column beyond the {n_columns} that there are")
    if np.isnan(threshold[inner]).any():
        raise _no_tree("a threshold that is not a number")
    return PlainTree(left, right, column, threshold, missing, _depths(left, right, m), dtype)


def _depths(left: Array, right: Array, m: int) -> Array:
    """Depths from the root, level by level; a node that is never reached lies on a circle."""
    depth, level = np.full(m, -1), np.zeros(1, np.int64)
    for d in range(m):
        if not len(level):
            break
        depth[level] = d
        split = level[left[level] >= 0]
        level = np.concatenate([left[split], right[split]])
    if (depth < 0).any():
        raise _no_tree("a circle of nodes")
    return depth


def _no_tree(got: str) -> DataError:
    return DataError(got=f"{got} in a fitted tree", wanted="a binary tree as its fit left it", fix="Fit it again.")
