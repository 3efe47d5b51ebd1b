"""Trees whose questions stay and whose leaves get new values: after early stopping, from all rows.

Rows that were kept apart to see when to stop have something to say about the leaves, once it is known how many stages
there are. The engine goes through the same stages again with a learner that knows its trees.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from certifit.ensemble.boosting.boosted_trees import FinishedTree
from certifit.ensemble.boosting.leaf_loops import sort_by_leaf
from certifit.ensemble.boosting.stagewise import GrownTree, Stagewise, TreeRequest
from certifit.numerics.compiled.workers import Workers
from certifit.rows import Array
from certifit.tree.binned.bins import CodedRows


def refitted(boosting: Stagewise, rows: CodedRows, F: Array | None) -> Stagewise:
    """The same stages with leaves from all rows of positive weight; F (n, k) are the scores of an earlier fit's."""
    kept, rules = rows.w > 0, boosting.rules
    rows = rows if kept.all() else rows.moved_together(kept)
    new = [tree for tree in boosting.trees if len(tree.goes_left)]
    threads = boosting.learner.workers.count
    learner = KnownTrees(new, rows.codes, boosting.learner.categories, threads)
    again = Stagewise(rows.y, rows.w, boosting.loss, learner, rules)
    if F is not None:
        again.baseline, again.F = boosting.baseline, F[kept]
        again.trees = boosting.trees[: len(boosting.trees) - len(new)]
    try:
        for _ in range(len(new) // rules.scores):
            again.stage()
    finally:
        again.close()
    return again


class KnownTrees:
    """A learner that gives trees which have grown before, one after another, on codes (n, d) of all rows."""

    by_slopes = False

    def __init__(self, trees: list[FinishedTree], codes: Array, categories: tuple[Array, ...], threads: int) -> None:
        self.trees, self.codes, self.categories = iter(trees), codes, categories
        self.workers = Workers(threads)
        self.rows = np.empty(len(codes), np.int32)
        self.places = np.empty(len(codes), np.int32)
        self.borders = np.linspace(0, len(codes), threads + 1).astype(np.int64)

    def close(self) -> None:
        """Let the threads end."""
        self.workers.close()

    def grow(self, wanted: TreeRequest) -> GrownTree:
        """The next tree, with the rows that reach its leaves."""
        tree = next(self.trees)
        runs = np.zeros((len(tree.left), self.workers.count, 2), np.int64)
        walk = (tree.left, tree.right, tree.column, tree.goes_left)

        def send(chunk: int) -> None:
            span = (self.borders[chunk], self.borders[chunk + 1])
            sort_by_leaf(self.codes, walk, span, self.places, self.rows, runs[:, chunk])

        self.workers.run(send)
        leaves = np.flatnonzero(tree.left < 0)
        finish = partial(_with_values, tree, leaves, (runs[:, :, 1] - runs[:, :, 0]).sum(axis=1))
        return GrownTree(self.rows, runs, leaves, tree.low[leaves], tree.high[leaves], finish)


def _with_values(tree: FinishedTree, leaves: Array, count: Array, values: Array) -> FinishedTree:
    """The same tree with the numbers of rows of its leaves (m,), and their values."""
    value = np.zeros(len(tree.value))
    value[leaves] = values
    count = count.copy()
    for i in np.flatnonzero(tree.left >= 0)[::-1]:  # parents come first
        count[i] = count[tree.left[i]] + count[tree.right[i]]
    return replace(tree, value=value, count=count)
