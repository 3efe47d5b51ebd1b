"""Principal component pursuit by the alternating direction method of multipliers, with a proved gap at every step.

    min |L|_* + Σ tᵢ |S_ij|   subject to   L + S = X          (tᵢ = λ for every row in the classical problem)
    max <Y, X>                subject to   |Y|₂ <= 1, |Y_ij| <= tᵢ          (its dual)

One step: L is X - S + Y/μ with its singular values lowered by 1/μ; S is X - L + Y/μ with its entries lowered by t/μ;
the next Y is μ times what was cut off these entries. It lies in the box |Y_ij| <= tᵢ, so that divided by its spectral
norm it is a feasible dual point; (L, X - L) is a primal one. μ stays near the value of Candès et al.: the inexact
method lets it grow, but then the dual point, and with it the gap, stops improving.

At first μ is small, so that few singular values remain, and grows up to that value. From one step to the next the
leading singular vectors hardly turn, so that one step of subspace iteration from the last ones finds them
(`leading_part`). The proof does not rest on that: whatever L is, its objective is its own, and the spectral norm of a
dual point is that of all its singular values.
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
from scipy.linalg import LinAlgError, eigh, qr, svd

from certifit.core import Step
from certifit.rows import Array
from certifit.rows.threads import parallel_map, parallel_sum, single_threaded_blas


@dataclass(frozen=True)
class PursuitTuning:
    """Numbers that steer the alternating direction method of multipliers."""

    relaxation: float = 1.6  # over-relaxation of a step; convergence is proved below 2
    dual_every: int = 10  # steps between dual points, and between changes of μ
    first_share: float = 5.0  # μ of the first step, times the spectral norm of X
    growth: float = 1.5  # of μ at each of the first steps, up to the value asked for
    balance_ratio: float = 3.0  # of the primal and dual infeasibility, up to which μ stays
    balance_fade: int = 200  # steps after which changes of μ have become half as large
    oversample: int = 8  # directions beyond those in L that are followed, so that a new one is seen in time
    part_size: int = 65_536  # entries of the runs of rows that a thread works on: they stay in its cache


class LowRankPart(NamedTuple):
    """A matrix of low rank, `left @ axes.T`."""

    left: Array  # (n, k)
    axes: Array  # (d, k) orthonormal columns


class PursuitState(NamedTuple):
    """The variables of the method, and the best primal and dual points so far."""

    S: Array  # (n, d)
    Y: Array  # (n, d) multipliers
    mu: float  # penalty parameter μ
    asked_mu: float  # up to which it grows at first
    n_iter: int
    followed: Array  # (d, m) orthonormal columns: the leading right singular vectors at the last step; m may be 0
    L: LowRankPart  # (n, d) the low-rank part of least objective
    objective: float  # of (L, X - L)
    dual: Array  # (n, d) the feasible dual point of largest value
    bound: float  # that value


@dataclass(frozen=True)
class Pursuit:
    """The problem, and the steps of the method."""

    X: Array  # (n, d)
    t: Array  # (n, 1) weight of |S_ij| in the objective
    unit: float = 1.0  # the entries of X are those of the user divided by this; objectives are in the user's numbers
    tuning: PursuitTuning = PursuitTuning()

    def start(self, mu: float) -> PursuitState:
        """Return the first state: L = 0, and X scaled to a feasible dual point."""
        X, (n, d) = self.X, self.X.shape
        length = max(spectral_norm(X), np.finfo(float).tiny)
        Y = X / max(length, float((np.abs(X) / self.t).max(initial=0.0)))
        nothing = LowRankPart(np.zeros((n, 0)), np.zeros((d, 0)))
        objective = float(self.t[:, 0] @ np.abs(X).sum(axis=1))
        share = self.tuning.first_share
        first = mu if mu * length <= share else share / length
        return PursuitState(
            np.zeros_like(X), Y, first, mu, 0, nothing.axes, nothing, objective, Y, float(np.vdot(Y, X))
        )

    def measure(self, at: PursuitState) -> PursuitState:
        """Take one step, and return it with the best primal and dual points so far."""
        mu, asked, tuning = at.mu, at.asked_mu, self.tuning
        A = np.empty_like(self.X)

        def lift(rows: slice) -> None:
            np.divide(at.Y[rows], mu, out=A[rows])
            A[rows] += self.X[rows]
            A[rows] -= at.S[rows]

        parallel_map(lift, self._parts())
        L, nuclear, followed = leading_part(A, 1 / mu, at.followed, self._parts(), tuning.oversample)
        # The memory of A is used again: to allocate arrays of this size takes as long as to fill them.
        S, Y = A, np.empty_like(A)
        sums = parallel_sum(lambda rows: self._change_part(at, L, S, Y, rows), self._parts())
        objective, dual, bound = nuclear + float(sums[0]), at.dual, at.bound
        if self._is_turn(at):
            # The norm is rounded, here and by whoever checks it: both are allowed for, so that what is claimed holds.
            rounding = 16 * min(Y.shape) * np.finfo(float).eps
            length, value = max(1.0, spectral_norm(Y) * (1 + rounding)), float(np.vdot(Y, self.X))
            if value / length > bound:
                dual, bound = Y / length, value / length
        if mu < at.asked_mu:
            mu = min(at.asked_mu, mu * tuning.growth)
        elif self._is_turn(at):
            mu = asked = balance(mu, float(sums[0] - sums[1]), float(sums[2]), at.n_iter, tuning)
        if at.objective < objective:
            L, objective = at.L, at.objective
        return PursuitState(S, Y, mu, asked, at.n_iter + 1, followed, L, objective, dual, bound)

    def _change_part(self, at: PursuitState, L: LowRankPart, S: Array, Y: Array, rows: slice) -> Array:
        """Write S and Y of these rows; return Σ t |X - L|, Σ t |S| and the dual infeasibility along X."""
        X, t, mu, relaxation = self.X[rows], self.t[rows], at.mu, self.tuning.relaxation
        before, multipliers, new = at.S[rows], at.Y[rows], Y[rows]
        rest = X - L.left[rows] @ L.axes.T
        leaving = 0.0
        if self._is_turn(at):
            # This matrix has spectral norm at most 1; the part of it outside the box is the dual infeasibility.
            inside = mu * (rest - before) + multipliers
            leaving = float(np.vdot(inside - np.clip(inside, -t, t), X))
        sparse_term = float(t[:, 0] @ np.abs(rest).sum(axis=1))
        # B = relaxation · rest + (1 - relaxation) S + Y / μ, and all in units of 1 / μ.
        rest *= relaxation * mu
        rest += multipliers
        np.multiply(before, (1 - relaxation) * mu, out=S[rows])
        rest += S[rows]
        np.clip(rest, -t, t, out=new)
        np.subtract(rest, new, out=S[rows])
        S[rows] /= mu
        return np.array([sparse_term, float(t[:, 0] @ np.abs(S[rows]).sum(axis=1)), leaving])

    def update(self, at: PursuitState, following: PursuitState) -> Step[PursuitState]:
        gap = max(0.0, at.objective - at.bound)
        return Step(following, self.unit * at.objective, gap / at.objective if gap else 0.0)

    def _is_turn(self, at: PursuitState) -> bool:
        return at.n_iter % self.tuning.dual_every == self.tuning.dual_every - 1

    def _parts(self) -> list[slice]:
        return _parts(self.X, max(1, self.tuning.part_size // max(1, self.X.shape[1])))


def leading_part(
    A: Array, t: float, followed: Array, parts: list[slice], oversample: int
) -> tuple[LowRankPart, float, Array]:
    """Return A with its singular values lowered by t (none below 0), their sum, and the vectors to follow from here.

    One step of subspace iteration from `followed`. Where all that it finds is above t, there may be more, and A is
    decomposed as a whole.
    """
    d, m = A.shape[1], followed.shape[1]
    if m > 0:
        with single_threaded_blas():
            # A ≈ Q Wᵀ = (Q R) diag(σ) Pᵀ, the best approximation of A with columns in the span of A `followed`.
            Q = qr(np.concatenate(parallel_map(lambda rows: A[rows] @ followed, parts)), mode="economic")[0]
            W = parallel_sum(lambda rows: A[rows].T @ Q[rows], parts)
            P, sigma, turn = svd(W, full_matrices=False)
        kept = int((sigma > t).sum())
        if kept < m:
            left = Q @ (turn[:kept].T * (sigma[:kept] - t))
            return LowRankPart(left, P[:, :kept]), float((sigma[:kept] - t).sum()), P[:, : kept + oversample]
    L, nuclear = shrink(A, t)
    more = L.axes.shape[1] + oversample
    if more > min(A.shape) // 3:
        return L, nuclear, np.zeros((d, 0))
    with single_threaded_blas():
        extra = np.random.default_rng(0).normal(size=(d, oversample))
        return L, nuclear, qr(np.hstack([L.axes, extra]), mode="economic")[0]


def shrink(A: Array, t: float) -> tuple[LowRankPart, float]:
    """Return A with its singular values lowered by t (none below 0), and their sum.

    >>> L, nuclear = shrink(np.diag([3.0, 1.0, 0.5]), 0.8)
    >>> np.diag(L.left @ L.axes.T).round(12), round(nuclear, 12)
    (array([2.2, 0.2, 0. ]), 2.4)
    """
    tall = A.shape[0] >= A.shape[1]
    squares, V = _eigenpairs_above(_gram(A), t * t)
    sigma = np.sqrt(squares)
    nuclear = float((sigma - t).sum())
    with single_threaded_blas():
        if tall:
            return LowRankPart((A @ V) * (1 - t / sigma), V), nuclear
        # V are left singular vectors, and AᵀV the right ones times σ.
        axes, R = qr((A.T @ V) * (1 - t / sigma), mode="economic")
        return LowRankPart(V @ R.T, axes), nuclear


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
    return parallel_sum(lambda rows: tall[rows].T @ tall[rows], _parts(tall, 256))


def _parts(A: Array, length: int) -> list[slice]:
    """Return runs of rows for the threads: fixed ones, so that no bit depends on the number of threads."""
    return [slice(i, i + length) for i in range(0, len(A), length)]
