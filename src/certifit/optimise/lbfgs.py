"""Limited-memory BFGS whose first guess of the inverse Hessian is a preconditioner.

The last few steps and changes of the gradient correct the preconditioner (the two-loop recursion). After some
accepted points a better preconditioner, for the curvature at the present point, is worth its price.
Reference: Nocedal & Wright, Numerical Optimization (2006), algorithm 7.4.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from certifit.optimise.line_search import DescentPoint, Move
from certifit.optimise.newton import Newton
from certifit.rows import Array

Pair: TypeAlias = tuple[Array, Array, float]  # step s (m,), change of gradient y (m,), 1 / s·y
Precondition: TypeAlias = Callable[[Array], Array]  # an approximate H⁻¹, (m,) -> (m,)


@dataclass(frozen=True)
class LBFGS:
    """Direction rule: the two-loop recursion around a preconditioner."""

    precondition: Precondition
    renew: Callable[[Array], Precondition] | None = None  # a better one, for the curvature at a point (m,)
    memory: int = 20  # pairs that are kept
    renew_at: tuple[int, ...] = (8, 24)  # numbers of accepted points after which `renew` is called
    accepted: int = 0
    pairs: tuple[Pair, ...] = ()
    last: tuple[Array, Array] | None = None  # (x, gradient) of the last accepted point
    wants_hessian: bool = False
    columns: None = None

    def accept(self, point: DescentPoint) -> tuple[LBFGS, Move]:
        """Add the last step to the memory and step by the recursion."""
        pairs, precondition = self.pairs, self.precondition
        if self.last is not None:
            s, y = point.x - self.last[0], point.gradient - self.last[1]
            curvature = float(s @ y)
            if curvature > 0:  # fails only where the step is rounding
                pairs = (*pairs[-self.memory + 1 :], (s, y, 1 / curvature))
        if self.renew is not None and self.accepted in self.renew_at:
            precondition = self.renew(point.x)
        rule = replace(
            self,
            precondition=precondition,
            accepted=self.accepted + 1,
            pairs=pairs,
            last=(point.x, point.gradient),
        )
        step = rule._step(point.gradient)
        return rule, Move(step, float(point.gradient @ step))

    def _step(self, gradient: Array) -> Array:
        q = gradient.copy()
        alphas = []
        for s, y, rho in reversed(self.pairs):
            alphas.append(rho * float(s @ q))
            q -= alphas[-1] * y
        r = self.precondition(q)
        if self.pairs:  # match the newest curvature: the preconditioner knows the shape, not the scale
            s, y, rho = self.pairs[-1]
            r *= 1 / (rho * float(y @ self.precondition(y)))
        for (s, y, rho), alpha in zip(self.pairs, reversed(alphas), strict=True):
            r += s * (alpha - rho * float(y @ r))
        return -r


@dataclass(frozen=True)
class NewtonAfterDescent:
    """Direction rule: Newton's method from where limited-memory BFGS has come near the solution.

    Far from it, many passes that measure gradients cost less than a few that measure Hessians.
    """

    descent: LBFGS | None  # None once the point was near
    newton: Newton = field(default_factory=Newton)
    near: float = 1e-4  # relative gap below which Newton's method takes over, or
    most_points: int = 50  # accepted points after which it does in any case
    columns: None = None

    @property
    def wants_hessian(self) -> bool:
        return self.descent is None and self.newton.wants_hessian

    def accept(self, point: DescentPoint) -> tuple[NewtonAfterDescent, Move]:
        """Step by the rule that is in charge."""
        if self.descent is None:
            newton, move = self.newton.accept(point)
            return replace(self, newton=newton), move
        descent, move = self.descent.accept(point)
        done = point.gap <= self.near or descent.accepted >= self.most_points
        return replace(self, descent=None if done else descent), move
