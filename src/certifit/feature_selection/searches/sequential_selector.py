"""Sequential selection: a greedy search that adds or removes one column at a time, the best one for the score.

    forward   S ← S + argmax over j not in S of  score(S + j),     score: mean over folds, on rows held out
    backward  S ← S - argmax over j in S of      score(S - j)

scikit-learn's SequentialFeatureSelector makes the same choices, but keeps no scores and cannot be watched or stopped.
This one records every candidate's score, which its certificate checks.
Reference: Guyon & Elisseeff, An introduction to variable and feature selection (2003), section 4.
"""

from __future__ import annotations

import time
from typing import Any, ClassVar

import numpy as np

from certifit.checkers.feature_selection import greedy as checker
from certifit.core import MAX_TIME, Attributes, Setting, Step
from certifit.feature_selection.searches.subset_search import SubsetSearch, SubsetTrial, as_support, mean_and_error
from certifit.feature_selection.selector import column_count
from certifit.rows import Array, Rows


class SequentialSelector(SubsetSearch):
    """Add or remove columns one by one, by the cross-validated score of any estimator.

    Parameters
    ----------
    estimator : estimator with `fit`, and `score` unless `scoring` is given; it sees arrays without names
    n_features_to_select : 'auto', int or float, default='auto'
        How many columns to keep, or which share of them; 'auto' goes on while a step gains at least `tol`.
    tol : float, default=0.0
        With 'auto': the gain in score without which no further step is taken. Going backward, a negative number
        allows a loss.
    direction : 'forward' or 'backward'
    scoring : str, callable or None
        As in scikit-learn; None is the estimator's own score.
    cv : int, splitter or iterable, default=5
        The folds, made once and used for every candidate. None scores on the rows of the fit itself.
    n_jobs : int or None
        Candidates fitted at a time.
    max_time : float or None
        Seconds after which the columns chosen so far are returned; at least one step is made.

    Attributes
    ----------
    support_ : (d,) bool, the columns kept
    path_ : dict of arrays (steps,): the 'column' taken, mean 'score' and its standard 'error' over the folds
    candidate_scores_ : (steps, d) mean score of every candidate of each step, NaN for columns that were none; one
        row more where 'auto' looked at a step and did not take it
    start_score_ : float, mean score before the first step: of all columns going backward, -inf going forward
    certificate_ : Certificate

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SequentialSelector(KNeighborsClassifier(3), n_features_to_select=2).fit(X, y)
    >>> model.get_support(indices=True), model.path_["column"]
    (array([0, 3]), array([3, 0]))
    >>> model.certificate_.kind, model.certificate_.holds
    ('greedy', True)
    """

    settings: ClassVar[Any] = {
        "n_features_to_select": Setting(float, above=0, choices=("auto",)),
        "tol": Setting(float),
        "direction": Setting(choices=("forward", "backward")),
        "max_time": MAX_TIME,
    }

    path_: dict[str, Array]
    candidate_scores_: Array

    def __init__(
        self,
        estimator,
        *,
        n_features_to_select="auto",
        tol=0.0,
        direction="forward",
        scoring=None,
        cv=5,
        n_jobs=None,
        max_time=None,
    ):
        self.estimator = estimator
        self.n_features_to_select = n_features_to_select
        self.tol = tol
        self.direction = direction
        self.scoring = scoring
        self.cv = cv
        self.n_jobs = n_jobs
        self.max_time = max_time

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        began, d = time.perf_counter(), rows.n_features
        steps, forward = self._steps(d), self.direction == "forward"
        trial = self._trial(rows)
        start, least_gain = self._start(trial), self._least_gain()
        taken: list[int] = []
        reached: list[tuple[float, float]] = [(start, 0.0)]  # mean score and its standard error, from the start on
        table: list[Array] = []
        while len(taken) < steps:
            # The first step is made however long it takes: without a column there is no selection.
            deadline = np.inf if self.max_time is None or not taken else began + self.max_time
            means, errors, stop = self._candidates(trial, taken, steps, forward, deadline)
            if np.isfinite(means).sum() < d - len(taken):
                break
            table.append(means)
            best = int(np.nanargmax(means))
            if least_gain is not None and means[best] - reached[-1][0] < least_gain:
                break
            taken.append(best)
            reached.append((float(means[best]), float(errors[best])))
            if stop:
                break
        scores, errors = np.array(reached[1:]).reshape(-1, 2).T
        support, columns = kept_columns(taken, d, forward), np.array(taken, int)
        candidates = np.array(table).reshape(-1, d)
        path = checker.GreedyPath(candidates, columns, scores, support, forward, steps, start, least_gain)
        return {
            "support_": support,
            "path_": {"column": columns, "score": scores, "error": errors},
            "candidate_scores_": candidates,
            "start_score_": start,
            "certificate_": checker.certify_greedy(path, self._tolerance()),
        }

    def _start(self, trial: SubsetTrial) -> float:
        """Return the score that the first step must improve on."""
        return -np.inf if self.direction == "forward" else float(trial.scores(np.ones(trial.X.shape[1], bool)).mean())

    def _least_gain(self) -> float | None:
        """Return the gain without which no step is taken, None where all steps asked for are."""
        return float(self.tol) if self.n_features_to_select == "auto" else None

    def _tolerance(self) -> float:
        """Return the tolerance that the certificate states."""
        return float(self.tol)

    def _steps(self, d: int) -> int:
        """Return the largest number of steps that the settings ask for."""
        forward = self.direction == "forward"
        if self.n_features_to_select == "auto":
            return d if forward else d - 1
        keep = column_count(self.n_features_to_select, d, "n_features_to_select")
        return keep if forward else d - keep

    def _candidates(
        self, trial: SubsetTrial, taken: list[int], steps: int, forward: bool, deadline: float
    ) -> tuple[Array, Array, bool]:
        """Return mean score and standard error of each candidate of a step (d,), and whether to stop.

        Where the search is stopped before the last candidate, the remaining ones stay NaN.
        """
        d = trial.X.shape[1]
        rest = np.setdiff1d(np.arange(d), taken)
        found = trial.each([kept_columns([*taken, int(j)], d, forward) for j in rest], self.n_jobs)
        means, errors = np.full((2, d), np.nan)
        most = "" if self._least_gain() is None else "at most "
        stop = False
        with self._watch.loop(f"step {len(taken) + 1} of {most}{steps}", len(rest) - 1, as_support) as watch:
            for j in rest:
                watch.begin()
                means[j], errors[j] = mean_and_error(next(found))
                best = int(np.nanargmax(means))
                best_columns = kept_columns([*taken, best], d, forward)
                stop |= watch.end(best_columns, Step(None, -float(means[best]), np.inf), 0.0)
                stop |= time.perf_counter() >= deadline
                if stop and taken:
                    break
        return means, errors, stop


def kept_columns(taken: list[int], d: int, forward: bool) -> Array:
    """Return the columns kept (a mask of d) after these were added (forward) or removed."""
    mask = np.zeros(d, bool)
    mask[taken] = True
    return mask if forward else ~mask
