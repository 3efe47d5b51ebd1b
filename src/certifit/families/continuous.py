"""The families of positive numbers: exponential, gamma and inverse Gaussian.

Fits are written in terms of small differences (log E x - E log x, E 1/x - 1/E x), which are summed directly because
subtracting two means would lose their digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np
from scipy.special import digamma, exp1, gammaln, polygamma

from certifit.exceptions import DataError
from certifit.families import fitting
from certifit.families.family import Family, FitRequest, MeanFamily, pair
from certifit.families.stable import (
    excess,
    factorial_error,
    gamma_bregman,
    gamma_entropy_term,
    kl_term,
    log_minus_digamma,
    ratio_gap,
    trigamma_excess,
)
from certifit.families.support import NOT_NEGATIVE, POSITIVE
from certifit.rows import Array, Rows


@dataclass(frozen=True, eq=False)
class Exponential(MeanFamily):
    """The exponential distribution of waiting times at a constant rate, x >= 0, has η = -rate, T = x, A = -log rate.

    >>> Exponential.fit([1.0, 2.0, 3.0]).member
    Exponential(rate=0.5)
    """

    rate: float
    support = NOT_NEGATIVE

    def __post_init__(self) -> None:
        self._set(rate=self.rate)
        if not 0 < self.rate < np.inf:
            self._refuse("a positive, finite rate")

    @property
    def mean(self) -> float:
        return 1 / self.rate

    @property
    def variance(self) -> float:
        return 1 / self.rate**2

    @property
    def natural(self) -> Array:
        return np.array([-self.rate])

    @classmethod
    def _from_natural(cls, eta: Array) -> Self:
        return cls(-eta[0])

    @classmethod
    def _from_mean(cls, tau: Array) -> Self:
        if not tau[0] > 0:
            raise DataError(got=f"a mean of {tau[0]:g}", wanted="a positive mean", fix=_constant_advice())
        return cls(1 / tau[0])

    def log_normaliser(self) -> float:
        return -float(np.log(self.rate))

    def fisher_information(self) -> Array:
        return np.array([[1 / self.rate**2]])

    def _log_h(self, x: Array) -> Array:
        return np.zeros_like(x)

    def _log_density(self, x: Array) -> Array:
        return np.log(self.rate) - self.rate * x

    def entropy(self) -> float:
        return 1 - float(np.log(self.rate))

    def _kl(self, other: Self) -> float:
        return float(excess(self.rate, other.rate))

    def _sample(self, rng: np.random.Generator, size: int) -> Array:
        return rng.exponential(1 / self.rate, size)


@dataclass(frozen=True, eq=False)
class Gamma(Family):
    """The gamma distribution of positive numbers has a density proportional to x^(shape - 1) e^(-rate x).

    η = (shape, -rate), T = (log x, x), A = log Γ(shape) - shape log rate, h = 1/x. The most likely shape a solves
    log a - ψ(a) = log mean(x) - mean(log x), which Newton's method finds.

    >>> fit = Gamma.fit([0.5, 1.0, 2.0, 4.5])
    >>> round(fit.member.mean, 12), fit.certificate.holds
    (2.0, True)
    """

    shape: float
    rate: float
    support = POSITIVE
    unbiased_methods = ("moments",)

    def __post_init__(self) -> None:
        self._set(shape=self.shape, rate=self.rate)
        if not (0 < self.shape < np.inf and 0 < self.rate < np.inf):
            self._refuse("a positive, finite shape and rate")

    @property
    def mean(self) -> float:
        return self.shape / self.rate

    @property
    def variance(self) -> float:
        return self.shape / self.rate**2

    @property
    def natural(self) -> Array:
        return np.array([self.shape, -self.rate])

    @property
    def mean_parameters(self) -> Array:
        return np.array([digamma(self.shape) - np.log(self.rate), self.mean])

    @classmethod
    def _from_natural(cls, eta: Array) -> Self:
        shape, minus_rate = pair(eta)
        return cls(shape, -minus_rate)

    @classmethod
    def _from_mean(cls, tau: Array) -> Self:
        mean_log, mean = pair(tau)
        return cls._from_gap(np.log(mean) - mean_log if mean > 0 else 0.0, mean)

    @classmethod
    def _from_gap(cls, gap: float, mean: float) -> Self:
        """Return the member with these log E x - E log x (`gap`) and E x (`mean`)."""
        if not gap > 0:
            fitting.refuse_constant(_constant_advice())
        shape = solve_shape(gap)
        return cls(shape, shape / mean)

    def log_normaliser(self) -> float:
        return float(gammaln(self.shape) - self.shape * np.log(self.rate))

    def T_covariance(self) -> Array:
        a, b = self.shape, self.rate
        return np.array([[polygamma(1, a), 1 / b], [1 / b, a / b**2]])

    def fisher_information(self) -> Array:
        return self.T_covariance() * [[1, -1], [-1, 1]]

    def _T(self, x: Array) -> Array:
        return np.column_stack([np.log(x), x])

    def _log_h(self, x: Array) -> Array:
        return -np.log(x)

    def _log_density(self, x: Array) -> Array:
        a = self.shape
        return np.log(a) - np.log(x) - factorial_error(a) - kl_term(a, self.rate * x)

    def entropy(self) -> float:
        return float(gamma_entropy_term(self.shape) + digamma(self.shape) - np.log(self.rate))

    def _kl(self, other: Self) -> float:
        gap = ratio_gap(self.shape, self.rate, other.shape, other.rate, other.rate - self.rate)
        mean_term = other.shape * excess(other.mean, self.mean, gap)
        return float(mean_term + gamma_bregman(other.shape, self.shape))

    def _sample(self, rng: np.random.Generator, size: int) -> Array:
        return rng.gamma(self.shape, 1 / self.rate, size)

    @classmethod
    def _estimate(cls, rows: Rows, request: FitRequest) -> Self:
        if request.method == "moments":
            mean, variance = positive_moments(rows, request)
            return cls(mean**2 / variance, mean / variance)
        n, m = fitting.centre(rows, POSITIVE)
        _, (off, minus_gap) = fitting.weighted_mean(rows, partial(_log_parts, m))
        mean, gap = float(m[0] * (1 + off)), -float(minus_gap)
        if request.prior is not None:
            row_mean, share = mean, n / (n + request.prior.strength)
            mean_log, prior_mean = pair(request.prior.mean)
            mean = share * row_mean + (1 - share) * prior_mean
            gap = share * (gap + np.log(mean / row_mean)) + (1 - share) * (np.log(mean) - mean_log)
        return cls._from_gap(gap, mean)


def _log_parts(m: Array, X: Array) -> Array:
    """Return the columns u = x/m - 1 and log(x/m) - u, whose means give log E x - E log x without cancelling."""
    u = (X - m) / m
    return np.concatenate([u, -excess(m, X)], axis=1)


def _constant_advice() -> str:
    """Return what to do about values that are all equal."""
    return "The limit is a point mass; drop the column, or add a prior."


def positive_moments(rows: Rows, request: FitRequest) -> tuple[float, float]:
    """Return mean and variance of positive numbers, and refuse those that are all equal."""
    _, mean, variance = fitting.mean_and_variance(rows, POSITIVE, request.unbiased)
    if not variance[0] > 0:
        fitting.refuse_constant(_constant_advice())
    return float(mean[0]), float(variance[0])


def solve_shape(gap: float) -> float:
    """Solve log a - ψ(a) = gap > 0 for a, by Newton's method in 1/a from a start within 2 % of the solution.

    Reference: T. Minka, "Estimating a Gamma distribution" (2002).
    """
    a = (3 - gap + np.sqrt((gap - 3) ** 2 + 24 * gap)) / (12 * gap)
    for _ in range(20):
        step = (log_minus_digamma(a) - gap) / (a * trigamma_excess(a))  # relative to 1/a
        a /= 1 - step
        if abs(step) < 1e-15:
            break
    return float(a)


@dataclass(frozen=True, eq=False)
class InverseGaussian(Family):
    """The inverse Gaussian distribution of first passage times has a mean and a shape λ; its variance is mean³/λ.

    η = (-λ/(2 mean²), -λ/2), T = (x, 1/x), A = -½ log λ - λ/mean, h = (2π x³)^(-½).

    >>> InverseGaussian.fit([1.0, 2.0, 4.0, 5.0]).member.mean
    3.0
    """

    mean: float
    shape: float
    support = POSITIVE
    unbiased_methods = ("moments",)

    def __post_init__(self) -> None:
        self._set(mean=self.mean, shape=self.shape)
        if not (0 < self.mean < np.inf and 0 < self.shape < np.inf):
            self._refuse("a positive, finite mean and shape")

    @property
    def variance(self) -> float:
        return self.mean**3 / self.shape

    @property
    def natural(self) -> Array:
        return np.array([-self.shape / (2 * self.mean**2), -self.shape / 2])

    @property
    def mean_parameters(self) -> Array:
        return np.array([self.mean, 1 / self.mean + 1 / self.shape])

    @classmethod
    def _from_natural(cls, eta: Array) -> Self:
        first, second = pair(eta)
        if not (first < 0 and second < 0):
            raise DataError(got=f"natural parameters {first:g}, {second:g}", wanted="two negative numbers")
        return cls(np.sqrt(second / first), -2 * second)

    @classmethod
    def _from_mean(cls, tau: Array) -> Self:
        mean, mean_inverse = pair(tau)
        return cls._from_spread(mean, mean_inverse - 1 / mean if mean > 0 else 0.0)

    @classmethod
    def _from_spread(cls, mean: float, spread: float) -> Self:
        """Return the member with this E x (`mean`) and this E 1/x - 1/E x = 1/λ (`spread`)."""
        if not spread > 0:
            fitting.refuse_constant(_constant_advice())
        return cls(mean, 1 / spread)

    def log_normaliser(self) -> float:
        return -0.5 * float(np.log(self.shape)) - self.shape / self.mean

    def T_covariance(self) -> Array:
        m, s = self.mean, self.shape
        return np.array([[m**3 / s, -m / s], [-m / s, 1 / (m * s) + 2 / s**2]])

    def fisher_information(self) -> Array:
        return np.diag([self.shape / self.mean**3, 0.5 / self.shape**2])

    def _T(self, x: Array) -> Array:
        return np.column_stack([x, 1 / x])

    def _log_h(self, x: Array) -> Array:
        return -0.5 * np.log(2 * np.pi) - 1.5 * np.log(x)

    def _log_density(self, x: Array) -> Array:
        z = (x - self.mean) / self.mean
        return 0.5 * np.log(self.shape / (2 * np.pi)) - 1.5 * np.log(x) - self.shape * z * z / (2 * x)

    def entropy(self) -> float:
        z = 2 * self.shape / self.mean
        mean_log = np.log(self.mean) - _scaled_exp1(z) if z > 1e-15 else np.euler_gamma + np.log(2 * self.shape)
        return float(0.5 * (1 + np.log(2 * np.pi / self.shape)) + 1.5 * mean_log)

    def _kl(self, other: Self) -> float:
        z = (self.mean - other.mean) / other.mean
        return float(0.5 * excess(self.shape, other.shape) + 0.5 * other.shape * z * z / self.mean)

    def _sample(self, rng: np.random.Generator, size: int) -> Array:
        return rng.wald(self.mean, self.shape, size)

    @classmethod
    def _estimate(cls, rows: Rows, request: FitRequest) -> Self:
        if request.method == "moments":
            mean, variance = positive_moments(rows, request)
            return cls(mean, mean**3 / variance)
        n, m = fitting.centre(rows, POSITIVE)
        _, (off, spread) = fitting.weighted_mean(rows, partial(_inverse_parts, m))
        mean = float(m[0] + off)
        if request.prior is not None:
            row_mean, share = mean, n / (n + request.prior.strength)
            prior_mean, prior_inverse = pair(request.prior.mean)
            mean = share * row_mean + (1 - share) * prior_mean
            spread = share * (spread + 1 / row_mean - 1 / mean) + (1 - share) * (prior_inverse - 1 / mean)
        return cls._from_spread(mean, float(spread))


def _inverse_parts(m: Array, X: Array) -> Array:
    """Return the columns x - m and 1/x - 1/m + (x - m)/m²; the added multiple of x - m has mean 0."""
    z = X - m
    return np.concatenate([z, (z / m) ** 2 / X], axis=1)


def _scaled_exp1(z: float) -> float:
    """Return e^z E1(z), by a continued fraction for large z, where e^z overflows and E1(z) underflows."""
    if z < 20:
        return float(np.exp(z) * exp1(z))
    tail = 0.0
    for k in range(60, 0, -1):
        tail = k * k / (z + 2 * k + 1 - tail)
    return float(1 / (z + 1 - tail))
