"""Matrices that users pass: checked, in float64, and scaled so that squares neither overflow nor vanish."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from certifit.exceptions import DataError
from certifit.rows import Array

EPS = float(np.finfo(np.float64).eps)


def as_matrix(A: Any, *, square: bool = False, operator: bool = False) -> Any:
    """Return A as a float64 array or CSR matrix of finite numbers, or as a linear operator where `operator`.

    >>> as_matrix([[1, 2], [3, 4]]).dtype
    dtype('float64')
    """
    if isinstance(A, LinearOperator):
        if not operator:
            raise DataError(
                got="a linear operator", wanted="an array or a sparse matrix", fix="Its entries are needed here."
            )
    elif sparse.issparse(A):
        A = sparse.csr_array(A)
        _check_numbers(A.data)
        A = A.astype(np.float64)
        A.sum_duplicates()
    else:
        A = np.asarray(A)
        if A.ndim != 2:
            raise DataError(got=f"an array of shape {A.shape}", wanted="a matrix, with rows and columns")
        _check_numbers(A)
        A = A.astype(np.float64)
    if square and A.shape[0] != A.shape[1]:
        raise DataError(got=f"a matrix of shape {A.shape}", wanted="a square matrix")
    if 0 in A.shape:
        raise DataError(got=f"a matrix of shape {A.shape}", wanted="at least one row and one column")
    return A


def _check_numbers(entries: Array) -> None:
    if entries.dtype.kind not in "biuf":
        raise DataError(got=f"entries of type {entries.dtype}", wanted="real numbers")
    bad = ~np.isfinite(entries)
    if bad.any():
        where = np.unravel_index(int(np.argmax(bad)), entries.shape)
        place = f"entry {tuple(int(i) for i in where)}" if entries.ndim == 2 else "a stored entry"
        raise DataError(got=f"{place} = {entries[where]}", wanted="finite numbers")


def symmetric(A: Any) -> Any:
    """Return A made exactly symmetric; refuse it where its triangles differ by more than rounding."""
    if isinstance(A, LinearOperator):
        _check_symmetric_operator(A)
        return A
    # Divided by 2 first, so that nothing overflows.
    difference = A / 2 - A.T / 2
    size = np.abs(difference)
    if float(size.max()) > 4 * EPS * float(np.abs(A).max()):
        i, j = (int(index) for index in np.unravel_index(int(size.argmax()), A.shape))
        raise DataError(
            got=f"A[{i}, {j}] = {A[i, j]:.10g} but A[{j}, {i}] = {A[j, i]:.10g}",
            wanted="a symmetric matrix",
            fix="For the nearest symmetric matrix use (A + A.T) / 2; for any matrix there is svd.",
        )
    return A - difference


def _check_symmetric_operator(A: LinearOperator) -> None:
    """Refuse an operator whose uᵀ(Av) and vᵀ(Au) differ for random u and v."""
    u, v = np.random.default_rng(0).normal(size=(2, A.shape[0]))
    Av, Au = np.asarray(A @ v, np.float64), np.asarray(A @ u, np.float64)
    unit = max(float(np.abs(Av).max()), float(np.abs(Au).max())) or 1.0
    if not np.isfinite(unit):
        raise DataError(got="an operator whose product is not finite", wanted="finite products")
    left, right = float(u @ (Av / unit)), float(v @ (Au / unit))
    if abs(left - right) > 1e-6 * (np.abs(u) @ np.abs(Av / unit) + np.abs(v) @ np.abs(Au / unit)):
        raise DataError(
            got=f"an operator with uᵀAv = {left * unit:.6g} but vᵀAu = {right * unit:.6g}",
            wanted="a symmetric operator",
        )


def in_units(A: Any) -> tuple[Any, float]:
    """Return A / unit and the unit, the largest entry of A or of an operator's product with a random vector."""
    if isinstance(A, LinearOperator):
        probe = np.asarray(A @ np.random.default_rng(1).normal(size=A.shape[1]), np.float64)
        unit = float(np.abs(probe).max()) or 1.0

        def product(X: Array) -> Array:
            return np.asarray(A @ X, np.float64) / unit

        return LinearOperator(A.shape, matvec=product, matmat=product, dtype=np.float64), unit
    unit = float(np.abs(A).max()) or 1.0
    return A / unit, unit


def to_dense(A: Any, most: int = 2000) -> Array:
    """Return the entries of a sparse matrix or operator of at most `most` rows and columns."""
    if isinstance(A, np.ndarray):
        return A
    if max(A.shape) > most:
        raise DataError(
            got=f"a question about all of a sparse matrix or operator of shape {A.shape}",
            wanted=f"at most {most} rows and columns for that",
            fix="Ask for a few pairs only, by a method that needs products alone; or pass A.toarray(), if it fits.",
        )
    return A.toarray() if sparse.issparse(A) else np.asarray(A @ np.eye(A.shape[1]), np.float64)


def check_count(k: int | None, most: int) -> int:
    """Return how many pairs to find; k = None means all."""
    if k is None:
        return most
    if isinstance(k, Integral) and not isinstance(k, bool) and 0 <= int(k) <= most:
        return int(k)
    raise DataError(got=f"k={k!r}", wanted=f"a whole number from 0 to {most}, or None for all")


def column_signs(vectors: Array) -> Array:
    """Return the sign (±1) of each column's largest entry: of the first one, where several are equal to rounding."""
    size = np.abs(vectors)
    first = np.argmax(size >= (1 - 1e-6) * size.max(axis=0, initial=0.0), axis=0)
    sign = np.sign(vectors[first, np.arange(vectors.shape[1])])
    return np.where(sign == 0, 1.0, sign)
