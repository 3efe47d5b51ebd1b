"""Rows of a kernel matrix: computed in blocks on all threads, and kept where computing them again would cost more.

| class | the matrix of |
|---|---|
| `RadialGram` | an RBF kernel and dense rows: one matrix product for many values |
| `FunctionGram` | any kernel or function, and any rows |
| `GivenGram` | kernel='precomputed': the values are there already |
| `KernelCache` | any of these; its most recently used rows are kept |
| `WholeMatrix` | any of these with so few rows that all are kept |

A solver sees either a Gram matrix or a cache of one, as `optimise.working_sets.KernelRows`: see `kernel_rows`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy import sparse

from certifit.exceptions import DataError
from certifit.optimise.working_sets import KernelRows, over_blocks
from certifit.rows import Array
from certifit.rows.block import Matrix
from certifit.rows.threads import R
from certifit.svm.kernel.expansion import KernelValueTuning, RadialTable, evaluate, radial_values
from certifit.svm.kernel.kernels import RBF, Kernel
from certifit.svm.kernel.smo_loops import add_rows, working_square


class Gram(ABC):
    """The kernel matrix of n rows, some rows at a time; used as `KernelRows` it keeps nothing."""

    n: int
    dtype: np.dtype[Any]
    tuning: KernelValueTuning
    memory: None = None
    cheap = False  # whether its values cost no more to compute again than to keep

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
        return np.concatenate(self._over_columns(add))

    def _add(self, f: Array, rows: Array, change: Array, columns: slice) -> Array:
        out, step = f[columns].copy(), self.tuning.block_rows
        for i in range(0, len(rows), step):
            out += self.block(rows[i : i + step], columns).T @ change[i : i + step]
        return out

    def at_hand(self) -> Array:
        return np.ones(self.n, bool)

    def lengths(self) -> Array:
        """√k(x, x) (n,): the lengths of the rows in the space of the kernel."""
        step = self.tuning.diagonal_rows
        parts = [slice(a, min(a + step, self.n)) for a in range(0, self.n, step)]
        own = [self.block(np.arange(part.start, part.stop), part).diagonal() for part in parts]
        return np.sqrt(np.maximum(np.concatenate(own), 0.0))

    def fill(self, out: Array, slots: Array, rows: Array) -> None:
        """Set out[slots] to K[rows]."""
        self._over_columns(partial(self._fill, out, slots, rows))

    def _fill(self, out: Array, slots: Array, rows: Array, columns: slice) -> None:
        out[slots, columns] = self.block(rows, columns)

    def _over_columns(self, f: Callable[[slice], R]) -> list[R]:
        return over_blocks(f, self._columns())

    def _columns(self) -> list[slice]:
        step = self.tuning.block_columns
        return [slice(a, min(a + step, self.n)) for a in range(0, self.n, step)]


class RadialGram(Gram):
    """exp(-γ |x - z|²) of dense rows."""

    def __init__(self, X: Array, gamma: float, single: bool, tuning: KernelValueTuning = KernelValueTuning()) -> None:
        self.n, self.tuning, self.table = len(X), tuning, RadialTable(X, gamma, single, tuning)
        self.dtype = self.table.dtype
        self.cheap = self.dtype == np.float32 and X.shape[1] <= tuning.narrow_columns

    def block(self, rows: Array, columns: slice | Array) -> Array:
        return radial_values(self.table.left_of_own(rows), self.table.right[columns])

    def lengths(self) -> Array:
        return np.ones(self.n)


class FunctionGram(Gram):
    """The values of any function of two tables."""

    dtype = np.dtype(np.float64)

    def __init__(
        self, X: Matrix, kernel: Callable[[Any, Any], Any], tuning: KernelValueTuning = KernelValueTuning()
    ) -> None:
        self.X, self.kernel, self.n, self.tuning = X, kernel, X.shape[0], tuning

    def block(self, rows: Array, columns: slice | Array) -> Array:
        return evaluate(self.kernel, self.X[rows], self.X[columns])

    def _over_columns(self, f: Callable[[slice], R]) -> list[R]:
        if isinstance(self.kernel, Kernel):
            return super()._over_columns(f)
        return [f(part) for part in self._columns()]  # a user's function may not be safe on several threads


class GivenGram(Gram):
    """A kernel matrix that is in memory already."""

    def __init__(self, G: Array, tuning: KernelValueTuning = KernelValueTuning()) -> None:
        self.G, self.n, self.dtype, self.tuning = G, len(G), G.dtype, tuning

    def block(self, rows: Array, columns: slice | Array) -> Array:
        return self.G[rows, columns] if isinstance(columns, slice) else self.G[np.ix_(rows, columns)]

    def lengths(self) -> Array:
        return np.sqrt(np.maximum(self.G.diagonal().astype(np.float64), 0.0))


def gram_of(
    X: Matrix, kernel: Callable[[Any, Any], Any], single: bool, tuning: KernelValueTuning = KernelValueTuning()
) -> Gram:
    """The kernel matrix of these rows; `single` allows float32 where it is accurate enough."""
    if isinstance(kernel, RBF) and not sparse.issparse(X) and kernel.by_product(X):
        return RadialGram(X, kernel.gamma, single, tuning)
    return FunctionGram(X, kernel, tuning)


def sample_gram(X: Matrix, kernel: Callable[[Any, Any], Any] | None, most: int) -> tuple[Array, int]:
    """The kernel matrix of up to `most` rows, made symmetric to the last bit, and how many rows these are.

    Without a kernel, X (n, n) is the kernel matrix of all rows.
    """
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


class KernelCache:
    """The most recently used rows of a kernel matrix, at most `megabytes` of them (but never fewer than 16)."""

    def __init__(self, gram: Gram, megabytes: float) -> None:
        self.gram, self.n = gram, gram.n
        self.kept = np.empty((cache_rows(gram, megabytes), gram.n), gram.dtype)
        self.slot = np.full(gram.n, -1)  # (n,) the place in `kept` of each row, -1 for none
        self.holds = np.full(len(self.kept), -1)  # (slots,) the row in each place
        self.used = np.full(len(self.kept), -1)  # (slots,) when it was last asked for
        self.time = 0

    @property
    def most(self) -> int:
        return min(self.gram.tuning.kept_rows, len(self.kept))

    @property
    def memory(self) -> tuple[Any, ...]:
        """The rows that are kept and when each was used; values in parts, which are written one after another."""
        filled, step = int(np.max(np.flatnonzero(self.holds >= 0), initial=-1)) + 1, self.gram.tuning.kept_rows
        parts = [self.kept[a : min(a + step, filled)] for a in range(0, filled, step)]
        return self.time, self.holds, self.used, parts

    @memory.setter
    def memory(self, found: tuple[Any, ...]) -> None:
        self.time, self.holds, self.used, parts = found
        there = np.flatnonzero(self.holds >= 0)
        self.slot[:] = -1
        self.slot[self.holds[there]] = there
        start = 0
        for part in parts:
            self.kept[start : start + len(part)] = part
            start += len(part)

    def square(self, rows: Array) -> Array:
        return working_square(self.kept, self.fetch(rows), rows)

    def add(self, f: Array, rows: Array, change: Array) -> Array:
        step = self.gram.tuning.kept_columns
        add = partial(_add_kept, f, self.kept, self.fetch(rows), change)
        return np.concatenate(over_blocks(add, [slice(a, min(a + step, self.n)) for a in range(0, self.n, step)]))

    def at_hand(self) -> Array:
        return self.slot >= 0

    def fetch(self, rows: Array) -> Array:
        """Places of these rows in `kept`, after computing those that are not there."""
        self.time += 1
        here = self.slot[rows]
        self.used[here[here >= 0]] = self.time
        absent = np.unique(rows[here < 0])
        if len(absent):
            slots = np.sort(np.argsort(self.used, kind="stable")[: len(absent)])
            gone = self.holds[slots]
            self.slot[gone[gone >= 0]] = -1
            self.holds[slots] = -1
            self.gram.fill(self.kept, slots, absent)
            self.slot[absent], self.holds[slots], self.used[slots] = slots, absent, self.time
        return self.slot[rows]


def _add_kept(f: Array, K: Array, slots: Array, change: Array, columns: slice) -> Array:
    if f.ndim == 1:
        return add_rows(f, K, slots, change, columns.start, columns.stop)
    return f[columns] + K[slots, columns].astype(np.float64).T @ change


class WholeMatrix:
    """All values of a small kernel matrix, computed when any are first asked for."""

    memory: None = None

    def __init__(self, gram: Gram) -> None:
        self.gram, self.n, self.most = gram, gram.n, gram.n

    @cached_property
    def values(self) -> Array:
        """The matrix (n, n)."""
        if isinstance(self.gram, GivenGram):
            return self.gram.G
        out, every = np.empty((self.n, self.n), self.gram.dtype), np.arange(self.n)
        self.gram.fill(out, every, every)
        return out

    def square(self, rows: Array) -> Array:
        return working_square(self.values, rows, rows)

    def add(self, f: Array, rows: Array, change: Array) -> Array:
        return _add_kept(f, self.values, rows, change, slice(0, self.n))

    def at_hand(self) -> Array:
        return np.ones(self.n, bool)


def cache_rows(gram: Gram, megabytes: float) -> int:
    """How many rows of a kernel matrix a cache of this size keeps."""
    return min(max(16, int(megabytes * 1e6 / (gram.n * gram.dtype.itemsize))), gram.n)


def kernel_rows(gram: Gram, megabytes: float) -> KernelRows:
    """The whole matrix if it is small, a cache of it, or the matrix itself where a cache would not help.

    It does not if it has no room for a whole working set, nor if values are cheap and it has no room for all rows.
    """
    if gram.n <= min(gram.tuning.kept_rows, cache_rows(gram, megabytes)):
        return WholeMatrix(gram)
    needed = gram.n if gram.cheap else min(gram.tuning.kept_rows, gram.n)
    return KernelCache(gram, megabytes) if cache_rows(gram, megabytes) >= needed else gram
