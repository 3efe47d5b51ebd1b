"""The terms of each divergence: what one point x contributes, computed from p(x), q(x) and u = log q(x)/p(x).

Each divergence here is a sum (or integral) of terms that
- are never negative: a multiple of q - p, which sums to 0, is added where the textbook's terms change sign,
- keep all their digits where p and q nearly agree: they are computed from u, not as differences,
- scale with (p, q): t(c p, c q, u) = c t(p, q, u), so that they can be averaged over draws from any third density.
p = 0 (u = inf) and q = 0 (u = -inf) are allowed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import numpy as np

from certifit.families.stable import expm1mx
from certifit.rows import Array

Terms: TypeAlias = Callable[[Array, Array, Array], Array]  # (p, q, u) -> terms, all (n,)
NEAR = 0.5  # |u| below which terms are computed from u, above it from p and q


def log_ratio(p: Array, q: Array) -> Array:
    """Return log q/p, accurate also where q/p is nearly 1 or over- or underflows."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        ratio, change = q / p, (q - p) / p
        fits = (ratio > np.finfo(float).tiny) & np.isfinite(ratio)
        far = np.where(fits, np.log(ratio), np.log(q) - np.log(p))
        near = np.abs(change) < NEAR
        return np.where(near, np.log1p(np.where(near, change, 0.0)), far)


def kl_terms(p: Array, q: Array, u: Array) -> Array:
    """Return p log p/q - p + q."""
    with np.errstate(over="ignore", invalid="ignore"):
        far = q - p - np.where(p > 0, p * u, 0.0)
        return np.where(np.abs(u) < NEAR, p * expm1mx(u), far)


def jensen_shannon_terms(p: Array, q: Array, u: Array) -> Array:
    """Return half the KL terms of p and m plus half those of q and m, where m = (p + q)/2."""
    m = 0.5 * (p + q)
    return 0.5 * (kl_terms(p, m, _log_mean_ratio(u)) + kl_terms(q, m, _log_mean_ratio(-u)))


def _log_mean_ratio(u: Array) -> Array:
    """Return log (1 + exp u)/2."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(u < 1, np.log1p(0.5 * np.expm1(u)), u - np.log(2) + np.log1p(np.exp(-u)))


def total_variation_terms(p: Array, q: Array, u: Array) -> Array:
    """Return |p - q|/2."""
    with np.errstate(over="ignore", invalid="ignore"):
        return 0.5 * np.where(np.abs(u) < NEAR, p * np.abs(np.expm1(u)), np.abs(p - q))


def squared_hellinger_terms(p: Array, q: Array, u: Array) -> Array:
    """Return (sqrt p - sqrt q)²/2."""
    with np.errstate(over="ignore", invalid="ignore"):
        return 0.5 * np.where(np.abs(u) < NEAR, p * np.expm1(0.5 * u) ** 2, (np.sqrt(p) - np.sqrt(q)) ** 2)


def affinity_terms(alpha: float) -> Terms:
    """Return the function of (p, q, u) whose value is p^α q^(1-α)."""
    return partial(_affinity, alpha)


def _affinity(alpha: float, p: Array, q: Array, u: Array) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        # Multiplying the larger of p and q by a factor below 1 avoids overflow (for α < 1).
        value = np.where(u > 0, q * np.exp(-alpha * u), p * np.exp((1 - alpha) * u))
        return np.where(p > 0, np.where(np.isneginf(u), np.inf if alpha > 1 else 0.0, value), 0.0)


def affinity_change_terms(alpha: float) -> Terms:
    """Return the function with the value |p^α q^(1-α) - α p - (1-α) q|; its sum is |Σ p^α q^(1-α) - 1|."""
    return partial(_affinity_change, alpha)


def _affinity_change(alpha: float, p: Array, q: Array, u: Array) -> Array:
    s = 1 - alpha
    with np.errstate(over="ignore", invalid="ignore"):
        near = p * expm1mx(s * u) - s * kl_terms(p, q, u)
        far = _affinity(alpha, p, q, u) - alpha * p - s * q
        return np.abs(np.where(np.abs(s * u) < NEAR, near, far))
