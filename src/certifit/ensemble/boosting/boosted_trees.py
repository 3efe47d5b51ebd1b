"""Fitted trees of a boosting, as arrays with one entry for each node, and the scores that they add up to."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np

from certifit.checkers.plain.blocks import dense
from certifit.rows import Array, Block
from certifit.tree.fitted_tree import Tree
from certifit.tree.routing.leaf_masks import LeafMasks, MaskTuning, leaf_masks
from certifit.tree.routing.mask_loops import add_masked_scores
from certifit.tree.routing.node_places import check_nodes, check_sets, check_width, no_trees
from certifit.tree.routing.packed_trees import (
    PackedTrees,
    TreeNodes,
    add_tree_scores,
    packed_trees,
    scores_are_few,
)

MEASURES = ("weight", "mean", "impurity")


def _nothing() -> Array:
    return np.zeros(0)


@dataclass(frozen=True, eq=False)
class BoostedTrees:
    """Trees of all stages, one after another; with k scores, tree t is of stage t // k and adds to score t mod k.

    A row goes left where x <= threshold, one whose value is missing where `missing_left` says so. At a node that asks
    for categories, `kinds` is the row of `sides` which says what goes left, by the place of a category in
    `categories`; one that has no place there counts as missing.
    """

    first: Array  # (T + 1,) the root of each tree; at the end the number of nodes
    left: Array  # (m,) number of the left child; -1 for a leaf
    right: Array  # (m,)
    column: Array  # (m,) -1 for a leaf
    threshold: Array  # (m,) 0 for leaves and for categories
    missing_left: Array  # (m,) uint8
    kinds: Array  # (m,) -1 where none
    count: Array  # (m,) training rows
    value: Array  # (m,) what a leaf adds to the score, with the learning rate; 0 elsewhere
    low: Array  # (m,) values that monotone columns allow below a node, before the learning rate
    high: Array  # (m,)
    sides: Array  # (c, 256) uint8
    categories: tuple[Array, ...]  # of each column; empty for numbers
    baseline: Array  # (k,) the scores that stages are added to
    # Of exact trees, what the slopes with their sign turned are in each node: weight, mean and variance (m,).
    weight: Array = field(default_factory=_nothing)
    mean: Array = field(default_factory=_nothing)
    impurity: Array = field(default_factory=_nothing)

    def check_places(self) -> int:
        """Refuse numbers of nodes, columns or sets that point nowhere; return how many columns rows must have."""
        columns = check_nodes(self._nodes(), self.first, False) if self.n_trees else 0
        check_sets(self.kinds, self.sides, self._nodes(), np.array([*map(len, self.categories)], np.int64))
        if np.shape(self.value) != np.shape(self.left) or np.ndim(self.baseline) != 1 or not len(self.baseline):
            raise no_trees("boosted trees whose nodes, values and scores do not fit together")
        return max(columns, len(self.categories))

    @cached_property
    def columns_asked(self) -> int:
        """How many columns rows must have, of nodes that were looked at before any row walks."""
        return self.check_places()

    @property
    def n_trees(self) -> int:
        return len(self.first) - 1

    @cached_property
    def packed(self) -> PackedTrees:
        """The nodes as rows walk through them."""
        return packed_trees(self._nodes(), np.asarray(self.first), False, self.kinds, self.sides)

    @cached_property
    def masks(self) -> LeafMasks | None:
        """The questions that many rows ask all at once; None where a tree has too many leaves."""
        return leaf_masks(self._nodes(), np.asarray(self.first), np.asarray(self.kinds), self.sides)

    def _nodes(self) -> TreeNodes:
        return TreeNodes(self.left, self.right, self.column, self.threshold, self.missing_left)

    def __getstate__(self) -> dict[str, Any]:
        # What is packed follows from the nodes.
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def coded(self, X: Any) -> Array:
        """Rows with categories replaced by their places; new ones by NaN."""
        X = X if isinstance(X, np.ndarray) else dense(X)
        if any(map(len, self.categories)):
            X = X.astype(np.float64)
            for j, kinds in enumerate(self.categories):
                if len(kinds):
                    order = np.argsort(kinds)
                    at = np.minimum(np.searchsorted(kinds, X[:, j], sorter=order), len(kinds) - 1)
                    X[:, j] = np.where(kinds[order[at]] == X[:, j], order[at], np.nan)
        return X

    def add(self, X: Array, start: int, stop: int, out: Array) -> None:
        """Add what the trees [start, stop) say of coded rows to scores (n, k)."""
        check_width(X, self.columns_asked)
        if self._asks_all(X, stop - start):
            add_masked_scores(X, self.masks, self.value, (start, stop), out)
        else:
            add_tree_scores(X, self.packed, self.value, (start, stop), out)

    def _asks_all(self, X: Array, trees: int, tuning: MaskTuning = MaskTuning()) -> bool:
        """Whether all questions of so many trees are asked at once, which takes some rows and small trees."""
        many = len(X) >= tuning.fewest_rows and X.shape[1] <= tuning.columns_per_tree * trees
        return many and not scores_are_few(X, trees) and self.masks is not None

    def scores(self, block: Block) -> Array:
        """The scores of a block's rows (n, k)."""
        out = np.tile(self.baseline, (len(block.w), 1))
        self.add(self.coded(block.X), 0, self.n_trees, out)
        return out

    def staged(self, block: Block) -> Array:
        """The scores after each stage (n, stages, k)."""
        X, k = self.coded(block.X), len(self.baseline)
        out = np.tile(self.baseline, (len(X), 1))
        found = []
        for start in range(0, self.n_trees, k):
            self.add(X, start, start + k, out)
            found.append(out.copy())
        return np.stack(found, axis=1) if found else np.empty((len(X), 0, k))

    def tree(self, t: int, d: int, learning_rate: float) -> Tree:
        """Exact tree t by itself, as scikit-learn has it: leaves without the learning rate, means in other nodes."""
        part = slice(int(self.first[t]), int(self.first[t + 1]))
        leaf = self.left[part] < 0
        value = np.where(leaf, self.value[part] / learning_rate, self.mean[part])
        return Tree(
            np.where(leaf, -1, self.left[part] - part.start), np.where(leaf, -1, self.right[part] - part.start),
            np.where(leaf, -2, self.column[part]), np.where(leaf, -2.0, self.threshold[part]),
            self.missing_left[part], self.impurity[part], self.count[part], self.weight[part],
            value[:, None, None], d, np.ones(1, np.int64),
        )  # fmt: skip


@dataclass(frozen=True)
class FinishedTree:
    """One tree, with nodes numbered from 0."""

    left: Array
    right: Array
    column: Array
    threshold: Array
    missing_left: Array
    sides: Array  # (inner nodes that ask for categories, 256)
    kinds: Array  # (m,) row of `sides`; -1 where none
    count: Array
    value: Array
    low: Array
    high: Array
    weight: Array = field(default_factory=_nothing)
    mean: Array = field(default_factory=_nothing)
    impurity: Array = field(default_factory=_nothing)
    goes_left: Array = field(default_factory=_nothing)  # (m, 256) uint8 where each code goes; while a fit goes on


def joined_trees(trees: list[FinishedTree], categories: tuple[Array, ...], baseline: Array) -> BoostedTrees:
    """Trees of all stages in one."""
    first = np.cumsum([0, *(len(tree.left) for tree in trees)])
    sides = np.cumsum([0, *(len(tree.sides) for tree in trees)])

    def joined(name: str, more: Array | None = None, kind: Any = np.int64) -> Array:
        """One array of all trees; places of nodes or sets move on by `more`, but for -1."""
        parts = [getattr(tree, name) for tree in trees]
        if more is not None:
            parts = [np.where(part < 0, -1, part + by) for part, by in zip(parts, more[:-1], strict=True)]
        return np.concatenate([np.empty(0, kind), *parts]).astype(kind)

    return BoostedTrees(
        first, joined("left", first), joined("right", first), joined("column"), joined("threshold", kind=np.float64),
        joined("missing_left", kind=np.uint8), joined("kinds", sides), joined("count"),
        joined("value", kind=np.float64), joined("low", kind=np.float64), joined("high", kind=np.float64),
        np.concatenate([np.empty((0, 256), np.uint8), *(t.sides for t in trees)]),
        categories, np.asarray(baseline, np.float64), *(joined(name, kind=np.float64) for name in MEASURES),
    )  # fmt: skip


def _moved_back(places: Array, by: int) -> Array:
    """Places of nodes or sets, counted from another one; -1 stays."""
    return np.where(places < 0, -1, places - by)


def split_trees(trees: BoostedTrees) -> list[FinishedTree]:
    """The trees of all stages one by one, to go on from."""
    out = []
    for start, stop in zip(trees.first[:-1], trees.first[1:], strict=True):
        part = slice(start, stop)
        kinds = trees.kinds[part]
        used = kinds[kinds >= 0]
        shift = used.min() if len(used) else 0
        out.append(
            FinishedTree(
                _moved_back(trees.left[part], start), _moved_back(trees.right[part], start), trees.column[part],
                trees.threshold[part], trees.missing_left[part], trees.sides[used], _moved_back(kinds, shift),
                trees.count[part], trees.value[part], trees.low[part], trees.high[part],
                *(getattr(trees, name)[part] for name in MEASURES),
            )
        )  # fmt: skip
    return out
