"""Gaussians of numbers, with a free or a known variance, and of vectors whose columns are independent.

The maximum likelihood variance divides by the number of rows n and is on average (n - 1)/n of the true one;
`fit(..., unbiased=True)` divides by n - 1. Full covariances are in `families.multivariate`.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from certifit.exceptions import DataError
from certifit.families import fitting
from certifit.families.family import Family, FitRequest, MeanFamily
from certifit.families.stable import excess
from certifit.families.support import REALS, VECTORS
from certifit.rows import Array, Rows

LOG_2PI = float(np.log(2 * np.pi))


@dataclass(frozen=True, eq=False)
class GaussianFixedVariance(MeanFamily):
    """A Gaussian whose variance v is known has η = mean/v, T = x, A = mean²/(2v), h = N(x | 0, v).

    >>> GaussianFixedVariance.fit([1.0, 2.0, 6.0], variance=4.0).member
    GaussianFixedVariance(mean=3.0, variance=4.0)
    """

    mean: float
    variance: float
    known = ("variance",)
    support = REALS

    def __post_init__(self) -> None:
        self._set(mean=self.mean, variance=self.variance)
        if not (np.isfinite(self.mean) and 0 < self.variance < np.inf):
            self._refuse("a finite mean and a positive, finite variance")

    @property
    def natural(self) -> Array:
        return np.array([self.mean / self.variance])

    @classmethod
    def _from_natural(cls, eta: Array, variance: float) -> Self:
        return cls(eta[0] * variance, variance)

    @classmethod
    def _from_mean(cls, tau: Array, variance: float) -> Self:
        return cls(tau[0], variance)

    def log_normaliser(self) -> float:
        return self.mean**2 / (2 * self.variance)

    def fisher_information(self) -> Array:
        return np.array([[1 / self.variance]])

    def _log_h(self, x: Array) -> Array:
        return -0.5 * (x * x / self.variance + LOG_2PI + np.log(self.variance))

    def _log_density(self, x: Array) -> Array:
        return self._log_h(x - self.mean)

    def entropy(self) -> float:
        return 0.5 * (1 + LOG_2PI + float(np.log(self.variance)))

    def _kl(self, other: Self) -> float:
        z = self.mean - other.mean
        return z * z / (2 * self.variance)

    def _sample(self, rng: np.random.Generator, size: int) -> Array:
        return rng.normal(self.mean, np.sqrt(self.variance), size)


@dataclass(frozen=True, eq=False)
class IndependentGaussians(Family):
    """Gaussian columns are independent here: η = (m/v, -1/(2v)), T = (x, x²), A = Σ m²/(2v) + ½ log v."""

    mean: Any
    variance: Any
    unbiased_methods = ("ml", "moments")

    def __post_init__(self) -> None:
        self._set(mean=self.mean, variance=self.variance)
        if np.ndim(self.mean) != self.support.vector or self._v.shape != self._m.shape:
            self._refuse("as many variances as means")
        if not (np.isfinite(self._m).all() and np.all((self._v > 0) & np.isfinite(self._v))):
            self._refuse(
                "finite means and positive, finite variances",
                "Values that are all equal have no most likely Gaussian: the limit is a point mass. "
                "Drop such columns, fix the variance (GaussianFixedVariance), or add a prior.",
            )

    @classmethod
    @abstractmethod
    def _from_columns(cls, m: Array, v: Array) -> Self:
        """Return the member with these means (d,) and variances (d,)."""

    @property
    def _m(self) -> Array:
        return np.atleast_1d(self.mean)

    @property
    def _v(self) -> Array:
        return np.atleast_1d(self.variance)

    @property
    def natural(self) -> Array:
        return np.concatenate([self._m / self._v, -0.5 / self._v])

    @property
    def mean_parameters(self) -> Array:
        return np.concatenate([self._m, self._m**2 + self._v])

    @classmethod
    def _from_natural(cls, eta: Array) -> Self:
        first, second = halves(eta)
        with np.errstate(divide="ignore"):
            v = -0.5 / second
        return cls._from_columns(first * v, v)

    @classmethod
    def _from_mean(cls, tau: Array) -> Self:
        m, square = halves(tau)
        return cls._from_columns(m, square - m**2)

    def log_normaliser(self) -> float:
        return float((self._m**2 / (2 * self._v) + 0.5 * np.log(self._v)).sum())

    def T_covariance(self) -> Array:
        m, v = self._m, self._v
        cross = np.diag(2 * m * v)
        return np.block([[np.diag(v), cross], [cross, np.diag(2 * v**2 + 4 * m**2 * v)]])

    def fisher_information(self) -> Array:
        return np.diag(np.concatenate([1 / self._v, 0.5 / self._v**2]))

    def _T(self, x: Array) -> Array:
        x = x.reshape(-1, len(self._m))
        return np.concatenate([x, x * x], axis=1)

    def _log_h(self, x: Array) -> Array:
        return np.full(x.shape[:1], -0.5 * LOG_2PI * len(self._m))

    def _log_density(self, x: Array) -> Array:
        z = (x[..., None] if np.ndim(self.mean) == 0 else x) - self._m
        return -0.5 * (z * z / self._v + LOG_2PI + np.log(self._v)).sum(axis=-1)

    def entropy(self) -> float:
        return 0.5 * float((1 + LOG_2PI + np.log(self._v)).sum())

    def _kl(self, other: Self) -> float:
        z = self._m - other._m
        return 0.5 * float((excess(other._v, self._v) + z * z / other._v).sum())

    def _sample(self, rng: np.random.Generator, size: int) -> Array:
        return rng.normal(self.mean, np.sqrt(self.variance), (size, *np.shape(self.mean)))

    @classmethod
    def _estimate(cls, rows: Rows, request: FitRequest) -> Self:
        n, m, v = fitting.mean_and_variance(rows, cls.support_of(), request.unbiased)
        if request.prior is not None:
            imagined = cls.from_mean(request.prior.mean)
            m, v = blend(n, m, v, request.prior.strength, imagined._m, imagined._v)
        return cls._from_columns(m, v)


def halves(values: Array) -> tuple[Array, Array]:
    """Split parameters (2d,) into those of the columns and those of their squares."""
    if values.ndim != 1 or len(values) % 2:
        raise DataError(got=f"parameters of shape {values.shape}", wanted="two for each column")
    return values[: len(values) // 2], values[len(values) // 2 :]


def blend(n: float, m: Array, v: Array, strength: float, prior_mean: Array, prior_v: Array) -> tuple[Array, Array]:
    """Return mean and variance (or covariance) of n rows and `strength` imagined rows together."""
    if prior_mean.shape != m.shape:
        raise DataError(got=f"a prior for {len(prior_mean)} columns", wanted=f"one for {len(m)}")
    share = n / (n + strength)
    gap = m - prior_mean
    between = gap * gap if v.ndim == 1 else np.outer(gap, gap)
    return m - (1 - share) * gap, share * v + (1 - share) * prior_v + share * (1 - share) * between


class Gaussian(IndependentGaussians):
    """The Gaussian distribution of numbers has η = (mean/variance, -1/(2 variance)) and T = (x, x²).

    >>> Gaussian.fit([1.0, 2.0, 6.0]).member.variance, Gaussian.fit([1.0, 2.0, 6.0], unbiased=True).member.variance
    (4.666666666666667, 7.0)
    """

    support = REALS

    @classmethod
    def _from_columns(cls, m: Array, v: Array) -> Self:
        return cls(m[0], v[0])


class DiagonalGaussian(IndependentGaussians):
    """A diagonal Gaussian describes vectors whose columns are independent: `mean` (d,), `variance` (d,).

    >>> DiagonalGaussian.fit([[1.0, 0.0], [3.0, 4.0]]).member.variance.tolist()
    [1.0, 4.0]
    """

    support = VECTORS

    @classmethod
    def _from_columns(cls, m: Array, v: Array) -> Self:
        return cls(m, v)

    @property
    def covariance(self) -> Array:
        return np.diag(self.variance)


class SphericalGaussian(IndependentGaussians):
    """A spherical Gaussian of vectors has one variance v for all directions: η = (m/v, -1/(2v)), T = (x, |x|²).

    >>> SphericalGaussian.fit([[1.0, 0.0], [3.0, 4.0]]).member.variance
    2.5
    """

    support = VECTORS

    @classmethod
    def _from_columns(cls, m: Array, v: Array) -> Self:
        return cls(m, v.mean())

    @property
    def _v(self) -> Array:
        return np.full(len(self.mean), self.variance)

    @property
    def _sum_squares(self) -> Array:
        """Return the matrix (2d, d + 1) that takes (x, x²) to (x, |x|²)."""
        d = len(self.mean)
        return np.block([[np.eye(d), np.zeros((d, 1))], [np.zeros((d, d)), np.ones((d, 1))]])

    @property
    def natural(self) -> Array:
        return np.append(self.mean, -0.5) / self.variance

    @property
    def mean_parameters(self) -> Array:
        return super().mean_parameters @ self._sum_squares

    @classmethod
    def _from_natural(cls, eta: Array) -> Self:
        d = len(eta) - 1  # the last is shared by all columns
        return super()._from_natural(np.append(eta[:d], np.full(d, eta[d])))

    @classmethod
    def _from_mean(cls, tau: Array) -> Self:
        m = tau[:-1]
        return cls(m, (tau[-1] - m @ m) / len(m))

    def T_covariance(self) -> Array:
        return self._sum_squares.T @ super().T_covariance() @ self._sum_squares

    def fisher_information(self) -> Array:
        return self._sum_squares.T @ super().fisher_information() @ self._sum_squares

    def _T(self, x: Array) -> Array:
        return super()._T(x) @ self._sum_squares

    @property
    def covariance(self) -> Array:
        return np.diag(self._v)
