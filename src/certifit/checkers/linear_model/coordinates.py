"""Coordinates z = ((x - m) / scale, 1) in which a checker's products neither cancel nor over- or underflow.

A free intercept absorbs any shift m of the columns exactly; without an intercept m is 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from certifit.checkers.plain.blocks import dense
from certifit.core import Check
from certifit.rows import Array, Block, Largest, Rows, Sums


@dataclass(frozen=True)
class CheckedColumnMoments(Sums):
    """Weighted sums of the columns about one of the rows."""

    weight: float
    x: Array  # (d,) Σ w (x - origin)
    xx: Array  # (d,) Σ w (x - origin)²


def _column_moments(origin: Array, block: Block) -> CheckedColumnMoments:
    Z = dense(block.X) - origin
    with np.errstate(over="ignore"):  # a column whose squares overflow is not centred
        return CheckedColumnMoments(block.w.sum(), block.w @ Z, block.w @ Z**2)


def centre(rows: Rows) -> Array:
    """Weighted means (d,) of the columns that lie far from 0 for their spread, 0 for the others."""
    origin = dense(next(iter(rows)).X[:1])[0]
    s = rows.sum(partial(_column_moments, origin))
    with np.errstate(over="ignore", invalid="ignore"):
        delta = s.x / s.weight
        mean, variance = origin + delta, s.xx / s.weight - delta**2
        return np.where(mean**2 > 64 * variance, mean, 0.0)


def no_intercept(b: Array) -> Check:
    """The check that a model without an intercept has none."""
    return Check("intercept, which must be 0", float(np.abs(b).max()), 0.0)


class ScaledCoordinates(NamedTuple):
    """The coordinates z = ((x - m) / scale, 1), of the columns in use; with a triangular factor R, z = R⁻ᵀ of those.

    Without a penalty any such change is exact. R is the factor of the rows, so that the new columns are nearly
    orthonormal, however nearly collinear the given ones are.
    """

    m: Array  # (d,)
    scale: Array  # (d,)
    intercept: bool  # whether z ends with a 1
    kept: Array | None = None  # numbers of the columns of z in use; None: all
    triangle: Array | None = None  # R of the columns in use; None: the identity

    def rows(self, block: Block) -> Array:
        """The rows of a block in these coordinates (rows, d1)."""
        return self.scaled(dense(block.X) - self.m)

    def scaled(self, Z: Array) -> Array:
        """Rows (rows, d) that are already centred, in these coordinates (rows, d1)."""
        Z = Z / self.scale
        Z = np.column_stack([Z, np.ones(len(Z))]) if self.intercept else Z
        Z = Z if self.kept is None else Z[:, self.kept]
        return Z if self.triangle is None else solve_triangular(self.triangle, Z.T, trans="T").T

    @property
    def row_error(self) -> float:
        """How far rounding may move a row in these coordinates, as a share of its length."""
        if self.triangle is None:
            return 4 * float(np.finfo(float).eps)
        size = np.linalg.norm(self.triangle, axis=0)
        if not (size > 0).all():
            return np.inf
        values = np.linalg.svd(self.triangle / size, compute_uv=False)
        return float(4 * len(size) * np.finfo(float).eps * values[0] / values[-1]) if values[-1] > 0 else np.inf

    @property
    def to_columns(self) -> Array:
        """The matrix (d + intercept, m) that takes θ to (β, b)."""
        d = len(self.scale)
        J = np.zeros((d + self.intercept, d + self.intercept))
        J[np.arange(d), np.arange(d)] = 1 / self.scale
        if self.intercept:
            J[d, :d], J[d, d] = -self.m / self.scale, 1.0
        J = J if self.kept is None else J[:, self.kept]
        return J if self.triangle is None else solve_triangular(self.triangle, J.T, trans="T").T

    def parameter_error(self, inverse: Array, distance: float) -> Array:
        """How far each of (β, b) can be from the minimiser (d1,), where θ is no further than `distance` in H's norm.

        `inverse` is H⁻¹ (m, m) in these coordinates: |aᵀ(θ - θ*)| <= sqrt(aᵀH⁻¹a) |θ - θ*|_H for every direction a.
        Columns that are not in use have no error: their coefficients are 0 by definition.
        """
        J = self.to_columns
        return distance * np.sqrt(np.maximum(np.einsum("ij,jl,il->i", J, inverse, J), 0.0))


def scaled_coordinates(rows: Rows, intercept: bool) -> ScaledCoordinates:
    """Coordinates in which every entry of every row with a positive weight is at most 1 in size."""
    m = centre(rows) if intercept else np.zeros(rows.n_features)
    extent = rows.sum(partial(_largest_extent, m)).value
    return ScaledCoordinates(m, np.where(extent > 0, extent, 1.0), intercept)


def _largest_extent(m: Array, block: Block) -> Largest:
    return Largest(np.abs(dense(block.X)[block.w > 0] - m).max(axis=0, initial=0.0))
