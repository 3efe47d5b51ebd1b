"""Paths of lasso and elastic net fits over many strengths of the penalty, each started at the one before.

    min over β of   Σ (y - x·β)² / 2n + alpha (ρ |β|₁ + (1 - ρ)/2 |β|²),    ρ = l1_ratio,  for each alpha

As in scikit-learn there is no intercept: centre the columns and the target first. Ridge regression as a function, one
fit without an intercept, is here too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from certifit.exceptions import DataError
from certifit.rows import Array


def enet_path(
    X: Any,
    y: Any,
    *,
    l1_ratio: float = 0.5,
    eps: float = 1e-3,
    alphas: Any = None,
    coef_init: Any = None,
    return_n_iter: bool = False,
    **params: Any,
) -> tuple[Array, ...]:
    """Elastic net coefficients for many strengths of the penalty, from the largest to the smallest.

    Parameters
    ----------
    X : array or CSR matrix (n, d)
    y : (n,), or (n, targets)
    l1_ratio : float between 0 and 1, default=0.5
        Share of the penalty that is |β|₁.
    eps : float, default=1e-3
        The smallest strength as a share of the largest, where strengths are chosen here.
    alphas : array, int or None
        Strengths of the penalty, or how many of them: 100 unless told, from the smallest that makes every
        coefficient 0 down to eps times that, equally far apart in their logarithms.
    coef_init : (d,) or None
        Where the first fit starts.
    return_n_iter : bool, default=False
        Whether to return the numbers of updates too.
    **params : further settings of ElasticNet: positive, tol, max_iter, max_time
        n_alphas, scikit-learn's older name for a whole number of alphas, is taken too. precompute, Xy, copy_X,
        verbose, check_input, selection and random_state are ignored, accepted so that its calls run.

    Returns
    -------
    alphas : (n_alphas,)
    coefs : (d, n_alphas), or (targets, d, n_alphas)
    dual_gaps : (n_alphas,), or (targets, n_alphas); proved, divided by n
    n_iters : (n_alphas,); only with return_n_iter=True

    Examples
    --------
    >>> from certifit import enet_path
    >>> alphas, coefs, gaps = enet_path([[1.0, 0.0], [0.0, 2.0]], [1.0, 1.0], l1_ratio=1.0, alphas=[1.0, 0.25])
    >>> coefs.round(6)
    array([[0.   , 0.5  ],
           [0.   , 0.375]])
    """
    from certifit.linear_model.regressors import ElasticNet

    X = X if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
    y = np.asarray(y, dtype=np.float64)
    if "fit_intercept" in params:
        raise DataError(
            got=f"fit_intercept={params['fit_intercept']!r}",
            wanted="a path without intercept",
            fix="Unexpected parameters in params: centre the columns and the target instead.",
        )
    settings = {name: value for name, value in params.items() if name not in _IGNORED}
    model = ElasticNet(l1_ratio=l1_ratio, fit_intercept=False, warm_start=True, **settings)
    largest = partial(_largest_strength, X, y, l1_ratio, bool(model.positive))
    strengths = _strengths(
        params.get("n_alphas", alphas) if alphas is None or isinstance(alphas, str) else alphas, eps, largest
    )
    if coef_init is not None:
        model.coef_ = np.asarray(coef_init, dtype=np.float64)
        model.intercept_ = np.zeros(y.shape[1:])[()]
    coefs, gaps, passes = _fit_each(model, strengths, X, y)
    return (strengths, coefs, gaps, passes) if return_n_iter else (strengths, coefs, gaps)


def _fit_each(model: Any, strengths: Array, X: Any, y: Array) -> list[Array]:
    """Coefficients, gaps and numbers of passes, one for each strength along the last axis."""
    found = []
    for alpha in strengths:
        model.set_params(alpha=float(alpha)).fit(X, y)
        found.append((model.coef_, model.dual_gap_, model.n_iter_))
    return [np.stack(part, axis=-1) for part in zip(*found, strict=True)]


def lasso_path(X: Any, y: Any, **params: Any) -> tuple[Array, ...]:
    """Lasso coefficients for many strengths of the penalty: `enet_path` with l1_ratio=1.

    Parameters
    ----------
    X, y, **params : see enet_path

    Returns
    -------
    alphas, coefs, dual_gaps, n_iters : see enet_path

    Examples
    --------
    >>> from certifit import lasso_path
    >>> alphas, coefs, gaps = lasso_path([[1.0], [2.0]], [1.0, 2.0], alphas=[2.5, 1.0])
    >>> coefs.round(6)
    array([[0. , 0.6]])
    """
    return enet_path(X, y, **{**params, "l1_ratio": 1.0})


def _strengths(alphas: Any, eps: float, largest: Callable[[], float]) -> Array:
    """The strengths of the penalty, from the largest to the smallest."""
    if np.ndim(alphas) > 0:
        return np.sort(np.asarray(alphas, dtype=np.float64))[::-1]
    number, most = 100 if alphas is None or isinstance(alphas, str) else int(alphas), largest()
    smallest = np.finfo(float).resolution
    return np.geomspace(most, most * eps, num=number) if most > smallest else np.full(number, smallest)


def _largest_strength(X: Any, y: Array, l1_ratio: float, positive: bool) -> float:
    """The smallest strength of the penalty with which every coefficient is 0, for all targets."""
    if l1_ratio == 0:
        raise DataError(
            got="l1_ratio=0 without alphas",
            wanted="alphas: no finite ridge penalty makes every coefficient 0",
            fix="Automatic alpha grid generation is not supported for l1_ratio=0: pass an array as alphas.",
        )
    slopes = np.asarray(X.T @ y)
    slopes = slopes if positive else np.abs(slopes)
    if y.ndim > 1:
        slopes = np.sqrt((slopes**2).sum(axis=1))
    return max(float(slopes.max()), 0.0) / (len(y) * l1_ratio)


# What only steers scikit-learn's solver, and `n_alphas`, which is another word for `alphas`.
_IGNORED = frozenset(
    ("precompute", "Xy", "copy_X", "verbose", "check_input", "selection", "random_state", "n_alphas")
)

_IGNORED_BY_RIDGE = frozenset(("solver", "verbose", "random_state", "check_input"))


def ridge_regression(X: Any, y: Any, alpha: Any, *, sample_weight: Any = None, **params: Any) -> Any:
    """Coefficients that minimise Σ w (y - x·β)² + alpha |β|², proved as `Ridge` proves them.

    Parameters
    ----------
    X : array or CSR matrix (n, d)
    y : (n,), or (n, targets)
    alpha : float, or (targets,)
        Strength of the penalty.
    sample_weight : (n,) or None
    **params : max_iter, tol and positive of Ridge; return_n_iter and return_intercept, which ask for more
        solver, verbose, random_state and check_input are ignored, accepted so that scikit-learn's calls run.

    Returns
    -------
    coef : (d,), or (targets, d)
    n_iter : with return_n_iter=True
    intercept : float, or (targets,), with return_intercept=True; else there is none

    Examples
    --------
    >>> from certifit import ridge_regression
    >>> ridge_regression([[1.0, 0.0], [0.0, 2.0]], [1.0, 2.0], alpha=1.0).round(6)
    array([0.5, 0.8])
    """
    from certifit.linear_model.regressors import Ridge

    asked = {name: bool(params.pop(name, False)) for name in ("return_n_iter", "return_intercept")}
    settings = {name: value for name, value in params.items() if name not in _IGNORED_BY_RIDGE}
    unknown = [name for name in settings if name not in ("max_iter", "tol", "positive")]
    if unknown:
        raise DataError(got=f"{unknown[0]}= for ridge_regression", wanted="max_iter, tol or positive")
    model = Ridge(alpha, fit_intercept=asked["return_intercept"], **settings).fit(X, y, sample_weight)
    found = [model.coef_]
    if asked["return_n_iter"]:
        found.append(model.n_iter_)
    if asked["return_intercept"]:
        found.append(model.intercept_)
    return found[0] if len(found) == 1 else tuple(found)


__all__ = ["enet_path", "lasso_path", "ridge_regression"]
