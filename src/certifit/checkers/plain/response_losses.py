"""Half unit deviances of generalised linear models and their derivatives in the score, in plain NumPy.

The checker uses no code of the solver: these are the formulas of `losses.response_losses` written a second time, by
the chain rule from mean, slope and variance, with a form of its own only where the chain rule loses digits. A new
link goes into `_mean` here, and into `losses.links`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit, log_expit, log_ndtr, ndtr, xlogy

from certifit.checkers.plain.response_columns import ResponseLayout
from certifit.exceptions import DataError
from certifit.rows import Array


class GlmClaim(NamedTuple):
    """Which problem a generalised linear model claims to have solved, and which columns of y hold what."""

    family: str
    link: str
    alpha: float = 0.0  # strength of the penalty
    l1_ratio: float = 0.0  # share of the penalty that is |β|₁
    per_row: bool = True  # alpha counts per unit of row weight
    intercept: bool = True  # whether there is a free intercept
    power: float = np.nan  # of Tweedie's variance
    theta: float = np.nan  # of the negative binomial's variance
    layout: ResponseLayout = ResponseLayout()


CONVEX = {
    ("gaussian", "identity"),
    ("binomial", "logit"),
    ("binomial", "probit"),
    ("binomial", "cloglog"),
    ("poisson", "log"),
    ("poisson", "identity"),
    ("negative_binomial", "log"),
    ("gamma", "log"),
    ("gamma", "inverse"),
    ("inverse_gaussian", "inverse_squared"),
    ("tweedie", "log"),
}


def is_convex(claim: GlmClaim) -> bool:
    """Whether the deviance is convex in the score."""
    return (claim.family, claim.link) in CONVEX and not (claim.family == "tweedie" and not 1 <= claim.power <= 2)


def concordance(claim: GlmClaim) -> float | None:
    """R with |φ"'| <= R φ" for every row, or None where there is none."""
    if (claim.family, claim.link) == ("gaussian", "identity"):
        return 0.0
    known = {("binomial", "logit"), ("poisson", "log"), ("negative_binomial", "log"), ("gamma", "log")}
    return 1.0 if (claim.family, claim.link) in known or (claim.family == "tweedie" and is_convex(claim)) else None


def loss(claim: GlmClaim, eta: Array, y: Array) -> tuple[Array, Array, Array]:
    """Half the deviance φ (infinite where no mean has the score η), φ', and φ" or its expectation, all (rows,).

    The expectation stands in for φ" where φ is not convex.
    """
    with np.errstate(all="ignore"):
        if claim.family == "binomial" and claim.link in _BINARY:
            below, above, u, h = _BINARY[claim.link](eta, y)
            phi = xlogy(y, y) + xlogy(1 - y, 1 - y) - y * above - (1 - y) * below
            return np.where(np.isnan(phi), np.inf, phi), u, h
        mu, slope, bend = _mean(claim.link, eta)
        variance, grows = _variance(claim, mu)
        phi = _half_deviance(claim, y, mu)
        u = (mu - y) / variance * slope
        h = slope**2 / variance
        if is_convex(claim):  # the observed curvature; equal to the expected one for canonical links
            h = h + (mu - y) * (bend / variance - slope**2 * grows / variance**2)
    outside = np.isnan(phi) | ((eta <= 0) & _needs_positive(claim))
    return np.where(outside, np.inf, phi), u, h


def _needs_positive(claim: GlmClaim) -> bool:
    """Whether only scores above 0 belong to a mean."""
    return claim.link in ("inverse", "inverse_squared") or (
        claim.link == "identity" and claim.family not in ("gaussian", "tweedie")
    )


def _mean(link: str, eta: Array) -> tuple[Array, Array, Array]:
    """The mean μ at scores η, dμ/dη and d²μ/dη²."""
    if link == "identity":
        return eta, np.ones_like(eta), np.zeros_like(eta)
    if link == "log":
        mu = np.exp(eta)
        return mu, mu, mu
    if link == "inverse":
        return 1 / eta, -1 / eta**2, 2 / eta**3
    if link == "inverse_squared":
        return eta**-0.5, -0.5 * eta**-1.5, 0.75 * eta**-2.5
    if link == "logit":
        mu = expit(eta)
        return mu, mu * (1 - mu), mu * (1 - mu) * (1 - 2 * mu)
    if link == "probit":
        density = np.exp(-0.5 * eta**2) / np.sqrt(2 * np.pi)
        return ndtr(eta), density, -eta * density
    if link == "cloglog":
        t = np.exp(eta)
        return -np.expm1(-t), t * np.exp(-t), t * (1 - t) * np.exp(-t)
    raise DataError(got=f"a model with link {link!r}", wanted="one of the links that certifit knows")


def _variance(claim: GlmClaim, mu: Array) -> tuple[Array, Array]:
    """The variance function V(μ) and its derivative."""
    one = np.ones_like(mu)
    if claim.family == "negative_binomial":
        return mu + mu**2 / claim.theta, 1 + 2 * mu / claim.theta
    if claim.family == "binomial":
        return mu * (1 - mu), 1 - 2 * mu
    power = _power(claim)
    return (one, 0 * one) if power == 0 else (mu**power, power * mu ** (power - 1))


def _power(claim: GlmClaim) -> float:
    """The p of the variance function μ^p."""
    named = {"gaussian": 0.0, "poisson": 1.0, "gamma": 2.0, "inverse_gaussian": 3.0}
    return claim.power if claim.family == "tweedie" else named[claim.family]


def _half_deviance(claim: GlmClaim, y: Array, mu: Array) -> Array:
    """Half the unit deviance d(y, μ) / 2."""
    if claim.family == "negative_binomial":
        t = claim.theta
        return xlogy(y, y / mu) - (y + t) * np.log((y + t) / (mu + t))
    if claim.family == "binomial":
        return xlogy(y, y / mu) + xlogy(1 - y, (1 - y) / (1 - mu))
    p = _power(claim)
    if p == 0:
        return 0.5 * (y - mu) ** 2
    if p == 1:
        return xlogy(y, y / mu) - y + mu
    if p == 2:
        return y / mu - 1 - np.log(y / mu)
    return np.maximum(y, 0) ** (2 - p) / ((1 - p) * (2 - p)) - y * mu ** (1 - p) / (1 - p) + mu ** (2 - p) / (2 - p)


# Of a share of successes y: log P(failure), log P(success), φ' and φ", accurate in both tails.
def _logit(eta: Array, y: Array) -> tuple[Array, ...]:
    p, q = expit(eta), expit(-eta)
    return log_expit(-eta), log_expit(eta), (1 - y) * p - y * q, p * q


def _probit(eta: Array, y: Array) -> tuple[Array, ...]:
    below, above = log_ndtr(-eta), log_ndtr(eta)
    log_density = -0.5 * eta**2 - 0.5 * np.log(2 * np.pi)
    up, down = np.exp(log_density - above), np.exp(log_density - below)
    return below, above, (1 - y) * down - y * up, y * up * (up + eta) + (1 - y) * down * (down - eta)


def _cloglog(eta: Array, y: Array) -> tuple[Array, ...]:
    t = np.exp(eta)
    odds = np.where(t > 1e-300, t / np.expm1(t), 1.0)
    above = np.where(t < 0.5, np.log(-np.expm1(-t)), np.log1p(-np.exp(-t)))
    above = np.where(t > 1e-300, above, eta)
    return -t, above, (1 - y) * t - y * odds, (1 - y) * t + y * odds * (odds + t - 1)


_BINARY = {"logit": _logit, "probit": _probit, "cloglog": _cloglog}
