"""Principal component analysis, exact and certified.

    max over orthonormal B (k, d) of  tr B S Bᵀ,     S = Σ wᵢ (xᵢ - m)(xᵢ - m)ᵀ / (Σ w - 1)

One pass sums the scatter about a shift; the eigenvectors follow. Where directions are wanted whose variance squaring
would drown in rounding, a second pass merges triangular (QR) factors. With fewer rows than columns the rows' own
singular value decomposition serves.
References: Jolliffe, Principal Component Analysis (2002); Minka, Automatic choice of dimensionality for PCA (2000);
Tipping & Bishop, Probabilistic principal component analysis (1999), for the likelihood in `score`.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, eigh, svd
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from certifit.certificates import pca as certificates
from certifit.core import Array, Block, DataError, Estimator, Objective, Rows
from certifit.core.estimator import Attributes
from certifit.linalg.moments import check_overflow, scatter, triangle
from certifit.models.pca_choice import choose_dimension

SOLVERS = ("auto", "full", "covariance_eigh", "arpack", "randomized")
DROWNED = 1e-10  # variance relative to the largest below which the covariance's rounding shows


@dataclass(frozen=True)
class Spectrum:
    """The principal axes of weighted, centred rows."""

    count: int  # rows with w > 0
    weight: float  # Σ w
    mean: Array  # (d,)
    values: Array  # (m,) variances Σ w (v·(x - mean))² / Σ w, descending; exactly 0 where rounding is all there is
    vectors: Array  # (m, d)
    total: float  # sum of all variances
    S: Array | None  # (d, d) covariance (divided by Σ w), where it was formed


class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Principal component analysis.

    Parameters
    ----------
    n_components : int, float in (0, 1), 'mle' or None
        How many components; a fraction asks for that share of the variance, 'mle' for Minka's choice, None for all.
    whiten : bool, default=False
        Scale the components to unit variance in `transform`.
    svd_solver : 'auto', 'full', 'covariance_eigh', 'arpack' or 'randomized'
        scikit-learn's names. 'full' always takes the most accurate way (QR factors); the others give the exact answer
        from the covariance, which on block sums costs no more than an approximate one.
    tol : float, default=1e-9
        What the certificate must prove: variance given away, relative to the total.
    random_state, copy : ignored
        Nothing is random and the input is never changed; accepted so that scikit-learn code runs unchanged.

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

    def __init__(self, n_components=None, *, whiten=False, svd_solver="auto", tol=1e-9, random_state=None, copy=True):
        self.n_components = n_components
        self.whiten = whiten
        self.svd_solver = svd_solver
        self.tol = tol
        self.random_state = random_state
        self.copy = copy

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:  # noqa: ARG002
        if self.svd_solver not in SOLVERS:
            raise DataError(got=f"svd_solver={self.svd_solver!r}", wanted=f"one of {SOLVERS}")
        d, wanted = rows.n_features, self.n_components
        few = isinstance(wanted, Integral) and 0 <= int(wanted) < d // 3
        spectrum = decompose(rows, int(wanted) if few else d, self.svd_solver == "full")
        n = spectrum.weight
        if not n > 1:
            raise DataError(
                got=f"a total weight of {n:g} (n_samples={rows.n_rows})",
                wanted="more than 1 sample: a variance needs two",
                fix="Weights say how many times a row counts; do not normalise them.",
            )
        most = min(d, max(int(n), spectrum.count))  # a row of weight 2 counts as two rows
        k = self._check_n_components(spectrum, most)
        unbiased = n / (n - 1)
        values, B = complete(spectrum.values, spectrum.vectors, k)
        left = max(0.0, (spectrum.total - float(values.sum())) * unbiased)
        fitted = {
            "components_": B,
            "explained_variance_": values * unbiased,
            "explained_variance_ratio_": values / (spectrum.total or 1.0),
            "singular_values_": np.sqrt(values * n),
            "mean_": spectrum.mean,
            "n_components_": k,
            "n_samples_": rows.n_rows,
            "noise_variance_": left / (most - k) if k < most else 0.0,
        }
        return {**fitted, "certificate_": self._certificate(rows, spectrum, fitted)}

    def _check_n_components(self, s: Spectrum, most: int) -> int:
        k = self.n_components
        if k is None:
            return most
        if isinstance(k, Integral) and not isinstance(k, bool) and 0 <= int(k) <= most:
            return int(k)
        if k == "mle" or (isinstance(k, Real) and not isinstance(k, Integral) and 0 < float(k) < 1):
            return choose_dimension(k, s.values, s.total, s.weight, len(s.mean))
        raise DataError(
            got=f"n_components={k!r}",
            wanted=f"a whole number between 0 and min(n_samples, n_features)={most}, "
            "a fraction strictly between 0 and 1, 'mle' or None",
        )

    def _certificate(self, rows: Rows, s: Spectrum, fitted: Attributes) -> Any:
        B, k = fitted["components_"], fitted["n_components_"]
        if s.S is None:
            return certificates.certify(B, s.mean, fitted["explained_variance_"], self.tol, rows)
        hint = None
        if 0 < k < len(s.values) and s.values[k] > 0:
            hint = float((s.values[k - 1] + s.values[k]) / 2)
        checked = certificates.covariance_spectrum(s.S, B, hint)
        variances = fitted["explained_variance_"]
        return certificates.assemble(checked, B, s.mean, variances, s.mean, s.weight, self.tol, rows.dtype)

    def transform(self, X: Any) -> Array:
        """Codes z = B (x - mean), (n, k), whitened if asked."""
        return self._rows(X).map(partial(_encode, self.mean_, self._encoder()))

    def inverse_transform(self, X: Any) -> Array:
        """Rows from codes: x = mean + Bᵀ z."""
        check_is_fitted(self)
        Z = np.asarray(X)
        scale = np.sqrt(self.explained_variance_) if self.whiten else 1.0
        return (Z * scale) @ self.components_ + self.mean_

    def _encoder(self) -> Array:
        if not self.whiten:
            return self.components_
        deviation = np.sqrt(self.explained_variance_)
        real = deviation > np.finfo(float).eps * deviation.max(initial=0.0)  # a direction without variance stays 0
        return self.components_ * np.divide(1.0, deviation, out=np.zeros_like(deviation), where=real)[:, None]

    def get_covariance(self) -> Array:
        """The model's covariance: the components' variances, and the noise variance in all other directions."""
        check_is_fitted(self)
        extra = np.maximum(self.explained_variance_ - self.noise_variance_, 0.0)
        covariance = (self.components_.T * extra) @ self.components_
        covariance.flat[:: len(covariance) + 1] += self.noise_variance_
        return covariance

    def get_precision(self) -> Array:
        """Inverse of the model's covariance."""
        check_is_fitted(self)
        d, variances = len(self.mean_), self.explained_variance_
        smallest = min(variances.min(initial=np.inf), self.noise_variance_ if self.n_components_ < d else np.inf)
        if not smallest > d * np.finfo(float).eps * variances.max(initial=0.0):
            raise DataError(
                got="a singular covariance: some direction has no variance, so no density exists",
                wanted="positive variance in every direction",
                fix="Drop constant or collinear columns, or ask for fewer components.",
            )
        if self.n_components_ == d:
            return (self.components_.T / variances) @ self.components_
        shrink = 1 / self.noise_variance_ - 1 / np.maximum(variances, self.noise_variance_)
        precision = -(self.components_.T * shrink) @ self.components_
        precision.flat[:: d + 1] += 1 / self.noise_variance_
        return precision

    def score_samples(self, X: Any) -> Array:
        """Log-likelihood of each row under the probabilistic model N(mean, get_covariance())."""
        rows = self._rows(X)
        precision = self.get_precision()
        _, log_det = np.linalg.slogdet(precision)
        constant = 0.5 * (log_det - len(precision) * np.log(2 * np.pi))
        return constant - 0.5 * rows.map(partial(_mahalanobis, self.mean_, precision))

    def score(self, X: Any, y: Any = None) -> float:  # noqa: ARG002
        """Mean log-likelihood."""
        return float(self.score_samples(X).mean())

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:  # noqa: ARG002
        """Mean squared reconstruction error, summed row by row."""
        rows = self._rows(X, sample_weight=sample_weight)
        sums = rows.sum(partial(_reconstruction, self.mean_, self.components_))
        error = float(sums[0] / sums[1])
        return Objective(error, error, 0.0)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def decompose(rows: Rows, k: int, accurate: bool = False) -> Spectrum:
    """The k leading principal axes (and one more value, where it is free)."""
    if rows.n_rows < rows.n_features:
        return _from_rows(rows)
    s = scatter(rows)
    S = s.S / s.weight
    values, vectors = _leading(S, k)
    values, vectors = np.maximum(values[::-1], 0.0), vectors.T[::-1]
    moving = int((np.diag(S) > 0).sum())
    values[moving:] = 0.0  # constant columns
    if accurate or (values[: min(k, moving)] < DROWNED * values[0]).any():
        return _from_triangle(s.count, s.weight, s.mean, triangle(rows, s.mean))
    return Spectrum(s.count, s.weight, s.mean, values, _signed(vectors), float(np.trace(S)), S)


def _leading(S: Array, k: int) -> tuple[Array, Array]:
    """The k + 1 largest eigenvalues, ascending, and their vectors; all of them where that is as well."""
    d = len(S)
    if k < d:
        with suppress(LinAlgError):  # LAPACK's selective driver can fail where eigenvalues coincide
            return eigh(S, subset_by_index=[d - k - 1, d - 1], driver="evr")
    return eigh(S, driver="evd")


def _from_triangle(count: int, weight: float, mean: Array, R: Array) -> Spectrum:
    """From R with RᵀR the scatter: its singular values are accurate relative to the largest, not to its square."""
    _, sigma, vectors = svd(R, full_matrices=False)
    sigma[sigma <= 4 * max(R.shape) * np.finfo(float).eps * sigma[0]] = 0.0
    with np.errstate(over="ignore"):
        values = check_overflow(sigma**2) / weight
    return Spectrum(count, weight, mean, values, _signed(vectors), float(values.sum()), None)


def _from_rows(rows: Rows) -> Spectrum:
    """Fewer rows than columns: the centred rows' own decomposition (a triangle of n rows)."""
    data = rows.load()
    w, X = data.w, _dense(data.X)
    origin = X[0].astype(np.float64)
    Z = X - origin
    delta = w @ Z / w.sum()
    R = np.sqrt(w)[:, None] * (Z - delta)
    return _from_triangle(int((w > 0).sum()), float(w.sum()), origin + delta, R)


def complete(values: Array, vectors: Array, k: int) -> tuple[Array, Array]:
    """The k leading axes; where fewer have variance, the rest is a basis that depends on the space they span alone.

    Columns of the projector on what is left are orthonormalised in order, so that rounding does not choose.
    """
    r = min(k, int((values > 0).sum()))
    basis = vectors[:r]
    rest: list[Array] = []
    for column in np.eye(vectors.shape[1]) if k > r else ():
        if len(rest) == k - r:
            break
        for _ in range(2):  # twice is enough for orthogonality to rounding
            for known in (basis, np.array(rest).reshape(-1, len(column))):
                column = column - known.T @ (known @ column)
        length = np.linalg.norm(column)
        if length > 1e-3:
            rest.append(column / length)
    extra = _signed(np.array(rest).reshape(-1, vectors.shape[1]))
    return np.append(values[:r], np.zeros(k - r)), np.concatenate([basis, extra])


def _signed(vectors: Array) -> Array:
    """Make the first of each row's largest entries positive (largest up to rounding, so that ties do not flip)."""
    size = np.abs(vectors)
    first = np.argmax(size >= (1 - 1e-6) * size.max(axis=1, keepdims=True, initial=0.0), axis=1)
    signs = np.sign(vectors[np.arange(len(vectors)), first])
    return vectors * np.where(signs == 0, 1.0, signs)[:, None]


def _encode(mean: Array, B: Array, block: Block) -> Array:
    X = block.X
    Z = X - mean if isinstance(X, np.ndarray) else None
    codes = Z @ B.T if Z is not None else X @ B.T - mean @ B.T
    return codes.astype(X.dtype, copy=False)


def _dense(X: Any) -> Array:
    return X if isinstance(X, np.ndarray) else X.toarray()


def _mahalanobis(mean: Array, precision: Array, block: Block) -> Array:
    Z = _dense(block.X) - mean
    return (Z @ precision * Z).sum(axis=1)


def _reconstruction(mean: Array, B: Array, block: Block) -> Array:
    Z = _dense(block.X) - mean
    return np.array([block.w @ ((Z - Z @ B.T @ B) ** 2).sum(axis=1), block.w.sum()])
