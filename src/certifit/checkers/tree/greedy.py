"""Whether the splits of a tree are the best of all their candidates: every threshold of every column, scored anew.

At each node that is looked at the rows are sorted along every column; the score of a split is what it lowers the
weighted impurity of the node by. All nodes of small trees are looked at, of large ones a seeded sample.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy

from certifit.checkers.tree.plain_tree import PlainTree
from certifit.core import Check
from certifit.rows import Array, ArrayRows

EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class GreedyTuning:
    """How many entries (rows times columns of the nodes looked at) are scored, and the seed of their choice."""

    entries: int = 1_000_000
    seed: int = 0


@dataclass(frozen=True)
class GrowthClaim:
    """The rules by which a tree is said to have grown."""

    criterion: str
    classes: int  # 0 for amounts
    leaf_rows: int
    leaf_weight: float
    split_rows: int
    depth: float  # of the deepest leaf allowed
    decrease: float  # least fall of the impurity, as a share of the root's weight
    all_columns: bool  # whether every split was chosen among all columns and thresholds
    best_along_column: bool  # whether thresholds are the best of their column
    complete: bool  # whether every leaf had to stay one; not where the number of leaves is limited, or after pruning


@dataclass(frozen=True)
class NodeRows:
    """The rows of one node."""

    X: Array  # (n, d)
    target: Array  # (n, c) weights by class, or w and w (y - mean)
    w: Array  # (n,)


def check_greedy(
    tree: PlainTree, claim: GrowthClaim, data: ArrayRows, tuning: GreedyTuning = GreedyTuning()
) -> tuple[tuple[Check, ...], dict[str, str]]:
    """Score the splits of a sample of nodes against all candidates; the rows must be in memory."""
    X, y, w = np.asarray(data.X, np.float64), np.asarray(data.y), data.w
    kept = w > 0
    X, y, w = X[kept], y[kept], w[kept]
    leaf = tree.leaves(ArrayRows(X, y, w).__iter__().__next__()) if len(X) == 0 else _all_leaves(tree, X, y, w)
    order, first, count = _runs(tree, leaf)
    nodes = _sample(count * X.shape[1], tuning)
    worst, unsplit = 0.0, 0.0
    for k in nodes:
        here = order[first[k] : first[k] + count[k]]
        node = _node(X[here], y[here], w[here], claim)
        worst, unsplit = _judge(tree, claim, k, node, float(w.sum()), worst, unsplit)
    words = f"{len(nodes)} of {len(tree.left)} nodes"
    return (
        Check("best split missed by, of the fall of impurity", worst, 1e-9),
        Check("leaves that a split would have improved", unsplit, 0.0),
    ), {"splits scored again": words}
