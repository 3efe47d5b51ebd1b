"""Whether the trees of an AdaBoost say of their nodes what the rows say, with the weights of their stages.

Predictions need no more than thresholds and values; importances of columns come from weights and impurities of nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from certifit.checkers.tree.adapter import node_claims
from certifit.checkers.tree.node_sums import check_nodes
from certifit.checkers.tree.plain_tree import plain_tree
from certifit.core import Estimator
from certifit.rows import Array, ArrayRows
from certifit.rows.labels import class_weight_vector

LEARNERS = ("DecisionTreeClassifier", "DecisionTreeRegressor")
CRITERIA = {"log_loss": "entropy", "friedman_mse": "squared_error"}


def nodes_of_learners(
    members: Sequence[Any], X: Any, y: Array, classes: Array | None = None
) -> Callable[[int, Array], float] | None:
    """How far the nodes of a stage's tree are off with weights (n,); None where learners are no trees of ours.

    X are the rows that all stages saw, and y (n,) their amounts, or their class numbers.
    """
    if not all(isinstance(member, Estimator) and type(member).__name__ in LEARNERS for member in members):
        return None
    return partial(_worst_node, members, X, y, classes)


def _worst_node(members: Sequence[Any], X: Any, y: Array, classes: Array | None, m: int, w: Array) -> float:
    """The worst of what a tree says of its nodes, as a multiple of what rounding allows."""
    member, kinds = members[m], () if classes is None else (len(classes),)
    tree = plain_tree(member.tree_, X.shape[1])
    if classes is not None:
        w = w * class_weight_vector(classes, np.bincount(y, w, len(classes)), member.class_weight)[y]
    criterion = CRITERIA.get(member.criterion, member.criterion)
    checks = check_nodes(tree, node_claims(member.tree_), criterion, kinds, ArrayRows(X, y, w))
    # Counts may not be off at all; weights have the rounding of all stages before.
    off = [check.residual / max(check.limit, np.finfo(float).tiny) for check in checks]
    return float(np.max(off)) / (1 + m)
