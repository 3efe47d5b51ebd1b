"""Copies of any scikit-learn estimator, fitted to some rows and scored on others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.utils.metaestimators import available_if

from certifit.rows import Array, Matrix

__all__ = ["GivenPredictions", "GivenScores", "find_scorer", "fit_copy", "is_classifier", "score_fitted"]


def find_scorer(estimator: Any, scoring: Any) -> Callable[..., float]:
    """Return the function (estimator, X, y) -> score that scikit-learn's setting `scoring` stands for."""
    return check_scoring(estimator, scoring=scoring)


def fit_copy(estimator: Any, X: Matrix, y: Array | None, w: Array | None) -> Any:
    """Return a copy of an estimator, fitted to these rows; w=None where every row has weight 1."""
    return clone(estimator).fit(*_data(X, y), **_weights(w))


def score_fitted(scorer: Callable[..., float], fitted: Any, X: Matrix, y: Array | None, w: Array | None) -> float:
    """Return the score of a fitted estimator on these rows; larger is better."""
    return float(scorer(fitted, *_data(X, y), **_weights(w)))


def _data(X: Matrix, y: Array | None) -> tuple[Any, ...]:
    return (X,) if y is None else (X, y)


def _weights(w: Array | None) -> dict[str, Array]:
    return {} if w is None else {"sample_weight": w}


class GivenPredictions(RegressorMixin, BaseEstimator):
    """A regressor whose predictions are what it is given: for scorers of predictions made elsewhere."""

    def fit(self, X: Any, y: Any) -> Self:
        return self

    def predict(self, X: Array) -> Array:
        return X


class GivenScores(ClassifierMixin, BaseEstimator):
    """A classifier of rows whose columns are its scores: for scorers of scores made elsewhere."""

    def __init__(self, classes: Any, probabilities: Any = None) -> None:
        self.classes = classes
        self.probabilities = probabilities  # a function of the scores, where they stand for probabilities
        self.classes_ = np.asarray(classes)

    def fit(self, X: Any, y: Any) -> Self:
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def decision_function(self, X: Array) -> Array:
        return X[:, 0] if X.shape[1] == 1 else X

    def predict(self, X: Array) -> Array:
        found = (X[:, 0] > 0).astype(int) if X.shape[1] == 1 else X.argmax(axis=1)
        return self.classes_[found]

    @available_if(lambda self: self.probabilities is not None)
    def predict_proba(self, X: Array) -> Array:
        return np.asarray(self.probabilities(X))
