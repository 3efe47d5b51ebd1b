"""Reads fitted boostings on binned columns and certifies them on the rows they were fitted on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from certifit.checkers.ensemble.boosting.bin_thresholds import border_check
from certifit.checkers.ensemble.boosting.corrected import certify_corrected
from certifit.checkers.ensemble.boosting.plain_trees import plain_trees
from certifit.checkers.ensemble.boosting.stage_rules import held_out_rows, learning_rate_of
from certifit.checkers.ensemble.boosting.stages import StageClaim, certify_stages
from certifit.checkers.ensemble.staged_scores import certify_staged_scores
from certifit.checkers.fitted import fitted_rows, row_counts
from certifit.checkers.plain.blocks import dense
from certifit.core import Certificate, Check, Estimator
from certifit.exceptions import DataError
from certifit.rows import Array, Rows, apply_class_weight, encode_labels
from certifit.rows.checks import TableTerms


def certify_boosting(model: Mapping[str, Any], rows: Rows, held_out: Array | None, tol: float) -> Certificate:
    """Check fitted attributes and settings on rows whose y are class numbers or amounts."""
    trees, claim = plain_trees(model["trees_"]), stage_claim(model, rows)
    if model["corrective"]:
        return certify_corrected(trees, claim, float(model["coefficient_size_"]), rows, held_out)
    return certify_stages(trees, claim, rows, held_out, tol)


def stage_claim(model: Mapping[str, Any], rows: Rows) -> StageClaim:
    """What settings say that every stage has done."""
    classes, parameter = model.get("classes_"), None
    loss = str(model["loss"])
    if loss == "log_loss" and classes is not None and len(classes) > 2:
        loss = "multinomial"
    scores = len(classes) if classes is not None and loss == "multinomial" else 1
    if loss == "quantile":
        several = np.ndim(model["quantile"]) > 0
        parameter = tuple(map(float, model["quantile"])) if several else float(model["quantile"])
        loss, scores = ("quantiles", len(model["quantile"])) if several else (loss, 1)
    huber = loss == "huber"
    levels = np.asarray(model["huber_deltas_"], np.float64) if huber else None
    depth, leaves = model["max_depth"], model["max_leaf_nodes"]
    rate = learning_rate_of(model["learning_rate"], int(rows.sum(lambda block: (block.w > 0).sum())))
    return StageClaim(
        loss, parameter, rate, float(model["l2_regularization"]), int(model["min_samples_leaf"]),
        math.inf if depth is None else depth, math.inf if leaves is None else leaves,
        _directions(model["monotonic_cst"], rows), scores, levels=levels,
        share=float(model["alpha"]) if huber else 0.9,
    )  # fmt: skip


def _directions(asked: Any, rows: Rows) -> Array | None:
    if asked is None:
        return None
    if isinstance(asked, Mapping):
        names = [] if rows.names is None else [str(name) for name in rows.names]
        found = np.zeros(rows.n_features)
        for name, direction in asked.items():
            found[names.index(str(name)) if isinstance(name, str) else int(name)] = direction
        return found
    return np.asarray(asked)


def audit_boosting(
    model: Any, X: Any, y: Any, sample_weight: Any, tol: float, sampled_rows: int = 200_000
) -> Certificate:
    """Check a fitted HistGradientBoostingClassifier or HistGradientBoostingRegressor.

    Of more rows than `sampled_rows`, borders come from a sample of them, and are not looked at.
    """
    if not isinstance(model, Estimator):
        return _audit_by_stages(model, X, y, sample_weight, tol)
    state = {**model.get_params(deep=False), **vars(model)}
    classes = state.get("classes_")
    X = _with_codes(X, state["category_labels_"])
    terms = TableTerms("numbers" if classes is None else "classes", missing=True)
    rows = fitted_rows(model, int(model.n_features_in_), X, y, sample_weight, terms)
    if classes is not None:
        rows = apply_class_weight(encode_labels(rows, np.asarray(classes)), state["class_weight"])
    held = None
    if state["do_early_stopping_"] and state["validation_fraction"] is not None and not state["refit_leaves"]:
        targets = rows.map(lambda block: np.asarray(block.y, np.float64)) if classes is not None else None
        w = rows.map(lambda block: block.w)
        held = held_out_rows(targets, w, float(state["validation_fraction"]), int(state["validation_seed_"]))
    certificate = certify_boosting(state, rows, held, tol)
    if not certificate.holds or state["corrective"] or rows.n_rows > sampled_rows:
        return certificate
    return replace(certificate, checks=(*certificate.checks, _border_check(state, rows, held)))


def _border_check(model: Mapping[str, Any], rows: Rows, held: Array | None) -> Check:
    data, trees = rows.load(), plain_trees(model["trees_"])
    used = data.w > 0
    refitted = model["refit_leaves"] and model["do_early_stopping_"]
    grown_on = None if refitted else np.ones(len(used), bool) if held is None else ~held
    X = trees.coded(dense(data.X[used]))
    return border_check(trees, X, None if grown_on is None else grown_on[used], int(model["max_bins"]))


def _audit_by_stages(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check another library's boosting, whose trees are no public attributes, by its scores after each stage."""
    classes = getattr(model, "classes_", None)
    terms = TableTerms("numbers" if classes is None else "classes", missing=True)
    if getattr(model, "is_categorical_", None) is not None:
        raise DataError(
            got=f"a {type(model).__name__} with columns of categories", wanted="columns of numbers",
            fix=f"certifit.{type(model).__name__} takes the same settings and is audited.",
        )  # fmt: skip
    rows = fitted_rows(model, int(model.n_features_in_), X, y, sample_weight, terms)
    if classes is not None:
        labels = encode_labels(rows, np.asarray(classes))
        labels = replace(labels, weight=row_counts(labels.rows, [len(classes)])[0])
        rows = apply_class_weight(labels, model.class_weight)
    loss = str(model.loss) if classes is None else ("log_loss" if len(classes) == 2 else "multinomial")
    return certify_staged_scores(model, rows.load(), loss, tol)


def _with_codes(X: Any, labels: Mapping[str, list[Any]]) -> Any:
    """A frame with the places of its labels in place of the labels."""
    codes = {}
    for name, known in labels.items():
        if name in getattr(X, "columns", ()):
            place = {label: float(k) for k, label in enumerate(known)}
            codes[name] = np.array([place.get(value, np.nan) for value in X[name]], dtype=np.float64)
    return X.assign(**codes) if codes else X
