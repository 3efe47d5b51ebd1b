"""Leading eigenpairs of a symmetric positive semidefinite operator A from products with A alone.

`block_krylov` takes the best approximations (Rayleigh-Ritz) in the span of Q, AQ, A²Q, ... of a random block Q.
`power` finds one vector at a time, orthogonal to the earlier ones. Both keep A times their basis, so that residuals
need no further product.
Reference: Musco & Musco, "Randomized block Krylov methods for stronger and faster approximate singular value
decomposition" (2015).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigh, qr

from certifit.numerics.matrix import EPS
from certifit.rows import Array


@dataclass(frozen=True)
class RitzPairs:
    """Approximate eigenpairs (Ritz pairs), largest value first."""

    values: Array  # (l,)
    vectors: Array  # (d, l) orthonormal columns
    residual: Array  # (d, l) A V - V diag(values)
    products: int  # products of A with a block of vectors


@dataclass(frozen=True)
class PowerTrace:
    """How power iteration converged: the Rayleigh quotient and the residual of every vector at every iteration."""

    rayleigh: tuple[Array, ...]  # (iterations,) vᵀAv
    residual: tuple[Array, ...]  # (iterations,) |Av - (vᵀAv) v|, without the part along earlier vectors


def block_krylov(
    A: Any, k: int, *, rng: np.random.Generator, oversample: int = 10, depth: int = 4, tol: float = 0.0
) -> RitzPairs:
    """Return the k leading eigenpairs of A (d, d), and `oversample` less accurate ones where d allows.

    Parameters
    ----------
    A : anything with `shape` and `A @ block`
    depth : the most products of A with a block of k + oversample vectors; more are more accurate
    tol : stop once the residual of each of the k leading pairs is at most tol times the geometric mean of its value
        and the largest: it then misses at most tol² of the largest value

    >>> ritz = block_krylov(np.diag(np.arange(100.0)), 2, rng=np.random.default_rng(0), depth=9)
    >>> ritz.values[:2].round(8)
    array([99., 98.])
    """
    d = A.shape[0]
    width = min(k + oversample, d)
    Q = qr(rng.normal(size=(d, width)), mode="economic", overwrite_a=True)[0]
    K, AK = np.empty((d, 0)), np.empty((d, 0))
    T = np.empty((0, 0))  # Kᵀ A K
    unit, products, next_test = 1.0, 0, 1
    while True:
        W = np.asarray(A @ Q, dtype=np.float64) / unit
        products += 1
        if products == 1:
            # A is divided by this unit from now on, so that squares neither overflow nor vanish.
            unit = float(np.abs(W).max(initial=0.0)) or 1.0
            W /= unit
        K, AK = np.hstack([K, Q]), np.hstack([AK, W])
        across = K.T @ W
        T = np.block([[T, across[: len(T)]], [across[: len(T)].T, across[len(T) :]]])
        if products == depth or K.shape[1] == d:
            break
        Q, R = _next_block(W, K, across)
        if Q.shape[1] == 0:
            break
        # Not tested after every product: where T is large, a test takes as long as a step.
        if tol > 0 and products >= next_test:
            values, Y = _leading(T, k)
            # The part of A V - V diag(values) outside the span of K.
            outside = np.linalg.norm(R @ Y[len(T) - R.shape[1] :], axis=0)
            if (outside <= _residuals_allowed(values, tol)).all():
                break
            next_test = products + 1 + products // 4
    values, Y = _leading(T, width)
    V = K @ Y
    return RitzPairs(values * unit, V, (AK @ Y - V * values) * unit, products)


def _leading(T: Array, k: int) -> tuple[Array, Array]:
    """Return the k largest eigenvalues of T, descending, and their vectors."""
    values, Y = eigh((T + T.T) / 2)
    return values[::-1][:k], Y[:, ::-1][:, :k]


def _residuals_allowed(values: Array, tol: float) -> Array:
    """Return tol times the geometric mean of each value and the largest, but no less than rounding."""
    largest = abs(values.max(initial=0.0))
    return np.maximum(tol * np.sqrt(np.abs(values)) * np.sqrt(largest), 8 * EPS * largest)


def _next_block(W: Array, K: Array, across: Array) -> tuple[Array, Array]:
    """Return Q and R with W = K KᵀW + Q R and [K Q] orthonormal, to rounding; negligible directions are dropped."""
    size = float(np.abs(across).max(initial=0.0))
    Z = W - K @ across
    Z -= K @ (K.T @ Z)
    Q, R = qr(Z, mode="economic", overwrite_a=True)
    keep = np.abs(np.diag(R)) > 8 * len(W) * EPS * size
    # [K Q] has at most as many columns as rows.
    keep &= np.arange(len(keep)) < len(W) - K.shape[1]
    Q, R = Q[:, keep], R[keep]
    # A small direction may still have a part along K.
    Q = Q - K @ (K.T @ Q)
    Q, lift = qr(Q, mode="economic", overwrite_a=True)
    return Q, lift @ R


def power(
    A: Any, k: int, *, rng: np.random.Generator, tol: float = 1e-10, max_iter: int = 1000
) -> tuple[RitzPairs, PowerTrace]:
    """Return the k leading eigenpairs by power iteration with deflation, and how each converged.

    The residual of vector j falls like (λ_{j+1} / λ_j)^t. An iteration stops once it is at most tol √(λ_j λ_1).

    >>> ritz, trace = power(np.diag([4.0, 2.0, 1.0]), 1, rng=np.random.default_rng(0))
    >>> rate = trace.residual[0][20] / trace.residual[0][19]
    >>> round(float(ritz.values[0]), 10), round(float(rate), 3)
    (4.0, 0.5)
    """
    d = A.shape[0]
    k = min(k, d)
    V, AV = np.empty((d, k)), np.empty((d, k))
    rayleigh: list[Array] = []
    residual: list[Array] = []
    unit = 0.0  # of the operator, set by the first product
    products = 0
    for j in range(k):
        known = V[:, :j]
        v = _unit_vector(rng.normal(size=d), known)
        thetas: list[float] = []
        sizes: list[float] = []
        while True:
            z = np.asarray(A @ v, dtype=np.float64)
            products += 1
            unit = unit or float(np.abs(z).max()) or 1.0
            z = z / unit
            thetas.append(float(v @ z))
            rest = z - known @ (known.T @ z)
            sizes.append(float(np.linalg.norm(rest - thetas[-1] * v)))
            largest = abs(rayleigh[0][-1]) / unit if j else abs(thetas[-1])
            allowed = max(tol * np.sqrt(abs(thetas[-1]) * largest), 8 * EPS * largest)
            if sizes[-1] <= allowed or len(sizes) == max_iter or not rest.any():
                break
            v = _unit_vector(rest, known)
        V[:, j], AV[:, j] = v, z
        rayleigh.append(np.array(thetas) * unit)
        residual.append(np.array(sizes) * unit)
    values = np.array([steps[-1] for steps in rayleigh])
    order = np.argsort(-values, kind="stable")
    values, V, AV = values[order], V[:, order], AV[:, order]
    trace = PowerTrace(tuple(rayleigh[j] for j in order), tuple(residual[j] for j in order))
    return RitzPairs(values, V, AV * unit - V * values, products), trace


def _unit_vector(z: Array, known: Array) -> Array:
    """Return z without its part along the known columns, scaled to length 1."""
    z = z / np.abs(z).max()
    # Projecting twice makes it orthogonal to rounding.
    for _ in range(2):
        z = z - known @ (known.T @ z)
        z = z / np.linalg.norm(z)
    return z
