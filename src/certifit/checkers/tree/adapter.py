"""Reads fitted decision trees, ours and scikit-learn's, and certifies them on the rows they were fitted on."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from certifit.checkers.fitted import fitted_rows
from certifit.checkers.plain.blocks import dense
from certifit.checkers.tree.greedy import GreedyTuning, GrowthClaim, check_greedy
from certifit.checkers.tree.node_sums import NodeClaims, check_nodes
from certifit.checkers.tree.plain_tree import PlainTree, plain_tree
from certifit.core import Certificate, Estimator
from certifit.exceptions import DataError
from certifit.rows import Array, Rows, apply_class_weight, encode_labels
from certifit.rows.checks import TableTerms

CLAIM = "every split is the best of its candidates, and every node says what its rows say"
CLAIM_OF_DRAWN = "every node says what its rows say; splits are the best of candidates drawn at random"


def certify_tree(
    tree: PlainTree, claims: NodeClaims, growth: GrowthClaim, rows: Rows, tol: float = 0.0
) -> Certificate:
    """Check a tree on rows whose y are class numbers or amounts."""
    checks = check_nodes(tree, claims, growth.criterion, growth.classes, rows)
    facts: dict[str, Any] = {}
    if rows.in_memory:
        data = rows.load()
        kept = data.w > 0
        X = dense(data.X[kept]).astype(np.float64)
        more, facts = check_greedy(tree, growth, X, np.asarray(data.y)[kept], data.w[kept], GreedyTuning())
        checks += more
    leaf = tree.left < 0
    share = claims.weight[leaf] / claims.weight[0]
    words = CLAIM if growth.every_column and growth.every_threshold else CLAIM_OF_DRAWN
    return Certificate("greedy", words, float(share @ claims.impurity[leaf]), 0.0, tol, checks=checks, facts=facts)


def audit_tree(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check a fitted DecisionTreeClassifier or DecisionTreeRegressor."""
    classes = getattr(model, "classes_", None)
    if getattr(model, "n_outputs_", 1) != 1:
        raise DataError(got="a tree of several targets", wanted="one target", fix="Fit one tree for each target.")
    terms = TableTerms("numbers" if classes is None else "classes", missing=True)
    rows = fitted_rows(model, int(model.n_features_in_), X, y, sample_weight, terms)
    if classes is not None:
        labels = encode_labels(rows, np.asarray(classes))
        rows = apply_class_weight(labels, model.class_weight)
    own = isinstance(model, Estimator)
    # scikit-learn rounds values to float32 before it compares them.
    tree = plain_tree(model.tree_, rows.n_features, np.float64 if own else np.float32)
    growth = growth_claim(model, rows)
    return certify_tree(tree, node_claims(model.tree_), growth, rows, tol)


def node_claims(tree: Any) -> NodeClaims:
    """What a tree says of its nodes."""
    value = np.asarray(tree.value, np.float64)[:, 0]
    return NodeClaims(
        np.asarray(tree.n_node_samples), np.asarray(tree.weighted_n_node_samples), value, np.asarray(tree.impurity)
    )


def growth_claim(model: Any, rows: Rows) -> GrowthClaim:
    """The rules that a model's settings stand for, on these rows."""
    n, total = _positive_rows(rows)
    criterion = {"log_loss": "entropy", "friedman_mse": "squared_error"}.get(model.criterion, model.criterion)
    columns = getattr(model, "max_features_", None) or rows.n_features
    best = model.splitter == "best"
    return GrowthClaim(
        criterion,
        len(getattr(model, "classes_", ())),
        split_rows=max(2, share_of_rows(model.min_samples_split, n)),
        leaf_rows=share_of_rows(model.min_samples_leaf, n),
        leaf_weight=float(model.min_weight_fraction_leaf) * total,
        depth=math.inf if model.max_depth is None else model.max_depth,
        decrease=float(model.min_impurity_decrease),
        every_column=best and columns >= rows.n_features and model.monotonic_cst is None,
        every_threshold=best and model.monotonic_cst is None,
        complete=best and columns >= rows.n_features and model.max_leaf_nodes is None and model.ccp_alpha == 0
        and model.monotonic_cst is None,
    )  # fmt: skip


def share_of_rows(asked: Any, n: int) -> int:
    """A number of rows, or a share of all n of them, as scikit-learn reads it."""
    return int(asked) if isinstance(asked, (int, np.integer)) else math.ceil(asked * n)


def _positive_rows(rows: Rows) -> tuple[int, float]:
    found: Array = rows.sum(lambda block: np.array([(block.w > 0).sum(), block.w.sum()]))
    return int(found[0]), float(found[1])
