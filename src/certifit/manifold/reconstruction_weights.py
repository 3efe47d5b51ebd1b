"""How each row is rebuilt from its neighbours: barycentric weights, and the matrix F of local errors.

F Y holds the errors with which coordinates Y (n, k) of the rows are rebuilt from those of their neighbours.

* Standard: one row of F for each row, from the weights, summing to 1, that best rebuild it: (G + r tr G I) v ∝ 1 with
  G the Gram matrix of the neighbours about the row (Roweis & Saul 2000).
* Modified: several rows of F for each row, from the directions in which its neighbours hardly spread, so that F has
  no accidental null vectors (Zhang & Wang 2006).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from certifit.exceptions import DataError
from certifit.rows import Array
from certifit.rows.threads import parallel_map


@dataclass(frozen=True)
class LocalSystemTuning:
    """How many local systems are solved at a time."""

    entries: int = 2**19  # of the differences between rows and their neighbours
    rows: int = 1024


class LocalSystems(NamedTuple):
    """The local systems of all rows."""

    F: Any  # (m, n) CSR; F 1 = 0
    residual: float  # largest |(G + r I) v - 1| of any, relative to the sizes involved


def standard_systems(
    X: Array, neighbours: Array, reg: float, tuning: LocalSystemTuning = LocalSystemTuning()
) -> LocalSystems:
    """Rebuild each row of X (n, d) from its neighbours (n, k): one row of F for each."""
    weights, residual = barycentric_weights(X, X, neighbours, reg, tuning)
    n = len(X)
    return LocalSystems(_error_matrix(np.arange(n), neighbours, weights, n), residual)


def barycentric_weights(
    Q: Array, X: Array, neighbours: Array, reg: float, tuning: LocalSystemTuning = LocalSystemTuning()
) -> tuple[Array, float]:
    """Find the weights (m, k) that rebuild each row of Q (m, d) from its neighbours (m, k) among the rows of X.

    The second number is the largest residual of the local systems.
    """
    parts = _for_grams(partial(_solve_grams, reg), Q, X, neighbours, tuning)
    return np.concatenate([v for v, _ in parts]), max(r for _, r in parts)


class ModifiedMethod(NamedTuple):
    """Settings of the modified method."""

    components: int  # coordinates of the embedding
    small: float  # length below which a reflection counts as the identity


def modified_systems(
    X: Array,
    neighbours: Array,
    reg: float,
    method: ModifiedMethod,
    tuning: LocalSystemTuning = LocalSystemTuning(),
) -> LocalSystems:
    """Rebuild each row of X (n, d) from its neighbours (n, k) in several ways: several rows of F for each."""
    parts = _for_grams(partial(_spread, reg), X, X, neighbours, tuning)
    weights, values, vectors = (np.concatenate([part[i] for part in parts]) for i in range(3))
    rank = min(X.shape[1], neighbours.shape[1])
    owner, V = _modified_weights(weights, values[:, :rank], vectors, method)
    return LocalSystems(_error_matrix(owner, neighbours[owner], V, len(X)), max(part[3] for part in parts))


def _error_matrix(owner: Array, neighbours: Array, weights: Array, n: int) -> Any:
    """F (m, n): 1 at the row itself, owner (m,), and minus the weights (m, k) at its neighbours (m, k)."""
    m, k = weights.shape
    columns = np.concatenate([owner[:, None], neighbours], axis=1).ravel()
    data = np.concatenate([np.ones((m, 1)), -weights], axis=1).ravel()
    F = sparse.csr_array((data, columns, np.arange(0, m * (k + 1) + 1, k + 1)), shape=(m, n))
    F.sort_indices()
    return F


def _for_grams(
    f: Callable[[Array], Any], Q: Array, X: Array, neighbours: Array, tuning: LocalSystemTuning
) -> list[Any]:
    """Apply `f` to the Gram matrices (rows, k, k) of the neighbours about each row, some rows at a time."""
    step = min(tuning.rows, max(1, tuning.entries // (neighbours.shape[1] * X.shape[1])))

    def apply(first: int) -> Any:
        some = slice(first, first + step)
        Z = X[neighbours[some]] - Q[some, None]  # (rows, k, d)
        return f(Z @ Z.transpose(0, 2, 1))

    return parallel_map(apply, range(0, len(Q), step))


def _solve_grams(reg: float, G: Array) -> tuple[Array, float]:
    """Solve (G + r I) v = 1 for each matrix: weights v / Σ v (rows, k), and the largest residual."""
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
    """Scale each matrix to trace 1; where all neighbours coincide with the row, a multiple of I: equal weights."""
    trace = np.trace(G, axis1=1, axis2=2)[:, None, None]
    return np.where(trace > 0, G / np.where(trace > 0, trace, 1.0), np.eye(G.shape[1]) / G.shape[1])


def _spread(reg: float, G: Array) -> tuple[Array, Array, Array, float]:
    """Weights (rows, k), eigenvalues (rows, k), descending, and eigenvectors (rows, k, k) of G, and the residual."""
    weights, residual = _solve_grams(reg, G)
    values, vectors = np.linalg.eigh(_unit_trace(G))
    return weights, values[:, ::-1], vectors[:, :, ::-1], residual


def _modified_weights(weights: Array, values: Array, vectors: Array, method: ModifiedMethod) -> tuple[Array, Array]:
    """Find one set of weights (m, k) for each of the flattest directions of a row, and whose row it is (m,).

    values (n, rank) are the eigenvalues that are not 0 because of the number of columns.
    """
    size, rank, k = weights.shape[1], values.shape[1], method.components
    # Eigenvalues add up to 1: below this they are rounding, as of neighbours that lie in fewer directions.
    values = np.where(values > 16 * np.finfo(float).eps * size, values, 0.0)
    lead = np.cumsum(values, axis=1)
    # (n, rank - 1): what follows each leading eigenvalue, as a share of those up to it
    share = (np.cumsum(values[:, ::-1], axis=1)[:, -2::-1]) / lead[:, :-1]
    eta = np.median(share[:, k - 1]) if k < rank else 0.0
    # At least one direction of each row is used: without any, its coordinates would be free.
    flat = np.maximum(1, (share <= eta * (1 + 1e-10)).sum(axis=1) + size - rank)
    chosen = np.arange(size) >= (size - flat)[:, None]  # (n, size)
    V = vectors * chosen[:, None, :]
    ones = V.sum(axis=1)  # Vᵀ1
    alpha = np.linalg.norm(ones, axis=1) / np.sqrt(flat)
    h = alpha[:, None] * chosen - ones
    length = np.linalg.norm(h, axis=1)
    identity = length < method.small
    h = np.where(identity[:, None], 0.0, h / np.where(identity, 1.0, length)[:, None])
    V = V - 2 * (V @ h[:, :, None]) * h[:, None, :] + ((1 - alpha)[:, None] * weights)[:, :, None]
    owner, direction = np.nonzero(chosen)
    return owner, V[owner, :, direction]
