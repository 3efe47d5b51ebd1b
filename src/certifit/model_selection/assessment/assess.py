"""How good is a model on new rows? One call, any estimator, with an interval and what it rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import check_random_state

from certifit.checkers.model_selection.intervals import (
    IntervalClaim,
    certify_intervals,
    has_no_width,
    worth_of_rows,
)
from certifit.checkers.model_selection.splits import SplitSizes
from certifit.core import Setting
from certifit.exceptions import DataError
from certifit.model_selection.assessment.cautions import (
    caution,
    doubts_of_rows,
    sizes_of_tests,
    skewness_doubts,
    unseen_class_doubts,
)
from certifit.model_selection.assessment.held_out import (
    AnswersOfFold,
    AssessedProblem,
    UnseenAnswers,
    take_rows,
    weight_name,
    with_rows,
)
from certifit.model_selection.assessment.intervals import (
    betting_claim,
    binomial_claim,
    cautioned,
    corrected_claim,
    counted_claim,
    log_scale_claim,
    no_claim,
    normal_claim,
    percentile_claim,
)
from certifit.model_selection.assessment.leakage import leakage_notes
from certifit.model_selection.assessment.metrics import (
    ROW_METRICS,
    SquaredRows,
    name_metrics,
    score_answers,
    scorer_span,
)
from certifit.model_selection.assessment.plans import AssessmentPlan, certify_plan, make_plan
from certifit.model_selection.assessment.resampled_errors import (
    bootstrap_claim,
    nested_claims,
    out_of_bag,
    row_means,
    score_as_said,
    score_rows,
)
from certifit.model_selection.assessment.result import Assessment
from certifit.model_selection.assessment.streamed import hold_out_streamed, is_streamed
from certifit.model_selection.assessment.targets import check_groups, check_kind, groups_of_copies
from certifit.model_selection.assessment.without_refits.folds_from_sums import hold_out_by_sums
from certifit.model_selection.assessment.without_refits.left_out_by_proof import hold_out_by_proof
from certifit.model_selection.splitting.shapes import count_rows
from certifit.rows import Array


@dataclass(frozen=True)
class AssessTuning:
    """How much is drawn for percentiles."""

    drawn_tests: int = 200  # test sets drawn anew, for scores that are no means over rows
    many_members: int = 100  # of a bag or forest, a third of which votes as all do


Found = tuple[list[IntervalClaim], list[UnseenAnswers], int]


def assess(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    method: Any = "auto",
    metrics: Any = None,
    confidence: float = 0.9,
    random_state: Any = 0,
    **options: Any,
) -> Assessment:
    """Say how well an estimator does on new rows, with an interval and the assumption it rests on.

    The estimator may be any library's that has `fit` and `predict`: a pipeline, say, so that preprocessing is learnt
    inside the folds. It is copied, never changed. Folds of least squares, ridge, Gaussian naive Bayes and PCA, also
    of single rows, come from sums of one pass: `n_fits` is then 1, a split that is fitted to see that both agree.
    Single rows left out of ridge-penalised logistic regressions and squared-hinge machines of two classes are proved,
    and only those that are not settled are fitted.

    Parameters
    ----------
    estimator : a classifier or a regressor, not fitted; without y, one that encodes rows and decodes them (PCA): its
        score is minus the squared distance of a row from what its code stands for
    X, y : table and target, in memory; X may be whatever the estimator takes. A path, `Rows` or Dask data are split
        by a hash of the row number and read in blocks, for estimators of certifit's: 'holdout' or 'k-fold'
    method : 'holdout' (one test; exact interval), 'subsampling', 'k-fold', 'repeated' (folds drawn several times),
        'nested' (folds within folds, which measure the error of the score; most fits, best interval),
        'leave-one-out', 'bootstrap', '.632', '.632+', 'out-of-bag' (bags and forests: one fit), a splitter, or
        'auto': by the number of rows, with the reason in the result
    metrics : a scorer's name of scikit-learn's, a function (estimator, X, y) -> score, several of these, or None for
        accuracy, or for absolute errors and R²; larger is better
    confidence : of each interval
    random_state : int, RandomState or None: how rows are shuffled
    **options : of the method: test_size, n_splits, n_repeats; also groups (n,), whose rows stay together, or 'copies'
        for rows that are equal, sample_weight (n,), by which rows are fitted and scored, and n_jobs

    Returns
    -------
    Assessment : prints as a table; `certificate` is what the checker says of it; `per_class`, `confusion`, `roc`,
        `precision_recall`, `calibration` and `thresholds` say more about classifiers, and `plot` shows it

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> found = assess(GaussianNB(), X, y, method="holdout", test_size=0.4)
    >>> found
    GaussianNB, holdout: as asked for
    <BLANKLINE>
    metric    score    from      to  by        covers
    accuracy   0.95  0.8758  0.9862  binomial  at least 90 %
    <BLANKLINE>
    accuracy rests on: tested rows are independent draws of what new rows are drawn
    from; exact for any number of rows
    >>> found.certificate.holds
    True
    """
    Setting(float, above=0, below=1).check("confidence", confidence)
    seed = int(check_random_state(random_state).randint(2**31))
    if is_streamed(X):
        problem, plan, held_out = hold_out_streamed(estimator, X, y, method, options)
        named = name_metrics(metrics, problem.classes is not None)
        claims, fits = _split_claims(problem, plan, named, held_out, confidence), len(held_out)
    else:
        problem = make_problem(estimator, X, y, options)
        named = _named(problem, metrics, method)
        plan = make_plan(problem, method, options, seed)
        claims, held_out, fits = _claims(problem, plan, named, confidence, seed)
    return _assessment(problem, plan, named, (claims, held_out, fits))


def _assessment(problem: AssessedProblem, plan: AssessmentPlan, named: Mapping[str, Any], found: Found) -> Assessment:
    """Return claims with their certificate, and what is suspicious of the table."""
    claims, held_out, fits = found
    splits, first = certify_plan(plan, problem), first_tests(held_out)
    of_a_test, equal = sizes_of_tests(splits, plan.sizes(), len(first.test))
    doubts = doubts_of_rows(problem, first, equal)
    if plan.method == "given splits":
        doubts += unseen_class_doubts(problem, plan.splits)
    claims = caution(claims, problem, named, (first, of_a_test), doubts)
    certificate = certify_intervals(claims, splits, plan.sizes())
    plan = replace(plan, notes=(*plan.notes, *leakage_notes(problem, splits)))
    name = type(problem.estimator).__name__
    return Assessment(name, plan, tuple(claims), certificate, problem, first, fits, tuple(doubts))


def _named(problem: AssessedProblem, metrics: Any, method: Any) -> dict[str, Any]:
    """Return scorers or their names by name."""
    if not problem.reconstructs:
        of_rows = isinstance(method, str) and method in _OF_ROWS
        return name_metrics(metrics, problem.classes is not None, of_rows=of_rows)
    only = "neg_reconstruction_error"
    if metrics not in (None, only) or method == ".632+":
        raise DataError(
            got=f"metrics={metrics!r} and method={method!r} without a target",
            wanted=f"the metric {only!r}, and a method that needs no score of chance",
        )
    return {only: only}


# Methods that need the scores of single rows.
_OF_ROWS = ("nested", ".632", ".632+", "leave-one-out")


def make_problem(estimator: Any, X: Any, y: Any, options: dict[str, Any]) -> AssessedProblem:
    """Check an estimator, a table and its target; `groups` and `n_jobs` are taken out of the options."""
    try:
        known = is_classifier(estimator) or is_regressor(estimator)
    except (AttributeError, TypeError):  # a class, or no estimator at all
        known = False
    reconstructs = y is None and not known and hasattr(type(estimator), "inverse_transform")
    if not known and not reconstructs:
        raise DataError(
            got=f"a {type(estimator).__name__}", wanted="a classifier or a regressor",
            fix="Pass an instance, such as assess(LogisticRegression(), X, y).",
        )  # fmt: skip
    n = count_rows(X)
    target = np.zeros(n) if reconstructs else np.asarray(y)
    target = target.ravel() if target.shape == (n, 1) else target
    if target.shape != (n,) or n < 4:
        raise DataError(got=f"y of shape {target.shape} for {n} rows", wanted="one target a row, and at least 4 rows")
    check_kind(target, is_classifier(estimator))
    if target.dtype.kind == "f" and not np.isfinite(target).all():
        raise DataError(
            got="missing or infinite targets", wanted="a target for every row", fix="Leave these rows out."
        )
    classes = _different(target) if is_classifier(estimator) else None
    if classes is not None and len(classes) < 2:
        raise DataError(got="targets of one class", wanted="at least two classes")
    table = with_rows(X)
    groups = options.pop("groups", None)
    if groups is not None:
        groups = groups_of_copies(table) if isinstance(groups, str) and groups == "copies" else np.asarray(groups)
        check_groups(groups, n)
    weights = _check_weights(estimator, options.pop("sample_weight", None), n)
    if reconstructs and weights is not None:
        raise DataError(got="sample_weight without a target", wanted="rows that count alike")
    n_jobs = options.pop("n_jobs", None)
    return AssessedProblem(estimator, table, target, classes, groups, n_jobs, weights, reconstructs)


def _different(target: Array, most: int = 1000) -> Array:
    """Return the different targets, ascending; whole numbers that are near to each other are counted, not sorted."""
    if target.dtype.kind in "iu" and len(target):
        low, high = int(target.min()), int(target.max())
        if high - low < most:
            return (np.flatnonzero(np.bincount((target - low).astype(np.intp))) + low).astype(target.dtype)
    return np.unique(target)


def _check_weights(estimator: Any, weights: Any, n: int) -> Array | None:
    if weights is None:
        return None
    found = np.asarray(weights, dtype=np.float64)
    if found.shape != (n,) or not np.isfinite(found).all() or found.min() < 0 or not found.any():
        raise DataError(
            got=f"sample_weight of shape {found.shape}, or with negative or missing weights",
            wanted=f"a weight of at least 0 for each of the {n} rows, and some above 0",
        )
    weight_name(estimator)
    return found


def _claims(
    problem: AssessedProblem, plan: AssessmentPlan, named: Mapping[str, Any], confidence: float, seed: int
) -> Found:
    """Return the claims, what was answered for rows left out, and how many fits that took."""
    of_rows = [name for name, metric in named.items() if isinstance(metric, str) and metric in ROW_METRICS]
    if plan.method in _OF_ROWS and len(of_rows) < len(named):
        _refuse_whole(plan.method, [name for name in named if name not in of_rows])
    if plan.method == "nested":
        keys = [named[name] for name in named]
        return nested_claims(problem, keys, plan.options, seed, confidence)
    if plan.method == "out-of-bag":
        found = out_of_bag(problem)
        return [_out_of_bag_claim(problem, name, named[name], found, confidence) for name in named], [found], 1
    by_sums = plan.method in ("k-fold", "repeated", "leave-one-out")
    held_out, fits = hold_out_by_sums(problem, plan.splits) if by_sums else None, 1
    if held_out is None and plan.method == "leave-one-out":
        proved = hold_out_by_proof(problem, plan.splits)
        held_out, fits = (None, 0) if proved is None else ([proved[0]], proved[1])
    if held_out is None:
        held_out, fits = problem.hold_out(plan.splits), len(plan.splits)
    make = _bootstrap_claims if plan.method in ("bootstrap", ".632", ".632+") else _split_claims
    claims = make(problem, plan, named, held_out, confidence)
    return claims, held_out, fits + (plan.method in (".632", ".632+"))


def _refuse_whole(method: str, names: Sequence[str]) -> None:
    raise DataError(
        got=f"the metric {names[0]!r} with method={method!r}",
        wanted=f"means over rows with this method: {', '.join(ROW_METRICS)}",
        fix="method='repeated' takes any metric.",
    )


def _bootstrap_claims(
    problem: AssessedProblem,
    plan: AssessmentPlan,
    named: Mapping[str, Any],
    held_out: list[UnseenAnswers],
    confidence: float,
) -> list[IntervalClaim]:
    kind = "" if plan.method == "bootstrap" else plan.method
    claims = []
    for name, metric in named.items():
        if metric in ROW_METRICS and problem.groups is None:
            claims.append(bootstrap_claim(problem, metric, held_out, confidence, kind))
        else:
            claims.append(_resampled(problem, plan, (name, metric), held_out, confidence))
    return claims


def _split_claims(
    problem: AssessedProblem,
    plan: AssessmentPlan,
    named: Mapping[str, Any],
    held_out: list[UnseenAnswers],
    confidence: float,
) -> list[IntervalClaim]:
    if len(plan.splits) == 1:
        return [_single_test(problem, name, metric, held_out[0], confidence) for name, metric in named.items()]
    return [_resampled(problem, plan, (name, metric), held_out, confidence) for name, metric in named.items()]


def _resampled(
    problem: AssessedProblem,
    plan: AssessmentPlan,
    named: tuple[str, Any],
    held_out: list[UnseenAnswers],
    confidence: float,
) -> IntervalClaim:
    """Return the claim of the scores of several splits, and what is to be said of it."""
    name, metric = named
    squared, words = _squared_rows(problem, metric, held_out), ""
    if plan.method == "leave-one-out":
        scores = np.concatenate([score_rows(ROW_METRICS[metric], problem, found) for found in held_out])
        scores = problem.weighed(scores, np.concatenate([found.test for found in held_out]))
    elif squared is not None:
        scores = squared.by_part([len(found.test) for found in held_out])
        words = "; of all tested rows together, linearised: R² of few rows is too low"
    else:
        scores = split_scores(problem, name, metric, held_out)
        if not isinstance(metric, str) or metric not in ROW_METRICS:
            size = round(float(np.mean([len(found.test) for found in held_out])))
            words = (
                f"; a score of tests of {size} rows, which is no mean over rows and may be another for larger tests"
            )
    if plan.method == "subsampling":
        words += "; of models fitted to fewer rows than all, so rather too low a score where more rows help"
    claim = several_tests_claim(problem, named, held_out, (scores, plan.ratio), confidence)
    return replace(claim, assumption=claim.assumption + words)


def several_tests_claim(
    problem: AssessedProblem,
    named: tuple[str, Any],
    held_out: Sequence[UnseenAnswers],
    resampled: tuple[Array, float],
    confidence: float,
) -> IntervalClaim:
    """Return the claim of the scores of several splits (J,), whose tests are a `ratio` of the rows they fit.

    Of right and wrong rows it is a count, where these are too few for how seldom the one or the other is.
    """
    name, metric = named
    of_rows = ROW_METRICS.get(metric) if isinstance(metric, str) else None
    alike, (scores, ratio) = problem.groups is None and problem.weights is None, resampled
    if alike and of_rows is not None and of_rows.binary:
        first = score_rows(of_rows, problem, first_tests(held_out))
        if skewness_doubts(first):
            rows, _ = row_means(of_rows, problem, held_out)
            sizes = SplitSizes(len(scores), sum(len(found.test) for found in held_out), ratio)
            return counted_claim(name, rows, confidence, worth_of_rows(len(rows), sizes))
    return corrected_claim(name, scores, confidence, ratio, score_span(problem, metric))


def _squared_rows(problem: AssessedProblem, metric: Any, held_out: Sequence[UnseenAnswers]) -> SquaredRows | None:
    """Return what R² of all tested rows together is made of; None for other metrics, and where there is no such."""
    if not isinstance(metric, str) or metric != "r2" or "predict" not in held_out[0].answers:
        return None
    rows = np.concatenate([found.test for found in held_out])
    said = np.concatenate([found.answers["predict"] for found in held_out])
    if said.shape != rows.shape or len(rows) < 3:
        return None
    return SquaredRows.of(problem.y[rows], said, None if problem.weights is None else problem.weights[rows])


def score_span(problem: AssessedProblem, metric: Any) -> tuple[float, float]:
    """Return the least and the largest that a metric can be of this problem."""
    if not isinstance(metric, str) or metric not in ROW_METRICS:
        return scorer_span(metric) if isinstance(metric, str) else (-np.inf, np.inf)
    return ROW_METRICS[metric].span(0 if problem.classes is None else len(problem.classes))


def split_scores(problem: AssessedProblem, name: str, metric: Any, held_out: Sequence[UnseenAnswers]) -> Array:
    """Return the score of every split (J,)."""
    scores = np.empty(len(held_out))
    for i, found in enumerate(held_out):
        if problem.weights is not None and not problem.weights[found.test].any():
            raise DataError(
                got=f"split {i + 1} of {len(held_out)}, whose tested rows all have a weight of 0",
                wanted="a tested row that counts in every split", fix="Fewer folds, or leave rows of weight 0 out.",
            )  # fmt: skip
        if isinstance(metric, str) and metric in ROW_METRICS:
            scores[i] = problem.mean(score_as_said(ROW_METRICS[metric], problem, found), found.test)
        else:
            scores[i] = _score_whole(problem, name, metric, found, f"split {i + 1} of {len(held_out)}")
    if not np.isfinite(scores).all():
        at = int(np.flatnonzero(~np.isfinite(scores))[0])
        size, lost = len(held_out[at].test), _lost_answers(held_out[at])
        why = f"{lost} of whose rows have predictions that are no numbers" if lost else f"a test of {size} rows"
        raise DataError(
            got=f"{name}={scores[at]} on split {at + 1} of {len(held_out)}, {why}",
            wanted="a finite score of every split",
            fix="An estimator that answers every row, or a pipeline that fills in what is missing."
            if lost
            else "Larger test sets, or a metric that is defined for the rows of any split.",
        )
    return scores


def _lost_answers(found: UnseenAnswers) -> int:
    """Return how many tested rows have a prediction, of whatever method, that is no number."""
    numbers = [values for values in found.answers.values() if values.dtype.kind == "f"]
    lost = [~np.isfinite(values.reshape(len(values), -1)).all(axis=1) for values in numbers]
    return int(np.count_nonzero(np.any(lost, axis=0))) if lost else 0


def _score_whole(problem: AssessedProblem, name: str, metric: Any, found: UnseenAnswers, where: str) -> float:
    weights = None if problem.weights is None else problem.weights[found.test]
    try:
        return score_answers(metric, problem.y[found.test], found.answers, problem.classes, weights)
    except Exception as error:
        kinds = 0 if problem.classes is None else len(np.unique(problem.y[found.test]))
        lost = _lost_answers(found)
        fix = "A scorer that looks at X itself cannot be used here."
        if lost:
            fix = f"{lost} of its rows have predictions that are no numbers: an estimator is wanted that answers all."
        elif problem.classes is not None and kinds < len(problem.classes):
            fix = (
                f"The test has {kinds} of {len(problem.classes)} classes: fewer folds, or a metric that needs no row "
                "of each class."
            )
        raise DataError(
            got=f"the metric {name!r} that fails on {where} ({type(error).__name__}: {error})",
            wanted="a metric of what the estimator answers", fix=fix,
        ) from error  # fmt: skip


def _single_test(
    problem: AssessedProblem, name: str, metric: Any, found: UnseenAnswers, confidence: float
) -> IntervalClaim:
    """Return the claim of one test: exact for bounded scores of rows, by limit theorems for others."""
    of_rows = ROW_METRICS.get(metric) if isinstance(metric, str) else None
    if problem.groups is not None:
        score = split_scores(problem, name, metric, [found])
        why = "rows of a group depend on each other, and one test has too few groups; method='k-fold' has one"
        return no_claim(name, score, confidence, why)
    squared = _squared_rows(problem, metric, [found])
    if squared is not None:
        return log_scale_claim(name, squared.logs(), confidence)
    if of_rows is None:
        return _percentiles(problem, name, metric, found, confidence)
    split_scores(problem, name, metric, [found])
    rows = score_rows(of_rows, problem, found)
    span = score_span(problem, metric)
    if problem.weights is not None:
        words = "tested rows are independent draws and many: their weighted mean is about normal (linearised)"
        weighed = problem.weighed(rows, found.test)
        return cautioned(normal_claim(name, weighed, confidence, words, span=span), weighed)
    if of_rows.binary:
        return binomial_claim(name, rows, confidence)
    if np.isfinite(span).all():
        return betting_claim(name, rows, confidence, span)
    words = "tested rows are independent draws and many: their mean is about normal, without outliers that decide it"
    return cautioned(normal_claim(name, rows, confidence, words, span=span), rows)


def _percentiles(
    problem: AssessedProblem, name: str, metric: Any, found: UnseenAnswers, confidence: float
) -> IntervalClaim:
    """Return the claim of a score of a whole test set, whose rows are drawn anew; classes keep their numbers."""
    estimate = float(split_scores(problem, name, metric, [found])[0])
    y, rng = problem.y[found.test], np.random.default_rng(len(found.test))
    strata = [np.arange(len(y))]
    if problem.classes is not None:
        strata = [np.flatnonzero(y == kind) for kind in problem.classes if np.any(y == kind)]
    drawn = np.empty(AssessTuning.drawn_tests)
    for b in range(len(drawn)):
        rows = np.concatenate([rng.choice(at, len(at)) for at in strata])
        answers = {method: take_rows(values, rows) for method, values in found.answers.items()}
        drawn[b] = _score_whole(
            problem, name, metric, UnseenAnswers(found.test[rows], 0, answers), "a test set drawn anew"
        )
    return percentile_claim(name, estimate, drawn[np.isfinite(drawn)], confidence)


def _out_of_bag_claim(
    problem: AssessedProblem, name: str, metric: Any, found: UnseenAnswers, confidence: float
) -> IntervalClaim:
    if not isinstance(metric, str) or metric not in ROW_METRICS:
        score = split_scores(problem, name, metric, [found])
        return no_claim(name, score, confidence, "out of bag there is one for means over rows only")
    rows = problem.weighed(score_rows(ROW_METRICS[metric], problem, found), found.test)
    words = (
        "rows are independent draws; twice the error of independent rows, since rows are also what members were "
        "fitted to (Efron & Tibshirani); for a vote of about a third of the members, so rather too low a score where "
        "these are few"
    )
    inflation = 2 + 1 / (len(rows) - 1)
    members = problem.estimator.get_params().get("n_estimators")
    few = isinstance(members, int) and members < AssessTuning.many_members
    if few:
        words += f"; may cover less often than it says: {members} members are few"
    claim = normal_claim(name, rows, confidence, words, inflation, span=score_span(problem, metric))
    return replace(claim, covers="perhaps less" if few or has_no_width(claim) else "at least")


def first_tests(held_out: Sequence[UnseenAnswers]) -> UnseenAnswers:
    """Return each tested row once, with the answer of the first model that left it out."""
    first = held_out[0].answers
    if isinstance(first, AnswersOfFold):
        return UnseenAnswers(np.arange(len(first.all_rows["predict"])), held_out[0].n_fitted, first.all_rows)
    if len(held_out) == 1 and (np.diff(held_out[0].test) > 0).all():
        return held_out[0]
    n = 1 + max(int(found.test.max()) for found in held_out)
    seen = np.zeros(n, dtype=bool)
    for found in held_out:
        seen[found.test] = True
    rows = np.flatnonzero(seen)
    answers = {}
    for method, values in first.items():
        parts = [found.answers.get(method) for found in held_out]
        if all(part is not None and part.ndim == values.ndim for part in parts):
            kept = np.empty((n, *values.shape[1:]), dtype=np.result_type(*parts))
            for found, part in zip(reversed(held_out), reversed(parts), strict=True):
                kept[found.test] = part
            answers[method] = kept if len(rows) == n else kept[rows]
    return UnseenAnswers(rows, held_out[0].n_fitted, answers)
