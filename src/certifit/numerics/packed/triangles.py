"""Symmetric matrices packed as their lower triangles, row after row, which halves the memory."""

from __future__ import annotations

from functools import cache

import numpy as np

from certifit.rows import Array


@cache
def _lower_triangle(k: int) -> tuple[Array, Array]:
    return np.tril_indices(k)


def pack(A: Array) -> Array:
    """Return the lower triangle of symmetric matrices A (..., k, k), row after row: (..., k (k + 1) / 2).

    >>> pack(np.array([[1.0, 2.0], [2.0, 5.0]])).tolist()
    [1.0, 2.0, 5.0]
    """
    i, j = _lower_triangle(A.shape[-1])
    return np.ascontiguousarray(A[..., i, j])


def unpack(packed: Array, k: int) -> Array:
    """Return the symmetric matrices (..., k, k) of packed ones; numbers after the first k (k + 1) / 2 are ignored.

    >>> unpack(np.array([1.0, 2.0, 5.0]), 2).tolist()
    [[1.0, 2.0], [2.0, 5.0]]
    """
    i, j = _lower_triangle(k)
    out = np.empty((*packed.shape[:-1], k, k))
    out[..., i, j] = out[..., j, i] = packed[..., : len(i)]
    return out
