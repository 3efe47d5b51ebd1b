"""Newton's method that measures the Hessian only when the last one no longer serves.

Near the solution the last factor of the Hessian is used again (the chord method): a pass that measures the gradient
alone costs a third of one that measures the Hessian too, and still divides the gap by a large factor. When it no
longer does, the Hessian is measured again.
References: Boyd & Vandenberghe, Convex Optimization (2004), section 9.5;
Kelley, Iterative Methods for Linear and Nonlinear Equations (1995), section 5.4.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from certifit.numerics.factor import Factor, factor
from certifit.optimise.line_search import DescentPoint, Move


@dataclass(frozen=True)
class NewtonTuning:
    """When an earlier Hessian may be used again."""

    near: float = 1e-2  # squared Newton decrement, relative to the objective, below which the chord method starts
    progress: float = 0.1  # the gap must fall to this share in a chord step, or the Hessian is measured again

    def needs_hessian(self, point: DescentPoint, slope: float, gap_before: float) -> bool:
        """Whether the next pass should measure the Hessian: the point is far, or the last chord step slow."""
        near = -slope <= self.near * abs(point.value)
        slow = point.hessian is None and not point.gap <= self.progress * gap_before
        return not near or slow


@dataclass(frozen=True)
class Newton:
    """Direction rule: step = -H⁻¹ g."""

    chord: bool = True  # whether passes that measure the gradient alone are allowed
    inverse: Factor | None = None  # of the last Hessian (m, m)
    wants_hessian: bool = True
    columns: None = None
    gap: float = np.inf  # at the last accepted point
    trial: bool = False  # the inverse is a guess that is good for one step
    tuning: NewtonTuning = NewtonTuning()

    def accept(self, point: DescentPoint) -> tuple[Newton, Move]:
        """Step by the Hessian of this point, or by the last one where none was measured."""
        inverse = self.inverse if point.hessian is None else point.factor or factor(point.hessian)
        assert inverse is not None
        step = -inverse.solve(point.gradient)
        slope = float(point.gradient @ step)
        again = not self.chord or self.trial or self.tuning.needs_hessian(point, slope, self.gap)
        return replace(self, inverse=inverse, wants_hessian=again, gap=point.gap, trial=False), Move(step, slope)
