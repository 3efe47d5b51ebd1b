"""Naive Bayes on MNIST: fitting, judged by the penalised likelihood, and predicting, judged by the likelihood."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.datasets import Array, mnist
from benchmarks.harness import Case, Contestant, Limit, Options
from benchmarks.peers import estimator

QUALITY = 1e-9  # closed forms: equal to rounding
FIT, PREDICT = 0.07, 0.06  # wanted: our time / scikit-learn's


def naive_bayes_mnist(options: Options) -> Iterator[Case]:
    X, y, words = mnist(options)
    kinds: list[tuple[str, dict[str, Any], Callable[[Any], float]]] = [
        ("GaussianNB", {}, GaussianLoss(X, y)),
        ("BernoulliNB", {"binarize": 0.5}, BernoulliLoss(X > 0.5, y)),
    ]
    for name, params, judge in kinds:
        ours, theirs = f"certifit:{name}", f"sklearn.naive_bayes:{name}"
        fits = [
            estimator("certifit", ours, X, y, **params),
            estimator("scikit-learn", theirs, X, y, **params),
        ]
        what = f"{words}, objective: penalised negative log-likelihood"
        reading = Limit("reading the table once on all cores", partial(read_once, X))
        yield Case(f"{name} fit", what, fits, judge, QUALITY, FIT, limit=reading)
        peers = [predictor("certifit", ours, X, y, params), predictor("scikit-learn", theirs, X, y, params)]
        scores = np.ones((X.shape[1], len(np.unique(y))))
        product = Limit("the bare product of table and parameters", partial(np.matmul, X, scores))
        what = f"{words}, objective: log loss"
        yield Case(f"{name} predict_proba", what, peers, LogLoss(y), QUALITY, PREDICT, limit=product)


def read_once(X: Array) -> float:
    """Read every entry once, a core for each share of the rows: no fit takes less."""
    shares = np.array_split(X, os.cpu_count() or 1)
    with ThreadPoolExecutor(len(shares)) as pool:
        return sum(pool.map(_square, shares))


def _square(X: Array) -> float:
    flat = X.ravel()
    return float(flat @ flat)


def predictor(name: str, path: str, X: Array, y: Array, params: dict[str, Any]) -> Contestant:
    """Its first call fits too, the warm ones only predict; the answer is what is judged."""
    module, _, cls = path.partition(":")
    fitted: list[Any] = []

    def predict(_: float) -> Any:
        if not fitted:
            fitted.append(getattr(import_module(module), cls)(**params).fit(X, y))
        return fitted[0].predict_log_proba(X)

    return Contestant(name, module, predict)


class LogLoss:
    """Mean negative log-probability of the true class, in float64."""

    def __init__(self, y: Array) -> None:
        self.y = y

    def __call__(self, log_p: Array) -> float:
        return -float(log_p[np.arange(len(self.y)), self.y].mean())


class GaussianLoss:
    """Σ [log(2π v) + ((x - θ)² + ε) / v] / 2 over rows and columns, ε the model's own."""

    def __init__(self, X: Array, y: Array) -> None:
        self.rows = [X[y == c] for c in np.unique(y)]

    def __call__(self, model: Any) -> float:
        total = 0.0
        for X, theta, var in zip(self.rows, model.theta_, model.var_, strict=True):
            for start in range(0, len(X), 8192):
                Z = X[start : start + 8192] - theta
                total += 0.5 * float((np.log(2 * np.pi * var) + (Z**2 + model.epsilon_) / var).sum())
        return total


class BernoulliLoss:
    """- Σ (N + 1) log p over classes, columns and both values."""

    def __init__(self, B: Array, y: Array) -> None:
        yes = np.stack([B[y == c].sum(axis=0) for c in np.unique(y)]) + 1.0
        self.yes, self.no = yes, np.bincount(y)[:, None] + 2.0 - yes

    def __call__(self, model: Any) -> float:
        log_p = np.asarray(model.feature_log_prob_)
        return -float((self.yes * log_p + self.no * np.log1p(-np.exp(log_p))).sum())
