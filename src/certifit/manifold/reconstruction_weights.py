"""How each row is rebuilt from its neighbours: barycentric weights, and the matrix F of local errors.

F Y holds the errors with which coordinates Y (n, k) of the rows are rebuilt from those of their neighbours.

* Standard: one row of F for each row, from the weights, summing to 1, that best rebuild it: (G + r tr G I) v ∝ 1 with
  G the Gram matrix of the neighbours about the row (Roweis & Saul 2000).
* Modified: several rows of F for each row, from the directions in which its neighbours hardly spread, so that F has
  no accidental null vectors (Zhang & Wang 2006). Where that method leaves a choice open, `FlatDirectionRule` of the
  checker makes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from certifit.checkers.manifold.local_systems import (
    FlatDirectionRule,
    FlatParts,
    LocalErrors,
    modified_errors,
    needs_spectrum,
    plain_errors,
)
from certifit.exceptions import DataError
from certifit.rows import Array
from certifit.rows.threads import parallel_map


@dataclass(frozen=True)
class LocalSystemTuning:
    """How many local systems are solved at a time, and which directions are flat."""

    entries: int = 2**19  # of the differences between rows and their neighbours
    rows: int = 1024
    rule: FlatDirectionRule = field(default_factory=FlatDirectionRule)


class LocalSystems(NamedTuple):
    """The local systems of all rows."""

    F: Any  # (m, n) CSR; F 1 = 0
    owner: Array  # (m,) the row that each row of F rebuilds
    residual: float  # largest |(G + r I) v - 1| of any, relative to the sizes involved
    errors: LocalErrors  # how far rounding can move the weights
    open: int = 0  # rows whose weights the modified method leaves open


class SolvedSystems(NamedTuple):
    """Weights of some rows, and how well they solve their systems."""

    weights: Array  # (m, k)
    residual: float
    smallest: Array  # (m,) lower bounds on the eigenvalues of the systems of trace 1


def standard_systems(
    X: Array, neighbours: Array, reg: float, tuning: LocalSystemTuning = LocalSystemTuning()
) -> LocalSystems:
    """Rebuild each row of X (n, d) from its neighbours (n, k): one row of F for each."""
    found = barycentric_weights(X, X, neighbours, reg, tuning)
    every = np.arange(len(X))
    F = _error_matrix(every, neighbours, found.weights, len(X))
    return LocalSystems(F, every, found.residual, plain_errors(found.weights, reg, found.smallest))


def barycentric_weights(
    Q: Array, X: Array, neighbours: Array, reg: float, tuning: LocalSystemTuning = LocalSystemTuning()
) -> SolvedSystems:
    """Find the weights (m, k) that rebuild each row of Q (m, d) from its neighbours (m, k) among the rows of X."""
    parts = _for_grams(partial(_solve_grams, reg), Q, X, neighbours, tuning)
    weights, smallest = (np.concatenate([part[i] for part in parts]) for i in (0, 2))
    return SolvedSystems(weights, max(part.residual for part in parts), smallest)


def modified_systems(
    X: Array,
    neighbours: Array,
    reg: float,
    components: int,
    tuning: LocalSystemTuning = LocalSystemTuning(),
) -> LocalSystems:
    """Rebuild each row of X (n, d) from its neighbours (n, k) in several ways: several rows of F for each."""
    parts = _for_grams(partial(_spread, reg), X, X, neighbours, tuning)
    weights, values, vectors = (np.concatenate([part[i] for part in parts]) for i in range(3))
    rank = min(X.shape[1], neighbours.shape[1])
    flat, moved = _count_flat(values, rank, components, tuning.rule)
    found = _modified_weights(weights, vectors, flat, tuning.rule)
    flat_parts = FlatParts(flat, _gap_at(values, flat), found.length, found.alpha)
    return LocalSystems(
        _error_matrix(found.owner, neighbours[found.owner], found.weights, len(X)),
        found.owner,
        max(part[3] for part in parts),
        modified_errors(weights, reg, values[:, -1], flat_parts),
        int((moved | found.alone).sum()),
    )


def _error_matrix(owner: Array, neighbours: Array, weights: Array, n: int) -> Any:
    """F (m, n): minus the weights (m, k) at a row's neighbours (m, k), their sum, 1, at itself, owner (m,).

    Where the modified method leaves weights open they add up to 1 in some digits only; a constant has no error.
    """
    m, k = weights.shape
    columns = np.concatenate([owner[:, None], neighbours], axis=1).ravel()
    data = np.concatenate([weights.sum(axis=1, keepdims=True), -weights], axis=1).ravel()
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


def _solve_grams(reg: float, G: Array) -> SolvedSystems:
    """Solve (G + r I) v = 1 for each matrix: weights v / Σ v (rows, k)."""
    unit = _unit_trace(G)
    weights, residual = _solve_unit_grams(reg, unit)
    smallest = np.linalg.eigvalsh(unit)[:, 0] if needs_spectrum(reg) else np.zeros(len(unit))
    return SolvedSystems(weights, residual, smallest)


def _solve_unit_grams(reg: float, unit: Array) -> tuple[Array, float]:
    """Weights (rows, k) and the largest residual, for matrices of trace 1."""
    k = unit.shape[1]
    G = unit + reg * np.eye(k)
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
    unit = _unit_trace(G)
    weights, residual = _solve_unit_grams(reg, unit)
    values, vectors = np.linalg.eigh(unit)
    return weights, values[:, ::-1], vectors[:, :, ::-1], residual


def _count_flat(values: Array, rank: int, components: int, rule: FlatDirectionRule) -> tuple[Array, Array]:
    """Count the flattest directions of each row (n,), and say whether equal spreads changed the count (n,).

    values (n, k) are the eigenvalues, descending; those beyond `rank` are 0 because of the number of columns,
    unless all neighbours coincide with their row.
    """
    size = values.shape[1]
    # Eigenvalues add up to 1: below this they are rounding, as of neighbours that lie in fewer directions.
    values = np.where(values > rule.zero * size, values, 0.0)
    lead = np.cumsum(values[:, :rank], axis=1)
    # (n, rank - 1): what follows each leading eigenvalue, as a share of those up to it
    share = np.cumsum(values[:, :rank][:, ::-1], axis=1)[:, -2::-1] / lead[:, :-1]
    eta = np.median(share[:, components - 1]) if components < rank else 0.0
    small = (share <= eta * (1 + rule.tie) + rule.zero * size).sum(axis=1)
    # At least one direction of each row is used: without any, its coordinates would be free.
    flat = np.maximum(1, small + size - rank)
    # A border between directions of equal spread would be drawn by rounding: all of them are used instead.
    border = np.full(values.shape, True)
    border[:, 1:] = values[:, :-1] - values[:, 1:] > rule.equal
    place = np.arange(size)
    steep = np.where(border & (place <= (size - flat)[:, None]), place, 0).max(axis=1)
    return size - steep, steep != size - flat


def _gap_at(values: Array, flat: Array) -> Array:
    """The gap between the flat directions of each row (n,) and the others; inf where all are flat."""
    n, size = values.shape
    every, steep = np.arange(n), size - flat
    gap = values[every, np.maximum(steep - 1, 0)] - values[every, np.minimum(steep, size - 1)]
    return np.where(steep == 0, np.inf, gap)


class ModifiedWeights(NamedTuple):
    """Several sets of weights for each row."""

    owner: Array  # (m,) whose row it is
    weights: Array  # (m, k)
    length: Array  # (n,) of the projection of 1, or of what takes its place, on the flat directions
    alpha: Array  # (n,)
    alone: Array  # (n,) whether 1 had none


def _modified_weights(weights: Array, vectors: Array, flat: Array, rule: FlatDirectionRule) -> ModifiedWeights:
    """Find one set of weights for each of the flattest directions of a row: W = V H + (1 - α) v 1ᵀ."""
    size = weights.shape[1]
    chosen = np.arange(size) >= (size - flat)[:, None]  # (n, size)
    V = vectors * chosen[:, None, :]
    ones = V.sum(axis=1)  # Vᵀ1
    alpha = np.linalg.norm(ones, axis=1) / np.sqrt(flat)
    alone = np.linalg.norm(ones, axis=1) <= rule.alone * np.sqrt(size)
    ones = np.where(alone[:, None], np.einsum("iab,a->ib", V, rule.reference(size)), ones)
    length = np.linalg.norm(ones, axis=1)
    # H takes the direction of Vᵀ1 to that of 1: a reflection, or minus one, whichever does not cancel.
    here, there = ones / length[:, None], chosen / np.sqrt(flat)[:, None]
    sign = np.where((here * there).sum(axis=1) >= 0, 1.0, -1.0)
    h = there + sign[:, None] * here
    h = h / np.linalg.norm(h, axis=1, keepdims=True)
    H = -sign[:, None, None] * (V - 2 * (V @ h[:, :, None]) * h[:, None, :])
    W = H + ((1 - alpha)[:, None] * weights)[:, :, None]
    owner, direction = np.nonzero(chosen)
    return ModifiedWeights(owner, W[owner, :, direction], length, alpha, alone)
