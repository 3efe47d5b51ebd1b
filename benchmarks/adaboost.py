"""AdaBoost with 200 stumps: all thresholds, and 255 bins of each column, judged by the mean exponential loss."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.datasets import Array, shape
from benchmarks.harness import Case, Options
from benchmarks.peers import estimator

OURS, THEIRS = "certifit:AdaBoostClassifier", "sklearn.ensemble:AdaBoostClassifier"
STAGES = 200
EXACT, BINNED = 0.04, 0.015  # wanted: our time / scikit-learn's
PATIENCE = 30.0  # seconds: scikit-learn, which compiles nothing, is fitted once for each case
EQUAL, NEARLY = 1e-6, 5e-3  # how far losses may be apart: by ties and rounding; by thresholds between bins


def adaboost_stumps(options: Options) -> Iterator[Case]:
    X, y = rounded_border(options.rows(100_000))
    what = (
        f"Gaussian columns {shape(X)}, a round border with noise, {STAGES} stumps, objective: mean exponential loss"
    )
    theirs = estimator("scikit-learn", THEIRS, X, y, n_estimators=STAGES, random_state=0)
    judge = ExponentialLoss(X, y)
    exact = estimator("certifit", OURS, X, y, n_estimators=STAGES)
    binned = estimator("certifit, 255 bins", OURS, X, y, n_estimators=STAGES, max_bins=255)
    yield Case("exact", what, [exact, theirs], judge, EQUAL, EXACT, patience=PATIENCE)
    yield Case("255 bins", what, [binned, theirs], judge, NEARLY, BINNED, patience=PATIENCE)


def rounded_border(n: int, d: int = 30, seed: int = 0) -> tuple[Array, Array]:
    """Two classes inside and outside a ball of five columns (as Hastie et al., chapter 10), with noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, ((X[:, :5] ** 2).sum(axis=1) + rng.normal(size=n) > 4.35).astype(np.int64)


class ExponentialLoss:
    """Mean exp(-y f), f half the sum of the stages' strengths times their answers."""

    def __init__(self, X: Array, y: Array) -> None:
        self.X, self.sign = X, 2.0 * y - 1

    def __call__(self, model: Any) -> float:
        # The decision function is twice the weighted mean of the answers, in both libraries.
        f = model.decision_function(self.X) * model.estimator_weights_.sum() / 4
        return float(np.exp(-self.sign * f).mean())
