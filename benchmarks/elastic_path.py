"""Logistic regression along a path of 50 L1 and elastic-net penalties; the worst of the 50 answers counts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import entr, expit

from benchmarks.datasets import Array, shape
from benchmarks.harness import Case, Contestant, Options
from benchmarks.logistic import grid
from benchmarks.peers import cannot

OURS = "certifit.linear_model.logistic.logistic"
PENALTIES = 50


def elastic_path(options: Options) -> Iterator[Case]:
    X, y = sparse_truth(options.rows(20_000), 500)
    for l1_ratio in (0.5, 1.0):
        judge = WorstOfPath(X, y, l1_ratio)
        contestants = [ours(judge), skglm_path(judge), celer_path(judge)]
        words = "log-loss + alpha (l1_ratio |coef|₁ + (1 - l1_ratio) |coef|² / 2), no intercept"
        what = f"correlated columns {shape(X)}, alpha from the largest useful one to 1/100 of it; mean {words}"
        yield Case(f"l1_ratio {l1_ratio:g}", what, contestants, judge, 1e-6, 1.0, judge.optimum)


def sparse_truth(n: int, d: int, seed: int = 7) -> tuple[Array, Array]:
    """Centred columns, neighbours correlated by 0.6 (n, d); 0 / 1 from a logistic model on every 25th (n,)."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] = 0.6 * X[:, j - 1] + 0.8 * X[:, j]
    X -= X.mean(axis=0)
    eta = X[:, ::25] @ rng.choice([-0.5, 0.5], len(range(0, d, 25)))
    return X, (rng.random(n) < expit(eta)).astype(np.int64)


def ours(judge: WorstOfPath) -> Contestant:
    return Contestant("certifit", OURS, judge.certifit, grid(-2, 10))


def skglm_path(judge: WorstOfPath) -> Contestant:
    def fit(tol: float) -> Array:
        from skglm import GeneralizedLinearEstimator
        from skglm.datafits import Logistic
        from skglm.penalties import L1_plus_L2
        from skglm.solvers import ProxNewton

        X = np.asfortranarray(judge.X)  # it walks along columns
        solver = ProxNewton(tol=tol, max_iter=200, fit_intercept=False, warm_start=True)
        model = GeneralizedLinearEstimator(Logistic(), L1_plus_L2(judge.alphas[0], judge.l1_ratio), solver)
        path = []
        for alpha in judge.alphas:
            model.penalty = L1_plus_L2(alpha, judge.l1_ratio)
            path.append(model.fit(X, judge.y).coef_.ravel().copy())
        return np.array(path)

    return Contestant("skglm prox-newton", "skglm", fit, grid(2, 8))


def celer_path(judge: WorstOfPath) -> Contestant:
    if judge.l1_ratio < 1.0:
        return cannot("celer", "celer", "its logistic regression has the L1 penalty alone")

    def fit(tol: float) -> Array:
        from celer import celer_path

        n = len(judge.y)  # its objective is the sum, not the mean
        path = celer_path(judge.X, 2.0 * judge.y - 1.0, "logreg", alphas=n * judge.alphas, tol=n * tol, max_iter=200)
        return path[1].T

    return Contestant("celer", "celer", fit, grid(2, 8))


class WorstOfPath:
    """The largest ratio of an objective to the best known one along the path, whose minimum is 1."""

    def __init__(self, X: Array, y: Array, l1_ratio: float) -> None:
        self.X, self.y, self.l1_ratio = X, y, l1_ratio
        most = np.abs((0.5 - y) @ X).max() / len(y) / l1_ratio  # from here on every coefficient is zero
        self.alphas = np.geomspace(most, most / 100.0, PENALTIES)

    def certifit(self, tol: float) -> Array:
        """Our path (50, d), each fit started at the one before."""
        from certifit import LogisticRegression

        model = LogisticRegression(
            "elasticnet", l1_ratio=self.l1_ratio, fit_intercept=False, tol=tol, warm_start=True
        )
        strengths = 1.0 / (len(self.y) * self.alphas)
        return np.array([model.set_params(C=C).fit(self.X, self.y).coef_[0] for C in strengths])

    def objectives(self, path: Array) -> Array:
        """Mean log-loss + penalty of each row of coefficients (50,)."""
        eta = path @ self.X.T  # (50, n)
        losses = (np.logaddexp(0.0, eta) - self.y * eta).mean(axis=1)
        l1, l2 = self.alphas * self.l1_ratio, self.alphas * (1.0 - self.l1_ratio)
        return losses + l1 * np.abs(path).sum(axis=1) + l2 * (path**2).sum(axis=1) / 2.0

    def bounds(self, path: Array) -> Array:
        """Lower bounds on the minima from the dual point of each row, shrunk until it is feasible (50,)."""
        u = expit(path @ self.X.T) - self.y  # (50, n)
        v = np.abs(u @ self.X) / len(self.y)  # (50, d)
        l1, l2 = self.alphas * self.l1_ratio, self.alphas * (1.0 - self.l1_ratio)
        excess = np.zeros(len(path))
        if self.l1_ratio < 1.0:
            excess = (np.maximum(v - l1[:, None], 0.0) ** 2).sum(axis=1) / (2.0 * l2)
        else:
            u *= np.minimum(1.0, l1 / v.max(axis=1))[:, None]
        share = u + self.y  # in [0, 1]: the conjugate of the log-loss is minus the entropy there
        return (entr(share) + entr(1.0 - share)).mean(axis=1) - excess

    @cached_property
    def best(self) -> Array:
        """A path well inside the quality asked for; how far inside, `optimum` proves (50, d)."""
        return self.certifit(1e-13)

    def __call__(self, path: Any) -> float:
        return float((self.objectives(path) / self.objectives(self.best)).max())

    def optimum(self) -> tuple[float, float]:
        """1, and the largest relative duality gap of the path it is measured by."""
        found = self.objectives(self.best)
        return 1.0, float(np.max(1.0 - self.bounds(self.best) / found))
