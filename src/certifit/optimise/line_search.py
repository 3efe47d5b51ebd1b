"""Descent with backtracking, as an update for `fixed_point`: a trial that is refused is just another pass.

A *direction rule* (Newton, proximal Newton or limited-memory BFGS) is shown every accepted point and answers with the
next step. The step is taken if the objective falls by a share of what its slope promises (Armijo's condition);
otherwise a shorter one from the same point is tried.
Reference: Nocedal & Wright, Numerical Optimization (2006), section 3.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from certifit.core import Step
from certifit.numerics.factor import Factor
from certifit.rows import Array

R = TypeVar("R", bound="Direction")


@dataclass(frozen=True)
class LineSearchTuning:
    """When a step counts as good enough."""

    sufficient: float = 1e-4  # share of the promised decrease that a step must deliver (Armijo)
    rounding: float = 1e-13  # rises of this share of the objective are rounding and refuse no step
    shortest: float = 1e-12  # share of the full step below which any point is accepted


class DescentPoint(NamedTuple):
    """What a pass measured of the objective at x."""

    x: Array  # (m,)
    value: float
    gradient: Array  # (m,)
    gap: float  # proved bound on value - minimum; inf where there is none
    hessian: Any  # (m, m) array, or its sparse factors, where it was measured, in the rule's `columns`; or None
    lam: Array | float = 0.0  # (m,) weights of an L1 penalty, which `value` counts and `gradient` does not
    screen: Array | None = None  # (m,) the gradient once the intercepts have moved to their best; None: `gradient`
    rounding: float = 0.0  # rises of the value by this much are rounding, where it is a difference of larger numbers
    factor: Factor | None = None  # of the Hessian, where it is known already


class Direction(Protocol):
    """How steps are chosen. A rule is immutable: `accept` returns the rule to go on with."""

    @property
    def wants_hessian(self) -> bool: ...

    @property
    def columns(self) -> Array | None:
        """Coordinates in which the Hessian is wanted; None: all."""

    def accept(self: R, point: DescentPoint) -> tuple[R, Move]:
        """Learn from a new point; return the rule to go on with and the move from here."""


class Move(NamedTuple):
    """A full step from an accepted point."""

    step: Array  # (m,)
    slope: float  # change of the objective that the full step promises, to first order


class DescentState(NamedTuple, Generic[R]):
    """Where to measure next, and how that point was chosen."""

    x: Array  # (m,)
    rule: R
    base: DescentPoint | None = None  # last accepted point
    move: Move | None = None  # full step from it
    t: float = 1.0  # share of the step that is being tried


def descend(
    state: DescentState[R],
    point: DescentPoint,
    tuning: LineSearchTuning = LineSearchTuning(),
    enough: float = -np.inf,
) -> Step[DescentState[R]]:
    """Accept the trial point and take the next step, or shorten the step from the last accepted point.

    No step is sought from a point whose gap is proved to be at most `enough`.
    """
    base, move = state.base, state.move
    if point.gap <= enough:
        return Step(state._replace(base=point, move=None), point.value, point.gap)
    if base is not None and move is not None:
        allowed = base.value + tuning.sufficient * state.t * move.slope
        allowed += tuning.rounding * abs(base.value) + base.rounding
        if not point.value <= allowed and state.t > tuning.shortest:
            t = state.t * _shorten(base.value, move.slope * state.t, point.value)
            return Step(state._replace(x=base.x + t * move.step, t=t), point.value, np.inf)
    rule, move = state.rule.accept(point)
    gain = point.gap
    if np.isinf(gain) and point.value > 0:  # no gap is proved: the decrease that the step promises stands in for it
        gain = -0.5 * move.slope / point.value
    return Step(DescentState(point.x + move.step, rule, point, move), point.value, gain)


def _shorten(value: float, slope: float, trial: float) -> float:
    """Minimiser of the parabola through value, slope and trial, kept within [0.1, 0.5] of the step."""
    curvature = trial - value - slope
    if not np.isfinite(curvature) or curvature <= 0:
        return 0.1
    return float(np.clip(-slope / (2 * curvature), 0.1, 0.5))
