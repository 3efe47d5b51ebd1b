"""The phase "working set": the slacks near the bend of the loss are solved for exactly, all others taken as linear.

Away from the bend the loss of a slack is a straight line, so all other rows add one linear term to the objective. As
long as none of them crosses the bend, the solution for the working set is the solution of the whole problem.
"""

from __future__ import annotations

from dataclasses import replace

from certifit.svm.linear.interior_point import WorkingSetProblem, solve_working_set
from certifit.svm.linear.primal_state import PrimalSvmGoal, PrimalSvmState
from certifit.svm.linear.primal_sums import PrimalSums, SvmWorkingSet, dual_bound


def working_set_step(state: PrimalSvmState, sums: PrimalSums, value: float, goal: PrimalSvmGoal) -> PrimalSvmState:
    """Solve for the working set, or enlarge it where a slack outside has crossed the bend."""
    svm, tuning, theta = goal.svm, goal.tuning, state.descent.x
    if value - state.bound <= goal.allowed_gap(value):
        return state.finished(value)
    if value > state.best * (1 + 1e-13):
        return replace(state.moved_to(state.theta), radius=_next_radius(state, tuning.radius_factor))
    rows = sums.working
    assert isinstance(rows, SvmWorkingSet)
    wanted = 0.0 if rows.A.size <= tuning.exact_entries else tuning.inexact_share * goal.tol * value
    problem = WorkingSetProblem(rows, svm.hinge, svm.penalty_weights(len(theta)), sums.v.sum(axis=0))
    found = solve_working_set(problem, theta, wanted, tuning.interior_point)
    state = state.measured(value)
    if found is None:
        return replace(state, radius=_next_radius(state, tuning.radius_factor))
    theta, alpha = found
    bound = dual_bound(sums.with_working_set(alpha), svm.hinge, svm.rho)
    radius = state.radius if bound > state.bound else _next_radius(state, tuning.radius_factor)
    return replace(state.moved_to(theta), radius=radius, bound=max(bound, state.bound))


def _next_radius(state: PrimalSvmState, factor: float) -> float:
    """A larger radius; 0, for smoothed Newton, if the phase was entered from dual coordinate ascent."""
    return factor * state.radius if state.descent.base is not None else 0.0
