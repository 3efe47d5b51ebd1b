"""Linear support vector machines for all classes at once: the proximal method of multipliers, by Newton's method.

    min over β, b of   ½ Σ_k |β_k|² + ρ/2 Σ_k b_k² + C Σᵢ wᵢ L(margin + f_k - f_y for k ≠ y),     f = β x + b

L is the sum of the positive parts (Weston-Watkins, margin 2) or the largest of them (Crammer-Singer, margin 1). The
loss of row i is u L(z) = max over q of q·z, u = C w, with q in [0, u]ᵏ or of sum u. It has kinks. Each *round*
minimises the smooth problem with max over q of q·z - h/2u |q - centre|² instead, by Newton's method
(`newton_direction`); its q is the centre of the next round, so that the rounds converge to the solution itself, not
to a smoothed one. Free biases are held near their last values in the same way. q is a point of the dual,

    margin Σ q - ½ Σ_k |v_k|² - Σ_k (Σᵢ α_ik)² / 2ρ,   v_k = Σᵢ α_ik xᵢ,   α_ik = -q_ik for k ≠ y,  α_iy = Σ_k q_ik

so that every step has its duality gap (`JointSvmProblem.lower_bound`). A pass of the loop is one Newton step:

| before the step | what is done | h |
|---|---|---|
| the smooth problem is solved, in few steps | next round: centre = q | divided by 3 |
| it is solved, in more steps | next round: centre = q | divided by 1.5 |
| the last step gained nothing but rounding | next round: centre = q | doubled |
| it is not solved after 12 steps | the same round again, smoother | doubled |
| else | the round goes on | as it is |

The loop ends at the gap asked for; on small tables at a far smaller one, if that takes few more steps.
References: Weston & Watkins, "Support vector machines for multi-class pattern recognition" (1999); Crammer & Singer,
"On the algorithmic implementation of multiclass kernel-based vector machines" (2001); Rockafellar, "Augmented
Lagrangians and applications of the proximal point algorithm in convex programming" (1976).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from certifit.checkers.plain.dual_points import DualSize, rounding_of_bound, summation_error
from certifit.checkers.svm.linear_machines.linear_rows import SLACK_ROUNDING
from certifit.core import Objective, Solution, Step, fixed_point
from certifit.core.loop import Watcher
from certifit.linear_model.linear_rows import row_shift
from certifit.losses.multiclass.multiclass_hinge_loops import multiclass_loss, smoothed_multiclass_loss
from certifit.losses.multiclass.multiclass_hinges import MulticlassHinge
from certifit.optimise.working_sets import StallWatcher, over_blocks
from certifit.rows import Array, Rows
from certifit.rows.sampling import evenly_spaced
from certifit.svm.joint_linear.joint_sums import (
    AugmentedColumns,
    class_sums,
    dual_coefficients,
    joint_loss,
    joint_scores,
    labels_and_weights,
    weighted_row_sums,
)
from certifit.svm.joint_linear.newton_direction import JointHingeCurvature, Preconditioner
from certifit.svm.joint_linear.tuning import JointSvmTuning


class JointSvmObjective(NamedTuple):
    """What is minimised: ½ |β|² + ρ/2 |b|² + C Σ w L."""

    hinge: MulticlassHinge
    C: float
    rho: float | None  # weight of the biases' squares: None without biases, 0 where they are free


@dataclass(frozen=True)
class JointSvmState:
    """Where the method is, and the best answer so far."""

    theta: Array  # (d1, k) β and, where there are biases, (b - offset) / √τ
    offset: Array  # (k,) biases at the start of the round, where they are free
    F: Array = field(repr=False)  # (n, k) scores
    centre: Array = field(repr=False)  # (n, k) q of the round before
    q: Array = field(repr=False)  # (n, k) dual variables
    h: float  # weight of the proximal term
    smooth: float  # the smoothed losses
    V: Array  # (d1, k) Σ x α
    distance: float  # from q to the centre, as the smooth problem counts it
    steps: int  # Newton steps in this round; -1: the last one gained nothing but rounding
    best_theta: Array  # (d1, k) β with b / √τ, of the smallest objective
    best_q: Array = field(repr=False)  # (n, k) of the largest bound
    value: float = np.inf  # the smallest objective
    bound: float = 0.0  # the largest lower bound


class JointSvmProblem:
    """Rows and what is minimised over them; y are class numbers, each class with some weight."""

    def __init__(self, rows: Rows, k: int, svm: JointSvmObjective, tol: float, tuning: JointSvmTuning) -> None:
        self.rows, self.k, self.rho, self.tol, self.tuning = rows, k, svm.rho, tol, tuning
        self.n, self.hinge, margin = rows.n_rows, svm.hinge, svm.hinge.margin
        found = rows.each(labels_and_weights)
        self.y = np.concatenate([y for y, _ in found])
        self.u = svm.C * np.concatenate([w for _, w in found])
        self.columns = AugmentedColumns(_column_shift(rows) if svm.rho == 0 else None, 0.0)
        sums = rows.sum(partial(class_sums, self.columns, k, svm.C))
        self.class_rows, self.mass, mass = sums.weighted_rows, sums.mass, float(sums.mass.sum())
        self.squares, self.longest = sums.square, float(np.sqrt(sums.longest.value))
        size = sums.square / mass  # the mean |x|²
        if svm.rho is not None:
            tau = 1 / svm.rho if svm.rho else tuning.free_bias_tau * (size + k * margin / mass)
            self.columns = self.columns._replace(tau=tau)
        self.narrowest = tuning.narrowest * margin
        self.widest = max(tuning.widest * margin, float(self.u.max()) * size / tuning.first_curvature)
        self.rounding = SLACK_ROUNDING * margin * (k - 1) * mass
        small = self.n * rows.n_features * k <= tuning.small
        self.target = min(tol, tuning.sharp_gap) if small else tol
        few = rows.n_features * k <= tuning.few_parameters
        self.residual = tuning.exact_residual if few else tuning.rough_residual
        largest = tuning.float32_range
        fits_float32 = size > 1 / largest and size * (1 + float(self.u.max())) < largest
        self.direction_dtype = np.dtype(np.float32 if fits_float32 and not few else np.float64)
        self.extra_steps = 0  # taken for more digits than asked for
        self.solve: Preconditioner | None = None
        self.solve_made_for = 0.0, 0  # this h and so many rows with free q

    # ------------------------------------------------------------------------------------------------- the loop
    def start(self) -> JointSvmState:
        """The state at θ = 0."""
        d1 = self.rows.n_features + (self.columns.tau > 0)
        theta, F, centre = np.zeros((d1, self.k)), np.zeros((self.n, self.k)), np.zeros((self.n, self.k))
        if self.hinge.shared:
            centre[np.arange(self.n), self.y] = self.u
        offset = np.zeros(self.k)
        state = JointSvmState(theta, offset, F, centre, centre, self.widest, 0.0, theta, np.inf, 0, theta, centre)
        return self._measured(state)

    def measure(self, at: JointSvmState) -> tuple[float, float]:
        """Objective and bound, which the step before has measured."""
        return at.value, at.bound

    def update(self, at: JointSvmState, found: tuple[float, float]) -> Step[JointSvmState]:
        value, bound = found
        gap = max(0.0, value - bound - self.rounding)
        gain = gap / value if gap else 0.0
        self.extra_steps += gain <= self.tol
        return Step(at if gain <= self.target or self.stalled else self._newton_step(at), value, gain)

    @property
    def stalled(self) -> bool:
        """Whether enough steps were spent on more digits than asked for."""
        return self.extra_steps > self.tuning.extra_steps

    def _newton_step(self, at: JointSvmState) -> JointSvmState:
        at = self._chosen_round(at)
        step = self._direction(at, at.theta - at.V)
        D = self.rows.map(partial(joint_scores, self.columns, step))
        t = self._line_search(at, step, D)
        after = self._measured(replace(at, theta=at.theta + t * step, F=at.F + t * D, steps=at.steps + 1))
        if not self._smooth_objective(after) < self._smooth_objective(at):  # only rounding is left
            best = {name: getattr(after, name) for name in ("best_theta", "best_q", "value", "bound")}
            return replace(at, **best, steps=-1)
        return after

    def _chosen_round(self, at: JointSvmState) -> JointSvmState:
        """This round, the next one, or this one with a larger h: the table at the top of this file."""
        tuning = self.tuning
        gradient = at.theta - at.V
        enough = tuning.solved_share * (at.distance + 0.1 * self.target * at.value)
        if 0.5 * float((gradient**2).sum()) <= enough:
            easy = 0 <= at.steps <= tuning.easy_steps
            return self._next_round(at, tuning.easy_divisor if easy else tuning.usual_divisor)
        if at.steps < 0:
            return self._next_round(at, tuning.hard_divisor)
        if at.steps >= tuning.hard_steps:
            return self._measured(replace(at, h=at.h / tuning.hard_divisor, steps=0))
        return at

    def _next_round(self, at: JointSvmState, divisor: float) -> JointSvmState:
        """The centre becomes q, and free biases are held where they are now."""
        theta, offset = at.theta, at.offset
        if self.rho == 0:
            theta, offset = theta.copy(), offset + np.sqrt(self.columns.tau) * theta[-1]
            theta[-1] = 0.0
        # computed afresh: sums of steps gather rounding
        F = self.rows.map(partial(joint_scores, self.columns, theta)) + offset
        h = max(at.h / divisor, self.narrowest)
        return self._measured(replace(at, theta=theta, offset=offset, F=F, centre=at.q, h=h, steps=0))

    def _measured(self, at: JointSvmState) -> JointSvmState:
        """The same state with q, V, the gap and the best answer that belong to its θ and scores."""
        (smooth, _, distance), q = self._smoothed(at, at.F, at.F)
        V = self.rows.sum(partial(weighted_row_sums, self.columns, dual_coefficients(q, self.y)))
        theta = at.theta
        if self.rho == 0:
            distance, theta = distance + 0.5 * float((theta[-1] ** 2).sum()), theta.copy()
            theta[-1] += at.offset / np.sqrt(self.columns.tau)
        penalised = theta[:-1] if self.rho == 0 else theta
        loss = float(multiclass_loss(at.F, self.y, self.u, self.hinge))
        value, bound = loss + 0.5 * float((penalised**2).sum()), self.lower_bound(q, V)
        return replace(
            at,
            smooth=smooth,
            q=q,
            V=V,
            distance=distance,
            best_theta=theta if value < at.value else at.best_theta,
            best_q=q if bound > at.bound else at.best_q,
            value=min(value, at.value),
            bound=max(bound, at.bound),
        )

    def _direction(self, at: JointSvmState, gradient: Array) -> Array:
        """Newton's direction (d1, k), over the rows with free q."""
        shared = self.hinge.shared
        free = at.q > 0 if shared else (at.q > 0) & (at.q < self.u[:, None])
        index = np.flatnonzero(free.sum(axis=1) > shared)
        X = self.columns.augmented(self.rows.take(index).X).astype(self.direction_dtype, copy=False)
        weights = self.u[index] / at.h
        curvature = JointHingeCurvature(X, self.y[index], weights, free[index], shared, self.tuning.direction)
        h, rows = self.solve_made_for
        if self.solve is None or h != at.h or len(index) < self.tuning.renewal_share * rows:
            self.solve, self.solve_made_for = curvature.preconditioner(), (at.h, len(index))
        most = self.tuning.passes * self.n // max(1, len(index))
        return curvature.newton_direction(gradient, self.solve, self.residual, most)

    def _line_search(self, at: JointSvmState, step: Array, D: Array) -> float:
        """The share of the step at which the slope is small: 1, or between two where the slope changes its sign."""
        along, square = float((at.theta * step).sum()), float((step**2).sum())

        def slope(t: float) -> float:
            return self._smoothed(at, at.F + t * D, D)[0][1] + along + t * square

        low, first, high = 0.0, float(((at.theta - at.V) * step).sum()), np.inf
        below, above, t = first, np.inf, 1.0
        for _ in range(self.tuning.line_search_trials):
            here = slope(t)
            if abs(here) <= self.tuning.flat_share * abs(first):
                return t
            if here < 0:
                low, below = t, here
            else:
                high, above = t, here
            t = 2 * t if high == np.inf else low + (high - low) * min(max(below / (below - above), 0.1), 0.9)
        return low or t

    # --------------------------------------------------------------------------------------------- its parts
    def _smoothed(self, at: JointSvmState, F: Array, D: Array) -> tuple[Array, Array]:
        """The smoothed losses at scores F, their slope along D and the distance of q from the centre; and q."""
        q, size = np.empty_like(F), self.tuning.chunk_rows

        def part(start: int) -> tuple[float, float, float]:
            rows = slice(start, start + size)
            smoothing = (at.h, at.centre[rows])
            return smoothed_multiclass_loss(
                F[rows], self.y[rows], self.u[rows], self.hinge, smoothing, D[rows], q[rows]
            )

        return np.sum(over_blocks(part, range(0, self.n, size)), axis=0), q

    def _smooth_objective(self, at: JointSvmState) -> float:
        return at.smooth + 0.5 * float((at.theta**2).sum())

    def lower_bound(self, q: Array, V: Array) -> float:
        """The dual value of q at its best multiple or, where biases are free, of a mixture that is in balance.

        Free biases ask for Σᵢ α_ik = 0 in every class. A flow of (r_k - r_c) / 2k from class c to class k takes off
        the imbalance r = Σᵢ αᵢ; mixed with enough of an even flow between all classes, of which each row of class c
        bears u / Σ u, it is nowhere negative and nowhere beyond a limit.
        """
        linear = float(q.sum()) - float(q[np.arange(self.n), self.y].sum())
        if self.rho == 0:
            even = float(self.mass.min()) / (2 * (self.k - 1 if self.hinge.shared else 1))
            r = V[-1] / np.sqrt(self.columns.tau)
            flow = (r - r[:, None]) / (2 * self.k)
            part = float(np.abs(flow).max()) / even
            if part >= 1:
                return 0.0
            flow = (1 - part) * flow + part * even * (1 - np.eye(self.k))
            linear = (1 - part) * linear + float(flow.sum())
            means = self.class_rows / self.mass[:, None]
            V = (1 - part) * V[:-1] - means.T @ (flow - np.diag(flow.sum(axis=1)))
        linear, square = self.hinge.margin * linear, float((V**2).sum())
        t = min(1.0, linear / square) if square > 0 else 1.0
        return max(0.0, t * linear - 0.5 * t * t * square)

    def score_rounding(self, coef: Array) -> float:
        """By how much rounding in the scores of rows, no longer than the longest one, may change the losses.

        Without free biases rows are not shifted: where they lie far from 0, this is all there is of small losses.
        """
        share = SLACK_ROUNDING + float(np.finfo(float).eps) * self.rows.n_features
        return share * (self.k - 1) * float(self.mass.sum()) * float(np.linalg.norm(coef)) * self.longest

    def bound_rounding(self, at: JointSvmState, value: float) -> float:
        """How much rounding may have added to the bound.

        Mixing moves what is out of balance by flows between classes, whose rows are no longer than the longest one.
        What rounding leaves out of balance after that is an excess of some classes, which leaves them along paths of
        at most k - 1 arcs (`checkers.svm.joint`).
        """
        alpha, counted, rivals = dual_coefficients(at.best_q, self.y), self.u > 0, self.k - 1
        each = np.abs(alpha).sum(axis=1)
        mass, biases = float(each.sum()), float(self.mass.sum()) * self.columns.tau if self.rho else 0.0
        v = float(np.sqrt((each[counted] ** 2 / self.u[counted]).sum() * (self.squares + biases)))
        excess = 0.0
        if self.rho == 0:
            flow = 2 * self.k**2 * float(np.abs(alpha.sum(axis=0)).max())
            mass, v = mass + flow, v + flow * self.longest
            excess = rivals * summation_error(self.n) * mass
        size = DualSize(self.hinge.margin * mass, v, mass, self.n)
        moved = np.sqrt(2.0) * excess * self.longest
        paid = self.hinge.margin * excess + moved * (np.sqrt(2 * value) + moved / 2)
        return paid + rounding_of_bound(value, size, None)

    # ---------------------------------------------------------------------------------------------- the answer
    def coefficients(self, at: JointSvmState) -> tuple[Array, Array]:
        """β (k, d) and b (k,) of the best answer, in the columns' own coordinates."""
        return self.columns.coefficients(at.best_theta)

    def dual_coef(self, at: JointSvmState) -> Array:
        """α (k, n)."""
        return dual_coefficients(at.best_q, self.y).T


def _column_shift(rows: Rows) -> Array | None:
    sample = evenly_spaced(rows)
    return row_shift(sample.X, sample.w)


def solve_jointly(
    problem: JointSvmProblem, *, max_iter: int, max_time: float | None = None, watcher: Watcher | None = None
) -> Solution[JointSvmState]:
    """Solve to relative gap `problem.tol`; each pass is one Newton step and a new duality gap."""
    return fixed_point(
        problem.measure,
        problem.update,
        problem.start(),
        tol=problem.target,
        max_iter=max_iter,
        max_time=max_time,
        watcher=StallWatcher(problem, watcher),
    )


def joint_objective(rows: Rows, svm: JointSvmObjective, coef: Array, intercept: Array) -> Objective:
    """The objective of fitted coefficients on any rows.

    Two classes have one machine: the difference of two whose sum is 0.
    """
    if len(coef) == 1:
        coef, intercept = np.vstack([-coef, coef]) / 2, np.append(-intercept, intercept) / 2
    data = rows.sum(partial(joint_loss, svm.hinge, coef, intercept, svm.C))
    penalty = 0.5 * float((coef**2).sum()) + 0.5 * (svm.rho or 0.0) * float(intercept @ intercept)
    return Objective(data + penalty, data, penalty)
