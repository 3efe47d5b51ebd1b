"""Rows of a kernel matrix: computed in blocks on all threads, and kept while there is room for them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from certifit.core import Array, DataError
from certifit.core.rows import Matrix
from certifit.models.svm_kernels import RBF, Kernel, squared_lengths
from certifit.solvers.smo import over_blocks

BLOCK = 1024  # columns of a kernel row that a thread computes at a time
SINGLE = 16.0  # gamma |x - mean|² up to which an RBF kernel in float32 has an error of about 1e-6


class Gram(ABC):
    """The kernel matrix of n rows, a few rows at a time."""

    n: int
    dtype: np.dtype[Any]

    @abstractmethod
    def block(self, rows: Array, columns: slice) -> Array:
        """K[rows, columns]."""

    def fill(self, out: Array, slots: Array, rows: Array) -> None:
        """out[slots] = K[rows]."""
        columns = [slice(a, min(a + BLOCK, self.n)) for a in range(0, self.n, BLOCK)]
        self._each(partial(self._fill, out, slots, rows), columns)

    def _fill(self, out: Array, slots: Array, rows: Array, columns: slice) -> None:
        out[slots, columns] = self.block(rows, columns)

    def _each(self, f: Callable[[slice], None], columns: list[slice]) -> None:
        over_blocks(f, columns)


class RadialGram(Gram):
    """exp(-γ |x - z|²) of dense rows: one product of matrices gives the exponents.

    With u = √(2γ) (x - mean), -γ |x - z|² = u·v - |u|²/2 - |v|²/2: rows [u, -|u|²/2, 1] against [v, 1, -|v|²/2].
    """

    def __init__(self, X: Array, gamma: float, single: bool) -> None:
        self.n, d = X.shape
        centre = X.mean(axis=0, dtype=np.float64)
        parts = [slice(a, a + BLOCK) for a in range(0, self.n, BLOCK)]
        half = gamma * np.concatenate(over_blocks(lambda part: squared_lengths(X[part] - centre), parts))
        self.dtype = np.dtype(np.float32 if single and half.max() <= SINGLE else np.float64)
        self.table = np.empty((self.n, d + 2), self.dtype)

        def fill(part: slice) -> None:
            np.multiply(X[part] - centre, np.sqrt(2 * gamma), out=self.table[part, :d], casting="same_kind")

        over_blocks(fill, parts)
        self.table[:, d], self.table[:, d + 1] = -half, 1.0

    def block(self, rows: Array, columns: slice) -> Array:
        left = self.table[rows]
        left[:, [-2, -1]] = left[:, [-1, -2]]
        out = left @ self.table[columns].T
        np.minimum(out, 0, out=out)
        return np.exp(out, out=out)


class PlainGram(Gram):
    """Any function of two tables."""

    dtype = np.dtype(np.float64)

    def __init__(self, X: Matrix, kernel: Callable[[Any, Any], Any]) -> None:
        self.X, self.kernel, self.n = X, kernel, X.shape[0]

    def block(self, rows: Array, columns: slice) -> Array:
        return evaluate(self.kernel, self.X[rows], self.X[columns])

    def _each(self, f: Callable[[slice], None], columns: list[slice]) -> None:
        if isinstance(self.kernel, Kernel):
            super()._each(f, columns)
        else:  # somebody else's function may not be safe on several threads
            for part in columns:
                f(part)


class GivenGram(Gram):
    """A kernel matrix that is already here."""

    def __init__(self, G: Array) -> None:
        self.G, self.n, self.dtype = G, len(G), G.dtype

    def block(self, rows: Array, columns: slice) -> Array:
        return self.G[rows, columns]


def evaluate(kernel: Callable[[Any, Any], Any], A: Matrix, B: Matrix) -> Array:
    """kernel(A, B), refused unless it is an array (rows of A, rows of B) of finite numbers."""
    with np.errstate(over="ignore", invalid="ignore"):  # refused below
        K = kernel(A, B)
    K = K.toarray() if sparse.issparse(K) else np.asarray(K, dtype=np.float64)
    wanted = (A.shape[0], B.shape[0])
    if K.shape != wanted:
        raise DataError(
            got=f"a kernel that gives an array of shape {K.shape}",
            wanted=f"shape {wanted} for tables of {wanted[0]} and {wanted[1]} rows",
            fix="kernel(A, B) must give k(x, z) for every row x of A and z of B.",
        )
    if not np.isfinite(K).all():
        raise DataError(
            got="a kernel with values that are not finite numbers",
            wanted="finite values for every pair of rows",
            fix="Rescale the columns, for instance to unit variance.",
        )
    return K


def gram_of(X: Matrix, kernel: Callable[[Any, Any], Any], single: bool) -> Gram:
    """The kernel matrix of these rows; `single` allows float32 where it is accurate enough."""
    if isinstance(kernel, RBF) and not sparse.issparse(X):
        return RadialGram(X, kernel.gamma, single)
    return PlainGram(X, kernel)


class Cache:
    """The most recently used rows of a kernel matrix, at most `megabytes` of them (but never fewer than 16)."""

    def __init__(self, gram: Gram, megabytes: float) -> None:
        room = int(megabytes * 1e6 / (gram.n * gram.dtype.itemsize))
        self.gram = gram
        self.kept = np.empty((min(max(16, room), gram.n), gram.n), gram.dtype)
        self.slot = np.full(gram.n, -1)  # where each row is, -1 for nowhere
        self.holds = np.full(len(self.kept), -1)  # which row each slot has
        self.used = np.full(len(self.kept), -1)  # when it was last asked for
        self.time = 0

    def fetch(self, rows: Array) -> Array:
        """Slots of these rows in `kept`, after computing those that are missing."""
        self.time += 1
        here = self.slot[rows]
        self.used[here[here >= 0]] = self.time
        missing = np.unique(rows[here < 0])
        if len(missing):
            slots = np.sort(np.argsort(self.used, kind="stable")[: len(missing)])
            gone = self.holds[slots]
            self.slot[gone[gone >= 0]] = -1
            self.holds[slots] = -1
            self.gram.fill(self.kept, slots, missing)
            self.slot[missing], self.holds[slots], self.used[slots] = slots, missing, self.time
        return self.slot[rows]
