"""How far a point is from the minimum, proved from its gradient and an earlier Hessian.

Let P be a sum of losses φ(θ·z) with |φ"'| <= R φ" plus a convex quadratic or L1 penalty, H₀ its Hessian at θ₀ (or a
smaller one), and r = R max |z·(θ - θ₀)| over the rows. Then H(θ) >= e⁻ʳ H₀, and with g the smallest subgradient at θ,
ν² = eʳ g·H₀⁻¹g and c² = eʳ R² max z·H₀⁻¹z: if νc < 1 the minimum exists and
P(θ) - min P <= (νc + (1 - νc) log(1 - νc)) / c², about ν²/2. One Hessian therefore proves many gradient-only passes.
Reference: Bach, "Self-concordant analysis for logistic regression" (2010).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from certifit.core import Array, Sums
from certifit.linalg.factor import Factor, factor

SAFE = 0.9  # the bound needs νc < 1; the distance to 1 covers rounding


@dataclass(frozen=True)
class Anchor:
    """Where the Hessian was measured."""

    theta: Array  # (m,)
    factor: Factor
    inverse: Array | None  # (m, m) H₀⁻¹; None where H₀ is singular

    @classmethod
    def at(cls, theta: Array, H: Array) -> Anchor:
        found = factor(H)
        inverse = None
        if found.cholesky is not None:
            with np.errstate(over="ignore", invalid="ignore"):  # no curvature left: nothing is proved
                inverse = found.solve(np.eye(len(H)))
        return cls(theta, found, inverse if inverse is not None and np.isfinite(inverse).all() else None)

    def decrement(self, g: Array) -> float:
        """g·H₀⁻¹g, twice what a Newton step from here promises."""
        return max(0.0, float(g @ self.factor.solve(g)))

    def box(self, most: Array) -> float:
        """A bound on max z·H₀⁻¹z from the largest |z| of each column (m,)."""
        if self.inverse is None:
            return np.inf
        with np.errstate(over="ignore"):
            return float(most @ np.abs(self.inverse) @ most)

    @property
    def root(self) -> Array | None:
        """W (m, m) with |Wᵀz|² = z·H₀⁻¹z."""
        return None if self.inverse is None else np.linalg.cholesky(self.inverse)

    def gap(self, g: Array, R: float, away: float, reach: float) -> float:
        """The bound above, infinity where it does not apply; `away` is max |z·(θ - θ₀)|, `reach` max z·H₀⁻¹z."""
        grown = np.exp(min(R * away, 50.0))
        c = R * np.sqrt(grown * reach) if R > 0 else 0.0  # a quadratic has no third derivative
        return concordant_gap(np.sqrt(grown * self.decrement(g)), c) if self.inverse is not None else np.inf


def concordant_gap(nu: float, c: float) -> float:
    """(νc + (1 - νc) log(1 - νc)) / c², or infinity where νc is not safely below 1.

    >>> round(concordant_gap(0.5, 1.0), 6), concordant_gap(2.0, 1.0), float(concordant_gap(2.0, 0.0))
    (0.153426, inf, 2.0)
    """
    t = nu * c
    if not t <= SAFE:
        return np.inf
    return 0.5 * nu**2 * (1 + t) if t < 1e-4 else float((t + (1 - t) * np.log1p(-t)) / c**2)


@dataclass(frozen=True)
class Largest:
    """Numbers whose `+` is the maximum."""

    value: Any

    def __add__(self, other: Largest) -> Largest:
        return Largest(np.maximum(self.value, other.value))


class Reach(NamedTuple):
    """What a pass is asked to measure of the rows, for the proof."""

    theta: Array | None = None  # θ₀
    root: Array | None = None  # see Anchor.root
    extent: bool = False  # the largest |z| of each column


@dataclass(frozen=True)
class Reached(Sums):
    """The answers, 0 where not asked for."""

    away: Largest  # max |z·(θ - θ₀)|
    reach: Largest  # max z·H₀⁻¹z
    extent: Largest  # (m,)


class Proof:
    """The state of a proof along a loop: what to ask of the next pass, and what follows from its answers."""

    def __init__(self, R: float, anchor: Anchor | None = None) -> None:
        self.R, self.anchor = R, anchor
        self.most: Array | None = None
        self.reach = np.inf  # for the anchor

    @property
    def asks(self) -> Reach:
        """Before there is a Hessian, the extent of the rows, which bounds their reach in its norm; then the reach."""
        if self.anchor is None:
            return Reach(extent=True)
        return Reach(self.anchor.theta, self.anchor.root if np.isinf(self.reach) else None)

    def learn(self, theta: Array, found: Reached, hessian: Array | None) -> float:
        """Take a pass's answers and its Hessian, if it has one; max |z·(θ - θ₀)| for the anchor that then holds."""
        if np.ndim(found.extent.value):
            self.most = found.extent.value
        if hessian is not None:
            self.anchor = Anchor.at(theta, hessian)
            self.reach = np.inf if self.most is None else self.anchor.box(self.most)
            return 0.0
        if found.reach.value > 0:
            self.reach = float(found.reach.value)
        return float(found.away.value)

    def gap(self, g: Array, away: float) -> float:
        assert self.anchor is not None
        return self.anchor.gap(g, self.R, away, self.reach)
