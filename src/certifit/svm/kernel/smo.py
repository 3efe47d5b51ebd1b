"""Sequential minimal optimisation, a working set at a time, for duals with a box and one balance constraint.

    min over α of  ½ |f|² + p·α,   f = Σᵥ yᵥ αᵥ k(·, x_row(v)),   0 <= α <= C,   y·α = 0

SVC has one variable v for each row and p = -1; SVR has two for each row. A round of `SmoSolver`:

| step | function | what it does |
|---|---|---|
| 1 | `measure_gap` | best intercept, primal and dual objective of the present point |
| 2 | `SmoSolver._working_set` | variables that entered last, and those that violate optimality most |
| 3 | `smo_loops.solve_pairs` | solve for these alone, two variables at a time |
| 4 | `descend_by_newton` | only if pairs do not get there: Newton steps for the variables strictly inside their box |
| 5 | `KernelRows.add` | bring f up to date at every row |

A point's duality gap costs a sort: the primal objective is ½ |f|² + Σ C max(0, -p - y (f + b)) at the best b.
References: Fan, Chen & Lin, Working set selection using second order information for training support vector machines
(2005); Wen et al., ThunderSVM: a fast SVM library on GPUs and CPUs (2018).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg.lapack import dpotrf, dpotrs

from certifit.checkers.plain.best_intercepts import middle_of_best
from certifit.core import Solution
from certifit.core.loop import Watcher
from certifit.optimise.working_sets import KernelRows, RoundLimits, RoundTuning, WorkingSetSolver
from certifit.rows import Array
from certifit.svm.kernel.smo_loops import solve_pairs


@dataclass(frozen=True)
class SmoTuning:
    """How large a working set is and how well it is solved before the next one is chosen."""

    working_set: int = 1024  # most variables that are solved for at a time
    pair_steps: int = 5000  # most pairs in a round
    whole_steps: int = 200  # the same, where all variables are one working set: Newton's method then goes on;
    whole_rounds: int = 10  # after so many rounds pairs have to do what it cannot, at badly scaled rows
    round_violation: float = 0.1  # a round ends when its violation is this share of the one it began with,
    whole_violation: float = 1e-3  # or this share, where all variables are one working set


@dataclass(frozen=True)
class SvmDual:
    """The dual problem above; it has m variables, which belong to n rows."""

    row: Array  # (m,) the row that each variable belongs to
    y: Array  # (m,) +1.0 or -1.0
    p: Array  # (m,)
    C: Array  # (m,) > 0


class SvmDualPoint(NamedTuple):
    """Values of the dual variables, and the function that they make."""

    alpha: Array  # (m,)
    f: Array  # (n,) f at every row


class SvmGap(NamedTuple):
    """Primal and dual objective of a point."""

    t: Array  # (m,) -y p - f: the intercept that would put the variable's row on its margin
    intercept: float  # the one with the smallest primal objective
    primal: float
    dual: float


def solve(
    dual: SvmDual,
    start: SvmDualPoint | None,
    gram: KernelRows,
    limits: RoundLimits,
    watcher: Watcher,
    tunings: tuple[SmoTuning, RoundTuning],
) -> Solution[SvmDualPoint]:
    """Go from `start`, or from α = 0, to the relative duality gap that `limits` ask for."""
    start = SvmDualPoint(np.zeros(len(dual.y)), np.zeros(gram.n)) if start is None else start
    return SmoSolver(dual, gram, limits, *tunings).run(partial(measure_gap, dual), start, watcher)


def measure_gap(dual: SvmDual, at: SvmDualPoint) -> SvmGap:
    """Primal and dual objective at a point."""
    f = at.f[dual.row]
    t = -dual.y * dual.p - f
    intercept = middle_of_best(t, dual.y, dual.C)
    square = float((dual.y * at.alpha) @ f)
    loss = float(dual.C @ np.maximum(dual.y * (t - intercept), 0.0))
    return SvmGap(t, intercept, 0.5 * square + loss, -float(dual.p @ at.alpha) - 0.5 * square)


class SmoSolver(WorkingSetSolver[SvmDualPoint, SvmGap]):
    """Solves for one working set of variables after another."""

    def __init__(
        self, dual: SvmDual, gram: KernelRows, limits: RoundLimits, tuning: SmoTuning, rounds: RoundTuning
    ) -> None:
        super().__init__(gram, limits, len(dual.y), tuning.working_set, rounds)
        self.dual = dual
        self.smo_tuning = tuning
        self.violation_left = tuning.whole_violation if self.whole else tuning.round_violation
        self.square: Array | None = None  # (q, q) kernel values within the working set

    def next_point(self, at: SvmDualPoint, found: SvmGap) -> SvmDualPoint:
        t, y, C, row = found.t, self.dual.y, self.dual.C, self.dual.row
        positive = y > 0
        may_rise = np.where(positive, at.alpha < C, at.alpha > 0)
        may_fall = np.where(positive, at.alpha > 0, at.alpha < C)
        rise, fall = np.where(may_rise, t, -np.inf), np.where(may_fall, t, np.inf)
        eps = self.violation_left * (rise.max() - fall.min())
        chosen = self._working_set(rise, fall)
        if not self.whole or self.square is None:
            self.square = self.gram.square(row[chosen])
        part, near = at.alpha[chosen], t[chosen]
        tuning = self.smo_tuning
        most = tuning.whole_steps if self.whole and self.measured <= tuning.whole_rounds else tuning.pair_steps
        steps = solve_pairs(self.square, y[chosen], near, part, C[chosen], eps, most)
        if steps == most or self.whole:  # of few rows, Newton's method takes the place of many rounds
            descend_by_newton(self.square, y[chosen], near, part, C[chosen], np.ones((len(chosen), 1)))
        change = y[chosen] * (part - at.alpha[chosen])
        alpha = at.alpha.copy()
        alpha[chosen] = part
        return SvmDualPoint(alpha, self.gram.add(at.f, row[chosen], change))

    def _working_set(self, rise: Array, fall: Array) -> Array:
        """The variables that entered last, the worst violators, and more of these whose kernel rows are at hand.

        rise and fall (m,) are t where y α may rise or fall, else -inf and inf: optimality is violated by a variable
        that may rise with a larger t than one that may fall.
        """
        if self.whole:
            return np.arange(self.size)
        rise, fall = np.where(rise > fall.min(), rise, -np.inf), np.where(fall < rise.max(), -fall, -np.inf)
        old = self.latest[: self.size // 2]
        taken = np.zeros(len(rise), bool)
        taken[old] = True
        new = [np.empty(0, np.int64)]
        fresh = self.size // 8  # of those that may rise, and as many of those that may fall
        for count, among in (
            (fresh, True),
            ((self.size - len(old)) // 2 - fresh, self.gram.at_hand()[self.dual.row]),
        ):
            for order in (rise, fall):
                new.append(_places_of_largest(np.where(among & ~taken, order, -np.inf), count))
                taken[new[-1]] = True
        self.latest = np.sort(np.concatenate(new))
        return np.sort(np.concatenate([old, self.latest]))


def descend_by_newton(K: Array, y: Array, t: Array, alpha: Array, C: Array, sums: Array) -> None:
    """Move the entries of alpha (q,) strictly inside their box, in place, towards their minimum with the others held.

    Pairs of badly scaled rows move by very little; a Newton step does not depend on the scale. Each step goes to the
    minimum, or up to the first bound in its way, which holds that variable from then on. t (q,) follows, as in
    `solve_pairs`. A column of `sums` (q, constraints) has 1 for the variables whose sum of y alpha stays, else 0.
    """
    low, high = np.minimum(y * C, 0.0), np.maximum(y * C, 0.0)
    z = y * alpha
    free = np.flatnonzero((z > low) & (z < high))
    while len(free) > 1:
        among = K[np.ix_(free, free)]
        # a ridge far below rounding of the diagonal: where nothing curves, the box is the limit
        ridged = among.copy()
        ridged.flat[:: len(free) + 1] += 1e-13 * (among.trace() + 1e-300)
        B = sums[free]
        B = B[:, B.any(axis=0)]
        with np.errstate(all="ignore"):  # rows next to no size leave no numbers, which end the descent
            # LAPACK itself: for few rows, what scipy.linalg does around it takes longer.
            root, failed = dpotrf(ridged, clean=0)
            if failed:  # kernel values in float32, or of a function that is no kernel
                break
            both = dpotrs(root, np.column_stack([t[free], B]))[0]
            try:
                move = both[:, 0] - both[:, 1:] @ _solve_few(B.T @ both[:, 1:], B.T @ both[:, 0])
            except LinAlgError:
                break
            for column in B.T:  # what rounding leaves of the sums
                move[np.flatnonzero(column)[-1]] -= column @ move
            gain, curve = float(t[free] @ move), float(move @ among @ move)
            if not gain > 0:
                break
            room = np.where(move > 0, (high[free] - z[free]) / move, (low[free] - z[free]) / move)
        first = int(np.nanargmin(room))
        step = min(gain / curve if curve > 0 else np.inf, float(room[first]))
        if not np.isfinite(step):
            break
        z[free] = np.clip(z[free] + step * move, low[free], high[free])
        t -= K[:, free] @ (step * move)
        if step < room[first]:
            break
        z[free[first]] = high[free[first]] if move[first] > 0 else low[free[first]]
        free = free[(z[free] > low[free]) & (z[free] < high[free])]
    alpha[:] = y * z


def _solve_few(A: Array, b: Array) -> Array:
    """Return A⁻¹ b, mostly of one equation."""
    return b / A[0] if len(b) == 1 else np.linalg.solve(A, b)


def _places_of_largest(values: Array, count: int) -> Array:
    """Where the `count` largest values are, leaving out those of -inf."""
    found = np.argpartition(-values, count)[:count]
    return found[values[found] > -np.inf]
