"""A fitted tree as arrays with one entry for each node, named as scikit-learn names them: other tools read these."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from certifit.rows import Array, Block
from certifit.tree.routing.node_places import check_nodes, check_sets, check_width, no_trees, whole_numbers
from certifit.tree.routing.packed_trees import PackedTrees, TreeNodes, leaves_of_rows, packed_trees


def _no_numbers() -> Array:
    return np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class Tree:
    """Nodes in preorder: the root is 0, a left child follows its parent (or, grown best first, in order of growth).

    A row goes left where x <= threshold; one whose value is missing goes left where `missing_go_to_left` says so.
    At a node that asks for a category, with a threshold that is not a number, it goes left where the set of the node
    holds its category; categories that the fit did not meet count as missing.
    """

    children_left: Array  # (m,) number of the left child; -1 for a leaf
    children_right: Array  # (m,)
    feature: Array  # (m,) the column that is asked; -2 for a leaf
    threshold: Array  # (m,) -2 for a leaf
    missing_go_to_left: Array  # (m,) uint8
    impurity: Array  # (m,)
    n_node_samples: Array  # (m,) rows with a positive weight
    weighted_n_node_samples: Array  # (m,)
    value: Array  # (m, t, k) shares of the k classes of t targets; (m, t, 1) means of t amounts
    n_features: int
    n_classes: Array  # (t,) of each target; 1 for amounts
    # Categories, if there are any: their values, one column after another, ascending (v,), and where those of each
    # column begin (d + 1,); the number of a node's set, or -1 where it asks for a number (m,); which categories of
    # its column a set sends left (s, c).
    category_values: Array = field(default_factory=_no_numbers)
    category_first: Array = field(default_factory=_no_numbers)
    category_set: Array = field(default_factory=_no_numbers)
    category_left: Array = field(default_factory=_no_numbers)

    def check_places(self) -> int:
        """Refuse numbers of nodes, columns or sets that point nowhere; return how many columns rows must have."""
        nodes, first = self._nodes(), whole_numbers(self.category_first)
        columns = check_nodes(nodes, np.array([0, self.node_count]), True)
        categories = np.diff(first)
        if len(first) and (len(categories) != self.n_features or (categories < 0).any() or first[0] != 0):
            raise no_trees("a tree whose categories are not those of its columns")
        if len(first) and first[-1] != len(self.category_values):
            raise no_trees("a tree with more or fewer categories than it says")
        check_sets(self.category_set, self.category_left, nodes, categories)
        kinds, shape = whole_numbers(self.n_classes), np.shape(self.value)
        if len(shape) != 3 or shape[:2] != (self.node_count, len(kinds)):
            raise no_trees("a tree whose nodes and values do not fit together")
        if not len(kinds) or kinds.min() < 1 or kinds.max() > shape[2]:
            raise no_trees("a tree with values of other classes")
        return max(columns, int(self.n_features))

    @cached_property
    def columns_asked(self) -> int:
        """How many columns rows must have, of nodes that were looked at before any row walks."""
        return self.check_places()

    @property
    def node_count(self) -> int:
        return len(self.feature)

    capacity = node_count

    @property
    def n_leaves(self) -> int:
        return int((self.children_left < 0).sum())

    @property
    def n_outputs(self) -> int:
        return self.value.shape[1]

    @property
    def max_n_classes(self) -> int:
        return int(self.n_classes.max())

    @property
    def max_depth(self) -> int:
        return int(self.compute_node_depths().max()) - 1

    def compute_node_depths(self) -> Array:
        """The depth of every node, counted from 1 at the root, as scikit-learn counts."""
        depth = np.ones(self.node_count, np.int64)
        for k in np.flatnonzero(self.children_left >= 0):  # parents come first
            depth[[self.children_left[k], self.children_right[k]]] = depth[k] + 1
        return depth

    @cached_property
    def packed(self) -> PackedTrees:
        """The nodes as rows walk through them."""
        first = np.array([0, self.node_count])
        return packed_trees(self._nodes(), first, True, self.category_set, self.category_left)

    def _nodes(self) -> TreeNodes:
        return TreeNodes(
            self.children_left, self.children_right, self.feature, self.threshold, self.missing_go_to_left
        )

    @cached_property
    def likeliest(self) -> Array:
        """The number of the class with the largest share in each node (m, t)."""
        return np.stack([self.value[:, t, :k].argmax(axis=1) for t, k in enumerate(self.n_classes)], axis=1)

    def __getstate__(self) -> dict[str, Any]:
        # What is packed, or likeliest, follows from the nodes.
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def apply_block(self, block: Block) -> Array:
        """The number of the leaf that each row of a block reaches."""
        X = block.X.toarray() if sparse.issparse(block.X) else block.X
        check_width(X, self.columns_asked)
        if len(self.category_first):
            X = self._category_codes(X)
        return leaves_of_rows(X, self.packed)[:, 0]

    def _category_codes(self, X: Array) -> Array:
        """X with categories replaced by their places in their column; those that are not known by NaN."""
        coded = np.array(X, np.float64)
        for j in np.flatnonzero(np.diff(self.category_first)):
            known = self.category_values[self.category_first[j] : self.category_first[j + 1]]
            place = np.minimum(np.searchsorted(known, coded[:, j]), len(known) - 1)
            coded[:, j] = np.where(known[place] == coded[:, j], place, np.nan)
        return coded

    def apply(self, X: Any) -> Array:
        """The number of the leaf that each row reaches."""
        X = X.toarray() if sparse.issparse(X) else np.asarray(X)
        return self.apply_block(Block(X, None, np.ones(len(X)), 0))

    def predict(self, X: Any) -> Array:
        """The value of the leaf that each row reaches: (n, k) for one target of k classes, else (n, t, k)."""
        found = self.value[self.apply(X)]
        return found[:, 0] if self.n_outputs == 1 else found

    def decision_path(self, X: Any) -> sparse.csr_matrix:
        """Which nodes each row passes (n, m)."""
        parent = np.full(self.node_count, -1)
        inner = np.flatnonzero(self.children_left >= 0)
        parent[self.children_left[inner]] = parent[self.children_right[inner]] = inner
        at = self.apply(X)
        rows, nodes = [np.arange(len(at))], [at]
        while len(at):
            above = parent[at]
            kept = above >= 0
            rows.append(rows[-1][kept])
            at = above[kept]
            nodes.append(at)
        row, node = np.concatenate(rows), np.concatenate(nodes)
        return sparse.csr_matrix((np.ones(len(row), np.int64), (row, node)), shape=(len(rows[0]), self.node_count))

    def compute_feature_importances(self, normalize: bool = True) -> Array:
        """The weighted falls of impurity that the splits on each column made (d,), as shares of 1 if `normalize`."""
        inner = np.flatnonzero(self.children_left >= 0)
        mass = self.weighted_n_node_samples * self.impurity
        fall = mass[inner] - mass[self.children_left[inner]] - mass[self.children_right[inner]]
        total = np.bincount(self.feature[inner], fall, self.n_features) / self.weighted_n_node_samples[0]
        size = total.sum()
        return total / size if normalize and size > 0 else total

    def subtree(self, kept: Array) -> Tree:
        """The tree whose inner nodes are those marked in `kept` (m,), with everything below the others cut off."""
        number = np.full(self.node_count, -1)
        order: list[int] = []
        stack = [0]
        while stack:
            k = stack.pop()
            number[k] = len(order)
            order.append(k)
            if kept[k]:
                stack += [int(self.children_right[k]), int(self.children_left[k])]
        nodes = np.array(order)
        leaf = ~kept[nodes]
        changed: dict[str, Any] = {
            "children_left": np.where(leaf, -1, number[self.children_left[nodes]]),
            "children_right": np.where(leaf, -1, number[self.children_right[nodes]]),
            "feature": np.where(leaf, -2, self.feature[nodes]),
            "threshold": np.where(leaf, -2.0, self.threshold[nodes]),
            "missing_go_to_left": np.where(leaf, 0, self.missing_go_to_left[nodes]).astype(np.uint8),
        }
        rest: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in changed}
        by_node = ["impurity", "n_node_samples", "weighted_n_node_samples", "value"]
        if len(self.category_first):
            changed["category_set"] = np.where(leaf, -1, self.category_set[nodes])
            del rest["category_set"]
        return Tree(**changed, **{name: a[nodes] if name in by_node else a for name, a in rest.items()})
