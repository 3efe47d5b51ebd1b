"""What a score is: a mean over rows, of which exact intervals exist, or any function of a whole test set.

Names are those of scikit-learn's scorers; larger is better. Scores of rows are written out here for the metrics that
are means over rows; all others are asked of scikit-learn's scorer, on answers that were kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import xlogy
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import get_scorer
from sklearn.utils.metaestimators import available_if

from certifit.core.settings import did_you_mean
from certifit.exceptions import DataError
from certifit.rows import Array

Answers = Mapping[str, Array]  # by method: predict (m,), predict_proba (m, k), decision_function (m,) or (m, k)


@dataclass(frozen=True)
class RowMetric:
    """A score that is a mean over rows."""

    needs: str  # the method whose answers are scored
    classes: bool  # whether y are classes
    of_rows: Callable[[Array, Array, Array], Array]  # (y, answers, classes) -> (m,)
    span: Callable[[int], tuple[float, float]] = lambda k: (-np.inf, np.inf)  # of a row's score, with k classes
    binary: bool = False  # whether scores are 0 or 1


def _right(y: Array, said: Array, _classes: Array) -> Array:
    return (said == y).astype(np.float64)


def _log_loss(y: Array, p: Array, classes: Array) -> Array:
    p = np.clip(p, np.finfo(p.dtype).eps, 1 - np.finfo(p.dtype).eps)
    return np.log(p[np.arange(len(y)), np.searchsorted(classes, y)] / p.sum(axis=1))


def _brier(y: Array, p: Array, classes: Array) -> Array:
    right = y[:, None] == classes
    squares = ((p - right) ** 2).sum(axis=1)
    return -squares / 2 if len(classes) == 2 else -squares


def _poisson_deviance(y: Array, said: Array, _: Any) -> Array:
    """Minus the deviance of counts; a mean of 0 or below counts as 1e-9, which is as wrong as a number can say."""
    mean = np.maximum(said, 1e-9)
    return -2 * (xlogy(y, y / mean) - (y - mean))


ROW_METRICS: dict[str, RowMetric] = {
    "accuracy": RowMetric("predict", True, _right, lambda k: (0.0, 1.0), binary=True),
    "neg_brier_score": RowMetric("predict_proba", True, _brier, lambda k: (-1.0 if k == 2 else -2.0, 0.0)),
    "neg_log_loss": RowMetric("predict_proba", True, _log_loss, lambda k: (-np.inf, 0.0)),
    "neg_mean_squared_error": RowMetric(
        "predict", False, lambda y, said, _: -((y - said) ** 2), lambda k: (-np.inf, 0)
    ),
    "neg_mean_absolute_error": RowMetric(
        "predict", False, lambda y, said, _: -np.abs(y - said), lambda k: (-np.inf, 0)
    ),
    "neg_mean_poisson_deviance": RowMetric("predict", False, _poisson_deviance, lambda k: (-np.inf, 0)),
    # Of a row that is encoded and decoded, the squared distance from itself; for estimators that have no target.
    "neg_reconstruction_error": RowMetric(
        "reconstruction_error", False, lambda y, said, _: -said, lambda k: (-np.inf, 0)
    ),
}


class GivenAnswers(BaseEstimator):
    """An estimator that answers for rows, given by their places, what was kept for them: any scorer takes it."""

    def __init__(self, answers: Any = None, classes: Any = None) -> None:
        self.answers, self.classes = answers, classes

    def fit(self, X: Any, y: Any = None) -> GivenAnswers:
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Array) -> Array:
        return self.answers["predict"][X]

    @available_if(lambda self: "predict_proba" in self.answers)
    def predict_proba(self, X: Array) -> Array:
        return self.answers["predict_proba"][X]

    @available_if(lambda self: "decision_function" in self.answers)
    def decision_function(self, X: Array) -> Array:
        return self.answers["decision_function"][X]


class GivenClasses(ClassifierMixin, GivenAnswers):
    """Kept answers of a classifier."""

    @property
    def classes_(self) -> Array:
        return self.classes


class GivenNumbers(RegressorMixin, GivenAnswers):
    """Kept answers of a regressor."""


def score_answers(
    metric: Any, y: Array, answers: Answers, classes: Array | None, weights: Array | None = None
) -> float:
    """Return the score of kept answers for rows with targets y (m,), by a scorer's name or a scorer.

    Of two classes named by words, the later in the alphabet is the positive one, for scorers that ask for 1 too.
    """
    if isinstance(metric, str) and classes is not None and len(classes) == 2 and classes.dtype.kind in "OUS":
        said = (np.asarray(answers["predict"]) == classes[1]).astype(np.intp)
        y, answers = (y == classes[1]).astype(np.intp), {**answers, "predict": said}
        classes = np.array([0, 1])
    kind = GivenNumbers if classes is None else GivenClasses
    scorer = get_scorer(metric) if isinstance(metric, str) else metric
    more = {} if weights is None else {"sample_weight": weights}
    return float(scorer(kind(answers, classes), np.arange(len(y)), y, **more))


def name_metrics(metrics: Any, is_classifier: bool, of_rows: bool = False) -> dict[str, Any]:
    """Return scorers or their names by name; `metrics` is a name, a scorer, a list or a mapping of these, or None.

    Without a choice, `of_rows` leaves out metrics that are no means over rows.

    >>> name_metrics(None, is_classifier=True)
    {'accuracy': 'accuracy'}
    >>> name_metrics(["r2", "neg_mean_absolute_error"], is_classifier=False)
    {'r2': 'r2', 'neg_mean_absolute_error': 'neg_mean_absolute_error'}
    """
    if metrics is None:
        second = "neg_mean_squared_error" if of_rows else "r2"
        metrics = ["accuracy"] if is_classifier else ["neg_mean_absolute_error", second]
    if isinstance(metrics, str) or callable(metrics):
        metrics = [metrics]
    named = dict(metrics) if isinstance(metrics, Mapping) else {_name(metric): metric for metric in metrics}
    if not named:
        raise DataError(got="no metrics", wanted="at least one", fix='metrics="accuracy", say.')
    for metric in named.values():
        _check_known(metric, is_classifier)
    return named


def _name(metric: Any) -> str:
    return metric if isinstance(metric, str) else getattr(metric, "__name__", str(metric))


def _check_known(metric: Any, is_classifier: bool) -> None:
    if isinstance(metric, str):
        from sklearn.metrics import get_scorer_names

        if metric not in get_scorer_names():
            meant = did_you_mean(metric, get_scorer_names())
            raise DataError(
                got=f"the metric {metric!r}",
                wanted="the name of a scorer of scikit-learn's, or a function (estimator, X, y) -> score",
                fix=meant or "sklearn.metrics.get_scorer_names() lists them.",
            )
        if metric in ROW_METRICS and ROW_METRICS[metric].classes != is_classifier:
            kind = "a classifier" if is_classifier else "a regressor"
            raise DataError(got=f"the metric {metric!r} for {kind}", wanted=f"a metric for {kind}")
    elif not callable(metric):
        raise DataError(
            got=f"a {type(metric).__name__} as a metric", wanted="a scorer's name, or (estimator, X, y) -> score"
        )


# R² ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SquaredRows:
    """R² of rows left out: 1 less a ratio of two means over rows, which limit theorems know once it is linearised.

    The mean over folds of the R² of each is too low where folds have few rows, since a fold's own mean fits its
    targets better than the mean of all does. One ratio over all tested rows is not. With M = Σ e² / Σ d² a row adds
    (e² - M d²) / mean d² to it (Cochran, Sampling techniques, 1977, section 2.11).
    """

    errors: Array  # (m,) e², of what was answered
    apart: Array  # (m,) d², of the mean target
    weights: Array  # (m,)

    @classmethod
    def of(cls, y: Array, said: Array, weights: Array | None) -> SquaredRows | None:
        """Measure rows with targets y (m,); None where all targets are the same, or all answers are right."""
        w, y = np.ones(len(y)) if weights is None else weights, y.astype(np.float64)
        # A power of two takes the unit away, and no digit: squares of 1e200 or 1e-200 are no numbers.
        unit = 2.0 ** np.frexp(np.abs(y).max())[1]
        y, said = y / unit, said / unit
        with np.errstate(over="ignore", invalid="ignore"):
            found = cls((y - said) ** 2, (y - np.average(y, weights=w)) ** 2, w)
            means = np.average(np.stack([found.errors, found.apart]), axis=1, weights=w)
        return found if means.min() > 0 and np.isfinite(means).all() else None

    def by_part(self, sizes: Sequence[int]) -> Array:
        """Return a number of each part (J,), rows one after the other, whose weighted mean is R² of all rows."""
        level = np.average(self.apart, weights=self.weights)
        ratio = np.average(self.errors, weights=self.weights) / level
        moved, ends = (self.errors - ratio * self.apart) / level, np.cumsum(sizes)[:-1]
        parts = zip(np.split(moved, ends), np.split(self.weights, ends), strict=True)
        return np.array([1 - ratio - np.average(part, weights=w) for part, w in parts])

    def logs(self) -> Array:
        """Return a number of each row (m,): their mean is log(1 - R²), and their spread that of its error.

        The spread is the jackknife's (Efron & Tibshirani, An introduction to the bootstrap, 1993, chapter 11): of few
        rows with outliers the linear one is too small, since a row that is far away moves both means and the mean
        target. Where one row alone has an error, it cannot be left out, and the spread is the linear one.
        """
        w, n, total = self.weights, len(self.errors), float(self.weights.sum())
        errors, apart = float(w @ self.errors), float(w @ self.apart)
        # A row that is left out takes the mean target with it.
        others = total / np.where(total > w, total - w, np.inf)
        left_errors, left_apart = errors - w * self.errors, apart - w * others * self.apart
        if min(left_errors.min() / errors, left_apart.min() / apart) > 1e-9:
            without = np.log(left_errors / left_apart)
            return np.log(errors / apart) + (n - 1) * (without.mean() - without)
        moved = (self.errors / errors - self.apart / apart) * total
        return np.log(errors / apart) + w / w.mean() * moved


def scorer_span(name: str) -> tuple[float, float]:
    """Return the least and the largest that a scorer of scikit-learn's can be, as far as its name tells.

    >>> scorer_span("roc_auc"), scorer_span("r2"), scorer_span("neg_max_error")
    ((0.0, 1.0), (-inf, 1.0), (-inf, 0.0))
    """
    shares = ("f1", "precision", "recall", "jaccard", "roc_auc", "average_precision", "balanced_accuracy", "top_k")
    if name.startswith("neg_"):
        return -np.inf, 0.0
    if name in ("r2", "explained_variance") or name.startswith("d2_"):
        return -np.inf, 1.0
    if name == "matthews_corrcoef":
        return -1.0, 1.0
    return (0.0, 1.0) if name.startswith(shares) else (-np.inf, np.inf)
