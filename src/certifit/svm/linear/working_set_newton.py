"""The exact solution where few rows decide: the losses of some rows plus a linear term for all others.

    min over θ of   ½ θ·Gθ - c·θ + Σᵢ uᵢ φ(qᵢ - aᵢ·θ),     G = diag(1, …, 1, ρ),   φ a `Ramp`

by Mehrotra's predictor-corrector interior-point method on the multipliers 0 <= α <= top u, p = top u - α: the optimum
has q + e - Aθ - α/(κu) = ξ - r with r, ξ >= 0 and α r = p ξ = 0. The method follows α r = p ξ = μ to μ = 0, one d x d
system at a step.
Reference: Ferris & Munson, "Interior-point methods for massive support vector machines" (2002).
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from certifit.numerics.factor import factor
from certifit.rows import Array
from certifit.rows.threads import parallel_sum
from certifit.svm.linear.block_statistics import Near, Ramp

STEPS = 100
BACK = 0.995  # share of the way to the boundary that a step may go
CLOSE = 1e-15  # complementarity, relative to the objective's terms, at which only rounding is left
SOLVED = 1e-6  # and at which it is worth trying
DIVERGED = 1e6
TINY = 1e-150
RUN = 1024  # rows whose products one thread adds up at a time
ROUNDED = 1e-9  # and the same for the gradient


class Interior(NamedTuple):
    """A strictly feasible point."""

    theta: Array  # (d1,)
    alpha: Array  # (m,)
    p: Array  # (m,) top u - α
    r: Array  # (m,) how far a row is on the right side
    xi: Array  # (m,) and on the wrong one

    def moved(self, step: Interior, t: float) -> Interior:
        return Interior(*(x + t * dx for x, dx in zip(self, step, strict=True)))

    @property
    def gap(self) -> float:
        return float(self.alpha @ self.r + self.p @ self.xi)


@np.errstate(over="ignore", divide="ignore", invalid="ignore")  # a step that is not finite is not taken
def solve_near(near: Near, ramp: Ramp, G: Array, c: Array, theta: Array, goal: float) -> tuple[Array, Array] | None:
    """θ (d1,) and α (m,), from θ, to a gap of `goal` or as exact as rounding lets it be; None where that fails.

    There is no minimum where the rows cannot hold a free intercept against the linear term.
    """
    u = near.u
    z = near.q + ramp.e - near.A @ theta
    alpha = np.clip(ramp.kappa * z, 0.1, 0.9) * u if np.isinf(ramp.top) else 0.5 * ramp.top * u
    z = z - alpha / (ramp.kappa * u)
    away = float(np.abs(z).mean()) + 1e-8 if len(z) else 1.0
    bounded = np.isfinite(ramp.top)
    p, xi = (ramp.top * u - alpha, np.maximum(z, 0.0) + away) if bounded else (np.ones_like(u), np.zeros_like(u))
    at = Interior(theta, alpha, p, np.maximum(-z, 0.0) + away, xi)
    scale = float(u @ (np.abs(near.q) + np.abs(z))) + float(np.abs(c) @ np.abs(theta))
    goal = max(goal, CLOSE * scale)
    for _ in range(STEPS if len(u) else 1):
        if min(x.min(initial=1.0) for x in at[1:4]) < TINY:
            break  # the next step would divide by it
        try:
            solver = _Directions(near, ramp, G, c, at)
            affine = solver.step(0.0, 0.0, 0.0)
            reach = at.moved(affine, _length(at, affine, 1.0))
            centre = (reach.gap / at.gap) ** 3 * at.gap / (2 * len(u)) if at.gap > 0 else 0.0
            step = solver.step(centre, affine.alpha * affine.r, affine.p * affine.xi)
        except ValueError:  # no finite step
            break
        following = at.moved(step, _length(at, step, BACK))
        if not all(np.isfinite(x).all() for x in following):
            break
        if following.gap > 0.999 * at.gap and at.gap <= SOLVED * scale:
            break  # nothing but rounding is left
        if following.gap > DIVERGED * scale:
            return None
        at = following
        if at.gap <= goal and (solver.residual <= ROUNDED or at.gap <= ROUNDED * goal):
            break
    if not at.gap <= SOLVED * scale:
        return None
    return at.theta, np.clip(at.alpha, 0.0, ramp.top * u if bounded else np.inf)


class _Directions:
    """Newton steps towards α r = p ξ = μ from one point; its matrix is factored once."""

    def __init__(self, near: Near, ramp: Ramp, G: Array, c: Array, at: Interior) -> None:
        self.A, self.at, self.bounded = near.A, at, np.isfinite(ramp.top)
        soft = 1 / (ramp.kappa * near.u)  # 0 where φ has a kink
        self.D = at.xi / at.p + at.r / at.alpha + soft
        runs = range(0, len(near.u), RUN) or [0]
        self.inverse = factor(np.diag(G) + parallel_sum(partial(_gram, near.A, self.D), runs))
        pull = near.A.T @ at.alpha
        self.dual = c + pull - G * at.theta  # (d1,) what is missing of Gθ = c + Aᵀα
        self.primal = near.q + ramp.e - near.A @ at.theta - soft * at.alpha - at.xi + at.r  # (m,)
        sizes = np.abs(c).sum() + float(near.sizes @ at.alpha) + 1e-300
        self.residual = float(np.abs(self.dual).sum()) / sizes

    def step(self, mu: float, second_r: Array | float, second_xi: Array | float) -> Interior:
        """`second` are the products of the predictor's steps, which the corrector takes off."""
        at = self.at
        to_r = (mu - second_r) / at.alpha - at.r
        to_xi = ((mu - second_xi) / at.p - at.xi) * self.bounded
        g = self.primal - to_xi + to_r
        theta = self.inverse.solve(self.dual + self.A.T @ (g / self.D))
        alpha = (g - self.A @ theta) / self.D
        r, xi = to_r - at.r / at.alpha * alpha, to_xi + at.xi / at.p * alpha
        return Interior(theta, alpha, -alpha * self.bounded, r, xi)


def _gram(A: Array, D: Array, start: int) -> Array:
    """AᵀD⁻¹A of a run of rows (d1, d1)."""
    rows = slice(start, start + RUN)
    root = A[rows] / np.sqrt(D[rows])[:, None]
    return root.T @ root


def _length(at: Interior, step: Interior, back: float) -> float:
    """How far to go: one length for all, since the quadratic terms tie θ to α."""
    pairs = ((at.r, step.r), (at.xi, step.xi), (at.alpha, step.alpha), (at.p, step.p))
    return min(1.0, back * min(_most(x, dx) for x, dx in pairs))


def _most(x: Array, dx: Array) -> float:
    down = dx < 0
    return float((x[down] / -dx[down]).min(initial=np.inf))
