"""Scores over the number of rows fitted, or over a parameter, on the same splits and each with an interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from certifit.checkers.model_selection.intervals import IntervalClaim, certify_intervals
from certifit.core import Certificate, Setting
from certifit.core.progress import counted
from certifit.exceptions import DataError
from certifit.model_selection.assessment.assess import (
    first_tests,
    make_problem,
    several_tests_claim,
    split_scores,
)
from certifit.model_selection.assessment.cautions import caution, doubts_of_rows, sizes_of_tests
from certifit.model_selection.assessment.held_out import AssessedProblem, UnseenAnswers
from certifit.model_selection.assessment.metrics import name_metrics
from certifit.model_selection.assessment.plans import AssessmentPlan, certify_plan, make_plan
from certifit.model_selection.assessment.without_refits.folds_from_sums import hold_out_by_sums
from certifit.model_selection.result_table import ResultTable, TabledResult
from certifit.rows import Array


@dataclass(frozen=True, repr=False)
class ScoreCurve(TabledResult):
    """Scores on rows left out at several places, with intervals, and on the rows that were fitted."""

    picture = "plot_score_curve"

    model: str
    axis: str  # what varies
    at: tuple[Any, ...]  # its values
    metric: str
    claims: tuple[IntervalClaim, ...]  # of rows left out
    fitted: Array  # (m,) mean scores of the rows that were fitted
    certificate: Certificate
    plan: AssessmentPlan

    def table(self) -> ResultTable:
        """Return a line for each place."""
        columns: dict[str, Any] = {
            self.axis: [value if isinstance(value, int | float) else str(value) for value in self.at],
            "rows left out": [claim.estimate for claim in self.claims],
            "from": [claim.low for claim in self.claims],
            "to": [claim.high for claim in self.claims],
            "rows fitted": self.fitted.tolist(),
        }
        grounds: dict[tuple[str, str], list[int]] = {}  # places by what their intervals rest on
        for place, claim in enumerate(self.claims):
            grounds.setdefault((claim.way, claim.covers), []).append(place)
        notes = [f"intervals of {100 * self.claims[0].confidence:g} %, each for itself"]
        for places in grounds.values():
            at = f"at {', '.join(str(self.at[place]) for place in places)}: " if len(grounds) > 1 else ""
            notes.append(at + self.claims[places[0]].assumption)
        return ResultTable(f"{self.model}: {self.metric} by {self.axis}", columns, (*notes, *self.plan.notes))


def assess_sizes(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sizes: Any = (0.1, 0.2, 0.4, 0.7, 1.0),
    metric: Any = None,
    confidence: float = 0.9,
    random_state: Any = 0,
    **options: Any,
) -> ScoreCurve:
    """Say how well an estimator does on new rows by the number of rows that it is fitted to: would more rows help?

    The same rows are tested for every size; smaller sizes are parts of larger ones.

    Parameters
    ----------
    estimator : a classifier or a regressor of any library, not fitted
    X, y : table and target
    sizes : shares of the rows that a fold leaves to fit, or their numbers
    metric : a scorer's name of scikit-learn's, or a function (estimator, X, y) -> score; accuracy or absolute errors
    confidence : of each interval
    random_state : int, RandomState or None
    **options : n_splits (10 folds), groups (n,), sample_weight (n,) and n_jobs

    Returns
    -------
    ScoreCurve : prints as a table, plots and turns into a data frame

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> found = assess_sizes(GaussianNB(), X, y, sizes=(0.2, 1.0))
    >>> found.at
    (27, 135)
    >>> found.certificate.holds
    True
    """
    problem, plan, named, rng = _prepare((estimator, X, y), metric, confidence, random_state, options)
    least = min(len(train) for train, _ in plan.splits)
    counts = _row_counts(sizes, least)
    shuffled = [(rng.permutation(train), test) for train, test in plan.splits]
    held, ratios = [], []
    with counted("scoring sizes", len(counts)) as advance:
        for count in counts:
            splits = [(np.sort(train[:count]), test) for train, test in shuffled]
            held.append((problem, splits, problem.hold_out(splits)))
            ratios.append(float(np.mean([len(test) for _, test in splits])) / count)
            advance(len(held), len(counts))
    return _curve(problem, plan, ("rows", counts, ratios), held, (named, confidence))


def assess_values(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    values: Mapping[str, Sequence[Any]],
    metric: Any = None,
    confidence: float = 0.9,
    random_state: Any = 0,
    **options: Any,
) -> ScoreCurve:
    """Say how well an estimator does on new rows by one of its parameters, all values on the same splits.

    To choose a value and know what the chosen one is worth, use `choose_setting`.

    Parameters
    ----------
    estimator : a classifier or a regressor of any library, not fitted
    X, y : table and target
    values : a parameter's name and the values that it takes; 'step__parameter' in a pipeline
    metric : a scorer's name of scikit-learn's, or a function (estimator, X, y) -> score; accuracy or absolute errors
    confidence : of each interval
    random_state : int, RandomState or None
    **options : n_splits (10 folds), groups (n,), sample_weight (n,) and n_jobs

    Returns
    -------
    ScoreCurve : prints as a table, plots and turns into a data frame

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> X, y = load_diabetes(return_X_y=True)
    >>> found = assess_values(Ridge(), X, y, values={"alpha": [0.01, 1, 100]})
    >>> found.certificate.holds
    True
    """
    problem, plan, named, _ = _prepare((estimator, X, y), metric, confidence, random_state, options)
    name, at = _parameter(values)
    if name not in estimator.get_params():
        raise DataError(
            got=f"name={name!r}", wanted=f"a parameter of {type(estimator).__name__}",
            fix="estimator.get_params() lists them.",
        )  # fmt: skip
    held = []
    with counted(f"scoring values of {name}", len(at)) as advance:
        for value in at:
            one = replace(problem, estimator=clone(estimator).set_params(**{name: value}))
            held.append((one, plan.splits, hold_out_by_sums(one, plan.splits) or one.hold_out(plan.splits)))
            advance(len(held), len(at))
    return _curve(problem, plan, (name, at, [plan.ratio] * len(at)), held, (named, confidence))


def _parameter(values: Any) -> tuple[str, list[Any]]:
    """Return a parameter's name and its values."""
    if isinstance(values, Mapping) and len(values) == 1:
        ((name, at),) = values.items()
        if not isinstance(at, str) and isinstance(at, Sequence | np.ndarray) and len(at):
            return str(name), [*at]
    raise DataError(
        got=f"values={values!r}", wanted="one parameter with a list of at least one value",
        fix='values={"alpha": [0.1, 1, 10]}, say.',
    )  # fmt: skip


def _prepare(
    given: tuple[Any, Any, Any], metric: Any, confidence: float, random_state: Any, options: dict[str, Any]
) -> tuple[AssessedProblem, AssessmentPlan, tuple[str, Any], np.random.RandomState]:
    """Check what was given; return the problem, its folds, the metric by name, and a source of chance."""
    Setting(float, above=0, below=1).check("confidence", confidence)
    problem = make_problem(*given, options)
    metric = metric if metric is not None or problem.classes is not None else "neg_mean_absolute_error"
    if isinstance(metric, list | tuple | dict):
        raise DataError(got="several metrics", wanted="one to draw a curve of")
    (named,) = name_metrics(metric, problem.classes is not None).items()
    rng = check_random_state(random_state)
    plan = make_plan(problem, "k-fold", options, int(rng.randint(2**31)))
    return problem, plan, named, rng


def _row_counts(sizes: Any, most: int) -> list[int]:
    """Return numbers of rows to fit, ascending, from shares or numbers."""
    found = np.atleast_1d(np.asarray(sizes, dtype=np.float64))
    finite = found[np.isfinite(found)]
    counts = np.unique(np.round(finite * most if (finite <= 1).all() else finite).astype(int))
    if len(finite) < max(1, len(found)) or counts[0] < 1 or counts[-1] > most:
        raise DataError(
            got=f"sizes={sizes!r}", wanted=f"shares above 0 and at most 1, or 1 to {most} rows, which a fold leaves"
        )
    return counts.tolist()


def _curve(
    problem: AssessedProblem,
    plan: AssessmentPlan,
    axis: tuple[str, Sequence[Any], Sequence[float]],
    held: Sequence[tuple[AssessedProblem, Any, list[UnseenAnswers]]],
    terms: tuple[tuple[str, Any], float],
) -> ScoreCurve:
    """Return the curve of what was answered for rows left out at each place."""
    (name, metric), confidence = terms
    claims, fitted = [], []
    for value, ratio, (one, splits, answers) in zip(*axis[1:], held, strict=True):
        scores = split_scores(one, name, metric, answers)
        named = f"{name} at {value}", metric
        claims.append(several_tests_claim(one, named, answers, (scores, ratio), confidence))
        # The rows that were fitted are scored on one split: it is the gap that matters.
        train = splits[0][0]
        again = UnseenAnswers(train, len(train), one.answers_of(one.fit(train), train))
        fitted.append(float(split_scores(one, name, metric, [again])[0]))
    splits = certify_plan(plan, problem)
    for place, (one, _, answers) in enumerate(held):
        first = first_tests(answers)
        of_a_test, equal = sizes_of_tests(splits, plan.sizes(), len(first.test))
        doubts, claim = doubts_of_rows(one, first, equal), claims[place]
        claims[place : place + 1] = caution([claim], one, {claim.metric: metric}, (first, of_a_test), doubts)
    certificate = certify_intervals(claims, splits, plan.sizes())
    return ScoreCurve(
        type(problem.estimator).__name__, axis[0], tuple(axis[1]), name, tuple(claims), np.array(fitted), certificate,
        plan,
    )  # fmt: skip
