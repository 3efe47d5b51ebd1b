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

from certifit.checkers.model_selection.copies import copied_share
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
    came_fitted: bool = False  # the estimator, so that nothing says which rows it has seen
    copied: float = 0.0  # share of calibration rows that are copies of rows which their model was fitted to


def certify_conformal(claim: ConformalClaim, confidence: float = 0.95) -> Certificate:
    """Prove how many new rows a conformal model covers."""
    # Copies are known by heart: new rows are not, and are covered less often by up to as much.
    checks = [Check("share of calibration rows that are copies of fitted ones", claim.copied, 0.01)]
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
    words = "calibration rows and new rows are exchangeable: drawn alike, in any order"
    if claim.came_fitted:
        words += "; the estimator came fitted, and not to these rows, which nothing can prove"
    facts["assumed"] = words
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
    """Return the chance that is proved for a new row.

    A missed row has at most n - rank votes for it. Folds k of m rows each give it a p-value (votes + 1) / (m + 1),
    and twice a weighted mean of p-values is one: that is the first bound. The second is of folds that are all alike,
    and of single rows.

    >>> scores = {None: np.arange(100.0)}
    >>> round(proved_coverage(ConformalClaim(0.9, scores, {}, n_folds=10)), 4)
    0.7182
    >>> round(proved_coverage(ConformalClaim(0.9, scores, {}, n_folds=100)), 4)
    0.8
    """
    if not claim.n_folds:
        return claim.coverage
    n, k = sum(map(len, claim.scores.values())), claim.n_folds
    proved = 1 - 2 * (k + n - smallest_rank(n, claim.coverage)) / (n + k)
    if n % k == 0:
        proved = max(proved, 1 - 2 * (1 - claim.coverage) - (1 - k / n) / (k + 1))
    return max(0.0, proved)


# Fitted models ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ConformalAuditTuning:
    """How much is fitted again."""

    most_copies: int = 10  # of those that left out a fold; of single rows some are, spread over all


def audit_conformal(model: Any, X: Any, y: Any, sample_weight: Any, _tol: float) -> Certificate:
    """Prove a conformal model's coverage from the data: its scores and its fits are made anew."""
    if sample_weight is not None:
        raise DataError(got="sample_weight", wanted="none: rows of a conformal model count alike")
    target = np.asarray(y)
    target = target.ravel() if target.shape == (len(target), 1) else target
    rows, fold = np.asarray(model.calibration_rows_), np.asarray(model.calibration_folds_)
    if rows.min() < 0 or rows.max() >= len(target) or len(np.unique(rows)) != len(rows):
        raise DataError(got="calibration rows beyond the table, or twice", wanted="the data it was fitted on")
    scores = np.full(len(rows), np.nan)
    for k, fitted in enumerate(model.estimators_):
        here = fold == k
        scores[here] = plain_scores(model, fitted, _take(X, rows[here]), target[rows[here]])
    told = np.asarray(model.scores_)
    off = float(np.abs(scores - told).max()) if told.shape == scores.shape else math.inf
    size = float(np.abs(scores).max())
    groups = np.asarray(model.calibration_groups_) if model.calibration_groups_ is not None else None
    strata = target[rows] if getattr(model, "conditional", None) == "class" else groups
    by = by_group(scores, strata)
    copied = copied_share(X, target, rows, fold)
    claim = ConformalClaim(model.coverage, by, dict(model.radius_), model.n_folds_, model.method == "prefit", copied)
    found = certify_conformal(claim)
    folds = len(model.estimators_) if model.method in ("cv+", "jackknife+") else 0
    sizes = np.bincount(fold, minlength=max(1, len(model.estimators_)))
    other = 0 if _are_alike(strata, model.calibration_strata_) else 1
    refits, numbers = _refit(model, X, target, rows, fold)
    checks = [
        Check("calibration scores off by", off, 1e-9 * size),
        Check("folds off by", float(abs(folds - model.n_folds_)), 0.0),
        Check("rows by which folds differ", float(np.ptp(sizes)), 1.0),
        # Who may choose the rows to calibrate on leaves out those that the model is wrong about.
        Check("rows that calibrate nothing", 0.0 if model.method == "split" else float(len(target) - len(rows)), 0.0),
        Check("rows of a fold of single rows", float(sizes.max()) if model.method == "jackknife+" else 1.0, 1.0),
        Check("groups that are not those of the radii", float(other), 0.0),
        *refits,
    ]
    facts: dict[str, float | str] = {**found.facts, "copies fitted again": f"{numbers} of {len(model.estimators_)}"}
    if groups is not None:
        facts["groups"] = "as stored with the model: the table does not tell them"
    return Certificate("statistical", found.claim, checks=(*checks, *found.checks), facts=facts)


def _are_alike(strata: Array | None, told: Any) -> bool:
    if strata is None or told is None:
        return strata is None and told is None
    return bool(np.array_equal(strata, np.asarray(told)))


def _refit(
    model: Any, X: Any, y: Array, rows: Array, fold: Array, tuning: ConformalAuditTuning = ConformalAuditTuning()
) -> tuple[Sequence[Check], int]:
    """Fit copies again without their rows, and the model that predicts; return how far off, and how many copies."""
    copies, everything = model.estimators_, np.arange(len(y))
    asked = np.unique(np.linspace(0, len(copies) - 1, min(len(copies), tuning.most_copies)).astype(int))
    asked, worst = asked[:0] if model.method == "prefit" else asked, 0.0
    for k in asked.tolist():
        train = np.setdiff1d(everything, rows[fold == k])
        again = copy.deepcopy(copies[k]).fit(_take(X, train), y[train])
        worst = max(worst, _distance(model, (copies[k], again), _take(X, rows[fold == k])))
    predicting = copy.deepcopy(model.estimator_).fit(X, y) if model.n_folds_ else copies[0]
    apart = _distance(model, (model.estimator_, predicting), _take(X, rows[fold == 0]))
    return (
        Check("answers of copies, fitted again, off by", worst, 1e-6),
        Check("answers of the model that predicts, fitted again, off by", apart, 1e-6),
    ), len(asked)


def _distance(model: Any, pair: tuple[Any, Any], X: Any) -> float:
    """Return how far the answers of two fitted models are apart, in the size of the second's."""
    a, b = (answers_of(model, fitted, X) for fitted in pair)
    return float(np.abs(a - b).max()) / max(float(np.abs(b).max()), 1e-300)


def answers_of(model: Any, fitted: Any, X: Any) -> Array:
    """Return what a fitted copy answers: a number for each row (m,), or a probability for each class (m, k)."""
    if hasattr(model, "classes_"):
        said, wanted = np.asarray(fitted.predict_proba(X), dtype=np.float64), "a probability for each row and class"
        fits = said.ndim == 2 and said.shape[1] == len(model.classes_)
    else:
        said, wanted = np.asarray(fitted.predict(X), dtype=np.float64), "one number for each row"
        said = said.ravel() if said.ndim == 2 and said.shape[1] == 1 else said
        fits = said.ndim == 1
    if not fits:
        raise DataError(got=f"answers of shape {said.shape} of a {type(fitted).__name__}", wanted=wanted)
    return said


def plain_scores(model: Any, fitted: Any, X: Any, y: Array) -> Array:
    """Return how wrong a fitted model is about each row (m,): a distance, or what the likelier classes take."""
    said = answers_of(model, fitted, X)
    if not hasattr(model, "classes_"):
        return np.abs(y - said)
    number = {label: j for j, label in enumerate(np.asarray(model.classes_).tolist())}
    at = np.array([number[label] for label in y.tolist()], dtype=np.intp)
    own = said[np.arange(len(y)), at]
    if model.score_kind == "threshold":
        return 1 - own
    # Nothing is as likely as what is no number, and nothing would be added up.
    taken = np.where(said >= own[:, None], said, 0.0).sum(axis=1)
    return np.where(np.isfinite(said).all(axis=1), taken, np.nan)


def by_group(scores: Array, groups: Array | None) -> dict[Any, Array]:
    """Return scores by group; all of them under None where there are no groups."""
    if groups is None:
        return {None: scores}
    return {name: scores[groups == name] for name in np.unique(groups).tolist()}


def _take(X: Any, rows: Array) -> Any:
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if hasattr(X, "column_names"):  # Arrow's own
        return X.take(rows)
    if hasattr(X, "tocsr"):
        return X.tocsr()[rows]
    return [X[i] for i in rows] if isinstance(X, list | tuple) else X[rows]
