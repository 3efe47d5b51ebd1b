"""What the phases of the primal solver (`svm.linear.solve`) hand on: the goal, and where a machine is."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from certifit.losses.hinges import HingeShape, rounded_hinge
from certifit.optimise.line_search import DescentState
from certifit.optimise.newton import Newton
from certifit.rows import Array
from certifit.svm.linear.primal_sums import PrimalQuery, SlackSizes, SvmObjective
from certifit.svm.linear.slacks import SlackRule
from certifit.svm.linear.tuning import LinearSvmTuning


@dataclass(frozen=True)
class PrimalSvmGoal:
    """What is minimised, and how far."""

    svm: SvmObjective
    tol: float  # relative duality gap to prove
    rounding: float  # of the objective, below which nothing can be proved
    tuning: LinearSvmTuning = field(default_factory=LinearSvmTuning)

    def allowed_gap(self, value: float) -> float:
        return self.tol * value + self.rounding


@dataclass(frozen=True)
class PrimalSvmState:
    """One class against the others, or one regression, between two passes over the rows.

    A machine with a positive `radius` is in the phase "working set", else in "smoothed Newton".
    """

    rule: SlackRule
    descent: DescentState[Newton]  # its x (d1,) is measured next
    width: float  # over which the kink is rounded; 0 where the loss is minimised as it is
    radius: float = 0.0  # around the bend, of the slacks that are solved for exactly
    theta: Array = field(default_factory=lambda: np.zeros(0))  # (d1,) the best so far
    best: float = np.inf  # its objective
    bound: float = 0.0  # the largest lower bound that was proved
    stride: int = 1  # every so many curved rows enter the Hessian
    refused: int = 0  # Newton steps that were too long
    done: bool = False
    sizes: SlackSizes | None = None  # of its slacks, once they were measured

    @property
    def coefficients(self) -> Array:
        """θ (d1,) that is measured next or, once done, that was found."""
        return self.theta if self.done else self.descent.x

    def minimised(self, hinge: HingeShape) -> HingeShape:
        """The loss that this phase minimises: `hinge`, or with its kink rounded."""
        return rounded_hinge(self.width) if self.width and not self.radius else hinge

    def query(self, hinge: HingeShape) -> PrimalQuery:
        """What the next pass should measure."""
        return PrimalQuery(self.rule, self.descent.x, self.minimised(hinge), self.radius, self.stride)

    def measured(self, value: float, **changes: Any) -> PrimalSvmState:
        """A changed state, with the point that was measured as the best so far if its objective is smaller."""
        if value < self.best:
            changes |= {"theta": self.descent.x, "best": value}
        return replace(self, **changes) if changes else self

    def finished(self, value: float) -> PrimalSvmState:
        return replace(self, done=True, theta=self.descent.x, best=value)

    def moved_to(self, theta: Array) -> PrimalSvmState:
        return replace(self, descent=self.descent._replace(x=theta))


def hessian_stride(n: int, d1: int, tuning: LinearSvmTuning) -> int:
    """Every so many of n rows suffice for a Hessian far from the solution; 1 where all of them cost little."""
    return max(1, n // (tuning.hessian_rows_per_column * d1)) if n * d1 > tuning.full_hessian_entries else 1


def narrower_width(width: float, share: float, hinge: HingeShape, tuning: LinearSvmTuning) -> float:
    """The next width, where the gap has to fall to this share: it goes with the square of the width.

    0 where the loss itself is at least as round.
    """
    width *= float(np.clip(0.7 * np.sqrt(share), tuning.width_fastest, tuning.width_slowest))
    return width if width > hinge.e else 0.0
