"""Intervals around any regressor's predictions that hold new targets as often as they say."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin, is_classifier
from sklearn.utils.validation import check_is_fitted

from certifit.checkers.model_selection.conformal import smallest_rank
from certifit.exceptions import DataError
from certifit.model_selection.assessment.held_out import with_rows
from certifit.model_selection.assessment.targets import check_kind
from certifit.model_selection.conformal.base import ConformalModel
from certifit.rows import Array


class ConformalRegressor(RegressorMixin, ConformalModel):
    """Wrap a regressor so that it gives an interval for every row, which holds its target with a stated chance.

    Nothing is assumed of the regressor or of the errors' law: only that new rows are drawn as the calibration rows
    were. 'split' keeps some rows for calibration and fits once; 'cv+' and 'jackknife+' calibrate on every row, with a
    fit for every fold or row, and prove a chance of 1 - 2α where 1 - α is asked for and usually reached; 'prefit'
    calibrates a fitted estimator on rows that it has not seen.

    Parameters
    ----------
    estimator : a regressor of any library
    method : 'split', 'cv+', 'jackknife+' or 'prefit'
    coverage : the chance that an interval holds a new row's target, 1 - α
    calibration_size : share of the rows that 'split' keeps for calibration
    n_splits : folds of 'cv+'
    random_state : int, RandomState or None: which rows are kept, and the chance of estimators that leave it open

    Attributes
    ----------
    radius_ : half the width of intervals, by group (None where there are no groups); empty for folds
    scores_ : (n,) |y - prediction| of calibration rows, by a model that has not seen them
    calibration_rows_, calibration_folds_, calibration_groups_ : (n,) their numbers, folds and groups
    calibration_strata_ : (n,) what each radius is for: groups, or classes; None for all rows alike
    estimators_ : the fitted copies, one for a split
    estimator_ : the fitted estimator that `predict` asks
    n_folds_ : folds; 0 for a split
    certificate_ : how many new rows are covered, also of this very model

    References
    ----------
    Vovk, Gammerman & Shafer, Algorithmic learning in a random world (2005); Barber, Candès, Ramdas & Tibshirani,
    Predictive inference with the jackknife+ (2021).

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import LinearRegression
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ConformalRegressor(LinearRegression(), coverage=0.9, random_state=0).fit(X[:400], y[:400])
    >>> model.predict_interval(X[400:402]).round()
    array([[ 68., 279.],
           [-21., 190.]])
    >>> print(model.certificate_)
    statistical: a new row is covered with a chance of at least 90 %
      share of calibration rows that are      0 <= 0.01
        copies of fitted ones
      scores that are no numbers              0 <= 0
      scores beyond the radius                9 <= 9
      scores within the radius                90 <= 90
      calibration rows                        100
      coverage on average                     0.9010, and more where scores tie
      this model, with 95 % confidence        at least 84.8 % of new rows
      assumed                                 calibration rows and new rows are
                                              exchangeable: drawn alike, in any
                                              order
      holds                                   yes
    """

    def __init__(
        self, estimator, *, method="split", coverage=0.9, calibration_size=0.25, n_splits=10, random_state=None
    ):  # fmt: skip
        self.estimator = estimator
        self.method = method
        self.coverage = coverage
        self.calibration_size = calibration_size
        self.n_splits = n_splits
        self.random_state = random_state

    def _check_estimator(self) -> None:
        super()._check_estimator()
        if is_classifier(self.estimator):
            raise DataError(
                got=f"a {type(self.estimator).__name__}, which is a classifier", wanted="a regressor",
                fix="ConformalClassifier wraps classifiers.",
            )  # fmt: skip

    def _checked_target(self, y: Array) -> Array:
        check_kind(y, classes=False)
        if y.dtype.kind == "O":
            y = y.astype(np.float64)
        if y.dtype.kind not in "biuf" or not np.isfinite(y).all():
            raise DataError(got=f"targets of type {y.dtype}, or missing ones", wanted="a finite number for every row")
        return y

    def predict_interval(self, X: Any, groups: Any = None) -> Array:
        """Return the lower and the upper end for each row (m, 2).

        Parameters
        ----------
        X : rows to predict
        groups : the group of each row, for a model that was calibrated by groups
        """
        check_is_fitted(self, "certificate_")
        X = with_rows(X)
        if not self.n_folds_:
            said, radius = self._said(self.estimator_, X), self._radii(X, groups)
            return np.column_stack([said - radius, said + radius])
        if groups is not None:
            raise DataError(got="groups", wanted="none: folds are calibrated without")
        # Every calibration row votes for an interval: its error around what its own fold's model says.
        said = np.column_stack([self._said(fitted, X) for fitted in self.estimators_])
        k = smallest_rank(len(self.scores_), self.coverage) - 1
        ends, at_once = np.empty((len(said), 2)), max(1, self._tuning.votes_at_once // len(self.scores_))
        for start in range(0, len(said), at_once):
            votes = said[start : start + at_once][:, self.calibration_folds_]
            ends[start : start + at_once, 0] = -np.partition(self.scores_ - votes, k, axis=1)[:, k]
            ends[start : start + at_once, 1] = np.partition(self.scores_ + votes, k, axis=1)[:, k]
        return ends

    def covered(self, X: Any, y: Any, groups: Any = None, confidence: float = 0.9) -> tuple[float, float, float]:
        """Return the share of new rows whose target is in its interval, and an exact interval for that share.

        Parameters
        ----------
        X, y, groups : new rows
        confidence : of the interval
        """
        ends, target = self.predict_interval(X, groups), np.asarray(y)
        return self._share((ends[:, 0] <= target) & (target <= ends[:, 1]), confidence)
