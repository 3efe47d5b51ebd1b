"""Scores from resampling of rows: nested cross-validation, the bootstrap, .632 and .632+, and out of bag.

References: Bates, Hastie & Tibshirani, Cross-validation: what does it estimate and how well does it do it? (2024);
Efron & Tibshirani, Improvements on cross-validation: the .632+ bootstrap method (1997).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.base import clone

from certifit.checkers.model_selection.intervals import IntervalClaim
from certifit.exceptions import DataError
from certifit.model_selection.assessment.held_out import AssessedProblem, UnseenAnswers
from certifit.model_selection.assessment.intervals import normal_claim
from certifit.model_selection.assessment.metrics import ROW_METRICS, RowMetric
from certifit.model_selection.assessment.plans import draw_folds
from certifit.rows import Array


@dataclass(frozen=True)
class NestedScores:
    """What nested folds say of one metric."""

    rows: Array  # (n,) scores of rows by the models that left out their fold, the first time
    inner: float  # mean score of models that leave out two folds
    outer: float  # mean score of models that leave out one fold
    mean_squared_error: float  # of the inner mean as an estimate of the score of the model fitted to its rows


def nested_claims(
    problem: AssessedProblem, names: Sequence[str], options: Any, seed: int, confidence: float
) -> tuple[list[IntervalClaim], list[UnseenAnswers], int]:
    """Return claims by nested cross-validation, what the outer models of the first draw answer, and the fits made."""
    folds_a_draw, rng = options["n_splits"], np.random.RandomState(seed)
    if folds_a_draw < 3:
        raise DataError(got=f"n_splits={folds_a_draw} with method='nested'", wanted="at least 3 folds")
    if problem.weights is not None:
        raise DataError(
            got="sample_weight with method='nested'",
            wanted="rows that count alike",
            fix="Use method='repeated'.",
        )
    draws = []
    for _ in range(options["n_repeats"]):
        splits, _notes = draw_folds(problem, folds_a_draw, 1, rng)
        folds = [test for _, test in splits]
        pairs = [*combinations(range(folds_a_draw), 2)]
        everything = np.arange(len(problem.y))
        inner = problem.hold_out(
            [(np.setdiff1d(everything, held), held) for held in (np.r_[folds[i], folds[j]] for i, j in pairs)]
        )
        draws.append((folds, pairs, problem.hold_out(splits), inner))
    claims = []
    for name in names:
        found = _nested_scores(problem, ROW_METRICS[name], draws)
        claims.append(_nested_claim(name, found, folds_a_draw, confidence, len(problem.y)))
    fits = len(draws) * (folds_a_draw + len(draws[0][1]))
    return claims, draws[0][2], fits


def _nested_scores(problem: AssessedProblem, metric: RowMetric, draws: Sequence[Any]) -> NestedScores:
    squares, variances, inner_means, outer_means, first = [], [], [], [], None
    for folds, pairs, outer, inner in draws:
        parts: list[list[Array]] = [[] for _ in folds]
        for (i, j), found in zip(pairs, inner, strict=True):
            scores = score_rows(metric, problem, found)
            # The model that left out folds i and j tests fold j among the rows without i, and fold i without j.
            parts[i].append(scores[len(folds[i]) :])
            parts[j].append(scores[: len(folds[i])])
        rows = np.empty(len(problem.y))
        for held, found, part in zip(folds, outer, parts, strict=True):
            scores = score_rows(metric, problem, found)
            rows[held] = scores
            inner_mean = float(np.concatenate(part).mean())
            squares.append((inner_mean - scores.mean()) ** 2)
            variances.append(scores.var(ddof=1) / len(scores) if len(scores) > 1 else 0.0)
            inner_means.append(inner_mean)
        outer_means.append(rows.mean())
        first = rows if first is None else first
    error = float(np.mean(squares) - np.mean(variances))
    assert first is not None
    return NestedScores(first, float(np.mean(inner_means)), float(np.mean(outer_means)), error)


def _nested_claim(name: str, found: NestedScores, folds: int, confidence: float, n: int) -> IntervalClaim:
    """Return the interval of nested cross-validation, corrected for models that see fewer rows than all."""
    naive = float(found.rows.std(ddof=1) / np.sqrt(n))
    error = np.sqrt(max(0.0, found.mean_squared_error) * (folds - 1) / folds)
    inflation = float(np.clip(error / naive, 1.0, np.sqrt(folds))) if naive > 0 else 1.0
    estimate = found.inner - (1 + (folds - 2) / folds) * (found.inner - found.outer)
    words = (
        f"rows are independent draws, and the mean over them is about normal; its error is measured by nested folds: "
        f"{inflation:.2f} times that of independent rows (Bates, Hastie & Tibshirani)"
    )
    return normal_claim(name, found.rows, confidence, words, inflation, shift=estimate - float(found.rows.mean()),
        covers="at least" if inflation > 1 else "about",
    )  # fmt: skip


def score_rows(metric: RowMetric, problem: AssessedProblem, found: UnseenAnswers) -> Array:
    """Return the scores of rows that were held out (m,), all of them numbers."""
    scores = score_as_said(metric, problem, found)
    lost = np.flatnonzero(~np.isfinite(scores))
    if len(lost):
        raise DataError(
            got=f"a score of {scores[lost[0]]} for row {found.test[lost[0]]}, and for {len(lost)} of {len(scores)} "
            f"rows that a model fitted to {found.n_fitted} others was asked about",
            wanted="finite predictions of every row",
            fix="An estimator that answers every row, or a pipeline that fills in what is missing.",
        )
    return scores


def row_means(metric: RowMetric, problem: AssessedProblem, held_out: Sequence[UnseenAnswers]) -> tuple[Array, Array]:
    """Return the mean score of each row over its tests (m,), and the rows that were tested, ascending."""
    total, tests = np.zeros(len(problem.y)), np.zeros(len(problem.y))
    for found in held_out:
        total[found.test] += score_rows(metric, problem, found)
        tests[found.test] += 1
    rows = np.flatnonzero(tests)
    return total[rows] / tests[rows], rows


def score_as_said(metric: RowMetric, problem: AssessedProblem, found: UnseenAnswers) -> Array:
    """Return the scores of rows that were held out (m,), whatever they are."""
    if metric.needs not in found.answers:
        raise DataError(
            got=f"a {type(problem.estimator).__name__} without {metric.needs}",
            wanted="an estimator with it, for this metric",
            fix="Ask for another metric, or wrap the estimator in CalibratedClassifierCV.",
        )
    classes = np.empty(0) if problem.classes is None else problem.classes
    with np.errstate(over="ignore", invalid="ignore"):  # what is no number is found in the scores
        return metric.of_rows(problem.y[found.test], found.answers[metric.needs], classes)


# The bootstrap ----------------------------------------------------------------------------------------------------


def bootstrap_claim(
    problem: AssessedProblem, name: str, held_out: Sequence[UnseenAnswers], confidence: float, plus: str = ""
) -> IntervalClaim:
    """Return the claim of the bootstrap that leaves out rows not drawn; `plus` is '', '.632' or '.632+'."""
    metric, n = ROW_METRICS[name], len(problem.y)
    rows = problem.weighed(*row_means(metric, problem, held_out))
    span = metric.span(0 if problem.classes is None else len(problem.classes))
    inflation = 2 + 1 / (n - 1)
    words = (
        "rows are independent draws; twice the error of independent rows, since rows are also what models were "
        "fitted to (Efron & Tibshirani): conservative for models that one row hardly changes"
    )
    if not plus:
        words += "; for models fitted to 63 % of the rows, so rather too low a score"
        return normal_claim(name, rows, confidence, words, inflation, span=span, covers="at least")
    fitted = problem.fit()
    everything = np.arange(n)
    whole = UnseenAnswers(everything, n, problem.answers_of(fitted, everything))
    apparent, best = problem.mean(score_rows(metric, problem, whole), everything), span[1]
    left_out = float(rows.mean())
    if plus == ".632":
        share, estimate = 0.632, 0.368 * apparent + 0.632 * left_out
        words += "; too high a score where the model fits its own rows perfectly"
    else:
        share, estimate = _plus(apparent, left_out, no_information_score(metric, problem, whole))
    # The error is a share of the loss that the estimate has in common with what was left out.
    loss, wanted = best - left_out, best - estimate
    widening = max(1.0, wanted / loss / share) if loss > 0 and share > 0 else 1.0
    return normal_claim(
        name, rows, confidence, words, inflation * widening,
        scale=share, shift=estimate - share * left_out, span=span, covers="at least",
    )  # fmt: skip


def _plus(apparent: float, left_out: float, no_information: float) -> tuple[float, float]:
    """Return the weight of rows left out by .632+, and the score."""
    left_out = max(left_out, no_information)
    gap = apparent - no_information
    overfitting = (apparent - left_out) / gap if gap > 0 and left_out < apparent else 0.0
    share = 0.632 / (1 - 0.368 * overfitting)
    return share, (1 - share) * apparent + share * left_out


def no_information_score(metric: RowMetric, problem: AssessedProblem, whole: UnseenAnswers) -> float:
    """Return the mean score of all pairs of a row's target and another row's answer, in closed form for classes."""
    said, y = whole.answers[metric.needs], problem.y
    if problem.classes is not None:
        names, counts = np.unique(y, return_counts=True)
        shares = counts / len(y)
        scores = [
            metric.of_rows(np.full(len(y), name, dtype=y.dtype), said, problem.classes).mean() for name in names
        ]
        return float(shares @ scores)
    total = sum(float(metric.of_rows(np.full(len(y), target), said, np.empty(0)).mean()) for target in y)
    return total / len(y)


def out_of_bag(problem: AssessedProblem) -> UnseenAnswers:
    """Return what a bag or a forest answers for the rows that some member has not drawn."""
    model = clone(problem.estimator)
    known = model.get_params()
    if "oob_score" not in known:
        raise DataError(
            got=f"method='out-of-bag' for a {type(model).__name__}",
            wanted="a bag or a forest: an estimator with the setting oob_score",
            fix="method='bootstrap' does the same for any estimator.",
        )
    model.set_params(oob_score=True, **({"bootstrap": True} if "bootstrap" in known else {}))
    model = replace(problem, estimator=model).fit()
    if problem.classes is None:
        said = np.asarray(model.oob_prediction_)
        known_rows = np.flatnonzero(~np.isnan(said))
        return UnseenAnswers(known_rows, len(problem.y), {"predict": said[known_rows]})
    shares = np.asarray(model.oob_decision_function_)
    known_rows = np.flatnonzero(~np.isnan(shares).any(axis=1) & (shares.sum(axis=1) > 0))
    shares = shares[known_rows]
    labels = np.asarray(model.classes_)[shares.argmax(axis=1)]
    return UnseenAnswers(known_rows, len(problem.y), {"predict": labels, "predict_proba": shares})
