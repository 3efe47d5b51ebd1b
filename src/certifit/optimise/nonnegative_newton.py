"""Newton steps for a smooth function plus lam·x over x >= 0: the quadratic model is minimised under the constraint.

Coordinates without a constraint (intercepts) are eliminated from that model first, as in `proximal_newton`.
Coordinate descent finds which coordinates stay at 0; the others then solve a linear system, where they stay positive.
Reference: Lawson & Hanson, Solving Least Squares Problems (1974), chapter 23.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from certifit.numerics.factor import factor
from certifit.optimise.coordinate_descent_loops import descend_nonnegative
from certifit.optimise.line_search import DescentPoint, Move
from certifit.optimise.proximal_newton import ProximalTuning
from certifit.rows import Array


@dataclass(frozen=True)
class NonnegativeNewton:
    """Direction rule: x + step minimises g·(x' - x) + ½ |x' - x|²_H + lam·x' over x' >= 0 where `held`."""

    held: Array  # (m,) whether each coordinate is held at 0 or above
    hessian: Array | None = None  # (m, m) the last one measured
    wants_hessian: bool = True
    columns: None = None
    gap: float = np.inf  # at the last accepted point
    tuning: ProximalTuning = field(default_factory=ProximalTuning)

    def accept(self, point: DescentPoint) -> tuple[NonnegativeNewton, Move]:
        """Minimise the quadratic model under the constraint."""
        H = self.hessian if point.hessian is None else point.hessian
        assert H is not None
        lam = np.broadcast_to(point.lam, point.x.shape).astype(np.float64)
        gap = min(point.gap, 1e-2) if np.isfinite(point.gap) else 1e-6
        goal = (self.tuning.inner_share * gap) ** 2 * abs(point.value) / len(point.x)
        trial = _minimise(H, point.gradient + lam, self.held, point.x, goal, self.tuning.sweeps)
        step = trial - point.x
        slope = float((point.gradient + lam) @ step)
        again = self.tuning.newton.needs_hessian(point, slope, self.gap)
        return replace(self, hessian=H, wants_hessian=again, gap=point.gap), Move(step, slope)


def _minimise(H: Array, g: Array, held: Array, x: Array, goal: float, sweeps: int) -> Array:
    """The x' (m,) that minimises g·(x' - x) + ½ |x' - x|²_H over x' >= 0 where `held`."""
    free, bound = np.flatnonzero(~held), np.flatnonzero(held)
    out, S, q = x.copy(), H[np.ix_(bound, bound)], g[bound]
    if len(free):
        border, solve = H[np.ix_(free, bound)], factor(H[np.ix_(free, free)]).solve
        S, q = S - border.T @ solve(border), q - border.T @ solve(g[free])
    z = np.maximum(x[bound], 0.0)
    q = q - S @ x[bound]
    descend_nonnegative(S, q, z, goal, sweeps)
    out[bound] = z = _polish(S, q, z)
    if len(free):
        out[free] -= solve(g[free] + border @ (z - x[bound]))
    return out


def _polish(S: Array, q: Array, z: Array) -> Array:
    """Minimise ½ z·Sz + q·z over the coordinates that are positive, exactly, where they stay so."""
    used = np.flatnonzero(z > 0)
    if not len(used):
        return z
    exact = -factor(S[np.ix_(used, used)]).solve(q[used])
    if not (np.isfinite(exact).all() and (exact > 0).all()):
        return z
    out = np.zeros_like(z)
    out[used] = exact
    return out


def nonnegative_subgradient(gradient: Array, lam: Array, held: Array, x: Array) -> Array:
    """The smallest gradient of the function plus lam·x under the constraint: 0 exactly at the minimum.

    At 0 a coordinate may only rise, so that a positive slope is none.
    """
    slope = gradient + lam
    return np.where(held & (x == 0), np.minimum(slope, 0.0), slope)
