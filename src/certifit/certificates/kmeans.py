"""k-means re-checked from the data: every row at its nearest centre, every centre the mean of its rows, and how much
smaller the sum of squared distances could be at all.

No k centres do better than  Σ w |x - m|² - (sum of the k-1 largest eigenvalues of Σ w (x - m)(x - m)ᵀ)  (Ding & He,
K-means clustering via principal component analysis, 2004). Projecting the rows only shortens distances, so the same
bound on any orthonormal projection of them holds too; that is how very wide tables are served.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

from certifit.core import Array, Block, Certificate, Check, DataError, Rows, Sums

EPS = float(np.finfo(np.float64).eps)
WIDEST = 1024  # columns up to which the whole scatter matrix is formed
DIRECTIONS = 256  # beyond that, the number of directions projected on

BOUNDED = "sum of squared distances at most ratio times the smallest that this many centres can reach"
STATIONARY = (
    "no row is nearer to another centre, and moving centres to the means of their rows gains at most tol (relative); "
    "no lower bound above 0 is proved, so nothing is said about other clusterings"
)
PERFECT = "every row lies on a centre: no sum of squared distances is smaller than 0"


@dataclass(frozen=True)
class Measured(Sums):
    """What the centres are worth."""

    objective: float  # Σ w |x - c|²
    weight: Array  # (k,) Σ w of the rows nearest to each centre
    sums: Array  # (k, d) Σ w (x - c) over them
    wrong: float  # Σ w of rows whose label is not their nearest centre


def certify(centres: Array, labels: Array | None, tol: float, rows: Rows) -> Certificate:
    """Check centres (k, d) and, where there are some, labels (n,) on these rows."""
    C = np.asarray(centres, dtype=np.float64)
    if labels is not None and len(labels) != rows.n_rows:
        raise DataError(
            got=f"labels of {len(labels)} rows and a table of {rows.n_rows}",
            wanted="the rows that the model was fitted on",
        )
    found = rows.sum(partial(_measure, C, None if labels is None else np.asarray(labels)))
    mean = centre_of_mass(C, found.weight, found.sums)
    width = rows.n_features if rows.n_features <= WIDEST else DIRECTIONS
    bound = lower_bound(rows, mean, float(found.weight.sum()), len(C), width)
    return assemble(found, C, bound, tol, np.asarray(centres).dtype)


def centre_of_mass(C: Array, weight: Array, sums: Array) -> Array:
    """Mean of all rows (d,) from each cluster's weight and its sum about its centre."""
    return (weight @ C + sums.sum(axis=0)) / weight.sum()


def assemble(
    found: Measured, C: Array, bound: float, tol: float, dtype: Any, more: tuple[Check, ...] = ()
) -> Certificate:
    """From what was measured. `dtype` is that in which the centres are stored: their rounding is forgiven."""
    some = found.weight > 0
    gain = float(((found.sums[some] ** 2).sum(axis=1) / found.weight[some]).sum())
    eps = float(np.finfo(dtype).eps) if np.issubdtype(dtype, np.floating) else EPS
    rounding = 16 * eps**2 * float(found.weight @ (C**2).sum(axis=1)) + 1e-20 * found.objective
    relative = gain / found.objective if gain > rounding else 0.0
    perfect = found.objective == 0
    checks = (
        Check("share of rows nearer to another centre", found.wrong / float(found.weight.sum()), 0.0),
        Check("gain from moving centres to their rows' means, relative", relative, tol),
        Check("centres without rows", 0.0 if perfect else float((~some).sum()), 0.0),
        *more,
    )
    if perfect:
        return Certificate("optimal", PERFECT, 0.0, 0.0, tol, checks=checks)
    if bound <= 0:
        return Certificate("stationary", STATIONARY, found.objective, tol=tol, checks=checks)
    return Certificate("bounded", BOUNDED, found.objective, min(bound, found.objective), tol, checks=checks)


def _dense(X: Any) -> Array:
    return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)


def _measure(C: Array, labels: Array | None, block: Block) -> Measured:
    k, d = C.shape
    origin = C.mean(axis=0)
    reach = np.sqrt(((C - origin) ** 2).sum(axis=1))
    eps = float(np.finfo(block.X.dtype).eps)
    total = Measured(0.0, np.zeros(k), np.zeros((k, d)), 0.0)
    step = max(1, 2**21 // (d + k))
    for first in range(0, len(block.w), step):
        X, w = _dense(block.X[first : first + step]), block.w[first : first + step]
        D = cdist(X, C, "sqeuclidean")
        near = D.argmin(axis=1)
        every = np.arange(len(w))
        Z = X - C[near]
        member = np.zeros((len(w), k))
        member[every, near] = w
        wrong = 0.0
        if labels is not None:
            given = labels[block.start + first : block.start + first + len(w)]
            known = (given >= 0) & (given < k)
            size = np.sqrt(((X - origin) ** 2).sum(axis=1)) + reach.max()
            excess = D[every, np.where(known, given, 0)] - D[every, near]
            wrong = float(w @ (~known | (excess > 4 * (d + 8) * eps * size**2)))
        total = total + Measured(float(w @ D[every, near]), member.sum(axis=0), member.T @ Z, wrong)
    return total


# ------------------------------------------------------------------------------------------------ the lower bound
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


def lower_bound(rows: Rows, mean: Array, weight: float, k: int, width: int) -> float:
    """A number that no k centres get below, from at most `width` directions; 0 says nothing."""
    d, n = rows.n_features, rows.n_rows
    p = min(d, width)
    if k > p:
        return 0.0
    V = None if d == p else directions(rows.thin(max(1, n // (32 * p))).X, mean, p)
    return rows.sum(partial(_scatter, mean, V)).bound(k, weight, n, np.sqrt(p) * (d + 8) * EPS)


def directions(X: Any, mean: Array, p: int) -> Array:
    """Orthonormal columns (d, p) near the principal directions of these rows; the bound holds for any."""
    V = np.linalg.qr(np.random.default_rng(0).normal(size=(X.shape[1], p)))[0]
    for _ in range(3):
        Z = X @ V - mean @ V
        V = np.linalg.qr(X.T @ Z - np.outer(mean, Z.sum(axis=0)))[0]
    return V


def _scatter(mean: Array, V: Array | None, block: Block) -> Scatter:
    X = block.X
    if V is not None and sparse.issparse(X):
        squares = 2 * (np.asarray(X.multiply(X).sum(axis=1)).ravel() + mean @ mean)
        return Scatter.of(X @ V - mean @ V, block.w, squares)
    Z = _dense(X) - mean
    return Scatter.of(Z if V is None else Z @ V, block.w, (Z**2).sum(axis=1))
