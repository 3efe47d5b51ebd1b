"""scikit-learn's recursive elimination: RFE to a given number of columns, RFECV to the best by cross-validation.

The search is that of `RecursiveElimination`, which records the importances of every step for its certificate; here
the number of columns is counted, and equal importances are ranked, as in scikit-learn, and the estimator fitted to
the columns kept stays with the selector and answers for it.
"""

from __future__ import annotations

import warnings
from copy import deepcopy
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from certifit.checkers.feature_selection.from_model import check_unseen_rows
from certifit.core import Attributes, Setting
from certifit.core.scoring import find_scorer
from certifit.exceptions import DataError
from certifit.feature_selection.searches.recursive_elimination import FoldEliminations, RecursiveElimination
from certifit.feature_selection.searches.subset_search import SubsetTrial
from certifit.rows import Array, Rows


def _has(method: str) -> Any:
    """Return whether the estimator, fitted if there is one, has a method."""

    def check(selector: Any) -> bool:
        getattr(getattr(selector, "estimator_", selector.estimator), method)  # its own AttributeError, where missing
        return True

    return check


def _is_count_or_share(value: Any) -> bool:
    return not isinstance(value, Integral) and 0 < float(value) <= 1


class RFE(RecursiveElimination):
    """Leave out the columns that matter least to an estimator, step by step, down to a given number.

    Parameters
    ----------
    estimator : estimator with coef_ or feature_importances_ once fitted; it sees arrays without names
    n_features_to_select : int, float or None, default=None
        How many columns to keep, or which share of them, rounded down; None is half of them.
    step : int or float, default=1
        Columns left out at each step, or their share of all columns.
    verbose : ignored; accepted so that scikit-learn's calls run
    importance_getter : 'auto', str or callable
        The path of an attribute of the fitted estimator, or a function of it.

    Attributes
    ----------
    estimator_ : the estimator, fitted to the columns kept
    support_ : (d,) bool, the columns kept
    ranking_ : (d,) 1 for these, then 2, 3, … from the last to leave to the first
    n_features_ : int, how many are kept
    classes_ : labels, where the estimator has them
    importances_ : (steps, d) importance of the columns that were still there at each step, NaN for the others
    n_features_wanted_ : int, how many columns were to be kept
    path_ : dict of empty arrays; see `RFECV`
    certificate_ : Certificate

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.linear_model import Ridge
    >>> X, y = load_wine(return_X_y=True)
    >>> model = RFE(Ridge(), n_features_to_select=3).fit(X / X.std(axis=0), y)
    >>> model.get_support(indices=True)
    array([ 6,  9, 12])
    >>> model.certificate_.kind, model.certificate_.holds
    ('greedy', True)
    """

    settings: ClassVar[Any] = {
        "step": RecursiveElimination.settings["step"],
        "n_features_to_select": Setting(
            int, least=1, none=True, other=_is_count_or_share, other_words="a share above 0 and at most 1.0"
        ),
    }
    ignored: ClassVar[tuple[str, ...]] = ("verbose",)
    differences: ClassVar[dict[str, str]] = {
        "fit": "There is no metadata routing: weights are sample_weight, and `cv` may be a list of folds by group.",
    }
    # what RecursiveElimination has as settings
    cv: Any = None
    scoring: Any = None
    max_time: Any = None

    estimator_: Any

    def __init__(self, estimator, *, n_features_to_select=None, step=1, verbose=0, importance_getter="auto"):
        self.estimator = estimator
        self.n_features_to_select = n_features_to_select
        self.step = step
        self.verbose = verbose
        self.importance_getter = importance_getter

    @property
    def missing(self) -> bool:  # type: ignore[override]
        """Return whether X may have NaN: in a fit the estimator decides, such as a pipeline that fills them."""
        return "support_" not in vars(self) or bool(get_tags(self.estimator).input_tags.allow_nan)

    @property
    def finite(self) -> bool:  # type: ignore[override]
        """Return whether infinities are looked for first: in a fit they are for the estimator to refuse."""
        return "support_" in vars(self)

    def _trial(self, rows: Rows) -> SubsetTrial:
        if rows.n_features < 2:
            raise DataError(
                got=f"{rows.n_features} feature(s) (shape=({rows.n_rows}, {rows.n_features}))",
                wanted="a minimum of 2: there is nothing to leave out",
            )
        data = rows.load()
        # The estimator refuses what it takes no part of; rows of weight 0 it does not see.
        allowed = bool(get_tags(self.estimator).input_tags.allow_nan)
        check_unseen_rows(data, getattr(self, "feature_names_in_", None), allowed)
        return super()._trial(data)

    def _asked_columns(self, d: int) -> int | None:
        asked = self.n_features_to_select
        if asked is None:
            return d // 2
        if isinstance(asked, Integral):
            if int(asked) > d:
                warnings.warn(f"n_features_to_select={asked} > n_features={d}: all columns are kept.", stacklevel=2)
            return min(int(asked), d)
        return max(1, int(d * float(asked)))

    def _least_important(self, importance: Array, n: int) -> Array:
        return np.argsort(importance, kind="stable")[:n]  # the first among equals; NaN sorts to the end

    def _beside(self, trial: SubsetTrial, support: Array, _folds: FoldEliminations | None) -> Attributes:
        return {"estimator_": trial.fit(support)}

    def _loss(self, trial: SubsetTrial, support: Array, beside: Attributes) -> float:
        if not hasattr(beside["estimator_"], "score"):
            return float("nan")
        rows = np.arange(trial.X.shape[0]) if trial.w is None else np.flatnonzero(trial.w)
        return -trial.score(beside["estimator_"], support, rows)

    @property
    def n_features_(self) -> int:
        """Return how many columns are kept."""
        return int(self.support_.sum())

    @property
    def classes_(self) -> Array:
        """Return the labels, where the estimator has them."""
        if not is_classifier(self.estimator):
            raise AttributeError(f"{type(self.estimator).__name__} is no classifier and has no classes_")
        return self.estimator_.classes_

    @available_if(_has("predict"))
    def predict(self, X: Any, **params: Any) -> Any:
        """Return the predictions of the fitted estimator from the columns kept."""
        return self._kept_estimator().predict(self._kept(X), **params)

    @available_if(_has("score"))
    def score(self, X: Any, y: Any = None, **params: Any) -> float:
        """Return the score of the fitted estimator with the columns kept."""
        return self._kept_estimator().score(self._kept(X), y, **params)

    @available_if(_has("decision_function"))
    def decision_function(self, X: Any) -> Any:
        """Return the fitted estimator's decision values from the columns kept."""
        return self._kept_estimator().decision_function(self._kept(X))

    @available_if(_has("predict_proba"))
    def predict_proba(self, X: Any) -> Any:
        """Return the fitted estimator's probabilities of the classes from the columns kept."""
        return self._kept_estimator().predict_proba(self._kept(X))

    @available_if(_has("predict_log_proba"))
    def predict_log_proba(self, X: Any) -> Any:
        """Return the fitted estimator's log-probabilities of the classes from the columns kept."""
        return self._kept_estimator().predict_log_proba(self._kept(X))

    def _kept_estimator(self) -> Any:
        check_is_fitted(self)
        return self.estimator_

    def _kept(self, X: Any) -> Any:
        """Return the columns kept as an array, whatever `set_output` says."""
        data = self._rows(X).load()
        return data.X[:, self.support_]

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = deepcopy(inner.classifier_tags), deepcopy(inner.regressor_tags)
        for kind in (tags.classifier_tags, tags.regressor_tags):
            if kind is not None:
                kind.poor_score = True  # with half of the columns, no score is promised
        tags.target_tags.required = True
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        return tags


class RFECV(RFE):
    """Leave out the columns that matter least to an estimator, down to the number with the best score over folds.

    Every fold eliminates on its own training rows; of equal mean scores the one with the fewest columns is taken.

    Parameters
    ----------
    estimator : estimator with coef_ or feature_importances_ once fitted; it sees arrays without names
    step : int or float, default=1
        Columns left out at each step, or their share of all columns.
    min_features_to_select : int, default=1
    cv : int, splitter, iterable or None, default=None
        The folds; None makes five.
    scoring : str, callable or None
        As in scikit-learn.
    verbose, n_jobs : ignored; accepted so that scikit-learn's calls run
    importance_getter : 'auto', str or callable
        The path of an attribute of the fitted estimator, or a function of it.

    Attributes
    ----------
    estimator_ : the estimator, fitted to the columns kept
    support_ : (d,) bool, the columns kept
    ranking_ : (d,) 1 for these, then 2, 3, … from the last to leave to the first
    n_features_ : int, how many are kept
    cv_results_ : dict, from the fewest columns to all: 'n_features', 'mean_test_score', 'std_test_score' and, of
        every fold, 'split0_test_score', 'split0_support', 'split0_ranking' …
    classes_ : labels, where the estimator has them
    fold_scores_ : (folds, m) from all columns to the fewest
    fold_support_ : (folds, m, d) bool, the columns that each fold had then
    importances_ : (steps, d) importance of the columns that were still there at each step, NaN for the others
    n_features_wanted_ : int, how many columns were to be kept
    path_ : dict of arrays, for each number of columns: 'n_features', mean 'score' and its standard 'error'
    certificate_ : Certificate

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.linear_model import RidgeClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = RFECV(RidgeClassifier(), step=3, cv=3).fit(X / X.std(axis=0), y)
    >>> model.cv_results_["n_features"], model.certificate_.holds
    (array([ 1,  4,  7, 10, 13]), True)
    """

    settings: ClassVar[Any] = {
        "step": RecursiveElimination.settings["step"],
        "min_features_to_select": Setting(int, least=1),
    }
    ignored: ClassVar[tuple[str, ...]] = ("verbose", "n_jobs")
    n_features_to_select: Any = None

    fold_scores_: Array
    fold_support_: Array

    def __init__(
        self,
        estimator,
        *,
        step=1,
        min_features_to_select=1,
        cv=None,
        scoring=None,
        verbose=0,
        n_jobs=None,
        importance_getter="auto",
    ):
        self.estimator = estimator
        self.step = step
        self.min_features_to_select = min_features_to_select
        self.cv = cv
        self.scoring = scoring
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.importance_getter = importance_getter

    def _splits(self) -> Any:
        return 5 if self.cv is None else self.cv

    def _asked_columns(self, d: int) -> int | None:
        if self.min_features_to_select > d:
            words = f"min_features_to_select={self.min_features_to_select} > n_features={d}: all columns are kept."
            warnings.warn(words, stacklevel=2)
        return None

    def _fewest_columns(self) -> int:
        return int(self.min_features_to_select)

    def _beside(self, trial: SubsetTrial, support: Array, folds: FoldEliminations | None) -> Attributes:
        assert folds is not None
        fitted = super()._beside(trial, support, folds)
        return {**fitted, "fold_scores_": folds.scores, "fold_support_": folds.kept}

    def _loss(self, trial: SubsetTrial, support: Array, beside: Attributes) -> float:
        return -float(trial.scores(support).mean())

    @property
    def cv_results_(self) -> dict[str, Array]:
        """Return scikit-learn's table of the folds, from the fewest columns to all."""
        if "fold_scores_" not in vars(self):
            raise AttributeError("cv_results_ is known once the selector is fitted")
        scores, support = self.fold_scores_[:, ::-1], self.fold_support_[:, ::-1]
        # A column's rank grows by one with every step since it left.
        ranking = (1 + np.cumsum(~self.fold_support_, axis=1))[:, ::-1]
        parts = {"test_score": scores, "support": support, "ranking": ranking}
        return {
            "n_features": self.path_["n_features"][::-1],
            "mean_test_score": scores.mean(axis=0),
            "std_test_score": scores.std(axis=0),
            **{f"split{f}_{name}": part[f] for name, part in parts.items() for f in range(len(scores))},
        }

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> float:
        """Return the score by `scoring` of the fitted estimator with the columns kept."""
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        scorer = find_scorer(self.estimator, self.scoring)
        return float(scorer(self._kept_estimator(), self._kept(X), y, **weights, **params))
