"""Paths of L1-penalised fits at falling strengths, beginning where every coefficient is 0, each fit certified.

    min over β, b of   Σ wᵢ φᵢ(β xᵢ + b) + Σ wᵢ · α (ρ |β|₁ + (1 - ρ)/2 |β|²),    α = α₁ > α₂ > …

φ is half the squared error, or the logistic or softmax loss. The fits are those of `LogisticRegression` and
`GeneralizedLinearRegressor`, each started from the one before.
Reference: Friedman, Hastie & Tibshirani, Regularization paths for generalized linear models via coordinate descent
(2010).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from certifit.checkers.feature_selection import screening
from certifit.exceptions import CertificateWarning, DataError
from certifit.feature_selection.score_sums import total_weight
from certifit.linear_model.glm.glm import GeneralizedLinearRegressor
from certifit.linear_model.logistic.logistic import LogisticRegression
from certifit.rows import Array, ArrayRows, Rows
from certifit.rows.folds import FITTED, HELD_OUT, fold_roles


@dataclass(frozen=True)
class L1PathTuning:
    """The smaller tolerances to which a fit of a path is continued.

    A fit stops by a proof that uses curvature. Screening needs a dual point, whose gap is about the square root of
    the fit's: where that is not small enough, the fit goes on to smaller tolerances.
    """

    finer: tuple[float, ...] = (1e-3, 1e-6, 1e-8)  # as multiples of the tolerance asked for


@dataclass(frozen=True)
class L1PathProblem:
    """The settings that all fits of a path share."""

    loss: str  # "logistic" or "squared"
    l1_ratio: float  # share ρ of the penalty that is |β|₁
    intercept: bool
    tol: float  # relative gap of every fit
    k: int  # number of scores: classes where there are more than two, else 1


@dataclass(frozen=True)
class L1Path:
    """The fits at falling strengths, and the columns that each proves to be 0."""

    alphas: Array  # (m,) strengths, falling
    coef: Array  # (m, k, d)
    intercept: Array  # (m, k)
    screened: tuple[screening.Screening, ...]  # m of them

    def __len__(self) -> int:
        return len(self.alphas)

    @property
    def nonzero(self) -> Array:
        """Return the columns with some coefficient that is not 0 (m, d)."""
        return (self.coef != 0).any(axis=1)


def strengths(problem: L1PathProblem, rows: Rows, alphas: Any, eps: float) -> Array:
    """Return falling strengths (m,): those given, or that many from where no column is used down to eps times it."""
    if not isinstance(alphas, (int, np.integer)):
        return np.sort(np.asarray(alphas, dtype=np.float64))[::-1]
    p = screening.screening_problem(problem.loss, problem.intercept, rows)
    return screening.largest_strength(p, problem.k, problem.l1_ratio, rows) * np.geomspace(1.0, eps, int(alphas))


class L1PathFit(NamedTuple):
    """One fit of a path, and the columns that it proves to be 0."""

    coef: Array  # (k, d)
    intercept: Array  # (k,)
    screened: screening.Screening


def fit_each(problem: L1PathProblem, rows: Rows, alphas: Array, tuning: L1PathTuning) -> Iterator[L1PathFit]:
    """Yield a fit at each strength, started from the one before."""
    p = screening.screening_problem(problem.loss, problem.intercept, rows)
    squared = problem.loss == "squared"
    cls: Any = GeneralizedLinearRegressor if squared else LogisticRegression
    model = cls(l1_ratio=problem.l1_ratio, fit_intercept=problem.intercept, covariance=None, warm_start=True)
    smallest = float(alphas[-1]) * p.weight
    if not squared and not smallest >= np.finfo(float).tiny:
        raise DataError(
            got=f"strengths down to {alphas[-1]:.3g}, whose inverse overflows",
            wanted="strengths above 0",
            fix="Rescale the columns, for instance to unit variance, or give other alphas.",
        )
    for alpha in alphas.tolist():
        model.set_params(**({"alpha": alpha} if squared else {"C": 1 / (alpha * p.weight)}))
        for tol in (problem.tol, *(problem.tol * finer for finer in tuning.finer)):
            model.set_params(tol=tol)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CertificateWarning)  # the path's certificate covers all fits
                model.fit(rows)
            coef, intercept = np.atleast_2d(model.coef_), np.ravel(model.intercept_)
            fit = L1PathFit(coef, intercept, screening.screen(p.at(alpha, problem.l1_ratio), coef, intercept, rows))
            if fit.screened.relative_gap <= problem.tol:
                break
        yield fit


def as_path(alphas: Array, fits: list[L1PathFit]) -> L1Path:
    """Return the fits, at the first of these strengths, as a path."""
    coef, intercept, screened = zip(*fits, strict=True)
    return L1Path(alphas[: len(fits)], np.array(coef), np.array(intercept), screened)


# --------------------------------------------------------------------------------------- choosing a strength
def information_criterion(problem: L1PathProblem, path: L1Path, extended: bool, rows: Rows) -> Array:
    """Return the BIC (m,), or the extended one, which adds twice the log of the number of sets of that many columns.

    Reference: Chen & Chen, Extended Bayesian information criteria for model selection with large model spaces (2008).
    """
    weight, loss = total_weight(rows), np.array([s.loss for s in path.screened])
    d, size = path.coef.shape[2], path.nonzero.sum(axis=1)
    deviance = 2 * loss
    if problem.loss == "squared":
        deviance = weight * np.log(np.maximum(2 * loss / weight, np.finfo(float).tiny))
    free = (path.coef != 0).sum(axis=(1, 2)) + problem.intercept * problem.k
    sets = gammaln(d + 1) - gammaln(size + 1) - gammaln(d - size + 1) if extended else 0.0
    return deviance + np.log(weight) * free + 2 * sets


@dataclass(frozen=True)
class FoldPaths:
    """The paths of fits on the training rows of every fold, and how they do on the rows held out of them."""

    roles: Array  # (folds, n): 1 for the rows of a fold's fits, 2 for those held out of them, 0 for neither
    coef: Array  # (folds, m, k, d)
    intercept: Array  # (folds, m, k)
    loss: Array  # (folds, m) mean on the rows held out
    gap: float  # the largest relative gap of a fit

    @property
    def mean(self) -> Array:
        """Return the mean loss over the folds (m,)."""
        return self.loss.mean(axis=0)

    @property
    def error(self) -> Array:
        """Return the standard error of the mean over the folds (m,)."""
        return self.loss.std(axis=0, ddof=1) / np.sqrt(len(self.loss))


def fit_folds(problem: L1PathProblem, rows: Rows, alphas: Array, cv: Any, tuning: L1PathTuning) -> FoldPaths:
    """Fit a path on the training rows of every fold."""
    data = rows.load()
    assert data.y is not None
    roles = fold_roles(cv, data.X, data.y, problem.loss == "logistic")
    _check_folds(problem, roles, data.y, data.w, cv)
    paths, losses = [], []
    for role in roles:
        fitted = data.take(np.flatnonzero(role & FITTED))
        paths.append(as_path(alphas, list(fit_each(problem, fitted, alphas, tuning))))
        losses.append(_mean_losses(problem, paths[-1], data.take(np.flatnonzero(role & HELD_OUT))))
    coef, intercept = np.array([p.coef for p in paths]), np.array([p.intercept for p in paths])
    return FoldPaths(roles, coef, intercept, np.array(losses), max(s.relative_gap for p in paths for s in p.screened))


def _check_folds(problem: L1PathProblem, roles: Array, y: Array, w: Array, cv: Any) -> None:
    """Refuse folds without rows on either side, or with a class that their fits would not see."""
    classes = np.unique(y[w > 0]) if problem.loss == "logistic" else np.zeros(0)
    fitted, held = (((roles & bit) > 0) & (w > 0) for bit in (FITTED, HELD_OUT))
    if len(roles) < 2 or not (fitted.any(axis=1) & held.any(axis=1)).all():
        raise DataError(
            got=f"cv={cv!r}, which makes {len(roles)} folds, or one without rows of positive weight on a side",
            wanted="at least two folds with rows to fit and rows to score",
        )
    if any(not np.isin(classes, y[rows]).all() for rows in fitted):
        raise DataError(
            got=f"cv={cv!r} with a fold whose other rows lack a class",
            wanted="every class among the rows of every fit",
            fix="Use fewer folds, or StratifiedKFold.",
        )


def _mean_losses(problem: L1PathProblem, path: L1Path, rows: ArrayRows) -> Array:
    assert rows.y is not None
    value, y = screening.LOSSES[problem.loss].value, rows.y
    scores = (rows.X @ beta.T + b for beta, b in zip(path.coef, path.intercept, strict=True))
    return np.array([rows.w @ value(eta, y) for eta in scores]) / rows.w.sum()
