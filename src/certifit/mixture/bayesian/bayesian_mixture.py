"""Gaussian mixtures with priors on weights, means and covariances, by variational inference, certified.

    max over q of   E_q log p(X, Z, π, μ, Λ) - E_q log q,     q(Z) q(π) Π_k q(μ_k, Λ_k)

Components that the rows do not need lose their weight, so `n_components` is an upper limit. `variational` has the
steps and the bound.
References: Bishop, Pattern Recognition and Machine Learning (2006), section 10.2; Blei & Jordan, Variational
inference for Dirichlet process mixtures (2006).
"""

from __future__ import annotations

import math
import time
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import logsumexp
from sklearn.base import DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from certifit.checkers.mixture import bayesian as checker
from certifit.checkers.mixture.bayesian_adapter import prior_of
from certifit.checkers.mixture.column_survey import survey_columns
from certifit.core import Attributes, Estimator, Objective, Solution, Step, fixed_point
from certifit.core.settings import LOOP, Setting, Settings
from certifit.exceptions import DataError
from certifit.mixture.bayesian.variational import (
    MixturePosterior,
    MixturePrior,
    ResponsibilitySums,
    best_posterior,
    dense_block,
    log_joint,
    lower_bound,
    mean_weights,
    measure,
    precision_factors,
    weighted_sums,
)
from certifit.mixture.starting_groups import STARTING_GROUPS, StartTuning
from certifit.rows import Array, ArrayRows, Block, Rows


class VariationalState(NamedTuple):
    """Where the loop stands."""

    posterior: MixturePosterior
    bound: float  # at the step before; -inf at the start
    trace: tuple[float, ...] = ()


class BayesianGaussianMixture(DensityMixin, Estimator):
    """A mixture of Gaussians by variational inference.

    Parameters
    ----------
    n_components : int, default=1
        Most components; those that are not needed keep next to no weight.
    covariance_type : 'full', 'tied', 'diag' or 'spherical', default='full'
    tol : float, default=1e-6
        Stop when a step raises the lower bound by at most this, in nats a row, and changes no parameter by more than
        its root, in deviations.
    reg_covar : float, default=1e-6
        Added to the variances of the rows in every step.
    max_iter : int, default=1000
        Most steps from each start.
    n_init : int, default=1
        Number of starts, of which the best result is kept.
    init_params : 'kmeans', 'k-means++', 'random', 'random_from_data' or 'hierarchical', default='kmeans'
        Groups of rows to start from.
    weight_concentration_prior_type : 'dirichlet_process' or 'dirichlet_distribution'
    weight_concentration_prior : float or None
        None: 1 / n_components. Smaller numbers leave fewer components.
    mean_precision_prior : float or None
        How firmly means are held to `mean_prior`; None: 1.
    mean_prior : (d,) or None
        None: the mean of the rows.
    degrees_of_freedom_prior : float or None
        None: the number of columns.
    covariance_prior : array, float or None
        None: the covariance of the rows, in the form of `covariance_type`.
    random_state : int, RandomState or None
    warm_start : bool, default=False
        Start from the last fit, if that had as many components of the same shape and columns.
    verbose, verbose_interval : ignored
        Accepted so that scikit-learn's calls run; see `ProgressBar`.
    max_time : float or None, default=None
        Seconds after which the best posterior so far is returned.

    Attributes
    ----------
    weight_concentration_ : two arrays (k,) of a Dirichlet process, one of a Dirichlet distribution
    mean_precision_, degrees_of_freedom_ : (k,); the latter one number if tied
    means_ : (k, d)
    covariances_ : (k, d, d); (d, d) if tied, (k, d) if diagonal, (k,) if spherical: inverses of E Λ
    weights_, precisions_, precisions_cholesky_ : computed from these when asked for
    weight_concentration_prior_, mean_precision_prior_, mean_prior_, degrees_of_freedom_prior_, covariance_prior_ :
        the prior as used
    lower_bound_ : float, on the evidence, up to a constant
    lower_bounds_ : (n_iter_ + 1,) at each step
    n_iter_, converged_, history_ : how the fit went (diagnostic)
    certificate_ : Certificate

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from certifit import BayesianGaussianMixture
    >>> X, _ = load_iris(return_X_y=True)
    >>> model = BayesianGaussianMixture(n_components=5, random_state=0).fit(X)
    >>> model.certificate_.kind, model.certificate_.holds
    ('stationary', True)
    """

    diagnostics: ClassVar[tuple[str, ...]] = ("n_iter_", "converged_", "history_")
    settings: ClassVar[Settings] = {
        **LOOP,
        "n_components": Setting(int, least=1),
        "covariance_type": Setting(choices=("full", "tied", "diag", "spherical")),
        "reg_covar": Setting(float, least=0, below=math.inf),
        "n_init": Setting(int, least=1),
        "init_params": Setting(choices=tuple(STARTING_GROUPS)),
        "weight_concentration_prior_type": Setting(choices=("dirichlet_process", "dirichlet_distribution")),
        "weight_concentration_prior": Setting(float, above=0, below=math.inf, none=True),
        "mean_precision_prior": Setting(float, above=0, below=math.inf, none=True),
        "degrees_of_freedom_prior": Setting(float, above=0, below=math.inf, none=True),
    }
    ignored: ClassVar[tuple[str, ...]] = ("verbose", "verbose_interval")
    differences: ClassVar[dict[str, str]] = {
        "tol": "is in nats a row and bounds the change of parameters too; scikit-learn's is in nats of all rows.",
        "max_iter": "is 1000 by default, since the certificate asks for a fixed point.",
    }

    means_: Array
    covariances_: Array
    mean_precision_: Array
    degrees_of_freedom_: Array
    weight_concentration_: Any

    def __init__(
        self,
        *,
        n_components=1,
        covariance_type="full",
        tol=1e-6,
        reg_covar=1e-6,
        max_iter=1000,
        n_init=1,
        init_params="kmeans",
        weight_concentration_prior_type="dirichlet_process",
        weight_concentration_prior=None,
        mean_precision_prior=None,
        mean_prior=None,
        degrees_of_freedom_prior=None,
        covariance_prior=None,
        random_state=None,
        warm_start=False,
        verbose=0,
        verbose_interval=10,
        max_time=None,
    ):
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.tol = tol
        self.reg_covar = reg_covar
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.weight_concentration_prior_type = weight_concentration_prior_type
        self.weight_concentration_prior = weight_concentration_prior
        self.mean_precision_prior = mean_precision_prior
        self.mean_prior = mean_prior
        self.degrees_of_freedom_prior = degrees_of_freedom_prior
        self.covariance_prior = covariance_prior
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.verbose_interval = verbose_interval
        self.max_time = max_time

    # ---------------------------------------------------------------------------------------------- fit
    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        k, d = int(self.n_components), rows.n_features
        if rows.n_rows < k:
            raise DataError(
                got=f"fewer rows than components (n_samples={rows.n_rows} should be >= n_components={k})",
                wanted="at least one row for each component",
                fix=f"Expected n_samples >= n_components: ask for at most {rows.n_rows} components.",
            )
        plain = prior_of(self, rows)
        prior = MixturePrior(*plain)
        _check_prior(prior, d)
        found = self._best_of_starts(rows, prior, previous)
        at = found.params.posterior
        trace = np.array([*found.params.trace, -found.objective * rows.sum(_total_weight)])
        fitted = {**self._attributes(at), **_prior_attributes(prior)}
        bound = float(trace[-1])
        claim = checker.VariationalClaim(_as_plain(at, self.covariance_type, k, d), bound, trace)
        certificate = checker.certify(claim, plain, rows, min(float(self.tol), 1e-2))
        return {
            **fitted,
            "lower_bound_": bound,
            "lower_bounds_": trace,
            "n_iter_": found.n_iter,
            "converged_": found.status == "converged",
            "history_": found.history,
            "certificate_": certificate,
        }

    def _best_of_starts(self, rows: Rows, prior: MixturePrior, previous: Attributes) -> Solution[VariationalState]:
        rng, began = check_random_state(self.random_state), time.perf_counter()
        best: Solution[VariationalState] | None = None
        for i in range(self.n_init):
            start = self._start(rows, prior, previous, rng)
            left = None if self.max_time is None else self.max_time - (time.perf_counter() - began)
            with self._watch.loop(f"start {i + 1} of {self.n_init}", self.max_iter, self._attributes_at) as watch:
                found = fixed_point(
                    lambda at: measure(rows, self.covariance_type, at.posterior),
                    partial(_update, prior),
                    VariationalState(start, -np.inf),
                    tol=self.tol,
                    max_iter=self.max_iter,
                    max_time=left,
                    watcher=watch,
                )
            if best is None or found.objective < best.objective:
                best = found
            if found.status in ("stopped", "max_time"):
                break
        assert best is not None
        return best

    def _start(
        self, rows: Rows, prior: MixturePrior, previous: Attributes, rng: np.random.RandomState
    ) -> MixturePosterior:
        """The posterior of groups of rows, or that of the last fit."""
        k, d = int(self.n_components), rows.n_features
        if self.warm_start and "means_" in previous:
            last = _posterior_of(previous)
            alike = last.covariances.shape == self._covariance_size(k, d) and last.means.shape == (k, d)
            if alike and len(last.concentration) == (2 if prior.process else 1):
                return last
        survey = survey_columns(rows)
        X, w = np.asarray(survey.sample.X, dtype=np.float64), survey.sample.w
        unit = ArrayRows((X - survey.median) / survey.spread, None, w)
        groups = STARTING_GROUPS[self.init_params](unit, k, rng, StartTuning())
        with np.errstate(divide="ignore"):
            log_r = np.log((groups[:, None] == np.arange(k)).astype(np.float64))
        means = np.repeat(prior.mean[None], k, axis=0)
        sums = weighted_sums(means, self.covariance_type, X, w, log_r)
        return best_posterior(prior, means, sums)

    def _covariance_size(self, k: int, d: int) -> tuple[int, ...]:
        shapes = {"full": (k, d, d), "tied": (d, d), "diag": (k, d), "spherical": (k,)}
        return shapes[self.covariance_type]

    def _attributes(self, at: MixturePosterior) -> dict[str, Any]:
        process = len(at.concentration) == 2
        return {
            "weight_concentration_": tuple(at.concentration) if process else at.concentration[0],
            "mean_precision_": at.mean_precision,
            "means_": at.means,
            "degrees_of_freedom_": float(at.degrees) if at.degrees.ndim == 0 else at.degrees,
            "covariances_": at.covariances,
        }

    def _attributes_at(self, at: VariationalState) -> Attributes:
        return self._attributes(at.posterior)

    # ---------------------------------------------------------------------------------------------- use
    def _posterior(self) -> MixturePosterior:
        check_is_fitted(self)
        return _posterior_of(vars(self))

    @property
    def weights_(self) -> Array:
        return mean_weights(self._posterior().concentration)

    @property
    def precisions_cholesky_(self) -> Array:
        check_is_fitted(self)
        return precision_factors(np.asarray(self.covariances_), self.covariance_type)

    @property
    def precisions_(self) -> Array:
        P = self.precisions_cholesky_
        return P @ P.swapaxes(-1, -2) if self.covariance_type in ("full", "tied") else P**2

    def _log_joint(self, X: Any) -> Array:
        at = self._posterior()
        return self._rows(X).map(partial(_joint_of_block, at, self.covariance_type))

    def predict(self, X: Any) -> Array:
        """The likeliest component of each row (n,)."""
        return self._log_joint(X).argmax(axis=1)

    def predict_proba(self, X: Any) -> Array:
        """Responsibilities of the components (n, k)."""
        joint = self._log_joint(X)
        return np.exp(joint - logsumexp(joint, axis=1, keepdims=True))

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit, and return the likeliest component of each row (n,)."""
        return self.fit(X, y, sample_weight).predict(X)

    def score_samples(self, X: Any) -> Array:
        """log Σ exp E log p(x, component) of each row (n,)."""
        return logsumexp(self._log_joint(X), axis=1)

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of `score_samples`."""
        return float(self.score_samples(X).mean())

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Array, Array]:
        """Draw rows (n_samples, d) from the mean parameters, with their components (n_samples,)."""
        check_is_fitted(self)
        Setting(int, least=1, fix="Invalid value for 'n_samples'.").check("n_samples", n_samples)
        rng = check_random_state(self.random_state if random_state is None else random_state)
        k, d = self.means_.shape
        counts = rng.multinomial(n_samples, self.weights_)
        C = checker.as_matrices(np.asarray(self.covariances_), self.covariance_type, k, d)
        # Triangular roots change as little as a covariance does; eigenvectors of one next to a sphere turn.
        roots = np.linalg.cholesky(C)
        X = [self.means_[j] + rng.standard_normal((n, d)) @ roots[j].T for j, n in enumerate(counts)]
        return np.concatenate(X), np.repeat(np.arange(k), counts)

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """Minus the lower bound on the evidence of these rows, nats a row, at the best posterior for them."""
        rows, at = self._rows(X, sample_weight=sample_weight), self._posterior()
        prior = MixturePrior(
            self.covariance_type,
            self.weight_concentration_prior_type == "dirichlet_process",
            float(self.weight_concentration_prior_),
            float(self.mean_precision_prior_),
            np.asarray(self.mean_prior_),
            float(self.degrees_of_freedom_prior_),
            np.asarray(self.covariance_prior_),
            float(self.reg_covar),
        )
        found = measure(rows, self.covariance_type, at)
        value = -lower_bound(prior, best_posterior(prior, at.means, found), found.entropy) / found.weight
        return Objective(value, value, 0.0)


def _prior_attributes(prior: MixturePrior) -> dict[str, Any]:
    """The prior as fitted attributes, which share no array with the settings."""
    return {
        "weight_concentration_prior_": prior.concentration,
        "mean_precision_prior_": prior.mean_precision,
        "mean_prior_": prior.mean.copy(),
        "degrees_of_freedom_prior_": prior.degrees,
        "covariance_prior_": float(prior.covariance) if prior.covariance.ndim == 0 else prior.covariance.copy(),
    }


def _posterior_of(fitted: Any) -> MixturePosterior:
    return MixturePosterior(
        np.atleast_2d(np.asarray(fitted["weight_concentration_"], dtype=np.float64)),
        *(np.asarray(fitted[name]) for name in ("mean_precision_", "means_", "degrees_of_freedom_", "covariances_")),
    )


def _check_prior(prior: MixturePrior, d: int) -> None:
    """Refuse priors that are none, or of another shape."""
    if prior.degrees <= d - 1:
        raise DataError(
            got=f"degrees_of_freedom_prior={prior.degrees:g} with {d} columns",
            wanted=f"more. The parameter 'degrees_of_freedom_prior' should be greater than {d - 1}, "
            f"but got {prior.degrees:.3f}",
        )
    if prior.mean.shape != (d,):
        raise DataError(got=f"mean_prior of shape {prior.mean.shape}", wanted=f"shape ({d},)")
    wanted = {"full": (d, d), "tied": (d, d), "diag": (d,), "spherical": ()}[prior.covariance_type]
    C = prior.covariance
    if C.shape != wanted or not np.isfinite(C).all():
        raise DataError(got=f"covariance_prior of shape {C.shape}", wanted=f"finite numbers of shape {wanted}")
    if C.ndim == 2 and not np.allclose(C, C.T):
        raise DataError(got="covariance_prior that is not symmetric", wanted="a covariance matrix")


def _update(prior: MixturePrior, at: VariationalState, found: ResponsibilitySums) -> Step[VariationalState]:
    after = best_posterior(prior, at.posterior.means, found)
    bound, k = lower_bound(prior, after, found.entropy), len(after.means)
    d = after.means.shape[1]
    before, now = (_as_plain(p, prior.covariance_type, k, d) for p in (at.posterior, after))
    change = checker.posterior_change(before, now, found.weight)
    rise = 2 * abs(bound - at.bound) / found.weight if np.isfinite(at.bound) else np.inf
    return Step(VariationalState(after, bound, (*at.trace, bound)), -bound / found.weight, max(rise, change**2))


def _as_plain(at: MixturePosterior, covariance_type: str, k: int, d: int) -> checker.PlainPosterior:
    C = checker.as_matrices(at.covariances, covariance_type, k, d)
    return checker.PlainPosterior(at.concentration, at.mean_precision, at.means, np.broadcast_to(at.degrees, (k,)), C)


def _total_weight(block: Block) -> float:
    return float(block.w.sum())


def _joint_of_block(at: MixturePosterior, covariance_type: str, block: Block) -> Array:
    return log_joint(at, covariance_type, dense_block(block))


__all__ = ["BayesianGaussianMixture"]
