"""Minimising linear support vector machines over rows from any source, proved by duality at every pass.

Each machine (one class against the rest, or one regression) goes through phases; one pass over the rows serves all
machines at once, whatever their phases. Smoothed Newton works for every loss and needs few passes; but the hinge has
a kink, which must be rounded over smaller and smaller widths. Once few slacks are near the kink, these alone are
solved for exactly, which ends the fit in a pass or two. Two ways of starting save passes over long and over large
tables; others start with smoothed Newton from β = 0.

| phase | what it does | when it ends: what comes next |
|---|---|---|
| start on a sample (long tables) | solves for some rows by the phases below | gap of 1 %: smoothed Newton |
| start by dual coordinate ascent | some rounds over all rows | gap of 5 % or 7 passes: working set if few slacks |
| (large tables in memory, hinge) | (`dual_solver`) | are near the kink, else smoothed Newton |
| smoothed Newton | a Newton step in every pass, on | rounded problem solved, few slacks curved: working set |
| (`smoothed_newton`) | the loss with a rounded kink | rounded problem solved, many curved: a smaller width |
| | | steps refused, or no slack curved: working set if it is not too large |
| working set (`working_set`, | exact solution for the slacks | objective or bound not improved: a larger radius, or |
| `interior_point`) | within a radius of the kink | smoothed Newton if dual coordinate ascent came before |
| any | | duality gap within the tolerance: done |

The numbers behind "long", "few" and so on are the fields of `svm.linear.tuning.LinearSvmTuning`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from certifit.core import Solution, Step, fixed_point
from certifit.core.loop import Watcher
from certifit.optimise.line_search import DescentState
from certifit.optimise.newton import Newton
from certifit.rows import Array, Rows
from certifit.svm.linear.dual_solver import DualSvmProblem, solve_dual
from certifit.svm.linear.primal_state import PrimalSvmGoal, PrimalSvmState, hessian_stride, narrower_width
from certifit.svm.linear.primal_sums import MachineSums, PrimalQuery, measure_block, slack_sizes
from certifit.svm.linear.slacks import SlackRule
from certifit.svm.linear.smoothed_newton import newton_step
from certifit.svm.linear.working_set import working_set_step

PrimalSvmStates = tuple[PrimalSvmState, ...]


@dataclass(frozen=True)
class PrimalSvmProblem:
    """Rows and the goal of all machines on them: `measure` and `update` for the loop."""

    rows: Rows
    goal: PrimalSvmGoal
    sample: int = 0  # rows of a sample to start on, if more than the tuning says
    began: float | None = None  # when the time allowed began to run, if not with the minimisation

    def measure(self, machines: PrimalSvmStates) -> MachineSums:
        """Sums for the machines that are not done."""
        queries = tuple(m.query(self.goal.svm.hinge) for m in machines if not m.done)
        return self.sums(queries, machines[0].sizes is None)

    def sums(self, queries: tuple[PrimalQuery, ...], sized: bool = False) -> MachineSums:
        """One pass over the rows; `sized` asks for the sizes of slacks too."""
        return self.rows.sum(partial(measure_block, queries, self.goal.svm, sized=sized))

    def bound_rounding(self, machines: PrimalSvmStates, value: float) -> float:
        """How much rounding may have added to the bound of all machines together."""
        sizes = machines[0].sizes or self.rows.sum(partial(slack_sizes, machines[0].rule, self.goal.svm))
        return len(machines) * sizes.bound_rounding(value, self.goal.svm)

    def loss_and_penalty(self, rules: tuple[SlackRule, ...], theta: Array) -> tuple[float, float]:
        """Losses and penalties at θ (k, d1), each added up over the machines."""
        svm = self.goal.svm
        found = self.sums(tuple(PrimalQuery(rule, x, svm.hinge) for rule, x in zip(rules, theta, strict=True)))
        return sum(sums.loss for sums in found.each), sum(map(svm.penalty, theta))

    def update(self, machines: PrimalSvmStates, found: MachineSums) -> Step[PrimalSvmStates]:
        remaining = iter(found.each)
        following, value, bound = [], 0.0, 0.0
        for m in machines:
            if m.done:
                value, bound = value + m.best, bound + m.bound
                following.append(m)
                continue
            sums = next(remaining)
            here = sums.loss + self.goal.svm.penalty(m.descent.x)
            phase = working_set_step if m.radius else newton_step
            after = phase(m, sums, here, self.goal)
            value, bound = value + here, bound + after.bound
            following.append(after)
        if found.sizes is not None:
            following = [replace(m, sizes=found.sizes) for m in following]
        gap = max(0.0, value - bound - self.goal.rounding)
        return Step(tuple(following), value, gap / value if gap else 0.0)

    def initial_states(self, rules: tuple[SlackRule, ...], theta: Array, width: float) -> PrimalSvmStates:
        """The machines before their first pass, in the phase "smoothed Newton"."""
        stride = hessian_stride(self.rows.n_rows, theta.shape[1], self.goal.tuning)
        hinge = self.goal.svm.hinge
        width = width if np.isfinite(hinge.top) and width > hinge.e else 0.0
        return tuple(
            PrimalSvmState(rule, DescentState(x, Newton(chord=False)), width, stride=stride)
            for rule, x in zip(rules, theta, strict=True)
        )


def minimise_svm(
    problem: PrimalSvmProblem,
    rules: tuple[SlackRule, ...],
    unit: float,
    b: float = 0.0,
    *,
    max_iter: int,
    max_time: float | None = None,
    watcher: Watcher | None = None,
) -> Solution[PrimalSvmStates]:
    """Solve to relative gap `problem.goal.tol`, from β = 0 and b; `unit` is the size of a typical slack."""
    rows, svm, tuning = problem.rows, problem.goal.svm, problem.goal.tuning
    began = problem.began or time.perf_counter()

    def time_left(least_share: float = 0.0) -> float | None:
        """Return the seconds left, at least this share of those allowed."""
        return None if max_time is None else max(least_share * max_time, max_time - (time.perf_counter() - began))

    d1 = rows.n_features + svm.intercept
    theta = np.zeros((len(rules), d1))
    theta[:, rows.n_features :] = b
    machines = problem.initial_states(rules, theta, unit)
    large = rows.in_memory and rows.n_rows * d1 > tuning.dual_start_entries
    stride = rows.n_rows // max(problem.sample, tuning.sample_rows, tuning.sample_rows_per_column * d1)
    if stride >= tuning.sample_ratio and max_iter > 0:
        machines = _start_on_sample(problem, machines, stride, max_iter, time_left(tuning.sample_time_share))
    elif large and np.isinf(svm.hinge.kappa) and svm.shift is None:
        machines = _start_by_dual_ascent(problem, machines, unit, b, max_iter, time_left())
    return fixed_point(
        problem.measure,
        problem.update,
        machines,
        tol=problem.goal.tol,
        max_iter=max_iter,
        max_time=time_left(),
        watcher=watcher,
    )


def _start_on_sample(
    problem: PrimalSvmProblem, machines: PrimalSvmStates, stride: int, max_iter: int, max_time: float | None
) -> PrimalSvmStates:
    """The machines, going on from the solution for every `stride`-th row: near enough for Hessians of all rows."""
    goal, rows = problem.goal, problem.rows.thin(stride)
    svm, tuning = goal.svm, goal.tuning
    scaled = replace(goal, svm=svm._replace(C=svm.C * stride), tol=tuning.sample_tol)
    sample, thinning = PrimalSvmProblem(rows, scaled), hessian_stride(rows.n_rows, len(machines[0].descent.x), tuning)
    found = fixed_point(
        sample.measure,
        sample.update,
        tuple(replace(m, stride=thinning) for m in machines),
        tol=tuning.sample_tol,
        max_iter=max_iter,
        max_time=max_time,
    )
    share = goal.tol / max(found.gain, goal.tol, np.finfo(float).tiny)
    return tuple(
        replace(m.moved_to(each.coefficients), width=narrower_width(each.width, share, svm.hinge, tuning), stride=1)
        for m, each in zip(machines, found.params, strict=True)
    )


def _start_by_dual_ascent(
    problem: PrimalSvmProblem, machines: PrimalSvmStates, unit: float, b: float, max_iter: int, max_time: float | None
) -> PrimalSvmStates:
    """The machines, going on where some rounds of dual coordinate ascent end, if these come near enough.

    The phase "working set" comes next if few slacks are near the kink: its radius is larger than the width.
    """
    tuning, svm = problem.goal.tuning, problem.goal.svm
    rules = tuple(m.rule for m in machines)
    dual = DualSvmProblem(problem.rows.load(), rules, svm, tuning.dual_start_gap, 0, tuning.ascent)
    passes, d1 = min(tuning.dual_start_passes, max_iter), len(machines[0].descent.x)
    states = solve_dual(dual, b, max_iter=passes, max_time=max_time).params
    width, following = tuning.dual_start_width * unit, []
    for m, found in zip(machines, dual.starting_points(states, tuning.dual_start_rows_per_column * d1), strict=True):
        theta, radius = found.theta[:d1], found.radius if found.radius > width else 0.0
        near = replace(m.moved_to(theta), theta=theta, bound=found.bound, width=width, radius=radius)
        enough = found.value - found.bound <= tuning.dual_start_gap * found.value
        following.append(near if enough else m)
    return tuple(following)
