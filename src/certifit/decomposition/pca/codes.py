"""From rows to codes z = B (x - mean), and how far rows lie from what their codes say; sparse rows stay sparse."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from certifit.rows import Array, Block


def encode(mean: Array, B: Array, block: Block) -> Array:
    """Codes (rows, k), in the rows' own type."""
    return _codes(mean, B, block.X).astype(block.X.dtype, copy=False)


def distance(mean: Array, B: Array, along: Array, across: float, block: Block) -> Array:
    """Σ along_j z_j² + across |x - x̃|² for each row, x̃ what the codes give back."""
    Z, rest = _split(mean, B, block.X)
    return Z**2 @ along + across * rest


def lost(mean: Array, B: Array, block: Block) -> Array:
    """Σ w |x - x̃|² and Σ w."""
    return np.array([block.w @ _split(mean, B, block.X)[1], block.w.sum()])


def _codes(mean: Array, B: Array, X: Any) -> Array:
    return X @ B.T - mean @ B.T if sparse.issparse(X) else (X - mean) @ B.T


def _split(mean: Array, B: Array, X: Any) -> tuple[Array, Array]:
    """Codes (rows, k) and each row's squared distance to the plane (rows,)."""
    Z = _codes(mean, B, X)
    if not sparse.issparse(X):
        return Z, ((X - mean - Z @ B) ** 2).sum(axis=1)
    length = np.ravel(X.multiply(X).sum(axis=1)) - 2 * (X @ mean) + mean @ mean  # |x - mean|²
    return Z, np.maximum(length - ((2 * Z - Z @ (B @ B.T)) * Z).sum(axis=1), 0.0)
