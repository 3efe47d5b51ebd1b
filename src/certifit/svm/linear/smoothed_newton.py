"""The phase "smoothed Newton": Newton's method on the loss, with its kink rounded over a width that shrinks.

The slopes of the rounded hinge are a dual point for the hinge itself, so the gap is the true one; at the solution of
the rounded problem it falls with the square of the width. Squared and Huberised hinge are piecewise quadratic and
need no rounding: Newton's method ends after finitely many steps.
References: Chapelle, "Training a support vector machine in the primal" (2007); Keerthi & DeCoste, "A modified finite
Newton method for fast solution of large scale linear SVMs" (2005).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from certifit.numerics.moments import check_overflow
from certifit.optimise.line_search import DescentPoint, descend
from certifit.svm.linear.primal_state import PrimalSvmGoal, PrimalSvmState, hessian_stride, narrower_width
from certifit.svm.linear.primal_sums import PrimalSums, dual_bound


def newton_step(state: PrimalSvmState, sums: PrimalSums, value: float, goal: PrimalSvmGoal) -> PrimalSvmState:
    """Take one Newton step, or halve the last one, and choose the next phase; `value` is the objective here."""
    svm, tuning, theta = goal.svm, goal.tuning, state.descent.x
    minimised = state.minimised(svm.hinge)
    G = svm.penalty_weights(len(theta))
    assert isinstance(sums.H, np.ndarray)
    H = np.diag(G) + check_overflow(sums.H)
    bound = max(state.bound, dual_bound(sums, svm.hinge, svm.rho))
    smoothed = sums.minimised + svm.penalty(theta)
    own_gap = max(0.0, smoothed - dual_bound(sums, minimised, svm.rho))
    relative = own_gap / smoothed if smoothed > 0 else 0.0
    point = DescentPoint(theta, smoothed, G * theta - sums.v.sum(axis=0), relative, H)
    descent = descend(state.descent, point).params
    accepted = descent.base is point
    refused = state.refused + (not accepted)
    far = own_gap > tuning.thinned_gap * smoothed and not refused
    stride = min(state.stride, hessian_stride(sums.curved, len(theta), tuning)) if far else 1
    gap = value - bound
    state = state.measured(value, bound=bound, stride=stride, refused=refused, descent=descent)
    if gap <= goal.allowed_gap(value):
        return replace(state, done=True, theta=theta, best=value)
    solved = accepted and own_gap <= tuning.solved_share * gap
    if _should_solve_working_set(state, sums, solved, goal):
        return replace(state.moved_to(state.theta), radius=2 * state.width or 1.0)
    if not (solved and state.width):
        return state
    return replace(state, width=narrower_width(state.width, goal.tol * value / gap, svm.hinge, tuning))


def _should_solve_working_set(state: PrimalSvmState, sums: PrimalSums, solved: bool, goal: PrimalSvmGoal) -> bool:
    """Whether the hinge's kink has few slacks near it, or Newton's steps fail and trying the working set is cheap."""
    tuning, d1 = goal.tuning, len(state.descent.x)
    few = sums.curved <= max(tuning.working_rows, tuning.working_rows_per_column * d1)
    # without curvature a free intercept has no step
    stuck = state.refused >= tuning.refused_steps or sums.curved == 0
    return (solved and few and np.isinf(goal.svm.hinge.kappa)) or (
        stuck and sums.curved * d1 <= tuning.working_entries
    )
