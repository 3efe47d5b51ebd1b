"""Reads scikit-learn's forests: samples from its trees' seeds, nodes and out-of-bag answers from the rows.

Which columns a node drew cannot be recomputed, so splits are not scored again. scikit-learn rounds values to float32
before it compares them: rows that a threshold then sends to another side than their own value are counted.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from certifit.checkers.ensemble.forest.adapter import (
    CRITERIA,
    audit_own_forest,
    balanced_weights,
    forest_rows,
    model_classes,
    unseen_answers,
)
from certifit.checkers.ensemble.forest.certificate import FittedForest, UnseenClaim, certify_forest
from certifit.checkers.ensemble.forest.plain_nodes import ClaimedTree, claimed_tree, leaf_numbers
from certifit.checkers.tree.adapter import clipping_columns
from certifit.core import Certificate, Estimator
from certifit.exceptions import DataError
from certifit.rows import Array, Rows
from certifit.rows.labels import class_weight_vector


def audit_forest(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check a fitted random forest or extremely randomised trees, ours or scikit-learn's."""
    if isinstance(model, Estimator):
        return audit_own_forest(model, X, y, sample_weight, tol)
    if model.criterion == "absolute_error":
        raise DataError(got="criterion='absolute_error'", wanted="nodes whose values are means")
    rows = forest_rows(model, X, y, sample_weight)
    k, w = tuple(map(len, model_classes(model))), rows.map(lambda block: block.w)
    target = rows.map(lambda block: np.asarray(block.y)).reshape(rows.n_rows, -1)
    factor = _class_factor(model, target, w)
    even = sample_weight is None and factor is None
    draws = partial(_tree_weights, model, target, None if even else w * (1.0 if factor is None else factor))
    # Extremely randomised trees draw their thresholds.
    middle = all(getattr(one, "splitter", "best") == "best" for one in model.estimators_)
    forest = FittedForest(
        len(model.estimators_), partial(_claimed, model, k), lambda t: 0, draws, _objective(model), midpoints=middle
    )
    found = certify_forest(forest, rows, (), _unseen_claim(model, w, k))
    return replace(
        found, tol=tol, facts={**found.facts, "rows that float32 sends the other way": _astray(model, k, rows)}
    )


def _class_factor(model: Any, y: Array, w: Array) -> Array | None:
    """The weight of each row's classes (n,), or None where all rows of a tree's sample have the same or their own."""
    asked, kinds, found = getattr(model, "class_weight", None), model_classes(model), np.ones(len(y))
    if not kinds or asked is None or (isinstance(asked, str) and asked == "balanced_subsample" and model.bootstrap):
        return None
    each = [asked] * len(kinds) if isinstance(asked, (str, dict)) else asked
    for classes, codes, one in zip(kinds, y.T, each, strict=True):
        named = "balanced" if isinstance(one, str) else one
        found = found * class_weight_vector(classes, np.bincount(codes, w, len(classes)), named)[codes]
    return found


def _tree_weights(model: Any, y: Array, weight: Array | None, t: int) -> Array:
    """How much each row counts in a tree (n,): how often its seed draws it."""
    n = len(y)
    if not model.bootstrap:
        return np.ones(n) if weight is None else weight
    asked = model.max_samples
    if asked is None:
        draws = n
    elif isinstance(asked, (int, np.integer)):
        draws = int(asked)
    else:
        draws = max(1, int(asked * (n if weight is None else float(weight.sum()))))
    random = np.random.RandomState(model.estimators_[t].random_state)
    index = random.randint(0, n, draws) if weight is None else random.choice(n, draws, p=weight / weight.sum())
    counts = np.bincount(index, minlength=n).astype(np.float64)
    return balanced_weights(y, counts) if getattr(model, "class_weight", None) == "balanced_subsample" else counts


def _claimed(model: Any, k: tuple[int, ...], t: int) -> ClaimedTree:
    criterion = CRITERIA.get(model.criterion, model.criterion)
    found = claimed_tree(model.estimators_[t].tree_, int(model.n_features_in_), criterion, k, np.float32)
    return replace(found, tree=replace(found.tree, clips=clipping_columns(model)))


def _objective(model: Any) -> float:
    """The mean over trees of the impurity of their leaves."""
    found = []
    for estimator in model.estimators_:
        tree = estimator.tree_
        leaf = tree.children_left < 0
        share = tree.weighted_n_node_samples[leaf] / tree.weighted_n_node_samples[0]
        found.append(float(share @ tree.impurity[leaf]))
    return float(np.mean(found))


def _unseen_claim(model: Any, w: Array, k: tuple[int, ...]) -> UnseenClaim | None:
    name = "oob_decision_function_" if k else "oob_prediction_"
    if not hasattr(model, name) or callable(model.oob_score):
        return None
    # scikit-learn leaves zeros where no tree has a row out of bag, lets them count, and averages without weights.
    return UnseenClaim(unseen_answers(model, k), float(model.oob_score_), None, np.ones(len(w)), blank=0.0)


def _astray(model: Any, k: tuple[int, ...], rows: Rows, most: int = 10) -> str:
    """Of how many rows the leaf differs if values are compared as they are, in the first trees."""
    trees = min(most, len(model.estimators_))
    found = 0
    for t in range(trees):
        tree = _claimed(model, k, t).tree
        found += int((leaf_numbers(tree, rows) != leaf_numbers(replace(tree, dtype=np.float64), rows)).sum())
    return f"{found} in {trees} trees"
