"""Numbers that no k centres get below: lower bounds on the k-means objective, for tables of any size.

A clustering is a projection Z of rank k on the rows: with s = √w and v_a the part of s in cluster a, scaled to length
1, Z = Σ_a v_a v_aᵀ. It has no negative entries and Zs = s. With G the Gram matrix of the weighted, centred rows the
objective is tr G - <G, Z>, and for every symmetric B without negative entries, by Ky Fan's theorem,
    <G, Z> <= <G + B, Z> <= uᵀ(G + B)u + sum of the k-1 largest eigenvalues of G + B orthogonal to u = s / |s|.
- B = 0 is Ding & He's bound (K-means clustering via principal component analysis, 2004). It needs the d x d scatter
  matrix only, and holds for projections of the rows too, since these shorten distances: wide tables are served so.
  With k > d it is 0.
- Small tables get a better B, from the dual of Peng & Wei's relaxation (Approximating k-means-type clustering via
  semidefinite programming, 2007): it starts from the clustering at hand (Iguchi, Mixon, Peterson & Villar, Probably
  certifiably correct k-means clustering, 2017) and takes a few subgradient steps. Rows split into groups are bounded
  group by group: no centres serve all groups better than each group's own would.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from scipy.spatial.distance import cdist

from certifit.certificates.plain import dense
from certifit.core import Array, Block, Rows, Sums
from certifit.core.threads import single_threaded_blas

EPS = float(np.finfo(np.float64).eps)
GROUP = 256  # rows whose Gram matrix is decomposed at once


# ------------------------------------------------------------------------------------------------ large tables: B = 0
@dataclass(frozen=True)
class Scatter(Sums):
    """Of rows, or of their projections z on p directions."""

    first: Array  # (p,) Σ w z
    second: Array  # (p, p) Σ w z zᵀ
    squares: float  # at least Σ w |x|²

    @classmethod
    def of(cls, Z: Array, w: Array, squares: Array) -> Scatter:
        r = np.sqrt(w)
        Z = Z * r[:, None]
        return cls(r @ Z, Z.T @ Z, float(w @ squares))

    def bound(self, k: int, weight: float, n: int, error: float) -> float:
        """A number that no k centres get below; `error` is that of a projection, relative to the row's length."""
        bound = spectral_bound(self.second - np.outer(self.first, self.first) / weight, k, n)
        # the root of the smallest sum of squares moves by no more than the rows do, all taken together
        return max(0.0, float(np.sqrt(bound) - error * np.sqrt(self.squares))) ** 2


def spectral_bound(S: Array, k: int, n: int) -> float:
    """tr S minus the k-1 largest eigenvalues of the scatter S (p, p) of n rows, minus what rounding may have added.

    >>> bool(2.9 < spectral_bound(np.diag([5.0, 2.0, 1.0]), 2, 10) <= 3.0)
    True
    """
    rest = float(np.linalg.eigvalsh(S)[: len(S) - k + 1].sum())
    return max(0.0, rest - 16 * (len(S) + np.sqrt(n)) * EPS * float(np.trace(S)))


def scatter_bound(rows: Rows, mean: Array, weight: float, k: int, width: int) -> float:
    """Ding & He's bound from at most `width` directions; 0 says nothing."""
    d, n = rows.n_features, rows.n_rows
    p = min(d, width)
    if k > p:
        return 0.0
    V = None if d == p else directions(rows.thin(max(1, n // (32 * p))).X, mean, p)
    return rows.sum(partial(_scatter, mean, V)).bound(k, weight, n, np.sqrt(p) * (d + 8) * EPS)


def directions(X: Any, mean: Array, p: int) -> Array:
    """Orthonormal columns (d, p) near the principal directions of these rows; the bound holds for any."""
    V = np.random.default_rng(0).normal(size=(X.shape[1], p)).astype(X.dtype)
    for _ in range(2):
        Z = X @ V - mean @ V
        V = np.linalg.qr(X.T @ Z - np.outer(mean, Z.sum(axis=0)))[0].astype(X.dtype)
    return np.linalg.qr(V.astype(np.float64))[0]


def _scatter(mean: Array, V: Array | None, block: Block) -> Scatter:
    X = block.X
    if V is not None and sparse.issparse(X):
        squares = 2 * (np.asarray(X.multiply(X).sum(axis=1)).ravel() + mean @ mean)
        return Scatter.of(X @ V - mean @ V, block.w, squares)
    Z = dense(X) - mean
    return Scatter.of(Z if V is None else Z @ V, block.w, (Z**2).sum(axis=1))


# ------------------------------------------------------------------------------------------------ small tables
def gram_bound(rows: Rows, C: Array, most: int, steps: int) -> float:
    """The bound with a better B, where there are at most `most` rows; 0 says nothing."""
    if rows.n_rows > most or rows.n_rows * rows.n_features > 2**22:
        return 0.0
    data = rows.load()
    X, w = dense(data.X)[data.w > 0], data.w[data.w > 0]
    groups = -(-len(w) // GROUP)
    with single_threaded_blas():  # more threads only get in each other's way here
        return sum(_group_bound(X[g::groups], w[g::groups], C, steps) for g in range(groups))


def _group_bound(X: Array, w: Array, C: Array, steps: int) -> float:
    n, k = len(X), len(C)
    if n <= k:
        return 0.0
    mean = w @ X / w.sum()
    X, C, s = X - mean, C - mean, np.sqrt(w)
    u = s / np.linalg.norm(s)
    G = (s[:, None] * X) @ (s[:, None] * X).T
    B = _start(X, w, C)
    total, objective = float(np.trace(G)), float(w @ cdist(X, C, "sqeuclidean").min(axis=1))
    best = 0.0
    for _ in range(steps):
        M = G + B
        Mu = M @ u
        along = float(u @ Mu)
        rounding = 32 * (k + 1) * (n + X.shape[1]) * EPS * (float(np.linalg.norm(M)) + total)
        M -= np.outer(u, Mu) + np.outer(Mu, u) - along * np.outer(u, u)
        values, V = np.empty(0), np.empty((n, 0))
        if k > 1:
            values, V = eigh(M, subset_by_index=[n - k + 1, n - 1], overwrite_a=True, check_finite=False)
        value = total - along - float(values.sum()) - rounding
        best = max(best, value)
        slope = -(V @ V.T + np.outer(u, u))  # of the bound in B
        slope[(B <= 0) & (slope < 0)] = 0.0
        norm = float((slope**2).sum())
        if objective - value <= 1e-12 * objective or norm == 0:
            break
        B = np.maximum(B + (objective - value) / norm * slope, 0.0)  # Polyak's step
    return best


def _start(X: Array, w: Array, C: Array) -> Array:
    """B (n, n) that makes the clustering by these centres optimal if its clusters are far enough apart.

    With λ the largest scatter of a cluster in any direction, a row x of cluster b and another cluster a want
    Σ_j B_ij over a to be  W_a/2 (|x - c_a|² - |x - c_b|² - λ/W_a - λ/W_b); rank one does that.
    """
    n, k = len(X), len(C)
    D = cdist(X, C, "sqeuclidean")
    labels = D.argmin(axis=1)
    members = [np.flatnonzero(labels == a) for a in range(k)]
    W = np.maximum(np.bincount(labels, w, k), np.finfo(float).tiny)
    roots = np.sqrt(w)[:, None] * (X - C[labels])
    lam = 1.5 * max(float(np.linalg.norm(roots[rows], 2)) ** 2 for rows in members if len(rows))
    want = W / 2 * (D - D.min(axis=1, keepdims=True)) - lam / 2 * (1 + W / W[labels][:, None])
    want = np.maximum(want, 0.0)
    B = np.zeros((n, n))
    for a in range(k):
        for b in range(a):
            to_a, to_b = want[members[b], a], want[members[a], b]
            total = (w[members[b]] @ to_a + w[members[a]] @ to_b) / 2
            if total > 0:
                block = np.outer(np.sqrt(w[members[b]]) * to_a, np.sqrt(w[members[a]]) * to_b) / total
                B[np.ix_(members[b], members[a])] = block
                B[np.ix_(members[a], members[b])] = block.T
    return B
