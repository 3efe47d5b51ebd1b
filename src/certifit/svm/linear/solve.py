"""Minimising linear support vector machines over any rows: Newton's method on sums, proved by duality at every pass.

Squared and Huberised hinge are piecewise quadratic: Newton ends after finitely many steps. The hinge is minimised
with its kink rounded over a width that shrinks; the slopes of the rounded loss are a dual point for the hinge itself,
so the gap is the true one. It falls with the square of the width. Once few rows are near the kink, they alone are
solved for exactly, with all others on their side of it. In a large table that is in memory a few climbs of the dual
(`svm.linear.coordinate_ascent`) find those rows.
References: Chapelle, "Training a support vector machine in the primal" (2007); Keerthi & DeCoste, "A modified finite
Newton method for fast solution of large scale linear SVMs" (2005).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from certifit.core import Solution, Step, fixed_point
from certifit.core.loop import Watcher
from certifit.numerics.moments import check_overflow
from certifit.optimise.line_search import DescentPoint, DescentState, descend
from certifit.optimise.newton import Newton
from certifit.rows import Array, Rows
from certifit.svm.linear.block_statistics import Answers, Ask, Near, Pass, Ramp, Split, lower_bound, measure, rounded
from certifit.svm.linear.dual_ascent import Climbed, DualProblem, ascend
from certifit.svm.linear.working_set_newton import solve_near

SOLVED = 0.5  # the rounded problem counts as solved when its own gap is this share of the true one
FASTEST, SLOWEST = 0.1, 0.7  # factors by which the width shrinks
FEW = 4  # rows near the kink, for each column, from which they are solved for exactly
AT_LEAST = 256  # and at least so many
FAR = 0.5  # of the objective: with a larger gap some rows do for the Hessian, unless a step was refused:
ENOUGH = 10  # so many for each column
SAMPLE, ROWS_PER_COLUMN = 8192, 64  # rows to start with: the larger of the two
LONG = 3  # times as many rows from which that pays
SAMPLE_TOL = 1e-2
LATE = 0.25  # of the time allowed: spent on a start even where less is left, for without it a pass finds nothing
LARGE = 2**22  # entries of other tables in memory that start from climbs of the dual:
START = 0.3  # width after that, in units of the slack
CLIMBED, CLIMBS = 0.05, 7  # relative gap at which the dual's climbs have done enough for a start; how many at most
NEAREST = 3  # rows for each column that are then solved for exactly
CHEAP = 2**18  # entries of these rows up to which the last digits cost nothing
NEARLY = 0.02  # else this share of the tolerance will do
STUCK = 6  # steps that were too long, after which the same is done where there are not too many such rows:
ENTRIES = 2**22
WIDER = 4.0  # how much further to look where a row beyond the radius changed sides


@dataclass(frozen=True)
class Machine:
    """One class against the others (or one regression), on its way."""

    split: Split
    state: DescentState[Newton]
    width: float  # over which the kink is rounded; 0 where the loss is minimised as it is
    radius: float = 0.0  # of the rows near the kink that are solved for; 0: not yet
    theta: Array = field(default_factory=lambda: np.zeros(0))  # the best so far, around which rows are near
    best: float = np.inf
    bound: float = 0.0  # proved
    stride: int = 1  # of the rows that enter the Hessian
    refused: int = 0  # steps that were too long
    done: bool = False

    @property
    def here(self) -> Array:
        """θ that is measured next, or was last."""
        return self.theta if self.done else self.state.x


class Aim(NamedTuple):
    """½ |β|² + ρ/2 b² + C Σ w φ."""

    loss: Ramp
    C: float
    rho: float | None  # None: no intercept; 0: a free one
    shift: Array | None

    @property
    def intercept(self) -> bool:
        return self.rho is not None

    def weights(self, size: int) -> Array:
        """Of θ² in the penalty (d1,)."""
        G = np.ones(size)
        if self.rho is not None:
            G[-1] = self.rho
        return G


@dataclass(frozen=True)
class Problem:
    rows: Rows
    aim: Aim
    tol: float  # relative gap to prove
    rounding: float  # of the objective, which no proof can go below
    sample: int = SAMPLE  # rows to start with, where there are many more, if not more for the number of columns
    began: float | None = None  # when the time allowed began to run, if not with the minimisation

    def measure(self, machines: tuple[Machine, ...]) -> Answers:
        """Of those that are not done."""
        return self.sums(tuple(self._ask(m) for m in machines if not m.done))

    def sums(self, asks: tuple[Ask, ...]) -> Answers:
        """One pass over the rows."""
        loss, C, _, shift = self.aim
        return self.rows.sum(partial(measure, asks, loss, C, shift, self.aim.intercept))

    def _ask(self, m: Machine) -> Ask:
        used = rounded(m.width) if m.width and not m.radius else self.aim.loss
        return Ask(m.split, m.state.x, used, m.radius, m.stride)

    def parts(self, splits: tuple[Split, ...], theta: Array) -> tuple[float, float]:
        """Losses and penalties at θ (k, d1), each added up over the machines."""
        found = self.sums(tuple(Ask(split, x, self.aim.loss) for split, x in zip(splits, theta, strict=True))).passes
        return sum(s.loss for s in found), sum(map(self._penalty, theta))

    def update(self, machines: tuple[Machine, ...], answers: Answers) -> Step[tuple[Machine, ...]]:
        passes = iter(answers.passes)
        following, value, bound = [], 0.0, 0.0
        for m in machines:
            if m.done:
                value, bound = value + m.best, bound + m.bound
                following.append(m)
                continue
            s = next(passes)
            here = s.loss + self._penalty(m.state.x)
            after = (self._newton if not m.radius else self._exact)(m, s, here)
            value, bound = value + here, bound + after.bound
            following.append(after)
        gap = max(0.0, value - bound - self.rounding)
        return Step(tuple(following), value, gap / value if gap else 0.0)

    def _penalty(self, theta: Array) -> float:
        return 0.5 * float(self.aim.weights(len(theta)) @ theta**2)

    def _newton(self, m: Machine, s: Pass, here: float) -> Machine:
        """A step on the loss as it is, or on the rounded one."""
        loss, _, rho, _ = self.aim
        used, x = self._ask(m).used, m.state.x
        G = self.aim.weights(len(x))
        assert isinstance(s.H, np.ndarray)
        H = np.diag(G) + check_overflow(s.H)
        bound = max(m.bound, lower_bound(s, loss, rho))
        value = s.used + self._penalty(x)
        own = max(0.0, value - lower_bound(s, used, rho))
        point = DescentPoint(x, value, G * x - s.v.sum(axis=0), own / value if value > 0 else 0.0, H)
        state = descend(m.state, point).params
        refused = m.refused + (state.base is not point)
        stride = min(m.stride, _stride(s.curved, len(x))) if own > FAR * value and not refused else 1
        m = replace(m, state=state, bound=bound, stride=stride, refused=refused, **self._better(m, x, here))
        gap = here - bound
        if gap <= self._allowed(here):
            return replace(m, done=True, theta=x, best=here)
        solved = state.base is point and own <= SOLVED * gap
        few = s.curved <= max(AT_LEAST, FEW * len(x)) and np.isinf(loss.kappa)
        stuck = refused >= STUCK or s.curved == 0  # without curvature a free intercept has no step
        if (solved and few) or (stuck and s.curved * len(x) <= ENTRIES):
            return replace(m, radius=2 * m.width or 1.0, state=state._replace(x=m.theta))
        if not (solved and m.width):
            return m
        return replace(m, width=_narrower(m.width, self.tol * here / gap, loss))

    def _exact(self, m: Machine, s: Pass, here: float) -> Machine:
        """Solve for the rows near the kink; where others have changed sides since, look further."""
        loss, _, rho, _ = self.aim
        x = m.state.x
        if here - m.bound <= self._allowed(here):
            return replace(m, done=True, theta=x, best=here)
        if here > m.best * (1 + 1e-13):
            return replace(m, radius=_further(m), state=m.state._replace(x=m.theta))
        assert isinstance(s.near, Near)
        G = self.aim.weights(len(x))
        goal = 0.0 if s.near.A.size <= CHEAP else NEARLY * self.tol * here
        found = solve_near(s.near, loss, G, s.v.sum(axis=0), x, goal)
        if found is None:
            return replace(m, radius=_further(m), state=m.state._replace(x=x), **self._better(m, x, here))
        theta, alpha = found
        bound = lower_bound(s.with_near(alpha), loss, rho)
        radius = m.radius if bound > m.bound else _further(m)
        return replace(
            m, state=m.state._replace(x=theta), radius=radius, bound=max(bound, m.bound), **self._better(m, x, here)
        )

    def _allowed(self, here: float) -> float:
        return self.tol * here + self.rounding

    def _better(self, m: Machine, x: Array, here: float) -> dict[str, Any]:
        return {"theta": x, "best": here} if here < m.best else {}


def minimise(
    problem: Problem,
    splits: tuple[Split, ...],
    unit: float,
    b: float = 0.0,
    *,
    max_iter: int,
    max_time: float | None = None,
    watcher: Watcher | None = None,
) -> Solution[tuple[Machine, ...]]:
    """Solve to relative gap `problem.tol`, from β = 0 and b. Kinks are rounded over `unit`, a slack's size, at first.

    A long table starts from the solution for some of its rows, another large one from a few climbs of the dual.
    """
    rows, aim, began = problem.rows, problem.aim, problem.began or time.perf_counter()

    def left(least: float = 0.0) -> float | None:
        """Of the time allowed, but at least this share of it."""
        return None if max_time is None else max(least * max_time, max_time - (time.perf_counter() - began))

    d1 = rows.n_features + aim.intercept
    theta = np.zeros((len(splits), d1))
    theta[:, rows.n_features :] = b
    machines = _begin(aim, splits, theta, unit, rows.n_rows)
    stride = rows.n_rows // max(problem.sample, ROWS_PER_COLUMN * d1)
    if stride >= LONG and max_iter > 0:
        some = rows.thin(stride)
        part = Problem(some, aim._replace(C=aim.C * stride), SAMPLE_TOL, problem.rounding)
        start = fixed_point(
            part.measure,
            part.update,
            _begin(aim, splits, theta, unit, some.n_rows),
            tol=SAMPLE_TOL,
            max_iter=max_iter,
            max_time=left(LATE),
        )
        share = problem.tol / max(start.gain, problem.tol, np.finfo(float).tiny)
        machines = tuple(_onwards(m, found, share, aim.loss) for m, found in zip(machines, start.params, strict=True))
    elif _climbs(rows, aim, d1):
        dual = DualProblem(rows.load(), splits, aim.loss, aim.C, aim.rho, CLIMBED, seed=0)
        ascents = ascend(dual, b, max_iter=min(CLIMBS, max_iter), max_time=left()).params
        found = dual.climbed(ascents, NEAREST * d1)
        machines = tuple(_after(m, each, START * unit) for m, each in zip(machines, found, strict=True))
    return fixed_point(
        problem.measure,
        problem.update,
        machines,
        tol=problem.tol,
        max_iter=max_iter,
        max_time=left(),
        watcher=watcher,
    )


def _begin(aim: Aim, splits: tuple[Split, ...], theta: Array, width: float, n: int) -> tuple[Machine, ...]:
    stride = _stride(n, theta.shape[1])
    width = width if np.isfinite(aim.loss.top) and width > aim.loss.e else 0.0
    return tuple(
        Machine(split, DescentState(x, Newton(chord=False)), width, stride=stride)
        for split, x in zip(splits, theta, strict=True)
    )


def _climbs(rows: Rows, aim: Aim, d1: int) -> bool:
    """Whether to climb the dual first: that needs rows at hand, a kink, and columns around zero."""
    return rows.in_memory and rows.n_rows * d1 > LARGE and np.isinf(aim.loss.kappa) and aim.shift is None


def _onwards(m: Machine, found: Machine, share: float, loss: Ramp) -> Machine:
    """Go on from the solution for some rows: near enough for steps that use every row."""
    return replace(m, state=m.state._replace(x=found.here), width=_narrower(found.width, share, loss), stride=1)


def _after(m: Machine, found: Climbed, width: float) -> Machine:
    """Go on where the dual's climbs ended, if they came near; with few rows near the kink, to solve for those."""
    if found.value - found.bound > CLIMBED * found.value:
        return m
    theta, radius = found.theta[: len(m.state.x)], found.radius if found.radius > width else 0.0
    return replace(m, state=m.state._replace(x=theta), theta=theta, bound=found.bound, width=width, radius=radius)


def _narrower(width: float, share: float, loss: Ramp) -> float:
    """The next width, where the gap has to fall to this share of itself: it goes with the square of the width."""
    width *= float(np.clip(0.7 * np.sqrt(share), FASTEST, SLOWEST))
    return width if width > loss.e else 0.0


def _further(m: Machine) -> float:
    """The next radius, where the last was too small; 0, for Newton's method, where it is not that which led here."""
    return WIDER * m.radius if m.state.base is not None else 0.0


def _stride(n: int, d1: int) -> int:
    """Of so many rows, those that will do for a Hessian far from the solution; all where that costs little."""
    return max(1, n // (ENOUGH * d1)) if n * d1 > ENTRIES else 1
