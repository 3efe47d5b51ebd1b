"""Reads fitted boostings of exact trees and certifies them on the rows they were fitted on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import logit

from certifit.checkers.ensemble.boosting.exact_stages import SlopeMeasures, SlopeTuning, check_slope_trees
from certifit.checkers.ensemble.boosting.plain_trees import plain_trees
from certifit.checkers.ensemble.boosting.stage_rules import held_out_rows
from certifit.checkers.ensemble.boosting.stages import StageClaim, certify_stages
from certifit.checkers.fitted import fitted_rows
from certifit.checkers.tree.adapter import share_of_rows
from certifit.checkers.tree.greedy import GrowthClaim
from certifit.checkers.tree.sums.adapter import audit_foreign_gradient_boosting
from certifit.core import Certificate, Estimator
from certifit.exceptions import DataError
from certifit.rows import Array, Block, Rows, encode_labels
from certifit.rows.checks import TableTerms

CLAIM = "trees are the greedy least-squares trees of their stage's slopes"


def certify_gradient_boosting(
    model: Mapping[str, Any], rows: Rows, held_out: Array | None, tol: float, tuning: SlopeTuning = SlopeTuning()
) -> Certificate:
    """Check fitted attributes and settings on rows whose y are class numbers or amounts."""
    claim = _stage_claim(model, rows, held_out)
    trees = plain_trees(model["trees_"])
    found = certify_stages(trees, claim, rows, held_out, tol)
    if not all(check.passed for check in found.checks):
        return found
    measures = SlopeMeasures(*(np.asarray(getattr(model["trees_"], name)) for name in ("weight", "mean", "impurity")))
    growth = _growth_claim(model, rows, held_out)
    checks, facts = check_slope_trees(trees, measures, claim, growth, rows, held_out, tuning)
    return replace(
        found, claim=f"{found.claim}; {CLAIM}", checks=(*found.checks, *checks), facts={**found.facts, **facts}
    )


def _stage_claim(model: Mapping[str, Any], rows: Rows, held_out: Array | None) -> StageClaim:
    """What settings say that every stage has done."""
    classes = model.get("classes_")
    loss = str(model["loss"])
    if loss == "log_loss" and classes is not None and len(classes) > 2:
        loss = "multinomial"
    scores = len(classes) if classes is not None and loss == "multinomial" else 1
    huber = loss == "huber"
    levels = np.asarray(model["huber_deltas_"], np.float64) if huber else None
    return StageClaim(
        loss, float(model["alpha"]) if loss == "quantile" else None, float(model["learning_rate"]), 0.0,
        share_of_rows(model["min_samples_leaf"], _kept_count(rows, held_out)), _or_infinite(model["max_depth"]),
        _or_infinite(model["max_leaf_nodes"]), None, scores, (scores - 1) / scores if scores > 1 else 1.0,
        float(model["subsample"]), int(model["draw_seed_"]), levels, float(model["alpha"]) if huber else 0.9,
        first_scores(model, rows, scores),
    )  # fmt: skip


def _or_infinite(limit: int | None) -> float:
    return math.inf if limit is None else limit


def _kept_count(rows: Rows, held_out: Array | None) -> int:
    kept = rows.map(lambda block: block.w) > 0
    return int((kept if held_out is None else kept & ~held_out).sum())


def _growth_claim(model: Mapping[str, Any], rows: Rows, held_out: Array | None) -> GrowthClaim:
    n = _kept_count(rows, held_out)
    whole = int(model["max_features_"]) >= rows.n_features
    return GrowthClaim(
        "squared_error", (), share_of_rows(model["min_samples_split"], n),
        share_of_rows(model["min_samples_leaf"], n), float(model["min_weight_fraction_leaf"]),
        _or_infinite(model["max_depth"]), float(model["min_impurity_decrease"]), whole,
        complete=model["max_leaf_nodes"] is None and float(model["ccp_alpha"]) == 0.0 and whole,
    )  # fmt: skip


def first_scores(model: Mapping[str, Any], rows: Rows, scores: int) -> Array | None:
    """The scores (n, k) that stages begin at where `init` gives them; None for the best constant."""
    init = model["init"]
    if init is None:
        return None
    if isinstance(init, str):
        return np.zeros((rows.n_rows, scores))
    fitted = model["init_estimator_"]
    return rows.map(lambda block: init_scores(fitted, block, str(model["loss"]), scores, "classes_" in model))


def init_scores(fitted: Any, block: Block, loss: str, scores: int, classes: bool) -> Array:
    """What a fitted estimator says of a block's rows, as scores (n, k)."""
    if not classes:
        said = np.asarray(fitted.predict(block.X), np.float64).reshape(-1, 1)
        if loss not in ("poisson", "gamma"):
            return said
        if not (said > 0).all():
            raise DataError(
                got=f"predictions of init down to {said.min():g} with loss={loss!r}", wanted="predictions above 0",
                fix="init=PoissonRegressor(), or None for the best constant.",
            )  # fmt: skip
        return np.log(said)
    eps = float(np.finfo(np.float64).eps)
    shares = np.clip(np.asarray(fitted.predict_proba(block.X), np.float64), eps, 1 - eps)
    if scores == 1:
        return logit(shares[:, 1:2]) * (0.5 if loss == "exponential" else 1.0)
    logs = np.log(shares)
    return logs - logs.mean(axis=1, keepdims=True)


def audit_gradient_boosting(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check a fitted GradientBoostingClassifier or GradientBoostingRegressor, ours or scikit-learn's."""
    if not isinstance(model, Estimator):
        return audit_foreign_gradient_boosting(model, X, y, sample_weight, tol)
    state = {**model.get_params(deep=False), **vars(model)}
    classes = state.get("classes_")
    terms = TableTerms("numbers" if classes is None else "classes", missing=True, sparse=True)
    rows = fitted_rows(model, int(model.n_features_in_), X, y, sample_weight, terms)
    if classes is not None:
        rows = encode_labels(rows, np.asarray(classes)).rows
    held = None
    if state["n_iter_no_change"] is not None:
        held = validation_rows_of(rows, classes is not None, state)
    return certify_gradient_boosting(state, rows, held, tol)


def validation_rows_of(rows: Rows, classes: bool, model: Mapping[str, Any]) -> Array:
    """The rows that were kept for validation (n,)."""
    y = rows.map(lambda block: np.asarray(block.y, np.float64)) if classes else None
    w = rows.map(lambda block: block.w)
    return held_out_rows(y, w, float(model["validation_fraction"]), int(model["draw_seed_"]))
