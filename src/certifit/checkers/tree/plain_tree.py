"""A fitted tree as plain arrays, whichever library grew it; where rows go in it, and whether it is a tree at all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from certifit.checkers.plain.blocks import dense
from certifit.exceptions import DataError
from certifit.rows import Array, Block


@dataclass(frozen=True)
class CategorySets:
    """Which categories the nodes of a tree send left; those that are not known count as missing."""

    values: Array  # (v,) the categories of one column after another, ascending
    first: Array  # (d + 1,) where those of each column begin
    chosen: Array  # (m,) the number of a node's set; -1 where it asks for a number
    left: Array  # (s, c) bool: which categories of its column a set sends left

    def of_column(self, j: int) -> Array:
        return self.values[self.first[j] : self.first[j + 1]]


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
    categories: CategorySets | None = None
    # Of a library that clips the values of nodes: 1 for columns with which the first value rises, -1 where it falls.
    clips: Array | None = None  # (d,)

    @property
    def inner(self) -> Array:
        """The numbers of the nodes that are split."""
        return np.flatnonzero(self.left >= 0)

    @cached_property
    def inner_levels(self) -> list[Array]:
        """The nodes that are split, of one depth after another, from the root down."""
        inner = self.inner[np.argsort(self.depth[self.inner], kind="stable")]
        return np.split(inner, np.flatnonzero(np.diff(self.depth[inner])) + 1) if len(inner) else []

    def goes_left(self, node: Array, x: Array) -> Array:
        """Whether rows with the values x (r,) go left at their nodes (r,)."""
        x = x.astype(self.dtype)
        left = np.where(np.isnan(x), self.missing_left[node], x <= self.threshold[node])
        if self.categories is None:
            return left
        for j in np.unique(self.column[node]):
            known = self.categories.of_column(j)
            here = np.flatnonzero((self.column[node] == j) & (self.categories.chosen[node] >= 0))
            if not len(here):
                continue
            place = np.minimum(np.searchsorted(known, x[here]), len(known) - 1)
            chosen = self.categories.left[self.categories.chosen[node[here]], place]
            left[here] = np.where(known[place] == x[here], chosen, self.missing_left[node[here]])
        return left

    def levels(self, block: Block) -> Iterator[tuple[Array, Array]]:
        """For one depth after another, the rows of a block that reach it and their nodes there."""
        X = dense(block.X)
        at = np.zeros(len(X), np.int64)
        moving = np.arange(len(X))
        while len(moving):
            yield moving, at[moving]
            moving = moving[self.left[at[moving]] >= 0]
            node = at[moving]
            left = self.goes_left(node, X[moving, self.column[node]])
            at[moving] = np.where(left, self.left[node], self.right[node])

    def leaves(self, block: Block) -> Array:
        """The number of the leaf that each row of a block reaches."""
        at = np.zeros(len(block.w), np.int64)
        for rows, nodes in self.levels(block):
            at[rows] = nodes
        return at

    def clipped(self, mean: Array) -> Array:
        """The values (m,) that a library gives nodes with these means: those that monotone columns allow.

        Between the branches of a split on such a column lies the middle of their means, which neither may cross.
        """
        if self.clips is None:
            return mean
        low, high = np.full(len(mean), -np.inf), np.full(len(mean), np.inf)
        for level in self.inner_levels:
            direction = self.clips[self.column[level]]
            for child in (self.left[level], self.right[level]):
                low[child], high[child] = low[level], high[level]
            for sign, below, above in ((1, self.left, self.right), (-1, self.right, self.left)):
                nodes = level[direction == sign]
                middle = mean[below[nodes]] / 2 + mean[above[nodes]] / 2
                high[below[nodes]] = low[above[nodes]] = middle
        return np.minimum(np.maximum(mean, low), high)

    def adds_up(self, of_leaves: Array) -> Array:
        """The sums over the leaves below each node, of numbers (m, …) that are 0 at inner nodes."""
        total = np.array(of_leaves, copy=True)
        for level in self.inner_levels[::-1]:  # children before their parents
            total[level] = total[self.left[level]] + total[self.right[level]]
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
    categories = _category_sets(tree, n_columns, column, inner)
    asks = inner if categories is None else inner & (categories.chosen < 0)
    if np.isnan(threshold[asks]).any():
        raise _no_tree("a threshold that is not a number")
    return PlainTree(left, right, column, threshold, missing, _depths(left, right, m), dtype, categories)


def _category_sets(tree: Any, n_columns: int, column: Array, inner: Array) -> CategorySets | None:
    """The sets of a tree that splits categories; those that do not belong to its nodes and columns are refused."""
    first = np.asarray(getattr(tree, "category_first", ()))
    if not len(first):
        return None
    values, chosen = np.asarray(tree.category_values, np.float64), np.asarray(tree.category_set)
    sets = np.asarray(tree.category_left)
    if any(a.dtype.kind not in "iub" for a in (first, chosen, sets)):
        raise _no_tree("numbers of categories that are not whole")
    sizes = np.diff(first)
    fits = (
        len(sizes) == n_columns and (sizes >= 0).all() and first[0] == 0 and first[-1] == len(values)
        and chosen.shape == inner.shape and sets.ndim == 2 and sets.shape[1] >= sizes.max()
        and chosen.max(initial=-1) < len(sets) and np.isin(sets, (0, 1)).all()
        and not (chosen[~inner] >= 0).any() and np.array_equal(chosen[inner] >= 0, sizes[column[inner]] > 0)
    )  # fmt: skip
    if not fits:
        raise _no_tree("sets of categories that are not those of its nodes")
    if any((np.diff(values[a:b]) <= 0).any() for a, b in pairwise(first)):
        raise _no_tree("categories that do not ascend")
    return CategorySets(values, first, chosen, sets.astype(bool))


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
