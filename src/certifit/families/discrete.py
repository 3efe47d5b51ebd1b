"""The families of counts: Bernoulli, binomial, Poisson, geometric and negative binomial, all with T(x) = x.

Probabilities of 0 and 1 and a rate of 0 are allowed as limits: their natural parameter is infinite.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.special import entr, expit, gammaln, log1p, logit, xlog1py

from certifit.families.family import MeanFamily
from certifit.families.stable import factorial_error, kl_term, log_multinomial
from certifit.families.support import COUNTS, Support, WholeNumbers
from certifit.rows import Array


def reciprocal(x: float) -> float:
    """Return 1/x, and infinity at 0, which is the Fisher information at the limits of a family."""
    return 1 / x if x > 0 else np.inf


def bernoulli_kl(p: float, q: float) -> float:
    return float(kl_term(p, q) + kl_term(1 - p, 1 - q, p - q))


def bernoulli_entropy(p: float) -> float:
    return float(entr(p) - xlog1py(1 - p, -p))


@dataclass(frozen=True, eq=False)
class Successes(MeanFamily):
    """The common part of Bernoulli and binomial: successes in n independent trials of probability p."""

    p: float

    if TYPE_CHECKING:

        @property
        def n(self) -> int:
            """Return the number of trials."""

    def __post_init__(self) -> None:
        self._set(p=self.p)
        if not 0 <= self.p <= 1:
            self._refuse("a probability p between 0 and 1")

    @classmethod
    def support_of(cls, **known: Any) -> Support:
        n = known.get("n", 1)
        words = "0 or 1" if n == 1 else f"whole numbers from 0 to {n:g}"
        return WholeNumbers(words, low=0.0, high=float(n))

    @property
    def support(self) -> Support:
        return self.support_of(n=self.n)

    @property
    def mean(self) -> float:
        return self.n * self.p

    @property
    def variance(self) -> float:
        return self.n * self.p * (1 - self.p)

    @property
    def natural(self) -> Array:
        return np.array([logit(self.p)])

    @classmethod
    def _from_natural(cls, eta: Array, **known: Any) -> Self:
        return cls._of(p=expit(eta[0]), **known)

    @classmethod
    def _from_mean(cls, tau: Array, **known: Any) -> Self:
        return cls._of(p=tau[0] / known.get("n", 1), **known)

    def log_normaliser(self) -> float:
        return -self.n * float(log1p(-self.p))

    def fisher_information(self) -> Array:
        return np.array([[self.n * reciprocal(self.p * (1 - self.p))]])

    def _log_h(self, x: Array) -> Array:
        return gammaln(self.n + 1) - gammaln(x + 1) - gammaln(self.n - x + 1)

    def _log_density(self, x: Array) -> Array:
        return log_multinomial(np.stack([x, self.n - x], axis=-1), np.array([self.p, 1 - self.p]))

    def _kl(self, other: Self) -> float:
        return self.n * bernoulli_kl(self.p, other.p)

    def _sample(self, rng: np.random.Generator, size: int) -> Array:
        return rng.binomial(self.n, self.p, size)


class Bernoulli(Successes):
    """The Bernoulli distribution is one trial: x = 1 with probability p, else 0.  η = log p/(1-p), A = log(1 + e^η).

    >>> Bernoulli.fit([0, 1, 1, 1]).member
    Bernoulli(p=0.75)
    """

    n = 1

    def entropy(self) -> float:
        return bernoulli_entropy(self.p)


@dataclass(frozen=True, eq=False)
class Binomial(Successes):
    """The binomial distribution counts successes in n trials, n known.  η = log p/(1-p), A = n log(1 + e^η).

    >>> Binomial.fit([3, 5, 4], n=10).member
    Binomial(p=0.4, n=10)
    """

    n: int
    known = ("n",)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set_whole(n=self.n)


@dataclass(frozen=True, eq=False)
class Poisson(MeanFamily):
    """The Poisson distribution counts events at a constant rate, which may be 0.  η = log rate, A = e^η, h = 1/x!.

    >>> Poisson.fit([0, 2, 1, 5]).member
    Poisson(rate=2.0)
    """

    rate: float
    support = COUNTS

    def __post_init__(self) -> None:
        self._set(rate=self.rate)
        if not 0 <= self.rate < np.inf:
            self._refuse("a finite rate of at least 0")

    @property
    def mean(self) -> float:
        return self.rate

    @property
    def variance(self) -> float:
        return self.rate

    @property
    def natural(self) -> Array:
        with np.errstate(divide="ignore"):
            return np.log([self.rate])

    @classmethod
    def _from_natural(cls, eta: Array) -> Self:
        return cls(np.exp(eta[0]))

    @classmethod
    def _from_mean(cls, tau: Array) -> Self:
        return cls(tau[0])

    def log_normaliser(self) -> float:
        return self.rate

    def fisher_information(self) -> Array:
        return np.array([[reciprocal(self.rate)]])

    def _log_h(self, x: Array) -> Array:
        return -gammaln(x + 1)

    def _log_density(self, x: Array) -> Array:
        return -factorial_error(x) - kl_term(x, self.rate)

    def _kl(self, other: Self) -> float:
        return float(kl_term(self.rate, other.rate))

    def _sample(self, rng: np.random.Generator, size: int) -> Array:
        return rng.poisson(self.rate, size)


@dataclass(frozen=True, eq=False)
class Failures(MeanFamily):
    """The common part of geometric and negative binomial: failures before the r-th success, each of probability p."""

    p: float
    support = COUNTS

    if TYPE_CHECKING:

        @property
        def r(self) -> float:
            """Return the number of successes to wait for."""

    def __post_init__(self) -> None:
        self._set(p=self.p)
        if not 0 < self.p <= 1:
            self._refuse(
                "a success probability p above 0 and at most 1",
                "Where failures never end there is no distribution; where p = 1 there are none.",
            )

    @property
    def mean(self) -> float:
        return self.r * (1 - self.p) / self.p

    @property
    def variance(self) -> float:
        return self.mean / self.p

    @property
    def natural(self) -> Array:
        return np.array([log1p(-self.p)])

    @classmethod
    def _from_natural(cls, eta: Array, **known: Any) -> Self:
        return cls._of(p=-np.expm1(eta[0]), **known)

    @classmethod
    def _from_mean(cls, tau: Array, **known: Any) -> Self:
        r = known.get("r", 1.0)
        p = r / (r + tau[0])
        # A mean above 0 has failures, which p = 1 makes impossible: p is below 1, if only in its last digit.
        return cls._of(p=float(np.nextafter(1.0, 0.0)) if p == 1.0 and tau[0] > 0 else p, **known)

    def log_normaliser(self) -> float:
        return -self.r * float(np.log(self.p))

    def fisher_information(self) -> Array:
        return np.array([[self.r * reciprocal(self.p**2 * (1 - self.p))]])

    def _log_h(self, x: Array) -> Array:
        return gammaln(x + self.r) - gammaln(self.r) - gammaln(x + 1)

    def _log_density(self, x: Array) -> Array:
        both = np.stack([x, np.full_like(x, self.r)], axis=-1)
        return log_multinomial(both, np.array([1 - self.p, self.p])) + np.log(self.r) - np.log(x + self.r)

    def _kl(self, other: Self) -> float:
        return self.r / self.p * bernoulli_kl(self.p, other.p)

    def _sample(self, rng: np.random.Generator, size: int) -> Array:
        return rng.negative_binomial(self.r, self.p, size)


class Geometric(Failures):
    """The geometric distribution counts failures before the first success, not trials.  η = log(1-p), A = -log p.

    >>> Geometric.fit([0, 3, 0, 1]).member
    Geometric(p=0.5)
    """

    r = 1.0

    def entropy(self) -> float:
        return bernoulli_entropy(self.p) / self.p


@dataclass(frozen=True, eq=False)
class NegativeBinomial(Failures):
    """The negative binomial distribution counts failures before the r-th success, for known r > 0, not only whole.

    η = log(1-p), A = -r log p.

    >>> NegativeBinomial.fit([4, 0, 2], r=2).member
    NegativeBinomial(p=0.5, r=2.0)
    """

    r: float
    known = ("r",)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set(r=self.r)
        if not 0 < self.r < np.inf:
            self._refuse("a positive number of successes r")
