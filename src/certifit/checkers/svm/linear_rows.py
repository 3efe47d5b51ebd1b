"""What checkers of linear machines share: passes over rows about their centre m, and the way to a dual point."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from certifit.checkers.plain.blocks import dense
from certifit.rows import Array, Block

ROUNDS = 40
SHORTEST = 1e-15  # share of a step that is tried: where few rows are free, whole steps may be 1e8 times too long

T = TypeVar("T")


# --------------------------------------------------------------------------------------------------- passes over rows
def scores(coef: Array, b: Array, m: Array, block: Block) -> Array:
    """(rows, k) of coef (k, d) and b (k,)."""
    return (dense(block.X) - m) @ coef.T + b


def targets(block: Block) -> Array:
    assert block.y is not None
    return np.asarray(block.y)


def weights(block: Block) -> Array:
    return block.w


def pull(R: Array, m: Array, block: Block) -> Array:
    """Rᵀ (X - m) of these rows (columns, d); R (n, columns)."""
    return R[block.start : block.start + len(block.w)].T @ (dense(block.X) - m)


# ---------------------------------------------------------------------------------------------------- Newton's method
class Descent(NamedTuple, Generic[T]):
    """Where a descent ended."""

    theta: Array
    dual: T  # the dual variables that belong to it
    stuck: bool  # too stiff to move, or nothing but rounding is left


def descend(
    at: Callable[[Array], tuple[float, T]],
    gradient: Callable[[Array, T], Array],
    hessian: Callable[[T], Array],
    G: Array,
    theta: Array,
    tol: float,
) -> Descent[T]:
    """min over θ of a convex function that contains ½ Σ G θ², from θ (d1,) or (k, d1), until `left` is small.

    `at` says the value at θ and the dual variables there, from which gradient and Hessian follow.
    """
    value, dual = at(theta)
    for _ in range(ROUNDS):
        g = gradient(theta, dual)
        if left(g, G, theta) <= 0.01 * tol:
            break
        step = -_solve(hessian(dual), g.ravel()).reshape(theta.shape)
        slope, t = float(np.vdot(g, step)), 1.0
        trial = at(theta + step)
        while trial[0] > value + 1e-4 * t * slope and t > SHORTEST:
            t *= 0.5
            trial = at(theta + t * step)
        if not trial[0] < value:
            return Descent(theta, dual, True)
        theta, (value, dual) = theta + t * step, trial
    return Descent(theta, dual, False)


def left(gradient: Array, G: Array, theta: Array) -> float:
    """What a gradient of this size can be worth: ½ |gradient|² in the norm of G⁻¹, and |b| times that of free b."""
    held = G > 0
    free = (np.abs(gradient) * (1 + np.abs(theta)))[..., ~held]
    return 0.5 * float((gradient[..., held] ** 2 / G[held]).sum()) + float(free.sum())


def _solve(H: Array, g: Array) -> Array:
    scale = 1 / np.sqrt(np.where(np.diag(H) > 0, np.diag(H), 1.0))
    scaled = H * scale * scale[:, None]
    try:
        return scale * cho_solve(cho_factor(scaled), scale * g)
    except LinAlgError:
        return scale * np.linalg.lstsq(scaled, scale * g, rcond=1e-14)[0]
