"""The exact solution for a working set: the losses of its rows plus a linear term that stands for all other rows.

    min over θ of   ½ θ·Gθ - c·θ + Σᵢ uᵢ φ(qᵢ - aᵢ·θ),     G = diag(1, …, 1, ρ),   φ a `HingeShape`

Solved by Mehrotra's predictor-corrector interior-point method on the multipliers 0 <= α <= top u, p = top u - α. At
the optimum q + e - Aθ - α/(κu) = ξ - r with r, ξ >= 0 and α r = p ξ = 0. The method follows the points with
α r = p ξ = μ to μ = 0; every step solves one d x d system.
Reference: Ferris & Munson, "Interior-point methods for massive support vector machines" (2002).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from certifit.losses.hinges import HingeShape
from certifit.numerics.factor import factor
from certifit.rows import Array
from certifit.rows.threads import parallel_sum
from certifit.svm.linear.primal_sums import SvmWorkingSet


@dataclass(frozen=True)
class InteriorPointTuning:
    """Numbers that steer the interior-point method; gaps are relative to the sizes of the objective's terms."""

    steps: int = 100  # at most
    boundary_share: float = 0.995  # of the way to the boundary that a step may go
    rounding_gap: float = 1e-15  # gap at which only rounding is left
    solved_gap: float = 1e-6  # gap without which the result is no solution
    diverged_gap: float = 1e6  # gap from which the method gives up
    smallest: float = 1e-150  # value of a variable below which dividing by it would overflow
    gradient_residual: float = 1e-9  # |Gθ - c - Aᵀα| at which θ counts as solved, relative to its terms
    run_rows: int = 1024  # rows whose products one thread adds up at a time


class InteriorPoint(NamedTuple):
    """A strictly feasible point."""

    theta: Array  # (d1,)
    alpha: Array  # (m,)
    p: Array  # (m,) top u - α
    r: Array  # (m,) how far a row is on the right side of the bend
    xi: Array  # (m,) and on the wrong side

    def moved(self, step: InteriorPoint, t: float) -> InteriorPoint:
        return InteriorPoint(*(x + t * dx for x, dx in zip(self, step, strict=True)))

    @property
    def gap(self) -> float:
        return float(self.alpha @ self.r + self.p @ self.xi)


class WorkingSetProblem(NamedTuple):
    """The objective above."""

    rows: SvmWorkingSet
    hinge: HingeShape
    G: Array  # (d1,) weights of θ²/2
    c: Array  # (d1,) Σ u a s z of all rows outside the working set

    @property
    def bounded(self) -> bool:
        """Whether the multipliers have an upper limit."""
        return bool(np.isfinite(self.hinge.top))

    def starting_point(self, theta: Array) -> tuple[InteriorPoint, float]:
        """A point well inside all limits, and the size of the objective's terms there."""
        rows, hinge, u = self.rows, self.hinge, self.rows.u
        z = rows.q + hinge.e - rows.A @ theta
        alpha = np.clip(hinge.kappa * z, 0.1, 0.9) * u if np.isinf(hinge.top) else 0.5 * hinge.top * u
        z = z - alpha / (hinge.kappa * u)
        away = float(np.abs(z).mean()) + 1e-8 if len(z) else 1.0
        p, xi = np.ones_like(u), np.zeros_like(u)
        if self.bounded:
            p, xi = hinge.top * u - alpha, np.maximum(z, 0.0) + away
        scale = float(u @ (np.abs(rows.q) + np.abs(z))) + float(np.abs(self.c) @ np.abs(theta))
        return InteriorPoint(theta, alpha, p, np.maximum(-z, 0.0) + away, xi), scale


@np.errstate(over="ignore", divide="ignore", invalid="ignore")  # a step that is not finite is not taken
def solve_working_set(
    problem: WorkingSetProblem, theta: Array, goal: float, tuning: InteriorPointTuning
) -> tuple[Array, Array] | None:
    """Return θ (d1,) and α (m,), from θ, to a gap of `goal` or as exact as rounding allows; None where that fails.

    It fails where there is no minimum: rows that cannot hold a free intercept against the linear term.
    """
    u = problem.rows.u
    at, scale = problem.starting_point(theta)
    goal = max(goal, tuning.rounding_gap * scale)
    for _ in range(tuning.steps if len(u) else 1):
        if min(x.min(initial=1.0) for x in at[1:4]) < tuning.smallest:
            break
        try:
            solver = _NewtonSystem(problem, at, tuning.run_rows)
            following = at.moved(*_predictor_corrector_step(solver, at, tuning.boundary_share))
        except ValueError:  # no finite step
            break
        if not all(np.isfinite(x).all() for x in following):
            break
        if following.gap > 0.999 * at.gap and at.gap <= tuning.solved_gap * scale:
            break  # nothing but rounding is left
        if following.gap > tuning.diverged_gap * scale:
            return None
        at = following
        residual = tuning.gradient_residual
        if at.gap <= goal and (solver.residual <= residual or at.gap <= residual * goal):
            break
    if not at.gap <= tuning.solved_gap * scale:
        return None
    return at.theta, np.clip(at.alpha, 0.0, problem.hinge.top * u if problem.bounded else np.inf)


def _predictor_corrector_step(
    solver: _NewtonSystem, at: InteriorPoint, boundary_share: float
) -> tuple[InteriorPoint, float]:
    """The direction and its length: where a step towards μ = 0 would lead says how far μ is lowered (Mehrotra)."""
    affine = solver.direction(0.0, 0.0, 0.0)
    reached = at.moved(affine, _step_length(at, affine, 1.0))
    mu = (reached.gap / at.gap) ** 3 * at.gap / (2 * len(at.alpha)) if at.gap > 0 else 0.0
    step = solver.direction(mu, affine.alpha * affine.r, affine.p * affine.xi)
    return step, _step_length(at, step, boundary_share)


class _NewtonSystem:
    """Newton steps towards α r = p ξ = μ from one point; the matrix is factored once."""

    def __init__(self, problem: WorkingSetProblem, at: InteriorPoint, run_rows: int) -> None:
        rows, hinge, G, c = problem
        self.A, self.at, self.bounded = rows.A, at, problem.bounded
        softness = 1 / (hinge.kappa * rows.u)  # 0 where φ has a kink
        self.D = at.xi / at.p + at.r / at.alpha + softness
        starts = range(0, len(rows.u), run_rows) or [0]
        self.inverse = factor(np.diag(G) + parallel_sum(partial(_scaled_gram, rows.A, self.D, run_rows), starts))
        pull = rows.A.T @ at.alpha
        self.dual = c + pull - G * at.theta  # (d1,) how far Gθ = c + Aᵀα is from holding
        self.primal = rows.q + hinge.e - rows.A @ at.theta - softness * at.alpha - at.xi + at.r  # (m,)
        sizes = np.abs(c).sum() + float(rows.row_sizes @ at.alpha) + 1e-300
        self.residual = float(np.abs(self.dual).sum()) / sizes

    def direction(self, mu: float, second_r: Array | float, second_xi: Array | float) -> InteriorPoint:
        """The step; `second_r` and `second_xi` are products of the predictor's steps, for the corrector."""
        at = self.at
        to_r = (mu - second_r) / at.alpha - at.r
        to_xi = ((mu - second_xi) / at.p - at.xi) * self.bounded
        g = self.primal - to_xi + to_r
        theta = self.inverse.solve(self.dual + self.A.T @ (g / self.D))
        alpha = (g - self.A @ theta) / self.D
        r, xi = to_r - at.r / at.alpha * alpha, to_xi + at.xi / at.p * alpha
        return InteriorPoint(theta, alpha, -alpha * self.bounded, r, xi)


def _scaled_gram(A: Array, D: Array, run_rows: int, start: int) -> Array:
    """AᵀD⁻¹A of a run of rows (d1, d1)."""
    rows = slice(start, start + run_rows)
    root = A[rows] / np.sqrt(D[rows])[:, None]
    return root.T @ root


def _step_length(at: InteriorPoint, step: InteriorPoint, boundary_share: float) -> float:
    """How far to go: one length for all variables, since the quadratic terms tie θ to α."""
    pairs = ((at.r, step.r), (at.xi, step.xi), (at.alpha, step.alpha), (at.p, step.p))
    return min(1.0, boundary_share * min(_distance_to_zero(x, dx) for x, dx in pairs))


def _distance_to_zero(x: Array, dx: Array) -> float:
    """The smallest t > 0 at which an entry of x + t dx is 0."""
    down = dx < 0
    return float((x[down] / -dx[down]).min(initial=np.inf))
