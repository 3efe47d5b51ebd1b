"""The families of shares of a whole: Dirichlet, and Beta for a number x between 0 and 1, the Dirichlet of (x, 1 - x).

Their mean parameters E log x_j = ψ(a_j) - ψ(Σ a) have no inverse in closed form; Newton's method on A finds it.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import digamma, gammaln, polygamma

from certifit.exceptions import DataError
from certifit.families import fitting
from certifit.families.family import Family, FitRequest, pair
from certifit.families.stable import dirichlet_kl, gamma_entropy_term, log_dirichlet, log_minus_digamma
from certifit.families.support import SIMPLEX, UNIT
from certifit.rows import Array, Rows


def log_means(a: Array) -> Array:
    """Return E log x_j = ψ(a_j) - ψ(Σa) (k,)."""
    total = a.sum()
    if a.min() < 1:
        return digamma(a) - digamma(total)
    return np.log(a / total) - log_minus_digamma(a) + log_minus_digamma(total)


class ShareFamily(Family):
    """The common part of both families: density ∝ Π x_j^(a_j - 1), with η = a, T = log x, h = Π 1/x_j."""

    unbiased_methods = ("moments",)

    @property
    @abstractmethod
    def natural(self) -> Array:
        """Return a (k,)."""

    @staticmethod
    @abstractmethod
    def _parts(x: Array) -> Array:
        """Return the shares (n, k)."""

    @staticmethod
    @abstractmethod
    def _logs(x: Array) -> Array:
        """Return the logarithms of the shares (n, k); for Beta x may be (n, 1)."""

    def _check(self) -> None:
        if self.natural.ndim != 1 or len(self.natural) < 2:
            self._refuse("a vector of at least two parameters")
        if not np.all((self.natural > 0) & np.isfinite(self.natural)):
            self._refuse("positive, finite parameters")

    @property
    def mean_parameters(self) -> Array:
        return log_means(self.natural)

    @classmethod
    def _from_mean(cls, tau: Array) -> Self:
        spread = -float(np.expm1(np.logaddexp.reduce(tau)))  # 1 - Σ exp τ, which is 0 for a point mass
        if not spread > 0:
            raise DataError(
                got=f"mean logarithms {tau.tolist()}",
                wanted="numbers whose exponentials sum to less than 1, as those of varying shares do",
                fix="The limit is a point mass; add a prior.",
            )
        total = 0.5 * (len(tau) - 1) / spread
        return cls.from_natural(solve_concentration(tau, total * np.exp(tau) + 0.5 * spread))

    def log_normaliser(self) -> float:
        a = self.natural
        return float(gammaln(a).sum() - gammaln(a.sum()))

    def T_covariance(self) -> Array:
        a = self.natural
        return np.diag(polygamma(1, a)) - polygamma(1, a.sum())

    def fisher_information(self) -> Array:
        return self.T_covariance()

    def _T(self, x: Array) -> Array:
        return self._logs(x)

    def _log_h(self, x: Array) -> Array:
        return -self._logs(x).sum(axis=-1)

    def _log_density(self, x: Array) -> Array:
        return log_dirichlet(self.natural, self._parts(x)) - self._logs(x).sum(axis=-1)

    def entropy(self) -> float:
        a = self.natural
        return float(gamma_entropy_term(a).sum() - gamma_entropy_term(a.sum()) + log_means(a).sum())

    def _kl(self, other: Self) -> float:
        return dirichlet_kl(self.natural, other.natural)

    @classmethod
    def _estimate(cls, rows: Rows, request: FitRequest) -> Self:
        n, m, v = fitting.mean_and_variance(rows, cls.support_of(), request.unbiased)
        if request.prior is None and not v.sum() > 0:
            fitting.refuse_constant("The limit is a point mass; add a prior.")
        if request.method == "moments":
            # Beta's second share, 1 - x, would double both sums, which leaves their ratio: m holds x alone.
            total = (m * (1 - m)).sum() / v.sum() - 1
            return cls.from_natural(total * (m if len(m) > 1 else cls._parts(m)[0]))
        return cls.from_mean(request.blend(n, fitting.weighted_mean(rows, cls._logs)[1]))


def solve_concentration(tau: Array, a: Array) -> Array:
    """Solve ψ(a_j) - ψ(Σa) = τ_j for a (k,) by Newton's method from a start a, in O(k) operations a step.

    Reference: T. Minka, "Estimating a Dirichlet distribution" (2000).
    """
    for _ in range(200):
        g = (log_means(a) - tau) / polygamma(1, a)
        z = polygamma(1, a.sum())
        inverse = 1 / polygamma(1, a)
        step = (g + inverse * (z * g.sum() / (1 - z * inverse.sum()))) / a
        a = a * np.where(step < 0.5, 1 - step, 0.25 / np.maximum(step, 0.5))  # a long step down stays above 0
        if np.abs(step).max() < 1e-14:
            break
    return a


@dataclass(frozen=True, eq=False)
class Beta(ShareFamily):
    """The beta distribution of numbers between 0 and 1 has a density proportional to x^(a-1) (1-x)^(b-1).

    >>> Beta.fit([0.2, 0.4, 0.9], method="moments", unbiased=True).member
    Beta(a=0.461538..., b=0.461538...)
    """

    a: float
    b: float
    support = UNIT

    def __post_init__(self) -> None:
        self._set(a=self.a, b=self.b)
        self._check()

    @property
    def natural(self) -> Array:
        return np.array([self.a, self.b])

    @classmethod
    def _from_natural(cls, eta: Array) -> Self:
        return cls(*pair(eta))

    @property
    def mean(self) -> float:
        return self.a / (self.a + self.b)

    @property
    def variance(self) -> float:
        total = self.a + self.b
        return (self.a / total) * (self.b / total) / (total + 1)

    @staticmethod
    def _parts(x: Array) -> Array:
        return np.concatenate([x, 1 - x], axis=-1) if x.ndim == 2 else np.stack([x, 1 - x], axis=-1)

    @staticmethod
    def _logs(x: Array) -> Array:
        both = [np.log(x), np.log1p(-x)]
        return np.concatenate(both, axis=-1) if x.ndim == 2 else np.stack(both, axis=-1)

    def _sample(self, rng: np.random.Generator, size: int) -> Array:
        return rng.beta(self.a, self.b, size)


@dataclass(frozen=True, eq=False)
class Dirichlet(ShareFamily):
    """The Dirichlet distribution of shares x (k,) has parameters a (k,).

    The method of moments matches the means and the sum of the variances.

    >>> Dirichlet([2.0, 3.0, 5.0]).mean.tolist()
    [0.2, 0.3, 0.5]
    """

    a: Array
    support = SIMPLEX

    def __post_init__(self) -> None:
        self._set(a=self.a)
        self._check()

    @property
    def natural(self) -> Array:
        return self.a

    @classmethod
    def _from_natural(cls, eta: Array) -> Self:
        return cls(eta)

    @property
    def mean(self) -> Array:
        return self.a / self.a.sum()

    @property
    def covariance(self) -> Array:
        return (np.diag(self.mean) - np.outer(self.mean, self.mean)) / (self.a.sum() + 1)

    @staticmethod
    def _parts(x: Array) -> Array:
        return x

    @staticmethod
    def _logs(x: Array) -> Array:
        return np.log(x)

    def _sample(self, rng: np.random.Generator, size: int) -> Array:
        return rng.dirichlet(self.a, size)
