"""Newton steps for a smooth function plus Σ lam_j |x_j|: the quadratic model is minimised with the penalty in it.

Coordinates without a penalty (intercepts) are eliminated from that model first. Coordinate descent on the others then
takes the same steps wherever the columns lie; beside the intercept, columns 100 standard deviations from 0 would be
collinear to four digits and each sweep would gain a ten-thousandth.

Under a strong penalty most coefficients are 0 and stay there. With `working` the Hessian is therefore measured only
where coefficients are not 0 or their gradients say that they may not stay 0; the gap, which needs all gradients and
no Hessian, says when that was enough.
References: Lee, Sun & Saunders, "Proximal Newton-type methods for minimizing composite functions" (2014);
Tibshirani et al., "Strong rules for discarding predictors in lasso-type problems" (2012).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from certifit.numerics.factor import factor
from certifit.optimise.coordinate_descent_loops import shrink_quadratic
from certifit.optimise.line_search import Move, Point
from certifit.optimise.newton import NEAR, PROGRESS
from certifit.rows import Array

INNER = 1e-3  # share of the gap to which each step's own problem is solved
SWEEPS = 2000
MAYBE = 0.9  # a gradient of this share of its penalty makes a coordinate a candidate


@dataclass(frozen=True)
class Proximal:
    """Direction rule: x + step minimises g·(x' - x) + ½ |x' - x|²_H + Σ lam |x'|."""

    working: bool = False
    columns: Array | None = None  # coordinates in which the Hessian is (to be) measured; None: all
    hessian: Array | None = None
    wants_hessian: bool = True
    gap: float = np.inf

    def accept(self, point: Point) -> tuple[Proximal, Move]:
        H = self.hessian if point.hessian is None else point.hessian
        lam = np.broadcast_to(point.lam, point.x.shape).astype(np.float64)
        screen = point.gradient if point.screen is None else point.screen
        if H is None:  # the first gradient says where the Hessian is needed
            columns = _candidates(point.x, screen, lam)
            return replace(self, columns=columns, wants_hessian=True), Move(np.zeros_like(point.x), 0.0)
        here = np.arange(len(point.x)) if self.columns is None else self.columns
        gap = min(point.gap, 1e-2) if np.isfinite(point.gap) else 1e-6
        # the gap is of first order in what is left of the inner problem, the decrease that ends its loop of second
        goal = (INNER * gap) ** 2 * abs(point.value) / len(here)
        trial = point.x.copy()
        trial[here] = _minimise(H, point.gradient[here], lam[here], trial[here], goal)
        step = trial - point.x
        slope = float(point.gradient @ step + lam @ (np.abs(trial) - np.abs(point.x)))
        near = -slope <= NEAR * abs(point.value)
        slow = point.hessian is None and not point.gap <= PROGRESS * self.gap
        next_columns, grown = self.columns, False
        if self.working:
            wanted = _candidates(trial, screen, lam)
            grown = len(np.setdiff1d(wanted, here)) > 0
            if grown or not near or slow:
                next_columns = np.union1d(wanted, here) if grown else here
        rule = replace(self, columns=next_columns, hessian=H, wants_hessian=grown or not near or slow, gap=point.gap)
        return rule, Move(step, slope)


def _minimise(H: Array, g: Array, lam: Array, x: Array, goal: float) -> Array:
    """The x' that minimises g·(x' - x) + ½ |x' - x|²_H + Σ lam |x'| (m,)."""
    free, shrunk = np.flatnonzero(lam == 0), np.flatnonzero(lam)
    out, S, q = x.copy(), H[np.ix_(shrunk, shrunk)], g[shrunk]
    if len(free):
        border, solve = H[np.ix_(free, shrunk)], factor(H[np.ix_(free, free)]).solve
        S, q = S - border.T @ solve(border), q - border.T @ solve(g[free])
    z = x[shrunk]
    shrink_quadratic(S, q - S @ z, lam[shrunk], z, goal, SWEEPS)
    out[shrunk] = z
    if len(free):
        out[free] -= solve(g[free] + border @ (z - x[shrunk]))
    return out


def _candidates(x: Array, gradient: Array, lam: Array) -> Array:
    return np.flatnonzero((x != 0) | (np.abs(gradient) >= MAYBE * lam))


def subgradient(gradient: Array, lam: Array, x: Array) -> Array:
    """The smallest gradient + lam s with s in the subdifferential of Σ |x|: 0 at the minimum."""
    at_zero = np.sign(gradient) * np.maximum(np.abs(gradient) - lam, 0.0)
    return np.where(x == 0, at_zero, gradient + lam * np.sign(x))
