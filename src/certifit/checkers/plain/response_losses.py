"""Half unit deviances of generalised linear models and their derivatives in the score, in plain NumPy.

The checker uses no code of the solver: these are the formulas of `losses.response_losses` written a second time, by
the chain rule from mean, slope and variance, with a form of its own where the chain rule would lose digits or
overflow, and for every convex pair. A new link goes into `_mean` here, and into `losses.links`.

With a log link everything is a function of δ = η - log y. For the variance μ^p, with E(a) = (exp(aδ) - 1)/a:
    φ = y^(2-p) (E(2-p) - E(1-p)),    φ' = μ^(2-p) - y μ^(1-p),    φ" = (2-p) μ^(2-p) + (p-1) y μ^(1-p)
so nothing overflows before φ itself does.

Rounding. Beside each φ and φ' stand the sizes of the terms it was computed from: each is off by at most a few eps of
that, and by what an error in the score makes of it.
"""

from __future__ import annotations

from collections.abc import Callable
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
    positive: bool = False  # whether coefficients are held at 0 or above


class LossTerms(NamedTuple):
    """Half the deviance of each row and its derivatives in the score, all (rows,)."""

    phi: Array  # infinite where no mean has the score
    u: Array  # φ'
    h: Array  # φ", or its expectation where φ is not convex
    phi_size: Array  # sum of the sizes of the terms of φ
    u_size: Array  # sum of the sizes of the terms of φ'


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


def loss(claim: GlmClaim, eta: Array, y: Array) -> LossTerms:
    """Half the deviance at scores η, with its derivatives; the expected curvature stands in where φ is not convex."""
    with np.errstate(all="ignore"):
        terms = _form(claim)(claim, eta, y)
    outside = np.isnan(terms.phi) | ((eta <= 0) & _needs_positive(claim))
    return terms._replace(phi=np.where(outside, np.inf, terms.phi))


def score_rounding(claim: GlmClaim, eta: Array, y: Array) -> Array:
    """How far rounding inside `loss` may move a score (rows,)."""
    if (claim.family, claim.link) == ("gaussian", "identity"):  # a difference is rounded by a share of itself
        return np.zeros_like(eta)
    with np.errstate(all="ignore"):
        logs = np.where(y > 0, np.abs(np.log(np.where(y > 0, y, 1.0))), 0.0) if claim.link == "log" else 0.0
    return 4 * np.finfo(float).eps * (np.abs(eta) + logs)


def term_size(claim: GlmClaim, y: Array) -> Array:
    """The size of the terms that half a deviance near 0 is usually computed from, at the mean y (rows,)."""
    with np.errstate(all="ignore"):
        if claim.family == "binomial":
            return np.full_like(y, np.log(2.0))
        if claim.family == "negative_binomial":
            return np.abs(xlogy(y, y)) + y
        p = power_of(claim)
        if p == 1:
            return np.abs(xlogy(y, y)) + y
        if p == 2:
            return 1 + np.abs(np.log(y))
        # A square has no such terms.
        return np.zeros_like(y) if p == 0 else np.abs(np.maximum(y, 0.0) ** (2 - p) / ((1 - p) * (2 - p)))


def _form(claim: GlmClaim) -> Callable[[GlmClaim, Array, Array], LossTerms]:
    """The formulas of this family and link."""
    own: dict[tuple[str, str], Callable[[GlmClaim, Array, Array], LossTerms]] = {
        ("gaussian", "identity"): _squares,
        ("binomial", "logit"): _binary,
        ("binomial", "probit"): _binary,
        ("binomial", "cloglog"): _binary,
        ("negative_binomial", "log"): _log_negative_binomial,
        ("poisson", "log"): _log_power,
        ("gamma", "log"): _log_power,
        ("inverse_gaussian", "log"): _log_power,
        ("poisson", "identity"): _identity_poisson,
        ("gamma", "inverse"): _inverse_gamma,
        ("inverse_gaussian", "inverse_squared"): _canonical_inverse_gaussian,
    }
    if (claim.family, claim.link) == ("tweedie", "log") and claim.power > 0:
        return _log_power
    return own.get((claim.family, claim.link), _by_chain_rule)


def _squares(_claim: GlmClaim, eta: Array, y: Array) -> LossTerms:
    """Half the square of a difference, which is rounded by a share of itself."""
    u = eta - y
    phi = 0.5 * u**2
    return LossTerms(phi, u, np.ones_like(u), phi, np.abs(u))


def _log_power(claim: GlmClaim, eta: Array, y: Array) -> LossTerms:
    """Variance μ^p with a log link; a target of 0 has the term of the mean alone."""
    p, positive = power_of(claim), y > 0
    log_y = np.log(np.where(positive, y, 1.0))
    unit, delta = np.exp((2 - p) * log_y), eta - log_y
    up, down = _grown(2 - p, delta), _grown(1 - p, delta)
    a, b = np.exp((2 - p) * eta), np.where(positive, np.exp((1 - p) * eta + log_y), 0.0)
    alone = a / (2 - p) if p < 2 else np.inf
    phi = np.where(positive, unit * (up - down), alone)
    size = np.where(positive, unit * (np.abs(up) + np.abs(down)), alone)
    return LossTerms(phi, a - b, (2 - p) * a + (p - 1) * b if is_convex(claim) else a, size, a + b)


def _grown(rate: float, delta: Array) -> Array:
    """E(a) = (exp(aδ) - 1) / a, which is δ for a = 0."""
    return np.expm1(rate * delta) / rate if rate else delta


def _log_negative_binomial(claim: GlmClaim, eta: Array, y: Array) -> LossTerms:
    t = claim.theta
    above, below = expit(eta - np.log(t)), expit(np.log(t) - eta)  # μ / (μ + θ) and θ / (μ + θ)
    total, log_y = np.logaddexp(np.log(t), eta), np.log(np.where(y > 0, y, 1.0))
    phi = y * (log_y - eta) + (y + t) * (total - np.log(y + t))
    size = y * (np.abs(log_y) + np.abs(eta)) + (y + t) * (np.abs(total) + np.abs(np.log(y + t)))
    return LossTerms(phi, t * above - y * below, (y + t) * above * below, size, t * above + y * below)


def _identity_poisson(_claim: GlmClaim, eta: Array, y: Array) -> LossTerms:
    ratio = y / eta
    phi, size = xlogy(y, ratio) - y + eta, np.abs(xlogy(y, ratio)) + y + eta
    return LossTerms(phi, 1 - ratio, ratio / eta, size, 1 + ratio)


def _inverse_gamma(_claim: GlmClaim, eta: Array, y: Array) -> LossTerms:
    ratio = y * eta
    return LossTerms(
        ratio - 1 - np.log(ratio), y - 1 / eta, 1 / eta / eta, ratio + 1 + np.abs(np.log(ratio)), y + 1 / eta
    )


def _canonical_inverse_gaussian(_claim: GlmClaim, eta: Array, y: Array) -> LossTerms:
    mu = 1 / np.sqrt(eta)
    phi, size = 0.5 * (y / mu - 1) ** 2 / y, 0.5 * (y / mu + 1) ** 2 / y
    return LossTerms(phi, 0.5 * (y - mu), 0.25 * mu / eta, size, 0.5 * (y + mu))


def _by_chain_rule(claim: GlmClaim, eta: Array, y: Array) -> LossTerms:
    """Any family with any link, with the expected curvature."""
    mu, slope = mean_and_slope(claim.link, eta)
    variance = variance_of(claim, mu)
    terms = _deviance_terms(claim, y, mu)
    phi = 0.5 * (y - mu) ** 2 if claim.family == "gaussian" else np.sum(terms, axis=0)
    size = phi if claim.family == "gaussian" else np.sum(np.abs(terms), axis=0)
    u = (mu - y) / variance * slope
    # A difference is rounded by a share of itself; the identity has nothing else to round.
    u_size = np.abs(u) if claim.link == "identity" else (np.abs(mu) + np.abs(y)) * np.abs(slope) / variance
    return LossTerms(phi, u, slope / variance * slope, size, u_size)


def _needs_positive(claim: GlmClaim) -> bool:
    """Whether only scores above 0 belong to a mean."""
    return claim.link in ("inverse", "inverse_squared") or (
        claim.link == "identity" and claim.family not in ("gaussian", "tweedie")
    )


def mean_and_slope(link: str, eta: Array) -> tuple[Array, Array]:
    """The mean μ at scores η, and dμ/dη."""
    with np.errstate(all="ignore"):
        return _mean(link, eta)


def _mean(link: str, eta: Array) -> tuple[Array, Array]:
    if link == "identity":
        return eta, np.ones_like(eta)
    if link == "log":
        mu = np.exp(eta)
        return mu, mu
    if link == "inverse":
        return 1 / eta, -1 / eta**2
    if link == "inverse_squared":
        return eta**-0.5, -0.5 * eta**-1.5
    if link == "logit":
        mu = expit(eta)
        return mu, mu * expit(-eta)
    if link == "probit":
        return ndtr(eta), np.exp(-0.5 * eta**2) / np.sqrt(2 * np.pi)
    if link == "cloglog":
        t = np.exp(eta)
        return -np.expm1(-t), t * np.exp(-t)
    raise DataError(got=f"a model with link {link!r}", wanted="one of the links that certifit knows")


def variance_of(claim: GlmClaim, mu: Array) -> Array:
    """The variance function V(μ)."""
    if claim.family == "negative_binomial":
        return mu + mu**2 / claim.theta
    if claim.family == "binomial":
        return mu * (1 - mu)
    power = power_of(claim)
    return np.ones_like(mu) if power == 0 else mu**power


def power_of(claim: GlmClaim) -> float:
    """The p of the variance function μ^p."""
    named = {"gaussian": 0.0, "poisson": 1.0, "gamma": 2.0, "inverse_gaussian": 3.0}
    return claim.power if claim.family == "tweedie" else named[claim.family]


def _deviance_terms(claim: GlmClaim, y: Array, mu: Array) -> Array:
    """The terms (t, rows) that half the unit deviance is the sum of."""
    if claim.family == "negative_binomial":
        t = claim.theta
        return np.array([xlogy(y, y / mu), -(y + t) * np.log((y + t) / (mu + t))])
    if claim.family == "binomial":
        return np.array([xlogy(y, y / mu), xlogy(1 - y, (1 - y) / (1 - mu))])
    p = power_of(claim)
    if p == 1:
        return np.array([xlogy(y, y / mu), -y, mu])
    if p == 2:
        return np.array([y / mu, -np.ones_like(y), -np.log(y / mu)])
    if p == 3:
        return np.array([0.5 * ((y - mu) / mu) ** 2 / y])
    return np.array(
        [
            np.maximum(y, 0) ** (2 - p) / ((1 - p) * (2 - p)),
            -y * mu ** (1 - p) / (1 - p),
            mu ** (2 - p) / (2 - p),
        ]
    )


def _binary(claim: GlmClaim, eta: Array, y: Array) -> LossTerms:
    """Shares of successes y, accurate in both tails."""
    below, above, up, down, h = _BINARY[claim.link](eta, y)
    known = xlogy(y, y) + xlogy(1 - y, 1 - y)
    fails = np.where(y < 1, (1 - y) * below, 0.0)
    wins = np.where(y > 0, y * above, 0.0)
    return LossTerms(known - wins - fails, down - up, h, np.abs(known) + np.abs(wins) + np.abs(fails), down + up)


# Of a share of successes y: log P(failure), log P(success), the terms y·up and (1 - y)·down of φ', and φ".
def _logit(eta: Array, y: Array) -> tuple[Array, ...]:
    p, q = expit(eta), expit(-eta)
    return log_expit(-eta), log_expit(eta), y * q, (1 - y) * p, p * q


def _probit(eta: Array, y: Array) -> tuple[Array, ...]:
    below, above = log_ndtr(-eta), log_ndtr(eta)
    log_density = -0.5 * eta**2 - 0.5 * np.log(2 * np.pi)
    up, down = np.exp(log_density - above), np.exp(log_density - below)
    return below, above, y * up, (1 - y) * down, y * up * (up + eta) + (1 - y) * down * (down - eta)


def _cloglog(eta: Array, y: Array) -> tuple[Array, ...]:
    t = np.exp(eta)
    odds = np.where(t > 1e-300, t / np.expm1(t), 1.0)
    above = np.where(t < 0.5, np.log(-np.expm1(-t)), np.log1p(-np.exp(-t)))
    above = np.where(t > 1e-300, above, eta)
    rise = np.where(y < 1, (1 - y) * t, 0.0)
    return -t, above, y * odds, rise, rise + np.where(odds > 0, y * odds * (odds + t - 1), 0.0)


_BINARY = {"logit": _logit, "probit": _probit, "cloglog": _cloglog}
