"""Add (or remove) one column at a time, the one that helps an estimator most: a greedy search over sets of columns.

    forward   S ← S + argmax over j not in S of  score(S + j),     score: mean over folds, on rows held out
    backward  S ← S - argmax over j in S of      score(S - j)

scikit-learn's SequentialFeatureSelector makes the same choices, but keeps no scores and offers no way to watch or
stop it; this one records every candidate's score, which is what its certificate checks.
Reference: Guyon & Elisseeff, An introduction to variable and feature selection (2003), section 4.
"""

from __future__ import annotations

import time
from typing import Any, ClassVar

import numpy as np

from certifit.checkers.feature_selection import greedy as checker
from certifit.core import MAX_TIME, Attributes, Setting, Step
from certifit.feature_selection.selector import column_count
from certifit.feature_selection.subset_search import SubsetSearch, SubsetTrial, as_support, mean_and_error
from certifit.rows import Array, Rows


class SequentialSelector(SubsetSearch):
    """Greedy forward or backward selection by the cross-validated score of any estimator.

    Parameters
    ----------
    estimator : estimator with `fit`, and `score` unless `scoring` is given; it sees arrays without names
    n_features_to_select : 'auto', int or float, default='auto'
        How many columns to keep, or which share of them; 'auto' goes on while a step is worth `tol`.
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

    settings: ClassVar[Any] = {"direction": Setting(choices=("forward", "backward")), "max_time": MAX_TIME}

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
        start = -np.inf if forward else float(trial.scores(np.ones(d, bool)).mean())
        taken: list[int] = []
        marks: list[tuple[float, float]] = [(start, 0.0)]  # mean score and standard error, before the first step too
        table: list[Array] = []
        while len(taken) < steps:
            # The first step is made however long it takes: without a column there is no selection.
            deadline = np.inf if self.max_time is None or not taken else began + self.max_time
            means, errors, stop = self._candidates(trial, taken, steps, forward, deadline)
            if np.isfinite(means).sum() < d - len(taken):
                break
            table.append(means)
            best = int(np.nanargmax(means))
            if self.n_features_to_select == "auto" and means[best] - marks[-1][0] < self.tol:
                break
            taken.append(best)
            marks.append((float(means[best]), float(errors[best])))
            if stop:
                break
        scores, errors = np.array(marks[1:]).reshape(-1, 2).T
        attributes = {
            "support_": kept_columns(taken, d, forward),
            "path_": {"column": np.array(taken, int), "score": scores, "error": errors},
            "candidate_scores_": np.array(table).reshape(-1, d),
            "start_score_": start,
        }
        path = self._greedy_path(attributes)
        return {**attributes, "certificate_": checker.certify_greedy(path, self.tol)}

    def _steps(self, d: int) -> int:
        """How many steps are asked for, at most."""
        forward = self.direction == "forward"
        if self.n_features_to_select == "auto":
            return d if forward else d - 1
        keep = column_count(self.n_features_to_select, d, "n_features_to_select")
        return keep if forward else d - keep

    def _candidates(
        self, trial: SubsetTrial, taken: list[int], steps: int, forward: bool, deadline: float
    ) -> tuple[Array, Array, bool]:
        """Mean score and standard error of each candidate of a step (d,), and whether to stop.

        Where the search is stopped before the last candidate, those that were not scored stay NaN.
        """
        d = trial.X.shape[1]
        rest = np.setdiff1d(np.arange(d), taken)
        found = trial.each([kept_columns([*taken, int(j)], d, forward) for j in rest], self.n_jobs)
        means, errors = np.full((2, d), np.nan)
        most = "at most " if self.n_features_to_select == "auto" else ""
        stop = False
        with self._watch.loop(f"step {len(taken) + 1} of {most}{steps}", len(rest) - 1, as_support) as watch:
            for j in rest:
                watch.begin()
                means[j], errors[j] = mean_and_error(next(found))
                best = int(np.nanargmax(means))
                here = kept_columns([*taken, best], d, forward)
                stop |= watch.end(here, Step(None, -float(means[best]), np.inf), 0.0)
                stop |= time.perf_counter() >= deadline
                if stop and taken:
                    break
        return means, errors, stop

    def _greedy_path(self, fitted: Attributes) -> checker.GreedyPath:
        """What the certificate is about, from the fitted attributes."""
        forward = self.direction == "forward"
        return checker.GreedyPath(
            fitted["candidate_scores_"],
            fitted["path_"]["column"],
            fitted["path_"]["score"],
            fitted["support_"],
            forward,
            self._steps(len(fitted["support_"])),
            fitted["start_score_"],
            float(self.tol) if self.n_features_to_select == "auto" else None,
        )


def kept_columns(taken: list[int], d: int, forward: bool) -> Array:
    """The columns kept (a mask of d) after these were added (forward) or removed."""
    mask = np.zeros(d, bool)
    mask[taken] = True
    return mask if forward else ~mask
