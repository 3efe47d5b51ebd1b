"""Support vector machines of all classes at once (Crammer-Singer) at equal objective, on MNIST.

LIBLINEAR penalises the intercepts, so all contestants do. As in linear_svm, it is stopped after so many rounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from benchmarks.datasets import Array, mnist
from benchmarks.harness import Case, Options
from benchmarks.linear_svm import OURS, STOCK
from benchmarks.logistic import grid
from benchmarks.peers import cannot, estimator

QUALITY = 1e-3
FEW: dict[str, Any] = {"tols": tuple(4 * 2**k for k in range(9)), "tol_name": "max_iter"}  # a round may take seconds
WORDS = "C = 1, penalised intercepts, objective: largest slacks + (|coef|² + |intercept|²) / 2"


def joint_svm_mnist(options: Options) -> Iterator[Case]:
    X, y, words = mnist(options)
    judge = LargestSlack(X, y)
    ours: dict[str, Any] = {"multi_class": "crammer-singer", "penalize_intercept": True}
    stock: dict[str, Any] = {"multi_class": "crammer_singer", "random_state": 0, **FEW}

    @cache
    def optimum() -> tuple[float, float]:
        """Ours at a tenth of the quality, with the gap that it proves."""
        from certifit.svm.linear.linear_svm import LinearSVC

        model = LinearSVC(**ours, tol=0.1 * QUALITY, max_iter=10_000).fit(X, y)
        return judge(model), max(float(np.finfo(float).eps), model.certificate_.relative_gap)

    contestants = [
        estimator("certifit", OURS, X, y, **ours, tols=grid(1, 4)),
        estimator("scikit-learn LIBLINEAR", STOCK, X, y, **stock),
        cannot("scikit-learn-intelex", "sklearnex", "no machine of all classes at once"),
        cannot("skglm", "skglm", "no machine of all classes at once"),
    ]
    yield Case("Crammer-Singer", f"{words}, {WORDS}", contestants, judge, QUALITY, 0.2, optimum, patience=120.0)


class LargestSlack:
    """Sum over rows of the largest of max(0, 1 + f_k - f_y), + (|coef|² + |intercept|²) / 2, in float64."""

    def __init__(self, X: Array, y: Array) -> None:
        self.X, self.own = X, (np.arange(len(y)), y)

    def __call__(self, model: Any) -> float:
        beta, b = np.asarray(model.coef_, np.float64), np.asarray(model.intercept_, np.float64)
        F = self.X @ beta.T + b
        slack = 1.0 + F - F[self.own][:, None]
        slack[self.own] = 0.0
        return float(slack.max(axis=1).sum()) + 0.5 * float((beta**2).sum() + b @ b)
