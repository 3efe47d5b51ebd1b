"""Symmetric matrices as their lower triangles, row after row: half the numbers, and one run in memory."""

from __future__ import annotations

from functools import cache

import numpy as np

from certifit.rows import Array


@cache
def _triangle(k: int) -> tuple[Array, Array]:
    return np.tril_indices(k)


def pack(A: Array) -> Array:
    """The lower triangle of the symmetric A (..., k, k), row after row.

    >>> pack(np.array([[1.0, 2.0], [2.0, 5.0]])).tolist()
    [1.0, 2.0, 5.0]
    """
    i, j = _triangle(A.shape[-1])
    return np.ascontiguousarray(A[..., i, j])


def unpack(packed: Array, k: int) -> Array:
    """The symmetric matrices (..., k, k) of packed ones, which may have columns beyond.

    >>> unpack(np.array([1.0, 2.0, 5.0]), 2).tolist()
    [[1.0, 2.0], [2.0, 5.0]]
    """
    i, j = _triangle(k)
    out = np.empty((*packed.shape[:-1], k, k))
    out[..., i, j] = out[..., j, i] = packed[..., : len(i)]
    return out
