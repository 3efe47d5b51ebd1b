"""Batched ascent for the dual of one kernel machine for all classes, with free biases.

    max over β of  margin Σᵢ β_iy - ½ Σ_c β_cᵀ K β_c,   low <= β <= high,   Σ_c β_ic = 0,   Σᵢ β_ic = 0

A row moves coefficients from one class to another, and no class may gain in total: a feasible move is a cycle of
rows, each of which passes on from a class to the next. The biases at which the worst row misses its optimality
condition least follow from the cycle of largest mean (Karp 1978), and the rows of that cycle are then the worst: so
the worst rows contain a move that gains, or the point is optimal. Each round solves for these rows alone, row by row
(Crammer & Singer 2001) with the biases as multipliers of the balance, then by Newton's method for the coefficients
that are at no limit, and updates the scores of every row once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from certifit.core import Solution
from certifit.core.loop import Watcher
from certifit.optimise.working_sets import KernelRows, Limits, Rounds
from certifit.rows import Array
from certifit.svm.joint_kernel.joint_smo_loops import (
    project_rows,
    restore_balance,
    solve_rows,
    violations,
    worst_pairs,
)

LOCAL = 0.2  # a round ends when its own violation is this share of the one it began with,
WHOLE = 1e-3  # or this share, where all rows are one batch
TRIES = 5  # for less and less of it, and with more and more turns, until something is gained
TURNS, SWEEPS = 2, 10  # of a round: sweeps over its rows, and after each turn a step for its free coefficients,
SETTLED = 0.3  # which is worth while once no more than this share of them has changed,
WORK = 1e8  # in all, counted as the cubes of how many there are,
MOST = 1500  # and there are no more of them than this
LIMIT = 1e-14  # of their size: coefficients this close to a limit are at it,
NEAR = 1e-9  # and this close they are not free
STUCK = 3


@dataclass(frozen=True)
class Dual:
    y: Array  # (n,) class numbers
    u: Array  # (n,) > 0, price of a row's loss
    low: Array  # (n, k)
    high: Array  # (n, k); either no `low` is finite, or a row's own class has no limits
    margin: float
    loss: Callable[[Array], Array]  # of scores (n, k): (n,)


class Point(NamedTuple):
    beta: Array  # (n, k)
    f: Array  # (n, k) K β
    b: Array  # (k,) biases to try


class Measured(NamedTuple):
    t: Array  # (n, k) what each score still misses, at the biases that make the worst row's violation least
    b: Array  # (k,) the better biases
    primal: float
    dual: float


def solve(dual: Dual, gram: KernelRows, limits: Limits, watcher: Watcher) -> Solution[Point]:
    """From β = 0 to a relative duality gap."""
    zero = np.zeros(dual.low.shape)
    return Batches(dual, gram, limits).run(partial(measure, dual), Point(zero, zero, zero[0]), watcher)


def measure(dual: Dual, at: Point) -> Measured:
    """Primal and dual objective at a point."""
    missing = _missing(dual, slice(None), at.f)
    b = least_worst(worst_pairs(missing, at.beta, dual.low, dual.high))
    loss, other = (float(dual.u @ dual.loss(at.f + c)) for c in (b, at.b))
    better = other < loss * (1 - 1e-12)  # of equals those that do not depend on the way here
    square = float(np.einsum("ic,ic", at.beta, at.f))
    linear = dual.margin * float(at.beta[np.arange(len(dual.y)), dual.y].sum())
    return Measured(
        missing - b,
        at.b if better else b,
        0.5 * square + (other if better else loss),
        linear - 0.5 * square,
    )


def _missing(dual: Dual, rows: slice | Array, f: Array) -> Array:
    """The derivative of the dual by the coefficients of some rows, given f (m, k) there."""
    out = -f
    out[np.arange(len(f)), dual.y[rows]] += dual.margin
    return out


def least_worst(m: Array) -> Array:
    """The b (k,), with sum 0, for which the largest of m[c, e] - b[c] + b[e] is least; m (k, k) may have -inf.

    That least is the largest mean of a cycle. Where many b do, half way between the largest and the smallest.

    >>> least_worst(np.array([[-np.inf, 3.0], [-1.0, -np.inf]]))
    array([ 1., -1.])
    """
    k = len(m)
    walks = np.zeros((k + 1, k))  # the heaviest walk of so many arcs from c
    for i in range(k):
        walks[i + 1] = (m + walks[i]).max(axis=1)
    with np.errstate(invalid="ignore"):  # -inf less -inf, where no walk is that long
        means = (walks[k] - walks[:k]) / np.arange(k, 0, -1)[:, None]
    worst = np.where(np.isnan(means), np.inf, means).min(axis=0).max()
    arcs = m - (worst if np.isfinite(worst) else 0.0)  # no cycle is heavier than 0 now, if there is any
    largest, smallest = np.zeros(k), np.zeros(k)
    for _ in range(k):
        smallest = np.maximum(smallest, (arcs + smallest).max(axis=1))
        largest = np.minimum(largest, (largest[:, None] - arcs).min(axis=0))
    return (smallest - smallest.mean() + largest - largest.mean()) / 2


class Batches(Rounds[Point, Measured]):
    """Working sets of rows, one after another."""

    largest = 512
    stuck = 0  # rounds over all rows that gained nothing: rounding is all that is left

    def __init__(self, dual: Dual, gram: KernelRows, limits: Limits) -> None:
        super().__init__(gram, limits, len(dual.y))
        self.dual = dual

    @property
    def tired(self) -> bool:
        return self.stuck > STUCK or super().tired

    def next(self, at: Point, found: Measured) -> Point:
        dual, t = self.dual, found.t
        missed, pair = violations(t, at.beta, dual.low, dual.high)
        if not missed.any():
            return at
        rows = self._rows(missed, pair)
        batch = Batch(dual, rows, self.gram.square(rows), at.beta, t)
        gained = batch.solve((WHOLE if self.whole else LOCAL) * float(missed.max()))
        self.stuck += self.whole and not gained
        change = batch.beta - at.beta[rows]
        beta = at.beta.copy()
        beta[rows] = batch.beta
        f = self.gram.add(at.f, rows, change)
        b = (_missing(dual, rows, f[rows]).T - batch.G).mean(axis=1)
        return Point(beta, f, b - b.mean())

    def _rows(self, missed: Array, pair: Array) -> Array:
        """Rows that came in last, the worst, and more of these whose kernel rows are at hand."""
        if self.whole:
            return np.arange(self.size)
        old = self.latest[: self.size // 2]
        order = by_turns(missed, pair)
        order = order[~np.isin(order, old)]
        worst, rest = np.split(order, [self.size // 4])
        more = rest[self.gram.at_hand()[rest]][: self.size - len(old) - len(worst)]
        self.latest = np.sort(np.concatenate([worst, more]))
        return np.sort(np.concatenate([old, self.latest]))


def by_turns(missed: Array, pair: Array) -> Array:
    """Rows that miss something, the worst first; where many are as bad, one of every pair of classes in turn.

    Else the first rows might all ask for the same move, and none of them be there to balance it.

    >>> by_turns(np.array([1.0, 0.9, 0.8, 0.7, 0.0, 0.3]), np.array([1, 1, 1, 2, 2, 2]))
    array([0, 3, 1, 2, 5])
    """
    order = np.lexsort((-missed, pair))
    first = np.searchsorted(pair[order], pair[order])
    turn = np.empty(len(order))
    turn[order] = np.arange(len(order)) - first
    turn[missed <= missed.max() / 2] = np.inf
    order = np.lexsort((-missed, turn))
    return order[missed[order] > 0]


class Batch:
    """The problem of some rows, all others held where they are.

    Changes that are in balance do not see a kernel's constant part: it is taken out, and `tau` put in its place, the
    strength at which the biases follow what is out of balance.
    """

    def __init__(self, dual: Dual, rows: Array, K: Array, beta: Array, t: Array) -> None:
        self.y, self.u, self.low, self.high = dual.y[rows], dual.u[rows, None], dual.low[rows], dual.high[rows]
        self.beta = beta[rows]  # (q, k)
        self.r = beta.sum(axis=0)  # (k,) what is out of balance, at first by rounding only
        self.G = np.ascontiguousarray(t[rows].T)  # (k, q)
        mean = K.mean(axis=0)
        K += mean.mean() - mean - mean[:, None]
        self.tau = float(np.trace(K)) / len(K)
        if not self.tau > 0:  # rows that are all the same
            self.tau = 1.0 / float(self.u.max())
        self.K = K + self.tau  # (q, q)

    def solve(self, eps: float) -> bool:
        """Until no row violates optimality by more than eps, or less if it takes that to gain; whether it gained."""
        before, G = self.beta.copy(), self.G.copy()
        for more in range(TRIES):
            self._turns(eps / 10**more, TURNS * 2**more)
            self._restore()
            change = (self.beta - before).T
            gains = change * (G - G.mean(axis=0) - change @ self.K / 2)  # rows sum to 0, but for rounding
            rounding = 1e-14 * float(np.abs(gains).sum())
            if gains.sum() > rounding:
                return True
        if gains.sum() < -rounding:
            self.beta, self.G = before, G
        return False

    def _turns(self, eps: float, turns: int) -> None:
        last = np.zeros(self.beta.shape, bool)
        for _ in range(turns):
            limits = self.low, self.high
            if solve_rows(self.K, self.G, self.beta, *limits, self.r, self.tau, eps, SWEEPS) <= eps:
                return
            free = self._free()
            if (free != last).sum() <= SETTLED * free.sum():
                work = 0.0
                while work < WORK and self._newton(free):
                    work += float(free.sum()) ** 3
                    free = self._free()
            last = free

    def _free(self) -> Array:
        """(q, k) coefficients that can move either way, in rows that have two such."""
        near = NEAR * self._size()
        free = (self.beta > self.low + near) & (self.beta < self.high - near)
        return free & (free.sum(axis=1) > 1)[:, None]

    def _size(self) -> Array:
        """(q, 1) how large coefficients are, which may be nowhere near u."""
        return np.minimum(self.u, np.abs(self.beta).max())

    def _newton(self, free: Array) -> bool:
        """To the best point if free coefficients had no limits, or what limits leave of the way; whether they cut it.

        In every row one free class gives what the others take: A (k, p) says which.
        """
        k = self.beta.shape[1]
        own = np.arange(len(self.y)), self.y
        giver = np.where(free[own], self.y, free.argmax(axis=1))
        i, c = np.nonzero(free & (np.arange(k) != giver[:, None]))
        if not 0 < len(i) <= MOST:
            return False
        A = 1.0 * (c == np.arange(k)[:, None]) - (giver[i] == np.arange(k)[:, None])
        H = self.K[np.ix_(i, i)] * (A.T @ A)
        H[np.diag_indices_from(H)] *= 1 + 1e-12
        try:
            factor = cho_factor(H, overwrite_a=True)
        except LinAlgError:
            return False
        found, ways = cho_solve(factor, self.G[c, i] - self.G[giver[i], i]), cho_solve(factor, A.T)
        bias = np.linalg.lstsq(A @ ways, A @ found + self.r, rcond=1e-10)[0]  # such that balance comes out
        move = np.zeros_like(self.beta)
        move[i, c] = found - ways @ bias
        move[np.arange(len(move)), giver] -= move.sum(axis=1)
        return self._follow(move, bias)

    def _follow(self, move: Array, bias: Array) -> bool:
        """Go along `move` as far as limits allow, or to the feasible point nearest its end; whether any was met."""
        limit = np.where(move > 0, self.high, self.low)
        room = np.divide(limit - self.beta, move, out=np.full(move.shape, np.inf), where=move != 0)
        t = min(1.0, float(room.min()))
        tried = [np.where(room <= t, limit - self.beta, t * move)]
        if t < 1:
            tried.append(project_rows(self.beta + move, self.low, self.high) - self.beta)
        gains = [float((change.T * (self.G - change.T @ self.K / 2)).sum()) for change in tried]
        best = int(np.argmax(gains))
        if t < 1 and not gains[best] > 0:
            return False
        self._move(tried[best])  # a whole step is worth taking though its gain be lost in rounding
        if t == 1:  # these biases belong to the end of the way
            self.G -= bias[:, None]
        return t < 1

    def _move(self, change: Array) -> None:
        self.beta += change
        self.r += change.sum(axis=0)
        self.G -= change.T @ self.K

    def _restore(self) -> None:
        """Put coefficients in balance, and those that are at a limit but for rounding at it."""
        near = LIMIT * self._size()
        after = self.beta.copy()
        restore_balance(self.G, after, self.low, self.high, self.r.copy(), 1e-16 * float(self._size().sum()))
        own = np.arange(len(self.y)), self.y
        after = np.where(after < self.low + near, self.low, np.where(after > self.high - near, self.high, after))
        after[own] -= after.sum(axis=1)
        after[own] = np.where(after[own] > self.high[own] - near[:, 0], self.high[own], after[own])
        self._move(after - self.beta)
        self.beta = after
