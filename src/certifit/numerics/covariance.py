"""The covariance of rows as an operator: products S Q take one pass over the rows, and S (d, d) is never formed.

Where a table has many rows and many columns, neither S nor the Gram matrix fits in memory, but S Q for a few columns
Q is a sum over blocks. CSR rows stay sparse: the mean is subtracted from the products, not from the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from certifit.numerics.moments import check_overflow
from certifit.numerics.products import adjoint, far, round_shift, scale_rows
from certifit.rows import Array, ArrayRows, Block, Matrix, Rows, Sums


@dataclass(frozen=True)
class ColumnMoments:
    """Means and variances of the columns of weighted rows."""

    count: int  # rows with w > 0
    weight: float  # Σ w
    mean: Array  # (d,)
    variances: Array  # (d,) about the mean, divided by Σ w

    @property
    def total(self) -> float:
        """The sum of all variances."""
        return float(self.variances.sum())


@dataclass(frozen=True)
class _ColumnSums(Sums):
    count: int  # rows with w > 0
    weight: float  # Σ w
    x: Array  # (d,) Σ w (x - origin)


def _column_sums(origin: Array | None, block: Block) -> _ColumnSums:
    X = block.X if origin is None else block.X - origin
    return _ColumnSums(int((block.w > 0).sum()), float(block.w.sum()), np.asarray(adjoint(X, block.w), np.float64))


def _square_sums(mean: Array, block: Block) -> Array:
    """Return Σ w (x - mean)² of each column (d,)."""
    X, w = block.X, block.w
    if not sparse.issparse(X):
        # Overflow is found by `check_overflow`, once all blocks are summed.
        with np.errstate(over="ignore"):
            return w @ (X - mean) ** 2
    each, d = np.repeat(w, np.diff(X.indptr)), len(mean)
    off = np.bincount(X.indices, each * (X.data - mean[X.indices]) ** 2, d)
    # Entries that a CSR matrix does not store are zeros.
    return off + (w.sum() - np.bincount(X.indices, each, d)) * mean**2


def column_moments(rows: Rows, centred: bool = True) -> ColumnMoments:
    """Return means and variances of the columns in two passes; about zero where not `centred`.

    >>> from certifit.rows import as_rows
    >>> column_moments(as_rows([[1.0, 2.0], [3.0, 2.0]])).variances
    array([1., 0.])
    """
    block = next(iter(rows))
    origin = None if sparse.issparse(block.X) else block.X[0].astype(np.float64)
    first = rows.sum(partial(_column_sums, origin))
    mean = first.x / first.weight + (0.0 if origin is None else origin)
    mean = mean if centred else np.zeros(rows.n_features)
    variances = check_overflow(rows.sum(partial(_square_sums, mean))) / first.weight
    return ColumnMoments(first.count, first.weight, mean, variances)


@dataclass(frozen=True)
class _CovarianceProducts(Sums):
    xy: Array  # (d, m) Σ w x yᵀ, y = Qᵀ (x - mean); with x - mean in place of x where rows are dense
    y: Array | float  # (m,) Σ w y of sparse rows, 0.0 of dense ones


def _product_sums(mean: Array, Q: Array, block: Block) -> _CovarianceProducts:
    X, w = block.X, block.w if Q.ndim == 1 else block.w[:, None]
    if sparse.issparse(X):
        Y = w * (X @ Q - mean @ Q)
        return _CovarianceProducts(np.asarray(adjoint(X, Y), np.float64), Y.sum(axis=0))
    # Rows of float32 are shifted by the nearest centre that they can hold; `_matmat` corrects for the rest.
    Z = X - mean.astype(X.dtype)
    Y = w.astype(X.dtype, copy=False) * (Z @ Q.astype(X.dtype))
    return _CovarianceProducts(np.asarray(adjoint(Z, Y), np.float64), 0.0)


class Covariance(LinearOperator):
    """The operator S = Σ w (x - mean)(x - mean)ᵀ / Σ w; each product is a pass over the rows."""

    def __init__(self, rows: Rows, columns: ColumnMoments) -> None:
        self.rows, self.columns = rows, columns
        super().__init__(np.dtype(np.float64), (rows.n_features, rows.n_features))

    def _matmat(self, Q: Array) -> Array:
        found = self.rows.sum(partial(_product_sums, self.columns.mean, Q))
        out: Array = found.xy / self.columns.weight
        off = self.columns.mean - round_shift(self.columns.mean, self.rows.dtype)
        if off.any() and np.isscalar(found.y):
            out -= np.multiply.outer(off, off @ Q)
        if not np.isscalar(found.y) and self.columns.mean.any():
            out -= np.multiply.outer(self.columns.mean, found.y / self.columns.weight)
        return out

    def _matvec(self, q: Array) -> Array:
        return self._matmat(q.ravel())

    def _adjoint(self) -> Any:
        return self


@dataclass(frozen=True)
class CentredRows:
    """The rows Z = sqrt(w) (x - mean); sparse rows stay sparse where that loses no digits."""

    data: ArrayRows  # (n, d)
    columns: ColumnMoments

    @property
    def stays_sparse(self) -> bool:
        """Whether the mean is subtracted from products, because rows are sparse and no digits are lost."""
        m = self.columns
        return sparse.issparse(self.data.X) and not (m.mean**2 > far(self.data.dtype) ** 2 * m.variances).any()

    def dense(self) -> Array:
        """Return Z as a dense array (n, d)."""
        X: Matrix = self.data.X
        Z = (X.toarray() if sparse.issparse(X) else X) - self.columns.mean
        return np.sqrt(self.data.w)[:, None] * Z

    def gram(self) -> Array:
        """Return the Gram matrix Z Zᵀ / Σ w (n, n)."""
        with np.errstate(over="ignore", invalid="ignore"):
            if not self.stays_sparse:
                Z = self.dense()
                return Z @ Z.T / self.columns.weight
            root = np.sqrt(self.data.w)
            X = scale_rows(self.data.X.astype(np.float64), root)
            Xm = X @ self.columns.mean
            cross = np.multiply.outer(Xm, root)
            inner = float(self.columns.mean @ self.columns.mean)
            total = (X @ X.T).toarray() - cross - cross.T + inner * np.multiply.outer(root, root)
            return total / self.columns.weight

    def times(self, V: Array) -> Array:
        """Return the product Z V."""
        if not self.stays_sparse:
            return self.dense() @ V
        return np.sqrt(self.data.w)[:, None] * (self.data.X @ V - self.columns.mean @ V)

    def adjoint(self, U: Array) -> Array:
        """Return the product Zᵀ U."""
        if not self.stays_sparse:
            return self.dense().T @ U
        V = np.sqrt(self.data.w)[:, None] * U
        return self.data.X.T @ V - np.multiply.outer(self.columns.mean, V.sum(axis=0))
