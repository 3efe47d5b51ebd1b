"""Least squares under their familiar names: one import line is the migration from scikit-learn.

LinearRegression and Ridge minimise Σ w (y - μ)² + alpha |β|²; Lasso and ElasticNet Σ w (y - μ)²/2 / Σ w and their
penalties, as in scikit-learn. Everything else (certificate, standard errors, offsets) is that of
`GeneralizedLinearRegressor`.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from certifit.core.settings import Setting, Settings
from certifit.linear_model.glm.glm import GeneralizedLinearRegressor
from certifit.linear_model.regularisation_path import enet_path


class _NamedRegressor(GeneralizedLinearRegressor):
    """A generalised linear model whose name fixes some settings: they are class attributes here, not parameters."""

    family: Any = "gaussian"
    link: Any = "auto"
    alpha: Any = 0.0
    l1_ratio: Any = 0.0
    power: Any = 1.5
    theta: Any = 1.0
    differences: ClassVar[dict[str, str]] = {
        "tol": "A proved relative gap, 1e-6 by default, where scikit-learn's is the size of a gradient or a step.",
        "coef_": "float64 also for float32 rows: the certificate is about the numbers that are stored.",
    }


def _are_strengths(value: Any) -> bool:
    """Whether these are strengths of penalties, one for each target."""
    values = np.asarray(value)
    return values.ndim == 1 and values.dtype.kind in "iuf" and bool(((values >= 0) & (values < np.inf)).all())


class LinearRegression(_NamedRegressor):
    """Least squares by a backward-stable method, with standard errors.

    Nearly collinear columns are made orthogonal first, so that the digits the data determine are there; columns that
    are exact combinations of others are named, and the shortest coefficients taken. Several targets are fitted one by
    one.

    Parameters
    ----------
    fit_intercept : bool, default=True
        Whether to add an intercept.
    tol : float, default=1e-6
        Relative gap at which to stop, and less: the fit goes on until each coefficient is within 1e-12 of its
        standard error.
    positive : bool, default=False
        Hold all coefficients at 0 or above, without standard errors; the intercept stays free. Nothing is proved
        where columns are combinations of others.
    covariance : 'classical', 'sandwich', 'clustered' or None, default='classical'
        How the standard errors are computed; None saves the time.
    collinear : 'shortest', 'drop' or 'refuse', default='shortest'
        What to do with columns that are combinations of those before them, whose coefficients the data do not
        determine: take the shortest coefficients (smallest |β|) of all that give the same predictions, or leave these
        columns out (coefficient 0). Coefficients that are not determined have no standard errors (NaN).
    max_iter : int, default=1000
        Most passes over the rows.
    max_time : float or None, default=None
        Seconds after which the best fit so far is returned, with what is proved about it.
    warm_start : bool, default=False
        Start from the previous fit's coefficients.
    copy_X, n_jobs : ignored
        Accepted so that scikit-learn's calls run; X is never changed.

    Attributes
    ----------
    coef_ : (d,), or (targets, d) where y has several columns
    intercept_ : float, or (targets,)
    rank_ : int
        Number of columns that are not combinations of others; the intercept counts as the very first.
    deviance_ : float, or (targets,)
        The sum of squared residuals.
    null_deviance_, pearson_chi2_, dispersion_, loglikelihood_, df_resid_, aic_, bic_ : floats, for one target
    standard_errors_, p_values_ : (d1,), the intercept first, for one target
    covariance_ : (d1, d1) of (intercept, coefficients); None where it is not valid
    no_errors_because_ : why there are no standard errors; empty where there are
    collinear_ : numbers of the columns that are combinations of those before them
    certificate_ : Certificate
        Its `parameter_error` says how far each coefficient can be from the minimiser's, where that is proved.
    n_iter_ : int, or (targets,)
        Number of updates (diagnostic).
    history_ : objective, relative gap and seconds at every pass (diagnostic)

    Examples
    --------
    >>> from certifit import LinearRegression
    >>> model = LinearRegression().fit([[0.0], [1.0], [2.0], [3.0]], [1.0, 3.0, 5.0, 7.1])
    >>> model.coef_.round(6), float(model.intercept_.round(6)), model.certificate_.holds
    (array([2.03]), 0.98, True)
    """

    several_targets = True
    keeps_one_column = True
    settings: ClassVar[Settings] = {**_NamedRegressor.settings, "positive": Setting(bool)}
    ignored: ClassVar[tuple[str, ...]] = ("copy_X", "n_jobs")
    differences: ClassVar[dict[str, str]] = {
        "singular_": "Not computed, since the fit does not need them: see numpy.linalg.svd, with compute_uv=False.",
        "coef_": _NamedRegressor.differences["coef_"],
        "fit": "Columns that are combinations of others are named in a CollinearWarning.",
    }

    def __init__(
        self,
        *,
        fit_intercept=True,
        copy_X=True,
        tol=1e-6,
        n_jobs=None,
        positive=False,
        covariance="classical",
        collinear="shortest",
        max_iter=1000,
        max_time=None,
        warm_start=False,
    ):
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.tol = tol
        self.n_jobs = n_jobs
        self.positive = positive
        self.covariance = covariance
        self.collinear = collinear
        self.max_iter = max_iter
        self.max_time = max_time
        self.warm_start = warm_start

    @property
    def rank_(self) -> int:
        """Number of columns that are not combinations of others, the intercept among those."""
        return int(self.coef_.shape[-1] - len(self.collinear_))


class PenalisedRegressor(_NamedRegressor):
    """A model with a penalty: it has no standard errors, and collinear columns do not matter."""

    covariance = "classical"
    collinear = "shortest"  # where the penalty is 0


class PenalisedSquares(PenalisedRegressor):
    """Least squares with a penalty, of one target or several."""

    several_targets = True
    settings: ClassVar[Settings] = {
        **_NamedRegressor.settings,
        "positive": Setting(bool),
        "alpha": Setting(
            float,
            least=0,
            below=np.inf,
            other=_are_strengths,
            other_words="an array of such numbers, one for each target",
        ),
    }


class Ridge(PenalisedSquares):
    """Least squares with the penalty alpha |β|²: Σ w (y - μ)² + alpha |β|².

    Parameters
    ----------
    alpha : float or (targets,), default=1.0
        Strength of the penalty, of all rows together; one for each target where y has several columns.
    fit_intercept : bool, default=True
        Whether to add an intercept, which is never penalised.
    max_iter : int or None, default=None
        Most passes over the rows; None means 1000, of which one or two are needed.
    tol : float, default=1e-6
        Relative gap at which to stop: objective - minimum <= tol * objective is then proved.
    positive : bool, default=False
        Hold all coefficients at 0 or above; the intercept stays free.
    max_time : float or None, default=None
        Seconds after which the best fit so far is returned, with what is proved about it.
    warm_start : bool, default=False
        Start from the previous fit's coefficients.
    copy_X, random_state, solver : ignored
        Accepted so that scikit-learn's calls run; X is never changed, and the fit is deterministic.

    Attributes
    ----------
    coef_ : (d,), or (targets, d) where y has several columns
    intercept_ : float, or (targets,)
    deviance_ : float, or (targets,)
        The sum of squared residuals.
    solver_ : str
        The name that `solver` asks for, 'newton' for 'auto'. Whatever it is, the fit is by Newton's method.
    collinear_ : (0,)
        No column is left out beside a penalty.
    certificate_ : Certificate
        Its `parameter_error` says how far each coefficient can be from the minimiser's, where that is proved.
    n_iter_ : int, or (targets,)
        Number of updates (diagnostic).
    history_ : objective, relative gap and seconds at every pass (diagnostic)

    Examples
    --------
    >>> from certifit import Ridge
    >>> Ridge(alpha=1.0).fit([[0.0], [2.0]], [0.0, 2.0]).coef_.round(6)
    array([0.666667])
    """

    penalty_per_row = False
    settings: ClassVar[Settings] = {**PenalisedSquares.settings, "max_iter": Setting(int, least=0, none=True)}
    ignored: ClassVar[tuple[str, ...]] = ("copy_X", "random_state", "solver")
    differences: ClassVar[dict[str, str]] = {
        **PenalisedSquares.differences,
        "solver": "Every name is taken and Newton's method used, which none of scikit-learn's limits concern: any "
        "solver fits sparse rows with an intercept, and positive=True.",
        "solver_": "The name that was asked for; 'newton', the method that every fit uses, for 'auto'.",
        "alpha=0": "Least squares as LinearRegression has them, with its CollinearWarning.",
        "intercept_": "A number also where y has the shape (n, 1).",
        "n_iter_": "Newton's updates, one or two, whatever max_iter is: no solver stops early with a warning.",
    }

    def __init__(
        self,
        alpha=1.0,
        *,
        fit_intercept=True,
        copy_X=True,
        max_iter=None,
        tol=1e-6,
        solver="auto",
        positive=False,
        random_state=None,
        max_time=None,
        warm_start=False,
    ):
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.max_iter = max_iter
        self.tol = tol
        self.solver = solver
        self.positive = positive
        self.random_state = random_state
        self.max_time = max_time
        self.warm_start = warm_start

    @property
    def solver_(self) -> str:
        """The name that was asked for; 'newton', the method of every fit, for 'auto'."""
        check_is_fitted(self)
        return "newton" if self.solver == "auto" else str(self.solver)


class SparseSquares(PenalisedSquares):
    """Least squares with an L1 penalty among others, which makes many coefficients exactly 0."""

    settings: ClassVar[Settings] = {**PenalisedSquares.settings, "alpha": _NamedRegressor.settings["alpha"]}
    diagnostics: ClassVar[tuple[str, ...]] = ("n_iter_", "history_", "dual_gap_")
    ignored: ClassVar[tuple[str, ...]] = ("copy_X", "precompute", "random_state", "selection")
    path = staticmethod(enet_path)
    differences: ClassVar[dict[str, str]] = {
        **PenalisedSquares.differences,
        "fit": "check_input= is ignored: rows are always checked.",
        "alpha=0": "Least squares without a warning; beside an L1 penalty no precomputed Gram matrix is read.",
    }

    def fit(  # type: ignore[override]
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        check_input: Any = True,
        *,
        offset: Any = None,
        exposure: Any = None,
        clusters: Any = None,
    ) -> Self:
        """Fit to the rows of X.

        Parameters
        ----------
        X : array, CSR matrix, data frame, Arrow table, path to Parquet or CSV, or Dask collection
        y : array of targets (n,) or (n, targets), or names of the target columns in X
        sample_weight : array of non-negative row weights, or the name of a column in X; 2 means the row twice
        check_input : ignored
            Accepted so that scikit-learn's calls run; rows are always checked.
        offset, exposure, clusters : see GeneralizedLinearRegressor
        """
        return super().fit(X, y, sample_weight, offset=offset, exposure=exposure, clusters=clusters)

    @property
    def sparse_coef_(self) -> Any:
        """The coefficients as a CSR matrix (1, d), or (targets, d)."""
        return sparse.csr_matrix(self.coef_)


class Lasso(SparseSquares):
    """Least squares with an L1 penalty: Σ w (y - μ)² / (2 Σ w) + alpha |β|₁.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty, per unit of row weight; 0 is least squares.
    fit_intercept : bool, default=True
        Whether to add an intercept, which is never penalised.
    max_iter : int, default=1000
        Most passes over the rows.
    tol : float, default=1e-6
        Relative gap at which to stop: objective - minimum <= tol * objective is then proved.
    warm_start : bool, default=False
        Start from the previous fit's coefficients.
    positive : bool, default=False
        Hold all coefficients at 0 or above; the intercept stays free.
    max_time : float or None, default=None
        Seconds after which the best fit so far is returned, with what is proved about it.
    copy_X, precompute, random_state, selection : ignored
        Accepted so that scikit-learn's calls run; X is never changed, and the fit is deterministic.

    Attributes
    ----------
    coef_ : (d,), or (targets, d) where y has several columns
    intercept_ : float, or (targets,)
    sparse_coef_ : CSR matrix (1, d), or (targets, d), of the same numbers
    dual_gap_ : float, or (targets,)
        The proved gap divided by the sum of the weights, scikit-learn's unit (diagnostic).
    deviance_ : float, or (targets,)
        The sum of squared residuals.
    collinear_ : (0,)
        No column is left out beside a penalty.
    certificate_ : Certificate
        Its `parameter_error` says how far each coefficient can be from the minimiser's, where that is proved.
    n_iter_ : int, or (targets,)
        Number of updates (diagnostic).
    history_ : objective, relative gap and seconds at every pass (diagnostic)

    Examples
    --------
    >>> from certifit import Lasso
    >>> Lasso(alpha=0.5).fit([[0.0, 1.0], [2.0, 1.0]], [0.0, 2.0]).coef_
    array([0.5, 0. ])
    """

    l1_ratio = 1.0

    def __init__(
        self,
        alpha=1.0,
        *,
        fit_intercept=True,
        precompute=False,
        copy_X=True,
        max_iter=1000,
        tol=1e-6,
        warm_start=False,
        positive=False,
        random_state=None,
        selection="cyclic",
        max_time=None,
    ):
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.precompute = precompute
        self.copy_X = copy_X
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.positive = positive
        self.random_state = random_state
        self.selection = selection
        self.max_time = max_time


class ElasticNet(SparseSquares):
    """Least squares with both penalties: Σ w (y - μ)² / (2 Σ w) + alpha (ρ |β|₁ + (1 - ρ)/2 |β|²), ρ = l1_ratio.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty, per unit of row weight; 0 is least squares.
    l1_ratio : float between 0 and 1, default=0.5
        Share ρ of the penalty that is |β|₁.
    fit_intercept : bool, default=True
        Whether to add an intercept, which is never penalised.
    max_iter : int, default=1000
        Most passes over the rows.
    tol : float, default=1e-6
        Relative gap at which to stop: objective - minimum <= tol * objective is then proved.
    warm_start : bool, default=False
        Start from the previous fit's coefficients.
    positive : bool, default=False
        Hold all coefficients at 0 or above; the intercept stays free.
    max_time : float or None, default=None
        Seconds after which the best fit so far is returned, with what is proved about it.
    copy_X, precompute, random_state, selection : ignored
        Accepted so that scikit-learn's calls run; X is never changed, and the fit is deterministic.

    Attributes
    ----------
    coef_ : (d,), or (targets, d) where y has several columns
    intercept_ : float, or (targets,)
    sparse_coef_ : CSR matrix (1, d), or (targets, d), of the same numbers
    dual_gap_ : float, or (targets,)
        The proved gap divided by the sum of the weights, scikit-learn's unit (diagnostic).
    deviance_ : float, or (targets,)
        The sum of squared residuals.
    collinear_ : (0,)
        No column is left out beside a penalty.
    certificate_ : Certificate
        Its `parameter_error` says how far each coefficient can be from the minimiser's, where that is proved.
    n_iter_ : int, or (targets,)
        Number of updates (diagnostic).
    history_ : objective, relative gap and seconds at every pass (diagnostic)

    Examples
    --------
    >>> from certifit import ElasticNet
    >>> ElasticNet(alpha=0.5).fit([[0.0, 1.0], [2.0, 1.0]], [0.0, 2.0]).coef_.round(5)
    array([0.6, 0. ])
    """

    def __init__(
        self,
        alpha=1.0,
        *,
        l1_ratio=0.5,
        fit_intercept=True,
        precompute=False,
        max_iter=1000,
        copy_X=True,
        tol=1e-6,
        warm_start=False,
        positive=False,
        random_state=None,
        selection="cyclic",
        max_time=None,
    ):
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.precompute = precompute
        self.max_iter = max_iter
        self.copy_X = copy_X
        self.tol = tol
        self.warm_start = warm_start
        self.positive = positive
        self.random_state = random_state
        self.selection = selection
        self.max_time = max_time
