"""Sequential minimal optimisation for machines whose setting is nu, a share of the rows, instead of C or epsilon.

    min over α of  ½ |f|² - Σᵥ yᵥ sᵥ αᵥ,   f = Σᵥ sᵥ αᵥ k(·, x_row(v)),   0 <= α <= C,   Σ α = A for either sign s

The two sums are what nu fixes. Classes have s = their sign and y = 0; numbers have two variables a row, s = ±1; one
class has s = +1 alone and y = 0. The primal problem has a threshold r for either sign:

    ½ |f|² + Σ over signs of [ - A r + Σᵥ Cᵥ max(0, r - sᵥ (f(x) - yᵥ)) ],

each of which is best at a quantile. The margin of two classes, or minus the tube of numbers, is the mean of the two;
the intercept is half their difference. Divided by its margin, a machine of nu is one of C = 1 / margin, and with its
tube one of epsilon: so it is certified (Schölkopf, Smola, Williamson & Bartlett, New support vector algorithms,
2000). Reference for the solver: Chang & Lin, Training nu-support vector classifiers: theory and algorithms (2001).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from certifit.checkers.plain.best_intercepts import middle_of_quantile
from certifit.core import Solution, Step
from certifit.core.loop import Watcher
from certifit.optimise.working_sets import KernelRows, RoundLimits, RoundTuning, WorkingSetSolver
from certifit.rows import Array
from certifit.svm.kernel.smo import SmoTuning, SvmDualPoint, descend_by_newton
from certifit.svm.nu.nu_smo_loops import solve_pairs_of_a_side


@dataclass(frozen=True)
class NuDual:
    """The dual problem above; it has m variables, which belong to n rows."""

    row: Array  # (m,) the row that each variable belongs to
    s: Array  # (m,) +1.0 or -1.0
    y: Array  # (m,) numbers to be met, or 0
    C: Array  # (m,) > 0
    total: float  # A: the sum of the α of either sign
    unit_margin: bool  # whether machines are divided by their margin: two classes
    lost: float = 0.0  # half the squared distance of two classes' points up to which it is rounding: no margin

    def start(self, K: KernelRows) -> SvmDualPoint:
        """The point at which every variable has the same share of its limit."""
        alpha = np.empty(len(self.s))
        for side in (1.0, -1.0):
            here = self.s == side
            alpha[here] = self.C[here] * (self.total / max(float(self.C[here].sum()), 1e-300))
        beta = np.bincount(self.row, self.s * alpha, K.n)
        rows = np.flatnonzero(beta)
        f = np.zeros(K.n)
        for first in range(0, len(rows), K.most):
            part = rows[first : first + K.most]
            f = K.add(f, part, beta[part])
        return SvmDualPoint(alpha, f)


class NuGap(NamedTuple):
    """Thresholds of a point, and its two objectives: what is minimised, and a bound below it."""

    t: Array  # (m,) y - f
    intercept: float
    margin: float  # half the sum of the thresholds; of one class, the threshold
    primal: float
    dual: float


def measure_gap(dual: NuDual, at: SvmDualPoint) -> NuGap:
    """Thresholds, primal and dual objective at a point."""
    f, s = at.f[dual.row], dual.s
    m, square = s * (f - dual.y), float((s * at.alpha) @ f)
    r, loss, both = [], 0.0, bool((s < 0).any())
    for side in (1.0, -1.0) if both else (1.0,):
        here = s == side
        r.append(middle_of_quantile(m[here], dual.C[here], dual.total))
        loss += float(dual.C[here] @ np.maximum(r[-1] - m[here], 0.0)) - dual.total * r[-1]
    margin = sum(r) / len(r)
    intercept = (r[1] - r[0]) / 2 if both else -r[0]
    primal, best = 0.5 * square + loss, float((s * dual.y) @ at.alpha) - 0.5 * square
    t = dual.y - f
    if both and not dual.unit_margin:
        return NuGap(t, intercept, margin, primal, best)
    # Of classes the dual is what is minimised: half the squared distance of two points, or of one from the origin.
    return NuGap(t, intercept, margin, -best, -primal)


def solve(
    dual: NuDual, gram: KernelRows, limits: RoundLimits, watcher: Watcher, tuning: SmoTuning, rounds: RoundTuning
) -> Solution[SvmDualPoint]:
    """Go from equal shares to the relative duality gap that `limits` ask for."""
    return NuSolver(dual, gram, limits, tuning, rounds).run(partial(measure_gap, dual), dual.start(gram), watcher)


class NuSolver(WorkingSetSolver[SvmDualPoint, NuGap]):
    """Solves for one working set of variables after another."""

    def __init__(
        self, dual: NuDual, gram: KernelRows, limits: RoundLimits, tuning: SmoTuning, rounds: RoundTuning
    ) -> None:
        super().__init__(gram, limits, len(dual.s), tuning.working_set, rounds)
        self.dual, self.max_steps = dual, tuning.pair_steps
        self.violation_left = tuning.whole_violation if self.whole else tuning.round_violation
        self.square: Array | None = None  # (q, q) kernel values within the working set

    def update(self, at: SvmDualPoint, found: NuGap) -> Step[SvmDualPoint]:
        """A round on; points that meet but for rounding are the minimum, and no gap is relative to that."""
        met = self.dual.unit_margin and found.primal <= self.dual.lost
        return super().update(at, found._replace(dual=found.primal) if met else found)

    def next_point(self, at: SvmDualPoint, found: NuGap) -> SvmDualPoint:
        s, C, row, t = self.dual.s, self.dual.C, self.dual.row, found.t
        rise = np.where(np.where(s > 0, at.alpha < C, at.alpha > 0), t, -np.inf)
        fall = np.where(np.where(s > 0, at.alpha > 0, at.alpha < C), t, np.inf)
        violation = max(rise[s == side].max() - fall[s == side].min() for side in np.unique(s))
        chosen = self._working_set(rise, fall)
        if not self.whole or self.square is None:
            self.square = self.gram.square(row[chosen])
        part, near = at.alpha[chosen], t[chosen].copy()
        eps = self.violation_left * max(float(violation), 0.0)
        steps = solve_pairs_of_a_side(self.square, s[chosen], near, part, C[chosen], eps, self.max_steps)
        if steps == self.max_steps or self.whole:  # of few rows, Newton's method takes the place of many rounds
            sides = np.column_stack([s[chosen] > 0, s[chosen] < 0]).astype(np.float64)
            descend_by_newton(self.square, s[chosen], near, part, C[chosen], sides)
        change = s[chosen] * (part - at.alpha[chosen])
        alpha = at.alpha.copy()
        alpha[chosen] = part
        return SvmDualPoint(alpha, self.gram.add(at.f, row[chosen], change))

    def _working_set(self, rise: Array, fall: Array) -> Array:
        """Half of the variables that entered last, and the worst violators of either side."""
        if self.whole:
            return np.arange(self.size)
        sides = np.unique(self.dual.s)
        old = self.latest[: self.size // 2]
        new, count = [], (self.size - len(old)) // (2 * len(sides))
        for side in sides:
            for order in (rise, -fall):
                places = np.where(self.dual.s == side, order, -np.inf)
                found = np.argpartition(-places, min(count, len(places) - 1))[:count]
                new.append(found[places[found] > -np.inf])
        self.latest = np.unique(np.concatenate(new))
        return np.unique(np.concatenate([old, self.latest]))
