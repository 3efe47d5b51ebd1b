"""Dual coordinate ascent for linear support vector machines, and the best combination of the moves of a few rounds.

    D(a) = Σ [a q - soft a² / 2] - ½ |Σ a s x|² - τ/2 (Σ a s)² - b₀ Σ a s,      0 <= a <= top

A round sets one dual variable a after the other to its best value; β = Σ a s x and b = b₀ + τ Σ a s are kept up to
date. Rounds are slow along directions in which many a must move together. The moves of a few rounds span those
directions, and D is a small quadratic on their span: its maximum costs less than one round and replaces dozens.
References: Hsieh, Chang, Lin, Keerthi & Sundararajan, "A dual coordinate descent method for large-scale linear SVM"
(2008); Bertrand & Massias, "Anderson acceleration of coordinate descent" (2021), who weigh the moves by other means.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from certifit.rows import Array, Matrix
from certifit.svm.linear.coordinate_ascent_loops import ascend_dense, ascend_sparse


@dataclass(frozen=True)
class CoordinateAscentTuning:
    """Numbers that steer dual coordinate ascent."""

    rounds: int = 100  # at most, before the duality gap is measured again
    visits: int = 8  # of each dual variable on average, before the duality gap is measured again
    combined_rounds: int = 4  # rounds whose moves are combined
    # neighbours visited one after the other: rows far apart are slow to fetch, a fixed order converges slowly
    run: int = 32
    largest_weight: float = 1e3  # of a round's move: a combination with a larger one would magnify rounding
    flat: float = 1e-12  # curvature, relative to the largest, below which a direction is left out of a combination
    free_intercept_tau: float = 0.3  # τ of a free intercept, relative to the mean |x|²


class DualTerms(NamedTuple):
    """The coefficients of D, one for each dual variable; regression has two dual variables for each row."""

    row: Array  # (m,) the row of X
    s: Array  # (m,) ±1
    q: Array  # (m,)
    soft: Array  # (m,)
    top: Array  # (m,)

    def pick(self, index: Array) -> DualTerms:
        return DualTerms(*(each[index] for each in self))


class DualIterate(NamedTuple):
    """Dual variables and the primal variables that follow from them, all changed in place."""

    a: Array  # (m,)
    beta: Array  # (d,)
    b: Array  # (1,)


class CoordinateAscent:
    """Dual coordinate ascent of one machine.

    `balance` is Σ a s of the dual variables that are left out, where the intercept is free: b₀ then becomes b after
    every round. It is None where the intercept is penalised or missing.
    """

    def __init__(
        self,
        X: Matrix,
        norms: Array,
        terms: DualTerms,
        at: DualIterate,
        tau: float,
        balance: float | None,
        tuning: CoordinateAscentTuning,
    ) -> None:
        self.X, self.norms, self.terms = X, norms, terms  # norms (rows,) |x|²
        self.a, self.beta, self.b = at
        self.tau, self.balance, self.tuning = tau, balance, tuning
        self.moves: list[tuple[Array, Array]] = []  # of a (m,) and β (d,), round by round
        table, loop = X, ascend_dense
        if sparse.issparse(X):
            table, loop = (X.data, _unsigned(X.indices), _unsigned(X.indptr)), ascend_sparse
        unsigned = terms._replace(row=_unsigned(terms.row))
        self._visit: Any = lambda order: loop(table, unsigned, norms, _unsigned(order), tau, at)

    def pick(self, index: Array) -> CoordinateAscent:
        """The same ascent for these dual variables alone, in this order; CSR rows are copied to lie in that order."""
        X, norms, terms, balance = self.X, self.norms, self.terms.pick(index), self.balance
        if sparse.issparse(X):
            X, norms, terms = X[terms.row], norms[terms.row], terms._replace(row=np.arange(len(index)))
        if balance is not None:
            balance += float(self.terms.s @ self.a) - float(terms.s @ self.a[index])
        at = DualIterate(self.a[index], self.beta, self.b)
        return CoordinateAscent(X, norms, terms, at, self.tau, balance, self.tuning)

    def round(self, moving: Array) -> Array:
        """Visit these dual variables in turn; return those that may move again.

        The others are at a limit and did not leave it.
        """
        before, beta = self.a.copy(), self.beta.copy()
        self._visit(moving)
        if self.balance is not None:
            self.b += self.tau * (self.balance + float(self.terms.s @ self.a))
        move, now = self.a - before, self.a[moving]
        self.moves.append((move, self.beta - beta))
        return moving[(move[moving] != 0) | ((now > 0) & (now < self.terms.top[moving]))]

    def combine(self) -> None:
        """Go where D is largest among all combinations of the last moves, cut off at the limits, if D rises."""
        A, B = (np.stack(parts) for parts in zip(*self.moves, strict=True))
        self.moves.clear()
        _, s, q, soft, top = self.terms
        slope, M = q - soft * self.a, A @ s
        G = B @ B.T + self.tau * np.outer(M, M) + (A * soft) @ A.T
        inverse = np.linalg.pinv(G, rcond=self.tuning.flat, hermitian=True)
        weights = inverse @ (A @ slope - B @ self.beta - M * self.b[0])
        if np.abs(weights).max() > self.tuning.largest_weight:
            return
        wanted = self.a + weights @ A
        new = np.clip(wanted, 0.0, top)
        cut = np.flatnonzero(new != wanted)
        pull = weights @ B + self.X[self.terms.row[cut]].T @ (s * (new - wanted))[cut]
        move = new - self.a
        mass = float(s @ move)
        gain = move @ slope - pull @ self.beta - mass * self.b[0]
        gain -= 0.5 * (soft @ move**2 + pull @ pull + self.tau * mass**2)
        if gain > 0:
            self.a[:] = new
            self.beta += pull
            self.b += self.tau * mass


def ascend(every: CoordinateAscent, rng: np.random.Generator) -> None:
    """Visit all dual variables once, then those that may still move, until the duality gap should be measured."""
    m, tuning = len(every.a), every.tuning
    some = rng.permutation(every.round(_shuffled_runs(m, tuning.run, rng)))
    part, visits = every.pick(some), (tuning.visits - 1) * m
    moving = np.arange(len(some))
    for rounds in range(1, tuning.rounds):
        if not len(moving) or visits <= 0:
            break
        visits -= len(moving)
        moving = part.round(moving)
        if rounds % tuning.combined_rounds == 0:
            part.combine()
    every.a[some] = part.a


def _shuffled_runs(m: int, run: int, rng: np.random.Generator) -> Array:
    """The numbers below m, runs of neighbours in random order."""
    order = (run * rng.permutation(-(-m // run))[:, None] + np.arange(run)).ravel()
    return order[order < m]


def _unsigned(index: Array) -> Array:
    """The same numbers as an unsigned type, for which a compiled loop needs no code for negative indices."""
    return index.view(f"u{index.dtype.itemsize}")
