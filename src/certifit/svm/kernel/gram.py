"""Rows of a kernel matrix: computed in blocks on all threads; kept where computing them again would cost more."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from certifit.exceptions import DataError
from certifit.optimise.working_sets import KernelRows, over_blocks
from certifit.rows import Array
from certifit.rows.block import Matrix
from certifit.rows.threads import R
from certifit.svm.kernel.exponential_loops import exp_single
from certifit.svm.kernel.kernels import RBF, Kernel, squared_lengths
from certifit.svm.kernel.smo_loops import add_rows, working_square

SEVERAL = 64  # rows whose own kernel values are computed at a time
BLOCK = 1024  # columns of a kernel row that a thread computes at a time,
CHUNK = 256  # for so many rows, if they are not kept
COLUMNS = 4096  # of rows that are kept, to update values at a time
KEPT = 512  # most kept rows in a batch
NARROW = 64  # columns of a table up to which an RBF's float32 values are as fast to compute again as to keep
VALUES = 500_000  # kernel values held at a time, by a thread that evaluates machines
STEEP = 100.0  # |β| up to which errors of that size do not matter in a machine's values
SINGLE = 16.0  # gamma |x - mean|² up to which an RBF kernel in float32 has an error of about 1e-6


class Gram(ABC):
    """The kernel matrix of n rows, some rows at a time; as `KernelRows` it keeps nothing."""

    n: int
    dtype: np.dtype[Any]
    cheap = False  # to compute again

    @property
    def most(self) -> int:
        return self.n

    @abstractmethod
    def block(self, rows: Array, columns: slice | Array) -> Array:
        """K[rows][:, columns]."""

    def square(self, rows: Array) -> Array:
        return self.block(rows, rows).astype(np.float64, copy=False)

    def add(self, f: Array, rows: Array, change: Array) -> Array:
        moved = np.flatnonzero(change if change.ndim == 1 else change.any(axis=1))
        add = partial(self._add, f, rows[moved], change[moved].astype(self.dtype))
        return np.concatenate(self._each(add))

    def _add(self, f: Array, rows: Array, change: Array, columns: slice) -> Array:
        out = f[columns].copy()
        for i in range(0, len(rows), CHUNK):
            out += self.block(rows[i : i + CHUNK], columns).T @ change[i : i + CHUNK]
        return out

    def at_hand(self) -> Array:
        return np.ones(self.n, bool)

    def lengths(self) -> Array:
        """√k(x, x) (n,)."""
        parts = [slice(a, min(a + SEVERAL, self.n)) for a in range(0, self.n, SEVERAL)]
        own = [self.block(np.arange(part.start, part.stop), part).diagonal() for part in parts]
        return np.sqrt(np.maximum(np.concatenate(own), 0.0))

    def fill(self, out: Array, slots: Array, rows: Array) -> None:
        """out[slots] = K[rows]."""
        self._each(partial(self._fill, out, slots, rows))

    def _fill(self, out: Array, slots: Array, rows: Array, columns: slice) -> None:
        out[slots, columns] = self.block(rows, columns)

    def _each(self, f: Callable[[slice], R]) -> list[R]:
        return over_blocks(f, self._columns())

    def _columns(self) -> list[slice]:
        return [slice(a, min(a + BLOCK, self.n)) for a in range(0, self.n, BLOCK)]


class RadialTable:
    """Dense rows such that one product of matrices gives the exponents of exp(-γ |x - z|²).

    With u = √(2γ) (x - centre), -γ |x - z|² = u·v - |u|²/2 - |v|²/2: rows [u, 1, -|u|²/2] against [v, -|v|²/2, 1].
    """

    def __init__(self, X: Array, gamma: float, single: bool) -> None:
        n, d = X.shape
        self.gamma, self.centre = gamma, X.mean(axis=0, dtype=np.float64)
        parts = [slice(a, a + BLOCK) for a in range(0, n, BLOCK)]
        half = gamma * np.concatenate(over_blocks(lambda part: squared_lengths(X[part] - self.centre), parts))
        self.dtype = np.dtype(np.float32 if single and half.max() <= SINGLE else np.float64)
        self.right = np.empty((n, d + 2), self.dtype)

        def fill(part: slice) -> None:
            self.scale(X[part], self.right[part])

        over_blocks(fill, parts)
        self.right[:, d], self.right[:, d + 1] = -half, 1.0

    def scale(self, X: Array, out: Array) -> None:
        np.multiply(X - self.centre, np.sqrt(2 * self.gamma), out=out[:, :-2], casting="same_kind")

    def left(self, X: Array) -> Array:
        """Other rows, to be put before these."""
        out = np.empty((len(X), X.shape[1] + 2), self.dtype)
        self.scale(X, out)
        out[:, -2], out[:, -1] = 1.0, -self.gamma * squared_lengths(X - self.centre)
        return out

    def own(self, rows: Array) -> Array:
        """Some of these rows, to be put before them."""
        out = self.right[rows]
        out[:, [-2, -1]] = out[:, [-1, -2]]
        return out


def exponential(left: Array, right: Array) -> Array:
    """Kernel values of rows put before others, in place: one table of values is enough."""
    out = left @ right.T
    if out.dtype == np.float32:
        exp_single(out)
        return out
    np.minimum(out, 0, out=out)
    return np.exp(out, out=out)


class RadialGram(Gram):
    """exp(-γ |x - z|²) of dense rows."""

    def __init__(self, X: Array, gamma: float, single: bool) -> None:
        self.n, self.table = len(X), RadialTable(X, gamma, single)
        self.dtype = self.table.dtype
        self.cheap = self.dtype == np.float32 and X.shape[1] <= NARROW

    def block(self, rows: Array, columns: slice | Array) -> Array:
        return exponential(self.table.own(rows), self.table.right[columns])

    def lengths(self) -> Array:
        return np.ones(self.n)


class PlainGram(Gram):
    """Any function of two tables."""

    dtype = np.dtype(np.float64)

    def __init__(self, X: Matrix, kernel: Callable[[Any, Any], Any]) -> None:
        self.X, self.kernel, self.n = X, kernel, X.shape[0]

    def block(self, rows: Array, columns: slice | Array) -> Array:
        return evaluate(self.kernel, self.X[rows], self.X[columns])

    def _each(self, f: Callable[[slice], R]) -> list[R]:
        if isinstance(self.kernel, Kernel):
            return super()._each(f)
        return [f(part) for part in self._columns()]  # somebody else's function may not be safe on several threads


class GivenGram(Gram):
    """A kernel matrix that is already here."""

    def __init__(self, G: Array) -> None:
        self.G, self.n, self.dtype = G, len(G), G.dtype

    def block(self, rows: Array, columns: slice | Array) -> Array:
        return self.G[rows, columns] if isinstance(columns, slice) else self.G[np.ix_(rows, columns)]

    def lengths(self) -> Array:
        return np.sqrt(np.maximum(self.G.diagonal().astype(np.float64), 0.0))


def evaluate(kernel: Callable[[Any, Any], Any], A: Matrix, B: Matrix) -> Array:
    """kernel(A, B), refused unless it is an array (rows of A, rows of B) of finite numbers."""
    with np.errstate(over="ignore", invalid="ignore"):  # refused below
        K = kernel(A, B)
    K = K.toarray() if sparse.issparse(K) else np.asarray(K)
    wanted = (A.shape[0], B.shape[0])
    if K.shape != wanted:
        raise DataError(
            got=f"a kernel that gives an array of shape {K.shape}",
            wanted=f"shape {wanted} for tables of {wanted[0]} and {wanted[1]} rows",
            fix="kernel(A, B) must give k(x, z) for every row x of A and z of B.",
        )
    if K.dtype.kind not in "biuf":
        raise DataError(got=f"a kernel that gives values of type {K.dtype}", wanted="real numbers")
    K = K.astype(np.float64, copy=False)
    if not np.isfinite(K).all():
        raise DataError(
            got="a kernel with values that are not finite numbers",
            wanted="finite values for every pair of rows",
            fix="Rescale the columns, for instance to unit variance.",
        )
    return K


def gram_of(X: Matrix, kernel: Callable[[Any, Any], Any], single: bool) -> Gram:
    """The kernel matrix of these rows; `single` allows float32 where it is accurate enough."""
    if isinstance(kernel, RBF) and not sparse.issparse(X) and kernel.by_product(X):
        return RadialGram(X, kernel.gamma, single)
    return PlainGram(X, kernel)


def sample_gram(X: Matrix, kernel: Callable[[Any, Any], Any] | None, most: int) -> tuple[Array, int]:
    """The kernel matrix, made symmetric to the last bit, of up to so many rows, and how many these are."""
    rows = np.unique(np.linspace(0, X.shape[0] - 1, min(X.shape[0], most)).astype(np.int64))
    G = np.asarray(X[np.ix_(rows, rows)] if kernel is None else evaluate(kernel, X[rows], X[rows]), np.float64)
    off = np.abs(G - G.T).max()
    if off > 1e-5 * np.abs(G).max():
        raise DataError(
            got=f"a kernel matrix that is not symmetric (by {off:.3g})",
            wanted="k(x, z) = k(z, x)",
            fix="Average it with its transpose.",
        )
    return (G + G.T) / 2, len(rows)


class Expansion:
    """x -> Σ βⱼ k(x, zⱼ), for tables of x, some rows at a time."""

    def __init__(self, kernel: Callable[[Any, Any], Any], centres: Matrix, beta: Array) -> None:
        self.kernel, self.centres, self.beta = kernel, centres, beta  # beta (s, machines)

    def __call__(self, X: Matrix) -> Array:
        if not len(self.beta):
            return np.zeros((X.shape[0], self.beta.shape[1]))
        step = max(1, VALUES // len(self.beta))
        return np.concatenate([self._part(X[i : i + step]) for i in range(0, X.shape[0], step)])

    def _part(self, X: Matrix) -> Array:
        return evaluate(self.kernel, X, self.centres) @ self.beta


class RadialExpansion(Expansion):
    """The same for dense rows and one product of matrices; in float32 where rows are and it is accurate enough."""

    def __init__(self, kernel: RBF, centres: Array, beta: Array, exact: bool) -> None:
        super().__init__(kernel, centres, beta)
        single = not exact and centres.dtype == np.float32 and float(np.square(beta).sum(axis=0).max()) <= STEEP**2
        self.table = RadialTable(centres, kernel.gamma, single)

    def _part(self, X: Matrix) -> Array:
        X = X.toarray() if sparse.issparse(X) else X
        return exponential(self.table.left(X), self.table.right) @ self.beta.astype(self.table.dtype)


def expansion(kernel: Callable[[Any, Any], Any], centres: Matrix, beta: Array, exact: bool = False) -> Expansion:
    """Values of coefficients beta (s, machines) at centres (s, d); `exact`: in float64 whatever the rows."""
    if isinstance(kernel, RBF) and len(beta) and not sparse.issparse(centres) and kernel.by_product(centres):
        return RadialExpansion(kernel, centres, beta, exact)
    return Expansion(kernel, centres, beta)


class Cache:
    """The most recently used rows of a kernel matrix, at most `megabytes` of them (but never fewer than 16)."""

    def __init__(self, gram: Gram, megabytes: float) -> None:
        self.gram, self.n = gram, gram.n
        self.kept = np.empty((room(gram, megabytes), gram.n), gram.dtype)
        self.slot = np.full(gram.n, -1)  # where each row is, -1 for nowhere
        self.holds = np.full(len(self.kept), -1)  # which row each slot has
        self.used = np.full(len(self.kept), -1)  # when it was last asked for
        self.time = 0

    @property
    def most(self) -> int:
        return min(KEPT, len(self.kept))

    def square(self, rows: Array) -> Array:
        return working_square(self.kept, self.fetch(rows), rows)

    def add(self, f: Array, rows: Array, change: Array) -> Array:
        add = partial(_add, f, self.kept, self.fetch(rows), change)
        return np.concatenate(over_blocks(add, range(0, self.n, COLUMNS)))

    def at_hand(self) -> Array:
        return self.slot >= 0

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


def _add(f: Array, K: Array, slots: Array, change: Array, start: int) -> Array:
    stop = min(start + COLUMNS, len(f))
    if f.ndim == 1:
        return add_rows(f, K, slots, change, start, stop)
    return f[start:stop] + K[slots, start:stop].astype(np.float64).T @ change


def room(gram: Gram, megabytes: float) -> int:
    """How many rows of it fit."""
    return min(max(16, int(megabytes * 1e6 / (gram.n * gram.dtype.itemsize))), gram.n)


def kernel_rows(gram: Gram, megabytes: float) -> KernelRows:
    """Kept as far as there is room; not at all if that is not for all and values are cheap, or not for a batch."""
    here = room(gram, megabytes)
    return gram if here < (gram.n if gram.cheap else min(KEPT, gram.n)) else Cache(gram, megabytes)
