"""A fitted ensemble as a sum of trees, whichever library grew it: F(x) = b + Σ of the leaves that x reaches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from certifit.checkers.tree.plain_tree import CategorySets, PlainTree
from certifit.exceptions import DataError
from certifit.rows import Array, Block


@dataclass(frozen=True)
class SummedTree:
    """One tree of a sum: what its leaves add to one of the scores, and what it says of its nodes."""

    tree: PlainTree
    value: Array  # (m,) what a leaf adds, with the learning rate
    score: int = 0  # the number of the score that it adds to
    count: Array | None = None  # (m,) training rows, where the model says so
    mass: Array | None = None  # (m,) Σ w φ", where the model says so

    def leaves(self, X: Array) -> Array:
        """The leaf that each row (n, d) reaches."""
        return self.tree.leaves(Block(X, None, np.ones(len(X)), 0))

    def __call__(self, X: Array) -> Array:
        """What the tree adds to the scores of rows (n,)."""
        return self.value[self.leaves(X)]


@dataclass(frozen=True)
class TreeSum:
    """Trees whose leaves add up to scores (n, k), with what a model says of its loss."""

    trees: tuple[SummedTree, ...]
    baseline: Array  # (k,)
    columns: int
    link: str = "identity"  # what the scores are of the answer: identity, logit, log, softmax or share
    single_sums: bool = False  # whether the library adds up in float32
    missing: bool = True  # whether rows may have missing entries

    def __call__(self, X: Array) -> Array:
        """The scores of rows (n, k)."""
        found = np.tile(self.baseline, (len(X), 1))
        for tree in self.trees:
            found[:, tree.score] += tree(X)
        return found

    @property
    def of_stumps(self) -> bool:
        """Whether no tree asks more than one question."""
        return all(len(tree.tree.left) <= 3 for tree in self.trees)

    @property
    def additive(self) -> bool:
        """Whether every tree asks about one column only."""
        return all(len(np.unique(tree.tree.column[tree.tree.inner])) <= 1 for tree in self.trees)

    @property
    def categorical(self) -> Array:
        """Which columns hold categories (d,)."""
        found = np.zeros(self.columns, bool)
        for one in self.trees:
            if one.tree.categories is not None:
                found |= np.diff(one.tree.categories.first) > 0
        return found

    @property
    def size(self) -> float:
        """Λ, the total variation of the column functions of an additive sum: jumps at one place taken together."""
        jumps: dict[tuple[object, ...], float] = {}
        for one in self.trees:
            for where, jump in _jumps(one):
                jumps[where] = jumps.get(where, 0.0) + jump
        return float(sum(map(abs, jumps.values())))

    def astray(self, X: Array) -> int:
        """How many of these rows reach another leaf of some tree if values are compared as they are."""
        moved = np.zeros(len(X), bool)
        rounded = X.astype(np.float32).astype(np.float64)
        differ = np.flatnonzero((rounded != X) & ~np.isnan(X)) if self.in_single else np.zeros(0, int)
        rows = np.unique(differ // X.shape[1])
        for one in self.trees:
            as_they_are = PlainTree(**{**vars(one.tree), "dtype": np.float64})
            here = Block(X[rows], None, np.ones(len(rows)), 0)
            moved[rows] |= as_they_are.leaves(here) != one.tree.leaves(here)
        return int(moved.sum())

    @property
    def in_single(self) -> bool:
        """Whether values are rounded to float32 before they are compared."""
        return any(np.dtype(tree.tree.dtype) == np.float32 for tree in self.trees)


def _jumps(one: SummedTree) -> list[tuple[tuple[object, ...], float]]:
    """The steps of a tree about one column: what is asked, and by how much the right side is above the left."""
    tree = one.tree
    if len(tree.left) == 1:
        return []
    if len(tree.left) == 3:
        root = int(np.flatnonzero(tree.depth == 0)[0])
        asked = (one.score, int(tree.column[root]), float(np.nan_to_num(tree.threshold[root])), _set_of(tree, root))
        side = bool(tree.missing_left[root])
        return [((*asked, side), float(one.value[tree.right[root]] - one.value[tree.left[root]]))]
    if len(np.unique(tree.column[tree.inner])) > 1 or tree.categories is not None:
        raise DataError(got="a tree that asks about several columns", wanted="a sum of functions of single columns")
    leaves = _from_left(tree)
    steps = np.sort(tree.threshold[tree.inner])
    j = int(tree.column[tree.inner[0]])
    found: list[tuple[tuple[object, ...], float]] = [
        ((one.score, j, float(t), b"", False), float(step))
        for t, step in zip(steps, np.diff(one.value[leaves]), strict=True)
    ]
    # Missing values reach some leaf: a step of its own, from the lowest.
    lost = one(np.full((1, j + 1), np.nan))[0] - one.value[leaves[0]]
    return [*found, ((one.score, j, np.nan, b"", True), float(lost))] if lost else found


def _set_of(tree: PlainTree, node: int) -> bytes:
    if tree.categories is None or tree.categories.chosen[node] < 0:
        return b""
    known = tree.categories.of_column(int(tree.column[node]))
    chosen = tree.categories.left[tree.categories.chosen[node]][: len(known)]
    return known[chosen].tobytes()


def _from_left(tree: PlainTree) -> Array:
    """The leaves from left to right."""
    found, stack = [], [int(np.flatnonzero(tree.depth == 0)[0])]
    while stack:
        k = stack.pop()
        if tree.left[k] < 0:
            found.append(k)
        else:
            stack += [int(tree.right[k]), int(tree.left[k])]
    return np.array(found)


def tree_of_nodes(nodes: Sequence[PlainNode], columns: int, dtype: type = np.float64) -> PlainTree:
    """A tree from its nodes, the root first; those that are not there, or lead in a circle, are refused."""
    m = len(nodes)
    left, right = (np.array([getattr(node, side) for node in nodes], np.int64) for side in ("left", "right"))
    inner = left >= 0
    children = np.concatenate([left[inner], right[inner]])
    if not m or not np.array_equal(np.sort(children), np.arange(1, m)) or (right[~inner] >= 0).any():
        raise DataError(got="nodes that are no binary tree", wanted="a model as its fit left it", fix="Fit it again.")
    depth = np.zeros(m, np.int64)
    for k in np.flatnonzero(inner):
        if not (left[k] > k and right[k] > k):
            raise DataError(got="children before their parents", wanted="a model as its fit left it")
        depth[left[k]] = depth[right[k]] = depth[k] + 1
    column = np.array([node.column for node in nodes], np.int64)
    if inner.any() and not (column[inner].min() >= 0 and column[inner].max() < columns):
        raise DataError(
            got=f"a split on a column beyond the {columns} that there are", wanted="the model's own table"
        )
    threshold = np.array([node.threshold for node in nodes], np.float64)
    missing = np.array([node.missing_left for node in nodes], bool)
    return PlainTree(left, right, column, threshold, missing, depth, dtype, _sets(nodes, column, columns))


@dataclass(frozen=True)
class PlainNode:
    """A node of a dump: a leaf, or a question."""

    left: int = -1
    right: int = -1
    column: int = 0
    threshold: float = 0.0
    missing_left: bool = False
    kinds: tuple[float, ...] | None = None  # the categories that go left


def _sets(nodes: Sequence[PlainNode], column: Array, columns: int) -> CategorySets | None:
    asked = [k for k, node in enumerate(nodes) if node.kinds is not None]
    if not asked:
        return None
    known: list[Array] = []
    for j in range(columns):
        own = [kind for k in asked if column[k] == j for kind in nodes[k].kinds or ()]
        known.append(np.unique(np.array(own, np.float64)))
    first = np.concatenate([[0], np.cumsum([len(own) for own in known])])
    left = np.zeros((len(asked), max(map(len, known), default=1)), bool)
    chosen = np.full(len(nodes), -1)
    for number, k in enumerate(asked):
        own = known[column[k]]
        left[number, : len(own)] = np.isin(own, nodes[k].kinds or ())
        chosen[k] = number
    return CategorySets(np.concatenate(known), first, chosen, left)


def tree_of_steps(column: int, thresholds: Array, values: Array, missing: float, columns: int) -> SummedTree:
    """A function of one column as a tree: values[i] where thresholds[i - 1] < x <= thresholds[i]."""
    nodes: list[PlainNode] = []
    leaf_values: list[float] = []

    def grow(first: int, last: int) -> int:
        """Number of the node above values[first … last]."""
        here = len(nodes)
        nodes.append(PlainNode())
        leaf_values.append(float(values[first]) if first == last else 0.0)
        if first < last:
            middle = (first + last) // 2
            left, right = grow(first, middle), grow(middle + 1, last)
            nodes[here] = PlainNode(left, right, column, float(thresholds[middle]), True)
        return here

    if missing == values[0]:
        grow(0, len(values) - 1)
    else:
        # A root that no number passes on the left: missing entries alone.
        nodes.append(PlainNode())
        leaf_values.append(0.0)
        nodes.append(PlainNode())
        leaf_values.append(float(missing))
        nodes[0] = PlainNode(1, grow(0, len(values) - 1), column, -np.inf, True)
    return SummedTree(tree_of_nodes(nodes, columns), np.array(leaf_values))
