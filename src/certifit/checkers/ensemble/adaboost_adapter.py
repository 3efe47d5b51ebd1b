"""Reads fitted AdaBoost ensembles, ours and scikit-learn's, and replays them on the rows they were fitted on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from certifit.checkers.ensemble.adaboost import (
    BoostedRows,
    BoostingClaim,
    PlainStumps,
    ScanTuning,
    certify_boosting,
)
from certifit.checkers.ensemble.soft_margin import certify_soft_margin
from certifit.checkers.ensemble.validation_rows import without_validation_rows
from certifit.checkers.fitted import fitted_rows, numbers, setting
from certifit.checkers.plain.blocks import dense
from certifit.checkers.plain.dual_points import EPS
from certifit.checkers.tree.learner_trees import nodes_of_learners
from certifit.checkers.tree.plain_tree import plain_tree
from certifit.core import Certificate, Estimator, Setting
from certifit.exceptions import DataError
from certifit.rows import Array, Rows, encode_labels
from certifit.rows.checks import TableTerms


def audit_boosted_classifier(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check a fitted AdaBoostClassifier."""
    _refuse_older(model)
    terms = TableTerms("classes", missing=True)
    rows = fitted_rows(model, int(model.n_features_in_), X, y, sample_weight, terms)
    rows = encode_labels(rows, np.asarray(model.classes_), fewest=1).rows
    return certify_classifier(model, without_validation_rows(model, rows), tol, isinstance(model, Estimator))


def _refuse_older(model: Any) -> None:
    """scikit-learn before 1.6 boosted probabilities (SAMME.R) unless told otherwise."""
    if str(getattr(model, "algorithm", "SAMME")) not in ("SAMME", "deprecated"):
        raise DataError(
            got=f"algorithm={model.algorithm!r} of a {type(model).__name__}", wanted="SAMME", fix="algorithm='SAMME'"
        )


def certify_classifier(
    model: Any, rows: Rows, tol: float, own: bool = True, tuning: ScanTuning = ScanTuning()
) -> Certificate:
    """Check an AdaBoostClassifier on rows whose y are class numbers, those for validation without weight."""
    data, labels, weight = _kept(rows)
    members = model.members_ if hasattr(model, "members_") else model.estimators_
    k = len(model.classes_)
    stages = len(members)
    asked = int(setting(model, "n_estimators", Setting(int, least=1)))
    if getattr(model, "corrective", None) is not None:
        return _certify_corrected(model, members, BoostedRows(dense(data), labels, weight / weight.sum()), tol)
    strengths, errors = (
        _by_stage(model, name, asked, stages) for name in ("estimator_weights_", "estimator_errors_")
    )
    # scikit-learn rounds values to float32 before trees compare them.
    stumps, X = _plain_stumps(model, members), None
    if stumps is not None:
        X = dense(data) if own else dense(data).astype(np.float32).astype(np.float64)
        X = np.asfortranarray(X)  # stages read one column each
    claim = BoostingClaim(
        _answers(model, members, stumps, data if X is None else X),
        stages, errors, strengths, k,
        float(setting(model, "learning_rate", Setting(float, above=0))),
        stumps,
        stopped=stumps is None or getattr(model, "n_iter_no_change", None) is not None,
        asked=asked,
        least_weight=0.0 if hasattr(members, "leaf_weight") else EPS,
        nodes=None if hasattr(members, "leaf_weight") else nodes_of_learners(members, data, labels, model.classes_),
    )  # fmt: skip
    seen = np.zeros((len(labels), 0)) if X is None else X
    return certify_boosting(claim, BoostedRows(seen, labels, weight / weight.sum()), tol, tuning)


def _certify_corrected(model: Any, stumps: Any, rows: BoostedRows, tol: float) -> Certificate:
    """Check an ensemble that LPBoost finished."""
    m, nu = len(stumps.column), float(setting(model, "nu", Setting(float, above=0, most=1)))
    if len(model.classes_) != 2:
        raise DataError(got=f"{len(model.classes_)} classes with corrective='lpboost'", wanted="two")
    names = ("estimator_weights_", "estimator_errors_", "row_distribution_")
    weights, errors, d = (numbers(model, name) for name in names)
    if weights.shape != (m,) or errors.shape != (m,) or d.shape != rows.s.shape:
        raise DataError(got="weights, errors or a distribution of other lengths", wanted="those that fit left")
    plain = _own_stumps(model, stumps)
    return certify_soft_margin(plain, weights, errors, d, rows, nu, tol)


def _kept(rows: Rows) -> tuple[Any, Array, Array]:
    """The rows of positive weight: X, y and weights."""
    data = rows.load()
    kept = data.w > 0
    X = data.X if kept.all() else data.X[kept]
    return X, np.asarray(data.y)[kept], data.w[kept]


def _by_stage(model: Any, name: str, asked: int, stages: int) -> Array:
    """One number for each stage; after the last the array is padded, with strengths of 0 and errors of 1."""
    found = numbers(model, name)
    rest = 0.0 if name == "estimator_weights_" else 1.0
    if found.shape != (asked,) or not 0 < stages <= asked or (found[stages:] != rest).any():
        raise DataError(
            got=f"{name} of shape {found.shape} with {stages} estimators and n_estimators={asked}",
            wanted="a number for each estimator, as fit leaves them",
            fix="Fit it again.",
        )
    return found[:stages]


def _answers(model: Any, members: Any, stumps: PlainStumps | None, X: Any) -> Callable[[int], Array]:
    """The class numbers that the learner of a stage tells all rows."""
    if stumps is not None:
        return lambda m: np.where(stumps.left(m, X), stumps.answers[m, 0], stumps.answers[m, 1])
    classes = np.asarray(model.classes_)

    def predicted(m: int) -> Array:
        told = np.asarray(members[m].predict(X))
        place = np.minimum(np.searchsorted(classes, told), len(classes) - 1)
        return np.where(classes[place] == told, place, -1)

    return predicted


def _plain_stumps(model: Any, members: Any) -> PlainStumps | None:
    """The stumps of an ensemble whose learners are all trees of at most one split; None for others."""
    if hasattr(members, "leaf_weight"):
        return _own_stumps(model, members)
    trees: list[Any] = [getattr(member, "tree_", None) for member in members]
    if any(tree is None or tree.node_count > 3 for tree in trees):
        return None
    if any(sorted(map(str, m.classes_)) != sorted(map(str, model.classes_)) for m in members):
        return None
    plain = [plain_tree(tree, int(model.n_features_in_)) for tree in trees]
    split = np.array([tree.left[0] >= 0 for tree in plain])
    answers = [np.asarray(tree.value)[:, 0].argmax(axis=1) for tree in trees]
    usual = all(_is_usual(member) for member in members)
    return PlainStumps(
        np.array([tree.column[0] if there else -1 for tree, there in zip(plain, split, strict=True)]),
        np.array([tree.threshold[0] for tree in plain]),
        np.array([tree.missing_left[0] for tree in plain]),
        np.array([a[1:] if len(a) == 3 else [a[0], a[0]] for a in answers]),
        every_threshold=usual,
    )


def _is_usual(member: Any) -> bool:
    """Whether a tree of depth 1 was free to take the purest split."""
    expected = {
        "criterion": "gini", "splitter": "best", "min_samples_split": 2, "min_samples_leaf": 1,
        "min_weight_fraction_leaf": 0.0, "max_features": None, "max_leaf_nodes": None, "min_impurity_decrease": 0.0,
        "class_weight": None, "ccp_alpha": 0.0, "monotonic_cst": None,
    }  # fmt: skip
    return all(getattr(member, name, value) == value for name, value in expected.items())


def _own_stumps(model: Any, stumps: Any) -> PlainStumps:
    m, k, d = len(stumps.column), len(model.classes_), int(model.n_features_in_)
    column, rows = np.asarray(stumps.column), np.asarray(stumps.leaf_rows)
    weight, threshold = np.asarray(stumps.leaf_weight), np.asarray(stumps.threshold)
    answers = np.asarray(stumps.answers)
    shapes = (threshold.shape, np.shape(stumps.missing_left), weight.shape, rows.shape, answers.shape)
    fits = shapes == ((m,), (m,), (m, 2, k), (m, 2), (m, 2)) and column.shape == (m,)
    fits = fits and answers.dtype.kind in "iu" and answers.min() >= 0 and answers.max() < k
    kinds = (column.dtype.kind, threshold.dtype, np.asarray(stumps.missing_left).dtype.kind, weight.dtype)
    if not fits or kinds[0] not in "iu" or kinds[2] not in "iub" or kinds[1] != np.float64 or kinds[3] != np.float64:
        raise DataError(got="stumps with arrays of other shapes or types", wanted="those that fit left")
    there = column.min() >= -1 and column.max() < d
    if not (there and np.isfinite(weight).all()) or np.isnan(threshold[column >= 0]).any():
        raise DataError(got="stumps on columns or with numbers that are not there", wanted="those that fit left")
    return PlainStumps(
        column, threshold, np.asarray(stumps.missing_left) != 0, answers, weight, rows,
        every_threshold=model.max_bins is None,
    )  # fmt: skip
