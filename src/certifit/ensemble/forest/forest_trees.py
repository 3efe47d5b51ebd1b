"""The trees of a forest, one after another in the same arrays: quick to answer with, quick to store."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np

from certifit.checkers.plain.blocks import dense
from certifit.rows import Array, Block
from certifit.tree.binned.bins import ColumnBins
from certifit.tree.fitted_tree import Tree
from certifit.tree.routing.code_loops import add_coded_answers
from certifit.tree.routing.coded_trees import CodedTrees, CodingTuning, coded_trees
from certifit.tree.routing.node_places import check_nodes, check_width, no_trees, whole_numbers
from certifit.tree.routing.packed_trees import (
    PLAIN_ANSWERS,
    PackedTrees,
    TreeNodes,
    add_leaf_values,
    leaves_of_rows,
    packed_trees,
)

BY_NODE = (
    "children_left", "children_right", "feature", "threshold", "missing_go_to_left", "impurity", "n_node_samples",
    "weighted_n_node_samples", "value",
)  # fmt: skip


def _one_target() -> Array:
    return np.zeros(0, np.int64)


def plain_rows(block: Block) -> Array:
    """The rows of a block, in the precision that they have."""
    return block.X if isinstance(block.X, np.ndarray) else dense(block.X)


@dataclass(frozen=True, eq=False)
class ForestTrees:
    """Nodes of all trees; the numbers of children count from the first node of their own tree.

    A row goes left where x <= threshold; one whose value is missing goes left where `missing_go_to_left` says so.
    """

    first: Array  # (trees + 1,) where the nodes of each tree begin
    seed: Array  # (trees,) int64: what decides its bootstrap and its draws of columns
    children_left: Array  # (m,) int32; -1 for a leaf
    children_right: Array  # (m,) int32
    feature: Array  # (m,) int32; -2 for a leaf
    threshold: Array  # (m,) float64; -2 for a leaf
    missing_go_to_left: Array  # (m,) uint8
    impurity: Array  # (m,)
    n_node_samples: Array  # (m,) int32: different rows
    weighted_n_node_samples: Array  # (m,)
    value: Array  # (m, k) shares of classes; (m, 1) means of amounts; of several targets (m, t k), one after another
    n_classes: Array = field(default_factory=_one_target)  # (t,) of each target, 1 for amounts; empty where t = 1

    def check_places(self) -> int:
        """Refuse numbers of nodes or columns that point nowhere; return how many columns rows must have."""
        columns = check_nodes(self._nodes(), self.first, True)
        shape = np.shape(self.value)
        if len(shape) != 2 or shape[0] != len(self.feature) or len(self.first) != len(self.seed) + 1:
            raise no_trees("a forest whose trees, nodes and values do not fit together")
        if len(self.n_classes) and shape[1] != self.targets * whole_numbers(self.n_classes).max():
            raise no_trees("a forest with values of other targets")
        return columns

    @cached_property
    def columns_asked(self) -> int:
        """How many columns rows must have, of nodes that were looked at before any row walks."""
        return self.check_places()

    @property
    def targets(self) -> int:
        return max(len(self.n_classes), 1)

    def __len__(self) -> int:
        return len(self.seed)

    @cached_property
    def packed(self) -> PackedTrees:
        """The nodes as rows walk through them."""
        return packed_trees(self._nodes(), np.asarray(self.first), True, np.zeros(0), np.zeros(0))

    def _nodes(self) -> TreeNodes:
        return TreeNodes(
            self.children_left, self.children_right, self.feature, self.threshold, self.missing_go_to_left
        )

    @cached_property
    def coded(self) -> tuple[CodedTrees, ColumnBins] | None:
        """The same for rows of codes; None where a column has too many thresholds."""
        return coded_trees(self.packed, 1 + max(0, int(self.feature.max())), self._value_by_place)

    @cached_property
    def _value_by_place(self) -> Array:
        """The values in the order in which nodes are packed: a leaf is looked up once and not twice."""
        return np.asarray(self.value)[self.packed.number]

    def add_answers(self, block: Block, out: Array, tuning: CodingTuning = CodingTuning()) -> None:
        """Add to `out` (n, k) the values of the leaves that a block's rows reach, tree after tree."""
        n, d = block.X.shape
        check_width(block.X, self.columns_asked)
        if out.shape[1] != self.value.shape[1]:
            raise no_trees(f"a forest with {self.value.shape[1]} values for {out.shape[1]} answers")
        many = n >= tuning.fewest_rows and d <= tuning.columns_per_tree * len(self)
        if many and not PLAIN_ANSWERS.suffices(n * d) and self.coded is not None:
            trees, bins = self.coded
            asked = block._replace(X=plain_rows(block)[:, : len(bins.borders)])
            add_coded_answers(bins.encode_block(asked), trees, self._value_by_place, out)
        else:
            add_leaf_values(plain_rows(block), self.packed, self.value, out)

    def leaves(self, block: Block) -> Array:
        """The number of the leaf that each row of a block reaches in each tree (n, trees)."""
        check_width(block.X, self.columns_asked)
        return leaves_of_rows(plain_rows(block), self.packed)

    def __getstate__(self) -> dict[str, Any]:
        # What is packed follows from the nodes.
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @classmethod
    def of(cls, trees: list[Tree], seeds: Array) -> ForestTrees:
        """Put trees one after another."""
        first = np.cumsum([0, *(tree.node_count for tree in trees)])
        joined = {name: np.concatenate([getattr(tree, name) for tree in trees]) for name in BY_NODE[:-1]}
        value = np.concatenate([tree.value.reshape(tree.node_count, -1) for tree in trees])
        kinds = trees[0].n_classes if trees[0].n_outputs > 1 else _one_target()
        return cls(first, np.asarray(seeds, np.int64), **joined, value=value, n_classes=kinds)

    def joined(self, more: ForestTrees) -> ForestTrees:
        """These trees and then others."""
        first = np.concatenate([self.first, more.first[1:] + self.first[-1]])
        rest = {name: np.concatenate([getattr(self, name), getattr(more, name)]) for name in ("seed", *BY_NODE)}
        return ForestTrees(first, **rest, n_classes=self.n_classes)

    def tree(self, t: int, n_features: int) -> Tree:
        """One of the trees, with scikit-learn's names and types."""
        span = slice(int(self.first[t]), int(self.first[t + 1]))
        left, right, feature = (
            getattr(self, name)[span].astype(np.int64) for name in ("children_left", "children_right", "feature")
        )
        return Tree(
            left, right, feature, self.threshold[span], self.missing_go_to_left[span], self.impurity[span],
            self.n_node_samples[span].astype(np.int64), self.weighted_n_node_samples[span],
            self.value[span].reshape(len(left), self.targets, -1), n_features,
            self.n_classes if len(self.n_classes) else np.array([self.value.shape[1]]),
        )  # fmt: skip

    def importances(self, n_features: int) -> Array:
        """The mean over trees of the falls of impurity that splits on each column made, as shares of 1 (d,)."""
        found = np.zeros(n_features)
        for t in range(len(self)):
            found += self.tree(t, n_features).compute_feature_importances()
        total = found.sum()
        return found / total if total > 0 else found
