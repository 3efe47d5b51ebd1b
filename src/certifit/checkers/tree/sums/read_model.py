"""Any fitted model that is a sum of trees, or of functions of single columns, read by its public attributes."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import logit

from certifit.checkers.ensemble.boosting.plain_trees import plain_trees
from certifit.checkers.tree.plain_tree import plain_tree
from certifit.checkers.tree.sums.lightgbm_dump import lightgbm_scores, read_lightgbm
from certifit.checkers.tree.sums.tree_sum import PlainNode, SummedTree, TreeSum, tree_of_nodes, tree_of_steps
from certifit.checkers.tree.sums.xgboost_dump import read_xgboost, xgboost_scores
from certifit.core import Estimator
from certifit.exceptions import DataError
from certifit.rows import Array


def booster_of(model: Any) -> Any | None:
    """The booster of a LightGBM or XGBoost model, or the model itself; None for anything else."""
    if hasattr(model, "get_booster"):
        return model.get_booster()
    if hasattr(model, "booster_"):
        return model.booster_
    return model if hasattr(model, "model_to_string") or hasattr(model, "save_raw") else None


def stages_used(model: Any) -> int:
    """How many stages XGBoost's estimators predict by, after early stopping; 0 for all."""
    best = getattr(model, "best_iteration", None) if hasattr(model, "get_booster") else None
    return 0 if best is None else int(best) + 1


def read_tree_sum(model: Any) -> TreeSum:
    """The sum that a fitted model is."""
    booster = booster_of(model)
    if booster is not None:
        if hasattr(booster, "model_to_string"):
            return read_lightgbm(booster)
        return read_xgboost(booster, stages_used(model))
    if hasattr(model, "shape_functions_"):
        return _read_shapes(model)
    if hasattr(model, "term_scores_"):
        return read_ebm(model)
    if hasattr(model, "trees_") and hasattr(model.trees_, "baseline"):
        return _read_boosted(model)
    if hasattr(model, "tree_"):
        return _read_average([model], model)
    members = getattr(model, "estimators_", None)
    if members is not None and hasattr(model, "init_"):
        return read_gradient_boosting(model)
    if members is not None and len(members) and all(hasattr(one, "tree_") for one in members):
        if hasattr(model, "estimator_weights_"):
            raise _no_sum(model, "whose trees vote by classes")
        return _read_average(list(members), model)
    raise _no_sum(model, "whose trees are no public attributes" if hasattr(model, "n_trees_per_iteration_") else "")


def _no_sum(model: Any, why: str) -> DataError:
    return DataError(
        got=f"a {type(model).__name__}{', ' if why else ''}{why}",
        wanted="a fitted tree, forest, gradient boosting or additive model, a LightGBM or XGBoost booster, or an EBM",
        fix="certifit's models of this name are read." if why else "Call fit first.",
    )


def _read_average(members: list[Any], model: Any) -> TreeSum:
    """Trees whose answers are averaged: amounts, or shares of classes; of two classes that of the second."""
    d, classes = int(model.n_features_in_), getattr(model, "classes_", None)
    if isinstance(classes, list) or np.asarray(members[0].tree_.n_classes).shape != (1,):
        raise DataError(got="a tree of several targets", wanted="one target", fix="Fit one for each target.")
    dtype = np.float64 if isinstance(model, Estimator) else np.float32
    k = 1 if classes is None or len(classes) == 2 else len(classes)
    trees = []
    for one in members:
        value = np.asarray(one.tree_.value, np.float64)[:, 0]
        if classes is not None:
            value = value / value.sum(axis=1, keepdims=True)
            value = value[:, 1:] if k == 1 and value.shape[1] == 2 else value
        tree = plain_tree(one.tree_, d, dtype)
        trees += [SummedTree(tree, value[:, c] / len(members), c) for c in range(k)]
    return TreeSum(tuple(trees), np.zeros(k), d, "identity" if classes is None else "share")


def _refuse_first_estimators(model: Any) -> None:
    """Boosting may start from another estimator's answers, which are no sum of trees."""
    if getattr(model, "init", None) not in (None, "zero"):
        wanted = "one score for all rows before the first stage"
        raise DataError(got="init, an estimator", wanted=wanted, fix="init=None")


def read_gradient_boosting(model: Any) -> TreeSum:
    """The trees of scikit-learn's GradientBoosting…; its first scores are found from a row and the first stage."""
    d, members = int(model.n_features_in_), np.asarray(model.estimators_)
    rate, k = float(model.learning_rate), members.shape[1]
    trees = tuple(
        SummedTree(plain_tree(one.tree_, d, np.float32), rate * np.asarray(one.tree_.value)[:, 0, 0], c,
                   np.asarray(one.tree_.n_node_samples, np.float64))
        for stage in members for c, one in enumerate(stage)
    )  # fmt: skip
    probe = np.zeros((1, d))
    after = model.staged_decision_function if hasattr(model, "staged_decision_function") else model.staged_predict
    first = np.asarray(next(iter(after(probe))), np.float64).reshape(k)
    _refuse_first_estimators(model)
    start = first - np.array([tree(probe)[0] for tree in trees[:k]])
    link = "identity" if not hasattr(model, "classes_") else ("logit" if k == 1 else "softmax")
    return TreeSum(trees, start, d, link, missing=False)  # scikit-learn refuses missing entries


def _read_boosted(model: Any) -> TreeSum:
    """Our own boosting."""
    _refuse_first_estimators(model)
    own = plain_trees(model.trees_)
    k, d = len(own.baseline), int(model.n_features_in_)
    trees = []
    for t, (a, b) in enumerate(zip(own.first[:-1], own.first[1:], strict=True)):
        nodes = []
        for i in range(a, b):
            kinds, j = None, int(own.column[i])
            if own.left[i] >= 0 and own.kinds[i] >= 0:
                known = np.asarray(own.categories[j], np.float64)
                kinds = tuple(known[own.sides[own.kinds[i]][: len(known)] != 0])
            left, right = (int(side[i]) - a if own.left[i] >= 0 else -1 for side in (own.left, own.right))
            nodes.append(PlainNode(left, right, max(j, 0), float(own.threshold[i]), bool(own.missing_left[i]), kinds))
        trees.append(SummedTree(tree_of_nodes(nodes, d), own.value[a:b], t % k, own.count[a:b].astype(float)))
    return TreeSum(tuple(trees), own.baseline, d)


def _read_shapes(model: Any) -> TreeSum:
    """Our own additive models."""
    d, intercept = int(model.n_features_in_), np.atleast_1d(np.asarray(model.intercept_, np.float64))
    if any(map(np.size, getattr(model, "pair_functions_", ()))):
        raise DataError(
            got="an additive model with terms of pairs of columns", wanted="functions of single columns",
            fix="Fit it with interactions=0.",
        )  # fmt: skip
    machines = model.shape_functions_ if np.ndim(model.intercept_) else [model.shape_functions_]
    trees = []
    for c, shapes in enumerate(machines):
        for j, shape in enumerate(shapes):
            tree = tree_of_steps(j, np.asarray(shape.thresholds), np.asarray(shape.values), float(shape.missing), d)
            trees.append(replace(tree, score=c))
    return TreeSum(tuple(trees), intercept, d)


def read_ebm(model: Any) -> TreeSum:
    """The main effects of interpret's explainable boosting machine; a row below a cut goes left."""
    d, intercept = int(model.n_features_in_), np.atleast_1d(np.asarray(model.intercept_, np.float64))
    if intercept.shape != (1,):
        raise DataError(got="an EBM of several classes", wanted="two classes, or amounts")
    trees = []
    for columns, scores in zip(model.term_features_, model.term_scores_, strict=True):
        if len(columns) != 1:
            raise DataError(got=f"a term of columns {tuple(columns)}", wanted="main effects", fix="interactions=0")
        j, cuts = int(columns[0]), model.bins_[int(columns[0])][0]
        if isinstance(cuts, dict):
            raise DataError(got=f"categories in column {j} of an EBM", wanted="columns of numbers")
        # The first score is that of missing entries, the last of what has never been seen.
        own, cuts = np.asarray(scores, np.float64), np.asarray(cuts, np.float64)
        if own.shape != (len(cuts) + 3,):
            raise DataError(
                got=f"{len(own)} scores of column {j} with {len(cuts)} cuts", wanted="three more than cuts"
            )
        at_most = np.nextafter(cuts, -np.inf)
        trees.append(tree_of_steps(j, at_most, own[1:-1], float(own[0]), d))
    return TreeSum(tuple(trees), intercept, d, str(model.link_))


def own_scores(model: Any, X: Array) -> Array:
    """The scores (n, k) that a model itself gives to rows, in the terms of `read_tree_sum`."""
    booster = booster_of(model)
    with warnings.catch_warnings():
        # Rows come without the names of their columns, which were checked before.
        warnings.filterwarnings("ignore", message=".*feature names")
        if booster is not None:
            if hasattr(booster, "model_to_string"):
                return lightgbm_scores(booster, X)
            return xgboost_scores(booster, X, stages_used(model))
        classes = getattr(model, "classes_", None)
        if classes is None:
            found = np.asarray(model.predict(X), np.float64)
            logs = getattr(model, "loss", "") in ("poisson", "gamma") or getattr(model, "link_", "identity") == "log"
            return (np.log(found) if logs else found).reshape(len(X), -1)
        if hasattr(model, "decision_function"):
            return np.asarray(model.decision_function(X), np.float64).reshape(len(X), -1)
        found = np.asarray(model.predict_proba(X), np.float64)
        if getattr(model, "link_", "") == "logit":
            return logit(found[:, 1:])
        return found[:, 1:] if len(classes) == 2 else found
