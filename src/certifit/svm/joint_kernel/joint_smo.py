"""Working-set ascent for the dual of one kernel machine for all classes, with free biases.

    max over β of  margin Σᵢ β_iy - ½ Σ_c β_cᵀ K β_c,   low <= β <= high,   Σ_c β_ic = 0,   Σᵢ β_ic = 0

**Idea.** A row moves coefficients from one class to another, and no class may gain in total: a feasible move is a
cycle in the graph of classes, in which one row moves an amount from class a to b, the next from b to c, and the last
back to a. The biases at which the worst row violates optimality least follow from the cycle of largest mean (Karp
1978), and the rows of that cycle are then the worst. So the worst rows contain a move that gains, or the point is
optimal. Each round solves for these rows alone:

| step | function | what it does |
|---|---|---|
| 1 | `measure_gap`, `least_worst_biases` | biases, primal and dual objective of the present point |
| 2 | `JointSmoSolver._working_set` | rows that entered last, and those that violate optimality most |
| 3 | `joint_smo_loops.solve_rows` | row by row (Crammer & Singer 2001), biases as multipliers of the balance |
| 4 | `JointWorkingSet._newton` | a Newton step for the coefficients that are at no limit, once these have settled |
| 5 | `JointWorkingSet._restore_balance` | sums over rows and rows at their limits made exact |
| 6 | `JointWorkingSet.solve` | steps 3 to 5 again, more strictly, until the objective has risen |
| 7 | `KernelRows.add` | bring the scores of every row up to date |
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
from certifit.optimise.working_sets import KernelRows, RoundLimits, RoundTuning, WorkingSetSolver
from certifit.rows import Array
from certifit.svm.joint_kernel.joint_smo_loops import (
    CoefficientLimits,
    project_rows,
    restore_balance,
    solve_rows,
    violations,
    worst_pairs,
)


@dataclass(frozen=True)
class JointSmoTuning:
    """How large a working set is and how well it is solved before the next one is chosen."""

    working_set: int = 512  # most rows that are solved for at a time
    round_violation: float = 0.2  # a round ends when its violation is this share of the one it began with,
    whole_violation: float = 1e-3  # or this share, where all rows are one working set
    tries: int = 5  # tries with a tenth of the violation and twice the turns each, until something is gained
    turns: int = 2  # turns of the first try: each has
    sweeps: int = 10  # sweeps over the rows, then Newton steps,
    settled: float = 0.3  # if no more than this share of the free coefficients has changed since the last turn,
    newton_work: float = 1e8  # with this much work in all, counted as the cubes of how many coefficients are free,
    newton_size: int = 1500  # and no more free coefficients than this
    at_limit: float = 1e-14  # share of their size: coefficients this close to a limit are put at it,
    near_limit: float = 1e-9  # and this close they are not free
    idle_rounds: int = 3  # rounds over all rows that may gain nothing before rounding is all that is left


@dataclass(frozen=True)
class JointDual:
    """The dual problem above, of n rows and k classes.

    Either no lower limit is finite, or a row's own class has no limits.
    """

    y: Array  # (n,) class numbers
    C: Array  # (n,) > 0, weight of a row's loss
    limits: CoefficientLimits  # (n, k)
    margin: float
    loss: Callable[[Array], Array]  # losses (n,) of scores (n, k)


class JointDualPoint(NamedTuple):
    """Coefficients, and the scores that they make."""

    beta: Array  # (n, k)
    f: Array  # (n, k) K β
    b: Array  # (k,) biases to try


class JointGap(NamedTuple):
    """Primal and dual objective of a point."""

    G: Array  # (n, k) derivative of the dual, at the biases that make the worst row's violation least
    b: Array  # (k,) the biases with the smaller primal objective
    primal: float
    dual: float


def solve(
    dual: JointDual,
    gram: KernelRows,
    limits: RoundLimits,
    watcher: Watcher,
    tuning: JointSmoTuning,
    rounds: RoundTuning,
) -> Solution[JointDualPoint]:
    """Go from β = 0 to the relative duality gap that `limits` ask for."""
    zero = np.zeros(dual.limits.low.shape)
    solver = JointSmoSolver(dual, gram, limits, tuning, rounds)
    return solver.run(partial(measure_gap, dual), JointDualPoint(zero, zero, zero[0]), watcher)


def measure_gap(dual: JointDual, at: JointDualPoint) -> JointGap:
    """Primal and dual objective at a point."""
    missing = _derivative(dual, slice(None), at.f)
    b = least_worst_biases(worst_pairs(missing, at.beta, dual.limits))
    loss, other = (float(dual.C @ dual.loss(at.f + c)) for c in (b, at.b))
    better = other < loss * (1 - 1e-12)  # of equally good biases, those that do not depend on the way here
    square = float(np.einsum("ic,ic", at.beta, at.f))
    linear = dual.margin * float(at.beta[np.arange(len(dual.y)), dual.y].sum())
    return JointGap(
        missing - b,
        at.b if better else b,
        0.5 * square + (other if better else loss),
        linear - 0.5 * square,
    )


def _derivative(dual: JointDual, rows: slice | Array, f: Array) -> Array:
    """The derivative of the dual by the coefficients of some rows, given f (m, k) there."""
    out = -f
    out[np.arange(len(f)), dual.y[rows]] += dual.margin
    return out


def least_worst_biases(m: Array) -> Array:
    """The b (k,), with sum 0, for which the largest of m[c, e] - b[c] + b[e] is least; m (k, k) may have -inf.

    That least value is the largest mean of a cycle. Of many such b, the one half way between the largest and the
    smallest is returned.

    >>> least_worst_biases(np.array([[-np.inf, 3.0], [-1.0, -np.inf]]))
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


class JointSmoSolver(WorkingSetSolver[JointDualPoint, JointGap]):
    """Solves for one working set of rows after another."""

    def __init__(
        self, dual: JointDual, gram: KernelRows, limits: RoundLimits, tuning: JointSmoTuning, rounds: RoundTuning
    ) -> None:
        super().__init__(gram, limits, len(dual.y), tuning.working_set, rounds)
        self.dual, self.joint_tuning = dual, tuning
        self.violation_left = tuning.whole_violation if self.whole else tuning.round_violation

    @property
    def stalled(self) -> bool:
        return self.without_gain > self.joint_tuning.idle_rounds or super().stalled

    def next_point(self, at: JointDualPoint, found: JointGap) -> JointDualPoint:
        dual = self.dual
        violation, pair = violations(found.G, at.beta, dual.limits)
        if not violation.any():
            return at
        rows = self._working_set(violation, pair)
        part = JointWorkingSet(dual, rows, self.gram.square(rows), at.beta, found.G, self.joint_tuning)
        gained = part.solve(self.violation_left * float(violation.max()))
        self.without_gain += self.whole and not gained
        change = part.beta - at.beta[rows]
        beta = at.beta.copy()
        beta[rows] = part.beta
        f = self.gram.add(at.f, rows, change)
        b = (_derivative(dual, rows, f[rows]).T - part.G).mean(axis=1)
        return JointDualPoint(beta, f, b - b.mean())

    def _working_set(self, violation: Array, pair: Array) -> Array:
        """Rows that entered last, the worst, and more of these whose kernel rows are at hand."""
        if self.whole:
            return np.arange(self.size)
        old = self.latest[: self.size // 2]
        order = pairs_in_turn(violation, pair)
        order = order[~np.isin(order, old)]
        worst, rest = np.split(order, [self.size // 4])
        more = rest[self.gram.at_hand()[rest]][: self.size - len(old) - len(worst)]
        self.latest = np.sort(np.concatenate([worst, more]))
        return np.sort(np.concatenate([old, self.latest]))


def pairs_in_turn(violation: Array, pair: Array) -> Array:
    """Rows that violate optimality, the worst first; of those at least half as bad, one of every pair in turn.

    Else the first rows might all ask for the same move, and none of them be there to balance it. violation (n,), and
    the pair of classes (n,) by which each row violates optimality.

    >>> pairs_in_turn(np.array([1.0, 0.9, 0.8, 0.7, 0.0, 0.3]), np.array([1, 1, 1, 2, 2, 2]))
    array([0, 3, 1, 2, 5])
    """
    order = np.lexsort((-violation, pair))
    first = np.searchsorted(pair[order], pair[order])
    turn = np.empty(len(order))
    turn[order] = np.arange(len(order)) - first
    turn[violation <= violation.max() / 2] = np.inf
    order = np.lexsort((-violation, turn))
    return order[violation[order] > 0]


class JointWorkingSet:
    """The problem of q rows, all others held where they are.

    Changes that are in balance do not see a kernel's constant part: it is taken out of K, and `tau` put in its place,
    the strength at which the biases follow what is out of balance.
    """

    def __init__(self, dual: JointDual, rows: Array, K: Array, beta: Array, G: Array, tuning: JointSmoTuning) -> None:
        """K (q, q) are kernel values, changed in place; beta and G (n, k) are those of all rows."""
        self.y, self.C = dual.y[rows], dual.C[rows, None]
        self.limits = CoefficientLimits(dual.limits.low[rows], dual.limits.high[rows])
        self.tuning = tuning
        self.beta = beta[rows]  # (q, k)
        self.r = beta.sum(axis=0)  # (k,) what is out of balance, at first by rounding only
        self.G = np.ascontiguousarray(G[rows].T)  # (k, q)
        mean = K.mean(axis=0)
        K += mean.mean() - mean - mean[:, None]
        self.tau = float(np.trace(K)) / len(K)
        if not self.tau > 0:  # rows that are all the same
            self.tau = 1.0 / float(self.C.max())
        self.K = K + self.tau  # (q, q)

    def solve(self, eps: float) -> bool:
        """Solve until no row violates optimality by more than eps, or less if that gains nothing; say if it did."""
        before, G = self.beta.copy(), self.G.copy()
        for more in range(self.tuning.tries):
            self._take_turns(eps / 10**more, self.tuning.turns * 2**more)
            self._restore_balance()
            change = (self.beta - before).T
            gains = change * (G - G.mean(axis=0) - change @ self.K / 2)  # rows sum to 0, but for rounding
            rounding = 1e-14 * float(np.abs(gains).sum())
            if gains.sum() > rounding:
                return True
        if gains.sum() < -rounding:
            self.beta, self.G = before, G
        return False

    def _take_turns(self, eps: float, turns: int) -> None:
        """Sweep over the rows, then take Newton steps, up to `turns` times."""
        last, tuning = np.zeros(self.beta.shape, bool), self.tuning
        for _ in range(turns):
            sweeps = self.tau, eps, tuning.sweeps
            if solve_rows(self.K, self.G, self.beta, self.limits, self.r, *sweeps) <= eps:
                return
            free = self._free()
            if (free != last).sum() <= tuning.settled * free.sum():
                work = 0.0
                while work < tuning.newton_work and self._newton(free):
                    work += float(free.sum()) ** 3
                    free = self._free()
            last = free

    def _free(self) -> Array:
        """(q, k) coefficients that can move either way, in rows that have two such."""
        near, (low, high) = self.tuning.near_limit * self._size(), self.limits
        free = (self.beta > low + near) & (self.beta < high - near)
        return free & (free.sum(axis=1) > 1)[:, None]

    def _size(self) -> Array:
        """(q, 1) how large coefficients are, which may be far below C."""
        return np.minimum(self.C, np.abs(self.beta).max())

    def _newton(self, free: Array) -> bool:
        """To the best point if free coefficients had no limits, or what limits leave of the way; whether they cut it.

        In every row one free class gives what the others take: A (k, p) says which.
        """
        k = self.beta.shape[1]
        own = np.arange(len(self.y)), self.y
        giver = np.where(free[own], self.y, free.argmax(axis=1))
        i, c = np.nonzero(free & (np.arange(k) != giver[:, None]))
        if not 0 < len(i) <= self.tuning.newton_size:
            return False
        A = 1.0 * (c == np.arange(k)[:, None]) - (giver[i] == np.arange(k)[:, None])
        H = self.K[np.ix_(i, i)] * (A.T @ A)
        H[np.diag_indices_from(H)] *= 1 + 1e-12
        try:
            factor = cho_factor(H, overwrite_a=True)
        except LinAlgError:
            return False
        found, ways = cho_solve(factor, self.G[c, i] - self.G[giver[i], i]), cho_solve(factor, A.T)
        bias = np.linalg.lstsq(A @ ways, A @ found + self.r, rcond=1e-10)[
            0
        ]  # chosen so that the move restores balance
        move = np.zeros_like(self.beta)
        move[i, c] = found - ways @ bias
        move[np.arange(len(move)), giver] -= move.sum(axis=1)
        return self._follow(move, bias)

    def _follow(self, move: Array, bias: Array) -> bool:
        """Go along `move` up to the first limit, or to the feasible point nearest its end; say if a limit was met."""
        limit = np.where(move > 0, self.limits.high, self.limits.low)
        room = np.divide(limit - self.beta, move, out=np.full(move.shape, np.inf), where=move != 0)
        t = min(1.0, float(room.min()))
        tried = [np.where(room <= t, limit - self.beta, t * move)]
        if t < 1:
            tried.append(project_rows(self.beta + move, self.limits) - self.beta)
        gains = [float((change.T * (self.G - change.T @ self.K / 2)).sum()) for change in tried]
        best = int(np.argmax(gains))
        if t < 1 and not gains[best] > 0:
            return False
        self._move(tried[best])  # a whole step is taken even if its gain is lost in rounding
        if t == 1:  # these biases belong to the end of the way
            self.G -= bias[:, None]
        return t < 1

    def _move(self, change: Array) -> None:
        self.beta += change
        self.r += change.sum(axis=0)
        self.G -= change.T @ self.K

    def _restore_balance(self) -> None:
        """Make the sums of each class 0, and put coefficients at a limit that miss it by rounding."""
        near, (low, high) = self.tuning.at_limit * self._size(), self.limits
        after = self.beta.copy()
        restore_balance(self.G, after, self.limits, self.r.copy(), 1e-16 * float(self._size().sum()))
        own = np.arange(len(self.y)), self.y
        after = np.where(after < low + near, low, np.where(after > high - near, high, after))
        after[own] -= after.sum(axis=1)
        after[own] = np.where(after[own] > high[own] - near[:, 0], high[own], after[own])
        self._move(after - self.beta)
        self.beta = after
