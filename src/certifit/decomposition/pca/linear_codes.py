"""Codes z = B (x - mean) of rows along orthonormal axes B, and rows from codes, x̃ = mean + Bᵀ z.

Sparse rows stay sparse: the mean is subtracted from products, not from rows.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from certifit.exceptions import DataError
from certifit.rows import Array, Block


class LinearCodes(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """`transform` and `inverse_transform` of an Estimator with `components_` (k, d) and `mean_` (d,)."""

    def transform(self, X: Any) -> Array:
        """Return the codes z = B (x - mean), (n, k)."""
        return self._rows(X).map(partial(encode, self.mean_, self.components_))

    def inverse_transform(self, X: Any) -> Array:
        """Return the rows of codes, x = mean + Bᵀ z."""
        check_is_fitted(self)
        return check_codes(X, len(self.components_)) @ self.components_ + self.mean_

    @property
    def n_components_(self) -> int:
        """The number of components."""
        check_is_fitted(self, "components_")
        return len(self.components_)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def check_codes(X: Any, k: int) -> Array:
    """Return codes (n, k) as an array of finite numbers, or refuse them."""
    Z = check_array(X, dtype=[np.float64, np.float32], ensure_min_features=0)
    if Z.shape[1] != k:
        raise DataError(got=f"codes of {Z.shape[1]} columns", wanted=f"one for each of {k} components")
    return Z


def encode(mean: Array, B: Array, block: Block) -> Array:
    """Return the codes (rows, k) of a block, in the type of its rows."""
    return _codes(mean, B, block.X).astype(block.X.dtype, copy=False)


def weighted_distances(mean: Array, B: Array, along: Array, across: float, block: Block) -> Array:
    """Return Σ along_j z_j² + across |x - x̃|² of each row (rows,)."""
    Z, errors = _codes_and_errors(mean, B, block.X)
    return Z**2 @ along + across * errors


def error_sums(mean: Array, B: Array, block: Block) -> Array:
    """Return Σ w |x - x̃|² and Σ w of a block."""
    return np.array([block.w @ _codes_and_errors(mean, B, block.X)[1], block.w.sum()])


def code_squares(mean: Array, B: Array, block: Block) -> Array:
    """Return Σ w z² of each code z (k,) of a block."""
    return block.w @ _codes(mean, B, block.X) ** 2


def _codes(mean: Array, B: Array, X: Any) -> Array:
    if sparse.issparse(X):
        return np.asarray(X @ B.T - mean @ B.T)
    if not mean.any():
        return np.asarray(X @ B.T)
    out = np.empty((len(X), len(B)), np.result_type(X, mean, B))
    # A few rows at a time: what is subtracted then stays in the processor's cache.
    step = max(256, 2**15 // len(mean))
    for start in range(0, len(X), step):
        rows = slice(start, start + step)
        np.matmul(X[rows] - mean, B.T, out=out[rows])
    return out


def _codes_and_errors(mean: Array, B: Array, X: Any) -> tuple[Array, Array]:
    """Return codes (rows, k) and squared reconstruction errors |x - x̃|² (rows,)."""
    Z = _codes(mean, B, X)
    if not sparse.issparse(X):
        return Z, ((X - mean - Z @ B) ** 2).sum(axis=1)
    # |x - mean|², from products of sparse rows.
    length = np.ravel(X.multiply(X).sum(axis=1)) - 2 * (X @ mean) + mean @ mean
    return Z, np.maximum(length - ((2 * Z - Z @ (B @ B.T)) * Z).sum(axis=1), 0.0)
