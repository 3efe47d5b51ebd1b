"""A search over settings whose score is honest: the one-standard-error rule, and a correction for having chosen."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils import check_random_state

from certifit.checkers.model_selection.choices import ChoiceClaim, certify_choice
from certifit.core import Certificate, Setting
from certifit.core.settings import MAX_TIME
from certifit.exceptions import DataError
from certifit.model_selection.assessment.assess import make_problem
from certifit.model_selection.assessment.folds_from_sums import hold_out_by_sums
from certifit.model_selection.assessment.held_out import AssessedProblem
from certifit.model_selection.assessment.metrics import ROW_METRICS, name_metrics
from certifit.model_selection.assessment.plans import AssessmentPlan, certify_plan, make_plan
from certifit.model_selection.assessment.resampled_errors import score_rows
from certifit.model_selection.result_table import ResultTable, TabledResult
from certifit.rows import Array

RULES: Mapping[str, float] = {"best": 0.0, "one standard error": 1.0}


@dataclass(frozen=True, repr=False)
class SettingChoice(TabledResult):
    """Settings with their scores, the one that was chosen, and what its score is worth; prints as a table."""

    picture = "plot_settings"

    settings: tuple[Mapping[str, Any], ...]  # that were tried, in the order given
    claim: ChoiceClaim
    certificate: Certificate
    plan: AssessmentPlan
    estimator: Any  # fitted to all rows with the chosen setting
    rule: str
    n_given: int  # settings, of which some may be left out for want of time

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
        scores = self.claim.scores
        names = list(dict.fromkeys(name for setting in self.settings for name in setting))
        columns: dict[str, list[Any]] = {n: [str(setting.get(n, "")) for setting in self.settings] for n in names}
        columns[self.claim.metric] = scores.mean(axis=0).tolist()
        columns["error"] = (self.claim.inflation * scores.std(axis=0) / np.sqrt(len(scores))).tolist()
        columns["chosen"] = ["yes" if i == self.claim.chosen else "" for i in range(len(self.settings))]
        notes = [self.certificate.claim + f"; by folds alone it would be {self.optimism:.2g} higher"]
        if len(self.settings) < self.n_given:
            notes.append(f"{len(self.settings)} of {self.n_given} settings were tried within the time allowed")
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
    those drawn choose, those left out score the choice.

    Parameters
    ----------
    estimator : of any library, not fitted
    grid : a mapping of parameters to lists of values, or a list of settings, the simplest first
    X, y : table and target
    metric : accuracy, neg_log_loss, neg_brier_score, neg_mean_squared_error or neg_mean_absolute_error
    confidence : of the interval
    random_state : int, RandomState or None
    **options : rule ('best', or 'one standard error': the first setting that is so near to the best), max_time
        (seconds; settings are then tried in random order until it has passed), n_splits (10 folds), draws (500),
        groups (n,), sample_weight (n,) and n_jobs

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
    terms: dict[str, Any] = {"rule": "best", "max_time": None, "draws": 500, "n_splits": 10}
    terms |= {name: options.pop(name) for name in terms if name in options}
    Setting(choices=(*RULES,)).check("rule", terms["rule"])
    Setting(int, least=20).check("draws", terms["draws"])
    MAX_TIME.check("max_time", terms["max_time"])
    problem = make_problem(estimator, X, y, options)
    name = _row_metric(metric, problem)
    rng = check_random_state(random_state)
    plan = make_plan(problem, "k-fold", {"n_splits": terms["n_splits"], **options}, int(rng.randint(2**31)))
    given = _settings(grid)
    order = rng.permutation(len(given)) if terms["max_time"] is not None else np.arange(len(given))
    tried, scores = _score_settings(problem, [given[i] for i in order], plan, name, terms["max_time"])
    back = np.argsort(order[: len(tried)], kind="stable")
    tried, scores = [tried[i] for i in back], scores[:, back]
    claim = make_claim(scores, name, confidence, int(rng.randint(2**31)), terms)
    splits = certify_plan(plan, problem)
    assert splits is not None
    fitted = replace(problem, estimator=clone(estimator).set_params(**tried[claim.chosen])).fit()
    return SettingChoice(
        tuple(tried), claim, certify_choice(claim, splits), plan, fitted, terms["rule"], len(given)
    )  # fmt: skip


def _row_metric(metric: Any, problem: AssessedProblem) -> str:
    if metric is None:
        metric = "accuracy" if problem.classes is not None else "neg_mean_squared_error"
    if metric not in ROW_METRICS:
        raise DataError(
            got=f"metric={metric!r}", wanted=f"a mean over rows, which can be corrected: {', '.join(ROW_METRICS)}"
        )
    return next(iter(name_metrics(metric, problem.classes is not None)))


def _settings(grid: Any) -> list[Mapping[str, Any]]:
    if isinstance(grid, Mapping):
        found: list[Mapping[str, Any]] = [*ParameterGrid(grid)]
    else:
        found = [*grid] if isinstance(grid, Sequence) and not isinstance(grid, str) else []
    if not found or not all(isinstance(setting, Mapping) for setting in found):
        raise DataError(
            got=f"a grid of {len(found)} settings", wanted="lists of values by parameter, or a list of settings",
            fix='grid={"C": [0.1, 1, 10]}, say.',
        )  # fmt: skip
    return found


def _score_settings(
    problem: AssessedProblem,
    settings: Sequence[Mapping[str, Any]],
    plan: AssessmentPlan,
    name: str,
    limit: float | None,
) -> tuple[list[Mapping[str, Any]], Array]:
    """Return the settings tried within the time allowed, at least one, and the scores of rows by each (n, m)."""
    start = time.monotonic()
    tried: list[Mapping[str, Any]] = []
    columns: list[Array] = []
    for setting in settings:
        if tried and limit is not None and time.monotonic() - start > limit:
            break
        one = replace(problem, estimator=clone(problem.estimator).set_params(**setting))
        columns.append(_score_setting(one, setting, plan, name))
        tried.append(setting)
    return tried, np.column_stack(columns)


def _score_setting(problem: AssessedProblem, setting: Mapping[str, Any], plan: AssessmentPlan, name: str) -> Array:
    """Return the score of every row by the fold that left it out (n,)."""
    try:
        held_out = hold_out_by_sums(problem, plan.splits) or problem.hold_out(plan.splits)
    except DataError as error:
        raise DataError(
            got=f"the setting {dict(setting)}: {error.got}", wanted=error.wanted, fix=error.fix or "Leave it out."
        ) from error
    rows = np.empty(len(problem.y))
    for number, found in enumerate(held_out):
        rows[found.test] = score_rows(ROW_METRICS[name], problem, found)
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
    tolerated = RULES[terms["rule"]]
    rng, values = np.random.default_rng(seed), np.empty(terms["draws"])
    for b in range(len(values)):
        drawn = rng.integers(n, size=n)
        left = np.ones(n, dtype=bool)
        left[drawn] = False
        choice = _choose(scores[drawn], tolerated * inflation)
        values[b] = scores[left, choice].mean() if left.any() else np.nan
    known = values[~np.isnan(values)]
    low, high = np.quantile(known, [(1 - confidence) / 2, (1 + confidence) / 2])
    chosen = _choose(scores, tolerated * inflation)
    return ChoiceClaim(
        scores, chosen, tolerated, inflation, seed, values, float(known.mean()), float(low), float(high), confidence,
        name,
    )  # fmt: skip


def _choose(scores: Array, tolerated: float) -> int:
    """Return the first setting whose mean is at most so many standard errors below the best."""
    means = scores.mean(axis=0)
    best = int(np.argmax(means))
    least = means[best] - tolerated * scores[:, best].std() / np.sqrt(len(scores))
    return int(np.flatnonzero(means >= least - 1e-12 * max(1.0, abs(least)))[0])
