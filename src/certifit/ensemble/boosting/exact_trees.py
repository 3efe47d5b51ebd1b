"""The learner of boosting with exact trees: least-squares trees on slopes, over all thresholds of all columns.

Columns are sorted once, and every tree grows on a copy of their order; a stage that sees a part of the rows keeps
their entries alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from certifit.checkers.tree.adapter import share_of_rows
from certifit.ensemble.boosting.boosted_trees import FinishedTree
from certifit.ensemble.boosting.stagewise import GrownTree, TreeRequest
from certifit.numerics.compiled.workers import Workers
from certifit.rows import Array, Block
from certifit.rows.kept_passes import kept, passes_are_kept
from certifit.tree.exact.criteria import AmountCriterion
from certifit.tree.exact.entries import SplitRules
from certifit.tree.exact.grown_tree import as_tree, leaves_of_table
from certifit.tree.exact.growth import TreeGrower, sorted_table
from certifit.tree.exact.growth_loops import GrowthRules
from certifit.tree.exact.target_sums import amount_sums
from certifit.tree.fitted_tree import Tree
from certifit.tree.pruning import pruned


@dataclass(frozen=True)
class ExactLimits:
    """The rules that a tree must keep to."""

    max_depth: int | None
    max_leaf_nodes: int | None
    min_samples_split: int | float
    min_samples_leaf: int | float
    min_weight_fraction_leaf: float
    min_impurity_decrease: float
    ccp_alpha: float
    columns: int  # that each split looks at


class ExactTrees:
    """Grows trees on rows X (n, d) with weights w (n,) > 0."""

    by_slopes = True

    def __init__(self, X: Array, w: Array, limits: ExactLimits) -> None:
        self.X, self.w, self.limits = X, w, limits
        self.criterion = AmountCriterion("squared_error")
        self.workers = Workers(1)
        self.categories = tuple(np.empty(0) for _ in range(X.shape[1]))
        self.table = sorted_table(X, amount_sums(w[:, None], w, centred=True), np.zeros(X.shape[1], np.int8))

    def close(self) -> None:
        """Nothing runs between trees."""

    def grow(self, wanted: TreeRequest) -> GrownTree:
        """The least-squares tree of the slopes, turned round."""
        assert wanted.slopes is not None
        slopes, seed, bag = -wanted.slopes, wanted.seed, wanted.bag
        w = self.w if bag is None else np.where(bag, self.w, 0.0)
        if passes_are_kept():
            tree = kept(("tree", seed), lambda: self._grown(slopes[:, None], w, seed, bag)[0])
            at = tree.apply_block(Block(self.X, None, w, 0))
        else:
            tree, at = self._grown(slopes[:, None], w, seed, bag)
        leaves = np.flatnonzero(tree.children_left < 0)
        # The rows of a leaf follow each other.
        seen = np.arange(len(at)) if bag is None else np.flatnonzero(bag)
        rows = seen[np.argsort(at[seen], kind="stable")].astype(np.int32)
        ends = np.cumsum(np.bincount(at[seen], minlength=tree.node_count))
        runs = np.stack([np.append(0, ends[:-1]), ends], axis=1)[:, None]
        others = None
        if bag is not None:
            unseen = np.flatnonzero(~bag)
            reached = tree.apply_block(Block(self.X[unseen], None, w[unseen], 0))
            others = unseen, np.searchsorted(leaves, reached)
        free = np.full(len(leaves), np.inf)
        return GrownTree(rows, runs, leaves, -free, free, partial(finished_exact_tree, tree, leaves), None, others)

    def _grown(self, slopes: Array, w: Array, seed: int, bag: Array | None) -> tuple[Tree, Array]:
        """The tree, and the leaf of each row that it has seen (n,)."""
        limits, n = self.limits, len(w)
        kept = slice(None) if bag is None else bag
        sums = amount_sums(slopes[kept], w[kept], centred=True)
        moments, weight = sums.moments, sums.weight
        if bag is not None:
            moments, weight = np.zeros((n, 1), np.int64), np.zeros(n, np.int64)
            moments[bag], weight[bag] = sums.moments, sums.weight
        total = float(w.sum())
        table = self.table._replace(entries=self._entries(bag), moments=moments, weight=weight)
        rules = SplitRules(
            self.criterion.score, 1, share_of_rows(limits.min_samples_leaf, n),
            limits.min_weight_fraction_leaf * total / sums.weight_unit, limits.columns, False, seed,
        )  # fmt: skip
        depth = np.iinfo(np.int64).max if limits.max_depth is None else limits.max_depth
        least = limits.min_impurity_decrease * total * self.criterion.score_unit(sums)
        growth = GrowthRules(depth, share_of_rows(limits.min_samples_split, n), least if least > 0 else -np.inf)
        nodes = TreeGrower(table, slopes, rules, growth).grow(limits.max_leaf_nodes)
        at = leaves_of_table(nodes, table, n)
        measures = self.criterion.measured(nodes, slopes[kept], w[kept], at[kept])
        tree = as_tree(nodes, measures, self.X.shape[1], self.criterion)
        if limits.ccp_alpha > 0:
            tree = pruned(tree, limits.ccp_alpha)
            at = tree.apply_block(Block(self.X, None, w, 0))
        return tree, at

    def _entries(self, bag: Array | None) -> Array:
        """The entries of the rows in the bag, in their order, to be rearranged."""
        entries = self.table.entries
        if bag is None:
            return entries.copy()
        return entries[bag[entries & 0xFFFFFFFF]].reshape(len(entries), -1)


def finished_exact_tree(tree: Tree, leaves: Array, values: Array) -> FinishedTree:
    """A tree with the values of its leaves."""
    inner, m = tree.children_left >= 0, tree.node_count
    value = np.zeros(m)
    value[leaves] = values
    return FinishedTree(
        tree.children_left, tree.children_right, np.where(inner, tree.feature, -1),
        np.where(inner, tree.threshold, 0.0), tree.missing_go_to_left, np.empty((0, 256), np.uint8),
        np.full(m, -1), tree.n_node_samples, value, np.full(m, -np.inf), np.full(m, np.inf),
        tree.weighted_n_node_samples, tree.value[:, 0, 0], tree.impurity,
    )  # fmt: skip
