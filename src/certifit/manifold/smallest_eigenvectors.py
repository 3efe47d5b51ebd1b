"""The smoothest coordinates of a neighbour graph: eigenvectors of M = FᵀF with the smallest eigenvalues, proved.

    min over Y (n, k), YᵀY = I, Yᵀ1 = 0 of  |F Y|²,     F 1 = 0

Block Lanczos on the inverse of M + ε I, orthogonal to the constant vector, finds them; the negative pivots of
M - τ I, τ beyond the last one wanted, count the eigenvalues below τ, so that none can have been missed.
References: Parlett, The Symmetric Eigenvalue Problem (1998), chapters 3 (inertia), 11 (residual bounds) and 13.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, eigh

from certifit.core import Solution, Step, fixed_point
from certifit.core.loop import Watcher
from certifit.exceptions import DataError
from certifit.numerics.sparse_cholesky.multifrontal import EPS
from certifit.numerics.sparse_cholesky.shifted_factor import Factor, Factoring, factoring
from certifit.rows import Array

SMALL = 300  # rows up to which the dense eigenproblem is quick
SPARE = 3  # eigenvectors sought beyond those wanted: τ goes into a gap among their eigenvalues
SHIFTS = (1e-12, 1e-10, 1e-8, 1e-6)  # ε relative to M's largest diagonal entry; the first that is positive definite


class Krylov(NamedTuple):
    """Where the loop stands."""

    V: Array  # (n, m) orthonormal basis, orthogonal to the constant vector
    last: Array  # (n, b) its newest columns, to which the inverse is applied next


class Ritz(NamedTuple):
    """Eigenvectors as far as known."""

    values: Array  # (b,) ascending
    vectors: Array  # (n, b)
    residuals: Array  # (b,) norms of M v - value v


@dataclass(frozen=True)
class Bottom:
    """The smallest eigenvalues after the constant vector's 0, and the proof that there are no others below τ."""

    values: Array  # (k,)
    vectors: Array  # (n, k)
    spare: Array  # (n, q) the next ones, as far as they lie below τ
    tau: float
    below: int  # eigenvalues of M below τ, the constant vector's included
    rounding: float  # by which τ may be off
    loop: Solution[Any] | None  # None where the dense eigenproblem was solved


def smoothest(F: Any, k: int, dense: bool, tol: float, max_iter: int, watcher: Watcher | None) -> Bottom:
    """The k smoothest coordinates by F (m, n) in CSR."""
    M = (F.T.tocsr() @ F).T  # symmetric: turned over, it is itself in CSC
    factor = factoring(M)
    loop = None
    if dense:
        ritz = _dense(F, M, k)
    else:
        problem = Problem(F, M, k, _inverse(factor, M))
        loop = fixed_point(
            problem.measure,
            partial(_update, problem, tol),
            problem.start(),
            tol=tol,
            max_iter=max_iter,
            watcher=watcher,
        )
        ritz = problem.ritz(loop.params.V)
    q, _ = _gap(ritz, k)
    values = np.append(ritz.values, 2 * M.diagonal().sum() + 1.0)  # nothing lies beyond the trace
    tau = float(values[q - 1] + (values[q] - values[q - 1]) / 4)
    below, rounding = _count(factor, tau, M.shape[0])
    return Bottom(ritz.values[:k], ritz.vectors[:, :k], ritz.vectors[:, k:q], tau, below, rounding, loop)


def _count(factor: Factoring, tau: float, n: int) -> tuple[int, float]:
    """How many eigenvalues lie below τ at most, and by how much τ may be off."""
    # where a pivot is exactly 0, a slightly larger τ, below which there are as many or more
    for nudge in (0.0, 1e-9, 1e-6):
        with suppress(LinAlgError):
            counted = factor(tau * (1 + nudge), keep=False)
            return counted.negative, counted.rounding
    return n, 0.0


def _inverse(factor: Factoring, M: Any) -> Factor:
    largest = float(M.diagonal().max())
    for shift in SHIFTS:
        with suppress(LinAlgError):
            return factor(-shift * largest, keep=True)
    raise DataError(
        got="a matrix of local errors that is not positive semidefinite to rounding",
        wanted="weights of moderate size",
        fix="Use a larger reg: the local systems are close to singular.",
    )


def _dense(F: Any, M: Any, k: int) -> Ritz:
    n = M.shape[0]
    A = M.toarray() + 2 * abs(M).sum(axis=0).max() / n  # moves the constant vector to the top, and no further
    last = min(k + SPARE, n - 1) - 1
    _, V = eigh(A, subset_by_index=[0, last])
    return rayleigh(F, V - V.mean(axis=0), last + 1)


def rayleigh(F: Any, V: Array, b: int) -> Ritz:
    """The b smallest Ritz values in the span of orthonormal V, as accurate as F allows, and their vectors."""
    for _ in range(2):  # the second time in the small space, where large values no longer drown small ones
        FV = F @ V
        _, U = np.linalg.eigh(FV.T @ FV)
        V = np.linalg.qr(V @ U[:, :b])[0]
    FV = F @ V
    values = (FV**2).sum(axis=0)
    order = np.argsort(values, kind="stable")
    V, FV, values = V[:, order], FV[:, order], values[order]
    residuals = np.linalg.norm(F.T @ FV - V * values, axis=0)
    return Ritz(values, V, residuals)


def _gap(ritz: Ritz, k: int) -> tuple[int, float]:
    """How many vectors q >= k to count with, and how much smaller the sum of the k values could still be.

    With the q vectors all that lie below τ, each value is at most |residuals|² / (τ - value) too large.
    """
    best = k, np.inf
    for q in range(k, len(ritz.values)):
        room = (ritz.values[q] - ritz.values[q - 1]) / 4
        leak = float((ritz.residuals[:q] ** 2).sum())
        slack = k * leak / room if room > 0 else np.inf
        if slack < best[1]:
            best = q, slack
    if len(ritz.values) == k:  # every vector there is
        best = k, 0.0
    return best


class Problem:
    """M (n, n), its inverse, and the Krylov space grown so far."""

    def __init__(self, F: Any, M: Any, k: int, inverse: Factor) -> None:
        self.F, self.k, self.inverse = F, k, inverse
        self.b = min(k + SPARE, M.shape[0] - 1)
        self.rounding = 64 * EPS * float(M.diagonal().max())  # residuals below are as good as 0

    def start(self) -> Krylov:
        n = self.F.shape[1]
        V = np.random.default_rng(0).normal(size=(n, self.b))  # any start will do; this one is the same every time
        return self.grow(np.empty((n, 0)), V)

    def grow(self, V: Array, W: Array) -> Krylov:
        """The basis V with the inverse times W added."""
        W = self.inverse.solve(np.ascontiguousarray(W - W.mean(axis=0)))
        for _ in range(2):  # twice is enough for orthogonality to rounding
            W = W - W.mean(axis=0)
            W = np.linalg.qr(W - V @ (V.T @ W))[0]
        return Krylov(np.concatenate([V, W], axis=1), W)

    def ritz(self, V: Array) -> Ritz:
        return rayleigh(self.F, V, self.b)

    def measure(self, at: Krylov) -> Ritz:
        return self.ritz(at.V)


def _update(problem: Problem, tol: float, at: Krylov, ritz: Ritz) -> Step[Krylov]:
    objective = float(ritz.values[: problem.k].sum())
    _, slack = _gap(ritz, problem.k)
    done = ritz.residuals[: problem.k].max() <= problem.rounding
    full = at.V.shape[1] + problem.b >= problem.F.shape[1]
    gain = 0.0 if done or full else slack / objective
    return Step(at if gain <= tol else problem.grow(at.V, at.last), objective, gain)
