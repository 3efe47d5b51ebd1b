"""Linear machines with an L1 penalty: proximal Newton steps on sums over rows.

    min over β, b of   |β|₁ + τ |b| + C Σᵢ wᵢ max(0, 1 - yᵢ (β·xᵢ + b))²

A pass sums losses, gradient and, in the columns that may matter, the generalised Hessian of the rows with a loss. The
quadratic model is minimised with the penalty in it; the step is halved until the objective falls. The slopes of the
losses are a dual point, so that every pass knows its duality gap (`checkers.svm.linear_machines.l1`).
References: Yuan, Chang, Hsieh & Lin, A comparison of optimization methods and software for large-scale L1-regularized
linear classification (2010); Lee, Sun & Saunders, Proximal Newton-type methods (2014).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from certifit.core import Solution, Step, fixed_point
from certifit.core.loop import Watcher
from certifit.optimise.coordinate_descent_loops import shrink_quadratic
from certifit.rows import Array, Block, Rows, Sums, transpose


@dataclass(frozen=True)
class L1NewtonTuning:
    """Numbers that steer the steps."""

    candidate_share: float = 0.9  # a gradient of this share of its penalty puts a column into the model
    rounds: int = 20  # of coordinate descent and Newton's steps in a step's own problem, at most
    sweeps: int = 100  # of coordinate descent in a round
    inner_share: float = 1e-3  # share of the gap to which each step's own problem is solved
    ridge: float = 1e-12  # share of its diagonal by which the Hessian is raised: rows with a loss may be few
    shortest: float = 1e-10  # share of a step that is tried
    patience: int = 3  # passes that may gain nothing


class L1Point(NamedTuple):
    """Parameters of a machine, θ = (β, b), and the columns in which the Hessian is to be measured."""

    theta: Array  # (d1,)
    columns: Array  # (c,)


@dataclass(frozen=True)
class L1Sums(Sums):
    """What a pass over the rows finds at a point."""

    loss: float
    slopes: float  # Σ a = Σ 2 u max(0, z)
    gradient: Array  # (d1,)
    hessian: Array  # (c, c)


def measure_l1(code: int, C: float, ones: float | None, at: L1Point, block: Block) -> L1Sums:
    """The sums of a block, for one class against the rest; `ones` is the intercept's column, if there is one."""
    assert block.y is not None
    X, u, s = block.X, C * block.w, np.where(block.y == code, 1.0, -1.0)
    d = X.shape[1]
    b = at.theta[d] * ones if ones is not None else 0.0
    z = np.maximum(1.0 - s * (np.asarray(X @ at.theta[:d]) + b), 0.0)
    a = 2 * u * z
    gradient = -np.asarray(transpose(X) @ (a * s))
    lossy = np.flatnonzero(z > 0)
    A = X[lossy][:, at.columns[at.columns < d]]
    A = np.asarray(A.toarray() if sparse.issparse(A) else A, np.float64)
    if ones is not None:
        gradient = np.append(gradient, -ones * float((a * s).sum()))
        A = np.column_stack([A, np.full(len(A), ones)]) if (at.columns == d).any() else A
    return L1Sums(float(u @ z**2), float(a.sum()), gradient, (A * (2 * u[lossy])[:, None]).T @ A)


@dataclass(frozen=True)
class L1Machine:
    """One machine: its rows, its penalties and its steps."""

    rows: Rows
    code: int
    C: float
    ones: float | None  # the intercept's column
    lam: Array  # (d1,) penalties; 0 for a free intercept
    tol: float
    tuning: L1NewtonTuning

    def measure(self, at: L1Point) -> L1Sums:
        return self.rows.sum(partial(measure_l1, self.code, self.C, self.ones, at))

    def value(self, theta: Array, found: L1Sums) -> float:
        return found.loss + float(self.lam @ np.abs(theta))

    def relative_gap(self, theta: Array, found: L1Sums) -> float:
        """The gap of the best feasible multiple of the slopes; that of a free intercept is left to the checker."""
        held = self.lam > 0
        steepest = float((np.abs(found.gradient[held]) / self.lam[held]).max(initial=0.0))
        t = min(found.slopes / max(2 * found.loss, 1e-300), 1 / steepest if steepest > 0 else np.inf)
        bound = t * found.slopes - t**2 * found.loss
        value = self.value(theta, found)
        loose = float((np.abs(found.gradient[~held]) * (1 + np.abs(theta[~held]))).sum())
        return max(0.0, value - bound + loose) / value if value > 0 else 0.0

    def update(self, at: L1Point, found: L1Sums) -> Step[L1Point]:
        """One proximal Newton step, unless the gap is small enough."""
        gap, value = self.relative_gap(at.theta, found), self.value(at.theta, found)
        if gap <= self.tol:
            return Step(at, value, gap)
        here, x = at.columns, at.theta[at.columns].copy()
        H = found.hessian + np.diag(self.tuning.ridge * np.diag(found.hessian) + 1e-300)
        # The gap is of first order in the error of the step's own problem, the decrease that ends its loop of second.
        goal = (self.tuning.inner_share * gap) ** 2 * value / max(len(here), 1)
        _minimise_model(H, found.gradient[here] - H @ x, self.lam[here], x, goal, self.tuning)
        step = np.zeros_like(at.theta)
        step[here] = x - at.theta[here]
        theta = self._search(at.theta, step, found, value)
        return Step(L1Point(theta, self.candidates(theta, found.gradient)), value, gap)

    def _search(self, theta: Array, step: Array, found: L1Sums, value: float) -> Array:
        """θ + t step with the first of t = 1, ½, … that lowers the objective enough."""
        slope = float(found.gradient @ step + self.lam @ (np.abs(theta + step) - np.abs(theta)))
        none, t, rounding = np.empty(0, np.int64), 1.0, 4 * float(np.finfo(float).eps) * value
        while t > self.tuning.shortest and slope < 0:
            trial = theta + t * step
            if self.value(trial, self.measure(L1Point(trial, none))) <= value + 1e-4 * t * slope + rounding:
                return trial
            t /= 2
        return theta

    def candidates(self, theta: Array, gradient: Array) -> Array:
        return np.flatnonzero((theta != 0) | (np.abs(gradient) >= self.tuning.candidate_share * self.lam))


def _minimise_model(H: Array, q: Array, lam: Array, x: Array, goal: float, tuning: L1NewtonTuning) -> None:
    """Minimise ½ x·Hx + q·x + Σ lam |x| in place: coordinate descent finds signs, Newton's steps solve for them."""
    for _ in range(tuning.rounds):
        if shrink_quadratic(H, q, lam, x, goal, tuning.sweeps) < tuning.sweeps:
            return
        for _ in range(len(x)):
            some = np.flatnonzero(x)
            if not len(some):
                break
            sign = np.sign(x[some])
            move = np.linalg.lstsq(H[np.ix_(some, some)], -(q[some] + lam[some] * sign), rcond=1e-14)[0] - x[some]
            crossed = (lam[some] > 0) & (sign * (x[some] + move) < 0)
            if not crossed.any():
                x[some] += move
                break
            # A coordinate that would change its sign ends at 0: beyond, the model is another.
            ways = np.where(crossed, -x[some] / np.where(crossed, move, 1.0), np.inf)
            first = int(ways.argmin())
            x[some] += ways[first] * move
            x[some[first]] = 0.0


class ProgressWatcher:
    """Ends a loop whose objective stays where it is, and passes every pass on to another watcher."""

    def __init__(self, watcher: Watcher, patience: int) -> None:
        self.watcher, self.patience = watcher, patience
        self.last, self.idle = np.inf, 0

    def begin(self) -> None:
        self.watcher.begin()

    def end(self, params: Any, step: Step[Any], tol: float) -> bool:
        self.idle = self.idle + 1 if step.objective >= self.last else 0
        self.last = min(self.last, step.objective)
        return self.watcher.end(params, step, tol) or self.idle >= self.patience


def minimise_l1(machine: L1Machine, max_iter: int, max_time: float | None, watcher: Watcher) -> Solution[Any]:
    """Go from 0 to the relative duality gap that is asked for."""
    theta = np.zeros(len(machine.lam))
    gradient = machine.measure(L1Point(theta, np.empty(0, np.int64))).gradient
    start = L1Point(theta, machine.candidates(theta, gradient))
    watcher = ProgressWatcher(watcher, machine.tuning.patience)
    return fixed_point(
        machine.measure, machine.update, start, tol=machine.tol, max_iter=max_iter, max_time=max_time, watcher=watcher
    )
