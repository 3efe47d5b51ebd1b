"""The local systems of locally linear embedding, solved again plainly, and how far rounding can move each of them.

The weights of a row, summing to 1, rebuild it from its neighbours: (G + r I) v ∝ 1, G the Gram matrix of the
neighbours about the row, of trace 1. The modified method (Zhang & Wang 2006) takes several sets of weights,
W = V H + (1 - α) v 1ᵀ, with V the flattest directions of G and H an orthogonal matrix that takes Vᵀ1 to α 1.

Where the method leaves something open, `FlatDirectionRule` decides: directions of equal spread are taken together or
not at all, and where no flat direction tells 1 from 0, a fixed vector takes the place of 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from certifit.rows import Array

EPS = float(np.finfo(float).eps)


@dataclass(frozen=True)
class FlatDirectionRule:
    """Which directions of a local Gram matrix of trace 1 count as flat, wherever the method leaves that open."""

    zero: float = 16 * EPS  # eigenvalues below this, for each neighbour, are rounding
    equal: float = 1e-8  # eigenvalues that differ by no more are equal: their directions stay together
    tie: float = 1e-10  # relative difference up to which a share equals the median of all rows
    alone: float = 1e-6  # share of the length of 1 in the flat directions, below which it has no direction there

    def reference(self, size: int) -> Array:
        """A vector (size,) that takes the place of 1 where 1 has no flat part: any that is orthogonal to no axis."""
        return np.asarray(np.cos(1.0 + np.arange(size)))


class LocalErrors(NamedTuple):
    """How far rounding can move the weights of each row."""

    weights: Array  # (n, size) plain weights
    reg: float
    plain: Array  # (n,) norm of the difference of two computations of the plain weights
    times: Array  # (n,) how often these enter: the norm of their factor in the modified method, else 1
    directions: Array  # (n,) the same of the flat directions of the modified method, else 0

    @property
    def rows(self) -> Array:
        """Bound on how far each row's weights can be off (n,)."""
        return np.asarray(self.times * self.plain + self.directions)

    def at(self, rows: Array) -> LocalErrors:
        """Return those of some rows."""
        return LocalErrors(self.weights[rows], self.reg, self.plain[rows], self.times[rows], self.directions[rows])

    def moved(self, Y: Array, neighbours: Array, grams: Callable[[], Array], enough: float) -> float:
        """Bound on |δF Y|, δF the difference of two computations of the matrix of local errors, Y (n, k).

        Where norms alone do not give a bound that is small `enough`, the local systems are asked how much of their
        own rounding δ they pass on, v (A⁻¹ δ)ᵀ(D - 1 vᵀD): directions that their inverse enlarges are those in which
        neighbours hardly differ, and then their coordinates hardly do.
        """
        D = Y[neighbours] - Y[:, None]
        spread = np.sqrt((D**2).sum(axis=(1, 2)))
        simple = float(np.linalg.norm(self.rows * spread))
        if simple <= enough:
            return simple
        A = grams() + self.reg * np.eye(neighbours.shape[1])
        left = D - np.einsum("ia,iac->ic", self.weights, D)[:, None]
        passed = np.linalg.norm(np.linalg.solve(A, left), axis=(1, 2)) * np.linalg.norm(self.weights, axis=1)
        passed = solution_rounding(neighbours.shape[1], self.reg) * passed * self.times
        return min(simple, float(np.linalg.norm(passed) + np.linalg.norm(self.directions * spread)))

    def norm(self, neighbours: Array) -> float:
        """Bound on the spectral norm of δF: |δF|² <= |δF|₁ |δF|∞."""
        n, size = neighbours.shape
        by_column = np.bincount(neighbours.ravel(), np.repeat(self.rows, size), n) + np.sqrt(size) * self.rows
        return float(np.sqrt(2 * np.sqrt(size) * self.rows.max(initial=0.0) * by_column.max(initial=0.0)))


def solution_rounding(size: int, reg: float) -> float:
    """Rounding of a system of trace 1, of Gram matrix and elimination: some units, of which about √size add up."""
    return float(4 * np.sqrt(size) * EPS * (1 + reg))


def plain_errors(weights: Array, reg: float, smallest: Array | float) -> LocalErrors:
    """Bound the errors of the standard method's weights."""
    n = len(weights)
    return LocalErrors(weights, reg, weight_errors(weights, reg, smallest), np.ones(n), np.zeros(n))


def weight_errors(weights: Array, reg: float, smallest: Array | float) -> Array:
    """Bound how far weights (n, size) are from the solution of their systems (n,).

    The systems have trace 1 and these smallest eigenvalues; their inverse enlarges rounding.
    """
    size = weights.shape[1]
    inverse = 1 / np.maximum(np.maximum(smallest, 0.0) + reg, size * EPS)
    # Dividing v by its sum adds the relative error of the sum, of cancelling terms.
    length = np.linalg.norm(weights, axis=1)
    return np.asarray(solution_rounding(size, reg) * inverse * length * (1 + np.sqrt(size) * length))


def needs_spectrum(reg: float, enough: float = 1e-4) -> bool:
    """Whether errors of weights are bounded by their systems' smallest eigenvalues, not by a large `reg` alone."""
    return reg < enough


class FlatParts(NamedTuple):
    """What the errors of the modified method's weights depend on, for each row (n,)."""

    number: Array  # of flat directions
    gap: Array  # between the flattest direction left out and the steepest taken; inf where all are taken
    length: Array  # of the projection of 1, or of what takes its place, on the flat directions
    alpha: Array  # of W = V H + (1 - α) v 1ᵀ


def modified_errors(weights: Array, reg: float, smallest: Array, flat: FlatParts) -> LocalErrors:
    """Bound the errors of the modified method's weights, given its plain ones (n, size)."""
    size = weights.shape[1]
    turned = 4 * size * EPS / flat.gap  # the flat directions, as a whole (Davis & Kahan 1970)
    share = np.abs(1 - flat.alpha) * np.sqrt(flat.number)
    lever = 1 + np.sqrt(size) * share * (1 + np.linalg.norm(weights, axis=1)) / flat.length
    return LocalErrors(weights, reg, weight_errors(weights, reg, smallest), share, turned * lever)


class LocalForms(NamedTuple):
    """Local forms: the squared error of a row's coordinates is dᵀBd, d the differences of its neighbours to it."""

    B: Array  # (n, size, size)
    residual: float  # largest |(G + r I) v - 1| of any row, relative to |v|
    errors: LocalErrors
    open: int  # rows for which the method itself leaves the weights open, and the rule above decides


def local_forms(
    X: Array,
    neighbours: Array,
    reg: float,
    flat: tuple[int, bool] | None,
    rule: FlatDirectionRule = FlatDirectionRule(),
) -> LocalForms:
    """Solve the local systems of rows X (n, d) with these neighbours (n, size).

    `flat` is None for the standard method; for the modified one it holds the number of coordinates, and whether a
    share equal to the median counts as small.
    """
    n, size = neighbours.shape
    grams = unit_grams(X, neighbours)
    A = grams + reg * np.eye(size)
    v = np.linalg.solve(A, np.ones((n, size, 1)))[..., 0]
    residual = float((np.abs(np.einsum("iab,ib->ia", A, v) - 1).max(axis=1) / np.abs(v).sum(axis=1)).max())
    weights = v / v.sum(axis=1, keepdims=True)
    if flat is None:
        smallest = np.linalg.eigvalsh(grams)[:, 0] if needs_spectrum(reg) else 0.0
        B = weights[:, :, None] * weights[:, None, :]
        return LocalForms(B, residual, plain_errors(weights, reg, smallest), 0)
    values, vectors = np.linalg.eigh(grams)
    values, vectors = values[:, ::-1], vectors[:, :, ::-1]
    kept, moved = _count_steep(values, min(size, X.shape[1]), flat, rule)
    B, parts, alone = _modified_forms(weights, values, vectors, kept, rule)
    errors = modified_errors(weights, reg, values[:, -1], parts)
    return LocalForms(B, residual, errors, int((moved | alone).sum()))


def unit_grams(X: Array, neighbours: Array, entries: int = 2**22) -> Array:
    """Gram matrices (n, size, size) of neighbours about their rows, of trace 1, from so many differences at a time.

    Where all neighbours coincide with their row, it is a multiple of I.
    """
    n, size = neighbours.shape
    G = np.empty((n, size, size))
    step = max(1, entries // (size * X.shape[1]))
    for first in range(0, n, step):
        some = slice(first, first + step)
        Z = X[neighbours[some]] - X[some, None]
        G[some] = Z @ Z.transpose(0, 2, 1)
    trace = np.trace(G, axis1=1, axis2=2)[:, None, None]
    return np.where(trace > 0, G / np.where(trace > 0, trace, 1.0), np.eye(size) / size)


def _count_steep(values: Array, rank: int, flat: tuple[int, bool], rule: FlatDirectionRule) -> tuple[Array, Array]:
    """Count the directions of each row that are not flat (n,); and whether equal spreads changed the count (n,)."""
    n, size = values.shape
    coordinates, inclusive = flat
    values = np.where(values > rule.zero * size, values, 0.0)
    shares = [values[:, j:].sum(axis=1) / values[:, :j].sum(axis=1) for j in range(1, rank)]
    eta = np.median(shares[coordinates - 1]) if coordinates < rank else 0.0
    slack = rule.tie * eta + rule.zero * size
    small = np.zeros(n, int)
    for share in shares:
        small += share <= eta + (slack if inclusive else -slack)
    # At least one direction is flat: without any, the row's coordinates would be free.
    steep = np.minimum(size - 1, rank - small)
    kept = steep.copy()
    for i in range(n):
        while kept[i] > 0 and values[i, kept[i] - 1] - values[i, kept[i]] <= rule.equal:
            kept[i] -= 1
    return kept, kept != steep


def _modified_forms(
    weights: Array, values: Array, vectors: Array, kept: Array, rule: FlatDirectionRule
) -> tuple[Array, FlatParts, Array]:
    """B (n, size, size) of the modified method, what its errors depend on, and whether 1 had no flat part (n,).

    The weights W enter as W Wᵀ only, which depends on V by its projector P = VVᵀ alone: V H 1 is √flat times the
    direction of P 1.
    """
    n, size = weights.shape
    B, alone = np.empty((n, size, size)), np.zeros(n, bool)
    length, alpha, gap = np.empty(n), np.empty(n), np.full(n, np.inf)
    for i, v in enumerate(weights):
        V = vectors[i][:, kept[i] :]
        flat, P = size - kept[i], V @ V.T
        if kept[i] > 0:
            gap[i] = values[i, kept[i] - 1] - values[i, kept[i]]
        p = P.sum(axis=1)
        alpha[i] = a = np.linalg.norm(p) / np.sqrt(flat)
        alone[i] = bool(np.linalg.norm(p) <= rule.alone * np.sqrt(size))
        p = P @ rule.reference(size) if alone[i] else p
        length[i] = np.linalg.norm(p)
        p = np.sqrt(flat) * p / length[i]
        B[i] = P + (1 - a) * (np.outer(p, v) + np.outer(v, p)) + (1 - a) ** 2 * flat * np.outer(v, v)
    return B, FlatParts(size - kept, gap, length, alpha), alone
