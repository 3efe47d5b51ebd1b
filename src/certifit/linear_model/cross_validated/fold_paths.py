"""Paths of penalised least squares on the rows of every fold, and how they do on the rows held out.

A path of lasso or elastic net fits goes by coordinate descent on the Gram matrix of the fold's centred rows, from the
strongest penalty to the weakest; the active coefficients are then solved for exactly, and where these turn out to be
others, their signs are searched for. Where the checker does not find a fit's gap small enough, and for tables that
are too wide for a Gram matrix, `ElasticNet` fits it.
References: Friedman, Hastie & Tibshirani, Regularization paths for generalized linear models via coordinate descent
(2010), section 2.2; for ridge paths the singular value decomposition, Golub & Van Loan (2013), section 6.1.4.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve, svd

from certifit.checkers.linear_model.cross_validated.squares import SquaredFits, centred, squared_gaps
from certifit.exceptions import CertificateWarning
from certifit.linear_model.cross_validated.path_loops import descend
from certifit.linear_model.regressors import ElasticNet, Ridge
from certifit.optimise.sign_search import search_signs
from certifit.rows import Array, ArrayRows


@dataclass(frozen=True)
class FoldPathTuning:
    """When a Gram matrix is formed, and how long coordinate descent goes on before and after an exact solution."""

    gram_columns: int = 3000
    gram_rows: int = 200_000_000  # entries of a table whose centred copy is made
    sweeps: int = 20  # between two exact solutions of the active coefficients
    rounds: int = 10  # of sweeps and an exact solution, before their signs are searched for
    enough: float = 1e-9  # change of a sweep, as a share of the target's norm, that ends a round
    finer: tuple[float, ...] = (0.1, 1e-3, 1e-6)  # multiples of the tolerance at which a fit is made again


class PathSettings(NamedTuple):
    """What all fits of a path share."""

    l1_ratio: float
    free: bool  # whether the intercept is
    positive: bool
    tol: float


def fit_path(data: ArrayRows, alphas: Array, problem: PathSettings, tuning: FoldPathTuning) -> tuple[Array, Array]:
    """Coefficients (m, d) and intercepts (m,) at falling strengths per unit of weight, each within tol of optimal."""
    assert data.y is not None
    weight = float(data.w.sum())
    lam1, lam2 = alphas * problem.l1_ratio * weight, alphas * (1 - problem.l1_ratio) * weight
    entries = data.n_rows * data.n_features
    if data.n_features <= tuning.gram_columns and entries <= tuning.gram_rows:
        coef, intercept = _gram_path(data, lam1, lam2, problem, tuning)
    else:
        coef, intercept = np.full((len(alphas), data.n_features), np.nan), np.full(len(alphas), np.nan)
    fits = SquaredFits(coef, intercept, lam1, lam2, problem.free, problem.positive)
    for k in np.flatnonzero(squared_gaps(data, data.y, fits).unproved(problem.tol)):
        coef[k], intercept[k] = _single_fit(data, float(alphas[k]), problem, tuning)
    return coef, intercept


def _gram_path(
    data: ArrayRows, lam1: Array, lam2: Array, problem: PathSettings, tuning: FoldPathTuning
) -> tuple[Array, Array]:
    assert data.y is not None
    rows = centred(data, data.y, problem.free)
    X = rows.dense()
    G, c = (X.T * rows.w) @ X, X.T @ (rows.w * rows.y)
    spread, at = G.diagonal().copy(), np.arange(len(G))
    enough = tuning.enough * float(np.sqrt(rows.w @ rows.y**2))
    beta, found = np.zeros(len(c)), []
    for first, second in zip(lam1.tolist(), lam2.tolist(), strict=True):
        G[at, at] = np.where(spread > 0, spread + second, 0.0)  # a column without spread stays at 0
        slopes = c - G @ beta
        for _ in range(tuning.rounds):
            made = descend(G, first, problem.positive, beta, slopes, tuning.sweeps, enough)
            exact = _solve_active(G, c, first, beta)
            if exact is not None:
                beta[:], slopes[:] = exact, c - G @ exact
                if made < tuning.sweeps:
                    break
        else:
            exact = search_signs(G, c, np.full(len(c), first), beta, problem.positive)
            beta = beta if exact is None else exact
        found.append(beta.copy())
    coef = np.array(found)
    mean = 0.0 if not problem.free else float(data.w @ data.y / data.w.sum())
    shift = np.asarray(data.X.T @ data.w).ravel() / data.w.sum() if problem.free else np.zeros(len(c))
    return coef, mean - coef @ shift


def _solve_active(G: Array, c: Array, lam1: float, beta: Array) -> Array | None:
    """The minimiser with the signs that β has; None where it has other signs, or there are too many of them."""
    active, out = np.flatnonzero(beta), np.zeros(len(c))
    if not len(active):
        return out
    try:
        factor = cho_factor(G[np.ix_(active, active)])
    except LinAlgError:  # collinear columns
        return None
    sign = np.sign(beta[active])
    out[active] = cho_solve(factor, c[active] - lam1 * sign)
    return out if (np.sign(out[active]) == sign).all() else None


def _single_fit(data: ArrayRows, alpha: float, problem: PathSettings, tuning: FoldPathTuning) -> tuple[Array, float]:
    """The fit of `ElasticNet`, to a finer tolerance where the checker asks for it."""
    assert data.y is not None
    weight = np.atleast_1d(alpha * data.w.sum())
    for finer in tuning.finer:
        model = ElasticNet(
            alpha,
            l1_ratio=problem.l1_ratio,
            fit_intercept=problem.free,
            positive=problem.positive,
            tol=problem.tol * finer,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CertificateWarning)  # the checker looks at every fit
            model.fit(data)
        fits = SquaredFits(
            model.coef_[None, :],
            np.atleast_1d(model.intercept_),
            weight * problem.l1_ratio,
            weight * (1 - problem.l1_ratio),
            problem.free,
            problem.positive,
        )
        if not squared_gaps(data, data.y, fits).unproved(problem.tol)[0]:
            break
    return model.coef_, float(model.intercept_)


def fit_ridges(data: ArrayRows, y: Array, alphas: Array, free: bool) -> tuple[Array, Array]:
    """Ridge coefficients (a, t, d) and intercepts (a, t) of targets y (n, t), at strengths of all rows together."""
    if sparse.issparse(data.X):
        return _sparse_ridges(data, y, alphas, free)
    rows = centred(data, y, free)
    root = np.sqrt(rows.w)[:, None]
    U, s, Vt = svd(root * rows.dense(), full_matrices=False)
    kept = s > np.finfo(float).eps * max(root.size, len(Vt)) * s.max(initial=0.0)
    U, s, Vt = U[:, kept], s[kept], Vt[kept]
    along = U.T @ (root * rows.y)
    coef = np.array([((s / (s**2 + alpha))[:, None] * along).T @ Vt for alpha in alphas.tolist()])
    if not free:
        return coef, np.zeros(coef.shape[:2])
    total = data.w.sum()
    return coef, data.w @ y / total - coef @ (np.asarray(data.X, dtype=np.float64).T @ data.w / total)


def _sparse_ridges(data: ArrayRows, y: Array, alphas: Array, free: bool) -> tuple[Array, Array]:
    coef, intercept = np.zeros((len(alphas), y.shape[1], data.n_features)), np.zeros((len(alphas), y.shape[1]))
    for a, alpha in enumerate(alphas.tolist()):
        for t in range(y.shape[1]):
            model = Ridge(alpha, fit_intercept=free, tol=1e-9).fit(ArrayRows(data.X, y[:, t], data.w))
            coef[a, t], intercept[a, t] = model.coef_, model.intercept_
    return coef, intercept
