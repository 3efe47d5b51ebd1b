"""Newton's method that measures the Hessian only while it pays.

Near the solution the last factor serves as it is (the chord method): a gradient pass costs a third of a Hessian
pass and still divides the gap by a large factor. When it no longer does, the Hessian is measured again.
References: Boyd & Vandenberghe, Convex Optimization (2004), section 9.5;
Kelley, Iterative Methods for Linear and Nonlinear Equations (1995), section 5.4.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from certifit.numerics.factor import Factor, factor
from certifit.optimise.line_search import Move, Point

NEAR = 1e-2  # Newton decrement² relative to the objective below which the chord method starts
PROGRESS = 0.1  # the gap must fall to this share in a chord step, or the Hessian is measured again


@dataclass(frozen=True)
class Newton:
    """Direction rule: step = -H⁻¹ g."""

    chord: bool = True  # whether gradient-only passes are allowed
    inverse: Factor | None = None
    wants_hessian: bool = True
    columns: None = None
    gap: float = np.inf
    trial: bool = False  # the inverse is a guess that is good for one step

    def accept(self, point: Point) -> tuple[Newton, Move]:
        inverse = self.inverse if point.hessian is None else factor(point.hessian)
        assert inverse is not None
        step = -inverse.solve(point.gradient)
        slope = float(point.gradient @ step)
        near = -slope <= NEAR * abs(point.value)
        slow = point.hessian is None and not point.gap <= PROGRESS * self.gap
        again = not (self.chord and near) or slow or self.trial
        return replace(self, inverse=inverse, wants_hessian=again, gap=point.gap, trial=False), Move(step, slope)
