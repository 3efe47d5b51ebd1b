"""Batched sequential minimal optimisation for the dual of every machine with one box and one balance constraint.

    min over α of  ½ |f|² + p·α,   f = Σᵥ yᵥ αᵥ K(·, x_row(v)),   0 <= α <= C,   y·α = 0

Each round takes the variables that violate optimality most, solves for them alone, and updates f at every row once.
A point's duality gap costs a sort: the primal is ½ |f|² + Σ C max(0, -p - y (f + b)) at the best b.
References: Fan, Chen & Lin, Working set selection using second order information for training support vector machines
(2005); Wen et al., ThunderSVM: a fast SVM library on GPUs and CPUs (2018).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from certifit.core import Solution
from certifit.core.loop import Watcher
from certifit.optimise.working_sets import KernelRows, Limits, Rounds
from certifit.rows import Array
from certifit.svm.kernel.smo_loops import solve_pairs

STEPS = 5000  # most pairs in a round
LOCAL = 0.1  # a round ends when its own violation is this share of the one it began with,
WHOLE = 1e-3  # or this share, where all variables are one working set
RIDGE, TINY = 1e-13, 1e-300  # of the sum of a square's diagonal, to make it positive definite


@dataclass(frozen=True)
class Dual:
    row: Array  # (m,) the row each variable stands for
    y: Array  # (m,) +1.0 or -1.0
    p: Array  # (m,)
    C: Array  # (m,) > 0


class Point(NamedTuple):
    alpha: Array  # (m,)
    f: Array  # (n,)


class Measured(NamedTuple):
    t: Array  # (m,) -y p - f: the intercept that would put the variable's row on its margin
    intercept: float  # the best one
    primal: float
    dual: float


def solve(dual: Dual, gram: KernelRows, limits: Limits, watcher: Watcher) -> Solution[Point]:
    """From α = 0 to a relative duality gap."""
    start = Point(np.zeros(len(dual.y)), np.zeros(gram.n))
    return Batches(dual, gram, limits).run(partial(measure, dual), start, watcher)


def measure(dual: Dual, at: Point) -> Measured:
    """Primal and dual objective at a point."""
    f = at.f[dual.row]
    t = -dual.y * dual.p - f
    intercept = best_intercept(t, dual.y, dual.C)
    square = float((dual.y * at.alpha) @ f)
    loss = float(dual.C @ np.maximum(dual.y * (t - intercept), 0.0))
    return Measured(t, intercept, 0.5 * square + loss, -float(dual.p @ at.alpha) - 0.5 * square)


def best_intercept(t: Array, y: Array, C: Array) -> float:
    """The b that makes Σ C max(0, y (t - b)) least; where an interval does, its middle.

    >>> best_intercept(np.array([1.0, -1.0]), np.array([1.0, -1.0]), np.ones(2))
    0.0
    """
    order = np.argsort(t)
    slope = np.cumsum(C[order])  # less that at -inf
    flat = float(C[y > 0].sum())
    k = min(int(np.searchsorted(slope, flat * (1 - 1e-12))), len(t) - 1)
    is_flat = k + 1 < len(t) and abs(slope[k] - flat) <= 1e-12 * flat
    return float((t[order[k]] + t[order[k + 1]]) / 2 if is_flat else t[order[k]])


class Batches(Rounds[Point, Measured]):
    """Working sets, one after another."""

    largest = 1024

    def __init__(self, dual: Dual, gram: KernelRows, limits: Limits) -> None:
        super().__init__(gram, limits, len(dual.y))
        self.dual = dual
        self.square: Array | None = None  # kernel values within the working set

    def next(self, at: Point, found: Measured) -> Point:
        t, y, C, row = found.t, self.dual.y, self.dual.C, self.dual.row
        positive = y > 0
        may_rise = np.where(positive, at.alpha < C, at.alpha > 0)
        may_fall = np.where(positive, at.alpha > 0, at.alpha < C)
        rise, fall = np.where(may_rise, t, -np.inf), np.where(may_fall, t, np.inf)
        violation = rise.max() - fall.min()
        chosen = self._choose(rise, fall)
        if not self.whole or self.square is None:
            self.square = self.gram.square(row[chosen])
        part = at.alpha[chosen]
        eps = (WHOLE if self.whole else LOCAL) * violation
        near = t[chosen]
        if solve_pairs(self.square, y[chosen], near, part, C[chosen], eps, STEPS) == STEPS:
            descend(self.square, y[chosen], near, part, C[chosen])
        change = y[chosen] * (part - at.alpha[chosen])
        alpha = at.alpha.copy()
        alpha[chosen] = part
        return Point(alpha, self.gram.add(at.f, row[chosen], change))

    def _choose(self, rise: Array, fall: Array) -> Array:
        """The variables that came in last, the worst violators, and more of these whose kernel rows are at hand."""
        if self.whole:
            return np.arange(self.size)
        rise, fall = np.where(rise > fall.min(), rise, -np.inf), np.where(fall < rise.max(), -fall, -np.inf)
        old = self.latest[: self.size // 2]
        taken = np.zeros(len(rise), bool)
        taken[old] = True
        new = [np.empty(0, np.int64)]
        fresh = self.size // 8  # from either end
        for count, among in (
            (fresh, True),
            ((self.size - len(old)) // 2 - fresh, self.gram.at_hand()[self.dual.row]),
        ):
            for order in (rise, fall):
                new.append(_largest(np.where(among & ~taken, order, -np.inf), count))
                taken[new[-1]] = True
        self.latest = np.sort(np.concatenate(new))
        return np.sort(np.concatenate([old, self.latest]))


def descend(K: Array, y: Array, t: Array, alpha: Array, C: Array) -> None:
    """Move those of alpha (q,) that are inside their box, in place, towards their minimum with the others held.

    Pairs of badly scaled rows move by a hair's breadth; Newton steps do not mind. Each goes to the minimum or up to
    the first bound in its way, which holds that variable from then on. t (q,) follows, as in `solve_pairs`.
    """
    low, high = np.minimum(y * C, 0.0), np.maximum(y * C, 0.0)
    z = y * alpha
    free = np.flatnonzero((z > low) & (z < high))
    while len(free) > 1:
        A = K[np.ix_(free, free)]
        A[np.diag_indices(len(free))] += RIDGE * (np.trace(A) + TINY)  # where nothing curves, the box is the limit
        try:
            both = cho_solve(cho_factor(A), np.column_stack([t[free], np.ones(len(free))]))
        except LinAlgError:  # kernel values in float32, or of a function that is no kernel
            break
        move = both[:, 0] - both[:, 1] * (both[:, 0].sum() / both[:, 1].sum())  # of sum 0
        move[-1] -= move.sum()
        gain, curve = float(t[free] @ move), float(move @ K[np.ix_(free, free)] @ move)
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(move > 0, (high[free] - z[free]) / move, (low[free] - z[free]) / move)
        first = int(np.nanargmin(room))
        step = min(gain / curve if curve > 0 else np.inf, float(room[first]))
        if not gain > 0 or not np.isfinite(step):
            break
        z[free] = np.clip(z[free] + step * move, low[free], high[free])
        t -= K[:, free] @ (step * move)
        if step < room[first]:
            break
        z[free[first]] = high[free[first]] if move[first] > 0 else low[free[first]]
        free = free[(z[free] > low[free]) & (z[free] < high[free])]
    alpha[:] = y * z


def _largest(values: Array, count: int) -> Array:
    """Where the largest so many are, among those above -inf."""
    found = np.argpartition(-values, count)[:count]
    return found[values[found] > -np.inf]
