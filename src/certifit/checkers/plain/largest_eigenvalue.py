"""An upper bound on the largest eigenvalue λmax of a symmetric operator, from products with it alone.

1. Lanczos steps from a random unit vector q give the orthonormal polynomials p_0, p_1, … of q's spectral measure.
2. No measure with these polynomials has more mass at a point x than 1 / Σ p_j(x)² (Christoffel).
3. The mass at λmax is at least (q·v)², v its eigenvector, and (q·v)² exceeds δ² = failure² π / 2d with probability
   1 - failure.
So λmax is at most the x beyond the Ritz values at which Σ p_j(x)² = 1/δ². The probability is over the random start,
not over the operator.
Reference: van Dorsselaer, Hochstenbach & van der Vorst, "Computing probabilistic bounds for extreme eigenvalues of
symmetric matrices with the Lanczos method" (2000). The bound of Kuczyński & Woźniakowski (1992) knows the number of
steps only; this one is much below it where the spectrum has gaps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import eigh_tridiagonal, eigvalsh_tridiagonal
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from certifit.rows import Array

EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class LargestEigenvalueBound:
    """What Lanczos tells of the largest eigenvalue."""

    value: float  # a Ritz value: λmax is at least this, up to rounding
    upper: float  # λmax exceeds this with probability at most `failure`
    steps: int  # products with the operator
    failure: float
    vector: Array  # (d,) the Ritz vector, of length 1, whose Rayleigh quotient is `value`


def largest_eigenvalue(
    A: Any,
    *,
    seed: int = 0,
    failure: float = 1e-9,
    steps: int = 60,
    enough: float | None = None,
    apart: Array | None = None,
) -> LargestEigenvalueBound:
    """Bound the largest eigenvalue of a symmetric operator (d, d), of any sign.

    Parameters
    ----------
    A : anything with `shape` and `A @ vector`; its products are taken to be accurate to rounding
    seed : of the random start, over which the statement is probable
    failure : the probability that `upper` is too small
    steps : the most products to spend
    enough : stop once `upper` is at most this
    apart : (d, k) orthonormal columns; the bound is then for (I - P) A (I - P), P the projector on their span

    >>> found = largest_eigenvalue(np.diag([3.0, 2.0, 1.0]))
    >>> bool(abs(found.value - 3) < 1e-14), bool(3 <= found.upper < 3 + 1e-12), found.steps
    (True, True, 3)
    """
    k = 0 if apart is None else apart.shape[1]
    d = A.shape[0] - k
    if d == 0:
        return LargestEigenvalueBound(-math.inf, -math.inf, 0, failure, np.empty(0))
    rng = np.random.default_rng(seed)
    Q = np.empty((d + k, k + min(steps, d)), order="F")  # the columns of `apart`, then the Lanczos vectors
    if apart is not None:
        Q[:, :k] = apart
    q = _orthogonalise(rng.normal(size=d + k), Q[:, :k])
    threshold = math.log(2 * d / math.pi) - 2 * math.log(failure)  # log 1/δ²
    alpha: list[float] = []
    beta: list[float] = []
    unit = 1.0  # the operator is divided by it, so that squares neither over- nor underflow
    for j in range(Q.shape[1] - k):
        Q[:, k + j] = q
        z = np.asarray(A @ q, dtype=np.float64) / unit
        if j == 0:
            unit = float(np.abs(z).max())
            if unit == 0:
                return LargestEigenvalueBound(0.0, 0.0, 1, failure, q)
            z /= unit
        alpha.append(float(q @ z))
        known = Q[:, : k + j + 1]
        for _ in range(2):  # enough for orthogonality to rounding
            z = z - known @ (known.T @ z)
        ritz = eigvalsh_tridiagonal(np.array(alpha), np.array(beta))
        size = float(max(abs(ritz[0]), abs(ritz[-1])))
        beta.append(max(float(np.linalg.norm(z)), 8 * EPS * size))
        # Computed in this way, alpha and beta are exact for an operator that differs from A by rounding.
        rounding = 4 * (d + j + 1) * EPS * size
        if k + j + 1 == Q.shape[1] or (
            enough is not None and _log_mass(alpha, beta, enough / unit - rounding) >= threshold
        ):
            break
        if beta[-1] > 1e-4 * size:
            # What the two projections above left along the known vectors is rounding beside z too.
            q = z / beta[-1]
        else:
            # Where the space is closed under A up to rounding, go on in a fresh direction.
            q = _orthogonalise(z if beta[-1] > 8 * EPS * size else rng.normal(size=d + k), known)
    top = float(ritz[-1])
    upper = top if len(alpha) == d else _solve_threshold(alpha, beta, top, threshold)
    y = eigh_tridiagonal(np.array(alpha), np.array(beta[:-1]))[1][:, -1]
    vector = Q[:, k : k + len(y)] @ y
    return LargestEigenvalueBound(top * unit, (upper + rounding) * unit, len(alpha), failure, vector)


def sharpen(A: Any, found: LargestEigenvalueBound) -> LargestEigenvalueBound:
    """Improve the lower bound `value` by restarted Lanczos (ARPACK), where that costs little; `upper` stays.

    A single Lanczos run of a few dozen steps separates eigenvalues only if they are far apart.
    """
    d = A.shape[0]
    if found.steps >= d or not found.vector.any():
        return found
    product = LinearOperator((d, d), matvec=lambda x: A @ x.ravel(), dtype=np.float64)
    try:
        values, vectors = eigsh(product, 1, which="LA", v0=found.vector, tol=1e-4, maxiter=30)
    except ArpackError:
        return found
    return replace(found, value=float(values[0]), vector=vectors[:, 0]) if values[0] > found.value else found


def _orthogonalise(z: Array, known: Array) -> Array:
    """Return z without its part in the span of the known orthonormal columns, scaled to length 1."""
    for _ in range(2):
        z = z / np.linalg.norm(z)
        z = z - known @ (known.T @ z)
    return z / np.linalg.norm(z)


def _solve_threshold(alpha: list[float], beta: list[float], ritz: float, threshold: float) -> float:
    """Return the x > ritz with log Σ p_j(x)² = threshold, or a little more: bisection on an increasing function."""
    reach = max(max(map(abs, alpha)), max(beta))
    low, step = ritz, EPS * reach
    while _log_mass(alpha, beta, low + step) < threshold:
        low, step = low + step, 2 * step
    high = low + step
    while high - low > 1e-3 * (high - ritz) and low < (low + high) / 2 < high:
        middle = (low + high) / 2
        low, high = (middle, high) if _log_mass(alpha, beta, middle) < threshold else (low, middle)
    return high


def _log_mass(alpha: list[float], beta: list[float], x: float) -> float:
    """Return log Σ p_j(x)², j = 0 … k, for x beyond all Ritz values; -inf where rounding says that x is not."""
    log_p, total, before, pivot = 0.0, 0.0, 0.0, 1.0
    for a, b in zip(alpha, beta, strict=True):
        # A pivot of the LDLᵀ factors of x I - T is β p_{j+1} / p_j.
        pivot = x - a - before * before / pivot
        if pivot <= 0:
            return -math.inf
        log_p += 2 * math.log(pivot / b)
        high, low = max(total, log_p), min(total, log_p)
        total, before = high + math.log1p(math.exp(low - high)), b
    return total
