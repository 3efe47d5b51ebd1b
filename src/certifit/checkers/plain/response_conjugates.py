"""Conjugates of the convex losses of generalised linear models: what a row adds to a lower bound.

A row's share of the bound at a dual number u is  g(u) = -φ*(u) = min over t of φ(t) - u t,  concave, with g(0) = 0;
u outside the range of φ' has g(u) = -∞. Sizes of terms stand beside, to which rounding is relative.

| family, link | g(u) | range |
|---|---|---|
| gaussian, identity | -u²/2 - uy | any u |
| poisson, log | q - q log q + y log y - y, q = y + u | u >= -y |
| gamma, log | -u log y - (1 - u) log(1 - u) - u | u <= 1 |
| binomial, logit | H(y + u) - H(y), H the entropy | -y <= u <= 1 - y |
| negative binomial, log | the same in shares of y + θ | -y <= u <= θ |
| poisson, identity | y log(1 - u) | u < 1 |
| gamma, inverse | log(1 - u/y) | u < y |
| inverse gaussian, inverse squared | 1/2y - 1/2(y - 2u) | u < y/2 |

The others have no closed form: at u = φ'(t) the minimum is φ(t) - u t itself.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import entr, xlog1py, xlogy

from certifit.checkers.plain.response_losses import GlmClaim
from certifit.rows import Array

Gain = tuple[Array, Array]  # g(u) and the sum of the sizes of its terms, both (rows,)


def has_conjugate(claim: GlmClaim) -> bool:
    """Whether g has a closed form."""
    return (claim.family, claim.link) in _FORMS


def gain(claim: GlmClaim, u: Array, y: Array) -> Gain:
    """The share g(u) of each row in a lower bound, -inf where u is outside the range."""
    with np.errstate(all="ignore"):
        value, size, inside = _FORMS[claim.family, claim.link](claim, u, y)
    inside = inside & np.isfinite(value)
    return np.where(inside, value, -np.inf), np.where(inside, size, np.inf)


def _gaussian(_claim: GlmClaim, u: Array, y: Array) -> tuple[Array, Array, Array]:
    return -0.5 * u**2 - u * y, 0.5 * u**2 + np.abs(u * y), np.isfinite(u)


def _log_poisson(_claim: GlmClaim, u: Array, y: Array) -> tuple[Array, Array, Array]:
    q = y + u
    return q + entr(q) + xlogy(y, y) - y, q + np.abs(entr(q)) + np.abs(xlogy(y, y)) + y, u >= -y


def _log_gamma(_claim: GlmClaim, u: Array, y: Array) -> tuple[Array, Array, Array]:
    # 1 - u is rounded to the last digit of 1, however small u is.
    terms = -u * np.log(y), -xlog1py(1 - u, -u), -u
    return np.sum(terms, axis=0), np.sum(np.abs(terms), axis=0), u <= 1


def _share_entropy(p: Array, q: Array) -> Array:
    """H(p, q) of shares that add up to 1, with all digits where one is small: -(1 - s) log(1 - s) is about s."""
    small = np.minimum(p, q)
    return np.asarray(entr(small) - xlog1py(1 - small, -small))


def _logit(_claim: GlmClaim, u: Array, y: Array) -> tuple[Array, Array, Array]:
    p, q = y + u, (1 - y) - u
    known = entr(y) + entr(1 - y)
    # 1 - y is rounded where y is a share, which matters to the logarithm of a small q.
    share = (y > 0) & (y < 1)
    logs, entropy = np.where(share, 750.0, 0.0), np.where(share, entr(p) + entr(q), _share_entropy(p, q))
    return entropy - known, entropy + known + logs, (u >= -y) & (u <= 1 - y)


def _log_negative_binomial(claim: GlmClaim, u: Array, y: Array) -> tuple[Array, Array, Array]:
    t = claim.theta
    total = y + t
    p, q = (y + u) / total, (t - u) / total
    terms = total * _share_entropy(p, q), total * q * np.log(t), xlogy(y, y), -total * np.log(total)
    return np.sum(terms, axis=0), np.sum(np.abs(terms), axis=0), (u >= -y) & (u <= t)


def _identity_poisson(_claim: GlmClaim, u: Array, y: Array) -> tuple[Array, Array, Array]:
    value = np.where(y > 0, y * np.log1p(-u), 0.0)
    return value, np.abs(value), (u < 1) | ((y == 0) & (u == 1))


def _inverse_gamma(_claim: GlmClaim, u: Array, y: Array) -> tuple[Array, Array, Array]:
    value = np.log1p(-u / y)
    # The ratio is rounded once: that is a few eps of u / (y - u).
    return value, np.abs(value) + np.abs(u) / (y - u), u < y


def _canonical_inverse_gaussian(_claim: GlmClaim, u: Array, y: Array) -> tuple[Array, Array, Array]:
    terms = 0.5 / y, -0.5 / (y - 2 * u)
    return np.sum(terms, axis=0), np.sum(np.abs(terms), axis=0), 2 * u < y


_FORMS: dict[tuple[str, str], Callable[[GlmClaim, Array, Array], tuple[Array, Array, Array]]] = {
    ("gaussian", "identity"): _gaussian,
    ("poisson", "log"): _log_poisson,
    ("gamma", "log"): _log_gamma,
    ("binomial", "logit"): _logit,
    ("negative_binomial", "log"): _log_negative_binomial,
    ("poisson", "identity"): _identity_poisson,
    ("gamma", "inverse"): _inverse_gamma,
    ("inverse_gaussian", "inverse_squared"): _canonical_inverse_gaussian,
}
