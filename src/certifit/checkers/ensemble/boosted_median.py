"""Proofs about AdaBoost for amounts (AdaBoost.R2): its stages replayed from the predictions of its learners alone.

Reference: Drucker, Improving regressors using boosting techniques (ICML 1997). Rows have weights w that add up to 1;
losses l are distances from the target as shares of the largest (or their squares, or 1 - exp of minus them); a stage
of mean loss e has β = e / (1 - e) and the strength ν log(1/β), and rows are multiplied by β^(ν (1 - l)). The ensemble
predicts the median of its learners' predictions, weighted by their strengths.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from certifit.checkers.ensemble.validation_rows import without_validation_rows
from certifit.checkers.fitted import fitted_rows, numbers, setting
from certifit.checkers.plain.dual_points import EPS, summation_error
from certifit.checkers.tree.learner_trees import nodes_of_learners
from certifit.core import Certificate, Check, Setting
from certifit.exceptions import DataError
from certifit.rows import Array, Rows
from certifit.rows.checks import TableTerms

CLAIM = "weights, errors and strengths of all stages follow from the learners' predictions"


def audit_boosted_regressor(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check a fitted AdaBoostRegressor."""
    terms = TableTerms("numbers", missing=True)
    rows = fitted_rows(model, int(model.n_features_in_), X, y, sample_weight, terms)
    return certify_regressor(model, without_validation_rows(model, rows), tol)


def certify_regressor(model: Any, rows: Rows, tol: float) -> Certificate:
    """Check an AdaBoostRegressor on rows, those for validation without weight."""
    data = rows.load()
    kept = data.w > 0
    X, y = data.X if kept.all() else data.X[kept], np.asarray(data.y, dtype=np.float64)[kept]
    members = model.members_ if hasattr(model, "members_") else model.estimators_
    asked = int(setting(model, "n_estimators", Setting(int, least=1)))
    rate = float(setting(model, "learning_rate", Setting(float, above=0)))
    strengths, errors = numbers(model, "estimator_weights_"), numbers(model, "estimator_errors_")
    if not (strengths.shape == errors.shape == (asked,) and 0 < len(members) <= asked):
        raise DataError(
            got=f"{len(members)} estimators, {strengths.shape} weights and {errors.shape} errors of {asked} stages",
            wanted="a number for each stage, as fit leaves them",
            fix="Fit it again.",
        )
    s = data.w[kept] / data.w[kept].sum()
    told = np.stack([np.asarray(member.predict(X), dtype=np.float64) for member in members])
    losses = [stage_losses(t, y, model.loss) for t in told]
    # Rows that were drawn are not known.
    nodes = None if getattr(model, "resample", True) else nodes_of_learners(members, X, y)
    off = _replay(losses, s, errors, strengths, rate, nodes)
    rest = len(members)
    off["numbers of stages that there are not"] = float((strengths[rest:] != 0).sum() + (errors[rest:] != 1).sum())
    limits = {name: 1.0 if name.endswith("rounding allows") else 0.0 for name in off}
    checks = tuple(Check(name, residual, limits[name]) for name, residual in off.items())
    away = np.abs(weighted_median(told, strengths[:rest]) - y)
    objective = float(s @ away)
    facts = {"stages": float(rest), "largest distance of a row": float(away.max())}
    return Certificate("exact", CLAIM, objective, 0.0, tol, checks=checks, facts=facts)


def stage_losses(told: Array, y: Array, loss: str) -> Array:
    """The losses of a learner (n,), between 0 and 1."""
    away = np.abs(told - y)
    largest = float(away.max())
    share = away / largest if largest > 0 else away
    return {"linear": share, "square": share**2, "exponential": 1 - np.exp(-share)}[loss]


def _replay(
    losses: list[Array], w: Array, errors: Array, strengths: Array, rate: float,
    nodes: Callable[[int, Array], float] | None,
) -> dict[str, float]:  # fmt: skip
    """How far errors and strengths are from what the losses say, and the `nodes` of learners from the weights."""
    off = {"errors off by, of what rounding allows": 0.0, "strengths off by, of what rounding allows": 0.0,
           "stages after one that ends boosting": 0.0}  # fmt: skip
    for m, loss in enumerate(losses):
        w = np.maximum(w, EPS)  # as learners are handed them
        error = float(w @ loss)
        if nodes is not None:
            _worst(off, "nodes of learners off by, of what rounding allows", nodes(m, w))
        told, strength = float(errors[m]), float(strengths[m])
        # A first learner that is too poor (told 1) is kept alone; a stage without loss has the strength 1.
        ends = not 0 < told < 0.5
        if ends:
            off["stages after one that ends boosting"] = float(len(losses) - 1 - m)
        apart = max(0.0, 0.5 - error) if told == 1 else abs(error - told)
        allowed = (summation_error(len(w)) + 16 * EPS * (m + 1) + EPS * len(w)) * max(error, told)
        _worst(off, "errors off by, of what rounding allows", apart / (allowed + np.finfo(float).tiny))
        wanted = float(told <= 0) if ends else rate * np.log((1 - told) / told)
        slack = 64 * EPS * (1 + abs(wanted)) * max(1.0, rate)
        _worst(off, "strengths off by, of what rounding allows", abs(strength - wanted) / slack)
        if ends:
            break
        w = w * (told / (1 - told)) ** (rate * (1 - loss))
        w /= w.sum()
    return off


def _worst(off: dict[str, float], name: str, residual: float) -> None:
    off[name] = max(off.get(name, 0.0), residual if residual == residual else np.inf)


def weighted_median(told: Array, strengths: Array) -> Array:
    """The lowest prediction (stages, n) at which half of the strength (stages,) is reached, row by row (n,)."""
    order = np.argsort(told, axis=0, kind="stable")
    reached = np.cumsum(strengths[order], axis=0)
    at = (reached >= 0.5 * reached[-1]).argmax(axis=0)
    rows = np.arange(told.shape[1])
    return told[order[at, rows], rows]
