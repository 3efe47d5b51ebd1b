"""From the nodes of an exact tree that has grown to its arrays, and where its rows are."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from certifit.rows import Array
from certifit.tree.exact.criteria import ClassCriterion, Criterion, NodeMeasures
from certifit.tree.exact.entries import SortedTable
from certifit.tree.exact.growth_loops import NodeTable
from certifit.tree.fitted_tree import Tree


def leaves_of_table(nodes: NodeTable, table: SortedTable, n: int) -> Array:
    """The leaf of each row: leaves are runs of the first column's entries."""
    leaves = np.flatnonzero(nodes.left < 0)
    leaves = leaves[np.argsort(nodes.start[leaves], kind="stable")]
    at = np.empty(n, np.int64)
    at[table.entries[0] & 0xFFFFFFFF] = np.repeat(leaves, (nodes.end - nodes.start)[leaves])
    return at


def as_tree(nodes: NodeTable, found: NodeMeasures, d: int, criterion: Criterion) -> Tree:
    """The nodes with scikit-learn's names."""
    leaf = nodes.left < 0
    classes = criterion.classes if isinstance(criterion, ClassCriterion) else (1,) * criterion.targets
    return Tree(
        nodes.left, nodes.right, np.where(leaf, -2, nodes.column), np.where(leaf, -2.0, nodes.threshold),
        _missing_sides(nodes), found.impurity, nodes.end - nodes.start, found.weight, found.value, d,
        np.array(classes),
    )  # fmt: skip


def _missing_sides(nodes: NodeTable) -> Array:
    """Where missing values go: as was best, or, where the fit met none, to the side with more rows."""
    leaf = nodes.left < 0
    counts = nodes.end - nodes.start
    larger = counts[np.where(leaf, 0, nodes.left)] > counts[np.where(leaf, 0, nodes.right)]
    return np.where(leaf, False, np.where(nodes.met_missing, nodes.missing_left, larger)).astype(np.uint8)


def number_of_columns(asked: Any, d: int) -> int:
    """How many columns each split looks at."""
    if asked is None:
        return d
    if isinstance(asked, str):
        return max(1, int(math.sqrt(d) if asked == "sqrt" else math.log2(d)))
    return min(d, int(asked)) if isinstance(asked, (int, np.integer)) else max(1, int(asked * d))
