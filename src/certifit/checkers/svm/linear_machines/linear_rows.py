"""What the checkers of linear machines share: passes over rows about their centre m, and Newton's method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from certifit.checkers.plain.blocks import dense
from certifit.core import Check
from certifit.rows import Array, Block

LONG_EPS = float(np.finfo(np.longdouble).eps)
SLACK_ROUNDING = 8 * np.finfo(float).eps  # of a slack, relative to its target and to what the intercept makes up for

D = TypeVar("D")  # dual variables


@dataclass(frozen=True)
class MultiplierTuning:
    """Numbers that steer the proximal method of multipliers and Newton's method; no bound is wrong for any."""

    rounds: int = 40  # at most, of either
    # share of a step that is tried: where few rows are free, whole steps may be 1e8 times too long
    shortest: float = 1e-15
    stiffer: float = 2.0  # factor on the proximal term from round to round


def rounding_check(rounding: float, objective: float, coef: Array, allowed: float = 1e-2) -> Check:
    """Rounding may be only a small share of the objective: a proof that rounding could undo is none.

    Where all coefficients are 0 and no row is missed, an objective of 0 is right.
    """
    steepest = float(np.abs(coef).max(initial=0.0))
    share = rounding / max(objective, float(np.finfo(float).tiny)) if steepest > 0 else 0.0
    return Check("rounding in the objective, relative", share, allowed)


def coefficient_error(
    coef: Array, gaps: Array, rho: float | None, most: int = 10_000
) -> tuple[tuple[float, ...], ...]:
    """How far each machine's coefficients, and then its intercept, can be from the minimiser's.

    The objective contains ½ |β|² + ρ/2 b² and is convex otherwise: it rises by at least ½ |β - β*|² + ρ/2 (b - b*)²
    from its minimum, and by no more than the gap (k,). Nothing follows for a free intercept. Of more than `most`
    coefficients nothing is listed.
    """
    if coef.size > most:
        return ()
    reach = np.sqrt(2 * np.maximum(gaps, 0.0))
    last = np.zeros_like(reach) if rho is None else reach / np.sqrt(rho) if rho > 0 else np.full_like(reach, np.inf)
    return tuple((*[float(r)] * coef.shape[1], float(b)) for r, b in zip(reach, last, strict=True))


# --------------------------------------------------------------------------------------------------- passes over rows
def scores_and_lengths(coef: Array, b: Array, m: Array, block: Block) -> Array:
    """Scores (rows, k) of coef (k, d) and b (k,), and beside them |x - m| of each row (rows, k + 1)."""
    Z = dense(block.X) - m
    return np.column_stack([Z @ coef.T + b, np.sqrt(np.einsum("ij,ij->i", Z, Z))])


def long_scores(coef: Array, intercept: Array, m: Array, free: bool, block: Block) -> Array:
    """Scores (rows, k) of coef (k, d) and intercepts (k,) in the longest type that there is.

    With `free` biases, what is common to all of them at m is taken out.
    """
    m, coef = m.astype(np.longdouble), coef.astype(np.longdouble)
    b = intercept + coef @ m
    return (dense(block.X).astype(np.longdouble) - m) @ coef.T + (b - b.mean() if free else b)


def targets(block: Block) -> Array:
    assert block.y is not None
    return np.asarray(block.y)


def weights(block: Block) -> Array:
    return block.w


def weighted_row_sum(R: Array, m: Array, block: Block) -> Array:
    """Rᵀ (X - m) over a block (columns of R, d); R is (n, columns)."""
    return R[block.start : block.start + len(block.w)].T @ (dense(block.X) - m)


# ---------------------------------------------------------------------------------------------------- Newton's method
class SmoothObjective(Protocol[D]):
    """A convex function of θ, (d1,) or (k, d1), that contains ½ Σ G θ²."""

    @property
    def G(self) -> Array: ...  # (d1,)

    def value_and_dual(self, theta: Array) -> tuple[float, D]:
        """The value, and dual variables from which gradient and Hessian follow."""

    def gradient(self, theta: Array, dual: D) -> Array: ...

    def hessian(self, dual: D) -> Array: ...


class NewtonMinimum(NamedTuple, Generic[D]):
    """Where Newton's method ended."""

    theta: Array
    dual: D
    stuck: bool  # whether no step along the last direction gained


def minimise_by_newton(
    objective: SmoothObjective[D], theta: Array, tol: float, tuning: MultiplierTuning
) -> NewtonMinimum[D]:
    """Minimise by Newton's method with halved steps, from θ, until `gradient_worth` is small against `tol`."""
    value, dual = objective.value_and_dual(theta)
    for _ in range(tuning.rounds):
        g = objective.gradient(theta, dual)
        if gradient_worth(g, objective.G, theta) <= 0.01 * tol:
            break
        step = -solve_scaled(objective.hessian(dual), g.ravel()).reshape(theta.shape)
        slope, t = float(np.vdot(g, step)), 1.0
        trial = objective.value_and_dual(theta + step)
        while trial[0] > value + 1e-4 * t * slope and t > tuning.shortest:
            t *= 0.5
            trial = objective.value_and_dual(theta + t * step)
        if not trial[0] < value:
            return NewtonMinimum(theta, dual, True)
        theta, (value, dual) = theta + t * step, trial
    return NewtonMinimum(theta, dual, False)


def gradient_worth(gradient: Array, G: Array, theta: Array) -> float:
    """How much a gradient can cost: ½ |gradient|² in the norm of G⁻¹, and (1 + |b|) times that of a free b."""
    held = G > 0
    free = (np.abs(gradient) * (1 + np.abs(theta)))[..., ~held]
    return 0.5 * float((gradient[..., held] ** 2 / G[held]).sum()) + float(free.sum())


def solve_scaled(H: Array, g: Array) -> Array:
    """H⁻¹g (d1,) of a positive definite H, scaled to a unit diagonal; by least squares where it is singular."""
    scale = 1 / np.sqrt(np.where(np.diag(H) > 0, np.diag(H), 1.0))
    scaled = H * scale * scale[:, None]
    try:
        return scale * cho_solve(cho_factor(scaled), scale * g)
    except LinAlgError:
        return scale * np.linalg.lstsq(scaled, scale * g, rcond=1e-14)[0]
