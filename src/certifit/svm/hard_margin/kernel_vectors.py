"""Rows as vectors of a space, for `nearest_points`: as they are, or by the kernel values between them."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve, lapack, qr, qr_multiply, solve_triangular

from certifit.checkers.plain.blocks import dense
from certifit.rows import Array
from certifit.rows.block import Matrix
from certifit.svm.kernel.gram import KernelCache
from certifit.svm.kernel.kernels import squared_lengths
from certifit.svm.kernel.smo_loops import add_rows

EPS = float(np.finfo(float).eps)
ROUNDING = 16 * EPS  # in z, or in kernel values, relative to the size of the rows
CLEAR = 1e-2  # squared distance of the hulls, relative to the size of the rows, next to which rounding is nothing


class Vectors:
    """Rows in the space of their columns: distances are good to rounding."""

    def __init__(self, X: Matrix) -> None:
        # (n, d): an offset neither matters nor cancels; sparse rows are where their zeros are
        self.X = X.astype(np.float64) if sparse.issparse(X) else X - X.mean(axis=0, dtype=np.float64)
        self.size = float(np.sqrt(squared_lengths(self.X).max()))

    def values(self, rows: Array, coef: Array) -> tuple[Array, float]:
        z = self.direction(rows, coef)
        return self.X @ z, float(z @ z)

    def direction(self, rows: Array, coef: Array) -> Array:
        """Σ coef x, less what rounding has left of it along the differences within a class.

        There is nothing else of it at nearest points of affine hulls. Next to a small margin it would tip the plane.
        """
        V = dense(self.X[rows])
        z = coef @ V
        if z @ z > CLEAR * self.size**2:
            return z
        sides = V[coef > 0], V[coef < 0]
        differences = np.concatenate([side[1:] - side[0] for side in sides])
        if not len(differences):
            return z
        Q, R, _ = qr(differences.T, mode="economic", pivoting=True)
        Q = Q[:, np.abs(R.diagonal()) > ROUNDING * self.size]  # without directions made of rounding
        return np.asarray(z - Q @ (Q.T @ z))

    def face(self, rows: Array, sign: Array) -> VectorFace:
        return VectorFace(sign[:, None] * dense(self.X[rows]))

    def rounding(self, square: float) -> float:
        error = ROUNDING * self.size  # of z
        return error * max(2 * float(np.sqrt(square)), error)


class VectorFace:
    """Some of these rows, with their signs."""

    def __init__(self, V: Array) -> None:
        self.V = V  # (m, d)

    def values(self, share: Array) -> Array:
        return self.V @ (share @ self.V)

    def steepest(self, ends: Array, others: Array, base: Array) -> Array:
        V = self.V
        # by orthogonal factors: inner products of the differences would lose half of the digits
        z, R, order = qr_multiply((V[others] - V[base]).T, -V[ends].sum(axis=0), mode="right", pivoting=True)
        size = np.abs(R.diagonal())
        rank = int(np.count_nonzero(size > EPS * max(R.shape) * size.max()))
        mu = np.zeros(len(others))
        mu[order[:rank]] = solve_triangular(R[:rank, :rank], z[:rank])
        return mu


class KernelSpace:
    """Rows in the space of a kernel, known by its values; `ridge` (n,) gives every row a direction of its own."""

    def __init__(self, cache: KernelCache, ridge: Array) -> None:
        self.cache, self.ridge = cache, ridge
        self.size = 0.0  # largest k(x, x) of the rows met

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
        return ROUNDING * self.size

    def _parts(self, rows: Array) -> list[slice]:
        room = len(self.cache.kept)
        return [slice(i, i + room) for i in range(0, len(rows), room)]


class KernelFace:
    """Some of these rows, with their signs, by their inner products."""

    def __init__(self, G: Array) -> None:
        self.G = G  # (m, m)

    def values(self, share: Array) -> Array:
        return self.G @ share

    def steepest(self, ends: Array, others: Array, base: Array) -> Array:
        side = (base == ends[1]).astype(np.int64)
        H = self.G[np.ix_(others, others)]
        H -= self.G[np.ix_(ends, others)][side]  # inner products of the differences with others,
        D = self.G[np.ix_(others, ends)] - self.G[np.ix_(ends, ends)][side]  # with the ends,
        H -= D[:, side]  # and with one another
        g = D.sum(axis=1)
        try:
            return np.asarray(cho_solve(cho_factor(H.T, check_finite=False), -g, check_finite=False))
        except LinAlgError:  # rows that depend on one another, to rounding
            return _independent(H, g)


def _independent(H: Array, g: Array) -> Array:
    """μ with H μ = -g, of rows that do not depend on one another; 0 for the others."""
    L, order, rank, _ = lapack.dpstrf(H.T, lower=1)
    order = order[:rank] - 1
    mu = np.zeros(len(g))
    mu[order] = cho_solve((L[:rank, :rank], True), -g[order])
    return mu
