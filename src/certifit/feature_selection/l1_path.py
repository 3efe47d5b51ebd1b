"""Paths of L1-penalised fits, from the strength at which every coefficient is 0 downwards, each certified.

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
from certifit.exceptions import CertificateWarning
from certifit.feature_selection.score_sums import total_weight
from certifit.linear_model.glm.glm import GeneralizedLinearRegressor
from certifit.linear_model.logistic.logistic import LogisticRegression
from certifit.rows import Array, ArrayRows, Rows
from certifit.rows.folds import make_folds


@dataclass(frozen=True)
class L1PathTuning:
    """How hard a fit of a path is pressed.

    A fit stops by a proof that uses curvature. Screening needs a dual point, whose gap is of the order of the root of
    the fit's: where that is not small enough, the fit goes on to smaller tolerances.
    """

    finer: tuple[float, ...] = (1e-3, 1e-6, 1e-8)  # smaller tolerances, as multiples of the one asked for


@dataclass(frozen=True)
class L1PathProblem:
    """What all fits of a path share."""

    loss: str  # "logistic" or "squared"
    l1_ratio: float  # share ρ of the penalty that is |β|₁
    intercept: bool
    tol: float  # relative gap of every fit
    k: int  # number of scores: classes where there are more than two, else 1


@dataclass(frozen=True)
class L1Path:
    """Fits at falling strengths and what each proves."""

    alphas: Array  # (m,) strengths, falling
    coef: Array  # (m, k, d)
    intercept: Array  # (m, k)
    screened: tuple[screening.Screening, ...]  # m of them

    def __len__(self) -> int:
        return len(self.alphas)

    @property
    def nonzero(self) -> Array:
        """(m, d) columns with some coefficient that is not 0."""
        return (self.coef != 0).any(axis=1)


def strengths(problem: L1PathProblem, rows: Rows, alphas: Any, eps: float) -> Array:
    """Strengths (m,), falling: those given, or so many from the largest that keeps a column down to eps times it."""
    if not isinstance(alphas, (int, np.integer)):
        return np.sort(np.asarray(alphas, dtype=np.float64))[::-1]
    p = screening.screening_problem(problem.loss, problem.intercept, rows)
    return screening.largest_strength(p, problem.k, problem.l1_ratio, rows) * np.geomspace(1.0, eps, int(alphas))


def _estimator(problem: L1PathProblem) -> Any:
    cls = GeneralizedLinearRegressor if problem.loss == "squared" else LogisticRegression
    fixed = {"l1_ratio": problem.l1_ratio, "fit_intercept": problem.intercept}
    return cls(**fixed, covariance=None, warm_start=True)


def _strength(problem: L1PathProblem, alpha: float, weight: float) -> dict[str, float]:
    return {"alpha": alpha} if problem.loss == "squared" else {"C": 1 / (alpha * weight)}


class L1PathFit(NamedTuple):
    """One fit of a path."""

    coef: Array  # (k, d)
    intercept: Array  # (k,)
    screened: screening.Screening


def fit_each(problem: L1PathProblem, rows: Rows, alphas: Array, tuning: L1PathTuning) -> Iterator[L1PathFit]:
    """A fit at each strength, started from the one before."""
    p = screening.screening_problem(problem.loss, problem.intercept, rows)
    model = _estimator(problem)
    for alpha in alphas.tolist():
        model.set_params(**_strength(problem, alpha, p.weight))
        for tol in (problem.tol, *(problem.tol * finer for finer in tuning.finer)):
            model.set_params(tol=tol)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CertificateWarning)  # the path's own certificate says it for all
                model.fit(rows)
            coef = np.atleast_2d(model.coef_)
            intercept = np.ravel(model.intercept_)
            fit = L1PathFit(coef, intercept, screening.screen(p.at(alpha, problem.l1_ratio), coef, intercept, rows))
            if fit.screened.relative_gap <= problem.tol:
                break
        yield fit


def as_path(alphas: Array, fits: list[L1PathFit]) -> L1Path:
    """Fits at the first of these strengths as a path."""
    coef, intercept, screened = zip(*fits, strict=True)
    return L1Path(alphas[: len(fits)], np.array(coef), np.array(intercept), screened)


# --------------------------------------------------------------------------------------- choosing a strength
def information_criterion(problem: L1PathProblem, path: L1Path, extended: bool, rows: Rows) -> Array:
    """BIC (m,), or the extended one, which also charges for the number of sets of so many columns.

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


def held_out_loss(
    problem: L1PathProblem, rows: Rows, alphas: Array, cv: Any, tuning: L1PathTuning
) -> tuple[Array, Array]:
    """Mean loss (m,) on rows left out of the fit, and its standard error over the folds."""
    data = rows.load()
    assert data.y is not None
    losses = []
    for train, test in make_folds(cv, data.X, data.y, classes=problem.loss == "logistic"):
        path = as_path(alphas, list(fit_each(problem, data.take(np.sort(train)), alphas, tuning)))
        losses.append(_mean_losses(problem, path, data.take(np.sort(test))))
    found = np.array(losses)  # (folds, m)
    return found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(len(found))


def _mean_losses(problem: L1PathProblem, path: L1Path, rows: ArrayRows) -> Array:
    assert rows.y is not None
    value, y = screening.LOSSES[problem.loss].value, rows.y
    scores = (rows.X @ beta.T + b for beta, b in zip(path.coef, path.intercept, strict=True))
    return np.array([rows.w @ value(eta, y) for eta in scores]) / rows.w.sum()
