"""Link functions η = g(μ) of generalised linear models, as maps from the score to the mean and its slope.

A new link goes here (a class, and its name in `LINKS`) and, written a second time and plainly, into `_mean` of
`checkers.plain.response_losses`; where the chain rule of `ResponseLoss` loses digits, a loss of its own goes into
`losses.response_losses`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, logit, ndtr, ndtri

from certifit.exceptions import DataError
from certifit.losses.softmax import logistic_curvature
from certifit.rows import Array


class Link(ABC):
    """A monotone function between means μ and scores η, element by element."""

    name: ClassVar[str]
    positive: ClassVar[bool] = False  # only scores above 0 belong to a mean
    extreme_score: ClassVar[float] = np.inf  # |η| from which on a mean is nearly certain: is there a maximum at all?

    @abstractmethod
    def score(self, mu: Array) -> Array:
        """η = g(μ)."""

    @abstractmethod
    def mean(self, eta: Array) -> Array:
        """μ = g⁻¹(η)."""

    @abstractmethod
    def slope(self, eta: Array) -> Array:
        """dμ/dη."""


class IdentityLink(Link):
    name = "identity"

    def score(self, mu: Array) -> Array:
        return mu

    def mean(self, eta: Array) -> Array:
        return eta

    def slope(self, eta: Array) -> Array:
        return np.ones_like(eta)


class LogLink(Link):
    name, extreme_score = "log", 12.0

    def score(self, mu: Array) -> Array:
        return np.log(mu)

    def mean(self, eta: Array) -> Array:
        return np.exp(eta)

    def slope(self, eta: Array) -> Array:
        return np.exp(eta)


class LogitLink(Link):
    name, extreme_score = "logit", 12.0

    def score(self, mu: Array) -> Array:
        return logit(mu)

    def mean(self, eta: Array) -> Array:
        return expit(eta)

    def slope(self, eta: Array) -> Array:
        return logistic_curvature(eta)


class ProbitLink(Link):
    name, extreme_score = "probit", 4.0

    def score(self, mu: Array) -> Array:
        return ndtri(mu)

    def mean(self, eta: Array) -> Array:
        return ndtr(eta)

    def slope(self, eta: Array) -> Array:
        return np.exp(-0.5 * eta**2) / np.sqrt(2 * np.pi)


class ComplementaryLogLogLink(Link):
    name, extreme_score = "cloglog", 2.5

    def score(self, mu: Array) -> Array:
        return np.log(-np.log1p(-mu))

    def mean(self, eta: Array) -> Array:
        return -np.expm1(-np.exp(eta))

    def slope(self, eta: Array) -> Array:
        return np.exp(eta - np.exp(eta))


class InverseLink(Link):
    name, positive = "inverse", True

    def score(self, mu: Array) -> Array:
        return 1 / mu

    def mean(self, eta: Array) -> Array:
        return 1 / eta

    def slope(self, eta: Array) -> Array:
        return -1 / eta**2


class InverseSquaredLink(Link):
    name, positive = "inverse_squared", True

    def score(self, mu: Array) -> Array:
        return mu**-2.0

    def mean(self, eta: Array) -> Array:
        return eta**-0.5

    def slope(self, eta: Array) -> Array:
        return -0.5 * eta**-1.5


LINKS: dict[str, type[Link]] = {
    cls.name: cls
    for cls in (
        IdentityLink,
        LogLink,
        LogitLink,
        ProbitLink,
        ComplementaryLogLogLink,
        InverseLink,
        InverseSquaredLink,
    )
}


def link_function(link: Any, usual: str) -> Link:
    """Return the link of this name; 'auto' is the usual one of a family."""
    name = usual if link == "auto" else link
    if name not in LINKS:
        raise DataError(got=f"link={link!r}", wanted=f"'auto' or one of {sorted(LINKS)}")
    return LINKS[name]()
