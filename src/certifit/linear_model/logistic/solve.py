"""Minimising the penalised logistic or softmax loss over any rows.

    P(θ) = Σ w φ + λ₁ |β|₁ + λ₂/2 |β|²,    θ = (β, b) in coordinates z = (x - shift, 1)

Every method is a direction rule in the one loop (`core.fixed_point` with `optimise.line_search.descend`): a pass
measures loss, gradient and, where the rule wants it, the Hessian; the rule answers with a step; the loop stops when
the proved gap, relative to the objective, is at most `tol`.

| when | method | why |
|---|---|---|
| λ₁ > 0, two classes | proximal Newton, Hessian in a working set | most coefficients are 0 and need no Hessian |
| λ₁ > 0, more classes | proximal Newton, whole Hessian | |
| up to `newton_parameters` parameters | Newton | few passes, each with a Hessian while that pays |
| the same, several classes, `descent_parameters` | L-BFGS, then Newton | a Hessian costs as much as many gradients |
| the same, two classes, long tables | Newton from a subsample's solution and Hessian | first passes need no Hessian |
| more parameters | L-BFGS, preconditioned by XᵀX of the subsample | the Hessian would not fit, or cost too much |

| proof | when | why |
|---|---|---|
| self-concordance | two classes, λ₁ = 0, regular Hessian | sharp, and the only one without a penalty |
| duality | else, with a penalty | needs gradients only |
| none: what a Newton step promises | more classes without a penalty | the checker proves it after the fit |
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from certifit.core import Solution, Step, fixed_point
from certifit.core.loop import Watcher
from certifit.linear_model.logistic.block_statistics import LogisticPass, LogisticRequest, measure
from certifit.linear_model.logistic.duality import LogisticTotals, duality_gap
from certifit.linear_model.logistic.preconditioner import SampleCurvature
from certifit.linear_model.logistic.tuning import LogisticTuning
from certifit.numerics.factor import factor
from certifit.numerics.moments import check_overflow
from certifit.optimise.lbfgs import LBFGS, NewtonAfterDescent
from certifit.optimise.line_search import DescentPoint, DescentState, Direction, Move, descend
from certifit.optimise.newton import Newton
from certifit.optimise.proximal_newton import Proximal, ProximalTuning
from certifit.optimise.self_concordance import ConcordanceProof, HessianPoint, LastGradient, ReachRequest, RowReach
from certifit.optimise.sparse_curvature import SparseCurvature
from certifit.rows import Array, ArrayRows, Rows


class Separated(Exception):
    """Without a penalty, the direction `theta` classifies every row right: the likelihood has no maximum."""

    def __init__(self, theta: Array) -> None:
        self.theta = theta  # (k, d1)


@dataclass
class LogisticProblem:
    """What to minimise over θ (k, d1), and what is known of it so far."""

    rows: Rows
    lam1: float
    lam2: float
    intercept: bool
    shift: Array | None  # (d,)
    shape: tuple[int, int]  # (k, d1)
    tol: float  # relative gap to prove
    proof: ConcordanceProof = field(default_factory=partial(ConcordanceProof, 1.0), init=False)
    totals: LogisticTotals | None = field(default=None, init=False)  # for the proof by duality; known after one pass
    singular: bool = field(default=False, init=False)  # whether the Hessian proved nothing
    proved: bool = field(default=False, init=False)  # whether the last gap is a bound
    curved: tuple[Array, Array] | None = field(default=None, init=False)  # last point with a Hessian, of many classes
    extent: Array | None = field(default=None, init=False)  # (d1,) largest |z| of each column, the same
    slope: tuple[Array, Array] | None = field(default=None, init=False)  # last point and its gradient

    @property
    def at_hand(self) -> bool:
        """Whether the table's columns are: of sparse rows in memory."""
        return self.shift is None and isinstance(self.rows, ArrayRows) and sparse.issparse(self.rows.X)

    @cached_property
    def by_columns(self) -> Any:
        """These rows as CSC, out of which each step takes its columns: from rows they would be picked one by one."""
        assert isinstance(self.rows, ArrayRows)
        return sparse.csc_array(self.rows.X, dtype=np.float64)

    @property
    def several(self) -> bool:
        """Several classes beside a ridge penalty, whose errors follow from the last Hessian once they are proved."""
        return self.shape[0] > 1 and self.lam1 == 0 < self.lam2

    @property
    def concordant(self) -> bool:
        """Two classes without an L1 penalty are proved by gradient and Hessian, the others by duality."""
        return self.shape[0] == 1 and self.lam1 == 0 and not (self.singular and self.lam2 > 0)

    def measure(self, state: DescentState[Direction]) -> LogisticPass:
        """One pass over all rows."""
        totals = not self.concordant and self.totals is None
        reach = self.proof.request if self.concordant else None
        if totals and self.several:
            reach = ReachRequest(extent=True)
        request = LogisticRequest(state.rule.wants_hessian, totals, reach, state.rule.columns, self.at_hand)
        return self.rows.sum(partial(measure, state.x.reshape(self.shape), self.shift, self.intercept, request))

    def update(self, state: DescentState[Direction], s: LogisticPass) -> Step[DescentState[Direction]]:
        """The next state, by the direction rule or by a step in the intercepts alone."""
        point = self.point(state.x, s, state.rule.columns)
        step = descend(state, point, enough=self.tol if self.lam1 > 0 else -np.inf)
        by_duality = self.lam2 > 0 and not self.concordant and self.lam1 == 0
        if step.gain > self.tol and self.intercept and by_duality and step.params.base is point:
            balance = self._balance(point, s)
            if balance is not None:
                move = Move(balance, float(point.gradient @ balance))
                return step._replace(params=step.params._replace(x=point.x + balance, move=move))
        return step

    def _balance(self, point: DescentPoint, s: LogisticPass) -> Array | None:
        """A Newton step in the intercepts alone, if that is all that stands between the point and its proof.

        The proved gap is of first order in the imbalance Σ w (p - y), the true one of second order.
        """
        k, d = self.shape[0], self.shape[1] - 1
        gradient, imbalance = point.gradient.reshape(self.shape)[:, :d], s.g[:, d]
        delta = np.linalg.lstsq(s.curvature, -imbalance)[0]
        estimate = float((gradient**2).sum()) / (2 * self.lam2) - 0.5 * float(delta @ imbalance)
        if estimate > 0.5 * self.tol * point.value:
            return None
        return np.column_stack([np.zeros((k, d)), delta]).ravel()

    def point(self, x: Array, s: LogisticPass, columns: Array | None = None) -> DescentPoint:
        """Add the penalty to what a pass measured, and the gap, relative to the objective.

        The Hessian, if there is one, is in these columns.
        """
        theta = x.reshape(self.shape)
        if isinstance(s.expected, np.ndarray):
            self.totals = LogisticTotals.of(s)
        if self.lam2 == 0 == self.lam1 and s.margin > 0:
            raise Separated(theta)
        ridge, lasso = self._strengths(self.lam2), self._strengths(self.lam1)
        value = s.loss + 0.5 * float((ridge * theta**2).sum()) + float((lasso * np.abs(theta)).sum())
        gradient = (s.g + ridge * theta).ravel()
        hessian: Any = None
        if isinstance(s.H, np.ndarray):
            hessian = self.hessian(check_overflow(s.H), columns)
        elif isinstance(s.H, SparseCurvature):
            assert columns is not None
            hessian = s.H.with_ridge(ridge.ravel()[columns])
            if self.at_hand:
                hessian = hessian.of_table(self.by_columns, columns[columns < self.rows.n_features])
        if self.several:
            self.slope = x, gradient
            self.curved = self.curved if hessian is None else (x, hessian)
            if isinstance(s.reach, RowReach):
                self.extent = s.reach.extent.value
        gap = self._gap(theta, s, gradient, hessian, value)
        relative = gap / value if value > 0 else 0.0
        known = self.proof.factor_of(hessian)
        return DescentPoint(
            x, value, gradient, relative, hessian, lasso.ravel(), self._screen(s, gradient), factor=known
        )

    def _screen(self, s: LogisticPass, gradient: Array) -> Array | None:
        """The gradient in centred columns, by which coefficients beside an L1 penalty are seen to stay 0."""
        if self.lam1 == 0 or not self.intercept:
            return None
        assert self.totals is not None
        return gradient - np.outer(s.g[:, -1], self.totals.total / self.totals.total[-1]).ravel()

    def _gap(self, theta: Array, s: LogisticPass, gradient: Array, hessian: Array | None, value: float) -> float:
        """A proved gap, or one above `tol`; without a penalty also the decrease that a Newton step promises."""
        x = theta.ravel()
        if not self.concordant:
            if self.lam2 + self.lam1 > 0:
                assert self.totals is not None
                return duality_gap(theta, (self.lam1, self.lam2), self.intercept, s, self.totals)
            return np.inf if hessian is None else 0.5 * HessianPoint.at(x, hessian).decrement(gradient)
        assert isinstance(s.reach, RowReach)
        self.proof.learn(x, s.reach, hessian)
        if self.proof.anchor is None:
            return np.inf
        gap, promise = self.proof.gap(x, gradient), 0.5 * self.proof.anchor.decrement(gradient)
        self.singular, self.proved = self.proof.anchor.inverse is None, bool(np.isfinite(gap))
        if self.proved:
            return gap
        return promise if self.lam2 == 0 else max(promise, 1.001 * self.tol * value)

    def hessian(self, H: Array, columns: Array | None = None) -> Array:
        """The Hessian of the objective in these entries of θ, from that of the data term."""
        ridge, gauge = self._strengths(self.lam2).ravel(), self._gauge(H)
        if columns is not None:  # of one score
            H[np.diag_indices(len(H))] += ridge[columns]
            return H
        return H + np.diag(ridge) + gauge

    def _strengths(self, lam: float) -> Array:
        """λ for every entry of θ (k, d1) that is penalised, 0 for the intercepts."""
        out = np.full(self.shape, lam)
        if self.intercept:
            out[:, -1] = 0.0
        return out

    def _gauge(self, H: Array) -> Array | float:
        """Curvature along the direction in which all classes' θ move by one vector, which changes the penalty alone.

        The gradient has no component along it, so H becomes regular and neither steps nor gaps change.
        """
        k, d1 = self.shape
        if k == 1 or self.lam1 > 0:
            return 0.0
        stiff = np.diag(H).reshape(k, d1).mean(axis=0)
        if self.lam2 > 0:
            stiff[: d1 - self.intercept] = 0.0
        return np.kron(np.full((k, k), 1 / k), np.diag(stiff))


def softmax_proof(problem: LogisticProblem) -> ConcordanceProof | None:
    """The proof by self-concordance of the last point of a fit of several classes; None where there is no Hessian.

    A row's scores enter by their differences: its reach is the largest (e_a - e_c) ⊗ z in the norm of H₀⁻¹. The
    curvature that was added along a common shift of the intercepts changes none of these.
    """
    if problem.curved is None or problem.slope is None or problem.extent is None:
        return None
    k, d1 = problem.shape
    proof = ConcordanceProof(1.0, HessianPoint.at(*problem.curved))
    assert proof.anchor is not None
    if proof.anchor.inverse is None:
        return None
    blocks, extent = proof.anchor.inverse.reshape(k, d1, k, d1), problem.extent
    pairs = [(a, c) for a in range(k) for c in range(a)]
    reach = [
        extent @ np.abs(blocks[a, :, a] + blocks[c, :, c] - blocks[a, :, c] - blocks[c, :, a]) @ extent
        for a, c in pairs
    ]
    proof.extent, proof.reach = np.tile(extent, k), float(max(reach))
    proof.last = LastGradient(*problem.slope)
    return proof


class LogisticLimits(NamedTuple):
    """When the loop ends, and who watches it."""

    tol: float
    max_iter: int
    max_time: float | None = None  # seconds
    watcher: Watcher | None = None


def minimise(
    problem: LogisticProblem,
    theta: Array,
    newton: bool,
    sample: ArrayRows,
    limits: LogisticLimits,
    tuning: LogisticTuning = LogisticTuning(),
) -> Solution[DescentState[Direction]]:
    """Solve to relative gap `problem.tol` from θ (k, d1); see the table above."""
    rule: Direction
    if problem.lam1 > 0:
        working = problem.shape[0] == 1
        rule = Proximal(working, wants_hessian=not working, tuning=ProximalTuning.of_columns(problem.shape[1]))
    elif newton and not (problem.several and theta.size >= tuning.descent_parameters):
        rule = _newton(problem, theta, sample)
    else:
        problem.singular = not newton  # where no Hessian is measured, a penalised fit is proved by duality
        curvature = SampleCurvature(
            sample, problem.rows.n_rows, problem.lam2, problem.intercept, problem.shift, problem.shape, tuning
        )
        factored = problem.shape[1] <= tuning.factored_columns
        descent = LBFGS(curvature.average(), curvature.by_class if factored else None)
        rule = NewtonAfterDescent(descent) if newton else descent
    return fixed_point(
        problem.measure,
        problem.update,
        DescentState(theta.ravel(), rule),
        tol=problem.tol,
        max_iter=limits.max_iter,
        max_time=limits.max_time,
        watcher=limits.watcher,
    )


def _newton(problem: LogisticProblem, theta: Array, sample: ArrayRows) -> Newton:
    """Newton's method; near a subsample's solution, it starts with the subsample's Hessian."""
    times = problem.rows.n_rows / sample.n_rows
    if not (problem.concordant and times > 2 and theta.any()):
        return Newton(chord=problem.lam2 > 0 or problem.concordant)
    s = sample.sum(partial(measure, theta, problem.shift, problem.intercept, LogisticRequest(hessian=True)))
    assert isinstance(s.H, np.ndarray)
    trial = problem.lam2 == 0
    # The Hessian of some rows is at most that of all: a valid anchor for the proof.
    anchor = HessianPoint.at(theta.ravel(), problem.hessian(s.H))
    problem.proof = ConcordanceProof(1.0, anchor, passing=trial)
    return Newton(inverse=factor(problem.hessian(times * s.H)), wants_hessian=False, trial=trial)
