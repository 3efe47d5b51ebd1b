"""Logistic regression at equal objective: every contestant at the loosest tolerance that reaches it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.special import logsumexp

from benchmarks.datasets import Array, binary_labels, mnist, shape, tall_factors
from benchmarks.harness import Case, Contestant, Options
from benchmarks.peers import cannot, estimator

C = 1.0
OURS, STOCK = "certifit.linear_model.logistic.logistic:LogisticRegression", "sklearn.linear_model:LogisticRegression"
INTEL = "sklearnex.linear_model:LogisticRegression"
WORDS = f"C = {C:g}, free intercept, objective: log-loss + |coef|² / 2C"


def grid(loosest: int, tightest: int, a_decade: int = 4) -> tuple[float, ...]:
    """So many values a decade from 10^-loosest to 10^-tightest: nobody has to overshoot the quality by much."""
    return tuple(10.0 ** (-e / a_decade) for e in range(a_decade * loosest, a_decade * tightest + 1))


def logistic_tall(options: Options) -> Iterator[Case]:
    X = tall_factors(options.rows(1_000_000), 50)
    y = binary_labels(X)
    judge = LogLoss(X, y, C)

    def optimum() -> tuple[float, float]:
        from sklearn.linear_model import LogisticRegression

        return judge.proved(LogisticRegression(C=C, solver="newton-cholesky", tol=1e-10, max_iter=100).fit(X, y))

    what = f"correlated Gaussian columns {shape(X)}, two classes, {WORDS}"
    yield Case("float64", what, binary_contestants(X, y), judge, 1e-6, 0.2, optimum)


def softmax_mnist(options: Options) -> Iterator[Case]:
    X, y, words = mnist(options)
    judge = LogLoss(X, y, C)

    @cache
    def optimum() -> tuple[float, float]:
        return judge.proved(tight_softmax(X, y))

    for quality, target in ((1e-4, 0.3), (5e-7, 0.5)):
        what = f"{words}, ten classes, {WORDS}"
        yield Case(f"to {quality:.0e}", what, softmax_contestants(X, y), judge, quality, target, optimum)


def tight_softmax(X: Array, y: Array) -> Any:
    """A solution well inside the tightest quality; how far inside, the judge proves."""
    from certifit import LogisticRegression

    return LogisticRegression(C=C, tol=1e-9, max_iter=5000).fit(X, y)


def binary_contestants(X: Array, y: Array) -> list[Contestant]:
    params: dict[str, Any] = {"C": C, "max_iter": 10_000}
    glum: dict[str, Any] = {"family": "binomial", "alpha": 1.0 / (C * len(X)), "l1_ratio": 0.0, "max_iter": 10_000}
    return [
        estimator("certifit", OURS, X, y, C=C, tols=grid(3, 8)),
        estimator("certifit, default tol", OURS, X, y, C=C),
        estimator("scikit-learn lbfgs", STOCK, X, y, **params, tols=grid(1, 8), slow=True),
        estimator("scikit-learn newton-cholesky", STOCK, X, y, **params, solver="newton-cholesky", tols=grid(1, 8)),
        estimator("scikit-learn newton-cg", STOCK, X, y, **params, solver="newton-cg", tols=grid(1, 8), slow=True),
        estimator("scikit-learn-intelex lbfgs", INTEL, X, y, **params, tols=grid(-3, 7), slow=True),
        *(
            estimator(
                f"glum {solver}",
                "glum:GeneralizedLinearRegressor",
                X,
                y,
                **glum,
                solver=solver,
                tol_name="gradient_tol",
                tols=grid(1, 8),
                slow=solver == "lbfgs",
            )
            for solver in ("irls-ls", "lbfgs")
        ),
        skglm_logistic(X, y),
        statsmodels_logit(X, y),
    ]


def skglm_logistic(X: Array, y: Array) -> Contestant:
    def fit(tol: float) -> Any:
        from skglm import GeneralizedLinearEstimator
        from skglm.datafits import Logistic
        from skglm.penalties import L1_plus_L2
        from skglm.solvers import ProxNewton

        penalty = L1_plus_L2(1.0 / (C * len(X)), l1_ratio=0.0)  # its plain L2 comes with no solver for an intercept
        return GeneralizedLinearEstimator(Logistic(), penalty, ProxNewton(tol=tol)).fit(X, y)

    return Contestant("skglm prox-newton", "skglm", fit, grid(1, 8), slow=True)  # coordinates one by one


def statsmodels_logit(X: Array, y: Array) -> Contestant:
    """Without the penalty, which it lacks; on this many rows the penalised objective hardly notices."""
    with_ones = np.column_stack([np.ones(len(X)), X])

    def fit(tol: float) -> Any:
        from statsmodels.api import Logit

        beta = Logit(y, with_ones).fit(method="newton", tol=tol, disp=0).params
        return SimpleNamespace(coef_=beta[1:], intercept_=beta[0])

    return Contestant("statsmodels newton (no penalty)", "statsmodels", fit, grid(1, 8), slow=True)


def softmax_contestants(X: Array, y: Array) -> list[Contestant]:
    params: dict[str, Any] = {"C": C, "max_iter": 20_000}
    return [
        estimator("certifit", OURS, X, y, **params, tols=grid(-2, 8)),
        estimator("certifit, default tol", OURS, X, y, **params),
        estimator("scikit-learn lbfgs", STOCK, X, y, **params, tols=grid(2, 6, 2)),
        estimator("scikit-learn newton-cg", STOCK, X, y, **params, solver="newton-cg", tols=grid(2, 6, 2), slow=True),
        estimator(
            "scikit-learn newton-cholesky", STOCK, X, y, **params, solver="newton-cholesky", tols=(1e-4,), slow=True
        ),
        estimator("scikit-learn-intelex lbfgs", INTEL, X, y, **params, tols=grid(-1, 6, 2)),
        cannot("glum", "glum", "two classes only"),
        cannot("skglm", "skglm", "two classes only"),
        cannot("statsmodels", "statsmodels", "its MNLogit has no penalty: no solution with constant pixels"),
    ]


class LogLoss:
    """Sum of log-losses + |coef|² / 2C, and a lower bound on its minimum, in float64.

    Two classes are the softmax with coef (-beta/2, beta/2) and half the C: the same value, the same minimum.
    """

    def __init__(self, X: Array, y: Array, C: float) -> None:
        self.X, self.C = X, C
        self.classes, self.y = np.unique(y, return_inverse=True)

    def weights(self, model: Any) -> tuple[Array, Array, float]:
        B = np.atleast_2d(np.asarray(model.coef_, np.float64))  # (k, d)
        b = np.atleast_1d(np.asarray(model.intercept_, np.float64))  # (k,)
        if len(B) == 1:
            return np.vstack([-B, B]) / 2.0, np.array([-b[0], b[0]]) / 2.0, self.C / 2.0
        return B, b, self.C

    def loss(self, eta: Array) -> float:
        """Sum of log-losses of the scores eta (n, k)."""
        return float((logsumexp(eta, axis=1) - eta[np.arange(len(eta)), self.y]).sum())

    def __call__(self, model: Any) -> float:
        B, b, half = self.weights(model)
        return self.loss(self.X @ B.T + b) + float((B**2).sum()) / (2.0 * half)

    def proved(self, model: Any) -> tuple[float, float]:
        """Objective, and the relative distance to the optimum that duality proves.

        With the intercept optimal for these coefficients, |gradient|² C / 2 is a duality gap.
        """
        B, b, half = self.weights(model)
        scores = self.X @ B.T  # (n, k)
        truth = np.eye(len(self.classes))[self.y]
        for _ in range(20):  # Newton in the intercept alone
            p = np.exp(scores + b - logsumexp(scores + b, axis=1, keepdims=True))
            g = (p - truth).sum(axis=0)
            step = np.linalg.lstsq(np.diag(p.sum(axis=0)) - p.T @ p, g, rcond=1e-12)[0]
            b = b - step
            if np.abs(step).max() <= 1e-14:
                break
        gradient = (p - truth).T @ self.X + B / half  # (k, d)
        objective = self(model)
        bound = self.loss(scores + b) + float((B**2).sum()) / (2.0 * half) - float((gradient**2).sum()) * half / 2.0
        return objective, max(float(np.finfo(float).eps), (objective - bound) / objective)
