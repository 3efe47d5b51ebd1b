"""A search over settings whose score is honest: the one-standard-error rule, and a correction for having chosen.

Settings are all scored on all rows, or by successive halving: those that do badly on few rows are not scored on more.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid, ParameterSampler
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.random import sample_without_replacement

from certifit.checkers.model_selection.choices import ChoiceClaim, HalvingRung, certify_choice, unseen_rows
from certifit.checkers.model_selection.splits import Split
from certifit.core import Certificate, Setting
from certifit.core.config import carrying_choice
from certifit.core.progress import counted
from certifit.core.settings import MAX_TIME
from certifit.exceptions import DataError
from certifit.model_selection.assessment.assess import make_problem
from certifit.model_selection.assessment.cautions import (
    IntervalDoubt,
    dependence_doubts,
    is_refuted,
    less_often,
    sizes_of_tests,
    skewness_doubts,
    why_none,
)
from certifit.model_selection.assessment.held_out import AssessedProblem, UnseenAnswers
from certifit.model_selection.assessment.metrics import ROW_METRICS, name_metrics
from certifit.model_selection.assessment.plans import AssessmentPlan, FoldSplits, certify_plan, make_plan
from certifit.model_selection.assessment.resampled_errors import score_as_said
from certifit.model_selection.assessment.without_refits.folds_from_sums import hold_out_by_sums
from certifit.model_selection.choosing.successive_halving import best_settings, rung_rows, rung_shares
from certifit.model_selection.result_table import ResultTable, TabledResult
from certifit.rows import Array, thread_count

PAIRED = "one standard error of the difference"
RULES: Mapping[str, float] = {"best": 0.0, "one standard error": 1.0, PAIRED: 1.0}


@dataclass(frozen=True, repr=False)
class SettingChoice(TabledResult):
    """Settings with their scores, the one that was chosen, and what its score is worth; prints as a table."""

    picture = "plot_settings"

    given: tuple[Mapping[str, Any], ...]  # all settings, of which some may be left out for want of time
    claim: ChoiceClaim
    certificate: Certificate
    plan: AssessmentPlan
    estimator: Any  # fitted to all rows with the chosen setting
    rule: str

    @property
    def settings(self) -> tuple[Mapping[str, Any], ...]:
        """Return the settings that were scored on all rows, in the order given."""
        return tuple(self.given[i] for i in self.claim.settings)

    @property
    def params(self) -> Mapping[str, Any]:
        """Return the chosen setting."""
        return self.settings[self.claim.chosen]

    @property
    def optimism(self) -> float:
        """Return by how much the score of the chosen setting flatters it."""
        return float(self.claim.scores[:, self.claim.chosen].mean()) - self.claim.corrected

    def table(self) -> ResultTable:
        """Return a line for each setting: its score, its standard error, and which was chosen."""
        rungs = (
            *self.claim.rungs,
            HalvingRung(np.arange(len(self.claim.scores)), self.claim.settings, self.claim.scores),
        )
        last = {number: rung.scores[:, place] for rung in rungs for place, number in enumerate(rung.settings)}
        tried = sorted(last)
        names = list(dict.fromkeys(name for number in tried for name in self.given[number]))
        columns: dict[str, list[Any]] = {n: [str(self.given[i].get(n, "")) for i in tried] for n in names}
        if self.claim.rungs:
            columns["rows"] = [len(last[i]) for i in tried]
        columns[self.claim.metric] = [float(last[i].mean()) for i in tried]
        columns["error"] = [float(self.claim.inflation * last[i].std() / np.sqrt(len(last[i]))) for i in tried]
        chosen = self.claim.settings[self.claim.chosen]
        columns["chosen"] = ["yes" if i == chosen else "" for i in tried]
        side = "lower" if self.optimism < 0 else "higher"
        notes = [f"{self.certificate.claim}; by folds alone it would be {abs(self.optimism):.2g} {side}"]
        if self.claim.rungs:
            notes.append("settings by rows: " + ", ".join(f"{len(r.settings)} on {len(r.rows)}" for r in rungs))
        if len(tried) < len(self.given):
            notes.append(f"{len(tried)} of {len(self.given)} settings were tried within the time allowed")
        return ResultTable(f"Chosen by {self.rule}", columns, (*notes, *self.plan.notes))


def choose_setting(
    estimator: Any,
    grid: Any,
    X: Any,
    y: Any,
    *,
    metric: Any = None,
    confidence: float = 0.9,
    random_state: Any = 0,
    **options: Any,
) -> SettingChoice:
    """Choose among settings by folds, and say how well the chosen one does on new rows, corrected for the choice.

    All settings are scored on the same folds, and the correction takes no more fits: rows are drawn with replacement,
    those drawn choose, those left out score the choice. With a `factor` settings are halved successively: all are
    scored on some of the rows, the best of them on more, a few on all rows; rows by which settings were dropped then
    do not score the choice.

    Parameters
    ----------
    estimator : of any library, not fitted
    grid : a mapping of parameters to lists of values, or a list of settings, the simplest first; values may also be
        drawn from laws that have `rvs`, as scipy.stats has them
    X, y : table and target
    metric : accuracy, neg_log_loss, neg_brier_score, neg_mean_squared_error or neg_mean_absolute_error
    confidence : of the interval
    random_state : int, RandomState or None
    **options : rule ('best', 'one standard error': the first setting that is so near to the best, or 'one standard
        error of the difference' between the two on the same rows, where that is less), max_time (seconds; settings
        are then tried in random order until it has passed), n_candidates (settings drawn from the grid at random;
        None: all), factor (of successive halving: 3, say, goes on with a third of the settings on three times as
        many rows; None: all settings on all rows), min_resources (rows to begin with, at least),
        n_splits (10 folds), draws (500), groups (n,), sample_weight (n,) and n_jobs (processes; None: one for each
        core as soon as what is left would take one core ten seconds, unless fits use several cores themselves)

    Returns
    -------
    SettingChoice : `params`, `estimator` fitted to all rows, `optimism`, `certificate`; prints as a table

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> grid = {"n_neighbors": [45, 15, 5, 1]}
    >>> choose_setting(KNeighborsClassifier(), grid, X, y, rule="one standard error", n_splits=5).params
    {'n_neighbors': 15}
    """
    Setting(float, above=0, below=1).check("confidence", confidence)
    terms = _terms(options)
    problem = make_problem(estimator, X, y, options)
    name = _row_metric(metric, problem)
    rng = check_random_state(random_state)
    plan = make_plan(problem, "k-fold", {"n_splits": terms["n_splits"], **options}, int(rng.randint(2**31)))
    given = list_settings(grid, terms["n_candidates"], rng)
    numbers, scores, rungs = SettingSearch(problem, plan, name, terms).run(given, rng)
    claim = make_claim(
        scores, name, confidence, int(rng.randint(2**31)), terms | {"rungs": rungs, "settings": numbers}
    )
    splits = certify_plan(plan, problem)
    assert splits is not None
    plan, claim = _doubted(problem, plan, claim, splits)
    best = given[numbers[claim.chosen]]
    fitted = replace(problem, estimator=clone(estimator).set_params(**best)).fit()
    return SettingChoice(tuple(given), claim, certify_choice(claim, splits), plan, fitted, terms["rule"])


def _doubted(
    problem: AssessedProblem, plan: AssessmentPlan, claim: ChoiceClaim, splits: Certificate
) -> tuple[AssessmentPlan, ChoiceClaim]:
    """Return the plan with a note where the interval may cover less often than it says; or a claim without one."""
    rows, scores = np.arange(len(problem.y)), claim.scores[:, claim.chosen]
    _, equal = sizes_of_tests(splits, plan.sizes(), len(rows))
    doubts: list[IntervalDoubt] = dependence_doubts(problem, rows, scores, equal) + skewness_doubts(scores)
    if is_refuted(doubts):
        return plan, replace(claim, low=np.nan, high=np.nan, refused=why_none(doubts))
    if not doubts:
        return plan, claim
    return replace(plan, notes=(*plan.notes, f"the interval {less_often(doubts)}")), claim


def _terms(options: dict[str, Any]) -> dict[str, Any]:
    """Take the options of a search out of all options, and check them."""
    terms: dict[str, Any] = {"rule": "best", "max_time": None, "draws": 500, "n_splits": 10}
    terms |= {"n_candidates": None, "factor": None, "min_resources": None}
    terms |= {name: options.pop(name) for name in terms if name in options}
    Setting(choices=(*RULES,)).check("rule", terms["rule"])
    Setting(int, least=20).check("draws", terms["draws"])
    MAX_TIME.check("max_time", terms["max_time"])
    for name, least in (("n_candidates", 1), ("factor", 2), ("min_resources", 4)):
        Setting(int, least=least, none=True).check(name, terms[name])
    return terms


def _row_metric(metric: Any, problem: AssessedProblem) -> str:
    if metric is None:
        metric = "accuracy" if problem.classes is not None else "neg_mean_squared_error"
    if metric not in ROW_METRICS:
        raise DataError(
            got=f"metric={metric!r}", wanted=f"a mean over rows, which can be corrected: {', '.join(ROW_METRICS)}"
        )
    return next(iter(name_metrics(metric, problem.classes is not None)))


def list_settings(grid: Any, n_candidates: int | None, rng: np.random.RandomState) -> list[Mapping[str, Any]]:
    """Return all settings of a grid, or so many of them drawn at random; lists keep their order."""
    if isinstance(grid, Mapping) and any(hasattr(values, "rvs") for values in grid.values()):
        if n_candidates is None:
            raise DataError(
                got="a grid with values to be drawn", wanted="how many settings to draw", fix="n_candidates=50, say."
            )
        return [*ParameterSampler(grid, n_candidates, random_state=rng)]
    found: Sequence[Mapping[str, Any]] = []
    if isinstance(grid, Mapping):
        try:
            found = ParameterGrid(grid)
        except (TypeError, ValueError) as error:
            raise DataError(got=f"a grid without values ({error})", wanted="a list for each parameter") from error
    elif isinstance(grid, Sequence) and not isinstance(grid, str):
        found = grid
    drawn: Any = range(len(found))
    if n_candidates is not None and n_candidates < len(found):
        drawn = np.sort(sample_without_replacement(len(found), n_candidates, random_state=rng))
    settings = [found[int(i)] for i in drawn]
    if not settings or not all(isinstance(setting, Mapping) for setting in settings):
        raise DataError(
            got=f"a grid of {len(settings)} settings", wanted="lists of values by parameter, or a list of settings",
            fix='grid={"C": [0.1, 1, 10]}, say.',
        )  # fmt: skip
    return settings


@dataclass(frozen=True)
class SettingSearch:
    """What settings are scored by."""

    problem: AssessedProblem
    plan: AssessmentPlan
    name: str  # of the metric
    terms: Mapping[str, Any]

    def run(
        self, given: Sequence[Mapping[str, Any]], rng: np.random.RandomState
    ) -> tuple[tuple[int, ...], Array, tuple[HalvingRung, ...]]:
        """Return the numbers of the settings scored on all rows (m), these scores (n, m), and the rungs before."""
        start, limit, factor = time.monotonic(), self.terms["max_time"], self.terms["factor"] or 1
        numbers = [*range(len(given))] if limit is None else rng.permutation(len(given)).tolist()
        shares = self._shares(len(given))
        sizes = [-(-len(given) // factor**k) for k in range(len(shares))]
        rungs: list[HalvingRung] = []
        done = 0
        with counted("scoring settings", sum(sizes)) as advance:
            for rows in self._rows(shares, rng):
                tried: list[int] = []
                columns: list[Array] = []
                for number, scores in zip(numbers, self.score([given[i] for i in numbers], rows), strict=False):
                    columns.append(scores)
                    tried.append(number)
                    advance(done + len(tried), sum(sizes))
                    if limit is not None and time.monotonic() - start > limit:
                        break
                done += sizes[len(rungs)]
                order = np.argsort(tried, kind="stable")
                numbers, scores = [tried[i] for i in order], np.column_stack(columns)[:, order]
                if rows is not None:
                    rungs.append(HalvingRung(rows, tuple(numbers), scores))
                    numbers = best_settings(rungs[-1], factor)
        return tuple(numbers), scores, tuple(rungs)

    def _shares(self, settings: int) -> list[float]:
        factor, problem = self.terms["factor"], self.problem
        if factor is None:
            return [1.0]
        least = 2 * self.terms["n_splits"]
        if problem.groups is not None:
            members = len(np.unique(problem.groups))
        else:
            members = len(problem.y)
            least *= 1 if problem.classes is None else len(problem.classes)
        return rung_shares(members, settings, factor, self.terms["min_resources"] or least)

    def _rows(self, shares: list[float], rng: np.random.RandomState) -> list[Array | None]:
        """Return the rows of each rung; None stands for all."""
        if len(shares) == 1:
            return [None]
        assert isinstance(self.plan.splits, FoldSplits)
        return [*rung_rows(self.problem, self.plan.splits, shares[:-1], rng), None]

    def score(self, settings: Sequence[Mapping[str, Any]], rows: Array | None) -> Iterator[Array]:
        """Give, setting by setting, the score of every row by the fold that left it out, among all rows or some."""
        problem, splits = self.problem, self.plan.splits
        if rows is not None:
            assert isinstance(splits, FoldSplits)
            part = splits.among(rows)
            if part is None:
                raise DataError(
                    got=f"{len(rows)} rows to begin with, all of them in one fold",
                    wanted="rows of several folds", fix="A larger min_resources.",
                )  # fmt: skip
            problem, splits = problem.among(rows), part
        for setting, held_out in zip(settings, _hold_out_settings(problem, settings, splits), strict=True):
            yield _row_scores(problem, setting, held_out, self.name)


def _hold_out_settings(
    problem: AssessedProblem, settings: Sequence[Mapping[str, Any]], splits: Sequence[Split]
) -> Iterator[list[UnseenAnswers]]:
    """Give, setting by setting, what its models answer for the rows left out.

    Fits of all settings are one queue, so that no process waits for the last fold of another's setting.
    """
    chosen = [replace(problem, estimator=_with_setting(problem.estimator, setting)) for setting in settings]
    n_jobs, timed, first = problem.n_jobs, FitTimes(), 0
    serial = n_jobs == 1 or _by_sums(chosen[0], settings[0], splits) is not None
    while first < len(settings) and (serial or (n_jobs is None and not timed.spreads(len(settings) - first))):
        with timed.another():
            by_sums = _by_sums(chosen[first], settings[first], splits)
            fits = (_fit_setting(chosen[first], settings[first], splits, i) for i in range(len(splits)))
            found = [*fits] if by_sums is None else by_sums
        first += 1
        yield found
    if first == len(settings):
        return
    fit = carrying_choice(_fit_setting)
    jobs = (
        delayed(fit)(one, setting, splits, i)
        for one, setting in zip(chosen[first:], settings[first:], strict=True)
        for i in range(len(splits))
    )
    # Of tables that processes share by a file, their fits could not write to a copy of their own.
    own = {"n_jobs": thread_count(), "max_nbytes": None} if n_jobs is None else {"n_jobs": n_jobs}
    answers = Parallel(**own, return_as="generator")(jobs)
    try:
        for _ in settings[first:]:
            yield [next(answers) for _ in range(len(splits))]
    finally:
        answers.close()


@dataclass(frozen=True)
class SpreadTuning:
    """When the fits of a search go to all cores although nobody said so."""

    least_seconds: float = 10.0  # that those still to come would take on one core; processes take two to begin
    most_busy: float = 1.3  # cores that a fit keeps busy by itself


class FitTimes:
    """What the settings tried so far took, by the clock and by the processor."""

    def __init__(self, tuning: SpreadTuning = SpreadTuning()) -> None:
        self.tuning, self.count, self.wall, self.cpu = tuning, 0, 0.0, 0.0

    @contextmanager
    def another(self) -> Iterator[None]:
        """Time one more setting."""
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self.count += 1
        self.wall += time.perf_counter() - wall
        self.cpu += time.process_time() - cpu

    def spreads(self, left: int) -> bool:
        """Whether so many more settings are worth processes of their own, one for each core."""
        if not self.count or left * self.wall / self.count < self.tuning.least_seconds:
            return False
        return thread_count() > 1 and self.cpu <= self.tuning.most_busy * self.wall


def _with_setting(estimator: Any, setting: Mapping[str, Any]) -> Any:
    try:
        return clone(estimator).set_params(**setting)
    except (TypeError, ValueError) as error:
        raise DataError(
            got=f"the setting {dict(setting)} ({error})", wanted=f"parameters of a {type(estimator).__name__}",
            fix="Steps of a pipeline have theirs as step__parameter.",
        ) from error  # fmt: skip


def _by_sums(
    problem: AssessedProblem, setting: Mapping[str, Any], splits: Sequence[Split]
) -> list[UnseenAnswers] | None:
    with _naming(setting):
        return hold_out_by_sums(problem, splits)


def _fit_setting(
    problem: AssessedProblem, setting: Mapping[str, Any], splits: Sequence[Split], number: int
) -> UnseenAnswers:
    with _naming(setting):
        return problem.hold_out_one(splits[number], number, len(splits))


@contextmanager
def _naming(setting: Mapping[str, Any]) -> Iterator[None]:
    """Say of a refusal which setting it is about."""
    try:
        yield
    except DataError as error:
        raise DataError(
            got=f"the setting {dict(setting)}: {error.got}", wanted=error.wanted, fix=error.fix or "Leave it out."
        ) from error


def _row_scores(
    problem: AssessedProblem, setting: Mapping[str, Any], held_out: Sequence[UnseenAnswers], name: str
) -> Array:
    """Return the score of every row by the fold that left it out (n,)."""
    rows = np.empty(len(problem.y))
    for number, found in enumerate(held_out):
        rows[found.test] = score_as_said(ROW_METRICS[name], problem, found)
        if not np.isfinite(rows[found.test]).all():
            raise DataError(
                got=f"{name} that is no number with {dict(setting)} on fold {number + 1} of {len(held_out)}: "
                f"{np.count_nonzero(~np.isfinite(rows[found.test]))} of {len(found.test)} rows",
                wanted="finite predictions and scores",
                fix="Leave this setting out, or choose another metric.",
            )
    return problem.weighed(rows, np.arange(len(rows)))


def make_claim(scores: Array, name: str, confidence: float, seed: int, terms: Mapping[str, Any]) -> ChoiceClaim:
    """Return the choice, and the scores of choosing on rows that were not drawn."""
    n, folds = len(scores), terms["n_splits"]
    # Rows of several folds depend on each other, as fold scores do (Nadeau & Bengio).
    inflation = float(np.sqrt(1 + folds / (folds - 1)))
    tolerated, paired = RULES[terms["rule"]], terms["rule"] == PAIRED
    rungs: tuple[HalvingRung, ...] = terms.get("rungs", ())
    unseen = unseen_rows(n, rungs)
    rng, values = np.random.default_rng(seed), np.empty(terms["draws"])
    for b in range(len(values)):
        drawn = rng.integers(n, size=n)
        left = unseen.copy()
        left[drawn] = False
        choice = _choose(scores[drawn], tolerated * inflation, paired)
        values[b] = scores[left, choice].mean() if left.any() else np.nan
    known = values[~np.isnan(values)]
    middle = float(known.mean())
    # Means over the rows that draws leave, a share of 1/e, deviate by √(e - 1) errors of independent rows.
    wider = max(1.0, inflation / math.sqrt(math.e - 1))
    low, high = middle + wider * (np.quantile(known, [(1 - confidence) / 2, (1 + confidence) / 2]) - middle)
    low, high = max(low, scores.min()), min(high, scores.max())
    chosen = _choose(scores, tolerated * inflation, paired)
    return ChoiceClaim(
        scores, chosen, tolerated, inflation, seed, values, middle, float(low), float(high), confidence, name,
        terms.get("settings", tuple(range(scores.shape[1]))), rungs, paired,
    )  # fmt: skip


def _choose(scores: Array, tolerated: float, paired: bool) -> int:
    """Return the first setting whose mean is at most so many standard errors below the best.

    The error is that of the best one's mean or, if `paired` and smaller, of the mean difference between the two on
    the same rows: rows that are hard for all settings tell nothing about which is better.
    """
    means = scores.mean(axis=0)
    best = int(np.argmax(means))
    errors = scores[:, best].std() * np.ones(len(means))
    if paired:
        errors = np.minimum(errors, (scores[:, [best]] - scores).std(axis=0))
    least = means[best] - tolerated * errors / np.sqrt(len(scores))
    return int(np.flatnonzero(means >= least - 1e-12 * np.maximum(1.0, np.abs(least)))[0])
