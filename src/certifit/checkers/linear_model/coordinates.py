"""Coordinates z = ((x - m) / scale, 1) in which a checker's products neither cancel nor over- or underflow.

A free intercept absorbs any shift m of the columns exactly; without an intercept m is 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import solve_triangular

from certifit.checkers.plain.blocks import dense, float_rows, is_wide
from certifit.core import Check
from certifit.rows import Array, Block, Largest, Rows, Sums


@dataclass(frozen=True)
class CheckedColumnMoments(Sums):
    """Weighted sums of the columns about one of the rows."""

    weight: float
    x: Array  # (d,) Σ w (x - origin)
    xx: Array  # (d,) Σ w (x - origin)²
    most: Largest  # (2, d) the largest x and the largest -x of the rows with a positive weight

    def centre(self, origin: Array) -> Array:
        """Means (d,) of the columns that lie far from 0 for their spread, 0 for the others."""
        with np.errstate(over="ignore", invalid="ignore"):
            delta = self.x / self.weight
            mean, variance = origin + delta, self.xx / self.weight - delta**2
            width = self.most.value[0] + self.most.value[1]  # at least twice the spread: squares may overflow
            return np.where((mean**2 > 64 * variance) | (np.abs(mean) > 4 * width), mean, 0.0)

    def extent(self, m: Array) -> Array:
        """The largest |x - m| of each column (d,); rounding of a difference is monotone."""
        extent = np.maximum(self.most.value[0] - m, self.most.value[1] + m)
        return np.where(np.isfinite(extent), extent, 0.0) if self.weight == 0 else extent

    def squares(self, m: Array, origin: Array, scale: Array) -> Array:
        """At least Σ w ((x - m) / scale)² of each column (d,), whose terms are at most w."""
        with np.errstate(over="ignore", invalid="ignore"):
            far = m - origin
            terms = self.xx, np.abs(2 * far * self.x), far**2 * self.weight
            about = self.xx - 2 * far * self.x + terms[2] + 1e-10 * np.sum(terms, axis=0)
            found = np.sqrt(np.maximum(about, 0.0)) / scale * (1 + 1e-12)
            known = (found**2 < self.weight) & (scale > 1e-100)  # smaller squares underflow
            return np.where(known, found**2, self.weight)


def column_moments(origin: Array, block: Block) -> CheckedColumnMoments:
    """Sum a block's part; wide CSR rows are summed about 0."""
    X = float_rows(block.X)
    if sparse.issparse(X):
        return _sparse_moments(X, block.w)
    inside = X if block.w.all() else X[block.w > 0]
    most = np.array([inside.max(axis=0, initial=-np.inf), -inside.min(axis=0, initial=np.inf)])
    Z = X - origin
    with np.errstate(over="ignore"):  # a column whose squares overflow is not centred
        first = block.w @ Z
        return CheckedColumnMoments(block.w.sum(), first, block.w @ np.square(Z, out=Z), Largest(most))


def _sparse_moments(X: Any, w: Array) -> CheckedColumnMoments:
    inside = X[w > 0]
    most = np.full((2, X.shape[1]), -np.inf)
    if inside.shape[0]:
        most = np.array([inside.max(axis=0).toarray().ravel(), -inside.min(axis=0).toarray().ravel()])
    with np.errstate(over="ignore"):
        return CheckedColumnMoments(w.sum(), w @ X, w @ X.multiply(X), Largest(most))


def centre(rows: Rows) -> Array:
    """Weighted means (d,) of the columns that lie far from 0 for their spread, 0 for the others."""
    origin = origin_of(rows, intercept=True)
    return rows.sum(partial(column_moments, origin)).centre(origin)


def less(X: Any, m: Array) -> Any:
    """X - m, not a copy where m is 0; CSR rows stay so, since m is not 0 only where hardly an entry is 0."""
    if not m.any():
        return X
    if not sparse.issparse(X):
        return X - m
    n, full = X.shape[0], np.flatnonzero(m)
    taken = np.tile(m[full], n), np.tile(full, n), len(full) * np.arange(n + 1)
    return X - type(X)(taken, shape=X.shape)


def no_intercept(b: Array) -> Check:
    """The check that a model without an intercept has none."""
    return Check("intercept, which must be 0", float(np.abs(b).max()), 0.0)


def zero_column_checks(beta: Array, coordinates: ScaledCoordinates, rounding: float = 1e-6) -> tuple[Check, ...]:
    """The check that penalised coefficients β (k, d) of columns of zeros are 0, where there are such columns.

    No score tells them, and a penalty next to 0 leaves them within any tolerance of the objective.
    """
    if coordinates.squares is None:
        return ()
    empty = (coordinates.squares[: beta.shape[1]] == 0) & (coordinates.m == 0)
    if not empty.any():
        return ()
    size = np.abs(beta)
    limit = rounding * float(size.max())
    return (Check("coefficients of columns of zeros, which must be 0", float(size[:, empty].max()), limit),)


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
    squares: Array | None = None  # (d1,) at least Σ w z² of every z, with the row weights; None where unknown

    @property
    def plain(self) -> bool:
        """Whether every z is at most 1 in size, since it is a column or the 1."""
        return self.triangle is None

    def centred(self, block: Block) -> Array:
        """The rows of a block less m (rows, d); not a copy where nothing changes."""
        return less(dense(block.X), self.m)

    def rows(self, block: Block) -> Array:
        """The rows of a block in these coordinates (rows, d1)."""
        return self.scaled(self.centred(block))

    def without(self, kept: Array) -> ScaledCoordinates:
        """The same with these of the columns of z alone."""
        numbers = kept if self.kept is None else self.kept[kept]
        return self._replace(kept=numbers, squares=None if self.squares is None else self.squares[kept])

    def scaled(self, Z: Any) -> Any:
        """Rows (rows, d) that are already centred, in these coordinates (rows, d1): always a new array."""
        n, d = Z.shape
        if sparse.issparse(Z):  # wide rows are used as they are: no Hessian is formed of so many columns
            part = type(Z)((Z.data / self.scale[Z.indices], Z.indices, Z.indptr), shape=Z.shape)
            return sparse.hstack([part, np.ones((n, 1))], format="csr") if self.intercept else part
        out = np.empty((n, d + self.intercept), dtype=Z.dtype)
        np.divide(Z, self.scale, out=out[:, :d])
        out[:, d:] = 1.0
        out = out if self.kept is None else out[:, self.kept]
        return out if self.triangle is None else solve_triangular(self.triangle, out.T, trans="T").T

    @property
    def row_error(self) -> float:
        """How far rounding may move a row in these coordinates, as a share of its length."""
        if self.triangle is None or not len(self.triangle):  # without columns there is nothing to move
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
        return error_of(self.to_columns, inverse, distance)


def error_of(J: Array, inverse: Array, distance: float) -> Array:
    """How far each of J θ (d1,) can be from J θ*, where θ is no further than `distance` in H's norm."""
    unit = np.abs(J).max(axis=1, initial=0.0, keepdims=True)  # squares of what is left are numbers
    unit[unit == 0] = 1.0
    J = J / unit
    return distance * unit[:, 0] * np.sqrt(np.maximum(np.einsum("ij,ij->i", J @ inverse, J), 0.0))


def origin_of(rows: Rows, intercept: bool) -> Array:
    """Where columns (d,) are summed about: the first row, or 0 without an intercept and for wide CSR rows."""
    if not intercept:
        return np.zeros(rows.n_features)
    first = next(iter(rows)).X[:1]
    return np.zeros(rows.n_features) if is_wide(first) else dense(first)[0]


def scaled_coordinates(rows: Rows, intercept: bool) -> ScaledCoordinates:
    """Coordinates in which every entry of every row with a positive weight is at most 1 in size."""
    origin = origin_of(rows, intercept)
    return coordinates_from(rows.sum(partial(column_moments, origin)), origin, intercept)


def coordinates_from(s: CheckedColumnMoments, origin: Array, intercept: bool) -> ScaledCoordinates:
    """The same from what the columns sum up to."""
    m = s.centre(origin) if intercept else origin
    extent = s.extent(m)
    scale = np.where(extent > 0, extent, 1.0)
    squares = s.squares(m, origin, scale)
    return ScaledCoordinates(m, scale, intercept, squares=np.append(squares, s.weight) if intercept else squares)
