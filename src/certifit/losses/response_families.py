"""Response families of generalised linear models: support, variance function, deviance and likelihood.

Each is an exponential dispersion model: var(y) = dispersion · V(μ), and the unit deviance is
d(y, μ) = 2 ∫_μ^y (y - t) / V(t) dt. Reference: McCullagh & Nelder, Generalized Linear Models (1989), chapter 2.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import betaln, gammaln, xlog1py, xlogy

from certifit.exceptions import DataError
from certifit.rows import Array

LARGEST = 1e100  # targets beyond this, or all below its inverse, are refused: their squares over- or underflow


def refuse_size(largest: float) -> None:
    """Refuse targets whose largest has this size."""
    raise DataError(
        got=f"targets of size {largest:.3g}",
        wanted=f"numbers between {1 / LARGEST:g} and {LARGEST:g}, whose squares are numbers too",
        fix="Change the unit of the target.",
    )


@dataclass(frozen=True)
class ResponseFamily(ABC):
    """How a target y is distributed about its mean μ."""

    name: ClassVar[str]
    support: ClassVar[str]  # targets that can be observed, in words
    usual: ClassVar[str]  # name of the link that is used unless another is asked for
    free_dispersion: ClassVar[bool] = False  # whether the dispersion is estimated; it is 1 otherwise

    @abstractmethod
    def inside(self, y: Array) -> Array:
        """Whether each y (rows,) can be observed."""

    @abstractmethod
    def variance(self, mu: Array) -> Array:
        """The variance function V(μ)."""

    @abstractmethod
    def half_deviance(self, y: Array, mu: Array) -> Array:
        """Half the unit deviance d(y, μ) / 2: 0 where μ = y, positive elsewhere."""

    def base(self, y: Array, trials: Array | float) -> Array | float:
        """The part of log f(y; μ = y) that does not depend on the dispersion; `trials` matters to binomials alone."""
        return 0.0

    def log_likelihood(self, base: float, deviance: float, rows: float) -> float:
        """The log-likelihood, from Σ w base, the deviance and Σ w, at the dispersion φ = deviance / rows.

        log f(y; μ, φ) = log f(y; y, φ) - d(y, μ) / 2φ
        """
        return base - 0.5 * deviance

    def check(self, y: Array, number: Array) -> None:
        """Refuse targets that the family cannot produce, naming the first by its row's number."""
        inside = self.inside(y)
        if len(y) and np.abs(y).max() > LARGEST:
            refuse_size(float(np.abs(y).max()))
        if not inside.all():
            row = int(np.argmin(inside))
            raise DataError(
                got=f"y = {y[row]:g} in row {number[row]}, which the {self.name} family cannot produce",
                wanted=f"{self.support}",
                fix="Some value(s) of y are out of the valid range of the loss: check the target column, or choose a "
                "family whose range contains it.",
            )


class GaussianResponse(ResponseFamily):
    """Numbers of constant variance."""

    name, support, usual, free_dispersion = "gaussian", "any number", "identity", True

    def inside(self, y: Array) -> Array:
        return np.isfinite(y)

    def variance(self, mu: Array) -> Array:
        return np.ones_like(mu)

    def half_deviance(self, y: Array, mu: Array) -> Array:
        return 0.5 * (y - mu) ** 2

    def log_likelihood(self, base: float, deviance: float, rows: float) -> float:
        return -0.5 * rows * float(np.log(2 * np.pi * deviance / rows) + 1)


class BinomialResponse(ResponseFamily):
    """Shares of successes among the trials."""

    name, support, usual = "binomial", "shares between 0 and 1 (or successes, with trials=)", "logit"

    def inside(self, y: Array) -> Array:
        return (y >= 0) & (y <= 1)

    def variance(self, mu: Array) -> Array:
        return mu * (1 - mu)

    def half_deviance(self, y: Array, mu: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            return xlogy(y, y) - xlogy(y, mu) + xlog1py(1 - y, -y) - xlog1py(1 - y, -mu)

    def base(self, y: Array, trials: Array | float) -> Array:
        success = y * trials
        choose = -betaln(success + 1, trials - success + 1) - np.log1p(trials)
        return choose + trials * (xlogy(y, y) + xlog1py(1 - y, -y))


class PoissonResponse(ResponseFamily):
    """Counts whose variance is their mean."""

    name, support, usual = "poisson", "numbers of at least 0", "log"

    def inside(self, y: Array) -> Array:
        return y >= 0

    def variance(self, mu: Array) -> Array:
        return mu

    def half_deviance(self, y: Array, mu: Array) -> Array:
        return xlogy(y, y) - xlogy(y, mu) - (y - mu)

    def base(self, y: Array, trials: Array | float) -> Array:
        return xlogy(y, y) - y - gammaln(y + 1)


class GammaResponse(ResponseFamily):
    """Positive amounts whose standard deviation is proportional to their mean."""

    name, support, usual, free_dispersion = "gamma", "positive numbers", "log", True

    def inside(self, y: Array) -> Array:
        return y > 0

    def variance(self, mu: Array) -> Array:
        return mu**2

    def half_deviance(self, y: Array, mu: Array) -> Array:
        return (y - mu) / mu - np.log(y / mu)

    def base(self, y: Array, trials: Array | float) -> Array:
        return -np.log(y)

    def log_likelihood(self, base: float, deviance: float, rows: float) -> float:
        shape = rows / deviance
        return base + rows * float(shape * np.log(shape) - shape - gammaln(shape) - 0.5)


class InverseGaussianResponse(ResponseFamily):
    """Positive amounts whose variance is proportional to the cube of their mean."""

    name, support, usual, free_dispersion = "inverse_gaussian", "positive numbers", "log", True

    def inside(self, y: Array) -> Array:
        return y > 0

    def variance(self, mu: Array) -> Array:
        return mu**3

    def half_deviance(self, y: Array, mu: Array) -> Array:
        return 0.5 * ((y - mu) / mu) ** 2 / y

    def base(self, y: Array, trials: Array | float) -> Array:
        return -1.5 * np.log(y)

    def log_likelihood(self, base: float, deviance: float, rows: float) -> float:
        return base - 0.5 * rows * float(np.log(2 * np.pi * deviance / rows) + 1)


@dataclass(frozen=True)
class NegativeBinomialResponse(ResponseFamily):
    """Counts with variance μ + μ²/θ; θ is given, not estimated."""

    theta: float = 1.0
    name, support, usual = "negative_binomial", "numbers of at least 0", "log"

    def __post_init__(self) -> None:
        if not self.theta > 0:
            raise DataError(got=f"theta={self.theta!r}", wanted="a positive number: the variance is μ + μ²/theta")

    def inside(self, y: Array) -> Array:
        return y >= 0

    def variance(self, mu: Array) -> Array:
        return mu + mu**2 / self.theta

    def half_deviance(self, y: Array, mu: Array) -> Array:
        t = self.theta
        return xlogy(y, y) - xlogy(y, mu) - (y + t) * np.log((y + t) / (mu + t))

    def base(self, y: Array, trials: Array | float) -> Array:
        t = self.theta
        ways = gammaln(y + t) - gammaln(t) - gammaln(y + 1)
        return ways + xlogy(y, y / (y + t)) - t * np.log1p(y / t)


@dataclass(frozen=True)
class TweedieResponse(ResponseFamily):
    """V(μ) = μ^power for a power that has no family of its own; 1 < power < 2 allows exact zeros."""

    power: float = 1.5
    name, usual, free_dispersion = "tweedie", "log", True

    def __post_init__(self) -> None:
        if 0 < self.power < 1 or not np.isfinite(self.power):
            raise DataError(got=f"power={self.power!r}", wanted="a finite number that is not between 0 and 1")

    @property
    def support(self) -> str:  # type: ignore[override]
        if self.power < 0:
            return "any number"
        return "numbers of at least 0" if self.power < 2 else "positive numbers"

    def inside(self, y: Array) -> Array:
        if self.power < 0:
            return np.isfinite(y)
        return y >= 0 if self.power < 2 else y > 0

    def variance(self, mu: Array) -> Array:
        return mu**self.power

    def half_deviance(self, y: Array, mu: Array) -> Array:
        p = self.power
        positive = np.maximum(y, 0.0)  # negative y occur for negative powers alone, where their term vanishes
        return positive ** (2 - p) / ((1 - p) * (2 - p)) - y * mu ** (1 - p) / (1 - p) + mu ** (2 - p) / (2 - p)

    def log_likelihood(self, base: float, deviance: float, rows: float) -> float:
        return np.nan  # the density has no closed form


def response_family(family: Any, *, theta: float, power: float) -> ResponseFamily:
    """Return the family of this name; Tweedie's special powers are the families that have them as variance."""
    if isinstance(family, ResponseFamily):
        return family
    if family == "tweedie":
        special: dict[float, ResponseFamily] = {
            0: GaussianResponse(),
            1: PoissonResponse(),
            2: GammaResponse(),
            3: InverseGaussianResponse(),
        }
        return special.get(power) or TweedieResponse(power)
    if family == "negative_binomial":
        return NegativeBinomialResponse(theta)
    plain: dict[str, ResponseFamily] = {
        f.name: f
        for f in (
            GaussianResponse(),
            BinomialResponse(),
            PoissonResponse(),
            GammaResponse(),
            InverseGaussianResponse(),
        )
    }
    if family not in plain:
        raise DataError(got=f"family={family!r}", wanted=f"one of {sorted([*plain, 'negative_binomial', 'tweedie'])}")
    return plain[family]
