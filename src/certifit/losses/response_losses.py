"""Losses of generalised linear models: a family with a link, as a function of the score η.

    φ(η, y) = half the unit deviance d(y, g⁻¹(η)),    u = φ',    h = φ" (or its expectation)

A loss with |φ"'| <= R φ" ("concordance" R) has a proved distance to the optimum from gradient and Hessian alone,
with or without a penalty: see `optimise.self_concordance`. Any family goes with any link by the chain rule; the pairs
below have a form of their own, which is accurate in the tails and has the observed curvature.

| family | link | loss | R |
|---|---|---|---|
| gaussian | identity | LeastSquaresLoss | 0 |
| poisson, gamma, tweedie (1 < power < 2) | log | LogTweedieLoss | max(power - 1, 2 - power) |
| negative binomial | log | LogNegativeBinomialLoss | 1 |
| binomial | logit | LogitLoss | 1 |
| binomial | probit, cloglog | ProbitLoss, CLogLogLoss | none |
| any other | | ResponseLoss | none |
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr, xlog1py, xlogy

from certifit.losses.links import Link
from certifit.losses.response_families import (
    BinomialResponse,
    GammaResponse,
    GaussianResponse,
    NegativeBinomialResponse,
    PoissonResponse,
    ResponseFamily,
    TweedieResponse,
)
from certifit.rows import Array


class ScoreDerivatives(NamedTuple):
    """Value and derivatives of the loss at each row's score, all (rows,)."""

    phi: Array  # up to `ResponseLoss.constant`; infinite where no mean of the family has the score
    u: Array  # φ'
    h: Array  # φ" >= 0, or its expectation where φ" can be negative


class ResponseLoss:
    """Any family with any link, by the chain rule; h is the expected curvature (Fisher scoring)."""

    concordance: float | None = None  # R with |φ"'| <= R φ"

    def __init__(self, family: ResponseFamily, link: Link) -> None:
        self.family, self.link = family, link
        self.positive = link.positive or (link.name == "identity" and bool((~family.inside(np.array([-1.0])))[0]))

    def rows(self, eta: Array, y: Array) -> ScoreDerivatives:
        """Value, slope and curvature at scores η (rows,)."""
        mu = self.mean(eta)
        phi = self.family.half_deviance(y, mu)
        valid = np.isfinite(phi) & ((eta > 0) | (not self.positive))
        u = (mu - y) / self.family.variance(mu) * self.link.slope(eta)
        return ScoreDerivatives(np.where(valid, phi, np.inf), u, self.expected(eta))

    def constant(self, y: Array) -> Array | float:
        """The part of the half deviance that `phi` leaves out, since it does not depend on the score."""
        return 0.0

    def floor(self, y: Array, constant: Array) -> Array:
        """The half deviance below which there is nothing but rounding."""
        return 16 * np.finfo(float).eps * (np.abs(constant) + np.abs(y))

    def expected(self, eta: Array) -> Array:
        """The expected curvature E φ", of which Fisher's information is the sum."""
        return self.link.slope(eta) ** 2 / self.family.variance(self.mean(eta))

    def mean(self, eta: Array) -> Array:
        """The mean μ at scores η."""
        return self.link.mean(eta)


class LeastSquaresLoss(ResponseLoss):
    """Half the squared error."""

    concordance = 0.0

    def rows(self, eta: Array, y: Array) -> ScoreDerivatives:
        u = eta - y
        return ScoreDerivatives(0.5 * u**2, u, np.ones_like(u))

    def floor(self, y: Array, constant: Array) -> Array:
        return (
            1000 * np.finfo(float).eps * y
        ) ** 2  # scores of nearly collinear columns have a larger rounding error than y


class LogTweedieLoss(ResponseLoss):
    """Variance μ^p, 1 <= p <= 2, log link: Poisson (1), Gamma (2) and between. u = μ^(2-p) - y μ^(1-p)."""

    def __init__(self, family: ResponseFamily, link: Link, power: float) -> None:
        super().__init__(family, link)
        self.power = power
        self.concordance = max(power - 1, 2 - power)

    def rows(self, eta: Array, y: Array) -> ScoreDerivatives:
        p = self.power
        a = np.exp((2 - p) * eta) if p < 2 else np.ones_like(eta)
        b = y * np.exp((1 - p) * eta) if p > 1 else y
        rise = a / (2 - p) if p < 2 else eta
        fall = b / (p - 1) if p > 1 else -y * eta
        return ScoreDerivatives(rise + fall, a - b, (2 - p) * a + (p - 1) * b)

    def constant(self, y: Array) -> Array:
        p = self.power
        if p == 1:
            return xlogy(y, y) - y
        return -1 - np.log(y) if p == 2 else y ** (2 - p) / ((1 - p) * (2 - p))


class LogNegativeBinomialLoss(ResponseLoss):
    """(y + θ) log(μ + θ) - y log μ, log link."""

    concordance = 1.0

    def __init__(self, family: NegativeBinomialResponse, link: Link) -> None:
        super().__init__(family, link)
        self.theta = family.theta

    def rows(self, eta: Array, y: Array) -> ScoreDerivatives:
        t = self.theta
        mu = np.exp(eta)
        share = 1 / (1 + t / mu)  # μ / (μ + θ), right where μ overflows
        return ScoreDerivatives((y + t) * np.logaddexp(np.log(t), eta) - y * eta, (y + t) * share - y,
                           (y + t) * share / (1 + mu / t))  # fmt: skip

    def constant(self, y: Array) -> Array:
        return xlogy(y, y) - (y + self.theta) * np.log(y + self.theta)


class BinomialLoss(ResponseLoss):
    """What the losses of shares of successes have in common."""

    def constant(self, y: Array) -> Array:
        return xlogy(y, y) + xlog1py(1 - y, -y)


class LogitLoss(BinomialLoss):
    """log(1 + exp η) - y η, with exponentials of negative numbers only."""

    concordance = 1.0

    def rows(self, eta: Array, y: Array) -> ScoreDerivatives:
        a = np.exp(-np.abs(eta))
        small = a / (1 + a)  # probability of the less likely outcome
        above = eta > 0
        phi = np.log1p(a) + np.where(above, (1 - y) * eta, -y * eta)
        return ScoreDerivatives(phi, np.where(above, (1 - y) - small, small - y), small / (1 + a))

    def expected(self, eta: Array) -> Array:
        return self.link.slope(eta)


class ProbitLoss(BinomialLoss):
    """-y log Φ(η) - (1 - y) log Φ(-η), accurate in both tails."""

    def rows(self, eta: Array, y: Array) -> ScoreDerivatives:
        above, below = log_ndtr(eta), log_ndtr(-eta)
        log_density = -0.5 * eta**2 - 0.5 * np.log(2 * np.pi)
        up, down = np.exp(log_density - above), np.exp(log_density - below)
        h = y * up * (up + eta) + (1 - y) * down * (down - eta)
        return ScoreDerivatives(-y * above - (1 - y) * below, (1 - y) * down - y * up, np.maximum(h, 0.0))

    def expected(self, eta: Array) -> Array:
        return np.exp(-(eta**2) - np.log(2 * np.pi) - log_ndtr(eta) - log_ndtr(-eta))


class CLogLogLoss(BinomialLoss):
    """-y log(1 - exp(-t)) + (1 - y) t,  t = exp η: the complementary log-log link."""

    def rows(self, eta: Array, y: Array) -> ScoreDerivatives:
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            t = np.exp(eta)
            odds = _over_expm1(t)
            success = np.where(t < 1e-8, eta, np.where(t < 0.7, np.log(-np.expm1(-t)), np.log1p(-np.exp(-t))))
            fall = np.where(y < 1, (1 - y) * t, 0.0)
            h = fall + np.where(odds > 0, y * odds * (odds + t - 1), 0.0)
            return ScoreDerivatives(fall - np.where(y > 0, y * success, 0.0), fall - y * odds, np.maximum(h, 0.0))

    def expected(self, eta: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            t = np.exp(eta)
            return np.where(t < 700, t * _over_expm1(t), 0.0)


def _over_expm1(t: Array) -> Array:
    """t / (exp t - 1)."""
    return np.where(t < 1e-300, 1.0, np.where(t > 700, 0.0, t / np.expm1(np.clip(t, 1e-300, 700))))


def glm_loss(family: ResponseFamily, link: Link) -> ResponseLoss:
    """Return the loss of a family with a link: a form of its own from the table above, or the chain rule."""
    if isinstance(family, GaussianResponse) and link.name == "identity":
        return LeastSquaresLoss(family, link)
    if isinstance(family, BinomialResponse):
        own = {"logit": LogitLoss, "probit": ProbitLoss, "cloglog": CLogLogLoss}
        return own.get(link.name, ResponseLoss)(family, link)
    if link.name == "log":
        if isinstance(family, NegativeBinomialResponse):
            return LogNegativeBinomialLoss(family, link)
        power = {PoissonResponse: 1.0, GammaResponse: 2.0}.get(type(family))
        if isinstance(family, TweedieResponse) and 1 < family.power < 2:
            power = family.power
        if power is not None:
            return LogTweedieLoss(family, link, power)
    return ResponseLoss(family, link)
