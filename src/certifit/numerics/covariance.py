"""The covariance of rows as an operator: S Q in one pass over the rows, without ever forming S (d, d).

Where both sides of a table are long, S and the Gram matrix are too large to hold, but S Q for a few columns Q is a
sum over blocks. CSR rows stay sparse: the mean is subtracted from the products, not from the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from certifit.numerics.moments import check_overflow
from certifit.numerics.products import adjoint, far, scale_rows
from certifit.rows import Array, ArrayRows, Block, Matrix, Rows, Sums


@dataclass(frozen=True)
class Centre:
    """Where weighted rows lie, and how far they spread in all."""

    count: int  # rows with w > 0
    weight: float  # Σ w
    mean: Array  # (d,)
    variances: Array  # (d,) of each column, about the mean, divided by Σ w

    @property
    def total(self) -> float:
        return float(self.variances.sum())


@dataclass(frozen=True)
class _First(Sums):
    count: int
    weight: float
    x: Array  # Σ w (x - origin)  (d,)


def _first(origin: Array | None, block: Block) -> _First:
    X = block.X if origin is None else block.X - origin
    return _First(int((block.w > 0).sum()), float(block.w.sum()), np.asarray(adjoint(X, block.w), np.float64))


def _squares(mean: Array, block: Block) -> Array:
    X, w = block.X, block.w
    if not sparse.issparse(X):
        with np.errstate(over="ignore"):  # see `check_overflow`
            return w @ (X - mean) ** 2
    each, d = np.repeat(w, np.diff(X.indptr)), len(mean)
    off = np.bincount(X.indices, each * (X.data - mean[X.indices]) ** 2, d)
    return off + (w.sum() - np.bincount(X.indices, each, d)) * mean**2  # entries not stored are zeros


def centre(rows: Rows, centred: bool = True) -> Centre:
    """Mean and variances in two passes; about zero where the rows are not to be `centred`.

    >>> from certifit.rows import as_rows
    >>> centre(as_rows([[1.0, 2.0], [3.0, 2.0]])).variances
    array([1., 0.])
    """
    block = next(iter(rows))
    origin = None if sparse.issparse(block.X) else block.X[0].astype(np.float64)
    first = rows.sum(partial(_first, origin))
    mean = first.x / first.weight + (0.0 if origin is None else origin)
    mean = mean if centred else np.zeros(rows.n_features)
    variances = check_overflow(rows.sum(partial(_squares, mean))) / first.weight
    return Centre(first.count, first.weight, mean, variances)


@dataclass(frozen=True)
class _Products(Sums):
    xy: Array  # Σ w x yᵀ, y = Qᵀ (x - mean); x less the mean where rows are dense  (d, m)
    y: Array | float  # Σ w y of sparse rows  (m,)


def _products(mean: Array, Q: Array, block: Block) -> _Products:
    X, w = block.X, block.w if Q.ndim == 1 else block.w[:, None]
    if sparse.issparse(X):
        Y = w * (X @ Q - mean @ Q)
        return _Products(np.asarray(adjoint(X, Y), np.float64), Y.sum(axis=0))
    Z = X - mean.astype(X.dtype)
    return _Products(np.asarray(adjoint(Z, w.astype(X.dtype, copy=False) * (Z @ Q.astype(X.dtype))), np.float64), 0.0)


class Covariance(LinearOperator):
    """S = Σ w (x - mean)(x - mean)ᵀ / Σ w as an operator; each product is a pass over the rows."""

    def __init__(self, rows: Rows, about: Centre) -> None:
        self.rows, self.about = rows, about
        super().__init__(np.dtype(np.float64), (rows.n_features, rows.n_features))

    def _matmat(self, Q: Array) -> Array:
        found = self.rows.sum(partial(_products, self.about.mean, Q))
        out: Array = found.xy / self.about.weight
        if not np.isscalar(found.y) and self.about.mean.any():
            out -= np.multiply.outer(self.about.mean, found.y / self.about.weight)
        return out

    def _matvec(self, q: Array) -> Array:
        return self._matmat(q.ravel())

    def _adjoint(self) -> Any:
        return self


@dataclass(frozen=True)
class CentredRows:
    """Z = sqrt(w) (x - mean) of rows in memory, never formed where they are sparse and the mean is near."""

    data: ArrayRows
    about: Centre

    @property
    def apart(self) -> bool:
        """Whether rows and mean are best kept apart: sparse, and no digits are lost by subtracting products."""
        m = self.about
        return sparse.issparse(self.data.X) and not (m.mean**2 > far(self.data.dtype) ** 2 * m.variances).any()

    def dense(self) -> Array:
        X: Matrix = self.data.X
        Z = (X.toarray() if sparse.issparse(X) else X) - self.about.mean
        return np.sqrt(self.data.w)[:, None] * Z

    def gram(self) -> Array:
        """Z Zᵀ / Σ w."""
        with np.errstate(over="ignore", invalid="ignore"):
            if not self.apart:
                Z = self.dense()
                return Z @ Z.T / self.about.weight
            X = scale_rows(self.data.X.astype(np.float64), np.sqrt(self.data.w))
            Xm = X @ self.about.mean
            root = np.sqrt(self.data.w)
            cross = np.multiply.outer(Xm, root)
            inner = float(self.about.mean @ self.about.mean)
            return ((X @ X.T).toarray() - cross - cross.T + inner * np.multiply.outer(root, root)) / self.about.weight

    def times(self, V: Array) -> Array:
        """Z V."""
        if not self.apart:
            return self.dense() @ V
        return np.sqrt(self.data.w)[:, None] * (self.data.X @ V - self.about.mean @ V)

    def adjoint(self, U: Array) -> Array:
        """Zᵀ U."""
        if not self.apart:
            return self.dense().T @ U
        V = np.sqrt(self.data.w)[:, None] * U
        return self.data.X.T @ V - np.multiply.outer(self.about.mean, V.sum(axis=0))
