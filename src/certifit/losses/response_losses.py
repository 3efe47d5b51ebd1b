"""Losses of generalised linear models: a family with a link, as a function of the score η.

    φ(η, y) = half the unit deviance d(y, g⁻¹(η)),    u = φ',    h = φ" (or its expectation)

A loss with |φ"'| <= R φ" ("concordance" R) has a proved distance to the optimum from gradient and Hessian alone,
with or without a penalty; see `glm_solve`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr, xlog1py, xlogy

from certifit.losses.links import Link
from certifit.losses.response_families import (
    Binomial,
    Gamma,
    Gaussian,
    NegativeBinomial,
    Poisson,
    ResponseFamily,
    Tweedie,
)
from certifit.rows import Array


class Derivatives(NamedTuple):
    """Of the loss at each row's score, all (rows,)."""

    phi: Array  # up to `Loss.constant`; infinite where the score is no mean of the family
    u: Array  # φ'
    h: Array  # φ" >= 0, or its expectation where φ" can be negative


class Loss:
    """Any family with any link, by the chain rule; h is the expected curvature (Fisher scoring)."""

    concordance: float | None = None  # R with |φ"'| <= R φ"

    def __init__(self, family: ResponseFamily, link: Link) -> None:
        self.family, self.link = family, link
        self.positive = link.positive or (link.name == "identity" and bool((~family.inside(np.array([-1.0])))[0]))

    def rows(self, eta: Array, y: Array) -> Derivatives:
        mu = self.mean(eta)
        phi = self.family.half_deviance(y, mu)
        valid = np.isfinite(phi) & ((eta > 0) | (not self.positive))
        u = (mu - y) / self.family.variance(mu) * self.link.slope(eta)
        return Derivatives(np.where(valid, phi, np.inf), u, self.expected(eta))

    def constant(self, y: Array) -> Array | float:
        """What `phi` leaves out of the half deviance."""
        return 0.0

    def floor(self, y: Array, constant: Array) -> Array:
        """Half deviance below which there is nothing but rounding."""
        return 16 * np.finfo(float).eps * (np.abs(constant) + np.abs(y))

    def expected(self, eta: Array) -> Array:
        """E φ": the curvature that Fisher information is made of."""
        return self.link.slope(eta) ** 2 / self.family.variance(self.mean(eta))

    def mean(self, eta: Array) -> Array:
        return self.link.mean(eta)


class LeastSquares(Loss):
    concordance = 0.0

    def rows(self, eta: Array, y: Array) -> Derivatives:
        u = eta - y
        return Derivatives(0.5 * u**2, u, np.ones_like(u))

    def floor(self, y: Array, constant: Array) -> Array:
        return (1000 * np.finfo(float).eps * y) ** 2  # scores of nearly collinear columns round more than y


class LogTweedie(Loss):
    """Variance μ^p, 1 <= p <= 2, log link: Poisson (1), Gamma (2) and between. u = μ^(2-p) - y μ^(1-p)."""

    def __init__(self, family: ResponseFamily, link: Link, power: float) -> None:
        super().__init__(family, link)
        self.power = power
        self.concordance = max(power - 1, 2 - power)

    def rows(self, eta: Array, y: Array) -> Derivatives:
        p = self.power
        a = np.exp((2 - p) * eta) if p < 2 else np.ones_like(eta)
        b = y * np.exp((1 - p) * eta) if p > 1 else y
        rise = a / (2 - p) if p < 2 else eta
        fall = b / (p - 1) if p > 1 else -y * eta
        return Derivatives(rise + fall, a - b, (2 - p) * a + (p - 1) * b)

    def constant(self, y: Array) -> Array:
        p = self.power
        if p == 1:
            return xlogy(y, y) - y
        return -1 - np.log(y) if p == 2 else y ** (2 - p) / ((1 - p) * (2 - p))


class LogNegativeBinomial(Loss):
    concordance = 1.0

    def __init__(self, family: NegativeBinomial, link: Link) -> None:
        super().__init__(family, link)
        self.theta = family.theta

    def rows(self, eta: Array, y: Array) -> Derivatives:
        t = self.theta
        mu = np.exp(eta)
        share = 1 / (1 + t / mu)  # μ / (μ + θ), right where μ overflows
        return Derivatives((y + t) * np.logaddexp(np.log(t), eta) - y * eta, (y + t) * share - y,
                           (y + t) * share / (1 + mu / t))  # fmt: skip

    def constant(self, y: Array) -> Array:
        return xlogy(y, y) - (y + self.theta) * np.log(y + self.theta)


class Logistic(Loss):
    concordance = 1.0

    def rows(self, eta: Array, y: Array) -> Derivatives:
        a = np.exp(-np.abs(eta))
        small = a / (1 + a)  # probability of the less likely outcome
        above = eta > 0
        phi = np.log1p(a) + np.where(above, (1 - y) * eta, -y * eta)
        return Derivatives(phi, np.where(above, (1 - y) - small, small - y), small / (1 + a))

    def expected(self, eta: Array) -> Array:
        return self.link.slope(eta)

    def constant(self, y: Array) -> Array:
        return xlogy(y, y) + xlog1py(1 - y, -y)


class Probit(Loss):
    """-y log Φ(η) - (1 - y) log Φ(-η) in logarithms, right in both tails."""

    def rows(self, eta: Array, y: Array) -> Derivatives:
        above, below = log_ndtr(eta), log_ndtr(-eta)
        log_density = -0.5 * eta**2 - 0.5 * np.log(2 * np.pi)
        up, down = np.exp(log_density - above), np.exp(log_density - below)
        h = y * up * (up + eta) + (1 - y) * down * (down - eta)
        return Derivatives(-y * above - (1 - y) * below, (1 - y) * down - y * up, np.maximum(h, 0.0))

    def constant(self, y: Array) -> Array:
        return xlogy(y, y) + xlog1py(1 - y, -y)

    def expected(self, eta: Array) -> Array:
        return np.exp(-(eta**2) - np.log(2 * np.pi) - log_ndtr(eta) - log_ndtr(-eta))


class CLogLog(Loss):
    """-y log(1 - exp(-t)) + (1 - y) t,  t = exp η."""

    def rows(self, eta: Array, y: Array) -> Derivatives:
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            t = np.exp(eta)
            odds = _over_expm1(t)
            success = np.where(t < 1e-8, eta, np.where(t < 0.7, np.log(-np.expm1(-t)), np.log1p(-np.exp(-t))))
            fall = np.where(y < 1, (1 - y) * t, 0.0)
            h = fall + np.where(odds > 0, y * odds * (odds + t - 1), 0.0)
            return Derivatives(fall - np.where(y > 0, y * success, 0.0), fall - y * odds, np.maximum(h, 0.0))

    def constant(self, y: Array) -> Array:
        return xlogy(y, y) + xlog1py(1 - y, -y)

    def expected(self, eta: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            t = np.exp(eta)
            return np.where(t < 700, t * _over_expm1(t), 0.0)


def _over_expm1(t: Array) -> Array:
    """t / (exp t - 1)."""
    return np.where(t < 1e-300, 1.0, np.where(t > 700, 0.0, t / np.expm1(np.clip(t, 1e-300, 700))))


def glm_loss(family: ResponseFamily, link: Link) -> Loss:
    """The loss of a family with a link: a form of its own where there is a stable one, the chain rule otherwise."""
    if isinstance(family, Gaussian) and link.name == "identity":
        return LeastSquares(family, link)
    if isinstance(family, Binomial):
        return {"logit": Logistic, "probit": Probit, "cloglog": CLogLog}.get(link.name, Loss)(family, link)
    if link.name == "log":
        if isinstance(family, NegativeBinomial):
            return LogNegativeBinomial(family, link)
        power = {Poisson: 1.0, Gamma: 2.0}.get(type(family))
        if isinstance(family, Tweedie) and 1 < family.power < 2:
            power = family.power
        if power is not None:
            return LogTweedie(family, link, power)
    return Loss(family, link)
