"""The distance to the minimum that a gradient and a Hessian prove, and the inverse that it takes.

Along any line a self-concordant loss satisfies |f"'| <= R f", R the largest range of a row's scores per unit step.
With H the Hessian, g the gradient, ν = sqrt(g·H⁻¹g) the Newton decrement and c their *reach*, the largest row in
the norm of H⁻¹: if νc < 1 the minimum exists and  P - P* <= (νc + (1 - νc) log(1 - νc)) / c²,  about ν²/2.
The minimiser itself is then no further than  -log(1 - νc) / c  in the norm of H, about ν.
Reference: Bach, "Self-concordant analysis for logistic regression" (2010).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import qr

from certifit.checkers.linear_model.coordinates import ScaledCoordinates
from certifit.rows import Array, Block


@dataclass(frozen=True)
class NewtonBoundTuning:
    """When a Hessian is formed and when its bound is believed."""

    hessian_parameters: int = 2000  # parameters beyond which no Hessian is formed
    safe: float = 0.9  # largest νc for which the bound is used; the distance to 1 covers rounding
    near: float = 0.01  # νc up to which a smaller c would hardly make the bound better


def self_concordant_gap(nu: float, c: float) -> float:
    """The bound (νc + (1 - νc) log(1 - νc)) / c², or infinity where νc >= 1.

    >>> round(self_concordant_gap(0.5, 1.0), 6), self_concordant_gap(2.0, 1.0)
    (0.153426, inf)
    """
    t = nu * c
    if not t < 1:
        return np.inf
    if t < 1e-4:
        return 0.5 * nu**2 * (1 + t)  # the series, rounded up
    return float((t + (1 - t) * np.log1p(-t)) / c**2)


def self_concordant_distance(nu: float, c: float) -> float:
    """How far the minimiser can be, in the norm of H: -log(1 - νc) / c, or infinity where νc >= 1.

    >>> round(self_concordant_distance(0.5, 1.0), 6), self_concordant_distance(0.5, 0.0)
    (0.693147, 0.5)
    """
    t = nu * c
    if not t < 1:
        return np.inf
    return nu * (1 + t) if t < 1e-4 else float(-np.log1p(-t) / c)  # the series, rounded up


class ConditionedInverse(NamedTuple):
    """The inverse of a Hessian (m, m), and how far from singular that is."""

    inverse: Array
    smallest: float  # smallest eigenvalue of the Hessian scaled to a diagonal of ones

    def inflation(self, share: float) -> float:
        """By how much the norm of H⁻¹ may be too small where each entry of H is off by this share of its size.

        The scaled error has entries below `share`, so that it is at most (m share / smallest) of H itself.
        """
        lost = len(self.inverse) * share / self.smallest
        return float(1 / np.sqrt(1 - lost)) if lost < 1 else np.inf


def conditioned_inverse(H: Array) -> ConditionedInverse | None:
    """The inverse of a Hessian (m, m), or None where it is not positive definite beyond rounding."""
    if not (np.isfinite(H).all() and (np.diag(H) > 1e-280).all()):  # the inverse would overflow
        return None
    scale = 1 / np.sqrt(np.diag(H))
    values, vectors = np.linalg.eigh(H * scale * scale[:, None])
    if len(H) and not values[0] > 1e-11 * values[-1]:
        return None
    root = vectors / np.sqrt(values) * scale[:, None]
    return ConditionedInverse(root @ root.T, float(values.min(initial=1.0)))


def inverse_of(H: Array) -> Array | None:
    """The inverse of a Hessian (k-1, d1, k-1, d1), or None where it is not positive definite beyond rounding."""
    size = H.shape[0] * H.shape[1]
    found = conditioned_inverse(H.reshape(size, size))
    return None if found is None else found.inverse.reshape(H.shape)


@dataclass(frozen=True)
class TriangularFactor:
    """Triangular factor of some rows; `+` stacks two and factors again."""

    R: Array  # (<= d1, d1)

    def __add__(self, other: TriangularFactor) -> TriangularFactor:
        return TriangularFactor(qr(np.vstack([self.R, other.R]), mode="r")[0][: self.R.shape[1]])


def triangle_of(coordinates: ScaledCoordinates, block: Block) -> TriangularFactor:
    """The triangular factor of a block's weighted rows."""
    Z = coordinates.rows(block) * np.sqrt(block.w)[:, None]
    return TriangularFactor(qr(Z, mode="r")[0][: Z.shape[1]])


def independent(R: Array) -> Array:
    """Numbers of linearly independent columns that span all; R is the triangular factor of the rows."""
    size = np.linalg.norm(R, axis=0)
    scaled = R / np.where(size > 0, size, 1.0)
    _, triangle, order = qr(scaled, mode="economic", pivoting=True)
    pivots = np.abs(np.diag(triangle))
    rank = int((pivots > 16 * R.shape[1] * np.finfo(float).eps * pivots.max(initial=0.0)).sum())
    return np.sort(order[:rank])
