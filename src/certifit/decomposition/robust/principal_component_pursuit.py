"""Principal component pursuit by the alternating direction method of multipliers, with a proved gap at every step.

    min |L|_* + Σ tᵢ |S_ij|   subject to   L + S = X          (tᵢ = λ for every row in the classical problem)
    max <Y, X>                subject to   |Y|₂ <= 1, |Y_ij| <= tᵢ          (its dual)

One step: L is X - S + Y/μ with its singular values lowered by 1/μ; S is X - L + Y/μ with its entries lowered by t/μ;
the next Y is μ times what was cut off these entries. It lies in the box |Y_ij| <= tᵢ, so that divided by its spectral
norm it is a feasible dual point; (L, X - L) is a primal one. μ stays near the value of Candès et al.: the inexact
method lets it grow, but then the dual point, and with it the gap, stops improving.
References: Candès, Li, Ma & Wright, Robust principal component analysis? (2011); Lin, Chen & Ma, The augmented
Lagrange multiplier method for exact recovery of corrupted low-rank matrices (2010); for over-relaxation and the
balancing of μ, Boyd et al., Distributed optimization and statistical learning via ADMM (2011), section 3.4.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, eigh

from certifit.core import Step
from certifit.rows import Array
from certifit.rows.threads import parallel_map, parallel_sum


@dataclass(frozen=True)
class PursuitTuning:
    """Numbers that steer the alternating direction method of multipliers."""

    relaxation: float = 1.6  # over-relaxation of a step; convergence is proved below 2
    dual_every: int = 10  # steps between dual points, and between changes of μ
    balance_ratio: float = 3.0  # of the primal and dual infeasibility, up to which μ stays
    balance_fade: int = 200  # steps after which changes of μ have become half as large


@dataclass(frozen=True)
class Pursuit:
    """The problem, and the steps of the method."""

    X: Array  # (n, d)
    t: Array  # (n, 1) weight of |S_ij| in the objective
    unit: float = 1.0  # the entries of X are those of the user divided by this; objectives are in the user's numbers
    tuning: PursuitTuning = PursuitTuning()

    def start(self, mu: float) -> PursuitState:
        """Return the first state: L = 0, and X scaled to a feasible dual point."""
        X = self.X
        # The Frobenius norm is no smaller than |X|₂.
        length = max(float(np.linalg.norm(X)), np.finfo(float).tiny)
        Y = X / max(length, float((np.abs(X) / self.t).max(initial=0.0)))
        zero = np.zeros_like(X)
        return PursuitState(zero, Y, mu, 0, zero, self._sparse_term(X), Y, float(np.vdot(Y, X)))

    def measure(self, at: PursuitState) -> PursuitState:
        """Take one step, and return it with the best primal and dual points so far."""
        X, t, mu, relaxation = self.X, self.t, at.mu, self.tuning.relaxation
        lift = at.Y / mu
        A = X - at.S
        A += lift
        L, nuclear = shrink(A, 1 / mu)
        # The memory of A is used again: to allocate arrays of this size takes as long as to fill them.
        rest = np.subtract(X, L, out=A)
        sparse_term = self._sparse_term(rest)
        objective = nuclear + sparse_term
        B = relaxation * rest
        B += (1 - relaxation) * at.S
        B += lift
        Y = mu * B
        np.clip(Y, -t, t, out=Y)
        S = np.subtract(B, Y / mu, out=B)
        dual, bound = at.dual, at.bound
        if at.n_iter % self.tuning.dual_every == self.tuning.dual_every - 1:
            length, value = max(1.0, spectral_norm(Y)), float(np.vdot(Y, X))
            if value / length > bound:
                dual, bound = Y / length, value / length
            # This matrix has spectral norm at most 1; the part of it outside the box is the dual infeasibility.
            inside = mu * (rest - at.S) + at.Y
            leaving = float(np.vdot(inside - np.clip(inside, -t, t), X))
            mu = balance(mu, sparse_term - self._sparse_term(S), leaving, at.n_iter, self.tuning)
        if at.objective < objective:
            L, objective = at.L, at.objective
        return PursuitState(S, Y, mu, at.n_iter + 1, L, objective, dual, bound)

    def update(self, at: PursuitState, following: PursuitState) -> Step[PursuitState]:
        gap = max(0.0, at.objective - at.bound)
        return Step(following, self.unit * at.objective, gap / at.objective if gap else 0.0)

    def _sparse_term(self, S: Array) -> float:
        return float(self.t[:, 0] @ np.abs(S).sum(axis=1))


class PursuitState(NamedTuple):
    """The variables of the method, and the best primal and dual points so far."""

    S: Array  # (n, d)
    Y: Array  # (n, d) multipliers
    mu: float  # penalty parameter μ
    n_iter: int
    L: Array  # (n, d) the low-rank part of least objective
    objective: float  # of (L, X - L)
    dual: Array  # (n, d) the feasible dual point of largest value
    bound: float  # that value


def shrink(A: Array, t: float) -> tuple[Array, float]:
    """Return A with its singular values lowered by t (none below 0), and their sum.

    >>> L, nuclear = shrink(np.diag([3.0, 1.0, 0.5]), 0.8)
    >>> np.diag(L).round(12), round(nuclear, 12)
    (array([2.2, 0.2, 0. ]), 2.4)
    """
    squares, V = _eigenpairs_above(_gram(A), t * t)
    sigma = np.sqrt(squares)
    share = 1 - t / sigma
    tall = A if A.shape[0] >= A.shape[1] else A.T
    low = np.empty(tall.shape)

    def fill(rows: slice) -> None:
        low[rows] = (tall[rows] @ V) * share @ V.T

    parallel_map(fill, _parts(tall))
    return low if tall is A else low.T, float((sigma - t).sum())


def _eigenpairs_above(G: Array, least: float) -> tuple[Array, Array]:
    """Eigenvalues above `least` and their vectors."""
    # For a matrix of order 1 LAPACK's selective driver writes past an array that SciPy leaves empty.
    if len(G) > 1:
        # It can fail where eigenvalues coincide.
        with suppress(LinAlgError):
            return eigh(G, subset_by_value=(least, np.inf), driver="evr", check_finite=False)
    values, V = eigh(G, driver="evd", check_finite=False)
    return values[values > least], V[:, values > least]


def spectral_norm(A: Array) -> float:
    """Return the largest singular value.

    >>> round(spectral_norm(np.array([[3.0, 0.0], [0.0, -4.0], [0.0, 0.0]])), 12)
    4.0
    """
    return math.sqrt(max(0.0, float(np.linalg.eigvalsh(_gram(A))[-1])))


def balance(mu: float, primal: float, dual: float, n_iter: int, tuning: PursuitTuning) -> float:
    """Return a larger μ where the primal is less feasible than the dual, else a smaller one; changes fade."""
    tiny = float(np.finfo(float).tiny)
    log_ratio = math.log(max(abs(primal), tiny)) - math.log(max(abs(dual), tiny))
    if abs(log_ratio) <= math.log(tuning.balance_ratio):
        return mu
    change = min(abs(log_ratio) / 2, math.log(2) / (1 + n_iter / tuning.balance_fade))
    return mu * math.exp(math.copysign(change, log_ratio))


def _gram(A: Array) -> Array:
    """Return AᵀA or AAᵀ, whichever is smaller."""
    tall = A if A.shape[0] >= A.shape[1] else A.T
    return parallel_sum(lambda rows: tall[rows].T @ tall[rows], _parts(tall))


def _parts(A: Array) -> list[slice]:
    """Return runs of 256 rows for the threads: fixed ones, so that no bit depends on the number of threads."""
    return [slice(i, i + 256) for i in range(0, len(A), 256)]
