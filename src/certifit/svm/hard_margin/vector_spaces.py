"""The two spaces in which nearest points are looked for: that of the columns, and that of a kernel.

Rows are vectors with their columns as entries (`ColumnSpace`: small distances keep their digits), or vectors that are
known by the kernel values between them only (`KernelSpace`). See `nearest_points` for what is asked of a space.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve, lapack, qr, qr_multiply, solve_triangular

from certifit.checkers.plain.blocks import dense
from certifit.linear_model.linear_rows import row_shift, shift_rows
from certifit.rows import Array
from certifit.rows.block import Matrix
from certifit.svm.kernel.gram import KernelCache
from certifit.svm.kernel.kernels import squared_lengths
from certifit.svm.kernel.smo_loops import add_rows


@dataclass(frozen=True)
class SpaceTuning:
    """What counts as rounding."""

    rounding: float = 16 * float(np.finfo(float).eps)  # in z, or in kernel values, relative to the size of the rows
    clear_square: float = 1e-2  # |z|² relative to the size of the rows, from which rounding in z does not matter


class ColumnSpace:
    """Rows in the space of their columns."""

    memory: None = None

    def __init__(self, X: Matrix, tuning: SpaceTuning) -> None:
        # (n, d) about their mean: a common offset does not matter and would cost digits. Of sparse rows, which stay
        # sparse, only columns are shifted that lie far from 0 and so are full anyway.
        shift = row_shift(X, np.ones(X.shape[0])) if sparse.issparse(X) else X.mean(axis=0, dtype=np.float64)
        self.X = shift_rows(X, shift).astype(np.float64)
        self.size = float(np.sqrt(squared_lengths(self.X).max()))
        self.tuning = tuning

    def values(self, rows: Array, coef: Array) -> tuple[Array, float]:
        z = self.direction(rows, coef)
        return self.X @ z, float(z @ z)

    def direction(self, rows: Array, coef: Array) -> Array:
        """Return z = Σ coef x (d,), without its part along the differences of rows within a class.

        At the nearest points of affine hulls that part is 0 but for rounding, and where the margin is small this
        rounding would tip the plane.
        """
        V = dense(self.X[rows])
        z = coef @ V
        if z @ z > self.tuning.clear_square * self.size**2:
            return z
        sides = V[coef > 0], V[coef < 0]
        differences = np.concatenate([side[1:] - side[0] for side in sides])
        if not len(differences):
            return z
        Q, R, _ = qr(differences.T, mode="economic", pivoting=True)
        Q = Q[:, np.abs(R.diagonal()) > self.tuning.rounding * self.size]  # without directions made of rounding
        return np.asarray(z - Q @ (Q.T @ z))

    def face(self, rows: Array, sign: Array) -> ColumnFace:
        return ColumnFace(sign[:, None] * dense(self.X[rows]))

    def rounding(self, square: float) -> float:
        error = self.tuning.rounding * self.size  # of z
        return error * max(2 * float(np.sqrt(square)), error)


class ColumnFace:
    """Some rows times their signs, as vectors."""

    def __init__(self, V: Array) -> None:
        self.V = V  # (m, d)

    def values(self, share: Array) -> Array:
        return self.V @ (share @ self.V)

    def steepest(self, ends: Array, others: Array, base: Array) -> Array:
        V = self.V
        # Orthogonal factors are used, since inner products of the differences would lose half of the digits.
        z, R, order = qr_multiply((V[others] - V[base]).T, -V[ends].sum(axis=0), mode="right", pivoting=True)
        size = np.abs(R.diagonal())
        rank = int(np.count_nonzero(size > float(np.finfo(float).eps) * max(R.shape) * size.max()))
        mu = np.zeros(len(others))
        mu[order[:rank]] = solve_triangular(R[:rank, :rank], z[:rank])
        return mu


class KernelSpace:
    """Rows in the space of a kernel, known by its values; `ridge` (n,) gives every row a direction of its own."""

    def __init__(self, cache: KernelCache, ridge: Array, tuning: SpaceTuning) -> None:
        self.cache, self.ridge, self.tuning = cache, ridge, tuning
        self.size = 0.0  # largest k(x, x) of the rows seen so far

    @property
    def memory(self) -> tuple[Any, ...]:
        return self.size, self.cache.memory

    @memory.setter
    def memory(self, found: tuple[Any, ...]) -> None:
        self.size, self.cache.memory = found

    def values(self, rows: Array, coef: Array) -> tuple[Array, float]:
        f = np.zeros(self.cache.gram.n)
        for part in self._parts(rows):
            slots = self.cache.fetch(rows[part])
            f = add_rows(f, self.cache.kept, slots, coef[part], 0, len(f))
            self.size = max(self.size, float(self.cache.kept[slots, rows[part]].max()))
        f[rows] += self.ridge[rows] * coef
        return f, max(0.0, float(coef @ f[rows]))

    def face(self, rows: Array, sign: Array) -> KernelFace:
        parts = [self.cache.kept[np.ix_(self.cache.fetch(rows[part]), rows)] for part in self._parts(rows)]
        G = np.concatenate(parts, dtype=np.float64)
        G *= sign
        G *= sign[:, None]
        G[np.diag_indices(len(rows))] += self.ridge[rows]
        return KernelFace(G)

    def rounding(self, square: float) -> float:
        return self.tuning.rounding * self.size

    def _parts(self, rows: Array) -> list[slice]:
        """Runs of rows for which the cache has room."""
        room = len(self.cache.kept)
        return [slice(i, i + room) for i in range(0, len(rows), room)]


class KernelFace:
    """Some rows times their signs, by their inner products."""

    def __init__(self, G: Array) -> None:
        self.G = G  # (m, m)

    def values(self, share: Array) -> Array:
        return self.G @ share

    def steepest(self, ends: Array, others: Array, base: Array) -> Array:
        side = (base == ends[1]).astype(np.int64)
        # H (o, o): inner products of the differences V[others] - V[base] with one another, D (o, 2) with the ends
        H = self.G[np.ix_(others, others)]
        H -= self.G[np.ix_(ends, others)][side]
        D = self.G[np.ix_(others, ends)] - self.G[np.ix_(ends, ends)][side]
        H -= D[:, side]
        g = D.sum(axis=1)
        try:
            return np.asarray(cho_solve(cho_factor(H.T, check_finite=False), -g, check_finite=False))
        except LinAlgError:  # rows that depend on one another, to rounding
            return _solve_independent(H, g)


def _solve_independent(H: Array, g: Array) -> Array:
    """Solve H μ = -g for rows that do not depend on one another; μ is 0 for the others."""
    L, order, rank, _ = lapack.dpstrf(H.T, lower=1)
    order = order[:rank] - 1
    mu = np.zeros(len(g))
    mu[order] = cho_solve((L[:rank, :rank], True), -g[order])
    return mu
