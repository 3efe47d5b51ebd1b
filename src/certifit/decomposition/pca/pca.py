"""Principal component analysis, certified.

    max over orthonormal B (k, d) of  tr B S Bᵀ,     S = Σ wᵢ (xᵢ - m)(xᵢ - m)ᵀ / (Σ w - 1)

Equivalently, the k-dimensional plane with the smallest mean squared distance to the rows. Codes are z = B (x - m),
and x̃ = m + Bᵀ z is the row that a code stands for. `principal_axes` finds B.
References: Jolliffe, Principal Component Analysis (2002); Minka, Automatic choice of dimensionality for PCA (2000);
Tipping & Bishop, Probabilistic principal component analysis (1999), for the likelihood in `score`.
"""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from certifit.checkers.decomposition import pca as certificates
from certifit.checkers.decomposition.captured_variance import PCACheckTuning, measure_covariance
from certifit.core import Attributes, Certificate, Estimator, Objective, certified
from certifit.core.settings import TOL, Setting, Settings
from certifit.decomposition.pca.choose_components import choose_dimension, held_out_likelihood
from certifit.decomposition.pca.linear_codes import LinearCodes, check_codes, encode, error_sums, weighted_distances
from certifit.decomposition.pca.principal_axes import (
    SOLVERS,
    AxesWanted,
    PCATuning,
    PrincipalAxes,
    complete,
    decompose,
    most_components,
)
from certifit.exceptions import DataError
from certifit.rows import Array, Rows


class PCA(LinearCodes, Estimator):
    """Principal component analysis.

    Parameters
    ----------
    n_components : int, float in (0, 1), 'mle', 'cv' or None
        The number of components. A fraction asks for as many as have that share of the variance, 'mle' for Minka's
        choice, 'cv' for the number under which held-out rows are likeliest (five folds), None for all (with
        svd_solver='arpack', all but one).
    whiten : bool, default=False
        Scale the components to unit variance in `transform`.
    svd_solver : 'auto', 'full', 'covariance_eigh', 'gram', 'arpack', 'randomized' or 'power'
        What is decomposed, and how. 'full': the rows' triangular factor, the most accurate way. 'covariance_eigh':
        the covariance (d, d). 'gram': the rows' inner products (n, n). 'arpack', 'randomized' (block Krylov) and
        'power' (power iteration and deflation) work on the smaller of the two, or on neither beyond 4096 rows and
        columns, where each step is a pass over the rows. 'auto' takes the cheapest exact way where there is one.
    tol : float, default=1e-9
        Most variance that another basis could capture beyond this one, relative to the variance that is discarded;
        iterative solvers stop there, and the certificate proves it.
    random_state : int, RandomState or None
        Seed of the random start of iterative solvers.
    copy, iterated_power, n_oversamples, power_iteration_normalizer : ignored
        The input is never changed and solvers iterate until `tol`; accepted so that scikit-learn code runs unchanged.

    Attributes
    ----------
    components_ : (k, d) orthonormal rows; the first of each one's largest entries is positive
    explained_variance_, explained_variance_ratio_, singular_values_ : (k,)
    mean_ : (d,)
    n_components_, n_samples_ : int
    noise_variance_ : float, average discarded variance
    certificate_ : Certificate

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from certifit import PCA
    >>> X, _ = load_iris(return_X_y=True)
    >>> pca = PCA(n_components=2).fit(X)
    >>> pca.explained_variance_ratio_.round(4)
    array([0.9246, 0.0531])
    >>> pca.certificate_.holds
    True
    """

    sparse = True
    settings: ClassVar[Settings] = {
        "n_components": Setting(float, least=0, choices=("mle", "cv"), none=True),
        "tol": TOL,
        "svd_solver": Setting(choices=SOLVERS),
    }
    ignored: ClassVar[tuple[str, ...]] = ("copy", "iterated_power", "n_oversamples", "power_iteration_normalizer")
    differences: ClassVar[dict[str, str]] = {
        "tol": "It is what every solver must prove, not ARPACK's own tolerance alone.",
        "svd_solver": "Any solver takes sparse rows, and iterates until tol is proved.",
        "components_": "Fitted attributes are float64 for float32 rows too; codes have the type of the rows.",
        "score": "The density does not depend on whiten, and where the model's covariance is singular it is refused: "
        "there is no density.",
    }
    _tuning: ClassVar[PCATuning] = PCATuning()

    def __init__(
        self,
        n_components=None,
        *,
        whiten=False,
        svd_solver="auto",
        tol=1e-9,
        random_state=None,
        copy=True,
        iterated_power="auto",
        n_oversamples=10,
        power_iteration_normalizer="auto",
    ):
        self.n_components = n_components
        self.whiten = whiten
        self.svd_solver = svd_solver
        self.tol = tol
        self.random_state = random_state
        self.copy = copy
        self.iterated_power = iterated_power
        self.n_oversamples = n_oversamples
        self.power_iteration_normalizer = power_iteration_normalizer

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        wanted = self.n_components
        if isinstance(wanted, str) and wanted == "cv":
            wanted = int(np.argmax(held_out_likelihood(rows)))
        whole = isinstance(wanted, Integral) and int(wanted) >= 0
        self._check_iterative(wanted, min(rows.n_rows, rows.n_features))
        k = min(int(wanted) if whole else rows.n_features, rows.n_rows, rows.n_features)
        seed = check_random_state(self.random_state).randint(2**31)
        axes = decompose(rows, self.svd_solver, AxesWanted(k, self.tol, seed, tuning=self._tuning))
        if wanted is None and self.svd_solver == "arpack":
            # as in scikit-learn, whose ARPACK finds all directions but one
            wanted = max(0, most_components(axes.count, axes.weight, rows.n_features) - 1)
        fitted = fitted_attributes(axes, wanted, rows.n_rows)
        if axes.S is None:
            check = PCACheckTuning(largest_order=self._tuning.largest_order)
            certificate = certified(
                certificates.certify, _claim(fitted), self.tol, rows, self.svd_solver, tuning=check
            )
        else:
            certificate = certified(certificate_from_covariance, axes, fitted, self.tol, rows.dtype)
        return {**fitted, "certificate_": certificate}

    def _check_iterative(self, wanted: Any, most: int) -> None:
        """Refuse what scikit-learn's iterative solvers cannot do: their users expect to hear of it."""
        solver = self.svd_solver
        if solver not in ("arpack", "randomized") or wanted is None:
            return
        whole = isinstance(wanted, Integral) and not isinstance(wanted, bool)
        if isinstance(wanted, str):
            words = f"a whole number: n_components={wanted!r} cannot be a string with svd_solver={solver!r}"
        elif not whole or not 1 <= int(wanted) <= most:
            words = (
                f"a number that must be between 1 and min(n_samples, n_features)={most} with svd_solver={solver!r}"
            )
        elif solver == "arpack" and int(wanted) == most:
            words = (
                f"fewer: n_components={wanted} must be strictly less than min(n_samples, n_features)={most} with "
                "svd_solver='arpack'"
            )
        else:
            return
        raise DataError(got=f"n_components={wanted!r}", wanted=words, fix="svd_solver='full' takes any.")

    def transform(self, X: Any) -> Array:
        """Return the codes z = B (x - mean), (n, k), scaled to unit variance where `whiten`."""
        return self._rows(X).map(partial(encode, self.mean_, self._encoder()))

    def inverse_transform(self, X: Any) -> Array:
        """Return the rows of codes, x = mean + Bᵀ z."""
        check_is_fitted(self)
        Z = check_codes(X, len(self.components_))
        scale = np.sqrt(self.explained_variance_) if self.whiten else 1.0
        return (Z * scale) @ self.components_ + self.mean_

    def _encoder(self) -> Array:
        """Return the matrix (k, d) that turns centred rows into codes."""
        if not self.whiten:
            return self.components_
        deviation = np.sqrt(self.explained_variance_)
        # Codes along a direction without variance are 0.
        varies = deviation > np.finfo(float).eps * deviation.max(initial=0.0)
        return self.components_ * np.divide(1.0, deviation, out=np.zeros_like(deviation), where=varies)[:, None]

    def get_covariance(self) -> Array:
        """Return the model's covariance: the variances along the components, and the noise variance elsewhere."""
        check_is_fitted(self)
        extra = np.maximum(self.explained_variance_ - self.noise_variance_, 0.0)
        covariance = (self.components_.T * extra) @ self.components_
        covariance.flat[:: len(covariance) + 1] += self.noise_variance_
        return covariance

    def get_precision(self) -> Array:
        """Return the inverse of the model's covariance."""
        check_is_fitted(self)
        variances, noise = self._density()
        precision = (self.components_.T / variances) @ self.components_
        if self.n_components_ < len(self.mean_):
            precision -= self.components_.T @ self.components_ / noise
            precision.flat[:: len(precision) + 1] += 1 / noise
        return precision

    def _density(self) -> tuple[Array, float]:
        """Return the model's variances (k,) along the components and elsewhere; refuse variances of zero.

        What the certificate allows a variance beside the total for rounding counts as zero: no density hangs on it.
        """
        d, variances = len(self.mean_), np.maximum(self.explained_variance_, self.noise_variance_)
        smallest = min(variances.min(initial=np.inf), self.noise_variance_ if self.n_components_ < d else np.inf)
        if not smallest > 32 * (d + 16) * np.finfo(float).eps * variances.sum():
            raise DataError(
                got="a singular covariance: some direction has no variance, so no density exists",
                wanted="positive variance in every direction",
                fix="Drop constant or collinear columns, or ask for fewer components.",
            )
        return variances, float(self.noise_variance_)

    def score_samples(self, X: Any) -> Array:
        """Return the log-likelihood of each row under the probabilistic model N(mean, get_covariance())."""
        rows = self._rows(X)
        variances, noise = self._density()
        rest = len(self.mean_) - len(variances)
        log_det = np.log(variances).sum() + (rest * np.log(noise) if rest else 0.0)
        weights = 1 / variances, 1 / noise if rest else 0.0
        distances = rows.map(partial(weighted_distances, self.mean_, self.components_, *weights))
        return -0.5 * (len(self.mean_) * np.log(2 * np.pi) + log_det + distances)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log-likelihood of these rows."""
        return float(self.score_samples(X).mean())

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """Return the mean squared reconstruction error, summed row by row."""
        rows = self._rows(X, sample_weight=sample_weight)
        sums = rows.sum(partial(error_sums, self.mean_, self.components_))
        error = float(sums[0] / sums[1])
        return Objective(error, error, 0.0)


def count_components(wanted: Any, axes: PrincipalAxes) -> int:
    """Return the number of components that the setting `n_components` stands for."""
    most = most_components(axes.count, axes.weight, len(axes.mean))
    if wanted is None:
        return most
    if isinstance(wanted, Integral) and not isinstance(wanted, bool) and 0 <= int(wanted) <= most:
        return int(wanted)
    fraction = isinstance(wanted, Real) and not isinstance(wanted, Integral) and 0 < float(wanted) < 1
    if fraction or (isinstance(wanted, str) and wanted == "mle"):
        return choose_dimension(wanted, axes.values, axes.total, axes.weight, len(axes.mean))
    raise DataError(
        got=f"n_components={wanted!r}",
        wanted=f"a whole number between 0 and min(n_samples, n_features)={most}, "
        "a fraction strictly between 0 and 1, 'mle', 'cv' or None",
        fix=f"(n_components={wanted!r} must be between 0 and min(n_samples, n_features)={most} with "
        "svd_solver='full'.)",
    )


def fitted_attributes(axes: PrincipalAxes, wanted: Any, n_rows: int) -> Attributes:
    """Return the fitted attributes, named as in scikit-learn, from the principal axes."""
    n = axes.weight
    if not n > 1:
        raise DataError(
            got=f"a total weight of {n:g} (n_samples={n_rows})",
            wanted="more than 1 sample: a variance needs two",
            fix="Weights say how many times a row counts; do not normalise them.",
        )
    k, most = count_components(wanted, axes), most_components(axes.count, n, len(axes.mean))
    unbiased = n / (n - 1)
    values, B = complete(axes.values, axes.vectors, k)
    left = max(0.0, (axes.total - float(values.sum())) * unbiased)
    return {
        "components_": B,
        "explained_variance_": values * unbiased,
        "explained_variance_ratio_": values / (axes.total or 1.0),
        "singular_values_": np.sqrt(values * n),
        "mean_": axes.mean,
        "n_samples_": n_rows,
        "noise_variance_": left / (most - k) if k < most else 0.0,
    }


def certificate_from_covariance(axes: PrincipalAxes, fitted: Attributes, tol: float, dtype: Any) -> Certificate:
    """Return the certificate from the covariance that the fit has summed, without another pass over the rows."""
    assert axes.S is not None
    k, hint = len(fitted["components_"]), None
    if 0 < k < len(axes.values) and axes.values[k] > 0:
        hint = float((axes.values[k - 1] + axes.values[k]) / 2)
    variance = measure_covariance(axes.S, fitted["components_"], hint)
    measured = certificates.PCAMeasured(axes.mean, axes.weight, variance, axes.count)
    return certificates.certify_measured(_claim(fitted), measured, tol, dtype)


def _claim(fitted: Attributes) -> certificates.PCAClaim:
    repeated = ("explained_variance_ratio_", "singular_values_", "noise_variance_")
    return certificates.PCAClaim(
        *(fitted[name] for name in ("components_", "mean_", "explained_variance_", *repeated))
    )
