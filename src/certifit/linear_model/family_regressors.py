"""Regressors of counts and amounts under scikit-learn's names: Poisson, gamma and Tweedie.

They minimise Σ w d(y, μ)/2 / Σ w + alpha/2 |β|², d the deviance of their family. Everything else (certificate,
standard errors, offsets) is `GeneralizedLinearRegressor`'s.
"""

from __future__ import annotations

from typing import ClassVar

from certifit.linear_model.regressors import PenalisedRegressor


class _FamilyRegressor(PenalisedRegressor):
    """A penalised model of one family of targets, with scikit-learn's arguments."""

    ignored: ClassVar[tuple[str, ...]] = ("solver", "verbose")
    differences: ClassVar[dict[str, str]] = {
        **PenalisedRegressor.differences,
        "max_iter": "1000 by default: passes over the rows, of which a fit needs few.",
    }

    def __init__(
        self,
        alpha=1.0,
        *,
        fit_intercept=True,
        solver="lbfgs",
        max_iter=1000,
        tol=1e-6,
        warm_start=False,
        verbose=0,
        max_time=None,
    ):
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.verbose = verbose
        self.max_time = max_time


class PoissonRegressor(_FamilyRegressor):
    """Counts with a log link, and the penalty alpha/2 |β|² beside the mean of half the deviance.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty, per unit of row weight; 0 is maximum likelihood.
    fit_intercept : bool, default=True
        Whether to add an intercept, which is never penalised.
    max_iter : int, default=1000
        Most passes over the rows.
    tol : float, default=1e-6
        Relative gap at which to stop: objective - minimum <= tol * objective is then proved, where the loss allows.
    warm_start : bool, default=False
        Start from the previous fit's coefficients.
    max_time : float or None, default=None
        Seconds after which the best fit so far is returned, with what is proved about it.
    solver, verbose : ignored
        Accepted so that scikit-learn's calls run; there is one solver, Newton's method.

    Attributes
    ----------
    coef_ : (d,)
    intercept_ : float
    deviance_ : float
    null_deviance_, pearson_chi2_, dispersion_, loglikelihood_, df_resid_, aic_, bic_ : floats, without a penalty
    standard_errors_, p_values_ : (d1,), the intercept first, without a penalty
    covariance_ : (d1, d1) of (intercept, coefficients); None where it is not valid
    no_errors_because_ : why there are no standard errors; empty where there are
    collinear_ : numbers of the columns left out
    certificate_ : Certificate
        Its `parameter_error` says how far each coefficient can be from the minimiser's, where that is proved.
    n_iter_ : int
        Number of updates (diagnostic).
    history_ : objective, relative gap and seconds at every pass (diagnostic)

    Examples
    --------
    >>> from certifit import PoissonRegressor
    >>> PoissonRegressor(alpha=0.0).fit([[0.0], [1.0]], [2.0, 6.0]).predict([[1.0]]).round(6)
    array([6.])
    """

    family = "poisson"


class GammaRegressor(_FamilyRegressor):
    """Positive amounts with a log link, and the penalty alpha/2 |β|² beside the mean of half the deviance.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty, per unit of row weight; 0 is maximum likelihood.
    fit_intercept : bool, default=True
        Whether to add an intercept, which is never penalised.
    max_iter : int, default=1000
        Most passes over the rows.
    tol : float, default=1e-6
        Relative gap at which to stop: objective - minimum <= tol * objective is then proved, where the loss allows.
    warm_start : bool, default=False
        Start from the previous fit's coefficients.
    max_time : float or None, default=None
        Seconds after which the best fit so far is returned, with what is proved about it.
    solver, verbose : ignored
        Accepted so that scikit-learn's calls run; there is one solver, Newton's method.

    Attributes
    ----------
    coef_ : (d,)
    intercept_ : float
    deviance_ : float
    null_deviance_, pearson_chi2_, dispersion_, loglikelihood_, df_resid_, aic_, bic_ : floats, without a penalty
    standard_errors_, p_values_ : (d1,), the intercept first, without a penalty
    covariance_ : (d1, d1) of (intercept, coefficients); None where it is not valid
    no_errors_because_ : why there are no standard errors; empty where there are
    collinear_ : numbers of the columns left out
    certificate_ : Certificate
        Its `parameter_error` says how far each coefficient can be from the minimiser's, where that is proved.
    n_iter_ : int
        Number of updates (diagnostic).
    history_ : objective, relative gap and seconds at every pass (diagnostic)

    Examples
    --------
    >>> from certifit import GammaRegressor
    >>> GammaRegressor(alpha=0.0).fit([[0.0], [1.0]], [2.0, 6.0]).predict([[1.0]]).round(6)
    array([6.])
    """

    family = "gamma"


class TweedieRegressor(_FamilyRegressor):
    """Variance μ^power: 0 normal, 1 Poisson, between 1 and 2 amounts with exact zeros, 2 gamma, 3 inverse Gaussian.

    Parameters
    ----------
    power : float, default=0.0
        Of the variance μ^power; nothing between 0 and 1.
    alpha : float, default=1.0
        Strength of the penalty, per unit of row weight; 0 is maximum likelihood.
    fit_intercept : bool, default=True
        Whether to add an intercept, which is never penalised.
    link : 'auto', 'identity' or 'log', default='auto'
        'auto' is identity for power <= 0 and log beyond.
    max_iter : int, default=1000
        Most passes over the rows.
    tol : float, default=1e-6
        Relative gap at which to stop: objective - minimum <= tol * objective is then proved, where the loss allows.
    warm_start : bool, default=False
        Start from the previous fit's coefficients.
    max_time : float or None, default=None
        Seconds after which the best fit so far is returned, with what is proved about it.
    solver, verbose : ignored
        Accepted so that scikit-learn's calls run; there is one solver, Newton's method.

    Attributes
    ----------
    coef_ : (d,)
    intercept_ : float
    deviance_ : float
    null_deviance_, pearson_chi2_, dispersion_, loglikelihood_, df_resid_, aic_, bic_ : floats, without a penalty
    standard_errors_, p_values_ : (d1,), the intercept first, without a penalty
    covariance_ : (d1, d1) of (intercept, coefficients); None where it is not valid
    no_errors_because_ : why there are no standard errors; empty where there are
    collinear_ : numbers of the columns left out
    certificate_ : Certificate
        Its `parameter_error` says how far each coefficient can be from the minimiser's, where that is proved.
    n_iter_ : int
        Number of updates (diagnostic).
    history_ : objective, relative gap and seconds at every pass (diagnostic)

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
        solver="lbfgs",
        max_iter=1000,
        tol=1e-6,
        warm_start=False,
        verbose=0,
        max_time=None,
    ):
        self.power = power
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.link = link
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.verbose = verbose
        self.max_time = max_time
