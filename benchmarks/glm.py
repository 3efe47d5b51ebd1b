"""Poisson, gamma and logistic regression on many rows: at equal objective, and with standard errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cached_property
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, xlogy

from benchmarks.datasets import Array, binary_labels, shape, tall_factors
from benchmarks.harness import Case, Contestant, Options
from benchmarks.logistic import OURS, grid
from benchmarks.peers import estimator

GLM = "certifit.linear_model.glm.glm:GeneralizedLinearRegressor"
CHUNK = 100_000  # rows the judge takes at a time
SAME_ERRORS = 1e-3  # relative distance from the judge's standard errors beyond which others are wrong


class Loss(NamedTuple):
    """Half the deviance of one row as a function of y and eta, and its first two derivatives in eta."""

    value: Callable[[Array, Array], Array]
    slope: Callable[[Array, Array], Array]
    curvature: Callable[[Array, Array], Array]


POISSON = Loss(
    lambda y, eta: np.exp(eta) - y * eta + xlogy(y, y) - y,
    lambda y, eta: np.exp(eta) - y,
    lambda _, eta: np.exp(eta),
)
GAMMA = Loss(
    lambda y, eta: y * np.exp(-eta) + eta - np.log(y) - 1.0,
    lambda y, eta: 1.0 - y * np.exp(-eta),
    lambda y, eta: y * np.exp(-eta),
)
LOGISTIC = Loss(
    lambda y, eta: np.logaddexp(0.0, eta) - y * eta,
    lambda y, eta: expit(eta) - y,
    lambda _, eta: expit(eta) * expit(-eta),
)


def poisson_tall(options: Options) -> Iterator[Case]:
    return ridge_cases(options, "poisson", counts, POISSON)


def gamma_tall(options: Options) -> Iterator[Case]:
    return ridge_cases(options, "gamma", amounts, GAMMA)


def ridge_cases(options: Options, family: str, target: Callable[[Array], Array], loss: Loss) -> Iterator[Case]:
    n, d = options.rows(1_000_000), 50
    for columns in ("independent", "correlated"):
        X = tall_factors(n, d) if columns == "correlated" else np.random.default_rng(4).standard_normal((n, d))
        yield ridge_case(columns, X, target(X), family, loss)


def poisson_errors(options: Options) -> Iterator[Case]:
    X = tall_factors(options.rows(1_000_000), 50)
    y = counts(X)
    for name, target, peer in (("GLM", 0.03, statsmodels_glm), ("discrete", 0.15, statsmodels_poisson)):
        yield errors_case(f"statsmodels {name}", X, y, "poisson", POISSON, peer, target)


def logistic_errors(options: Options) -> Iterator[Case]:
    X = tall_factors(options.rows(1_000_000), 50)
    yield errors_case("statsmodels Logit", X, binary_labels(X), "binomial", LOGISTIC, statsmodels_logit, 0.15)


def predictor(X: Array, seed: int) -> Array:
    """A linear predictor on the columns of X, of mean 0 and standard deviation 1/2 (n,)."""
    eta = X @ (np.random.default_rng(seed).normal(size=X.shape[1]) / X.std(axis=0))
    return 0.5 * (eta - eta.mean()) / eta.std()


def counts(X: Array, seed: int = 5) -> Array:
    return np.random.default_rng(seed).poisson(np.exp(0.3 + predictor(X, seed))).astype(np.float64)


def amounts(X: Array, seed: int = 6) -> Array:
    return np.random.default_rng(seed).gamma(2.0, 0.5 * np.exp(1.0 + predictor(X, seed)))


def ridge_case(columns: str, X: Array, y: Array, family: str, loss: Loss) -> Case:
    alpha = 1.0 / len(X)  # as much as C = 1 in logistic regression
    judge = HalfDeviance(X, y, loss, alpha)
    front = f"{family.capitalize()}Regressor"
    ours, stock = f"certifit.linear_model.family_regressors:{front}", f"sklearn.linear_model:{front}"
    glum: dict[str, Any] = {"family": family, "alpha": alpha, "l1_ratio": 0.0, "tol_name": "gradient_tol"}

    def optimum() -> tuple[float, float]:
        from sklearn import linear_model

        model = getattr(linear_model, front)(alpha=alpha, solver="newton-cholesky", tol=1e-10)
        return judge.proved(model.fit(X, y))

    contestants = [
        estimator("certifit", ours, X, y, alpha=alpha, tols=grid(3, 8)),
        estimator("certifit, default tol", ours, X, y, alpha=alpha),
        *(
            estimator(
                f"scikit-learn {solver}",
                stock,
                X,
                y,
                alpha=alpha,
                solver=solver,
                max_iter=10_000,
                tols=grid(1, 8),
                slow=solver == "lbfgs" and columns == "correlated",
            )
            for solver in ("lbfgs", "newton-cholesky")
        ),
        estimator("glum irls-ls", "glum:GeneralizedLinearRegressor", X, y, **glum, solver="irls-ls", tols=grid(1, 8)),
    ]
    what = f"{columns} Gaussian columns {shape(X)}, log link, objective: mean half deviance + |coef|² / 2n"
    return Case(columns, what, contestants, judge, 1e-6, 0.35, optimum)


def errors_case(
    name: str, X: Array, y: Array, family: str, loss: Loss, peer: Callable[[Array, Array], Contestant], target: float
) -> Case:
    judge = WithErrors(X, y, loss)
    contestants = [
        with_errors("certifit", X, y, family, grid(3, 8)),
        with_errors("certifit, default tol", X, y, family),
        peer(judge.ones_and_X, y),
    ]
    what = f"correlated Gaussian columns {shape(X)}, {family}, no penalty, coefficients and their standard errors"
    return Case(f"against {name}", what, contestants, judge, 1e-6, target, judge.optimum)


def with_errors(name: str, X: Array, y: Array, family: str, tols: tuple[float, ...] = (math.nan,)) -> Contestant:
    inner = estimator(name, GLM, X, y, family=family, tols=tols)
    if family == "binomial":
        inner = estimator(name, OURS, X, y, penalty=None, tols=tols)

    def fit(tol: float) -> Any:
        model = inner.fit(tol)
        return answer(np.append(model.intercept_, model.coef_), model.standard_errors_)

    return Contestant(name, inner.module, fit, tols)


def answer(theta: Array, errors: Array) -> SimpleNamespace:
    """Coefficients and standard errors, intercept first in both (d + 1,)."""
    return SimpleNamespace(coef_=theta[1:], intercept_=theta[0], standard_errors_=np.asarray(errors))


def statsmodels_glm(Z: Array, y: Array) -> Contestant:
    def fit(tol: float) -> Any:
        from statsmodels.api import GLM, families

        found = GLM(y, Z, family=families.Poisson()).fit(tol=tol)
        return answer(found.params, found.bse)

    return Contestant("statsmodels GLM", "statsmodels", fit, grid(1, 8, 1))


def statsmodels_poisson(Z: Array, y: Array) -> Contestant:
    return statsmodels_newton("Poisson", Z, y)


def statsmodels_logit(Z: Array, y: Array) -> Contestant:
    return statsmodels_newton("Logit", Z, y)


def statsmodels_newton(model: str, Z: Array, y: Array) -> Contestant:
    def fit(tol: float) -> Any:
        from statsmodels import api

        found = getattr(api, model)(y, Z).fit(method="newton", tol=tol, disp=0)
        return answer(found.params, found.bse)

    return Contestant(f"statsmodels {model} newton", "statsmodels", fit, grid(1, 8, 1))


class HalfDeviance:
    """Mean half deviance + alpha |coef|² / 2, and a lower bound on its minimum, in float64."""

    def __init__(self, X: Array, y: Array, loss: Loss, alpha: float) -> None:
        self.X, self.y, self.loss, self.alpha = X, y, loss, alpha

    def __call__(self, model: Any) -> float:
        beta = np.asarray(model.coef_, np.float64).ravel()
        eta = self.X @ beta + float(np.ravel(model.intercept_)[0])
        return float(self.loss.value(self.y, eta).mean() + self.alpha * (beta @ beta) / 2.0)

    def proved(self, model: Any) -> tuple[float, float]:
        """Objective, and the relative distance to the optimum that duality proves.

        With the intercept optimal for these coefficients, |gradient|² / 2 alpha is a duality gap.
        """
        beta, y = np.asarray(model.coef_, np.float64).ravel(), self.y
        scores, b = self.X @ beta, float(np.ravel(model.intercept_)[0])
        for _ in range(20):  # Newton in the intercept alone
            step = self.loss.slope(y, scores + b).sum() / self.loss.curvature(y, scores + b).sum()
            b -= step
            if abs(step) <= 1e-14:
                break
        gradient = self.loss.slope(y, scores + b) @ self.X / len(y) + self.alpha * beta
        objective = self(model)
        bound = self(SimpleNamespace(coef_=beta, intercept_=b)) - gradient @ gradient / (2.0 * self.alpha)
        return objective, max(float(np.finfo(float).eps), (objective - bound) / objective)


class WithErrors(HalfDeviance):
    """Mean half deviance; infinite for a model whose standard errors are not those of the optimum."""

    def __init__(self, X: Array, y: Array, loss: Loss) -> None:
        super().__init__(X, y, loss, alpha=0.0)
        self.ones_and_X = np.column_stack([np.ones(len(X)), X])

    def __call__(self, model: Any) -> float:
        if not np.allclose(model.standard_errors_, self.solution.standard_errors_, rtol=SAME_ERRORS, atol=0.0):
            return math.inf
        return super().__call__(model)

    def derivatives(self, theta: Array) -> tuple[Array, Array]:
        """Gradient (d + 1,) and Hessian (d + 1, d + 1) of the summed loss."""
        g, H = np.zeros(len(theta)), np.zeros((len(theta), len(theta)))
        for start in range(0, len(self.y), CHUNK):
            Z, y = self.ones_and_X[start : start + CHUNK], self.y[start : start + CHUNK]
            g += self.loss.slope(y, Z @ theta) @ Z
            H += (Z.T * self.loss.curvature(y, Z @ theta)) @ Z
        return g, H

    @cached_property
    def solution(self) -> SimpleNamespace:
        """Maximum likelihood by Newton's method, with standard errors from the inverse Hessian."""
        theta = np.zeros(self.ones_and_X.shape[1])
        for _ in range(50):
            g, H = self.derivatives(theta)
            step = np.linalg.solve(H, g)
            theta -= step
            if np.abs(step).max() <= 1e-12:
                break
        return answer(theta, np.sqrt(np.diag(np.linalg.inv(H))))

    def optimum(self) -> tuple[float, float]:
        """Objective at the solution, and the relative distance to the optimum that self-concordance proves.

        Of each row's loss |third| <= second derivative. With nu² = g'H⁻¹g, c² = max z'H⁻¹z and t = nu c < 1, the sum
        is within (t + (1 - t) log(1 - t)) / c² of its minimum.
        """
        theta = np.append(self.solution.intercept_, self.solution.coef_)
        g, H = self.derivatives(theta)
        inverse = np.linalg.inv(H)
        c = math.sqrt(np.einsum("ij,ij->i", self.ones_and_X @ inverse, self.ones_and_X).max())
        nu = math.sqrt(g @ inverse @ g)
        t = nu * c
        gap = (t + (1.0 - t) * math.log1p(-t)) / c**2 / len(self.y)
        objective = self(self.solution)
        return objective, max(float(np.finfo(float).eps), gap / objective)
