"""Log-likelihoods of response families and scores of constant means, in plain NumPy, for the checker of inference.

The dispersion, where it is free, is that of the deviance: φ = deviance / rows.
Reference: McCullagh & Nelder, Generalized Linear Models (1989), chapter 2.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, logit, ndtri, xlog1py, xlogy

from certifit.checkers.plain.response_losses import GlmClaim, is_convex, mean_and_slope, power_of
from certifit.rows import Array


def has_free_dispersion(claim: GlmClaim) -> bool:
    """Whether the dispersion is estimated; it is 1 otherwise."""
    return claim.family in ("gaussian", "gamma", "inverse_gaussian", "tweedie")


def saturated_part(claim: GlmClaim, y: Array, trials: Array) -> Array:
    """The part of each row's log f(y; mean y) that no dispersion changes (rows,)."""
    if claim.family == "binomial":
        if ((y == 0) | (y == 1)).all():  # there is one way only, and it is certain
            return np.zeros_like(y)
        wins = y * trials
        ways = gammaln(trials + 1) - gammaln(wins + 1) - gammaln(trials - wins + 1)
        return ways + trials * (xlogy(y, y) + xlog1py(1 - y, -y))
    if claim.family == "poisson":
        return xlogy(y, y) - y - gammaln(y + 1)
    if claim.family == "negative_binomial":
        t = claim.theta
        ways = gammaln(y + t) - gammaln(t) - gammaln(y + 1)
        return ways + xlogy(y, y / (y + t)) + t * np.log(t / (y + t))
    if claim.family == "gamma":
        return -np.log(y)
    return -1.5 * np.log(y) if claim.family == "inverse_gaussian" else np.zeros_like(y)


def log_likelihood(claim: GlmClaim, saturated: float, deviance: float, rows: float) -> float:
    """The log-likelihood, given the sum of `saturated_part` over the rows and their deviance."""
    if claim.family in ("binomial", "poisson", "negative_binomial"):
        return saturated - 0.5 * deviance
    if claim.family == "tweedie":  # the density has no closed form
        return np.nan
    if deviance == 0:  # a density without spread is infinite where the points are
        return np.inf
    if claim.family == "gamma":
        shape = rows / deviance
        return saturated + rows * float(shape * np.log(shape) - shape - gammaln(shape) - 0.5)
    return saturated - 0.5 * rows * (float(np.log(2 * np.pi * deviance / rows)) + 1)


def constant_score(claim: GlmClaim, mean: float, weight: float) -> float:
    """The score of a constant mean; half an event is added or taken where that is at the edge of the range."""
    if claim.family != "gaussian" and not (claim.family == "tweedie" and power_of(claim) < 0):
        mean = max(mean, 0.5 / (weight + 1))
    if claim.family == "binomial":
        mean = min(mean, 1 - 0.5 / (weight + 1))
    if mean <= 0 and claim.link != "identity":  # a mean of 0 would be best, and is out of reach
        return -np.inf if claim.link == "log" else np.inf
    scores = {
        "identity": lambda: mean,
        "log": lambda: np.log(mean),
        "logit": lambda: logit(mean),
        "probit": lambda: ndtri(mean),
        "cloglog": lambda: np.log(-np.log1p(-mean)),
        "inverse": lambda: 1 / mean,
        "inverse_squared": lambda: mean**-2.0,
    }
    return float(scores[claim.link]())


def has_expected_curvature(claim: GlmClaim) -> bool:
    """Whether the φ" of `loss` is its own expectation: with a canonical link, and where φ is not convex."""
    canonical = {
        ("gaussian", "identity"),
        ("binomial", "logit"),
        ("poisson", "log"),
        ("gamma", "inverse"),
        ("inverse_gaussian", "inverse_squared"),
    }
    return (claim.family, claim.link) in canonical or not is_convex(claim)


def expected_curvature(claim: GlmClaim, eta: Array) -> Array:
    """E φ", of which Fisher's information is the sum; log-odds and logarithms without overflow."""
    with np.errstate(all="ignore"):
        mu, slope = mean_and_slope(claim.link, eta)
        if claim.family == "binomial":
            failure = _failure(claim.link, eta)
            share = slope / mu
            return np.where(slope > 0, share * (slope / failure), 0.0)
        if claim.link == "log" and claim.family != "negative_binomial":
            return np.exp((2 - power_of(claim)) * eta)
        if claim.family == "negative_binomial":
            return slope / mu * (slope / (1 + mu / claim.theta))
        return slope / mu ** power_of(claim) * slope


def _failure(link: str, eta: Array) -> Array:
    """1 - μ, accurate where μ is close to 1."""
    if link in ("logit", "probit"):
        return mean_and_slope(link, -eta)[0]
    return np.exp(-np.exp(eta)) if link == "cloglog" else 1 - mean_and_slope(link, eta)[0]
