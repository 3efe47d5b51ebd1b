"""Trees whose questions stay and whose leaves get new values: after early stopping, from all rows.

Rows that were kept apart to see when to stop have something to say about the leaves, once it is known how many stages
there are. The engine goes through the same stages again with a learner that knows its trees.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np

from certifit.ensemble.boosting.boosted_trees import FinishedTree
from certifit.ensemble.boosting.leaf_loops import sort_by_leaf
from certifit.ensemble.boosting.stagewise import GrownTree, Stagewise, TreeLearner, TreeRequest
from certifit.numerics.compiled.workers import Workers
from certifit.rows import Array
from certifit.tree.binned.bins import CodedRows


def refitted(boosting: Stagewise, training: CodedRows, held_out: CodedRows, F: Array | None) -> Stagewise:
    """The same stages with leaves from all rows, those held out last; F (n, k) are their scores of an earlier fit."""
    new = [tree for tree in boosting.trees if len(tree.goes_left)]
    learner = KnownTrees(new, [training.codes, held_out.codes], boosting.learner)
    y, w = np.concatenate([training.y, held_out.y]), np.concatenate([training.w, held_out.w])
    again = Stagewise(y, w, boosting.loss, learner, boosting.rules)
    if F is not None:
        again.baseline, again.F = boosting.baseline, F
        again.trees = boosting.trees[: len(boosting.trees) - len(new)]
        again.levels = boosting.levels[: again.n_stages]
    try:
        for _ in range(len(new) // boosting.rules.scores):
            again.stage()
    finally:
        again.close()
    return again


class KnownTrees:
    """A learner that gives trees which have grown before, one after another, on codes (n, d) in several parts."""

    by_slopes = False

    def __init__(self, trees: list[FinishedTree], parts: list[Array], grower: TreeLearner) -> None:
        self.trees, self.categories = iter(trees), grower.categories
        starts = np.cumsum([0, *map(len, parts)])
        threads = grower.workers.count
        # The first part is shared by the threads, and each of the others, which are smaller, has one of its own.
        self.chunks = [(parts[0], int(a), int(b), 0) for a, b in pairwise(np.linspace(0, starts[1], threads + 1))]
        self.chunks += [(part, 0, len(part), int(at)) for part, at in zip(parts[1:], starts[1:-1], strict=True)]
        self.workers = Workers(len(self.chunks))
        self.rows, self.places = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.int32)

    def close(self) -> None:
        """Let the threads end."""
        self.workers.close()

    def grow(self, wanted: TreeRequest) -> GrownTree:
        """The next tree, with the rows that reach its leaves."""
        tree = next(self.trees)
        runs = np.zeros((len(tree.left), self.workers.count, 2), np.int64)
        walk = (tree.left, tree.right, tree.column, tree.goes_left)

        def send(chunk: int) -> None:
            codes, first, last, offset = self.chunks[chunk]
            sort_by_leaf(codes, walk, (first, last, offset), self.places, self.rows, runs[:, chunk])

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
