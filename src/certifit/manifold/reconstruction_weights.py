"""How each row is put together from its neighbours: barycentric weights, and F with F Y = what they get wrong.

Standard: the weights, summing to 1, that best rebuild the row: (G + r tr G I) v ∝ 1 with G the Gram matrix of the
neighbours about the row (Roweis & Saul 2000). Modified: several such weights for each row, from the directions in
which its neighbours hardly spread, so that F has no accidental null vectors (Zhang & Wang 2006).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from certifit.exceptions import DataError
from certifit.rows import Array
from certifit.rows.threads import parallel_map

ENTRIES, ROWS = 2**19, 1024  # of differences, and rows, worked on at a time
NOISE = 16 * float(np.finfo(float).eps)  # of an eigenvalue, per neighbour, where they add up to 1


class Local(NamedTuple):
    """The local systems of all rows."""

    F: Any  # (m, n) CSR; F 1 = 0
    residual: float  # largest |(G + r I) v - 1| of any, relative to the sizes involved


def standard(X: Array, neighbours: Array, reg: float) -> Local:
    """One row of F for each row: itself minus its weighted neighbours."""
    weights, residual = barycentres(X, X, neighbours, reg)
    n = len(X)
    return Local(_rows(np.arange(n), neighbours, weights, n), residual)


def barycentres(Q: Array, X: Array, neighbours: Array, reg: float) -> tuple[Array, float]:
    """Weights (rows, k) that rebuild each row of Q from its neighbours among the rows of X, and the residual."""
    parts = _in_chunks(partial(_solve, reg), Q, X, neighbours)
    return np.concatenate([v for v, _ in parts]), max(r for _, r in parts)


def modified(X: Array, neighbours: Array, reg: float, k: int, small: float) -> Local:
    """Several rows of F for each row; k is the number of components, `small` when a reflection is the identity."""
    parts = _in_chunks(partial(_spread, reg), X, X, neighbours)
    weights, values, vectors = (np.concatenate([part[i] for part in parts]) for i in range(3))
    which, V = _modified_weights(weights, values, vectors, min(X.shape[1], neighbours.shape[1]), k, small)
    return Local(_rows(which, neighbours[which], V, len(X)), max(part[3] for part in parts))


def _rows(own: Array, neighbours: Array, weights: Array, n: int) -> Any:
    """F (m, n): 1 at the row itself, minus the weights at its neighbours."""
    m, k = weights.shape
    columns = np.concatenate([own[:, None], neighbours], axis=1).ravel()
    data = np.concatenate([np.ones((m, 1)), -weights], axis=1).ravel()
    F = sparse.csr_array((data, columns, np.arange(0, m * (k + 1) + 1, k + 1)), shape=(m, n))
    F.sort_indices()
    return F


def _in_chunks(f: Callable[[Array], Any], Q: Array, X: Array, neighbours: Array) -> list[Any]:
    """`f(G)` for the Gram matrices (rows, k, k) of runs of rows."""
    step = min(ROWS, max(1, ENTRIES // (neighbours.shape[1] * X.shape[1])))
    return parallel_map(partial(_gram, f, Q, X, neighbours, step), range(0, len(Q), step))


def _gram(f: Callable[[Array], Any], Q: Array, X: Array, neighbours: Array, step: int, first: int) -> Any:
    some = slice(first, first + step)
    Z = X[neighbours[some]] - Q[some, None]  # (rows, k, d)
    return f(Z @ Z.transpose(0, 2, 1))


def _solve(reg: float, G: Array) -> tuple[Array, float]:
    k = G.shape[1]
    G = _unit_trace(G)
    G[:, np.arange(k), np.arange(k)] += reg
    try:
        v = np.linalg.solve(G, np.ones((len(G), k, 1)))[..., 0]
    except np.linalg.LinAlgError as error:
        raise DataError(
            got=f"reg={reg:g} with {k} neighbours that do not span as many directions",
            wanted="local systems with one solution",
            fix="Use reg > 0, for instance the default 1e-3.",
        ) from error
    residual = np.abs((G @ v[..., None])[..., 0] - 1).max(axis=1) / np.abs(v).sum(axis=1)
    total = v.sum(axis=1, keepdims=True)
    return v / total, float(residual.max(initial=0.0))


def _unit_trace(G: Array) -> Array:
    """Each matrix with trace 1; where all neighbours coincide with the row, a multiple of I: equal weights."""
    trace = np.trace(G, axis1=1, axis2=2)[:, None, None]
    return np.where(trace > 0, G / np.where(trace > 0, trace, 1.0), np.eye(G.shape[1]) / G.shape[1])


def _spread(reg: float, G: Array) -> tuple[Array, Array, Array, float]:
    """Weights (rows, k), and eigenvalues, descending, and eigenvectors of G."""
    weights, residual = _solve(reg, G)
    values, vectors = np.linalg.eigh(_unit_trace(G))
    return weights, values[:, ::-1], vectors[:, :, ::-1], residual


def _modified_weights(
    weights: Array, values: Array, vectors: Array, rank: int, k: int, small: float
) -> tuple[Array, Array]:
    """For each of a row's flattest directions one set of weights (m, neighbours), and whose they are (m,)."""
    size = weights.shape[1]
    values = values[:, :rank]  # the others are 0 but for rounding, as are those of neighbours in fewer directions
    values = np.where(values > NOISE * size, values, 0.0)
    lead = np.cumsum(values, axis=1)
    share = (np.cumsum(values[:, ::-1], axis=1)[:, -2::-1]) / lead[:, :-1]  # (n, rank - 1) of what follows each lead
    eta = np.median(share[:, k - 1]) if k < rank else 0.0
    # how many directions of each row to use: at least one, or nothing would hold the row
    flat = np.maximum(1, (share <= eta * (1 + 1e-10)).sum(axis=1) + size - rank)
    chosen = np.arange(size) >= (size - flat)[:, None]  # (n, size)
    V = vectors * chosen[:, None, :]
    ones = V.sum(axis=1)  # Vᵀ1
    alpha = np.linalg.norm(ones, axis=1) / np.sqrt(flat)
    h = alpha[:, None] * chosen - ones
    length = np.linalg.norm(h, axis=1)
    h = np.where(length[:, None] < small, 0.0, h / np.where(length < small, 1.0, length)[:, None])
    V = V - 2 * (V @ h[:, :, None]) * h[:, None, :] + ((1 - alpha)[:, None] * weights)[:, :, None]
    which, direction = np.nonzero(chosen)
    return which, V[which, :, direction]
