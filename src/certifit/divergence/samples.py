"""The KL divergence estimated from two samples, by distances to the k-th nearest neighbours.

    KL(p, q) ≈ 1/n Σᵢ d log(νᵢ/ρᵢ) + log(m/(n-1)),    xᵢ ~ p (n rows), yⱼ ~ q (m rows), in d columns
    ρᵢ, νᵢ the distances of xᵢ to its k-th neighbour among the other x and among the y

Where the neighbours among x are closer than those among y, p is denser than q.
Wang, Kulkarni & Verdú, "Divergence estimation for multidimensional densities via k-nearest-neighbor distances", 2009;
Pérez-Cruz, "Kullback-Leibler divergence estimation of continuous distributions" (2008).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from certifit.divergence.value import Divergence
from certifit.exceptions import DataError
from certifit.rows import Array, as_rows


def kl_samples(x: Any, y: Any, k: int = 5) -> Divergence:
    """Estimate KL(p, q) from rows `x` drawn from p and rows `y` drawn from q.

    The error is one standard error: Var log(p/q)/n for the rows of x and Var (p/q)/m for the rows of y, both measured
    on the neighbour distances. It does not cover the estimator's bias, which fades with more rows and grows with
    columns. A larger k lowers the variance and raises the bias. A row that occurs more than k times in x but not in y
    is a point with probability where q has none: the result is infinite, with a note.

    Parameters
    ----------
    x, y : tables of rows (n, d) and (m, d) or vectors (n,) and (m,); anything `as_rows` takes
    k : which neighbour; at least 3 for an error bar to be trusted

    >>> rng = np.random.default_rng(0)
    >>> found = kl_samples(rng.normal(size=4000), rng.normal(1.0, 1.0, size=4000))  # 0.5
    >>> bool(abs(found - 0.5) < 2 * found.error), found.method
    (True, '5 nearest neighbours, 4,000 and 4,000 rows')
    """
    X, Y = _sample_table(x, "x", k), _sample_table(y, "y", k)
    if X.shape[1] != Y.shape[1]:
        raise DataError(got=f"x with {X.shape[1]} columns and y with {Y.shape[1]}", wanted="the same columns in both")
    (n, d), m = X.shape, len(Y)
    method = f"{k} nearest neighbours, {n:,} and {m:,} rows"
    in_x, in_y = cKDTree(X), cKDTree(Y)
    rho, nu = _neighbour_distance(in_x, X, k + 1), _neighbour_distance(in_y, X, k)  # a row is its own neighbour in x
    if (nu == 0).any():
        row = int(np.argmin(nu))
        raise DataError(
            got=f"row {row} of x, which occurs {k} times or more in y",
            wanted="samples from densities, in which rows do not repeat",
            fix="Raise k above the number of repeats, or count distinct values and use kl on their probabilities.",
        )
    if (rho == 0).any():
        row = int(np.argmin(rho))
        note = f"row {row} of x occurs more than {k} times, in y it does not: a lump of probability where q has none"
        return Divergence(np.inf, method=method, note=note)
    log_ratio = d * (np.log(nu) - np.log(rho)) + np.log(m / (n - 1))  # (n,) log p/q at the rows of x
    with np.errstate(divide="ignore"):
        at_y = np.log(_neighbour_distance(in_y, Y, k + 1)) - np.log(_neighbour_distance(in_x, Y, k))
    ratio = (m - 1) / n * np.exp(d * at_y)  # (m,) p/q at the rows of y
    value, error = float(log_ratio.mean()), float(np.sqrt(log_ratio.var() / n + ratio.var() / m))
    return Divergence(value, error, method, "" if value >= 0 else f"the estimate, {value:.3g}, was below 0")


def _sample_table(x: Any, name: str, k: int) -> Array:
    if isinstance(x, np.ndarray | list | tuple) and np.ndim(x) == 1:
        x = np.reshape(x, (-1, 1))
    X = np.asarray(as_rows(x).load().X, dtype=np.float64)
    if len(X) <= k or k < 1:
        raise DataError(
            got=f"k = {k} and {len(X)} rows of {name}",
            wanted="k of at least 1 and more than k rows",
            fix="Lower k, or gather more rows.",
        )
    return X


def _neighbour_distance(tree: cKDTree, X: Array, k: int) -> Array:
    """Return the distance of every row to its k-th nearest point of the tree (n,)."""
    return tree.query(X, [k])[0][:, 0]
