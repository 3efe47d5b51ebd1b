"""Accurate forms of expressions that would lose all digits if two nearly equal numbers were subtracted.

Every density, entropy and divergence of the families is built from the few functions below, each accurate to a few
units in the last place. They follow C. Loader, "Fast and accurate computation of binomial probabilities" (2000), and
extend it to gamma and beta densities and to Bregman divergences of log Γ.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import digamma, gammaln, polygamma, xlogy

from certifit.rows import Array

NEAR = 0.25  # relative difference up to which series replace logarithms
LARGE = 10.0  # argument of Γ from which Stirling's series is used: eight terms leave 1e-17
STIRLING = np.array([1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400])
ODD = np.arange(1, 16, 2)  # log Γ(a) = (a - ½) log a - a + ½ log 2π + Σ STIRLING / a^ODD


def log1pmx(t: Any) -> Array:
    """Return log(1 + t) - t, accurate also near t = 0.

    >>> float(log1pmx(1e-10))
    -4.9999999996666...e-21
    """
    t = np.asarray(t, dtype=np.float64)
    near = np.abs(t) <= NEAR
    u = np.where(near, t, 0.0)
    r = u / (2 + u)  # log(1 + t) = 2 artanh r
    tail = np.polyval(1.0 / np.arange(23, 1, -2), r * r)
    with np.errstate(divide="ignore"):  # at t = -1 the result is -inf
        return np.where(near, 2 * r**3 * tail - r * u, np.log1p(t) - t)


def expm1mx(u: Any) -> Array:
    """Return exp(u) - 1 - u, accurate also near u = 0."""
    u = np.asarray(u, dtype=np.float64)
    near = np.abs(u) <= 0.5
    v = np.where(near, u, 0.0)
    series = np.full_like(v, 1.0)
    for j in range(16, 2, -1):
        series = 1 + v / j * series
    return np.where(near, 0.5 * v * v * series, np.expm1(u) - u)


def excess(x: Any, y: Any, gap: Any = None) -> Array:
    """Return y/x - 1 - log(y/x) >= 0 for positive x, y; `gap` is y - x where that is known more accurately."""
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    gap = y - x if gap is None else gap
    t = gap / x
    with np.errstate(divide="ignore"):
        return np.where(np.abs(t) <= NEAR, 0.0 - log1pmx(np.clip(t, -NEAR, NEAR)), t + np.log(x) - np.log(y))


def kl_term(x: Any, y: Any, gap: Any = None) -> Array:
    """Return x log(x/y) - x + y >= 0, with 0 log 0 = 0 and infinity where y = 0 < x.

    Summed over two vectors of the same total it is their Kullback-Leibler divergence.

    >>> kl_term([0.0, 0.5, 0.5, 0.0], [0.2, 0.5, 0.0, 0.0]).tolist()
    [0.2, 0.0, inf, 0.0]
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    gap = y - x if gap is None else gap
    near = np.abs(gap) <= NEAR * x
    t = np.where(near, gap, 0.0) / np.where(x > 0, x, 1.0)
    with np.errstate(invalid="ignore"):
        far = np.where(np.isinf(y), np.inf, xlogy(x, x) - xlogy(x, y) + gap)
    return np.where(near, 0.0 - x * log1pmx(t), far)


def ratio_gap(x: Any, y: Any, u: Any, v: Any, gap: Any) -> Array:
    """Return x/y - u/v, accurate also where u is nearly x and v nearly y; `gap` is v - y."""
    near = (np.abs(u - x) <= NEAR * x) & (np.abs(gap) <= NEAR * y)
    return np.where(near, (x * (gap / y) - (u - x)) / v, x / y - u / v)


def factorial_error(x: Any) -> Array:
    """Return log Γ(x + 1) - x log x + x, which is about ½ log 2πx, and 0 at x = 0.

    >>> float(factorial_error(1e15)), float(factorial_error(0))
    (18.188326..., 0.0)
    """
    x = np.asarray(x, dtype=np.float64)
    large = x >= LARGE
    a = np.where(large, x, LARGE)
    return np.where(
        large,
        0.5 * np.log(2 * np.pi * a) + np.polyval(STIRLING[::-1], a**-2.0) / a,
        gammaln(np.minimum(x, LARGE) + 1) - xlogy(x, x) + x,
    )


def log_minus_digamma(a: Any) -> Array:
    """Return log a - ψ(a) > 0, which is about 1/(2a)."""
    a = np.asarray(a, dtype=np.float64)
    big = np.maximum(a, LARGE)
    small = np.log(np.minimum(a, LARGE)) - digamma(np.minimum(a, LARGE))
    return np.where(a >= LARGE, (0.5 + np.polyval((ODD * STIRLING)[::-1], big**-2.0) / big) / big, small)


def trigamma_excess(a: Any) -> Array:
    """Return ψ'(a) - 1/a > 0, which is about 1/(2a²)."""
    a = np.asarray(a, dtype=np.float64)
    big = np.maximum(a, LARGE)
    small = polygamma(1, np.minimum(a, LARGE)) - 1 / np.minimum(a, LARGE)
    series = (0.5 + np.polyval((ODD * (ODD + 1) * STIRLING)[::-1], big**-2.0) / big) / big**2
    return np.where(a >= LARGE, series, small)


def gamma_bregman(b: Any, a: Any, gap: Any = None) -> Array:
    """Return f(b) - f(a) - (b - a) f'(a) >= 0 for the convex f(a) = log Γ(a) - a log a + a; `gap` is b - a.

    Where a and b are close, Stirling's series is used term by term. Small arguments are first raised by ten with
    log Γ(a) = log Γ(a + 1) - log a, which adds terms that are never negative.
    """
    b, a = (np.asarray(v, dtype=np.float64) for v in np.broadcast_arrays(b, a))
    gap = b - a if gap is None else np.asarray(gap)
    near = np.abs(gap) <= NEAR * a
    far = factorial_error(b) - np.log(b) - factorial_error(a) + np.log(a) + gap * log_minus_digamma(a)
    t = np.where(near, gap, 0.0)
    raised = a < 2 * LARGE
    A = a + np.where(raised, LARGE, 0.0)
    terms = (
        sum(excess(a + k, a + k + t, t) for k in range(int(LARGE))) + kl_term(A + t, A, -t) - kl_term(a + t, a, -t)
    )
    close = np.where(raised, terms, 0.0) + 0.5 * excess(A, A + t, t)
    u = t / A
    for c, m in zip(STIRLING, ODD.astype(float), strict=True):
        close = close + c * A**-m * (expm1mx(-m * np.log1p(u)) - m * log1pmx(u))
    return np.where(near, close, far)


def log_dirichlet(a: Array, p: Array) -> Array:
    """Return log Γ(Σ a) - Σ log Γ(a) + Σ a log p for a (k,), over the last axis of p, which sums to one or nearly."""
    total = a.sum()
    terms = factorial_error(a) - np.log(a) + kl_term(a, total * p)
    return factorial_error(total) - np.log(total) - terms.sum(axis=-1) + total * (p.sum(axis=-1) - 1)


def log_multinomial(x: Array, p: Array) -> Array:
    """Return log n! - Σ log x! + Σ x log p over the last axis, for p that sums to one and n = Σ x."""
    n = x.sum(axis=-1)
    return factorial_error(n) - (factorial_error(x) + kl_term(x, n[..., None] * p)).sum(axis=-1)


def gamma_entropy_term(a: Any) -> Array:
    """Return log Γ(a) - a ψ(a) + a."""
    return factorial_error(a) - np.log(a) + a * log_minus_digamma(a)


def dirichlet_kl(a: Array, b: Array) -> float:
    """Return KL(Dirichlet(a), Dirichlet(b))."""
    gap = b - a
    a0, b0, gap0 = a.sum(), b.sum(), gap.sum()
    shares = kl_term(b / b0, a / a0, ratio_gap(a, a0, b, b0, gap0))
    return float(b0 * shares.sum() + gamma_bregman(b, a).sum() - gamma_bregman(b0, a0, gap0))
