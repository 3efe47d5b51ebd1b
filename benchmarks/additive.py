"""An additive model of two classes against interpret's EBM, judged by the log loss on rows that nobody has seen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.datasets import Array, shape
from benchmarks.harness import Case, Options
from benchmarks.peers import estimator

OURS, THEIRS = "certifit:AdditiveClassifier", "interpret.glassbox:ExplainableBoostingClassifier"
QUALITY, WANTED = 3e-3, 0.1


def additive_classes(options: Options) -> Iterator[Case]:
    X, y = bent_columns(options.rows(100_000))
    held, labels = bent_columns(options.rows(100_000), seed=1)
    what = f"Gaussian columns {shape(X)}, five bent functions, objective: log loss on as many new rows"
    contestants = [
        estimator("certifit", OURS, X, y),
        estimator("interpret EBM, main effects", THEIRS, X, y, interactions=0, random_state=0),
    ]
    yield Case("two classes", what, contestants, NewLogLoss(held, labels), QUALITY, WANTED, patience=30.0)


def bent_columns(n: int, d: int = 30, seed: int = 0) -> tuple[Array, Array]:
    """Log-odds that are a sum of five bent functions; neighbouring columns are correlated."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[:, 1:] = 0.6 * X[:, :-1] + 0.8 * X[:, 1:]
    score = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 / 2 - (X[:, 2] > 0) + 0.5 * X[:, 3] + np.maximum(X[:, 4], 0) - 0.7
    return X, (rng.random(n) < 1 / (1 + np.exp(-score))).astype(np.int64)


class NewLogLoss:
    """Mean negative log-probability of the true class on rows held back."""

    def __init__(self, X: Array, y: Array) -> None:
        self.X, self.y = X, y

    def __call__(self, model: Any) -> float:
        p = model.predict_proba(self.X)[np.arange(len(self.y)), self.y]
        return -float(np.log(p).mean())
