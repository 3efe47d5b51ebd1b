"""The eigenvectors of M = FᵀF with the smallest eigenvalues after the constant vector's 0, and proof that they are.

    min over Y (n, k), YᵀY = I, Yᵀ1 = 0 of  |F Y|²,     F 1 = 0

Block Lanczos on the inverse of M + ε I, orthogonal to the constant vector, finds them (LAPACK where there are few
rows). The negative pivots of M - τ I, τ beyond the last eigenvalue wanted, count the eigenvalues below τ: where there
are as many as were found, none was missed.
References: Parlett, The Symmetric Eigenvalue Problem (1998), chapters 3 (inertia), 11 (residual bounds) and 13.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, eigh

from certifit.checkers.manifold.locally_linear import sizes_of
from certifit.core import ResumableUpdate, Solution, Step, fixed_point
from certifit.core.loop import Watcher
from certifit.exceptions import DataError
from certifit.numerics.sparse_cholesky.multifrontal import SparseCholeskyTuning
from certifit.numerics.sparse_cholesky.shifted_factor import FactorAt, ShiftedFactor, prepare_factor
from certifit.rows import Array


@dataclass(frozen=True)
class EigenvectorTuning:
    """How the smallest eigenvectors are found."""

    dense_rows: int = 300  # rows up to which eigen_solver='auto' solves the dense eigenproblem
    spare_vectors: int = 3  # sought beyond those wanted: τ is placed in a gap between their eigenvalues
    # ε relative to M's largest diagonal entry; the first for which M + ε I has a Cholesky factor is taken
    shifts: tuple[float, ...] = (1e-12, 1e-10, 1e-8, 1e-6)
    factor: SparseCholeskyTuning = field(default_factory=SparseCholeskyTuning)


class KrylovBasis(NamedTuple):
    """Where the loop stands."""

    V: Array  # (n, m) orthonormal basis, orthogonal to the constant vector
    last: Array  # (n, b) its newest columns, to which the inverse is applied next


class SmallestRitzPairs(NamedTuple):
    """Approximate eigenpairs with the smallest values, from a basis."""

    values: Array  # (b,) ascending
    vectors: Array  # (n, b)
    residuals: Array  # (b,) norms of M v - value v


@dataclass(frozen=True)
class SmallestEigenvectors:
    """The smallest eigenvalues after the constant vector's 0, and the proof that there are no others below τ."""

    values: Array  # (k,)
    vectors: Array  # (n, k)
    spare: Array  # (n, s) the next ones, as far as they lie below τ
    inside: int  # how many of all these lie below τ
    tau: float
    below: int  # eigenvalues of M below τ, the constant vector's included
    rounding: float  # by which τ may be off
    sizes: dict[str, Any]  # of M, for the checker
    loop: Solution[Any] | None  # None where the dense eigenproblem was solved


class LoopLimits(NamedTuple):
    """When the loop ends, and who watches it."""

    tol: float  # relative error of the sum of the eigenvalues
    max_iter: int
    watcher: Watcher | None


def find_smallest(
    F: Any, k: int, dense: bool, limits: LoopLimits, tuning: EigenvectorTuning = EigenvectorTuning()
) -> SmallestEigenvectors:
    """Find the k eigenvectors of FᵀF, F (m, n) in CSR, with the smallest eigenvalues after the constant one."""
    M = (F.T.tocsr() @ F).T  # symmetric, so that the transpose of CSR is the same matrix in CSC
    factor = prepare_factor(M, tuning.factor)
    b = min(k + tuning.spare_vectors, M.shape[0] - 1)
    loop = None
    if dense:
        pairs = _solve_dense(F, M, b)
    else:
        lanczos = InverseLanczos(F, M, k, b, _factor_for_inverse(factor, M, tuning))
        loop = fixed_point(
            lanczos.measure,
            ResumableUpdate(partial(lanczos.update, limits.tol)),
            lanczos.start(),
            tol=limits.tol,
            max_iter=limits.max_iter,
            watcher=limits.watcher,
        )
        pairs = lanczos.measure(loop.params)
    count = _count_from_above(factor, M, pairs, k)
    if not count.proves:
        count = _count_from_below(factor, pairs, k, limits.tol**0.5) or count
    spare = pairs.vectors[:, k : max(k, count.inside)]
    return SmallestEigenvectors(
        pairs.values[:k],
        pairs.vectors[:, :k],
        spare,
        count.inside,
        count.tau,
        count.below,
        count.rounding,
        sizes_of(M),
        loop,
    )


class CountBelow(NamedTuple):
    """A place τ between eigenvalues, and how many are counted below it."""

    inside: int  # vectors that should lie below τ, but for the constant one
    tau: float
    below: int  # eigenvalues counted below τ, the constant vector's included
    rounding: float
    room: float  # between τ and the next vector's value below it

    @property
    def proves(self) -> bool:
        """Whether no eigenvalue was missed."""
        return self.below == self.inside + 1 and self.room > self.rounding


def _count_from_above(factor: FactorAt, M: Any, pairs: SmallestRitzPairs, k: int) -> CountBelow:
    """Count below a τ beyond the k vectors wanted, in a gap."""
    q, _ = _vectors_below(pairs, k)
    values = np.append(pairs.values, 2 * M.diagonal().sum() + 1.0)  # no eigenvalue is larger than the trace
    room = float(values[q] - values[q - 1]) / 4
    tau = float(values[q - 1]) + room
    return CountBelow(q, tau, *_count_below(factor, tau, M.shape[0]), room)


def _count_from_below(factor: FactorAt, pairs: SmallestRitzPairs, k: int, tol: float) -> CountBelow | None:
    """Count below a τ just before the eigenvalues that are equal to the last one wanted: any number may be."""
    values = pairs.values
    q = min(k - 1, int(np.searchsorted(values, values[k - 1] * (1 - tol / 8))))
    room = min(tol / 16 * values[q], (values[q] - (values[q - 1] if q else 0.0)) / 2)
    tau = float(values[q] - room)
    found = CountBelow(q, tau, *_count_below(factor, tau, len(pairs.vectors)), tau - (values[q - 1] if q else 0.0))
    return found if found.proves else None


def _count_below(factor: FactorAt, tau: float, n: int) -> tuple[int, float]:
    """Count the eigenvalues below τ (n at most are), and say by how much τ may be off."""
    # Where a pivot is exactly 0, a slightly larger τ is taken, below which there are as many or more.
    for nudge in (0.0, 1e-9, 1e-6):
        with suppress(LinAlgError):
            counted = factor(tau * (1 + nudge), keep=False)
            return counted.negative, counted.rounding
    return n, 0.0


def _factor_for_inverse(factor: FactorAt, M: Any, tuning: EigenvectorTuning) -> ShiftedFactor:
    """Factor M + ε I for the smallest ε that makes it positive definite."""
    largest = float(M.diagonal().max())
    for shift in tuning.shifts:
        with suppress(LinAlgError):
            return factor(-shift * largest, keep=True)
    raise DataError(
        got="a matrix of local errors that is not positive semidefinite to rounding",
        wanted="weights of moderate size",
        fix="Use a larger reg: the local systems are close to singular.",
    )


def _solve_dense(F: Any, M: Any, b: int) -> SmallestRitzPairs:
    n = M.shape[0]
    # Adding a constant makes the constant vector's eigenvalue the largest; no larger a constant than that needs.
    A = M.toarray() + 2 * abs(M).sum(axis=0).max() / n
    _, V = eigh(A, subset_by_index=[0, b - 1])
    return smallest_ritz_pairs(F, V - V.mean(axis=0), b)


def smallest_ritz_pairs(F: Any, V: Array, b: int) -> SmallestRitzPairs:
    """Find the b smallest Ritz values in the span of orthonormal V (n, m), and their vectors, as exact as F is."""
    for _ in range(2):  # the second time among few vectors, where rounding of large values does not hide small ones
        FV = F @ V
        _, U = np.linalg.eigh(FV.T @ FV)
        V = np.linalg.qr(V @ U[:, :b])[0]
    FV = F @ V
    values = (FV**2).sum(axis=0)
    order = np.argsort(values, kind="stable")
    V, FV, values = V[:, order], FV[:, order], values[order]
    residuals = np.linalg.norm(F.T @ FV - V * values, axis=0)
    return SmallestRitzPairs(values, V, residuals)


def _vectors_below(pairs: SmallestRitzPairs, k: int) -> tuple[int, float]:
    """Choose how many vectors q >= k shall lie below τ, and bound how much smaller the sum of the k values could be.

    With the q vectors all that lie below τ, each value is at most |residuals|² / (τ - value) too large.
    """
    n, found = pairs.vectors.shape
    if found == k:  # every vector there is
        return k, 0.0
    # With all vectors but the constant one, nothing is left above them.
    values = np.append(pairs.values, np.inf) if found == n - 1 else pairs.values
    best = k, np.inf
    for q in range(k, len(values)):
        room = (values[q] - values[q - 1]) / 4
        leak = float((pairs.residuals[:q] ** 2).sum())
        excess = k * leak / room if room > 0 else np.inf
        if excess < best[1]:
            best = q, excess
    return best


class InverseLanczos:
    """Block Lanczos for k eigenvectors of M = FᵀF (n, n), by blocks of b vectors and a factor of M + ε I."""

    def __init__(self, F: Any, M: Any, k: int, b: int, inverse: ShiftedFactor) -> None:
        self.F, self.k, self.b, self.inverse = F, k, b, inverse
        # residuals below this are rounding
        self.rounding = 64 * float(np.finfo(float).eps) * float(M.diagonal().max())

    def start(self) -> KrylovBasis:
        n = self.F.shape[1]
        V = np.random.default_rng(0).normal(size=(n, self.b))  # any start will do; this one is the same every time
        return self.grow(np.empty((n, 0)), V)

    def grow(self, V: Array, W: Array) -> KrylovBasis:
        """Add the inverse times W (n, b) to the basis V (n, m)."""
        W = self.inverse.solve(np.ascontiguousarray(W - W.mean(axis=0)))
        for _ in range(2):  # twice is enough for orthogonality to rounding
            W = W - W.mean(axis=0)
            W = np.linalg.qr(W - V @ (V.T @ W))[0]
        return KrylovBasis(np.concatenate([V, W], axis=1), W)

    def measure(self, at: KrylovBasis) -> SmallestRitzPairs:
        return smallest_ritz_pairs(self.F, at.V, self.b)

    def update(self, tol: float, at: KrylovBasis, pairs: SmallestRitzPairs) -> Step[KrylovBasis]:
        objective = float(pairs.values[: self.k].sum())
        _, excess = _vectors_below(pairs, self.k)
        done = pairs.residuals[: self.k].max() <= self.rounding
        full = at.V.shape[1] + self.b >= self.F.shape[1]
        gain = 0.0 if done or full else excess / objective
        return Step(at if gain <= tol else self.grow(at.V, at.last), objective, gain)
