"""Rounds of dual coordinate ascent for linear support vector machines, and the best combination of their moves.

    D(a) = Σ [a q - soft a² / 2] - ½ |Σ a s x|² - τ/2 (Σ a s)² - b₀ Σ a s,      0 <= a <= top

A round sets one a after the other to its best value; β = Σ a s x and b = b₀ + τ Σ a s are kept up to date. Rounds
creep along directions in which many a must move together. The moves of a few rounds span those directions, and D is
a small quadratic on what they span: its maximum costs less than a round and stands for dozens.
References: Hsieh, Chang, Lin, Keerthi & Sundararajan, "A dual coordinate descent method for large-scale linear SVM"
(2008); Bertrand & Massias, "Anderson acceleration of coordinate descent" (2021), who weigh the moves by other means.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from certifit.rows import Array, Matrix
from certifit.svm.linear.hinge_loops import sweep_dense, sweep_sparse

ROUNDS = 100  # at most, in one climb
VISITS = 8  # of a side on average, after which a climb ends
TOGETHER = 4  # rounds whose moves are combined
RUN = 32  # neighbours visited one after the other: rows far apart are slow to fetch, a fixed order slow to converge
FAR = 1e3  # times a round's move: a combination that goes further would blow up rounding
FLAT = 1e-12  # curvature, relative to the largest, below which a combination is left alone


class Terms(NamedTuple):
    """What D says of each side."""

    row: Array  # (m,) of X
    s: Array  # (m,) ±1
    q: Array  # (m,)
    soft: Array  # (m,)
    top: Array  # (m,)

    def pick(self, index: Array) -> Terms:
        return Terms(*(each[index] for each in self))


class Climb:
    """One machine on its way up; a, β and b change in place."""

    def __init__(
        self, X: Matrix, norms: Array, terms: Terms, a: Array, beta: Array, b: Array, tau: float, rest: float | None
    ) -> None:
        self.X, self.norms, self.terms = X, norms, terms  # norms (rows,) |x|²
        self.a, self.beta, self.b, self.tau = a, beta, b, tau  # (m,), (d,), (1,)
        self.rest = rest  # Σ a s of sides that are elsewhere, where b₀ becomes b after every round; else None
        self.moves: list[tuple[Array, Array]] = []  # of a (m,) and β (d,), round by round
        table = (X.data, _unsigned(X.indices), _unsigned(X.indptr)) if sparse.issparse(X) else (X,)
        kernel: Any = sweep_sparse if sparse.issparse(X) else sweep_dense
        self._sweep = lambda order: kernel(
            *table, _unsigned(terms.row), *terms[1:], norms, _unsigned(order), tau, a, beta, b
        )

    def pick(self, index: Array) -> Climb:
        """The same climb for these sides alone, in this order; rows of few entries are copied to lie in it."""
        X, norms, terms, rest = self.X, self.norms, self.terms.pick(index), self.rest
        if sparse.issparse(X):
            X, norms, terms = X[terms.row], norms[terms.row], terms._replace(row=np.arange(len(index)))
        if rest is not None:
            rest += float(self.terms.s @ self.a) - float(terms.s @ self.a[index])
        return Climb(X, norms, terms, self.a[index], self.beta, self.b, self.tau, rest)

    def round(self, moving: Array) -> Array:
        """Visit these in turn; those that may move again. The others are at a limit and did not leave it."""
        before, beta = self.a.copy(), self.beta.copy()
        self._sweep(moving)
        if self.rest is not None:
            self.b += self.tau * (self.rest + float(self.terms.s @ self.a))
        move, now = self.a - before, self.a[moving]
        self.moves.append((move, self.beta - beta))
        return moving[(move[moving] != 0) | ((now > 0) & (now < self.terms.top[moving]))]

    def combine(self) -> None:
        """Go where D is largest among all combinations of the last moves, cut off at the limits, if that gains."""
        A, B = (np.stack(parts) for parts in zip(*self.moves, strict=True))
        self.moves.clear()
        _, s, q, soft, top = self.terms
        slope, M = q - soft * self.a, A @ s
        G = B @ B.T + self.tau * np.outer(M, M) + (A * soft) @ A.T
        best = np.linalg.pinv(G, rcond=FLAT, hermitian=True) @ (A @ slope - B @ self.beta - M * self.b[0])
        if np.abs(best).max() > FAR:
            return
        wanted = self.a + best @ A
        new = np.clip(wanted, 0.0, top)
        cut = np.flatnonzero(new != wanted)
        pull = best @ B + self.X[self.terms.row[cut]].T @ (s * (new - wanted))[cut]
        move = new - self.a
        mass = float(s @ move)
        gain = move @ slope - pull @ self.beta - mass * self.b[0]
        gain -= 0.5 * (soft @ move**2 + pull @ pull + self.tau * mass**2)
        if gain > 0:
            self.a[:] = new
            self.beta += pull
            self.b += self.tau * mass


def climb(every: Climb, rng: np.random.Generator) -> None:
    """Once round all sides, then on with those that may still move, until more rounds need a look at the gap."""
    m = len(every.a)
    some = rng.permutation(every.round(_in_runs(m, rng)))
    part, visits = every.pick(some), (VISITS - 1) * m
    moving = np.arange(len(some))
    for rounds in range(1, ROUNDS):
        if not len(moving) or visits <= 0:
            break
        visits -= len(moving)
        moving = part.round(moving)
        if rounds % TOGETHER == 0:
            part.combine()
    every.a[some] = part.a


def _in_runs(m: int, rng: np.random.Generator) -> Array:
    """The numbers below m, runs of neighbours in random order."""
    order = (RUN * rng.permutation(-(-m // RUN))[:, None] + np.arange(RUN)).ravel()
    return order[order < m]


def _unsigned(index: Array) -> Array:
    """The same numbers as a type that cannot be negative: a compiled loop then need not ask whether they are."""
    return index.view(f"u{index.dtype.itemsize}")
