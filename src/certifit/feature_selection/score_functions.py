"""Scores of single columns under scikit-learn's names, with its arguments, from any source of rows.

The functions can be passed to `SelectKBest` and its relatives, ours or scikit-learn's. Ours recognise these, and
scikit-learn's own of the same names: they then compute the score from sums over rows, without the table in memory.
Any other function of (X, y) is called as it is, on all rows at once.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.special import fdtrc
from sklearn.feature_selection import mutual_info_classif as neighbours_with_classes
from sklearn.feature_selection import mutual_info_regression as neighbours_with_numbers

from certifit.feature_selection.score_sums import as_dense, column_in_words, column_ranges
from certifit.feature_selection.scores import FUNCTION_SCORES, score_columns
from certifit.rows import Array, Rows, as_rows
from certifit.rows.checks import Target
from certifit.rows.threads import single_threaded_blas

# by the name of a function of ours or scikit-learn's, the score that it computes
KNOWN_FUNCTIONS: dict[str, str] = {
    "f_classif": "anova",
    "chi2": "chi2",
    "f_regression": "f_regression",
    "r_regression": "r_regression",
    "anova_f": "anova",
    "correlation_f": "correlation",
    "mutual_information": "information",
    "jeffreys": "jeffreys",
}


def known_score(function: Any) -> str | None:
    """Return the name of the score that a function of ours or scikit-learn's computes, None for any other."""
    home = str(getattr(function, "__module__", "")).partition(".")[0]
    return KNOWN_FUNCTIONS.get(getattr(function, "__name__", "")) if home in ("certifit", "sklearn") else None


def _measured(name: str, X: Any, y: Any) -> tuple[Array, Array | None]:
    rows = as_rows(X, y, target=FUNCTION_SCORES[name].target, sparse=True)
    with single_threaded_blas():
        found = score_columns(FUNCTION_SCORES[name], rows)
        warn_of_constants(name, found.scores, rows)
    return found.scores, found.pvalues


def warn_of_constants(name: str, scores: Array, rows: Rows) -> None:
    """Warn of columns that are constant where the analysis of variance is asked about them, as scikit-learn does."""
    if name != "anova" or (scores != 0).all():
        return
    constant = np.flatnonzero(column_ranges(rows).width == 0)
    if len(constant):
        words = ", ".join(column_in_words(int(j), rows.names) for j in constant[:5])
        more = f" and {len(constant) - 5} more" if len(constant) > 5 else ""
        warnings.warn(f"{words}{more}: constant, with score 0.", UserWarning, stacklevel=3)


def f_classif(X: Any, y: Any) -> tuple[Array, Array | None]:
    """Return F of the analysis of variance and its p-values, (d,) each.

    A constant column scores 0 with p-value 1, and is warned of; in scikit-learn it scores NaN.

    Parameters
    ----------
    X : the table, in any form that `fit` takes
    y : labels (n,), or the name of their column in X

    Returns
    -------
    f_statistic, p_values : (d,) each

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> f_classif(*load_iris(return_X_y=True))[0].round(2)
    array([ 119.26,   49.16, 1180.16,  960.01])
    """
    return _measured("anova", X, y)


def chi2(X: Any, y: Any) -> tuple[Array, Array | None]:
    """Return the χ² statistic of counts or amounts by class, and its p-values, (d,) each.

    A column of zeros scores 0 with p-value 1; in scikit-learn it scores NaN.

    Parameters
    ----------
    X : a table of numbers of at least 0, in any form that `fit` takes
    y : labels (n,), or the name of their column in X

    Returns
    -------
    chi2, p_values : (d,) each

    Examples
    --------
    >>> chi2([[1, 1, 3], [0, 1, 5], [5, 4, 1], [6, 6, 2], [1, 4, 0], [0, 0, 0]], [1, 1, 0, 0, 2, 2])[0].round(3)
    array([15.385,  6.5  ,  8.909])
    """
    return _measured("chi2", X, y)


def f_regression(X: Any, y: Any, *, center: bool = True, force_finite: bool = True) -> tuple[Array, Array]:
    """Return F of the correlation with a numeric target and its p-values, (d,) each.

    Parameters
    ----------
    X : the table, in any form that `fit` takes
    y : numbers (n,), or the name of their column in X
    center : bool, default=True
        Whether columns and target are centred first.
    force_finite : bool, default=True
        A column that fits perfectly has the largest number as F, and a constant one 0 with p-value 1; with False
        these are infinite and NaN.

    Returns
    -------
    f_statistic, p_values : (d,) each

    Examples
    --------
    >>> f_regression([[0.0], [1.0], [2.0], [4.0]], [0.0, 1.0, 2.0, 3.0])[0].round(4)
    array([56.3333])
    """
    rows = as_rows(X, y, target="numbers", sparse=True)
    with single_threaded_blas():
        if center:
            found = score_columns(FUNCTION_SCORES["correlation"], rows)
            scores, p = found.scores, np.asarray(found.pvalues)
        else:
            r, n = _uncentred(rows)
            with np.errstate(divide="ignore"):
                scores = r**2 / (1 - r**2) * (n - 1)
            p = fdtrc(1, n - 1, scores)
        if force_finite:
            return np.minimum(scores, np.finfo(np.float64).max), p
        constant = _undefined(rows, center)
    return np.where(constant, np.nan, scores), np.where(constant, np.nan, p)


def r_regression(X: Any, y: Any, *, center: bool = True, force_finite: bool = True) -> Array:
    """Return the correlation of each column with a numeric target (d,), with its sign.

    Parameters
    ----------
    X : the table, in any form that `fit` takes
    y : numbers (n,), or the name of their column in X
    center : bool, default=True
        Whether columns and target are centred first.
    force_finite : bool, default=True
        A constant column has correlation 0; with False it is NaN.

    Returns
    -------
    correlation_coefficient : (d,)

    Examples
    --------
    >>> r_regression([[0.0, 3.0], [1.0, 2.0], [2.0, 0.0]], [0.0, 1.0, 2.0]).round(4)
    array([ 1.   , -0.982])
    """
    rows = as_rows(X, y, target="numbers", sparse=True)
    with single_threaded_blas():
        r = score_columns(FUNCTION_SCORES["r_regression"], rows).scores if center else _uncentred(rows)[0]
        return r if force_finite else np.where(_undefined(rows, center), np.nan, r)


def _uncentred(rows: Rows) -> tuple[Array, float]:
    """Return Σ w x y / sqrt(Σ w x² Σ w y²) of each column, 0 where that is not defined, and Σ w."""
    data = rows.load()
    X, y, w = as_dense(data.X).astype(np.float64, copy=False), np.asarray(data.y), data.w
    size = np.sqrt((w @ X**2) * float(w @ y**2))
    return np.divide((w * y) @ X, size, out=np.zeros(X.shape[1]), where=size > 0), float(w.sum())


def _undefined(rows: Rows, center: bool) -> Array:
    """Return the columns whose correlation is not defined (d,): constant ones, or where not centred, zeros."""
    data = rows.load()
    X, y = as_dense(data.X), np.asarray(data.y)
    if center:
        return (np.ptp(X, axis=0) == 0) | (np.ptp(y) == 0)
    return (X == 0).all(axis=0) | bool((y == 0).all())


def mutual_info_classif(
    X: Any,
    y: Any,
    *,
    discrete_features: Any = "auto",
    n_neighbors: int = 3,
    copy: bool = True,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Array:
    """Return an estimate of the mutual information (nats) of each column with the class (d,), by nearest neighbours.

    The estimate is scikit-learn's, which needs all rows in memory; `mutual_information` (discrete columns) and
    `SelectFeatures('binned_information')` (measurements) take sums over rows instead.

    Parameters
    ----------
    X : the table, in any form that `fit` takes
    y : labels (n,), or the name of their column in X
    discrete_features, n_neighbors, copy, random_state, n_jobs : as in scikit-learn

    Returns
    -------
    mi : (d,)

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> mutual_info_classif(*load_iris(return_X_y=True), random_state=0).round(1)
    array([0.5, 0.3, 1. , 1. ])
    """
    data = _loaded(X, y, "classes")
    return neighbours_with_classes(
        *data,
        discrete_features=discrete_features,
        n_neighbors=n_neighbors,
        copy=copy,
        random_state=random_state,
        n_jobs=n_jobs,
    )


def mutual_info_regression(
    X: Any,
    y: Any,
    *,
    discrete_features: Any = "auto",
    n_neighbors: int = 3,
    copy: bool = True,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Array:
    """Return an estimate of the mutual information (nats) of each column with a number (d,), by nearest neighbours.

    The estimate is scikit-learn's, which needs all rows in memory; `SelectFeatures('regression_information')` takes
    sums over rows instead.

    Parameters
    ----------
    X : the table, in any form that `fit` takes
    y : numbers (n,), or the name of their column in X
    discrete_features, n_neighbors, copy, random_state, n_jobs : as in scikit-learn

    Returns
    -------
    mi : (d,)

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> mutual_info_regression(*load_diabetes(return_X_y=True), random_state=0)[:3].round(2)
    array([0.  , 0.01, 0.17])
    """
    data = _loaded(X, y, "numbers")
    return neighbours_with_numbers(
        *data,
        discrete_features=discrete_features,
        n_neighbors=n_neighbors,
        copy=copy,
        random_state=random_state,
        n_jobs=n_jobs,
    )


def _loaded(X: Any, y: Any, target: Target) -> tuple[Any, Array]:
    data = as_rows(X, y, target=target, sparse=True).load()
    return data.X, np.asarray(data.y)
