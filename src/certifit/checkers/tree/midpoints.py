"""Whether thresholds lie where the rule of exact trees puts them: in the middle between a node's nearest rows.

Rows that a tree has not seen may lie between these: where they go depends on the threshold itself, not only on the
two sides that it makes of the node's rows.
"""

from __future__ import annotations

import numpy as np

from certifit.checkers.tree.plain_tree import PlainTree
from certifit.rows import Array, Block

STRANGE = "thresholds that are not in the middle between a node's nearest rows"


def strange_thresholds(tree: PlainTree, X: Array) -> int:
    """How many thresholds are not in the middle between the rows X (n, d) of their node that are nearest to them.

    Where the middle rounds to the upper value it is the lower one, and where only missing values go right infinity.
    Sets of categories have none.
    """
    m = len(tree.left)
    below, above = np.full(m, -np.inf), np.full(m, np.inf)
    for rows, node in tree.levels(Block(X, None, np.ones(len(X)), 0)):
        asked = tree.left[node] >= 0
        node, x = node[asked], X[rows[asked], tree.column[node[asked]]]
        left, known = x <= tree.threshold[node], ~np.isnan(x)
        np.maximum.at(below, node[left & known], x[left & known])
        np.minimum.at(above, node[~left & known], x[~left & known])
    ends = np.isinf(above)
    with np.errstate(invalid="ignore"):
        middle = below / 2 + np.where(ends, below, above) / 2
    wanted = np.where(ends, np.inf, np.where((below <= middle) & (middle < above), middle, below))
    asks = tree.left >= 0
    if tree.categories is not None:
        asks = asks & (tree.categories.chosen < 0)
    return int((tree.threshold != wanted)[asks].sum())
