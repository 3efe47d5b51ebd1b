"""A lower bound on the k-means objective for tables of any size: a number that no k centres get below.

k centres leave at least as much as the best k-1 directions through the mean leave: the sum of the smallest d-k+1
eigenvalues of the scatter matrix (Ding & He, K-means clustering via principal component analysis, 2004). The bound
holds for projections of the rows too, since these shorten distances: wide tables are projected on fewer directions.
With k > d it is 0. Better bounds for few rows are in `semidefinite_bound`, and for a single column in `one_column`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from certifit.checkers.plain.blocks import dense
from certifit.rows import Array, Block, Rows, Sums

EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class ClusterScatter(Sums):
    """First and second moments of rows, or of their projections z on p directions."""

    first: Array  # (p,) Σ w z
    second: Array  # (p, p) Σ w z zᵀ
    squares: float  # at least Σ w |x|²

    @classmethod
    def of(cls, Z: Array, w: Array, squares: Array) -> ClusterScatter:
        """Add up projected rows Z (n, p) with weights w (n,) and squared lengths of the whole rows (n,)."""
        r = np.sqrt(w)
        Z = Z * r[:, None]
        return cls(r @ Z, Z.T @ Z, float(w @ squares))

    def bound(self, k: int, weight: float, n: int, error: float) -> float:
        """Return a number that no k centres get below; `error` is a projection's, relative to the row's length."""
        bound = spectral_bound(self.second - np.outer(self.first, self.first) / weight, k, n)
        # The root of the smallest sum of squares moves by no more than the rows do, all taken together.
        return max(0.0, float(np.sqrt(bound) - error * np.sqrt(self.squares))) ** 2


def spectral_bound(S: Array, k: int, n: int) -> float:
    """Return tr S minus the k-1 largest eigenvalues of the scatter S (p, p) of n rows, minus a bound on rounding.

    >>> bool(2.9 < spectral_bound(np.diag([5.0, 2.0, 1.0]), 2, 10) <= 3.0)
    True
    """
    rest = float(np.linalg.eigvalsh(S)[: len(S) - k + 1].sum())
    return max(0.0, rest - 16 * (len(S) + np.sqrt(n)) * EPS * float(np.trace(S)))


def scatter_bound(rows: Rows, mean: Array, weight: float, k: int, width: int) -> float:
    """Return Ding & He's bound from at most `width` directions; 0 where there is none."""
    d, n = rows.n_features, rows.n_rows
    p = min(d, width)
    if k > p:
        return 0.0
    V = None if d == p else principal_directions(rows.thin(max(1, n // (32 * p))).X, mean, p)
    return rows.sum(partial(_block_scatter, mean, V)).bound(k, weight, n, np.sqrt(p) * (d + 8) * EPS)


def principal_directions(X: Any, mean: Array, p: int) -> Array:
    """Return orthonormal columns (d, p) near the principal directions of these rows; the bound holds for any."""
    V = np.random.default_rng(0).normal(size=(X.shape[1], p)).astype(X.dtype)
    for _ in range(2):
        Z = X @ V - mean @ V
        V = np.linalg.qr(X.T @ Z - np.outer(mean, Z.sum(axis=0)))[0].astype(X.dtype)
    return np.linalg.qr(V.astype(np.float64))[0]


def _block_scatter(mean: Array, V: Array | None, block: Block) -> ClusterScatter:
    X = block.X
    if V is not None and sparse.issparse(X):
        # |x - mean|² <= 2 |x|² + 2 |mean|², without making the rows dense
        squares = 2 * (np.asarray(X.multiply(X).sum(axis=1)).ravel() + mean @ mean)
        return ClusterScatter.of(X @ V - mean @ V, block.w, squares)
    Z = dense(X) - mean
    return ClusterScatter.of(Z if V is None else Z @ V, block.w, (Z**2).sum(axis=1))
