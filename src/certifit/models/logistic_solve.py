"""Minimising the (ridge-)penalised logistic or softmax loss over any rows: Newton where the Hessian is small,
limited-memory BFGS preconditioned by XᵀX beyond. Both run in the one loop and stop at the duality gap."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np

from certifit.core import Array, ArrayRows, Rows, Solution, Step, fixed_point
from certifit.core.loop import Watcher
from certifit.linalg.factor import factor
from certifit.models.logistic_curvature import WIDE, Curvature
from certifit.models.logistic_loss import Pass, Totals, Want, duality_gap, measure
from certifit.solvers.descent import Direction, Point, State, descend
from certifit.solvers.lbfgs import LBFGS
from certifit.solvers.newton import Newton

SAMPLE = 2**15  # rows in the subsample that gives shift, preconditioner and, for long tables, the start
ENTRIES = 2**26  # and at most so many entries


class Separated(Exception):
    """Without penalty, this direction classifies every row right: the likelihood has no maximum."""

    def __init__(self, theta: Array) -> None:
        self.theta = theta


@dataclass
class Problem:
    """min over θ (k, d1) of Σ w φ + λ/2 |β|² on these rows, in coordinates shifted by `shift`."""

    rows: Rows
    lam: float
    intercept: bool
    shift: Array | None
    shape: tuple[int, int]  # (k, d1)
    tol: float  # relative gap to prove
    totals: Totals | None = field(default=None, init=False)  # known after the first pass

    def measure(self, state: State[Direction]) -> Pass:
        want = Want(state.rule.wants_hessian, totals=self.totals is None)
        return self.rows.sum(partial(measure, state.x.reshape(self.shape), self.shift, self.intercept, want))

    def update(self, state: State[Direction], s: Pass) -> Step[State[Direction]]:
        point = self.point(state.x, s)
        step = descend(state, point)
        if step.gain > self.tol and self.intercept and self.lam > 0 and step.params.base is point:
            nearly = self._balance(point, s)
            if nearly is not None:
                return step._replace(params=step.params._replace(x=point.x + nearly, step=nearly))
        return step

    def _balance(self, point: Point, s: Pass) -> Array | None:
        """A Newton step in the intercepts alone, where that is all that stands between the point and its proof.

        The proved gap is of first order in the imbalance Σ w (p - y), the true one of second order.
        """
        k, d = self.shape[0], self.shape[1] - 1
        gradient, imbalance = point.gradient.reshape(self.shape)[:, :d], s.g[:, d]
        delta = np.linalg.lstsq(s.curvature, -imbalance)[0]
        estimate = float((gradient**2).sum()) / (2 * self.lam) - 0.5 * float(delta @ imbalance)
        if estimate > 0.5 * self.tol * point.value:
            return None
        return np.column_stack([np.zeros((k, d)), delta]).ravel()

    def point(self, x: Array, s: Pass) -> Point:
        """Penalty added; the gap is relative to the objective."""
        theta = x.reshape(self.shape)
        if self.totals is None:
            assert isinstance(s.expected, np.ndarray)
            assert isinstance(s.total, np.ndarray)
            self.totals = Totals(s.expected - s.g, s.total)
        if self.lam == 0 and s.margin > 0:
            raise Separated(theta)
        ridge = np.full(self.shape, self.lam)
        if self.intercept:
            ridge[:, -1] = 0
        value = s.loss + 0.5 * float((ridge * theta**2).sum())
        gradient = (s.g + ridge * theta).ravel()
        hessian = None
        if isinstance(s.H, np.ndarray):
            hessian = s.H + np.diag(ridge.ravel()) + self._gauge(s.H)
        if self.lam > 0:
            gap = duality_gap(theta, self.lam, self.intercept, s, self.totals)
        elif hessian is not None:
            gap = 0.5 * float(gradient @ factor(hessian).solve(gradient))  # what one Newton step promises
        else:
            gap = np.inf
        return Point(x, value, gradient, gap / value if value > 0 else 0.0, hessian)

    def _gauge(self, H: Array) -> Array | float:
        """Adding one vector to every class's θ changes nothing but the penalty: make that direction stiff.

        The gradient has no component along it, so H becomes regular and neither steps nor gaps change.
        """
        k, d1 = self.shape
        if k == 1:
            return 0.0
        stiff = np.diag(H).reshape(k, d1).mean(axis=0)
        if self.lam > 0:
            stiff[: d1 - self.intercept] = 0.0
        return np.kron(np.full((k, k), 1 / k), np.diag(stiff))


def minimise(
    problem: Problem,
    theta: Array,
    *,
    newton: bool,
    sample: ArrayRows,
    max_iter: int,
    max_time: float | None = None,
    watcher: Watcher | None = None,
) -> Solution[State[Direction]]:
    """Solve to relative gap `problem.tol` from θ (k, d1)."""
    rule: Direction
    if newton:  # without a penalty the gap is the Newton decrement, so every pass needs the Hessian
        rule = Newton(chord=problem.lam > 0)
    else:
        curvature = Curvature(
            sample, problem.rows.n_rows, problem.lam, problem.intercept, problem.shift, problem.shape
        )
        rule = LBFGS(curvature.average(), curvature.by_class if problem.shape[1] <= WIDE else None)
    return fixed_point(
        problem.measure,
        problem.update,
        State(theta.ravel(), rule),
        tol=problem.tol,
        max_iter=max_iter,
        max_time=max_time,
        watcher=watcher,
    )


def subsample(rows: Rows) -> ArrayRows:
    """Evenly spaced rows in memory, fewer than 2 SAMPLE of them; all rows where that is all there are."""
    stride = max(1, rows.n_rows // SAMPLE, rows.n_rows * rows.n_features // ENTRIES)
    return rows.load() if stride == 1 else rows.thin(stride)
