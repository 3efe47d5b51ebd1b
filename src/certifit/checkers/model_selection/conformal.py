"""Whether a conformal model covers what it says: from the scores of its calibration rows, made anew from the data.

A calibration row's score says how wrong the model was about a row that it had not seen. The radius is the k-th
smallest of n scores, k = ⌈(n + 1) · coverage⌉: a new row, drawn as they were, has a score at most so large with a
chance of k / (n + 1), or more where scores tie. The coverage of this very model, over all new rows, is drawn from the
Beta law with parameters k and n + 1 - k (Vovk, Conditional validity of inductive conformal predictors, 2012). Folds,
and leaving out one row at a time, prove less: 1 - 2α, and for folds a little less still (Barber, Candès, Ramdas &
Tibshirani, Predictive inference with the jackknife+, 2021).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import beta

from certifit.core import Certificate, Check
from certifit.exceptions import DataError
from certifit.rows import Array


@dataclass(frozen=True)
class ConformalClaim:
    """What a conformal model says of itself."""

    coverage: float
    scores: Mapping[Any, Array]  # of calibration rows, by group; one group where there are none
    radius: Mapping[Any, float]  # by group; empty where every row has its own (folds)
    n_folds: int = 0  # 0 for a split


def certify_conformal(claim: ConformalClaim, confidence: float = 0.95) -> Certificate:
    """Prove how many new rows a conformal model covers."""
    checks: list[Check] = []
    facts: dict[str, float | str] = {"calibration rows": sum(map(len, claim.scores.values()))}
    for group, scores in claim.scores.items():
        n, of = len(scores), "" if len(claim.scores) == 1 else f" of {group}"
        k = smallest_rank(n, claim.coverage)
        checks.append(Check(f"scores{of} that are no numbers", float(np.count_nonzero(~np.isfinite(scores))), 0.0))
        if claim.n_folds:
            continue
        radius = claim.radius.get(group, math.nan)
        # The k-th smallest, by counting: at most n - k scores are larger, at most k - 1 are smaller.
        checks.append(Check(f"scores{of} beyond the radius", float(np.count_nonzero(~(scores <= radius))), n - k))
        checks.append(Check(f"scores{of} within the radius", float(np.count_nonzero(scores < radius)), k - 1))
        facts[f"coverage{of} on average"] = f"{k / (n + 1):.4f}, and more where scores tie"
        least = float(beta.ppf(1 - confidence, k, n + 1 - k)) if k <= n else 1.0
        facts[f"this model{of}, with {100 * confidence:g} % confidence"] = f"at least {100 * least:.1f} % of new rows"
    facts["assumed"] = "calibration rows and new rows are exchangeable: drawn alike, in any order"
    promised = proved_coverage(claim)
    words = f"a new row is covered with a chance of at least {100 * promised:.4g} %"
    if set(claim.scores) != {None}:
        words += " in every group"
    if claim.n_folds:
        facts["asked for"] = f"{100 * claim.coverage:g} %, which folds usually reach; the proof is for 1 - 2α, about"
    return Certificate("statistical", words, checks=tuple(checks), facts=facts)


def smallest_rank(n: int, coverage: float) -> int:
    """Return ⌈(n + 1) · coverage⌉, without an extra 1 by rounding.

    >>> smallest_rank(9, 0.9), smallest_rank(99, 0.95), smallest_rank(10, 0.9)
    (9, 95, 10)
    """
    return math.ceil((n + 1) * coverage * (1 - 4e-16) - 1e-12)


def rows_needed(coverage: float) -> int:
    """Return the smallest number of calibration rows with a finite radius.

    >>> rows_needed(0.9), rows_needed(0.95), rows_needed(0.5)
    (9, 19, 1)
    """
    n = max(1, math.floor(coverage / (1 - coverage)) - 1)
    while smallest_rank(n, coverage) > n:
        n += 1
    return n


def proved_coverage(claim: ConformalClaim) -> float:
    """Return the chance that is proved for a new row."""
    if not claim.n_folds:
        return claim.coverage
    n, k = sum(map(len, claim.scores.values())), claim.n_folds
    loss = min(2 * (1 - 1 / k) / (n / k + 1), (1 - k / n) / (k + 1))
    return max(0.0, 1 - 2 * (1 - claim.coverage) - loss)


# Fitted models ----------------------------------------------------------------------------------------------------


def audit_conformal(model: Any, X: Any, y: Any, sample_weight: Any, _tol: float) -> Certificate:
    """Prove a conformal model's coverage from the data: its scores and one of its fits are made anew."""
    if sample_weight is not None:
        raise DataError(got="sample_weight", wanted="none: rows of a conformal model count alike")
    target = np.asarray(y)
    rows = np.asarray(model.calibration_rows_)
    if rows.min() < 0 or rows.max() >= len(target) or len(np.unique(rows)) != len(rows):
        raise DataError(got="calibration rows beyond the table, or twice", wanted="the data it was fitted on")
    fold = np.asarray(model.calibration_folds_)
    scores = np.full(len(rows), np.nan)
    for k, fitted in enumerate(model.estimators_):
        here = fold == k
        scores[here] = plain_scores(model, fitted, _take(X, rows[here]), target[rows[here]])
    told = np.asarray(model.scores_)
    off = float(np.abs(scores - told).max()) if told.shape == scores.shape else math.inf
    size = max(1.0, float(np.abs(scores).max()))
    groups = np.asarray(model.calibration_groups_) if model.calibration_groups_ is not None else None
    if getattr(model, "conditional", None) == "class":
        groups = target[rows]
    claim = ConformalClaim(model.coverage, by_group(scores, groups), dict(model.radius_), model.n_folds_)
    found = certify_conformal(claim)
    folds = len(model.estimators_) if model.method in ("cv+", "jackknife+") else 0
    checks = [
        Check("calibration scores off by", off, 1e-9 * size),
        Check("folds off by", float(abs(folds - model.n_folds_)), 0.0),
        *_refit(model, X, target, rows, fold),
    ]
    return Certificate("statistical", found.claim, checks=(*checks, *found.checks), facts=found.facts)


def _refit(model: Any, X: Any, y: Array, rows: Array, fold: Array) -> Sequence[Check]:
    """Fit again what a fit can be asked for: the first copy without its rows, and the model that predicts."""
    held_out = rows[fold == 0]
    X_held = _take(X, held_out)
    first, everything = model.estimators_[0], np.arange(len(y))
    again = first
    if model.method != "prefit":
        train = np.setdiff1d(everything, held_out)
        again = copy.deepcopy(first).fit(_take(X, train), y[train])
    predicting = copy.deepcopy(model.estimator_).fit(X, y) if model.n_folds_ else first
    pairs = {"first copy": (first, again), "model that predicts": (model.estimator_, predicting)}
    checks = []
    for name, pair in pairs.items():
        a, b = (_answers(model, fitted, X_held) for fitted in pair)
        off = float(np.abs(a - b).max()) / max(1.0, float(np.abs(b).max()))
        checks.append(Check(f"answers of the {name}, fitted again, off by", off, 1e-6))
    return checks


def _answers(model: Any, fitted: Any, X: Any) -> Array:
    method = "predict_proba" if hasattr(model, "classes_") else "predict"
    return np.asarray(getattr(fitted, method)(X), dtype=np.float64)


def plain_scores(model: Any, fitted: Any, X: Any, y: Array) -> Array:
    """Return how wrong a fitted model is about each row (m,): a distance, or what the likelier classes take."""
    said = _answers(model, fitted, X)
    if not hasattr(model, "classes_"):
        return np.abs(y - said)
    at = np.array([list(model.classes_).index(label) for label in y.tolist()], dtype=np.intp)
    own = said[np.arange(len(y)), at]
    if model.score_kind == "threshold":
        return 1 - own
    return np.where(said >= own[:, None], said, 0.0).sum(axis=1)


def by_group(scores: Array, groups: Array | None) -> dict[Any, Array]:
    """Return scores by group; all of them under None where there are no groups."""
    if groups is None:
        return {None: scores}
    return {name: scores[groups == name] for name in np.unique(groups).tolist()}


def _take(X: Any, rows: Array) -> Any:
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return [X[i] for i in rows] if isinstance(X, list | tuple) else X[rows]
