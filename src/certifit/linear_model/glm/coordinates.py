"""Coordinates in which a linear model is solved: shifted, without collinear columns, orthogonal where that is needed.

    η = θ·z,   z = ((x - shift)/scale, 1) without collinear columns, times R⁻¹ where columns are nearly collinear

Without a penalty any such change of coordinates is exact. R is the triangular factor of the rows, so the new columns
are nearly orthonormal and Newton's equations well conditioned, however badly the given ones are: that is what makes
least squares backward stable here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.linalg import qr, solve_triangular

from certifit.exceptions import DataError
from certifit.linear_model.glm.shortest import ShortestCoefficients, shortest_coefficients
from certifit.linear_model.linear_rows import row_shift, sandwich, shift_rows
from certifit.numerics.factor import factor
from certifit.numerics.moments import Triangle, block_triangle
from certifit.rows import Array, ArrayRows, Block, Matrix, Rows


@dataclass(frozen=True)
class GlmCoordinates:
    """The coordinates z in which θ is sought."""

    intercept: bool
    shift: Array | None = None  # (d,)
    scale: Array | None = None  # (d,) powers of two, where squares would over- or underflow; None: 1
    kept: Array | None = None  # (m,) numbers of the columns of (x, 1) in use; None: all
    R: Array | None = None  # (m, m) upper triangular; None: no rotation
    shortest: ShortestCoefficients | None = None  # None: columns that are not kept have the coefficient 0

    @property
    def appends_one(self) -> bool:
        """Whether the rows below lack a last column of ones that θ has an entry for."""
        return self.intercept and self.kept is None

    def rows(self, X: Matrix) -> Matrix:
        """Rows X (rows, d) in these coordinates, without the column of ones where `appends_one`."""
        Z = shift_rows(X, self.shift)
        if self.scale is not None:
            Z = Z / self.scale if isinstance(Z, np.ndarray) else _divided(Z, self.scale)
        if self.kept is None:
            return Z
        Z = Z.toarray() if not isinstance(Z, np.ndarray) else Z
        if self.intercept:
            Z = np.column_stack([Z, np.ones(len(Z))])
        Z = Z[:, self.kept]
        return Z if self.R is None else np.ascontiguousarray(solve_triangular(self.R, Z.T, trans="T").T)

    def turned(self, R: Array) -> GlmCoordinates:
        """The coordinates R⁻ᵀ z (m,), in which rows with the triangular factor R (m, m) are orthonormal."""
        kept = np.arange(len(R)) if self.kept is None else self.kept
        return replace(self, kept=kept, R=R if self.R is None else R @ self.R)

    def size(self, d: int) -> int:
        """Number of parameters."""
        return d + self.intercept if self.kept is None else len(self.kept)

    def left_out(self, d: int) -> Array:
        """Numbers of the columns that are combinations of others and have no coefficient."""
        return np.zeros(0, int) if self.kept is None else np.setdiff1d(np.arange(d), self.kept)

    def coefficients(self, theta: Array, d: int) -> tuple[Array, float]:
        """θ as coefficients (d,) of the given columns, those of columns left out too, and the intercept."""
        full = self._full(theta[:, None], d)[:, 0]
        if self.intercept and self.shift is not None:
            # The intercept belongs to the coefficients as they are stored: far from 0 the two cancel.
            free = replace(self, shift=None)._full(theta[:, None], d)[d, 0]
            with np.errstate(over="ignore", invalid="ignore"):
                full[d] = np.longdouble(free) - (np.asarray(full[:d], dtype=np.longdouble) * self.shift).sum()
        if not np.isfinite(full).all():
            raise DataError(
                got="columns so small that their coefficients are too large for a number",
                wanted="columns whose coefficients stay finite",
                fix="Rescale the columns, for instance to unit variance.",
            )
        return full[:d], float(full[d]) if self.intercept else 0.0

    def covariance(self, C: Array, d: int) -> Array:
        """A covariance of θ as one of (coefficients, intercept) (d1, d1); NaN for those that are not determined."""
        out = self._full(self._full(C, d).T, d)
        if self.kept is not None:
            lost = self.undetermined(d)
            out[lost] = out[:, lost] = np.nan
        return out

    def undetermined(self, d: int) -> Array:
        """Numbers of the coefficients, d for the intercept, that have no standard error.

        They are those of columns left out and, where the shortest coefficients are taken, of all columns of which
        these are combinations: other coefficients give the same scores.
        """
        if self.shortest is None or self.kept is None:
            return self.left_out(d)
        unknown = ~self.shortest.determined
        if self.intercept and self.shift is not None:
            # The intercept of the columns as they are is that of the shifted ones, less what the shifts come to.
            moving = self.shortest.directions
            slopes = moving[:d] if self.scale is None else moving[:d] / self.scale[:, None]
            terms = np.vstack([moving[d], -self.shift[:, None] * slopes])
            unknown[d] = (np.abs(terms.sum(axis=0)) > 1e-9 * np.abs(terms).sum(axis=0)).any()
        return np.flatnonzero(unknown)

    def theta(self, coef: Array, intercept: float) -> Array:
        """The parameters of these coefficients."""
        if self.intercept and self.shift is not None:
            # Far from 0 the two cancel.
            far = np.asarray(coef, dtype=np.longdouble) * self.shift
            intercept = float(np.longdouble(intercept) + far.sum())
        if self.scale is not None:
            coef = coef * self.scale
        if self.intercept:
            coef = np.append(coef, intercept)
        if self.shortest is not None:
            coef = self.shortest.gather(coef)
        elif self.kept is not None:
            coef = coef[self.kept]
        return coef if self.R is None else self.R @ coef

    def pull(self, g: Array, d: int) -> Array:
        """A gradient in (coefficients, intercept) (d1,) as one in θ (m,)."""
        g = g.copy()
        if self.intercept and self.shift is not None:
            g[:d] -= self.shift * g[d]
        if self.scale is not None:
            g[:d] /= self.scale
        if self.kept is not None:
            g = g[self.kept]
        return g if self.R is None else solve_triangular(self.R, g, trans="T")

    def to_columns(self, d: int) -> Array:
        """The matrix (d1, m) from θ to coefficients and intercept."""
        return self._full(np.eye(self.size(d)), d)

    def _full(self, A: Array, d: int) -> Array:
        """Columns of A (m, c), each a θ, as columns of coefficients and intercept (d1, c)."""
        if self.R is not None:
            A = solve_triangular(self.R, A)
        if self.shortest is not None:
            A = self.shortest.expand @ A
        elif self.kept is not None:
            full = np.zeros((d + self.intercept, A.shape[1]))
            full[self.kept] = A
            A = full
        else:
            A = A.copy()
        if self.scale is not None:
            with np.errstate(over="ignore", invalid="ignore"):  # callers look at the result
                A[:d] /= self.scale[:, None]
        if self.intercept and self.shift is not None:
            with np.errstate(over="ignore", invalid="ignore"):
                A[d] -= self.shift @ A[:d]
        return A


def choose_coordinates(
    rows: Rows, sample: ArrayRows, intercept: bool, penalised: bool, shortest: bool = False
) -> GlmCoordinates:
    """Choose coordinates for these rows: the sample tells whether columns may be collinear, then all rows decide.

    `shortest` asks for the shortest coefficients where columns are combinations of others, and not for coefficients
    of 0.
    """
    shift = row_shift(sample.X, sample.w) if intercept else None
    if penalised:
        return GlmCoordinates(intercept, shift)
    plain = GlmCoordinates(intercept, shift, _scale(shift_rows(sample.X, shift)))
    if _well_conditioned(plain, sample):
        return plain
    R = rows.sum(partial(triangle_of, plain)).R
    kept = independent_columns(R, intercept)
    if len(kept) == R.shape[1] and _condition(R) < 1e4:
        return plain  # the sample alone was short of rows
    triangle = qr(R[:, kept], mode="r")[0][: len(kept)]
    if not shortest or len(kept) == R.shape[1]:
        return replace(plain, kept=kept, R=triangle)
    return replace(plain, kept=kept, R=triangle, shortest=shortest_coefficients(R, kept, intercept, plain.scale))


def _scale(Z: Matrix, largest: float = 1e100) -> Array | None:
    """Powers of two that bring columns near 1, if any is beyond `largest` or below its inverse; None if none is."""
    most = np.asarray(
        abs(Z).max(axis=0).toarray() if not isinstance(Z, np.ndarray) else np.abs(Z).max(axis=0)
    ).ravel()
    seen = most[most > 0]
    if not len(seen) or (seen.max() < largest and seen.min() > 1 / largest):
        return None
    return np.exp2(np.floor(np.log2(np.where(most > 0, most, 1.0))))


def _divided(Z: Matrix, scale: Array) -> Matrix:
    """CSR rows with each column divided by its scale, whose inverse may be too large for a number."""
    Z = Z.astype(np.float64)
    Z.data /= scale[Z.indices]
    return Z


def _well_conditioned(coordinates: GlmCoordinates, sample: ArrayRows, least_pivot: float = 1e-4) -> bool:
    Z = coordinates.rows(sample.X)
    G = sandwich(Z, sample.w, coordinates.appends_one)
    if not (np.isfinite(G).all() and (np.diag(G) > 0).all()):
        return False
    found = factor(G).cholesky
    # A covariance is the inverse of such a matrix: with smaller pivots it would lose most of its digits.
    return found is not None and bool(np.diag(found[0]).min() > least_pivot)


def triangle_of(coordinates: GlmCoordinates, block: Block) -> Triangle:
    """The triangular factor of a block's weighted rows, the column of ones last where there is one."""
    Z = coordinates.rows(block.X)
    Z = Z if isinstance(Z, np.ndarray) else Z.toarray()
    return block_triangle(np.column_stack([Z, np.ones(len(Z))]) if coordinates.appends_one else Z, block.w)


def _condition(R: Array) -> float:
    values = np.linalg.svd(R / np.linalg.norm(R, axis=0), compute_uv=False)
    return float(values[0] / values[-1]) if values[-1] > 0 else np.inf


def independent_columns(R: Array, intercept: bool) -> Array:
    """Numbers of columns that are not combinations of those before them; the intercept counts as the very first.

    R is the triangular factor of the rows, the column of ones last where there is one.
    """
    order = np.roll(np.arange(R.shape[1]), 1) if intercept else np.arange(R.shape[1])
    size = np.linalg.norm(R, axis=0)
    scaled = R / np.where(size > 0, size, 1.0)
    kept: list[int] = []
    basis = np.zeros((len(R), 0))
    limit = 16 * max(R.shape) * np.finfo(float).eps
    for j in order:
        rest = scaled[:, j].copy()
        for _ in range(2):  # twice is enough (Kahan)
            rest -= basis @ (basis.T @ rest)
        length = float(np.linalg.norm(rest))
        if length > limit:
            kept.append(int(j))
            basis = np.column_stack([basis, rest / length])
    return np.sort(np.array(kept, dtype=int))
