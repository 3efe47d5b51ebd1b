"""Familiar names for generalised linear models: one import line is the migration from scikit-learn.

LinearRegression and Ridge minimise Σ w (y - μ)² + alpha |β|²; the others Σ w d(y, μ)/2 / Σ w + alpha/2 |β|², as in
scikit-learn. Everything else (certificate, standard errors, offsets) is `GeneralizedLinearRegressor`'s.
"""

from __future__ import annotations

from typing import Any

from certifit.linear_model.glm.glm import GeneralizedLinearRegressor


class _NamedRegressor(GeneralizedLinearRegressor):
    """A generalised linear model whose name fixes some settings: they are class attributes here, not parameters."""

    family: Any = "gaussian"
    link: Any = "auto"
    alpha: Any = 0.0
    l1_ratio: Any = 0.0
    power: Any = 1.5
    theta: Any = 1.0


class LinearRegression(_NamedRegressor):
    """Least squares by a backward-stable method, with standard errors.

    Nearly collinear columns are made orthogonal first, so that the digits the data determine are there; columns that
    are exact combinations of others are left out and named.

    Parameters
    ----------
    fit_intercept, tol, covariance, collinear, max_iter, max_time, warm_start : see GeneralizedLinearRegressor

    Examples
    --------
    >>> from certifit import LinearRegression
    >>> model = LinearRegression().fit([[0.0], [1.0], [2.0], [3.0]], [1.0, 3.0, 5.0, 7.1])
    >>> model.coef_.round(6), float(model.intercept_.round(6)), model.certificate_.holds
    (array([2.03]), 0.98, True)
    """

    def __init__(
        self,
        *,
        fit_intercept=True,
        tol=1e-6,
        covariance="classical",
        collinear="drop",
        max_iter=1000,
        max_time=None,
        warm_start=False,
    ):
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.covariance = covariance
        self.collinear = collinear
        self.max_iter = max_iter
        self.max_time = max_time
        self.warm_start = warm_start


class _PenalisedRegressor(_NamedRegressor):
    """A model with a penalty: it has no standard errors, and collinear columns do not matter."""

    covariance = "classical"
    collinear = "drop"

    def __init__(self, alpha=1.0, *, fit_intercept=True, tol=1e-6, max_iter=1000, max_time=None, warm_start=False):
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.warm_start = warm_start


class Ridge(_PenalisedRegressor):
    """Least squares with the penalty alpha |β|².

    Examples
    --------
    >>> from certifit import Ridge
    >>> Ridge(alpha=1.0).fit([[0.0], [2.0]], [0.0, 2.0]).coef_.round(6)
    array([0.666667])
    """

    penalty_per_row = False


class Lasso(_PenalisedRegressor):
    """Least squares with an L1 penalty: Σ w (y - μ)² / (2 Σ w) + alpha |β|₁.

    Examples
    --------
    >>> from certifit import Lasso
    >>> Lasso(alpha=0.5).fit([[0.0, 1.0], [2.0, 1.0]], [0.0, 2.0]).coef_
    array([0.5, 0. ])
    """

    l1_ratio = 1.0


class ElasticNet(_PenalisedRegressor):
    """Least squares with both penalties: Σ w (y - μ)² / (2 Σ w) + alpha (ρ |β|₁ + (1 - ρ)/2 |β|²), ρ = l1_ratio.

    Examples
    --------
    >>> from certifit import ElasticNet
    >>> ElasticNet(alpha=0.5).fit([[0.0, 1.0], [2.0, 1.0]], [0.0, 2.0]).coef_.round(5)
    array([0.6, 0. ])
    """

    def __init__(
        self, alpha=1.0, *, l1_ratio=0.5, fit_intercept=True, tol=1e-6, max_iter=1000, max_time=None, warm_start=False
    ):
        super().__init__(
            alpha, fit_intercept=fit_intercept, tol=tol, max_iter=max_iter, max_time=max_time, warm_start=warm_start
        )
        self.l1_ratio = l1_ratio


class PoissonRegressor(_PenalisedRegressor):
    """Counts with a log link.

    Examples
    --------
    >>> from certifit import PoissonRegressor
    >>> PoissonRegressor(alpha=0.0).fit([[0.0], [1.0]], [2.0, 6.0]).predict([[1.0]]).round(6)
    array([6.])
    """

    family = "poisson"


class GammaRegressor(_PenalisedRegressor):
    """Positive amounts with a log link.

    Examples
    --------
    >>> from certifit import GammaRegressor
    >>> GammaRegressor(alpha=0.0).fit([[0.0], [1.0]], [2.0, 6.0]).predict([[1.0]]).round(6)
    array([6.])
    """

    family = "gamma"


class TweedieRegressor(_PenalisedRegressor):
    """Variance μ^power: 0 normal, 1 Poisson, between 1 and 2 amounts with exact zeros, 2 gamma, 3 inverse Gaussian.

    Parameters
    ----------
    power : float, default=0.0
    alpha : float, default=1.0
    link : 'auto', 'identity' or 'log'
        'auto' is identity for power <= 0 and log beyond.
    fit_intercept, tol, max_iter, max_time, warm_start : see GeneralizedLinearRegressor

    Examples
    --------
    >>> from certifit import TweedieRegressor
    >>> model = TweedieRegressor(power=1.5, alpha=0.0).fit([[0.0], [0.0], [1.0]], [0.0, 4.0, 6.0])
    >>> model.predict([[0.0]]).round(6)
    array([2.])
    """

    family = "tweedie"

    def __init__(
        self,
        *,
        power=0.0,
        alpha=1.0,
        fit_intercept=True,
        link="auto",
        tol=1e-6,
        max_iter=1000,
        max_time=None,
        warm_start=False,
    ):
        super().__init__(
            alpha, fit_intercept=fit_intercept, tol=tol, max_iter=max_iter, max_time=max_time, warm_start=warm_start
        )
        self.power = power
        self.link = link


__all__ = [
    "ElasticNet",
    "GammaRegressor",
    "Lasso",
    "LinearRegression",
    "PoissonRegressor",
    "Ridge",
    "TweedieRegressor",
]
