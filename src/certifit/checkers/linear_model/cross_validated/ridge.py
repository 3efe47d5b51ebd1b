"""Ridge regression whose strength was chosen by leave-one-out or by folds: the choice worked out again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from certifit.checkers.linear_model.cross_validated.elastic_net import SearchTuning
from certifit.checkers.linear_model.cross_validated.folds import (
    StatedFolds,
    choice_check,
    fold_checks,
    place_of,
    table_check,
    unproved_check,
)
from certifit.checkers.linear_model.cross_validated.leave_one_out import predictions_without
from certifit.checkers.linear_model.cross_validated.squares import SquaredFits, squared_gaps
from certifit.core import Check
from certifit.core.scoring import GivenPredictions, GivenScores, find_scorer
from certifit.rows import Array, ArrayRows


class RidgeSearch(NamedTuple):
    """What was asked for."""

    alphas: Array  # (a,) strengths, of all rows together
    free: bool  # whether the intercept is
    cv: Any  # None for leave-one-out
    scoring: Any
    per_target: bool = False  # whether every target has its own strength


@dataclass(frozen=True)
class RidgeTargets:
    """The targets that are regressed on, and those that are scored."""

    Y: Array  # (n, t)
    scored: Array  # (n,) or (n, t), or class numbers
    classes: Array | None = None  # class numbers of a classifier
    w: Array | None = None  # (n,) weights of scores; None where all are 1

    def scorer(self, scoring: Any) -> Callable[[Array, Any], float]:
        """The function (predictions (n, t), which rows) -> score."""
        judge: Any = GivenPredictions() if self.classes is None else GivenScores(self.classes)
        find = find_scorer(judge, scoring)

        def score(predictions: Array, rows: Any) -> float:
            flat = self.classes is None and self.scored.ndim == 1
            more = {"sample_weight": self.w[rows]} if self.w is not None else {}
            return float(find(judge, predictions[:, 0] if flat else predictions, self.scored[rows], **more))

        return score

    def one(self, t: int) -> RidgeTargets:
        """One target alone."""
        return RidgeTargets(self.Y[:, t : t + 1], self.Y[:, t], None, self.w)


class RidgeChoice(NamedTuple):
    """What was found."""

    alpha: Any  # float, or (t,)
    best_score: Any  # float, or (t,)
    cv_results: Array | None  # (n, a) or (n, t, a)
    folds: StatedFolds | None  # coef (folds, a, t, d)


def leave_one_out_scores(search: RidgeSearch, targets: RidgeTargets, w: Array, predicted: Array) -> Array:
    """Scores (a,), or (a, t) with a strength for each target, of leave-one-out predictions (a, n, t)."""
    if search.scoring is None:
        errors = weighted_squares(targets, w, predicted)
        return -errors.mean(axis=1) if search.per_target else -errors.mean(axis=(1, 2))
    every = slice(None)
    if not search.per_target:
        score = targets.scorer(search.scoring)
        return np.array([score(p, every) for p in predicted])
    each = [targets.one(t).scorer(search.scoring) for t in range(targets.Y.shape[1])]
    return np.array([[score(p[:, t : t + 1], every) for t, score in enumerate(each)] for p in predicted])


def weighted_squares(targets: RidgeTargets, w: Array, predicted: Array) -> Array:
    """Squared errors (a, n, t) of predictions, times the weights."""
    return np.asarray(w[:, None] * (targets.Y - predicted) ** 2)


def fold_scores(search: RidgeSearch, targets: RidgeTargets, folds: StatedFolds, data: ArrayRows) -> Array:
    """Scores (folds, a) of the fits of folds on the rows held out of them."""
    score, out = targets.scorer(search.scoring), []
    numbered = ArrayRows(data.X, np.arange(data.n_rows), data.w)
    for _, held, coef, intercept in folds.each(numbered):
        made = [np.asarray(held.X @ c.T) + b for c, b in zip(coef, intercept, strict=True)]
        out.append([score(p, held.y) for p in made])
    return np.array(out)


def ridge_checks(
    search: RidgeSearch,
    choice: RidgeChoice,
    targets: RidgeTargets,
    tol: float,
    data: ArrayRows,
    tuning: SearchTuning = SearchTuning(),
) -> tuple[Check, ...]:
    """Checks of the predictions, their scores and the choice."""
    if search.cv is not None:
        return _fold_choice(search, choice, targets, tol, data, tuning)
    predicted, lost = predictions_without(data, targets.Y, search.alphas, search.free)
    close = tuning.close + lost
    scores = leave_one_out_scores(search, targets, data.w, predicted)
    checks = _choice(search, choice, scores, close)
    if choice.cv_results is None:
        return checks
    table = weighted_squares(targets, data.w, predicted) if search.scoring is None else predicted
    table = np.moveaxis(table, 0, -1)
    return (*checks, table_check("cv_results_", choice.cv_results.reshape(table.shape), table, close))


def _choice(search: RidgeSearch, choice: RidgeChoice, scores: Array, close: float) -> tuple[Check, ...]:
    """Checks of the strengths chosen, and of their scores."""
    if not search.per_target:
        place, known = place_of("alpha_", float(choice.alpha), search.alphas, close)
        best = np.asarray(choice.best_score, dtype=np.float64)
        size = float(np.abs(scores[np.isfinite(scores)]).max(initial=0.0))
        return (
            known,
            choice_check("alpha_", scores, (place,), close),
            table_check("best_score_", best, scores[place], close, size),
        )
    checks, alphas = [], np.broadcast_to(np.ravel(choice.alpha), scores.shape[1])
    for t, alpha in enumerate(alphas.tolist()):
        place, known = place_of(f"alpha_[{t}]", alpha, search.alphas, close)
        checks.append(known)
        checks.append(choice_check(f"alpha_[{t}]", scores[:, t], (place,), close))
        best = np.asarray(np.ravel(choice.best_score)[t], dtype=np.float64)
        size = float(np.abs(scores[:, t]).max())
        checks.append(table_check(f"best_score_[{t}]", best, scores[place, t], close, size))
    return tuple(checks)


def _fold_choice(
    search: RidgeSearch,
    choice: RidgeChoice,
    targets: RidgeTargets,
    tol: float,
    data: ArrayRows,
    tuning: SearchTuning,
) -> tuple[Check, ...]:
    assert choice.folds is not None
    unproved, numbered = 0, ArrayRows(data.X, np.arange(data.n_rows), data.w)
    for fitted, _, coef, intercept in choice.folds.each(numbered):
        for t in range(targets.Y.shape[1]):
            fits = SquaredFits(coef[:, t], intercept[:, t], 0 * search.alphas, search.alphas, search.free)
            gaps = squared_gaps(fitted, targets.Y[fitted.y, t], fits)
            unproved += int(gaps.unproved(tuning.fold_tol * tol).sum())
    scores = fold_scores(search, targets, choice.folds, data).mean(axis=0)
    whole = ArrayRows(data.X, targets.scored, data.w)
    return (
        *fold_checks(search.cv, choice.folds.roles, whole, classes=targets.classes is not None),
        unproved_check(unproved),
        *_choice(search, choice, scores, tuning.close),
    )
