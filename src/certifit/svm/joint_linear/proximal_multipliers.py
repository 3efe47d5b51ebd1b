"""Linear support vector machines for all classes at once: the proximal method of multipliers, by Newton's method.

    min over β, b of   ½ Σ_k |β_k|² + ρ/2 Σ_k b_k² + C Σᵢ wᵢ L(margin + f_k - f_y for k ≠ y),     f = β x + b

L is the sum of the positive parts (Weston-Watkins, margin 2) or the largest of them (Crammer-Singer, margin 1). Row i
is u L(z) = max over q of q·z, q in [0, u]ᵏ or of sum u. Each round minimises the smooth problem with
max over q of q·z - h/2u |q - q'|² instead (`newton_direction`), and its q is the next round's q'; free biases
are held near their last values in the same way. q is a point of the dual,

    margin Σ q - ½ Σ_k |v_k|² - Σ_k (Σᵢ α_ik)² / 2ρ,   v_k = Σᵢ α_ik xᵢ,   α_ik = -q_ik for k ≠ y,  α_iy = Σ_k q_ik

so that every step has its gap. Free biases (ρ = 0) ask for Σᵢ α_ik = 0: where α is nearly in balance, a mixture with
a point that is well within all limits is in balance exactly, and its dual value is the bound.
References: Weston & Watkins, "Support vector machines for multi-class pattern recognition" (1999); Crammer & Singer,
"On the algorithmic implementation of multiclass kernel-based vector machines" (2001); Rockafellar, "Augmented
Lagrangians and applications of the proximal point algorithm in convex programming" (1976).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from certifit.core import Objective, Solution, Step, fixed_point
from certifit.core.loop import Watcher
from certifit.linear_model.linear_rows import row_shift
from certifit.linear_model.logistic.solve import subsample
from certifit.optimise.working_sets import Patience, over_blocks
from certifit.rows import Array, Rows
from certifit.svm.joint_linear.block_statistics import (
    Columns,
    class_sums,
    joint_loss,
    pull_rows,
    score_rows,
    signed,
    targets,
)
from certifit.svm.joint_linear.joint_hinge_loops import loss_rows, smooth_rows
from certifit.svm.joint_linear.newton_direction import Curvature, Solve

WIDEST, NARROWEST = 3.0, 1e-5  # h at first and at last, in units of the margin
GENTLE = 100.0  # a row's curvature |x|² u / h at first, at most
SOLVED = 0.5  # a smooth problem's own gap, relative to what its q has moved
QUICK, LONG = 2, 12  # steps within which a round is easy; beyond which it is too hard
FASTER, SLOWER, BACK = 3.0, 1.5, 0.5  # what h is divided by after an easy round, after another, where one is too hard
HOLD = 100.0  # free biases' τ, in units of |x|²
LOOSE, TIGHT = 0.1, 1e-12  # of the gradient (squared), at which Newton's equations count as solved
FEW = 1000  # of which the second is asked
LARGE = 1e15
VISITS = 8  # looks at all rows that a step may cost
FLAT, TRIALS = 0.5, 8  # share of the slope at which a line search ends, and after how many trials at the latest
CHUNK = 8192  # rows that a thread takes at a time
FALL = 0.7  # share of the free rows at which the preconditioner is renewed
SHARP, EXTRA, SMALL = 1e-13, 30, 200_000  # on tables with so few n d k digits are cheap: as in `svm.kernel.smo`
ROUNDING = 8 * np.finfo(float).eps  # of a slack, relative to the margin


class Shape(NamedTuple):
    """A loss: its margin, and whether a row's slacks share one limit."""

    margin: float
    shared: bool


SHAPES = {"weston-watkins": Shape(2.0, False), "crammer-singer": Shape(1.0, True)}


@dataclass(frozen=True)
class State:
    """Where the method is, and the best answer so far."""

    theta: Array  # (d1, k) β and, where there are biases, (b - offset) / √τ
    offset: Array  # (k,)
    F: Array = field(repr=False)  # (n, k) scores
    old: Array = field(repr=False)  # (n, k) q'
    q: Array = field(repr=False)  # (n, k)
    h: float
    smooth: float  # the smoothed losses
    V: Array  # (d1, k) Σ x α
    away: float  # how far q is from q', as it counts
    steps: int  # in this round; -1: there is nothing but rounding left
    answer: tuple[Array, Array]  # the best: β with b / √τ, and α's q that proves most
    value: float  # its objective
    bound: float  # proved


class JointProblem:
    """Rows and what is asked of them; y are class numbers, each with some weight."""

    def __init__(self, rows: Rows, k: int, shape: Shape, C: float, rho: float | None, tol: float) -> None:
        self.rows, self.k, self.shape, self.rho, self.tol, self.n = rows, k, shape, rho, tol, rows.n_rows
        found = rows.each(targets)
        self.y = np.concatenate([y for y, _ in found])
        self.u = C * np.concatenate([w for _, w in found])
        self.columns = Columns(_shift(rows) if rho == 0 else None, 0.0)
        self.sums, self.mass, size = rows.sum(partial(class_sums, self.columns, k, C)).parts
        size /= float(self.mass.sum())
        if rho is not None:
            tau = 1 / rho if rho else HOLD * (size + k * shape.margin / float(self.mass.sum()))
            self.columns = self.columns._replace(tau=tau)
        self.narrowest = NARROWEST * shape.margin
        self.widest = max(WIDEST * shape.margin, float(self.u.max()) * size / GENTLE)
        self.rounding = ROUNDING * shape.margin * (k - 1) * float(self.mass.sum())
        small = self.n * rows.n_features * k <= SMALL
        self.target = min(tol, SHARP) if small else tol
        few = rows.n_features * k <= FEW
        self.loose = TIGHT if few else LOOSE
        tame = size > 1 / LARGE and size * (1 + float(self.u.max())) < LARGE  # squares fit into float32
        self.rough = np.dtype(np.float32 if tame and not few else np.float64)
        self.extra = 0  # steps for digits that are cheap
        self.solve: Solve | None = None  # the preconditioner, made for
        self.made = 0.0, 0  # this h and so many rows

    # ------------------------------------------------------------------------------------------------- the loop
    def start(self) -> State:
        """From 0."""
        d1 = self.rows.n_features + (self.columns.tau > 0)
        theta, F, old = np.zeros((d1, self.k)), np.zeros((self.n, self.k)), np.zeros((self.n, self.k))
        if self.shape.shared:
            old[np.arange(self.n), self.y] = self.u
        zero = np.zeros(self.k)
        none = State(theta, zero, F, old, old, self.widest, 0.0, theta, np.inf, 0, (theta, old), np.inf, 0.0)
        return self._measured(none)

    def look(self, at: State) -> tuple[float, float]:
        return at.value, at.bound

    def update(self, at: State, found: tuple[float, float]) -> Step[State]:
        value, bound = found
        gap = max(0.0, value - bound - self.rounding)
        gain = gap / value if gap else 0.0
        self.extra += gain <= self.tol
        return Step(at if gain <= self.target or self.stalled else self._moved(at), value, gain)

    @property
    def stalled(self) -> bool:
        """More digits are not worth it."""
        return self.extra > EXTRA

    def _moved(self, at: State) -> State:
        """One step of Newton's method, in the next round where this one is solved."""
        gradient = at.theta - at.V
        enough = SOLVED * (at.away + 0.1 * self.target * at.value)
        if 0.5 * float((gradient**2).sum()) <= enough:
            at = self._recentred(at, FASTER if 0 <= at.steps <= QUICK else SLOWER)
        elif at.steps < 0:
            at = self._recentred(at, BACK)
        elif at.steps >= LONG:
            at = self._measured(replace(at, h=at.h / BACK, steps=0))
        gradient = at.theta - at.V
        step = self._direction(at, gradient)
        D = self.rows.map(partial(score_rows, self.columns, step))
        t = self._search(at, step, D)
        moved = replace(at, theta=at.theta + t * step, F=at.F + t * D, steps=at.steps + 1)
        after = self._measured(moved)
        if not self._total(after) < self._total(at):
            return replace(at, answer=after.answer, value=after.value, bound=after.bound, steps=-1)  # only rounding
        return after

    def _recentred(self, at: State, narrower: float) -> State:
        """The next round: q' is q, and biases are held where they are."""
        theta, offset = at.theta, at.offset
        if self.rho == 0:
            theta, offset = theta.copy(), offset + np.sqrt(self.columns.tau) * theta[-1]
            theta[-1] = 0.0
        F = self.rows.map(partial(score_rows, self.columns, theta)) + offset  # afresh: sums of steps gather rounding
        h = max(at.h / narrower, self.narrowest)
        return self._measured(replace(at, theta=theta, offset=offset, F=F, old=at.q, h=h, steps=0))

    def _measured(self, at: State) -> State:
        """q, its pull, the gap and the best answer, from θ and its scores."""
        (smooth, _, away), q = self._smooth(at, at.F, at.F)
        V = self.rows.sum(partial(pull_rows, self.columns, signed(q, self.y)))
        theta = at.theta
        if self.rho == 0:
            away, theta = away + 0.5 * float((theta[-1] ** 2).sum()), theta.copy()
            theta[-1] += at.offset / np.sqrt(self.columns.tau)
        value, bound = self._loss(at.F) + self._penalty(theta), self.lower_bound(q, V)
        answer = theta if value < at.value else at.answer[0], q if bound > at.bound else at.answer[1]
        return replace(
            at, smooth=smooth, q=q, V=V, away=away, answer=answer, value=min(value, at.value),
            bound=max(bound, at.bound),
        )  # fmt: skip

    def _direction(self, at: State, gradient: Array) -> Array:
        free = at.q > 0 if self.shape.shared else (at.q > 0) & (at.q < self.u[:, None])
        index = np.flatnonzero(free.sum(axis=1) > self.shape.shared)
        X = self.columns.full(self.rows.take(index).X).astype(self.rough, copy=False)
        curvature = Curvature(X, self.y[index], self.u[index] / at.h, free[index], self.shape.shared)
        if self.solve is None or self.made[0] != at.h or len(index) < FALL * self.made[1]:
            self.solve, self.made = curvature.preconditioner(), (at.h, len(index))
        return curvature.step(gradient, self.solve, self.loose, VISITS * self.n // max(1, len(index)))

    def _search(self, at: State, step: Array, D: Array) -> float:
        """Share of the step at which the slope is small: 1, or between two where the slope changes its sign."""
        along, square = float((at.theta * step).sum()), float((step**2).sum())

        def slope(t: float) -> float:
            return self._smooth(at, at.F + t * D, D)[0][1] + along + t * square

        low, first, high = 0.0, float(((at.theta - at.V) * step).sum()), np.inf
        below, above, t = first, np.inf, 1.0
        for _ in range(TRIALS):
            here = slope(t)
            if abs(here) <= FLAT * abs(first):
                return t
            if here < 0:
                low, below = t, here
            else:
                high, above = t, here
            t = 2 * t if high == np.inf else low + (high - low) * min(max(below / (below - above), 0.1), 0.9)
        return low or t

    # --------------------------------------------------------------------------------------------- its parts
    def _smooth(self, at: State, F: Array, D: Array) -> tuple[Array, Array]:
        """The smoothed losses at scores F, their slope along D and how far q is from q'; and q."""
        q = np.empty_like(F)

        def part(start: int) -> tuple[float, float, float]:
            rows = slice(start, start + CHUNK)
            return smooth_rows(F[rows], self.y[rows], self.u[rows], *self.shape, at.h, at.old[rows], D[rows], q[rows])

        return np.sum(over_blocks(part, range(0, self.n, CHUNK)), axis=0), q

    def _total(self, at: State) -> float:
        return at.smooth + 0.5 * float((at.theta**2).sum())

    def _loss(self, F: Array) -> float:
        return float(loss_rows(F, self.y, self.u, *self.shape))

    def _penalty(self, theta: Array) -> float:
        return 0.5 * float(((theta[:-1] if self.rho == 0 else theta) ** 2).sum())

    def lower_bound(self, q: Array, V: Array) -> float:
        """The dual value of q (at its best multiple) or, where biases are free, of a mixture that is in balance.

        A flow of (r_k - r_c) / 2k from class c to class k takes off the imbalance r = Σᵢ αᵢ; mixed with enough of an
        even flow between all classes, of which each row of class c bears u / Σ u, it is nowhere negative and nowhere
        beyond a limit.
        """
        linear = float(q.sum()) - float(q[np.arange(self.n), self.y].sum())
        if self.rho == 0:
            even = float(self.mass.min()) / (2 * (self.k - 1 if self.shape.shared else 1))
            r = V[-1] / np.sqrt(self.columns.tau)
            flow = (r - r[:, None]) / (2 * self.k)
            part = float(np.abs(flow).max()) / even
            if part >= 1:
                return 0.0
            flow = (1 - part) * flow + part * even * (1 - np.eye(self.k))
            linear = (1 - part) * linear + float(flow.sum())
            V = (1 - part) * V[:-1] - (self.sums / self.mass[:, None]).T @ (flow - np.diag(flow.sum(axis=1)))
        linear, square = self.shape.margin * linear, float((V**2).sum())
        t = min(1.0, linear / square) if square > 0 else 1.0
        return max(0.0, t * linear - 0.5 * t * t * square)

    # ---------------------------------------------------------------------------------------------- the answer
    def coefficients(self, at: State) -> tuple[Array, Array]:
        """β (k, d) and b (k,) of the best answer, in the columns' own coordinates."""
        return self.columns.coefficients(at.answer[0])

    def dual_coef(self, at: State) -> Array:
        """α (k, n)."""
        return signed(at.answer[1], self.y).T


def _shift(rows: Rows) -> Array | None:
    sample = subsample(rows)
    return row_shift(sample.X, sample.w)


def solve_jointly(
    problem: JointProblem, *, max_iter: int, max_time: float | None = None, watcher: Watcher | None = None
) -> Solution[State]:
    """Solve to relative gap `problem.tol`. Each pass is a step of Newton's method and a look at the gap."""
    return fixed_point(
        problem.look,
        problem.update,
        problem.start(),
        tol=problem.target,
        max_iter=max_iter,
        max_time=max_time,
        watcher=Patience(problem, watcher),
    )


def joint_objective(
    rows: Rows, shape: Shape, coef: Array, intercept: Array, C: float, rho: float | None
) -> Objective:
    """Of fitted coefficients, on any rows. Two classes have one machine, the difference of two whose sum is 0."""
    if len(coef) == 1:
        coef, intercept = np.vstack([-coef, coef]) / 2, np.append(-intercept, intercept) / 2
    data = rows.sum(partial(joint_loss, shape, coef, intercept, C))
    penalty = 0.5 * float((coef**2).sum()) + 0.5 * (rho or 0.0) * float(intercept @ intercept)
    return Objective(data + penalty, data, penalty)
