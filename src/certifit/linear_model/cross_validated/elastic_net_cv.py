"""Lasso and elastic net with a penalty chosen by cross-validation.

    min over β, b of   Σ wᵢ (yᵢ - β·xᵢ - b)² / (2 Σ w) + alpha (ρ |β|₁ + (1 - ρ)/2 |β|²),    ρ = l1_ratio

for many alpha on the rows of every fold; the alpha (and ρ) whose squared error on the rows held out is smallest, in
the mean over the folds, is taken, and the model fitted to all rows.
Reference: Hastie, Tibshirani & Friedman, The Elements of Statistical Learning (2009), sections 3.4 and 7.10.
"""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np

from certifit.checkers.linear_model.cross_validated.elastic_net import (
    ElasticNetChoice,
    ElasticNetSearch,
    best_place,
    elastic_net_checks,
    held_out_errors,
    strengths_of,
)
from certifit.checkers.linear_model.cross_validated.folds import StatedFolds, check_sides
from certifit.checkers.linear_model.several_targets import target_columns
from certifit.core import Attributes, Step
from certifit.core.estimator import with_callbacks
from certifit.core.settings import TOL, Setting, Settings
from certifit.exceptions import DataError
from certifit.linear_model.cross_validated.fold_paths import FoldPathTuning, PathSettings, fit_path
from certifit.linear_model.cross_validated.strengths import refuse_strengths
from certifit.linear_model.glm.solve import ElasticNetPenalty
from certifit.linear_model.regressors import ElasticNet, SparseSquares
from certifit.linear_model.regularisation_path import enet_path, lasso_path
from certifit.rows import Array, ArrayRows, Rows
from certifit.rows.folds import FITTED, fold_roles


def _are_strengths(alphas: Any) -> bool:
    """Whether a setting is an array of strengths."""
    given = np.asarray(alphas)
    return given.ndim == 1 and given.size > 0 and bool(((given >= 0) & (given < np.inf)).all())


def _are_shares(ratios: Any) -> bool:
    given = np.asarray(ratios)
    return given.ndim == 1 and given.size > 0 and bool(((given >= 0) & (given <= 1)).all())


class _ElasticNetCV(SparseSquares):
    """What LassoCV and ElasticNetCV share."""

    several_targets = False
    max_time = None
    warm_start = False
    settings: ClassVar[Settings] = {
        "alphas": Setting(int, least=1, other=_are_strengths, other_words="an array of numbers of at least 0"),
        "eps": Setting(float, above=0, below=np.inf),
        "max_iter": Setting(int, least=0),
        "tol": TOL,
        "positive": Setting(bool),
    }
    ignored: ClassVar[tuple[str, ...]] = ("copy_X", "n_jobs", "precompute", "random_state", "selection", "verbose")
    differences: ClassVar[dict[str, str]] = {
        **{name: why for name, why in SparseSquares.differences.items() if name in ("tol", "coef_")},
        "fit": "Metadata for the splitter (groups) is not routed: pass the splits themselves as cv.",
    }
    _fold_tuning: ClassVar[FoldPathTuning] = FoldPathTuning()

    alpha_: float
    alphas_: Array
    mse_path_: Array

    @property
    def alpha(self) -> float:
        """The strength chosen."""
        return self.alpha_

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:  # type: ignore[override]
        """Choose the penalty and fit to all rows of X, which are held in memory.

        Parameters
        ----------
        X : array, CSR matrix, data frame, Arrow table, path to Parquet or CSV, or Dask collection
        y : array of targets (n,), or the name of the target column in X
        sample_weight : array of non-negative row weights, or the name of a column in X; 2 means the row twice
        """
        targets = target_columns(y)
        if (targets or 1) > 1:
            raise DataError(
                got=f"y with {targets} columns",
                wanted="one target, y (n,)",
                fix=f"Fit each by itself. (For multi-task outputs, use MultiTask{type(self).__name__} of sklearn.)",
            )
        return self._fit_rows(X, y, sample_weight)

    def _check_settings(self) -> None:
        refuse_strengths(self.alphas)
        super()._check_settings()

    def _search(self) -> ElasticNetSearch:
        ratios = np.atleast_1d(np.asarray(self.l1_ratio, dtype=np.float64))
        cv = 5 if self.cv is None else self.cv
        free, positive = bool(self.fit_intercept), bool(self.positive)
        return ElasticNetSearch(self.alphas, float(self.eps), ratios, free, positive, cv)

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:  # type: ignore[override]
        search, data = self._search(), rows.load()
        alphas = strengths_of(search, data)
        folds = self._fit_folds(search, alphas, data)
        errors = held_out_errors(data, folds)
        share, strength = best_place(errors)
        ratio = float(search.l1_ratios[share])
        choice = ElasticNetChoice(alphas, errors, float(alphas[share, strength]), ratio, folds)
        found = dict(self._final(choice)._fit(data, {}))
        checks = elastic_net_checks(search, choice, self.tol, data)
        certificate = found["certificate_"]
        found["certificate_"] = replace(certificate, checks=(*certificate.checks, *checks))
        return {
            **found,
            "alpha_": choice.alpha,
            **({"l1_ratio_": ratio} if "l1_ratio" in self.get_params() else {}),
            "alphas_": alphas[0] if len(alphas) == 1 or not isinstance(self.alphas, Integral) else alphas,
            "mse_path_": np.squeeze(errors),
            "fold_roles_": folds.roles,
            "fold_coef_": folds.coef,
            "fold_intercept_": folds.intercept,
        }

    def _final(self, choice: ElasticNetChoice) -> ElasticNet:
        """The model of all rows with the penalty chosen, which reports to this one's callbacks."""
        model = ElasticNet(
            choice.alpha,
            l1_ratio=choice.l1_ratio,
            fit_intercept=self.fit_intercept,
            positive=self.positive,
            max_iter=self.max_iter,
            tol=self.tol,
        )
        model._watch = self._watch
        return model

    def _fit_folds(self, search: ElasticNetSearch, alphas: Array, data: ArrayRows) -> StatedFolds:
        """The paths of every fold and share."""
        roles = fold_roles(search.cv, data.X, data.y, classes=False)
        check_sides(roles, data.w, self.cv)
        coef, intercept = [], []
        with self._watch.loop("folds", len(roles), _coefficients) as watch:
            for role in roles:
                watch.begin()
                fitted = data.take(np.flatnonzero(role & FITTED))
                paths = [
                    fit_path(fitted, strengths, self._path_settings(search, ratio), self._fold_tuning)
                    for ratio, strengths in zip(search.l1_ratios.tolist(), alphas, strict=True)
                ]
                coef.append([path[0] for path in paths])
                intercept.append([path[1] for path in paths])
                step: Step[None] = Step(None, float(data.n_rows), np.inf)
                if watch.end((coef[-1][-1][-1], intercept[-1][-1][-1]), step, self.tol):
                    break
        return StatedFolds(roles[: len(coef)], np.array(coef), np.array(intercept))

    def _path_settings(self, search: ElasticNetSearch, ratio: float) -> PathSettings:
        return PathSettings(ratio, search.free, search.positive, max(float(self.tol), 1e-12))


def _coefficients(last: tuple[Array, float]) -> Attributes:
    """Fitted attributes after the last fit of a fold."""
    return {"coef_": last[0], "intercept_": np.float64(last[1])}


class LassoCV(_ElasticNetCV):
    """Lasso with the strength of its penalty chosen by cross-validation.

    Parameters
    ----------
    eps : float, default=1e-3
        The smallest strength tried as a share of the largest, where strengths are chosen here.
    alphas : int or array, default=100
        How many strengths to try, from the smallest that makes every coefficient 0 on all rows down to eps times
        that, equally far apart in their logarithms; or the strengths themselves.
    fit_intercept : bool, default=True
        Whether to add an intercept, which is never penalised.
    max_iter : int, default=1000
        Most passes over the rows of the fit to all of them.
    tol : float, default=1e-6
        Relative gap of the fit to all rows; fits of folds are proved to ten times that.
    cv : int, splitter, iterable or None, default=None
        Folds; None means 5, not shuffled.
    positive : bool, default=False
        Hold all coefficients at 0 or above; the intercept stays free.
    copy_X, n_jobs, precompute, random_state, selection, verbose : ignored
        Accepted so that scikit-learn's calls run; X is never changed, and the fit is deterministic.

    Attributes
    ----------
    alpha_ : float
        The strength chosen: that with the smallest mean squared error over the folds.
    alphas_ : (m,)
        The strengths tried, falling.
    mse_path_ : (m, folds)
        Mean squared errors on the rows held out.
    coef_ : (d,)
    intercept_ : float
    sparse_coef_ : CSR matrix (1, d), of the same numbers
    dual_gap_ : float
        The proved gap divided by the sum of the weights, scikit-learn's unit (diagnostic).
    deviance_ : float
        The sum of squared residuals.
    collinear_ : (0,)
        No column is left out beside a penalty.
    fold_roles_ : (folds, n)
        1 for the rows of a fold's fits, 2 for those held out of them.
    fold_coef_, fold_intercept_ : (folds, 1, m, d), (folds, 1, m)
        Every fit of every fold, so that an audit can prove each without fitting anything.
    certificate_ : Certificate
        Of the fit to all rows, with checks of every fold's fits, of mse_path_ and of the choice.
    n_iter_ : int
        Number of updates (diagnostic).
    history_ : objective, relative gap and seconds at every pass (diagnostic)

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from certifit import LassoCV
    >>> model = LassoCV().fit(*load_diabetes(return_X_y=True))
    >>> round(model.alpha_, 5), model.mse_path_.shape, model.certificate_.holds
    (0.00375, (100, 5), True)
    """

    l1_ratio = 1.0
    path = staticmethod(lasso_path)

    def __init__(
        self,
        *,
        eps=1e-3,
        alphas=100,
        fit_intercept=True,
        precompute="auto",
        max_iter=1000,
        tol=1e-6,
        copy_X=True,
        cv=None,
        verbose=False,
        n_jobs=None,
        positive=False,
        random_state=None,
        selection="cyclic",
    ):
        self.eps = eps
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.precompute = precompute
        self.max_iter = max_iter
        self.tol = tol
        self.copy_X = copy_X
        self.cv = cv
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.positive = positive
        self.random_state = random_state
        self.selection = selection


class ElasticNetCV(_ElasticNetCV):
    """Elastic net with the strength of its penalty, and its L1 share, chosen by cross-validation.

    Parameters
    ----------
    l1_ratio : float between 0 and 1, or an array of such, default=0.5
        Share ρ of the penalty that is |β|₁; of several the best is chosen.
    eps : float, default=1e-3
        The smallest strength tried as a share of the largest, where strengths are chosen here.
    alphas : int or array, default=100
        How many strengths to try, from the smallest that makes every coefficient 0 on all rows down to eps times
        that, equally far apart in their logarithms; or the strengths themselves.
    fit_intercept : bool, default=True
        Whether to add an intercept, which is never penalised.
    max_iter : int, default=1000
        Most passes over the rows of the fit to all of them.
    tol : float, default=1e-6
        Relative gap of the fit to all rows; fits of folds are proved to ten times that.
    cv : int, splitter, iterable or None, default=None
        Folds; None means 5, not shuffled.
    positive : bool, default=False
        Hold all coefficients at 0 or above; the intercept stays free.
    copy_X, n_jobs, precompute, random_state, selection, verbose : ignored
        Accepted so that scikit-learn's calls run; X is never changed, and the fit is deterministic.

    Attributes
    ----------
    alpha_, l1_ratio_ : floats
        Strength and share chosen: those with the smallest mean squared error over the folds.
    alphas_ : (m,), or (shares, m)
        The strengths tried, falling.
    mse_path_ : (m, folds), or (shares, m, folds)
        Mean squared errors on the rows held out.
    coef_ : (d,)
    intercept_ : float
    sparse_coef_ : CSR matrix (1, d), of the same numbers
    dual_gap_ : float
        The proved gap divided by the sum of the weights, scikit-learn's unit (diagnostic).
    deviance_ : float
        The sum of squared residuals.
    collinear_ : (0,)
        No column is left out beside a penalty.
    fold_roles_ : (folds, n)
        1 for the rows of a fold's fits, 2 for those held out of them.
    fold_coef_, fold_intercept_ : (folds, shares, m, d), (folds, shares, m)
        Every fit of every fold, so that an audit can prove each without fitting anything.
    certificate_ : Certificate
        Of the fit to all rows, with checks of every fold's fits, of mse_path_ and of the choice.
    n_iter_ : int
        Number of updates (diagnostic).
    history_ : objective, relative gap and seconds at every pass (diagnostic)

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from certifit import ElasticNetCV
    >>> model = ElasticNetCV(l1_ratio=[0.5, 0.9], alphas=20).fit(*load_diabetes(return_X_y=True))
    >>> model.l1_ratio_, model.mse_path_.shape, model.certificate_.holds
    (0.9, (2, 20, 5), True)
    """

    settings: ClassVar[Settings] = {
        **_ElasticNetCV.settings,
        "l1_ratio": Setting(float, least=0, most=1, other=_are_shares, other_words="an array of such numbers"),
    }
    path = staticmethod(enet_path)

    l1_ratio_: float

    def __init__(
        self,
        *,
        l1_ratio=0.5,
        eps=1e-3,
        alphas=100,
        fit_intercept=True,
        precompute="auto",
        max_iter=1000,
        tol=1e-6,
        cv=None,
        copy_X=True,
        verbose=0,
        n_jobs=None,
        positive=False,
        random_state=None,
        selection="cyclic",
    ):
        self.l1_ratio = l1_ratio
        self.eps = eps
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.precompute = precompute
        self.max_iter = max_iter
        self.tol = tol
        self.cv = cv
        self.copy_X = copy_X
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.positive = positive
        self.random_state = random_state
        self.selection = selection

    def _penalty(self) -> ElasticNetPenalty:
        return ElasticNetPenalty(self.alpha_, self.l1_ratio_, True, bool(self.positive))


__all__ = ["ElasticNetCV", "LassoCV"]
