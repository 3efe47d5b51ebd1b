"""Forests at their default settings: growing, judged by the error on rows that were held out, and predicting."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.datasets import make_classification

from benchmarks.datasets import Array, mnist, shape
from benchmarks.harness import Case, Contestant, Options
from benchmarks.peers import estimator

TREES = 100
# Of the error on held-out rows, relative: about 0.2 points of accuracy; on MNIST 0.3, where 0.2 are a standard error.
QUALITY, QUALITY_MNIST = 0.02, 0.06
OURS, THEIRS, INTEL = (
    f"{module}:RandomForestClassifier" for module in ("certifit", "sklearn.ensemble", "sklearnex.ensemble")
)


def forest_tall(options: Options) -> Iterator[Case]:
    n = options.rows(100_000)
    X, y = make_classification(2 * n, 30, n_informative=10, flip_y=0.05, random_state=0)
    yield from cases(X[:n], y[:n], X[n:], y[n:], f"2 classes {shape(X[:n])}", (0.9, 0.7))


def forest_mnist(options: Options) -> Iterator[Case]:
    X, y, words = mnist(options)
    test = np.arange(len(X)) % 6 == 0
    for case in cases(X[~test], y[~test], X[test], y[test], words, (1.0, 0.7)):
        yield replace(case, quality=QUALITY_MNIST)


def cases(X: Array, y: Array, new: Array, labels: Array, words: str, targets: tuple[float, float]) -> Iterator[Case]:
    judge = HeldOutError(new, labels)
    what = f"{words}, {TREES} trees, objective: error on held-out rows"
    settings: dict[str, Any] = {"n_estimators": TREES, "random_state": 0}
    fits = [
        estimator("certifit", OURS, X, y, **settings),
        estimator("scikit-learn", THEIRS, X, y, **settings, n_jobs=-1),
        estimator("scikit-learn-intelex", INTEL, X, y, **settings, n_jobs=-1),
    ]
    yield Case("fit", what, fits, judge, QUALITY, targets[0], patience=120.0)
    predicts = [
        predictor("certifit", OURS, (X, y, new), settings),
        predictor("scikit-learn", THEIRS, (X, y, new), {**settings, "n_jobs": -1}),
        predictor("scikit-learn-intelex", INTEL, (X, y, new), {**settings, "n_jobs": -1}),
    ]
    yield Case("predict_proba", what, predicts, WrongShare(labels), QUALITY, targets[1], patience=120.0)


def predictor(name: str, path: str, data: tuple[Array, Array, Array], params: dict[str, Any]) -> Contestant:
    """Its first call fits too, the warm ones only predict."""
    module, _, cls = path.partition(":")
    X, y, new = data
    fitted: list[Any] = []

    def predict(_: float) -> Any:
        if not fitted:
            fitted.append(getattr(import_module(module), cls)(**params).fit(X, y))
        return fitted[0].predict_proba(new)

    return Contestant(name, module, predict)


class HeldOutError:
    """The share of held-out rows whose class is not predicted."""

    def __init__(self, X: Array, y: Array) -> None:
        self.X, self.y = X, y

    def __call__(self, model: Any) -> float:
        return float((model.predict(self.X) != self.y).mean())


class WrongShare:
    """The same from probabilities."""

    def __init__(self, y: Array) -> None:
        self.y = y

    def __call__(self, p: Array) -> float:
        return float((p.argmax(axis=1) != self.y).mean())
