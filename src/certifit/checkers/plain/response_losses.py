"""Half unit deviances of generalised linear models and their derivatives in the score, in plain NumPy.

Written apart from the solver's losses, by the chain rule from mean, slope and variance, with a form of its own only
where the chain rule loses digits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit, log_expit, log_ndtr, ndtr, xlogy

from certifit.exceptions import DataError
from certifit.rows import Array


class Spec(NamedTuple):
    """Which problem a model claims to have solved, and which columns of y hold what."""

    family: str
    link: str
    alpha: float = 0.0  # strength of the penalty
    l1_ratio: float = 0.0
    per_row: bool = True  # alpha counts per unit of weight
    intercept: bool = True
    power: float = np.nan  # of Tweedie's variance
    theta: float = np.nan  # of the negative binomial's
    offset: int | None = None
    exposure: int | None = None
    trials: int | None = None


POSITIVE = {"inverse", "inverse_squared"}  # links whose scores must be positive
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


def is_convex(spec: Spec) -> bool:
    """Whether the deviance is convex in the score."""
    return (spec.family, spec.link) in CONVEX and not (spec.family == "tweedie" and not 1 <= spec.power <= 2)


def concordance(spec: Spec) -> float | None:
    """R with |φ"'| <= R φ" for every row, or None where there is none."""
    if (spec.family, spec.link) == ("gaussian", "identity"):
        return 0.0
    known = {("binomial", "logit"), ("poisson", "log"), ("negative_binomial", "log"), ("gamma", "log")}
    return 1.0 if (spec.family, spec.link) in known or (spec.family == "tweedie" and is_convex(spec)) else None


def loss(spec: Spec, eta: Array, y: Array) -> tuple[Array, Array, Array]:
    """φ (half the deviance, infinite where η is no score), φ' and φ" or, where φ is not convex, its expectation."""
    with np.errstate(all="ignore"):
        if spec.family == "binomial" and spec.link in _BINARY:
            below, above, u, h = _BINARY[spec.link](eta, y)
            phi = xlogy(y, y) + xlogy(1 - y, 1 - y) - y * above - (1 - y) * below
            return np.where(np.isnan(phi), np.inf, phi), u, h
        mu, slope, bend = _mean(spec.link, eta)
        variance, grows = _variance(spec, mu)
        phi = _half_deviance(spec, y, mu)
        u = (mu - y) / variance * slope
        h = slope**2 / variance
        if is_convex(spec):  # the observed curvature; equal to the expected one for canonical links
            h = h + (mu - y) * (bend / variance - slope**2 * grows / variance**2)
    outside = np.isnan(phi) | ((eta <= 0) & _needs_positive(spec))
    return np.where(outside, np.inf, phi), u, h


def _needs_positive(spec: Spec) -> bool:
    return spec.link in POSITIVE or (spec.link == "identity" and spec.family not in ("gaussian", "tweedie"))


def _mean(link: str, eta: Array) -> tuple[Array, Array, Array]:
    """μ, dμ/dη and d²μ/dη²."""
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


def _variance(spec: Spec, mu: Array) -> tuple[Array, Array]:
    """V(μ) and V'(μ)."""
    one = np.ones_like(mu)
    if spec.family == "negative_binomial":
        return mu + mu**2 / spec.theta, 1 + 2 * mu / spec.theta
    if spec.family == "binomial":
        return mu * (1 - mu), 1 - 2 * mu
    power = spec.power if spec.family == "tweedie" else _POWERS[spec.family]
    return (one, 0 * one) if power == 0 else (mu**power, power * mu ** (power - 1))


_POWERS = {"gaussian": 0.0, "poisson": 1.0, "gamma": 2.0, "inverse_gaussian": 3.0}


def _half_deviance(spec: Spec, y: Array, mu: Array) -> Array:
    if spec.family == "negative_binomial":
        t = spec.theta
        return xlogy(y, y / mu) - (y + t) * np.log((y + t) / (mu + t))
    if spec.family == "binomial":
        return xlogy(y, y / mu) + xlogy(1 - y, (1 - y) / (1 - mu))
    p = spec.power if spec.family == "tweedie" else _POWERS[spec.family]
    if p == 0:
        return 0.5 * (y - mu) ** 2
    if p == 1:
        return xlogy(y, y / mu) - y + mu
    if p == 2:
        return y / mu - 1 - np.log(y / mu)
    return np.maximum(y, 0) ** (2 - p) / ((1 - p) * (2 - p)) - y * mu ** (1 - p) / (1 - p) + mu ** (2 - p) / (2 - p)


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
