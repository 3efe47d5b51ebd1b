"""Sets of classes around any classifier's probabilities that hold the true class as often as they say."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from certifit.checkers.model_selection.conformal import smallest_rank
from certifit.checkers.model_selection.splits import Split
from certifit.core import Setting
from certifit.core.settings import Settings
from certifit.exceptions import DataError
from certifit.model_selection.assessment.held_out import with_rows
from certifit.model_selection.assessment.targets import check_kind
from certifit.model_selection.conformal.base import ConformalModel
from certifit.model_selection.splitting.shapes import count_rows
from certifit.rows import Array


class ConformalClassifier(ClassifierMixin, ConformalModel):
    """Wrap a classifier so that it gives a set of classes for each row, which holds the true one with a known chance.

    Nothing is assumed of its probabilities: only that new rows are drawn as the calibration rows were. Poor ones lead
    to large sets, never to false ones. A set may be empty: then no class is as likely as true ones were.

    Parameters
    ----------
    estimator : a classifier of any library, with `predict_proba`
    method : 'split' (some rows are kept for calibration), 'cv+' or 'jackknife+' (every row calibrates; 1 - 2α is
        proved), or 'prefit' (a fitted estimator and rows that it has not seen)
    coverage : the chance that a set holds a new row's class, 1 - α
    score_kind : 'threshold' (1 minus the probability of the true class: smallest sets) or 'adaptive' (what it and
        likelier classes take together: larger sets where rows are hard)
    conditional : 'class' for the stated coverage in every class, each with a radius of its own, or None
    calibration_size : share of the rows that 'split' keeps for calibration
    n_splits : folds of 'cv+'
    random_state : int, RandomState or None

    Attributes
    ----------
    classes_ : (k,)
    radius_ : the largest score of a class in a set, by group or class (None where there are none); empty for folds
    scores_ : (n,) of calibration rows, by a model that has not seen them
    calibration_rows_, calibration_folds_, calibration_groups_ : (n,) their numbers, folds and groups
    calibration_strata_ : (n,) what each radius is for: groups, or classes; None for all rows alike
    estimators_ : the fitted copies, one for a split
    estimator_ : the fitted estimator that `predict` asks
    n_folds_ : folds; 0 for a split
    certificate_ : how many new rows are covered, also of this very model

    References
    ----------
    Sadinle, Lei & Wasserman, Least ambiguous set-valued classifiers with bounded error levels (2019); Romano, Sesia &
    Candès, Classification with valid and adaptive coverage (2020).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ConformalClassifier(GaussianNB(), coverage=0.95, calibration_size=0.4, random_state=0).fit(X, y)
    >>> model.predict_set(X[[0, 70, 133]])
    array([[ True, False, False],
           [False,  True,  True],
           [False,  True,  True]])
    """

    settings: ClassVar[Settings] = {
        **ConformalModel.settings,
        "score_kind": Setting(choices=("threshold", "adaptive")),
        "conditional": Setting(choices=("class",), none=True),
    }

    classes_: Array

    def __init__(
        self, estimator, *, method="split", coverage=0.9, score_kind="threshold", conditional=None,
        calibration_size=0.25, n_splits=10, random_state=None,
    ):  # fmt: skip
        self.estimator = estimator
        self.method = method
        self.coverage = coverage
        self.score_kind = score_kind
        self.conditional = conditional
        self.calibration_size = calibration_size
        self.n_splits = n_splits
        self.random_state = random_state

    def _checked_target(self, y: Array) -> Array:
        check_kind(y, classes=True)
        if not hasattr(self.estimator, "predict_proba"):
            raise DataError(
                got=f"a {type(self.estimator).__name__} without predict_proba", wanted="a classifier with it",
                fix="CalibratedClassifierCV gives any classifier probabilities.",
            )  # fmt: skip
        if self.conditional and self.method in ("cv+", "jackknife+"):
            raise DataError(
                got=f"conditional='class' with method={self.method!r}", wanted="method='split' or 'prefit'"
            )
        if y.dtype.kind == "f" and not np.isfinite(y).all():
            raise DataError(got="missing labels", wanted="a class for every row", fix="Leave such rows out.")
        self.classes_ = np.asarray(self.estimator.classes_) if self.method == "prefit" else np.unique(y)
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise DataError(got=f"the class {unknown[0]!r}", wanted="classes that the estimator was fitted to")
        if len(self.classes_) < 2:
            raise DataError(got="targets of one class", wanted="at least two classes")
        return y

    def fit(self, X: Any, y: Any, groups: Any = None, **unused: Any) -> ConformalClassifier:
        if groups is not None and self.conditional:
            raise DataError(got="groups with conditional='class'", wanted="one of the two")
        super().fit(X, y, groups, **unused)
        return self

    def _fit_copies(self, X: Any, y: Array, splits: list[Split]) -> list[Any]:
        copies = super()._fit_copies(X, y, splits)
        if any(len(fitted.classes_) < len(self.classes_) for fitted in copies):
            raise DataError(
                got="a class without a row among those fitted", wanted="every class in every fit",
                fix="Give more rows of each class, or leave the rare ones out.",
            )  # fmt: skip
        return copies

    def _calibration_strata(self, y: Array) -> Array | None:
        if not self.conditional:
            return self.calibration_groups_
        strata = y[self.calibration_rows_]
        for kind in np.setdiff1d(self.classes_, strata).tolist():
            self._check_enough(kind, 0)
        return strata

    def predict_set(self, X: Any, groups: Any = None) -> Array:
        """Return which classes are in the set of each row (m, k), in the order of `classes_`.

        Parameters
        ----------
        X : rows to predict
        groups : the group of each row, for a model that was calibrated by groups
        """
        check_is_fitted(self, "certificate_")
        X = with_rows(X)
        if self.n_folds_:
            return self._voted_set(X, groups)
        scores = self._class_scores(self.estimator_, X)
        if self.conditional:
            return scores <= np.array([self.radius_[kind] for kind in self.classes_.tolist()])
        return scores <= self._radii(X, groups)[:, None]

    def _voted_set(self, X: Any, groups: Any) -> Array:
        """Return classes that too few calibration rows vote against, each by its own fold's model."""
        if groups is not None:
            raise DataError(got="groups", wanted="none: folds are calibrated without")
        against = np.zeros((count_rows(X), len(self.classes_)))
        for k, fitted in enumerate(self.estimators_):
            own = np.sort(self.scores_[self.calibration_folds_ == k])
            against += np.searchsorted(own, self._class_scores(fitted, X), side="left")
        return against < smallest_rank(len(self.scores_), self.coverage)

    def _class_scores(self, fitted: Any, X: Any) -> Array:
        """Return the score that each class would have, were it the true one (m, k)."""
        p = self._said(fitted, X)
        if self.score_kind == "threshold":
            return 1 - p
        return np.stack([np.where(p >= p[:, [j]], p, 0.0).sum(axis=1) for j in range(p.shape[1])], axis=1)

    def covered(self, X: Any, y: Any, groups: Any = None, confidence: float = 0.9) -> tuple[float, float, float]:
        """Return the share of new rows whose class is in its set, and an exact interval for that share.

        Parameters
        ----------
        X, y, groups : new rows
        confidence : of the interval
        """
        chosen = self.predict_set(X, groups)
        at = np.asarray(y)[:, None] == self.classes_
        return self._share((chosen & at).any(axis=1), confidence)
