"""The common part of searches over sets of columns, each set judged by the score of a scikit-learn estimator.

The value of a set of columns is the estimator's mean score on rows held out of its fit. `SubsetTrial` holds the rows,
the folds and the scorer; `SubsetSearch` is the base of the selectors that search by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import get_tags
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_array, check_consistent_length, has_fit_parameter

from certifit.core import Attributes, Objective
from certifit.core.config import carrying_choice
from certifit.core.scoring import find_scorer, fit_copy, score_fitted
from certifit.exceptions import DataError
from certifit.feature_selection.selector import Selector
from certifit.rows import Array, ArrayRows, Matrix, Rows
from certifit.rows.checks import Target
from certifit.rows.folds import Fold, make_folds


@dataclass(frozen=True)
class SubsetTrial:
    """The rows in memory, an estimator to be fitted on some of their columns, its folds and its scorer."""

    X: Matrix  # (n, d)
    y: Array | None  # (n,)
    w: Array | None  # (n,) row weights; None where every row counts once
    estimator: Any
    scorer: Callable[..., float]
    folds: tuple[Fold, ...]

    @classmethod
    def of(cls, rows: Rows, estimator: Any, scoring: Any, cv: Any) -> SubsetTrial:
        """Make the folds, without rows of weight 0; cv=None fits and scores on all rows."""
        data = rows.load()
        X, y, w = data.X, data.y, data.w
        weights = None if (w == 1).all() else w
        if weights is not None and not has_fit_parameter(estimator, "sample_weight"):
            raise DataError(
                got=f"sample_weight, and a {type(estimator).__name__} whose fit takes none",
                wanted="an estimator that takes sample_weight",
                fix="Repeat rows instead, or leave the weights out.",
            )
        every = np.arange(len(w))
        folds = ((every, every),) if cv is None else make_folds(cv, X, y, classes=is_classifier(estimator))
        used = tuple((train[w[train] > 0], test[w[test] > 0]) for train, test in folds)
        if not all(len(train) and len(test) for train, test in used):
            raise DataError(
                got=f"cv={cv!r} with a fold that has no row of positive weight to fit or to score",
                wanted="some on either side of every fold",
                fix="Leave rows without weight out, or use a cv that shuffles.",
            )
        return cls(X, y, weights, estimator, find_scorer(estimator, scoring), used)

    def fit(self, columns: Array, rows: Array | None = None) -> Any:
        """Return a copy of the estimator, fitted to these columns of these rows."""
        if rows is None:
            rows = np.arange(self.X.shape[0]) if self.w is None else np.flatnonzero(self.w)
        return fit_copy(self.estimator, *self._cut(columns, rows))

    def score(self, fitted: Any, columns: Array, rows: Array) -> float:
        """Return the score of a fitted estimator on these rows; larger is better."""
        value = score_fitted(self.scorer, fitted, *self._cut(columns, rows))
        if np.isnan(value):
            raise DataError(
                got=f"a score that is not a number on n_samples={len(rows)} rows",
                wanted="a number for every set of columns",
                fix="Choose another scoring, or a cv whose folds have every class.",
            )
        return value

    def scores(self, columns: Array) -> Array:
        """Return one score for each fold, of an estimator on these columns (a mask)."""
        return np.array([self.score(self.fit(columns, train), columns, test) for train, test in self.folds])

    def each(self, masks: list[Array], n_jobs: int | None) -> Iterator[Array]:
        """Yield the `scores` of every mask, in their order, as they become known."""
        if n_jobs in (None, 1):
            return map(self.scores, masks)
        scores = carrying_choice(self.scores)
        return Parallel(n_jobs=n_jobs, return_as="generator")(delayed(scores)(mask) for mask in masks)

    def _cut(self, columns: Array, rows: Array) -> tuple[Matrix, Array | None, Array | None]:
        """Return these columns of these rows, with their targets and weights."""
        y, w = (None if a is None else a[rows] for a in (self.y, self.w))
        return self.X[rows][:, columns], y, w


def mean_and_error(scores: Array) -> tuple[float, float]:
    """Return the mean over the folds and its standard error, 0 where there is one fold."""
    n = len(scores)
    return float(scores.mean()), float(scores.std(ddof=1) / np.sqrt(n)) if n > 1 else 0.0


class SubsetSearch(Selector):
    """A selector that searches by an estimator, accepts the same data as that, and holds all rows in memory."""

    estimator: Any
    scoring: Any
    cv: Any

    @property
    def target(self) -> Target:  # type: ignore[override]
        """Return the kind of y that `fit` needs."""
        return "classes" if is_classifier(self.estimator) else "numbers" if is_regressor(self.estimator) else "none"

    @property
    def sparse(self) -> bool:  # type: ignore[override]
        """Return whether the estimator takes CSR."""
        return bool(get_tags(self.estimator).input_tags.sparse)

    @property
    def missing(self) -> bool:  # type: ignore[override]
        """Return whether the estimator takes NaN."""
        return bool(get_tags(self.estimator).input_tags.allow_nan)

    def _as_rows(self, X: Any, y: Any, sample_weight: Any, target: Target, targets: int, reset: bool) -> Rows:
        """Return rows; a target of several columns is passed on to the estimator as it is."""
        if target == "none" or not _has_columns(y):
            return super()._as_rows(X, y, sample_weight, target, targets, reset)
        data = super()._as_rows(X, None, sample_weight, "none", targets, reset).load()
        y = check_array(y, dtype=None, input_name="y")
        check_consistent_length(data.X, y)
        return ArrayRows(data.X, y, data.w, data.names)

    def _trial(self, rows: Rows) -> SubsetTrial:
        """Return the rows with the estimator, folds and scorer of the settings."""
        return SubsetTrial.of(rows, self.estimator, self.scoring, self._splits())

    def _splits(self) -> Any:
        """Return what makes the folds; None fits and scores on all rows."""
        return self.cv

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """Return minus the mean score on these rows of the columns kept, cross-validated unless cv is None."""
        rows = self._rows(X, y, sample_weight, target=self.target)
        loss = -float(self._trial(rows).scores(self.support_).mean())
        return Objective(loss, loss, 0.0)


def _has_columns(y: Any) -> bool:
    """Return whether a target is a table of several columns."""
    if isinstance(y, (list, tuple)):
        return bool(y) and isinstance(y[0], (list, tuple, np.ndarray)) and len(y[0]) > 1
    return getattr(y, "ndim", 1) == 2 and y.shape[1] > 1


def as_support(mask: Array) -> Attributes:
    """Return the fitted attributes of a search that has reached these columns (a mask)."""
    return {"support_": mask}


def column_importances(fitted: Any, getter: Any) -> Array:
    """Return how much each column matters to a fitted estimator: its squared coefficients, summed over classes."""
    if callable(getter):
        found = getter(fitted)
    elif getter != "auto":
        found = attrgetter(getter)(fitted)
    else:
        found = getattr(fitted, "coef_", None)
        found = getattr(fitted, "feature_importances_", None) if found is None else found
    if found is None:
        raise DataError(
            got=f"a {type(fitted).__name__} with neither coef_ nor feature_importances_",
            wanted="an estimator that says how much each column matters",
            fix="Give importance_getter, the path of an attribute or a function of the fitted estimator.",
        )
    found = np.asarray(found.toarray() if hasattr(found, "toarray") else found, dtype=np.float64)
    return (found.reshape(-1, found.shape[-1]) ** 2).sum(axis=0)
