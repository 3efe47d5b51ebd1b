"""Minimising the (ridge-)penalised logistic or softmax loss over any rows: Newton where the Hessian is small,
limited-memory BFGS preconditioned by XᵀX beyond. Both run in the one loop and stop at the duality gap."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np

from certifit.core import Solution, Step, fixed_point
from certifit.core.loop import Watcher
from certifit.linear_model.logistic.block_statistics import Pass, Totals, Want, duality_gap, measure
from certifit.linear_model.logistic.preconditioner import WIDE, Curvature
from certifit.numerics.factor import factor
from certifit.numerics.moments import check_overflow
from certifit.optimise.lbfgs import LBFGS
from certifit.optimise.line_search import Direction, Move, Point, State, descend
from certifit.optimise.newton import Newton
from certifit.optimise.proximal_newton import Proximal
from certifit.optimise.self_concordance import Anchor, Proof, Reached
from certifit.rows import Array, ArrayRows, Rows

SAMPLE = 2**15  # rows in the subsample that gives shift, preconditioner and, for long tables, the start
ENTRIES = 2**26  # and at most so many entries


class Separated(Exception):
    """Without penalty, this direction classifies every row right: the likelihood has no maximum."""

    def __init__(self, theta: Array) -> None:
        self.theta = theta


@dataclass
class Problem:
    """min over θ (k, d1) of Σ w φ + λ/2 |β|² + λ₁ |β|₁ on these rows, in coordinates shifted by `shift`."""

    rows: Rows
    lam: float
    intercept: bool
    shift: Array | None
    shape: tuple[int, int]  # (k, d1)
    tol: float  # relative gap to prove
    lam1: float = 0.0
    proof: Proof = field(default_factory=partial(Proof, 1.0), init=False)  # by concordance
    totals: Totals | None = field(default=None, init=False)  # for the proof by duality; known after one pass
    singular: bool = field(default=False, init=False)  # whether the Hessian proved nothing
    proved: bool = field(default=False, init=False)  # whether the last gap is a bound

    @property
    def concordant(self) -> bool:
        """Two classes without an L1 penalty are proved by gradient and Hessian, the others by duality."""
        return self.shape[0] == 1 and self.lam1 == 0 and not (self.singular and self.lam > 0)

    def measure(self, state: State[Direction]) -> Pass:
        totals = not self.concordant and self.totals is None
        reach = self.proof.asks if self.concordant else None
        want = Want(state.rule.wants_hessian, totals, reach, state.rule.columns)
        return self.rows.sum(partial(measure, state.x.reshape(self.shape), self.shift, self.intercept, want))

    def update(self, state: State[Direction], s: Pass) -> Step[State[Direction]]:
        point = self.point(state.x, s, state.rule.columns)
        step = descend(state, point)
        by_duality = self.lam > 0 and not self.concordant and self.lam1 == 0
        if step.gain > self.tol and self.intercept and by_duality and step.params.base is point:
            nearly = self._balance(point, s)
            if nearly is not None:
                move = Move(nearly, float(point.gradient @ nearly))
                return step._replace(params=step.params._replace(x=point.x + nearly, move=move))
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

    def point(self, x: Array, s: Pass, columns: Array | None = None) -> Point:
        """Penalty added; the gap is relative to the objective. The Hessian, if there is one, is in these columns."""
        theta = x.reshape(self.shape)
        if isinstance(s.expected, np.ndarray):
            assert isinstance(s.total, np.ndarray)
            self.totals = Totals(s.expected - s.g, s.total)
        if self.lam == 0 == self.lam1 and s.margin > 0:
            raise Separated(theta)
        ridge, lasso = self._counted(self.lam), self._counted(self.lam1)
        value = s.loss + 0.5 * float((ridge * theta**2).sum()) + float((lasso * np.abs(theta)).sum())
        gradient = (s.g + ridge * theta).ravel()
        hessian = None
        if isinstance(s.H, np.ndarray):
            hessian = self.hessian(check_overflow(s.H), columns)
        gap = self._gap(theta, s, gradient, hessian, value)
        relative = gap / value if value > 0 else 0.0
        return Point(x, value, gradient, relative, hessian, lasso.ravel(), self._screen(s, gradient))

    def _screen(self, s: Pass, gradient: Array) -> Array | None:
        """The gradient in centred columns: that of an L1 penalty's zeros, wherever the columns lie."""
        if self.lam1 == 0 or not self.intercept:
            return None
        assert self.totals is not None
        return gradient - np.outer(s.g[:, -1], self.totals.total / self.totals.total[-1]).ravel()

    def _gap(self, theta: Array, s: Pass, gradient: Array, hessian: Array | None, value: float) -> float:
        """Proved, or more than `tol`; without a penalty also what one Newton step promises."""
        x = theta.ravel()
        if not self.concordant:
            if self.lam + self.lam1 > 0:
                assert self.totals is not None
                return duality_gap(theta, self.lam, self.intercept, s, self.totals, self.lam1)
            return np.inf if hessian is None else 0.5 * Anchor.at(x, hessian).decrement(gradient)
        assert isinstance(s.reached, Reached)
        self.proof.learn(x, s.reached, hessian)
        if self.proof.anchor is None:
            return np.inf
        gap, promise = self.proof.gap(x, gradient), 0.5 * self.proof.anchor.decrement(gradient)
        self.singular, self.proved = self.proof.anchor.inverse is None, bool(np.isfinite(gap))
        if self.proved:
            return gap
        return promise if self.lam == 0 else max(promise, 1.001 * self.tol * value)

    def hessian(self, H: Array, columns: Array | None = None) -> Array:
        """The objective's, from the data term's, in these entries of θ."""
        ridge = self._counted(self.lam).ravel()
        return H + np.diag(ridge if columns is None else ridge[columns]) + self._gauge(H)

    def _counted(self, lam: float) -> Array:
        """λ for every entry of θ that the penalty counts, 0 for the intercepts."""
        out = np.full(self.shape, lam)
        if self.intercept:
            out[:, -1] = 0.0
        return out

    def _gauge(self, H: Array) -> Array | float:
        """Adding one vector to every class's θ changes nothing but the penalty: make that direction stiff.

        The gradient has no component along it, so H becomes regular and neither steps nor gaps change.
        """
        k, d1 = self.shape
        if k == 1 or self.lam1 > 0:
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
    if problem.lam1 > 0:
        working = problem.shape[0] == 1
        rule = Proximal(working, wants_hessian=not working)
    elif newton:
        rule = Newton(chord=problem.lam > 0 or problem.concordant)
        times = problem.rows.n_rows / sample.n_rows
        if problem.concordant and times > 2 and theta.any():  # near the subsample's solution, whose Hessian then does
            s = sample.sum(partial(measure, theta, problem.shift, problem.intercept, Want(hessian=True)))
            assert isinstance(s.H, np.ndarray)
            trial = problem.lam == 0
            rule = Newton(inverse=factor(problem.hessian(times * s.H)), wants_hessian=False, trial=trial)
            anchor = Anchor.at(theta.ravel(), problem.hessian(s.H))  # some rows' Hessian <= all rows'
            problem.proof = Proof(1.0, anchor, passing=trial)
    else:
        problem.singular = True  # no Hessian is measured: a penalised fit is proved by duality
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


def subsample(rows: Rows, size: int = SAMPLE) -> ArrayRows:
    """Evenly spaced rows in memory, fewer than twice `size` of them; all rows where that is all there are."""
    stride = max(1, rows.n_rows // size, rows.n_rows * rows.n_features // ENTRIES)
    return rows.load() if stride == 1 else rows.thin(stride)
