"""Fitted trees of a boosting as plain arrays: where rows go, what they add up to, and how large stumps are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from certifit.rows import Array


@dataclass(frozen=True)
class PlainTrees:
    """Trees of all stages, as `BoostedTrees` has them."""

    first: Array
    left: Array
    right: Array
    column: Array
    threshold: Array
    missing_left: Array
    kinds: Array
    count: Array
    value: Array
    low: Array
    high: Array
    sides: Array
    categories: tuple[Array, ...]
    baseline: Array

    def coded(self, X: Array) -> Array:
        """Rows (n, d) with categories replaced by their places, and by NaN where they have none."""
        X = X.astype(np.float64)
        for j, kinds in enumerate(self.categories):
            if len(kinds):
                same = X[:, j][:, None] == np.asarray(kinds)
                X[:, j] = np.where(same.any(axis=1), same.argmax(axis=1), np.nan)
        return X

    def leaves(self, t: int, X: Array) -> Array:
        """The leaf of tree t that each coded row reaches."""
        return self.leaf_table(t, t + 1, X)[0]

    def leaf_table(self, start: int, stop: int, X: Array) -> Array:
        """The leaves that coded rows reach in the trees from `start` to before `stop` (trees, n), all at once.

        A leaf's children are itself: rows that have arrived stay, and are left out when they are half of those that
        are looked at, because to choose the others takes as long as to let them all go on.
        """
        n, d = X.shape
        first, nodes = int(self.first[start]), slice(int(self.first[start]), int(self.first[stop]))
        is_leaf, kinds = self.left[nodes] < 0, self.kinds[nodes]
        children = np.stack([self.right[nodes] - first, self.left[nodes] - first], axis=1)
        children = np.where(is_leaf[:, None], np.arange(len(is_leaf))[:, None], children).ravel()
        column, threshold = np.where(is_leaf, 0, self.column[nodes]), self.threshold[nodes]
        entries, missing_left = X.ravel(), self.missing_left[nodes] != 0
        node, row = np.repeat(self.first[start:stop] - first, n), np.tile(np.arange(n) * d, stop - start)
        has_kinds, has_missing = bool((kinds >= 0).any()), bool(np.isnan(entries).any())
        at, moving = np.empty(len(node), np.int64), np.arange(len(node))
        while len(node):
            inner = ~is_leaf.take(node)
            if 2 * np.count_nonzero(inner) <= len(node):
                at[moving] = node
                some = np.flatnonzero(inner)
                node, row, moving = node.take(some), row.take(some), moving.take(some)
            x = entries.take(row + column.take(node))
            goes_left = x <= threshold.take(node)
            if has_kinds:
                both = (kinds[node] >= 0) & ~np.isnan(x)
                goes_left[both] = self.sides[kinds[node[both]], x[both].astype(np.int64)] != 0
            if has_missing:
                lost = np.isnan(x)
                goes_left[lost] = missing_left[node[lost]]
            node = children.take(2 * node + goes_left)
        return at.reshape(stop - start, n) + first

    def each_tree_leaves(self, trees: int, X: Array, entries: int = 200_000) -> Iterator[Array]:
        """The leaves (n,) of rows in one tree after another, so many, found for several trees at a time."""
        step = max(1, entries // max(1, len(X)))
        for start in range(0, trees, step):
            yield from self.leaf_table(start, min(start + step, trees), X)


def plain_trees(trees: Any) -> PlainTrees:
    """The arrays of fitted trees; anything but whole trees is found by `is_whole`."""
    arrays = {
        name: np.asarray(getattr(trees, name)) for name in PlainTrees.__dataclass_fields__ if name != "categories"
    }
    return PlainTrees(**arrays, categories=tuple(np.asarray(c) for c in trees.categories))


def is_whole(trees: PlainTrees, d: int, scores: int) -> bool:
    """Whether every tree has one root, every other node one parent before it, and columns that are there."""
    m = len(trees.left)
    whole = ("first", "left", "right", "column", "missing_left", "kinds", "count", "sides")
    if any(getattr(trees, name).dtype.kind not in "iub" for name in whole):
        return False
    # Sums that begin with whole numbers would stay whole.
    if any(getattr(trees, name).dtype.kind != "f" for name in ("threshold", "value", "low", "high", "baseline")):
        return False
    if trees.baseline.shape != (scores,) or (len(trees.first) - 1) % scores or len(trees.categories) != d:
        return False
    if trees.first.ndim != 1 or not len(trees.first) or trees.sides.ndim != 2 or trees.sides.shape[1] != 256:
        return False
    names = ("right", "column", "threshold", "missing_left", "kinds", "count", "value", "low", "high")
    by_node = [getattr(trees, name) for name in names]
    if any(a.shape != (m,) for a in by_node) or trees.first[0] != 0 or trees.first[-1] != m:
        return False
    inner = np.flatnonzero(trees.left >= 0)
    children = np.sort(np.concatenate([trees.left[inner], trees.right[inner], trees.first[:-1]]))
    after = (trees.left[inner] > inner) & (trees.right[inner] > inner)
    column = (trees.column[inner] >= 0) & (trees.column[inner] < d)
    kinds = (trees.kinds < len(trees.sides)).all() and (trees.right[trees.left < 0] == -1).all()
    stop = trees.first[np.searchsorted(trees.first, inner, side="right")]
    within = (trees.left[inner] < stop) & (trees.right[inner] < stop)
    return bool(np.array_equal(children, np.arange(m)) and (after & column & within).all() and kinds)


def final_scores(trees: PlainTrees, X: Array) -> Array:
    """The scores of coded rows after all stages (n, k)."""
    k = len(trees.baseline)
    F = np.tile(trees.baseline, (len(X), 1))
    for t, at in enumerate(trees.each_tree_leaves(len(trees.first) - 1, X)):
        F[:, t % k] += trees.value[at]
    return F


def stump_size(trees: PlainTrees) -> float:
    """Σ |β| of all stumps, those that ask the same taken together."""
    jumps: dict[tuple[Any, ...], float] = {}
    k = len(trees.baseline)
    for t, root in enumerate(trees.first[:-1]):
        if trees.left[root] >= 0:
            sides = bytes(trees.sides[trees.kinds[root]]) if trees.kinds[root] >= 0 else b""
            asked = (t % k, int(trees.column[root]), float(np.nan_to_num(trees.threshold[root])), sides,
                     int(trees.missing_left[root]))  # fmt: skip
            jump = float(trees.value[trees.right[root]] - trees.value[trees.left[root]])
            jumps[asked] = jumps.get(asked, 0.0) + jump
    return float(sum(map(abs, jumps.values())))
