"""Logistic regression whose penalty was chosen by cross-validation: the choice worked out again.

Every fit of every fold is kept and proved like any other; scores on the rows held out follow from its coefficients,
and the choice from those. With refit=False the coefficients are means over the folds of each fold's best fit.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, softmax

from certifit.checkers.linear_model.cross_validated.absent_classes import is_proved
from certifit.checkers.linear_model.cross_validated.elastic_net import SearchTuning
from certifit.checkers.linear_model.cross_validated.folds import (
    StatedFolds,
    choice_check,
    fold_checks,
    place_of,
    table_check,
    unproved_check,
)
from certifit.checkers.linear_model.logistic.dual_point import LogisticClaim
from certifit.core import Certificate, Check
from certifit.core.scoring import GivenScores, find_scorer
from certifit.rows import Array, ArrayRows


class LogisticSearch(NamedTuple):
    """What was asked for."""

    Cs: Array  # (m,)
    l1_ratios: Array  # (r,)
    free: bool  # whether the intercept is
    cv: Any
    scoring: Any
    refit: bool


class LogisticChoice(NamedTuple):
    """What was found."""

    scores: Array  # (folds, r, m) on the rows held out
    C: float
    l1_ratio: float
    folds: StatedFolds  # coef (folds, r, m, k, d)
    coef: Array  # (k, d)
    intercept: Array  # (k,)


class ScoredRows(NamedTuple):
    """Rows with class numbers: weighted as they are fitted, and as they are scored."""

    data: ArrayRows
    classes: Array  # labels
    w: Array | None  # (n,) weights of scores; None where all are 1


def class_probabilities(scores: Array) -> Array:
    """Probabilities (n, k) of scores (n, 1) or (n, k)."""
    if scores.shape[1] > 1:
        return np.asarray(softmax(scores, axis=1))
    return np.column_stack([expit(-scores[:, 0]), expit(scores[:, 0])])


def held_out_scores(search: LogisticSearch, folds: StatedFolds, rows: ScoredRows) -> Array:
    """Scores (folds, r, m) of the fits on the rows held out of them; the labels are those of the table."""
    judge = GivenScores(rows.classes, class_probabilities)
    find, out = find_scorer(judge, search.scoring), []
    for _, held, coef, intercept in folds.each(ArrayRows(rows.data.X, np.arange(rows.data.n_rows), rows.data.w)):
        assert held.y is not None
        assert rows.data.y is not None
        truth = rows.classes[rows.data.y[held.y]]
        w = None if rows.w is None else rows.w[held.y]
        accurate = search.scoring is None
        score = partial(_accuracy, judge, truth, w) if accurate else partial(_score, find, judge, truth, w)
        out.append(
            [
                [score(np.asarray(held.X @ c.T) + b) for c, b in zip(cs, bs, strict=True)]
                for cs, bs in zip(coef, intercept, strict=True)
            ]
        )
    return np.array(out)


def _accuracy(judge: GivenScores, truth: Array, w: Array | None, values: Array) -> float:
    """The share of rows of these labels that values (n, 1) or (n, k) classify right."""
    return float(np.average(judge.predict(values) == truth, weights=w))


def _score(find: Any, judge: GivenScores, truth: Array, w: Array | None, values: Array) -> float:
    """The score of values (n, 1) or (n, k) for rows of these labels."""
    try:
        return float(find(judge, values, truth, **({} if w is None else {"sample_weight": w})))
    except ValueError:
        codes, k = np.searchsorted(judge.classes_, truth), len(judge.classes_)
        absent = np.setdiff1d(np.arange(k), codes)
        if not len(absent) and np.array_equal(codes, truth):
            raise
    # Losses of probabilities ask for numbers as labels, and for a row of every class: rows of weight 0 stand for
    # those that were not held out.
    weight = np.append(np.ones(len(truth)) if w is None else w, np.zeros(len(absent)))
    shown = np.concatenate([values, np.zeros((len(absent), values.shape[1]))])
    numbered = GivenScores(np.arange(k), judge.probabilities)
    return float(find(numbered, shown, np.append(codes, absent), sample_weight=weight))


def best_place(scores: Array) -> tuple[int, int]:
    """The place (share, C) of the largest sum over folds (r, m); of equals the first C, then the first share."""
    total = scores.sum(axis=0).T
    C, share = np.unravel_index(int(np.argmax(total)), total.shape)
    return int(share), int(C)


def fold_places(scores: Array) -> list[tuple[int, int]]:
    """The place (share, C) of each fold's own best."""
    return [best_place(one[None]) for one in scores]


def complete_folds(folds: StatedFolds) -> Array:
    """Say which folds (folds,) have fits of every class: a class that a fold lacks has an intercept of -∞."""
    return np.asarray(np.isfinite(folds.intercept).all(axis=(1, 2, 3)))


def claim_at(search: LogisticSearch, share: int, C: int) -> LogisticClaim:
    """The problem of the fits with this share and this C."""
    ratio, strength = float(search.l1_ratios[share]), float(search.Cs[C])
    return LogisticClaim(ratio / strength, (1 - ratio) / strength, search.free)


def unproved_fits(search: LogisticSearch, folds: StatedFolds, tol: float, data: ArrayRows) -> int:
    """The number of fits of folds that are not proved."""
    count, close = 0, SearchTuning().close
    for fitted, _, coef, intercept in folds.each(data):
        for share, C in np.ndindex(coef.shape[:2]):
            claim = claim_at(search, share, C)
            count += not is_proved((coef[share, C], intercept[share, C]), claim, tol, fitted, close)
    return count


def logistic_checks(
    search: LogisticSearch,
    choice: LogisticChoice,
    rows: ScoredRows,
    unproved: int,
    tuning: SearchTuning = SearchTuning(),
    scores: Array | None = None,
) -> tuple[Check, ...]:
    """Checks of the folds, the scores and the choice; `scores` are those of `held_out_scores`, where known."""
    scores = held_out_scores(search, choice.folds, rows) if scores is None else scores
    checks = (
        *fold_checks(search.cv, choice.folds.roles, rows.data, classes=True),
        *_free_parts(search, choice.folds, tuning.close),
        unproved_check(unproved),
        table_check("scores_", choice.scores, scores, tuning.close),
    )
    if not search.refit:
        return checks
    share, is_share = place_of("l1_ratio_", choice.l1_ratio, search.l1_ratios, tuning.close)
    C, is_strength = place_of("C_", choice.C, search.Cs, tuning.close)
    chosen = choice_check("C_ and l1_ratio_", scores.sum(axis=0), (share, C), tuning.close)
    return (*checks, is_share, is_strength, chosen)


def _free_parts(search: LogisticSearch, folds: StatedFolds, close: float) -> tuple[Check, ...]:
    """Checks that what is free among several classes, a vector common to all, is put as our fits put it: at 0."""
    if folds.intercept.shape[-1] == 1:
        return ()
    # Classes that a fold lacks have an intercept of -inf.
    parts = [("intercepts", np.where(np.isinf(folds.intercept), 0.0, folds.intercept))]
    if np.isinf(search.Cs).any():
        parts.append(("coefficients", np.moveaxis(folds.coef[:, :, np.isinf(search.Cs)], -2, -1)))
    return tuple(
        Check(
            f"mean over the classes of {name} of the folds",
            float(np.abs(part.mean(axis=-1)).max(initial=0.0)),
            close * float(np.abs(part).max(initial=0.0)),
        )
        for name, part in parts
    )


def mean_certificate(
    search: LogisticSearch, choice: LogisticChoice, checks: tuple[Check, ...], tuning: SearchTuning = SearchTuning()
) -> Certificate:
    """Of refit=False: coefficients are the means over the folds of the fit with each fold's best score.

    Folds that lack a class are left out.
    """
    whole = complete_folds(choice.folds)
    places = fold_places(choice.scores[whole])
    found = zip(choice.folds.coef[whole], choice.folds.intercept[whole], places, strict=True)
    parts = [(coef[place], intercept[place]) for coef, intercept, place in found]
    coef, intercept = (np.mean([part[i] for part in parts], axis=0) for i in (0, 1))
    C = np.mean([search.Cs[C] for _, C in places])
    ratio = np.mean([search.l1_ratios[share] for share, _ in places])
    return Certificate(
        "exact",
        "coefficients are the means over the folds of each fold's best fit, and every such fit is optimal",
        checks=(
            table_check("coef_", choice.coef, coef, tuning.close),
            table_check("intercept_", choice.intercept, intercept, tuning.close),
            table_check("C_", np.asarray(choice.C), np.asarray(C), tuning.close),
            table_check("l1_ratio_", np.asarray(choice.l1_ratio), np.asarray(ratio), tuning.close, 1.0),
            *checks,
        ),
    )
