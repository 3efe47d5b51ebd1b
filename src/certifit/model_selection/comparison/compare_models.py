"""Several models on the same splits of one table: differences with intervals, p-values, chances and a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import check_random_state

from certifit.checkers.model_selection.comparisons import PairClaim, assumption, certify_comparison
from certifit.checkers.model_selection.intervals import separate_tests
from certifit.core import Certificate, Setting
from certifit.exceptions import DataError
from certifit.model_selection.assessment.assess import first_tests, make_problem, split_scores
from certifit.model_selection.assessment.cautions import (
    IntervalDoubt,
    doubts_of_rows,
    is_refuted,
    sizes_of_tests,
    why_none,
)
from certifit.model_selection.assessment.held_out import AssessedProblem, UnseenAnswers
from certifit.model_selection.assessment.metrics import name_metrics
from certifit.model_selection.assessment.plans import AssessmentPlan, certify_plan, make_plan
from certifit.model_selection.comparison.paired_tests import (
    Posterior,
    combined_f_test,
    corrected_t_test,
    correlated_posterior,
    difference_interval,
    holm,
    mcnemar_test,
)
from certifit.model_selection.result_table import ResultTable, TabledResult
from certifit.rows import Array

# The splits that each test is made for.
_PLANS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "corrected t": ("repeated", {}),
    "5x2cv F": ("repeated", {"n_splits": 2, "n_repeats": 5}),
    "McNemar": ("holdout", {}),
}


@dataclass(frozen=True)
class PairVerdict:
    """What is known of two models, the first against the second."""

    claim: PairClaim
    low: float  # of the mean difference; NaN where the test has no interval
    high: float
    chances: Posterior | None  # by the corrected t's posterior
    verdict: str


@dataclass(frozen=True, repr=False)
class ModelComparison(TabledResult):
    """Pairs of models with differences, p-values and a verdict; prints as a table."""

    picture = "plot_differences"

    scores: Mapping[str, Array]  # by model: of every split (J,), or of every row for McNemar's test (m,)
    pairs: tuple[PairVerdict, ...]
    certificate: Certificate
    plan: AssessmentPlan
    metric: str
    confidence: float
    rope: float
    doubts: tuple[IntervalDoubt, ...] = ()  # why rows are no independent draws

    @property
    def _refuted(self) -> bool:
        return is_refuted(self.doubts)

    def table(self) -> ResultTable:
        """Return a line for each pair."""
        columns: dict[str, list[Any]] = {
            "first": [pair.claim.first for pair in self.pairs],
            "second": [pair.claim.second for pair in self.pairs],
            "difference": [pair.claim.difference for pair in self.pairs],
            "from": [pair.low for pair in self.pairs],
            "to": [pair.high for pair in self.pairs],
            "p": [np.nan if self._refuted else pair.claim.corrected for pair in self.pairs],
        }
        if self.pairs[0].chances is not None:
            columns["same"] = [pair.chances.same for pair in self.pairs if pair.chances is not None]
        columns["verdict"] = [pair.verdict for pair in self.pairs]
        test = self.pairs[0].claim.test
        notes = [f"by {test}, p-values corrected for {len(self.pairs)} pairs (Holm); rests on: {assumption(test)}"]
        if self._refuted:
            notes = [f"no verdict: {why_none(self.doubts)}"]
        elif self.doubts:
            reasons = ", and ".join(doubt.reason for doubt in self.doubts)
            notes.append(f"models may be told apart too often: {reasons}")
        if "same" in columns:
            notes.append(f"same: the chance that the difference is at most {self.rope:g} either way")
        means = ", ".join(f"{name} {np.mean(values):.4g}" for name, values in self.scores.items())
        return ResultTable(f"{self.metric}: {means}", columns, tuple(notes))


def compare_models(
    models: Mapping[str, Any],
    X: Any,
    y: Any,
    *,
    test: str = "corrected t",
    metric: Any = None,
    confidence: float = 0.95,
    random_state: Any = 0,
    **options: Any,
) -> ModelComparison:
    """Say which of several models does better on new rows, or that they cannot be told apart.

    All models are fitted to the same splits. p-values are corrected for the number of pairs.

    Parameters
    ----------
    models : estimators of any library by name, not fitted
    X, y : table and target
    test : 'corrected t' (repeated folds; with an interval, and the chance of no practical difference), '5x2cv F'
        (five times two halves: ten fits a model), or 'McNemar' (one holdout of classifiers: one fit a model, and a
        verdict on these two fits only)
    metric : a scorer's name of scikit-learn's, or a function (estimator, X, y) -> score; accuracy or R² by default
    confidence : of intervals and verdicts, 1 - α
    random_state : int, RandomState or None
    **options : rope (differences up to this are practically none; 0.01), n_splits and n_repeats of the corrected t,
        test_size of McNemar's test, groups (n,), sample_weight (n,) and n_jobs

    Returns
    -------
    ModelComparison : prints as a table, shows as HTML, plots and turns into a data frame

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.dummy import DummyClassifier
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> found = compare_models({"Bayes": GaussianNB(), "majority": DummyClassifier()}, X, y, test="5x2cv F")
    >>> found.pairs[0].verdict
    'Bayes is better'
    """
    Setting(choices=(*_PLANS,)).check("test", test)
    Setting(float, above=0, below=1).check("confidence", confidence)
    rope = options.pop("rope", 0.01)
    Setting(float, least=0).check("rope", rope)
    problem = _common_problem(models, X, y, options)
    named = name_metrics(_metric(metric, problem, test), problem.classes is not None)
    (name, scorer), *_ = named.items()
    method, fixed = _PLANS[test]
    if test == "5x2cv F" and options:
        raise DataError(
            got=f"{next(iter(options))} with test='5x2cv F'", wanted="no options: it is five times two halves"
        )
    plan = make_plan(problem, method, {**fixed, **options}, int(check_random_state(random_state).randint(2**31)))
    scores, first = _scores(models, problem, plan, test, (name, scorer))
    claims = _pair_claims(scores, test, plan.ratio)
    splits = certify_plan(plan, problem)
    assert splits is not None
    doubts = tuple(doubts_of_rows(problem, first, sizes_of_tests(splits, plan.sizes(), len(first.test))[1]))
    certificate = certify_comparison(claims, splits, 1 - confidence, why_none(doubts))
    pairs = tuple(_verdict(claim, confidence, rope) for claim in claims)
    if is_refuted(doubts):
        pairs = tuple(PairVerdict(claim, np.nan, np.nan, None, "no verdict") for claim in claims)
    return ModelComparison(scores, pairs, certificate, plan, name, confidence, rope, doubts)


def _common_problem(models: Any, X: Any, y: Any, options: dict[str, Any]) -> AssessedProblem:
    if not isinstance(models, Mapping) or len(models) < 2:
        raise DataError(
            got=f"{len(models)} models" if hasattr(models, "__len__") else f"a {type(models).__name__}",
            wanted="two or more estimators by name",
            fix="compare_models({'mine': mine, 'theirs': theirs}, X, y)",
        )
    for model in models.values():
        make_problem(model, X, y, dict(options))
    kinds = {is_classifier(model) for model in models.values()}
    if len(kinds) > 1:
        raise DataError(got="classifiers and regressors", wanted="models of one kind, which answer the same question")
    return make_problem(next(iter(models.values())), X, y, options)


def _metric(metric: Any, problem: AssessedProblem, test: str) -> Any:
    if test == "McNemar":
        if problem.classes is None or metric not in (None, "accuracy"):
            raise DataError(got="McNemar's test of other than right and wrong", wanted="classifiers and accuracy")
        if problem.weights is not None:
            raise DataError(
                got="sample_weight with McNemar's test", wanted="rows that count alike",
                fix="test='corrected t' takes weights.",
            )  # fmt: skip
        if problem.groups is not None:
            raise DataError(
                got="groups with McNemar's test", wanted="independent rows", fix="test='corrected t' takes groups."
            )
        return "accuracy"
    if isinstance(metric, list | tuple | Mapping):
        raise DataError(got="several metrics", wanted="one to compare by")
    return metric if metric is not None or problem.classes is not None else "r2"


def _scores(
    models: Mapping[str, Any], problem: AssessedProblem, plan: AssessmentPlan, test: str, named: tuple[str, Any]
) -> tuple[dict[str, Array], UnseenAnswers]:
    """Return every model's scores, of splits or of McNemar's rows, and what the first answers for rows left out."""
    scores, first = {}, None
    for model, estimator in models.items():
        held_out = replace(problem, estimator=estimator).hold_out(plan.splits)
        first = first or first_tests(held_out)
        if test == "McNemar":
            scores[model] = (held_out[0].answers["predict"] == problem.y[held_out[0].test]).astype(np.float64)
        else:
            scores[model] = split_scores(problem, *named, held_out)
    assert first is not None
    return scores, first


def _pair_claims(scores: Mapping[str, Array], test: Any, ratio: float) -> list[PairClaim]:
    """Return every pair's difference and p-value, the better model first."""
    ordered = sorted(scores, key=lambda name: -float(np.mean(scores[name])))
    found = []
    for first, second in combinations(ordered, 2):
        d = scores[first] - scores[second]
        if test == "corrected t":
            p = corrected_t_test(d, ratio, separate_tests(len(d), ratio))
        else:
            p = combined_f_test(d) if test == "5x2cv F" else mcnemar_test(d)
        found.append(PairClaim(first, second, d, float(np.mean(d)), p, p, test, ratio))
    corrected = holm(np.array([claim.p_value for claim in found]))
    return [replace(claim, corrected=float(p)) for claim, p in zip(found, corrected, strict=True)]


def _verdict(claim: PairClaim, confidence: float, rope: float) -> PairVerdict:
    """Return what the numbers say in words."""
    low, high, chances = np.nan, np.nan, None
    if claim.test == "corrected t":
        freedom = separate_tests(len(claim.differences), claim.ratio)
        low, high = difference_interval(claim.differences, claim.ratio, confidence, freedom)
        chances = correlated_posterior(claim.differences, claim.ratio, rope, freedom)
    if claim.corrected <= 1 - confidence:
        words = f"{claim.first} is better"
        if chances is not None and chances.same >= confidence:
            words += ", by nothing that matters"
    elif chances is not None and chances.same >= confidence:
        words = "practically the same"
    else:
        words = "cannot be told apart"
    return PairVerdict(claim, low, high, chances, words)
