"""Copies of any scikit-learn estimator, fitted to some rows and scored on others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.base import clone, is_classifier
from sklearn.metrics import check_scoring

from certifit.rows import Array, Matrix

__all__ = ["find_scorer", "fit_copy", "is_classifier", "score_fitted"]


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
