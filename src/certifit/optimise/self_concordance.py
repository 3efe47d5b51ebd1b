"""How far a point is from the minimum, proved from its gradient and an earlier Hessian.

Let P be a sum of losses φ(θ·z) with |φ"'| <= R φ" plus a convex quadratic or L1 penalty, H₀ its Hessian at θ₀ (or a
smaller one), r >= R max |z·(θ - θ₀)| over the rows. Then H(θ) >= e⁻ʳ H₀, and with g the smallest subgradient at θ,
ν² = eʳ g·H₀⁻¹g and c² = eʳ R² max z·H₀⁻¹z: if νc < 1 the minimum exists and
P(θ) - min P <= (νc + (1 - νc) log(1 - νc)) / c², about ν²/2. One Hessian therefore proves many gradient-only passes.
The rows enter by one number, their *reach* max z·H₀⁻¹z: by Cauchy and Schwarz r² = R² reach |θ - θ₀|²_H₀ will do.
Reference: Bach, "Self-concordant analysis for logistic regression" (2010).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from certifit.numerics.factor import Factor, factor
from certifit.rows import Array, Largest, Sums


@dataclass(frozen=True)
class HessianPoint:
    """The point θ₀ where the Hessian H₀ was measured."""

    theta: Array  # (m,)
    H: Array  # (m, m) H₀
    factor: Factor  # of H₀

    @classmethod
    def at(cls, theta: Array, H: Array) -> HessianPoint:
        return cls(theta, H, factor(H))

    @cached_property
    def inverse(self) -> Array | None:
        """H₀⁻¹ (m, m); None where H₀ is singular."""
        if self.factor.cholesky is None:
            return None
        with np.errstate(over="ignore", invalid="ignore"):  # where no curvature is left, nothing is proved
            inverse = self.factor.inverse()
        return inverse if np.isfinite(inverse).all() else None

    def decrement(self, g: Array) -> float:
        """The squared Newton decrement g·H₀⁻¹g, twice what a Newton step from here promises."""
        return max(0.0, float(g @ self.factor.solve(g)))

    def box(self, extent: Array) -> float:
        """A bound on max z·H₀⁻¹z from the largest |z| of each column (m,)."""
        if self.inverse is None:
            return np.inf
        with np.errstate(over="ignore"):
            return float(extent @ np.abs(self.inverse) @ extent)

    @property
    def root(self) -> Array | None:
        """W (m, m) with |Wᵀz|² = z·H₀⁻¹z."""
        return None if self.inverse is None else np.linalg.cholesky(self.inverse)

    def diagonal_bound(self, loosest: float = 3.0) -> Array | None:
        """Weights s (m,) with z·H₀⁻¹z <= Σ s z² for every z; None where that can be over `loosest` times as much.

        With D = diag(H₀) and λ the smallest eigenvalue of D^(-1/2) H₀ D^(-1/2), H₀ >= λ D and so H₀⁻¹ <= D⁻¹ / λ.
        Columns that are hardly correlated have a λ near 1, and a sum of squares is measured at the speed of memory.
        """
        diagonal = np.diag(self.H)
        if self.inverse is None or not (diagonal > 0).all():
            return None
        unit = 1 / np.sqrt(diagonal)
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = self.H * unit[:, None] * unit
        if not np.isfinite(scaled).all():
            return None
        least = float(np.linalg.eigvalsh(scaled)[0]) - 16 * len(scaled) * np.finfo(float).eps
        return 1 / (least * diagonal) if least * loosest >= 1 else None

    def gap(self, theta: Array, g: Array, R: float, reach: float) -> float:
        """The bound above, infinity where it does not apply; `reach` is max z·H₀⁻¹z."""
        if self.factor.cholesky is None:
            return np.inf
        if R == 0:  # a quadratic has no third derivative
            return concordant_gap(np.sqrt(self.decrement(g)), 0.0)
        if self.inverse is None:
            return np.inf
        step = theta - self.theta
        r = R * np.sqrt(reach * max(0.0, float(step @ self.H @ step))) if step.any() else 0.0
        grown = math.exp(min(r, 50.0))
        return concordant_gap(math.sqrt(grown * self.decrement(g)), R * math.sqrt(grown * float(reach)))


def concordant_gap(nu: float, c: float, safe: float = 0.9) -> float:
    """The bound (νc + (1 - νc) log(1 - νc)) / c², or infinity where νc > `safe`.

    The bound needs νc < 1; the distance of `safe` from 1 covers rounding.

    >>> round(concordant_gap(0.5, 1.0), 6), concordant_gap(2.0, 1.0), float(concordant_gap(2.0, 0.0))
    (0.153426, inf, 2.0)
    """
    t = nu * c
    if not t <= safe:
        return np.inf
    return 0.5 * nu**2 * (1 + t) if t < 1e-4 else float((t + (1 - t) * np.log1p(-t)) / c**2)


class ReachRequest(NamedTuple):
    """What the proof asks a pass to measure of the rows."""

    root: Array | None = None  # (m, m) `HessianPoint.root`: measure the reach in its norm
    diagonal: Array | None = None  # (m,) `HessianPoint.diagonal_bound`: bound the reach by these weights of squares
    extent: bool = False  # measure the largest |z| of each column


@dataclass(frozen=True)
class RowReach(Sums):
    """What a pass measured of the rows; 0 where it was not asked for."""

    reach: Largest  # max z·H₀⁻¹z
    extent: Largest  # (m,) largest |z| of each column


class LastGradient(NamedTuple):
    """The smallest subgradient at the last point of a loop."""

    theta: Array  # (m,)
    g: Array  # (m,)


class ConcordanceProof:
    """The state of a proof along a loop: what to ask of the next pass, and what follows from the answers."""

    def __init__(self, R: float, anchor: HessianPoint | None = None, *, passing: bool = False) -> None:
        self.R, self.anchor = R, anchor
        self.passing = passing  # the anchor is replaced after the next pass, so that its reach need not be measured
        self.extent: Array | None = None  # (m,) largest |z| of each column, once it is known
        self.reach = np.inf  # for the anchor
        self.last: LastGradient | None = None  # where the last gap was asked for

    @property
    def request(self) -> ReachRequest:
        """Before there is a Hessian, the extent of the rows, which bounds their reach in any norm; then the reach."""
        if self.anchor is None:
            return ReachRequest(extent=True)
        if np.isfinite(self.reach) or self.R == 0 or self.passing:
            return ReachRequest()
        diagonal = self.anchor.diagonal_bound()
        return ReachRequest(diagonal=diagonal) if diagonal is not None else ReachRequest(self.anchor.root)

    def learn(self, theta: Array, found: RowReach, hessian: Array | None) -> None:
        """Take what a pass measured, and its Hessian, if it has one, as the new anchor."""
        if np.ndim(found.extent.value):
            self.extent = found.extent.value
        if hessian is not None:
            self.anchor, self.passing = HessianPoint.at(theta, hessian), False
            self.reach = np.inf if self.extent is None or self.R == 0 else self.anchor.box(self.extent)
        elif found.reach.value > 0:
            self.reach = float(found.reach.value)

    def factor_of(self, hessian: Array | None) -> Factor | None:
        """The factor of a Hessian (m, m), where it is the anchor's."""
        return None if self.anchor is None or self.anchor.H is not hessian else self.anchor.factor

    def gap(self, theta: Array, g: Array) -> float:
        """The proved bound on P(θ) - min P, infinity where there is none."""
        assert self.anchor is not None
        self.last = LastGradient(theta, g)
        return self.anchor.gap(theta, g, self.R, self.reach)
