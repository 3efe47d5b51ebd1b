"""Descent with backtracking as an update for `fixed_point`: a refused trial is just another pass.

A *direction* rule (Newton or limited-memory BFGS) sees every accepted point and answers with the next step.
"""

from __future__ import annotations

from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from certifit.core import Step
from certifit.rows import Array

SUFFICIENT = 1e-4  # Armijo: share of the promised slope that a step must deliver
ROUNDING = 1e-13  # relative noise in the objective; smaller rises do not refuse a step

R = TypeVar("R", bound="Direction")


class Point(NamedTuple):
    """What a pass says about the objective at x."""

    x: Array  # (m,)
    value: float
    gradient: Array  # (m,)
    gap: float  # proved bound on value - minimum; inf where there is none
    hessian: Array | None  # (m, m) where it was measured, in the rule's `columns`
    lam: Array | float = 0.0  # (m,) weights of an L1 penalty, which `value` counts and `gradient` does not
    screen: Array | None = None  # (m,) the gradient less what moving the intercepts would take off it; None: as it is


class Direction(Protocol):
    """How to choose steps; immutable: `accept` returns the rule's next state."""

    @property
    def wants_hessian(self) -> bool: ...

    @property
    def columns(self) -> Array | None:
        """Coordinates in which the Hessian is wanted; None: all."""

    def accept(self: R, point: Point) -> tuple[R, Move]:
        """Learn from a new point; the rule to go on with, and the move from here."""


class Move(NamedTuple):
    step: Array  # (m,)
    slope: float  # change of the objective that the full step promises, to first order


class State(NamedTuple, Generic[R]):
    x: Array  # where to measure next
    rule: R
    base: Point | None = None  # last accepted point
    move: Move | None = None  # full step from it
    t: float = 1.0  # share of the step being tried


def descend(state: State[R], point: Point) -> Step[State[R]]:
    """Accept the trial and take the next step, or halve the step from the last accepted point."""
    base, move = state.base, state.move
    if base is not None and move is not None:
        allowed = base.value + SUFFICIENT * state.t * move.slope + ROUNDING * abs(base.value)
        if not point.value <= allowed and state.t > 1e-12:
            t = state.t * _shrink(base.value, move.slope * state.t, point.value)
            return Step(state._replace(x=base.x + t * move.step, t=t), point.value, np.inf)
    rule, move = state.rule.accept(point)
    gain = point.gap
    if np.isinf(gain) and point.value > 0:  # nothing is proved: what the step promises has to do
        gain = -0.5 * move.slope / point.value
    return Step(State(point.x + move.step, rule, point, move), point.value, gain)


def _shrink(value: float, slope: float, trial: float) -> float:
    """Minimiser of the parabola through value, slope and trial, kept within [0.1, 0.5] of the step."""
    curvature = trial - value - slope
    if not np.isfinite(curvature) or curvature <= 0:
        return 0.1
    return float(np.clip(-slope / (2 * curvature), 0.1, 0.5))
