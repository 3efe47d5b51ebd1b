"""The least and the largest score when every number of a row may move by up to ε: tree by tree, and column by column.

Of one tree, the leaves that a row can reach are known exactly, and the bounds of trees add up. Where every tree asks
about one column only, the trees of a column are one function, whose extremes add up exactly (Andriushchenko & Hein,
Provably robust boosted decision stumps and trees against adversarial attacks, 2019). Missing entries stay missing.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from certifit.checkers.tree.plain_tree import PlainTree
from certifit.checkers.tree.sums.tree_sum import SummedTree, TreeSum, tree_of_steps
from certifit.rows import Array


def score_bounds(model: TreeSum, X: Array, epsilon: float) -> tuple[Array, Array]:
    """The least and the largest scores (n, k) within ε of rows (n, d): exact for additive sums, else bounds."""
    model = one_tree_a_column(model) if model.additive and not model.categorical.any() else model
    low, high = (np.tile(model.baseline, (len(X), 1)) for _ in range(2))
    for tree in model.trees:
        least, largest = tree_bounds(tree, X, epsilon)
        low[:, tree.score] += least
        high[:, tree.score] += largest
    return low, high


def tree_bounds(one: SummedTree, X: Array, epsilon: float) -> tuple[Array, Array]:
    """The least and the largest value of the leaves that rows within ε reach (n,)."""
    tree = one.tree
    low, high = np.full(len(X), np.inf), np.full(len(X), -np.inf)
    stack = [(0, np.arange(len(X)))]
    while stack:
        k, rows = stack.pop()
        if not len(rows):
            continue
        if tree.left[k] < 0:
            low[rows] = np.minimum(low[rows], one.value[k])
            high[rows] = np.maximum(high[rows], one.value[k])
            continue
        x = X[rows, tree.column[k]]
        near, far = (x, x) if _is_set(tree, k) else (x - epsilon, x + epsilon)
        at = np.full(len(rows), k)
        stack.append((int(tree.left[k]), rows[tree.goes_left(at, near)]))
        stack.append((int(tree.right[k]), rows[~tree.goes_left(at, far)]))
    return low, high


def _is_set(tree: PlainTree, node: int) -> bool:
    return tree.categories is not None and bool(tree.categories.chosen[node] >= 0)


def one_tree_a_column(model: TreeSum) -> TreeSum:
    """An additive sum with the trees of each column added up to one."""
    found = []
    for score in range(len(model.baseline)):
        for j in range(model.columns):
            own = [t for t in model.trees if t.score == score and (t.tree.column[t.tree.inner] == j).any()]
            if own:
                found.append(replace(_sum_of(own, j, model.columns), score=score))
    whole = np.zeros(len(model.baseline))
    for tree in model.trees:
        if not len(tree.tree.inner):
            whole[tree.score] += tree.value[0]
    return TreeSum(tuple(found), model.baseline + whole, model.columns, model.link)


def _sum_of(trees: list[SummedTree], column: int, columns: int) -> SummedTree:
    """One tree for several that ask about one column."""
    steps = np.unique(np.concatenate([tree.tree.threshold[tree.tree.inner] for tree in trees]))
    steps = steps[np.isfinite(steps)]
    inside = np.append(steps, np.inf)  # the largest number of each cell
    rows = np.full((len(inside) + 1, columns), np.nan)
    rows[:-1, column] = inside
    values = np.zeros(len(rows))
    for tree in trees:
        # Thresholds are compared as they are: they are the numbers of the type that rows are rounded to, or between.
        as_they_are = replace(tree, tree=replace(tree.tree, dtype=np.float64))
        values += as_they_are(rows)
    found = tree_of_steps(column, steps, values[:-1], float(values[-1]), columns)
    return replace(found, tree=replace(found.tree, dtype=trees[0].tree.dtype))
