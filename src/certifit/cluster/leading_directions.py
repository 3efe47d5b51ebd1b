"""Wide rows seen in a few leading directions, in which most of what tells centres apart lies.

Centres are means of many rows, and means vary little outside the directions in which the rows vary most. With
z = (inside, outside) for a scaled row and c likewise for a centre, z·c = inside·inside + outside·outside, and the
Cauchy-Schwarz inequality bounds the second product by the two lengths. A comparison in p directions therefore says
which centre is the nearest, unless two are so close that these lengths leave a doubt. Each row's p coordinates, its
*sketch*, are computed once and serve all passes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from certifit.checkers.cluster.spectral_bound import principal_directions
from certifit.cluster.exact_sums import power_of_two
from certifit.cluster.lloyd_loops import EPS, square_distances
from certifit.rows import Array, Rows


class LeadingDirections(NamedTuple):
    """A few directions in which wide rows vary most, for rows scaled to (x - shift) * scale."""

    V: Array  # (d, p) orthonormal columns
    shift: Array  # (d,) near the rows' mean, exact in float32
    scale: float  # a power of two

    @property
    def error(self) -> float:
        """How far float32 moves a projection at most, relative to the row's length."""
        d, p = self.V.shape
        return float(np.sqrt(p) * (d + 8) * 2.0**-24)


def direction_count(k: int) -> int:
    """Return how many directions hold most of what k centres differ in."""
    return max(32, 4 * k)


def is_wide(d: int, k: int) -> bool:
    """Whether rows of d columns have so many more than the directions that sketches save time."""
    return d >= 4 * direction_count(k)


def find_directions(rows: Rows, k: int) -> LeadingDirections | None:
    """Find leading directions from a sample of the rows; None where rows are not wide or float32 cannot hold them."""
    if not is_wide(rows.n_features, k):
        return None
    p = direction_count(k)
    X = rows.thin(max(1, rows.n_rows // (32 * p))).X
    shift = X.mean(axis=0, dtype=np.float64).astype(np.float32).astype(np.float64)
    scale = power_of_two(float(np.sqrt(((X - shift) ** 2).sum(axis=1).max())))
    if not 2.0**-40 < scale < 2.0**40:
        return None
    return LeadingDirections(principal_directions(X, shift, p), shift, scale)


def add_directions_of(centres: Array, directions: LeadingDirections) -> LeadingDirections | None:
    """Return the directions together with those of the centres (k, d) outside them; None where most is outside."""
    Z = (centres - directions.shift) * directions.scale
    over = Z - (Z @ directions.V) @ directions.V.T
    if not mostly_inside(np.sqrt((over**2).sum(axis=1).max()), np.sqrt((Z**2).sum(axis=1).max())):
        return None
    return directions._replace(V=np.linalg.qr(np.hstack([directions.V, over.T]))[0])


def mostly_inside(outside: float, longest: float) -> bool:
    """Whether so little of the centres is outside that the inside decides: true of means, not of single rows."""
    return outside <= longest / 4


class RowSketch(NamedTuple):
    """Wide rows in the leading directions, shifted and scaled."""

    Y: Array  # (n, p) float32
    length: Array  # (n,) of the whole scaled row
    rest: Array  # (n,) at least its length outside these directions


def no_sketch() -> RowSketch:
    return RowSketch(np.empty((0, 0), np.float32), np.empty(0), np.empty(0))


def sketch_rows(directions: LeadingDirections, X: Array) -> RowSketch:
    """Project rows X (n, d) on the directions and bound what is outside them."""
    n, p = len(X), directions.V.shape[1]
    Y, squares = np.empty((n, p), np.float32), np.empty((n, 1))
    V, shift = (directions.V * directions.scale).astype(np.float32), directions.shift.astype(X.dtype)
    Z = np.empty((min(n, 256), X.shape[1]), np.float32)  # so few rows that they stay in the cache
    with np.errstate(over="ignore", invalid="ignore"):
        for first in range(0, n, len(Z)):
            part = X[first : first + len(Z)]
            np.subtract(part, shift, out=Z[: len(part)], casting="same_kind")
            np.dot(Z[: len(part)], V, out=Y[first : first + len(part)])
            square_distances(part, directions.shift[None], squares[first : first + len(part)])
    length = np.sqrt(squares[:, 0]) * directions.scale
    # Rows out of float32's range are compared in float64: an infinite length makes every bound useless.
    unfit = ~(length < 2.0**60)
    Y[unfit], length[unfit] = 0.0, np.inf
    inside = np.sqrt(np.einsum("ij,ij->i", Y, Y, dtype=np.float64))
    inside = np.maximum(inside - directions.error * length, 0.0)
    rest = np.sqrt(np.maximum(length**2 * (1 + (X.shape[1] + 16) * EPS) - inside**2, 0.0))
    return RowSketch(Y, length, rest)
