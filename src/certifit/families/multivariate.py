"""The Gaussian of vectors with a full covariance, whose statistics are the columns and their products in pairs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Self

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, cholesky, eigvalsh, solve_triangular

from certifit.exceptions import DataError
from certifit.families import fitting
from certifit.families.family import Family, FitRequest
from certifit.families.gaussian import LOG_2PI, blend
from certifit.families.stable import NEAR, log1pmx
from certifit.families.support import VECTORS
from certifit.rows import Array, Block, Rows, Sums


@dataclass(frozen=True, eq=False)
class MultivariateGaussian(Family):
    """The multivariate Gaussian describes vectors by a mean m (d,) and a covariance S (d, d).

    η = (S⁻¹m, -½ (S⁻¹)ᵢᵢ and -(S⁻¹)ᵢⱼ for i < j), T = (x, xᵢxⱼ for i <= j, row by row), A = ½ mᵀS⁻¹m + ½ log det S.
    Fisher information is in the means and the entries i <= j of the covariance.

    >>> MultivariateGaussian.fit([[0.0, 0.0], [2.0, 0.0], [1.0, 3.0]]).member.covariance.round(6).tolist()
    [[0.666667, 0.0], [0.0, 2.0]]
    """

    mean: Array
    covariance: Array
    support = VECTORS
    unbiased_methods = ("ml", "moments")

    def __post_init__(self) -> None:
        self._set(mean=self.mean, covariance=self.covariance)
        S, d = self.covariance, np.size(self.mean)
        if np.shape(self.mean) != (d,) or np.shape(S) != (d, d) or not np.isfinite(self.mean).all():
            self._refuse("a mean (d,) of finite numbers and a covariance (d, d)")
        if not np.isfinite(S).all() or np.abs(S - S.T).max() > 1e-12 * np.abs(S).max():
            self._refuse("a symmetric, finite covariance")
        try:
            scale = np.sqrt(np.diag(S)) if (np.diag(S) > 0).all() else np.full(d, np.nan)
            pivots = np.diag(cholesky(S / np.outer(scale, scale), lower=True))
            singular = bool(pivots.min() ** 2 <= 8 * d * np.finfo(float).eps)
        except (LinAlgError, ValueError):
            singular = True
        if singular:
            raise DataError(
                got=f"a covariance ({d}, {d}) that is not positive definite",
                wanted="variance in every direction",
                fix=_singular_advice(),
            )

    @cached_property
    def _L(self) -> Array:
        return cholesky(self.covariance, lower=True)

    @cached_property
    def precision(self) -> Array:
        """Return the inverse of the covariance (d, d)."""
        return cho_solve((self._L, True), np.eye(len(self.mean)))

    @property
    def _pairs(self) -> tuple[Array, Array]:
        return np.triu_indices(len(self.mean))

    @property
    def _log_det(self) -> float:
        return 2 * float(np.log(np.diag(self._L)).sum())

    @property
    def natural(self) -> Array:
        i, j = self._pairs
        return np.concatenate([self.precision @ self.mean, -np.where(i == j, 0.5, 1.0) * self.precision[i, j]])

    @property
    def mean_parameters(self) -> Array:
        return np.concatenate([self.mean, (self.covariance + np.outer(self.mean, self.mean))[self._pairs]])

    @classmethod
    def _from_natural(cls, eta: Array) -> Self:
        first, P = unpack(eta)
        P = -(P + np.diag(np.diag(P)))
        try:
            S = cho_solve((cholesky(P, lower=True), True), np.eye(len(P)))
        except LinAlgError as error:
            raise DataError(
                got="natural parameters whose matrix is not negative definite",
                wanted="one that is",
                fix=_singular_advice(),
            ) from error
        S = (S + S.T) / 2
        return cls(S @ first, S)

    @classmethod
    def _from_mean(cls, tau: Array) -> Self:
        m, square = unpack(tau)
        return cls(m, square - np.outer(m, m))

    def log_normaliser(self) -> float:
        return 0.5 * float(self.mean @ self.precision @ self.mean) + 0.5 * self._log_det

    def T_covariance(self) -> Array:
        """Return the covariance of T by Isserlis' theorem, which gives the fourth moments of a Gaussian."""
        m, S = self.mean, self.covariance
        i, j = self._pairs
        cross = S[:, i] * m[j] + S[:, j] * m[i]
        raw = S + np.outer(m, m)
        products = _pair_products(raw, i, j) - 2 * np.outer(m[i] * m[j], m[i] * m[j])
        return np.block([[S, cross], [cross.T, products]])

    def fisher_information(self) -> Array:
        i, j = self._pairs
        factor = np.where(i == j, 0.5, 1.0)  # an entry off the diagonal occurs twice in S
        in_S = _pair_products(self.precision, i, j) * np.outer(factor, factor)
        zero = np.zeros((len(self.mean), len(i)))
        return np.block([[self.precision, zero], [zero.T, in_S]])

    def _T(self, x: Array) -> Array:
        i, j = self._pairs
        return np.concatenate([x, x[:, i] * x[:, j]], axis=1)

    def _log_h(self, x: Array) -> Array:
        return np.full(len(x), -0.5 * LOG_2PI * len(self.mean))

    def _log_density(self, x: Array) -> Array:
        z = solve_triangular(self._L, (x - self.mean).T, lower=True)
        return -0.5 * ((z * z).sum(axis=0) + LOG_2PI * len(self.mean) + self._log_det)

    def entropy(self) -> float:
        return 0.5 * (len(self.mean) * (1 + LOG_2PI) + self._log_det)

    def _kl(self, other: Self) -> float:
        L = other._L
        z = solve_triangular(L, self.mean - other.mean, lower=True)
        half = solve_triangular(L, self.covariance - other.covariance, lower=True)
        t = eigvalsh(solve_triangular(L, half.T, lower=True))  # eigenvalues of S₂⁻¹S₁ - I
        if np.abs(t).max() <= NEAR:
            spread = -float(log1pmx(t).sum())
        else:
            ratio = solve_triangular(L, self._L, lower=True)
            spread = float((ratio * ratio).sum()) - len(z) - (self._log_det - other._log_det)
        return 0.5 * (spread + float(z @ z))

    def _sample(self, rng: np.random.Generator, size: int) -> Array:
        return self.mean + rng.standard_normal((size, len(self.mean))) @ self._L.T

    @classmethod
    def _estimate(cls, rows: Rows, request: FitRequest) -> Self:
        n, m = fitting.centre(rows, VECTORS)
        sums = rows.sum(partial(_scatter, m))
        off = sums.z / n
        m = m + off
        S = (sums.zz / n - np.outer(off, off)) * fitting.bias_factor(n, request.unbiased)
        if request.prior is not None:
            imagined = cls.from_mean(request.prior.mean)
            m, S = blend(n, m, S, request.prior.strength, imagined.mean, imagined.covariance)
        return cls(m, S)


def _singular_advice() -> str:
    return "Drop columns that are constant or combinations of others, use DiagonalGaussian, or add a prior."


@dataclass(frozen=True)
class _Scatter(Sums):
    """The sums over rows of which mean and covariance are made, about a centre m."""

    z: Array  # Σ w (x - m)  (d,)
    zz: Array  # Σ w (x - m)(x - m)ᵀ  (d, d)


def _scatter(m: Array, block: Block) -> _Scatter:
    Z = np.asarray(block.X, dtype=np.float64) - m  # float64 also for float32 rows, so that the moments match
    V = Z * np.sqrt(block.w)[:, None]
    return _Scatter(block.w @ Z, V.T @ V)


def unpack(flat: Array) -> tuple[Array, Array]:
    """Return a vector (d,) and a symmetric matrix (d, d) from their entries, those of the matrix for i <= j."""
    d = int(np.sqrt(2 * len(flat) + 2.25) - 1.5)
    if d + d * (d + 1) // 2 != len(flat):
        raise DataError(got=f"{len(flat)} parameters", wanted="d + d (d + 1)/2 for some dimension d")
    S = np.zeros((d, d))
    S[np.triu_indices(d)] = flat[d:]
    return flat[:d], S + np.triu(S, 1).T


def _pair_products(P: Array, i: Array, j: Array) -> Array:
    """Return P[i, k] P[j, l] + P[i, l] P[j, k] for all pairs (i, j) and (k, l)."""
    return P[np.ix_(i, i)] * P[np.ix_(j, j)] + P[np.ix_(i, j)] * P[np.ix_(j, i)]
