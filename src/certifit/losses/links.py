"""Link functions η = g(μ) of generalised linear models, as maps from the score to the mean and its slope."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, logit, ndtr, ndtri

from certifit.exceptions import DataError
from certifit.rows import Array


class Link(ABC):
    name: ClassVar[str]
    positive: ClassVar[bool] = False  # only scores above 0 are means of something

    @abstractmethod
    def score(self, mu: Array) -> Array:
        """η = g(μ)."""

    @abstractmethod
    def mean(self, eta: Array) -> Array:
        """μ = g⁻¹(η)."""

    @abstractmethod
    def slope(self, eta: Array) -> Array:
        """dμ/dη."""


class Identity(Link):
    name = "identity"

    def score(self, mu: Array) -> Array:
        return mu

    def mean(self, eta: Array) -> Array:
        return eta

    def slope(self, eta: Array) -> Array:
        return np.ones_like(eta)


class Log(Link):
    name = "log"

    def score(self, mu: Array) -> Array:
        return np.log(mu)

    def mean(self, eta: Array) -> Array:
        return np.exp(eta)

    def slope(self, eta: Array) -> Array:
        return np.exp(eta)


class Logit(Link):
    name = "logit"

    def score(self, mu: Array) -> Array:
        return logit(mu)

    def mean(self, eta: Array) -> Array:
        return expit(eta)

    def slope(self, eta: Array) -> Array:
        return expit(eta) * expit(-eta)


class Probit(Link):
    name = "probit"

    def score(self, mu: Array) -> Array:
        return ndtri(mu)

    def mean(self, eta: Array) -> Array:
        return ndtr(eta)

    def slope(self, eta: Array) -> Array:
        return np.exp(-0.5 * eta**2) / np.sqrt(2 * np.pi)


class CLogLog(Link):
    name = "cloglog"

    def score(self, mu: Array) -> Array:
        return np.log(-np.log1p(-mu))

    def mean(self, eta: Array) -> Array:
        return -np.expm1(-np.exp(eta))

    def slope(self, eta: Array) -> Array:
        return np.exp(eta - np.exp(eta))


class Inverse(Link):
    name, positive = "inverse", True

    def score(self, mu: Array) -> Array:
        return 1 / mu

    def mean(self, eta: Array) -> Array:
        return 1 / eta

    def slope(self, eta: Array) -> Array:
        return -1 / eta**2


class InverseSquared(Link):
    name, positive = "inverse_squared", True

    def score(self, mu: Array) -> Array:
        return mu**-2.0

    def mean(self, eta: Array) -> Array:
        return eta**-0.5

    def slope(self, eta: Array) -> Array:
        return -0.5 * eta**-1.5


LINKS = {cls.name: cls for cls in (Identity, Log, Logit, Probit, CLogLog, Inverse, InverseSquared)}


def link_function(link: Any, usual: str) -> Link:
    """The link of this name; 'auto' is the family's usual one."""
    name = usual if link == "auto" else link
    if name not in LINKS:
        raise DataError(got=f"link={link!r}", wanted=f"'auto' or one of {sorted(LINKS)}")
    return LINKS[name]()
