"""Gaussian mixtures by EM, certified, of complete rows and of rows with missing entries.

    max over π, m, C of   Σ wᵢ log Σ_k π_k N(xᵢ; m_k, C_k) / Σ wᵢ - (1/2k) Σ_k Σ_j floor_j (C_k⁻¹)_jj

The penalty is what `reg_covar` means: EM climbs one function, which is bounded
(`mixture.gaussian.components`). Missing entries are left out of the likelihood, exactly.
References: Dempster, Laird & Rubin (1977), see `mixture.em`; for the penalty Fraley & Raftery, Bayesian
regularization for normal mixture estimation and model-based clustering (2007).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import LinAlgError
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from certifit.checkers.mixture.column_survey import ColumnSurvey, survey_columns, variance_floor
from certifit.checkers.mixture.gaussian import least_objective
from certifit.core import Attributes, Solution
from certifit.core.settings import Setting, Settings
from certifit.exceptions import DataError
from certifit.mixture.base import MixtureModel
from certifit.mixture.em import EMPoint, MixtureEM, MixtureParameters
from certifit.mixture.gaussian.collapse import collapsed_components, describe_collapse
from certifit.mixture.gaussian.components import GaussianComponents
from certifit.mixture.gaussian.covariance_shapes import SHAPES
from certifit.mixture.gaussian.starts import GaussianStart, first_mixture
from certifit.mixture.gaussian.tuning import GaussianMixtureTuning
from certifit.numerics.missing import has_missing
from certifit.rows import Array, Block, Rows


class GaussianMixture(MixtureModel):
    """A mixture of Gaussians by penalised maximum likelihood; missing entries (NaN) are left out of the likelihood.

    Parameters
    ----------
    n_components : int, default=1
    covariance_type : 'full', 'tied', 'diag' or 'spherical', default='full'
    tol : float, default=1e-6
        Stop when one more EM step promises to raise the objective by at most this, in nats a row.
    reg_covar : float or 'auto', default='auto'
        What keeps covariances from collapsing: the objective is the mean log-likelihood less half this number times
        the mean trace of the precisions, whose EM step adds it to the variances (times n / (n_components n_k) in a
        component of n_k rows). 'auto' is 1e-7 times the squared distance between each column's quartiles, whatever
        the column's unit. 0 is maximum likelihood, of covariances down to 1e-12 of these squares.
    max_iter : int, default=1000
        Most EM steps from each start.
    n_init : int, default=1
        Number of starts, of which the best result is kept.
    init_params : 'kmeans', 'k-means++', 'random', 'random_from_data' or 'hierarchical', default='kmeans'
        Where to start: k-means clusters of a sample; rows by their nearest of some seeds, far from each other
        ('k-means++') or drawn at random; random groups; Ward's hierarchical clusters of up to 2000 rows.
    weights_init, means_init, precisions_init : arrays or None
        Start from these instead, all or some.
    max_time : float or None, default=None
        Seconds after which the best mixture so far is returned.
    random_state : int, RandomState or None
    warm_start : bool, default=False
        Start from the last fit, if that had as many components of the same shape and columns.
    verbose, verbose_interval : ignored
        Progress is shown by `set_callbacks`; accepted so that scikit-learn code runs unchanged.

    Attributes
    ----------
    weights_ : (k,)
    means_ : (k, d)
    covariances_ : (k, d, d); (d, d) if tied, (k, d) if diagonal, (k,) if spherical
    covariance_type_ : str, the shape that they have
    precisions_, precisions_cholesky_ : their inverses, and factors of them
    reg_covar_ : (d,) the floor of each column's variances
    converged_ : bool (diagnostic)
    n_iter_ : int (diagnostic)
    lower_bound_ : float, the objective: mean log-likelihood less the penalty
    lower_bounds_ : (n_iter_ + 1,) the objective at each step
    loglikelihood_ : float, of all observed entries
    em_trace_ : table with the fields iteration, loglik, bound and kl, nats a row. The M step raised the bound, the E
        step closes kl, the divergence of the last posterior from the new: loglik = bound + kl, less the penalty
    history_ : tuple of Mark, the (negative) objective and the gain still promised at each step (diagnostic)
    certificate_ : Certificate

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import GaussianMixture
    >>> from sklearn.datasets import load_iris
    >>> X, _ = load_iris(return_X_y=True)
    >>> model = GaussianMixture(n_components=3, random_state=0).fit(X)
    >>> round(model.loglikelihood_, 2)
    -180.19
    >>> model.certificate_.kind, model.certificate_.holds
    ('stationary', True)
    >>> X[::7, 2] = np.nan  # missing entries are left out of the likelihood, not filled in
    >>> GaussianMixture(n_components=3, random_state=0).fit(X).certificate_.holds
    True
    """

    settings: ClassVar[Settings] = {
        **MixtureModel.settings,
        "covariance_type": Setting(choices=tuple(SHAPES)),
        "reg_covar": Setting(float, least=0, below=math.inf, choices=("auto",)),
    }
    ignored: ClassVar[tuple[str, ...]] = ("verbose", "verbose_interval")
    differences: ClassVar[dict[str, str]] = {
        "tol": "It is what one more EM step may still gain, which the certificate proves; scikit-learn's bounds the "
        "last gain, a thousand times as large, and often stops far from the maximum.",
        "max_iter": "Ten times as many steps, because the tolerance is smaller.",
        "reg_covar": "'auto' is in the columns' own units: 1e-6 swamps small numbers and is nothing beside large "
        "ones. A number is a penalty that EM climbs with, not something added after each step.",
        "lower_bound_": "It is the mean log-likelihood less the penalty, at the fitted parameters.",
        "lower_bounds_": "The first is that of the start, so there is one more than steps.",
        "random_state": "Equal seeds draw other starts than scikit-learn's.",
        "weights_init": "Weights that do not sum to 1 are divided by their sum.",
        "reg_covar=0": "Components that collapse are held at a small variance and named, not refused.",
    }
    _tuning: ClassVar[GaussianMixtureTuning] = GaussianMixtureTuning()

    def __init__(
        self,
        n_components=1,
        *,
        covariance_type="full",
        tol=1e-6,
        reg_covar="auto",
        max_iter=1000,
        n_init=1,
        init_params="kmeans",
        weights_init=None,
        means_init=None,
        precisions_init=None,
        max_time=None,
        random_state=None,
        warm_start=False,
        verbose=0,
        verbose_interval=10,
    ):
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.tol = tol
        self.reg_covar = reg_covar
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.weights_init = weights_init
        self.means_init = means_init
        self.precisions_init = precisions_init
        self.max_time = max_time
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.verbose_interval = verbose_interval

    # ---------------------------------------------------------------------------------------------- fit
    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        self._check_rows(rows)
        survey = survey_columns(rows)
        floor = variance_floor(self.reg_covar, survey.spread)
        rng = check_random_state(self.random_state)
        try:
            found, em = self._run_em(
                rows,
                lambda: self._start(survey, floor, rng, previous),
                lambda point: _public_attributes(point.mixture),
            )
            return self._result(rows, survey, self._with_stored_means(found, em), em)
        except LinAlgError as error:
            raise DataError(
                got="a covariance that is not positive definite to rounding, because of rows immensely far from the "
                f"others (reg_covar={self.reg_covar!r})",
                wanted="variances whose ratios are within the digits of a float",
                fix="Leave such rows out, rescale the columns, or raise reg_covar.",
            ) from error

    def _start(
        self, survey: ColumnSurvey, floor: Array, rng: np.random.RandomState, previous: Attributes
    ) -> MixtureParameters:
        """Return the last fit's parameters, for a warm start that fits; else a new start."""
        kind, k = self.covariance_type, self.n_components
        shapes = previous.get("covariance_type_"), np.shape(previous.get("covariances_", ()))
        if self.warm_start and shapes == (kind, SHAPES[kind].size(k, len(floor))):
            return self._mixture(previous, floor, survey.median)
        given = self.weights_init, self.means_init, self.precisions_init
        return first_mixture(survey, GaussianStart(kind, k, floor, self.init_params, self._tuning, *given), rng)

    def _with_stored_means(self, found: Solution[EMPoint], em: MixtureEM) -> Solution[EMPoint]:
        """Return the result with its means rounded as the public attribute holds them.

        Means are kept less the shift. Very far from 0 the sum of both is rounded so much that the likelihood changes:
        only then is the rounded mixture measured again.
        """
        at = found.params.mixture
        own = at.components
        means = (own.shift + own.means) - own.shift
        moved = means - own.means
        if ((moved * own.shape.apply(own.P, moved)).sum(axis=1) <= self._tuning.mean_rounding).all():
            return found
        point = EMPoint(MixtureParameters(at.weights, replace(own, means=means)))
        step = em.update(point, em.measure(point))
        em.trace[-2:] = em.trace[-1:]
        return replace(found, params=point, objective=step.objective, gain=step.gain)

    def _result(self, rows: Rows, survey: ColumnSurvey, found: Solution[EMPoint], em: MixtureEM) -> Attributes:
        at = found.params.mixture
        collapsed = collapsed_components(at, survey)
        wrong = describe_collapse(at, collapsed, rows) if collapsed else {}

        def least(weight: float) -> float:
            return least_objective(at.components.floor, len(at.weights), rows.sum(_observed_weight) / weight)

        advice = "Ask for fewer components, start elsewhere, or set reg_covar below the narrowest group's variance."
        return {**_public_attributes(at), **self._fit_report(rows, found, em, least, wrong, advice)}

    # ---------------------------------------------------------------------------------------------- use
    def _at(self) -> MixtureParameters:
        check_is_fitted(self)
        # the heaviest component's mean is a shift amid the rows
        return self._mixture(vars(self), self.reg_covar_, self.means_[int(self.weights_.argmax())])

    def _mixture(self, fitted: Mapping[str, Any], floor: Array, shift: Array) -> MixtureParameters:
        """Return the mixture with these fitted attributes, about this shift (d,)."""
        kind, means = fitted["covariance_type_"], fitted["means_"] - shift
        C = SHAPES[kind].private(fitted["covariances_"])
        return MixtureParameters(fitted["weights_"], GaussianComponents(kind, shift, means, C, floor, self._tuning))

    def _draw(self, component: int, n: int, rng: np.random.RandomState) -> Array:
        own = self._at().components
        C = own.shape.matrices(own.C, *own.means.shape)[component]
        return self.means_[component] + rng.normal(size=(n, len(C))) @ np.linalg.cholesky(C).T

    def n_parameters(self) -> int:
        """Return the number of free parameters."""
        check_is_fitted(self)
        k, d = self.means_.shape
        return SHAPES[self.covariance_type_].free(k, d) + k * d + k - 1

    @property
    def precisions_(self) -> Array:
        check_is_fitted(self, "covariances_")
        shape = SHAPES[self.covariance_type_]
        return shape.public(shape.invert(shape.private(self.covariances_)))

    @property
    def precisions_cholesky_(self) -> Array:
        check_is_fitted(self, "covariances_")
        shape = SHAPES[self.covariance_type_]
        return shape.public(shape.cholesky(shape.private(self.covariances_)))


def _public_attributes(at: MixtureParameters) -> Attributes:
    own = at.components
    return {
        "weights_": at.weights,
        "means_": own.shift + own.means,
        "covariances_": own.shape.public(own.C),
        "covariance_type_": own.covariance_type,
        "reg_covar_": own.floor,
    }


def _observed_weight(block: Block) -> Array:
    """Return Σ w over rows with an entry in each column (d,)."""
    if not has_missing(block.X):
        return np.full(block.X.shape[1], block.w.sum())
    return block.w @ ~np.isnan(block.X)
