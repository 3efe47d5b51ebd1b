"""Recursive elimination: fit an estimator, leave out the columns that matter least to it, and fit again.

    S ← S - {the `step` columns of S with the smallest importance in a fit on S}

Importance is the sum over classes of squared coefficients or of the estimator's own importances. With `cv` the number
of columns is the one with the best mean score over folds, each fold eliminating on its own training rows.
scikit-learn's RFE and RFECV make the same choices, but keep no importances and cannot be watched or stopped.
Reference: Guyon, Weston, Barnhill & Vapnik, Gene selection for cancer classification using support vector machines
(2002).
"""

from __future__ import annotations

import time
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np

from certifit.checkers.feature_selection import greedy as checker
from certifit.core import MAX_TIME, Attributes, Setting, Step
from certifit.feature_selection.searches.subset_search import (
    SubsetSearch,
    SubsetTrial,
    as_support,
    column_importances,
    mean_and_error,
)
from certifit.feature_selection.selector import column_count
from certifit.rows import Array, Rows


class FoldEliminations(NamedTuple):
    """What eliminations on the training rows of every fold have come to, for each of m numbers of columns."""

    n_features: Array  # (m,) falling
    mean: Array  # (m,) score over the folds
    error: Array  # (m,) its standard error
    scores: Array  # (folds, m)
    kept: Array  # (folds, m, d) bool

    @property
    def best(self) -> int:
        """Return the smallest number of columns with the best mean score."""
        return int(self.n_features[self.mean == self.mean.max()].min())

    @property
    def path(self) -> dict[str, Array]:
        """Return numbers of columns, scores and errors as a selector's `path_`."""
        return {"n_features": self.n_features, "score": self.mean, "error": self.error}


def _is_share(value: Any) -> bool:
    return isinstance(value, Real) and 0 < float(value) < 1


class RecursiveElimination(SubsetSearch):
    """Leave out columns step by step, down to a number that is given or chosen by cross-validation.

    Parameters
    ----------
    estimator : estimator with coef_ or feature_importances_ once fitted; it sees arrays without names
    n_features_to_select : 'auto', int or float, default='auto'
        How many columns to keep, or which share of them; 'auto' is half of them, or with `cv` as many as score best.
    step : int or float, default=1
        Columns left out at each step, or their share of all columns.
    cv : int, splitter, iterable or None, default=None
        Folds by which 'auto' chooses.
    scoring : str, callable or None
        As in scikit-learn; used with `cv`.
    importance_getter : 'auto', str or callable
        As in scikit-learn: the path of an attribute of the fitted estimator, or a function of it.
    max_time : float or None
        Seconds after which the columns left so far are returned.

    Attributes
    ----------
    support_ : (d,) bool, the columns kept
    ranking_ : (d,) 1 for these, then 2, 3, … from the last to leave to the first
    importances_ : (steps, d) importance of the columns that were still there at each step, NaN for the others
    path_ : dict of arrays, one entry for each number of columns tried: 'n_features', mean 'score' and its standard
        'error' over the folds; empty without `cv`
    n_features_wanted_ : int, how many columns were to be kept
    certificate_ : Certificate

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.linear_model import Ridge
    >>> X, y = load_wine(return_X_y=True)
    >>> model = RecursiveElimination(Ridge(), n_features_to_select=3).fit(X / X.std(axis=0), y)
    >>> model.get_support(indices=True)
    array([ 6,  9, 12])
    >>> model.certificate_.kind, model.certificate_.holds
    ('greedy', True)
    """

    tol: ClassVar[float] = 1e-9  # relative difference allowed between two computations of an importance

    settings: ClassVar[Any] = {
        "n_features_to_select": Setting(float, above=0, choices=("auto",)),
        "step": Setting(int, least=1, other=_is_share, other_words="a share between 0 and 1"),
        "max_time": MAX_TIME,
    }

    ranking_: Array
    importances_: Array
    path_: dict[str, Array]
    n_features_wanted_: int

    def __init__(
        self,
        estimator,
        *,
        n_features_to_select="auto",
        step=1,
        cv=None,
        scoring=None,
        importance_getter="auto",
        max_time=None,
    ):
        self.estimator = estimator
        self.n_features_to_select = n_features_to_select
        self.step = step
        self.cv = cv
        self.scoring = scoring
        self.importance_getter = importance_getter
        self.max_time = max_time

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        began, d = time.perf_counter(), rows.n_features
        trial, step = self._trial(rows), self._step_size(d)
        keep = self._asked_columns(d)
        folds = self._cross_validate(trial, step) if keep is None else None
        keep = folds.best if folds is not None else int(keep or 1)
        deadline = np.inf if self.max_time is None else began + self.max_time
        table, ranking = self._eliminate(trial, keep, step, deadline)
        support = ranking == 1
        beside = self._beside(trial, support, folds)
        objective = self._loss(trial, support, beside)
        steps = checker.EliminationSteps(table, ranking, support, keep, step)
        return {
            "support_": support,
            "ranking_": ranking,
            "importances_": table,
            "path_": {name: np.zeros(0) for name in ("n_features", "score", "error")}
            if folds is None
            else folds.path,
            "n_features_wanted_": keep,
            **beside,
            "certificate_": checker.certify_elimination(steps, objective, self.tol),
        }

    def _beside(self, _trial: SubsetTrial, _support: Array, _folds: FoldEliminations | None) -> Attributes:
        """Return further fitted attributes."""
        return {}

    def _loss(self, trial: SubsetTrial, support: Array, _beside: Attributes) -> float:
        """Return minus the score of the columns kept."""
        return -float(trial.scores(support).mean())

    def _asked_columns(self, d: int) -> int | None:
        """Return how many columns the settings ask for, None where cross-validation chooses."""
        if self.n_features_to_select != "auto":
            return column_count(self.n_features_to_select, d, "n_features_to_select")
        return column_count(0.5, d, "n_features_to_select") if self.cv is None else None

    def _step_size(self, d: int) -> int:
        """Return how many columns are left out at a time."""
        return int(self.step) if isinstance(self.step, Integral) else max(1, int(float(self.step) * d))

    def _eliminate(self, trial: SubsetTrial, keep: int, step: int, deadline: float) -> tuple[Array, Array]:
        """Return importances (steps, d) and ranking (d,) of an elimination on all rows."""
        d = trial.X.shape[1]
        table: list[Array] = []
        left = np.zeros(d, int)  # the step, from 1, at which a column left; 0: kept
        with self._watch.loop("columns", -(-(d - keep) // step) - 1, as_support) as watch:
            while (left == 0).sum() > keep:
                watch.begin()
                present = left == 0
                table.append(self._importances(trial.fit(present), present))
                left[self._least_important(table[-1], min(step, int(present.sum()) - keep))] = len(table)
                stop = watch.end(left == 0, Step(None, float((left == 0).sum()), np.inf), 0.0)
                if stop or time.perf_counter() >= deadline:
                    break
        ranking = np.where(left == 0, 1, len(table) + 2 - left)
        return np.array(table).reshape(-1, d), ranking

    def _fewest_columns(self) -> int:
        """Return the smallest number of columns that cross-validation tries."""
        return 1

    def _importances(self, fitted: Any, present: Array) -> Array:
        """Return the importances (d,) in a fit on the columns present (a mask), NaN for the others."""
        importances = np.full(len(present), np.nan)
        importances[present] = column_importances(fitted, self.importance_getter)
        return importances

    def _cross_validate(self, trial: SubsetTrial, step: int) -> FoldEliminations:
        """Return for each number of columns the mean score over folds that eliminate on their own training rows."""
        d = trial.X.shape[1]
        least = min(self._fewest_columns(), d)
        sizes = [max(least, d - i * step) for i in range(-(-(d - least) // step) + 1)]
        scores = np.empty((len(trial.folds), len(sizes)))
        kept = np.empty((*scores.shape, d), bool)
        for f, (train, test) in enumerate(trial.folds):
            present, fitted = np.ones(d, bool), None
            with self._watch.loop(f"fold {f + 1} of {len(scores)}", len(sizes) - 1, as_support) as watch:
                for i, size in enumerate(sizes):
                    watch.begin()
                    if fitted is not None:
                        leaving = self._least_important(self._importances(fitted, present), int(present.sum()) - size)
                        present[leaving] = False
                    kept[f, i] = present
                    fitted = trial.fit(present, train)
                    scores[f, i] = trial.score(fitted, present, test)
                    watch.end(present.copy(), Step(None, -float(scores[f, : i + 1].max()), np.inf), 0.0)
        mean, error = np.array([mean_and_error(column) for column in scores.T]).T
        return FoldEliminations(np.array(sizes), mean, error, scores, kept)

    def _least_important(self, importance: Array, n: int) -> Array:
        """Return the n columns that matter least, the last among equals; NaN marks columns that are already out."""
        order = np.lexsort((-np.arange(len(importance)), importance))  # NaN sorts to the end
        return order[:n]
