"""A table as a fixed sequence of row blocks. Models never loop over rows: they ask `Rows` for sums over blocks.

The same model then runs on arrays, files and Dask collections.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias, TypeVar

import numpy as np
from scipy import sparse

from certifit.rows.block import Array, Block, Matrix, block_rows, row_major, sparse_block_rows
from certifit.rows.kept_passes import kept
from certifit.rows.sums import S
from certifit.rows.threads import parallel_map, parallel_sum

R = TypeVar("R")
Relabel: TypeAlias = Callable[[Array | None, Array], tuple[Array | None, Array]]  # (y, w) -> (y, w)


class Rows(ABC):
    """A table of rows that can be passed over many times, with the same blocks in the same order."""

    n_features: int
    n_rows: int
    dtype: np.dtype[Any]
    names: Array | None = None  # column names, where the source has them
    in_memory = False  # True where a pass reads nothing from disk, so that keeping numbers for every row is worth it
    distributed = False  # True where workers of a cluster hold them

    @abstractmethod
    def __iter__(self) -> Iterator[Block]:
        """Give the blocks, in order."""

    @abstractmethod
    def relabel(self, f: Relabel) -> Rows:
        """Return the same rows with targets and weights `f(y, w)`; `f` must work row by row."""

    def sum(self, f: Callable[[Block], S]) -> S:
        """Return the sum of `f(block)` over all blocks, the same to the last bit for any number of threads."""
        bound = hasattr(f, "__self__")  # to what is beside the rows: there is no saying what it was asked
        return self._sum(f) if bound else kept(f, partial(self._sum, f))

    def _sum(self, f: Callable[[Block], S]) -> S:
        return parallel_sum(f, self)

    def each(self, f: Callable[[Block], R]) -> list[R]:
        """Return `f(block)` for every block, in order."""
        return parallel_map(f, self)

    def map(self, f: Callable[[Block], Array]) -> Array:
        """Return an array with one entry per row, joined from `f(block)` of every block."""
        return np.concatenate(self.each(f))

    def fill(self, f: Callable[[Block], tuple[Array, ...]], outs: tuple[Array, ...]) -> None:
        """Write the arrays `f(block)` of every block to its rows of `outs`, in one pass."""
        start = 0
        for parts in self.each(f):
            for out, part in zip(outs, parts, strict=True):
                out[start : start + len(part)] = part
            start += len(parts[0])

    def take(self, index: Array) -> ArrayRows:
        """Load the rows with these numbers, which must be ascending."""
        picked = self.each(partial(_pick, np.asarray(index)))
        X = np.concatenate([b.X for b in picked])
        y = None if picked[0].y is None else np.concatenate([b.y for b in picked if b.y is not None])
        return ArrayRows(X, y, np.concatenate([b.w for b in picked]), self.names)

    def thin(self, stride: int) -> ArrayRows:
        """Load one row of every `stride`, at a place that changes: alternating classes all show."""
        first = np.arange(0, max(1, self.n_rows - stride + 1), stride)
        place = np.arange(len(first)) * ((np.sqrt(5) - 1) / 2) % 1  # multiples of the golden ratio keep apart
        return self.take(first + (stride * place).astype(np.int64))

    def load(self) -> ArrayRows:
        """Load all rows into memory."""
        X = np.empty((self.n_rows, self.n_features), self.dtype)
        y: list[Array] = []
        w = np.empty(self.n_rows)
        for block in self:
            rows = slice(block.start, block.start + len(block.w))
            X[rows], w[rows] = block.X, block.w
            if block.y is not None:
                y.append(block.y)
        return ArrayRows(X, np.concatenate(y) if y else None, w, self.names)


class ArrayRows(Rows):
    """Rows of an array, a memory map or a CSR matrix that was validated before."""

    def __init__(self, X: Matrix, y: Array | None = None, w: Array | None = None, names: Array | None = None) -> None:
        self.in_memory = not isinstance(X, np.memmap)
        # Converted once instead of in every pass; a memory map stays on disk.
        self._X = row_major(X) if self.in_memory and not sparse.issparse(X) else X
        self._check: Callable[[Block], None] | None = None  # which blocks have still to pass, see `check_later`
        self.n_rows, self.n_features = X.shape
        self.dtype = X.dtype if X.dtype in (np.float32, np.float64) else np.dtype(np.float64)
        self.y = y
        self.w = np.ones(self.n_rows) if w is None else row_major(w, np.float64)
        self.names = names
        if sparse.issparse(X):
            self.block_rows = sparse_block_rows(X.nnz / max(1, self.n_rows), self.n_features)
        else:
            self.block_rows = block_rows(self.n_features)
        self._parts: dict[int, Matrix] = {}  # blocks of a CSR matrix, by their first row

    @property
    def X(self) -> Matrix:
        """The whole table."""
        self.check_now()
        return self._X

    def check_later(self, check: Callable[[Block], None]) -> None:
        """Have the first pass check its blocks as it reads them, or whoever asks for rows before there is one."""
        self._check = check

    def check_now(self) -> None:
        """Check the blocks, if that was put off."""
        if self._check is not None:
            self.each(_nothing)

    def __iter__(self) -> Iterator[Block]:
        self.check_now()
        for start in range(0, self.n_rows, self.block_rows):
            rows = slice(start, start + self.block_rows)
            yield Block(self._part(rows), None if self.y is None else self.y[rows], self.w[rows], start)

    def _sum(self, f: Callable[[Block], S]) -> S:
        with self._checking(f) as checked:
            return parallel_sum(checked, self)

    def each(self, f: Callable[[Block], R]) -> list[R]:
        with self._checking(f) as checked:
            return parallel_map(checked, self)

    @contextmanager
    def _checking(self, f: Callable[[Block], R]) -> Iterator[Callable[[Block], R]]:
        """Give f, which checks each block before, if that was put off until this pass."""
        check, self._check = self._check, None
        try:
            yield f if check is None else partial(_checked, check, f)
        except BaseException:
            self._check = check
            raise

    @property
    def n_blocks(self) -> int:
        """The number of blocks that a pass goes over."""
        return -(-self.n_rows // self.block_rows)

    def _part(self, rows: slice) -> Matrix:
        if not sparse.issparse(self._X):
            return row_major(self._X[rows], self.dtype)
        # Cut once instead of in every pass.
        if rows.start not in self._parts:
            self._parts[rows.start] = _csr_rows(self._X, rows)
        return self._parts[rows.start]

    def relabel(self, f: Relabel) -> ArrayRows:
        y, w = f(self.y, self.w)
        return ArrayRows(self.X, y, w, self.names)

    def map(self, f: Callable[[Block], Array]) -> Array:
        return np.array(self.each(f)[0]) if self.n_blocks == 1 else JoinedParts(self.n_rows).of(self, f)

    def fill(self, f: Callable[[Block], tuple[Array, ...]], outs: tuple[Array, ...]) -> None:
        self.each(partial(write_rows, f, outs))

    def take(self, index: Array) -> ArrayRows:
        X = self.X[index] if sparse.issparse(self.X) else np.asarray(self.X[index], dtype=self.dtype)
        return ArrayRows(X, None if self.y is None else self.y[index], self.w[index], self.names)

    def load(self) -> ArrayRows:
        return self if self.in_memory else super().load()


class JoinedParts:
    """One array with an entry per row, written by every block as it is done.

    To keep the parts of all blocks and join them would take twice the memory, and the time to ask for it. The first
    part that is done shows what an entry looks like; parts that look otherwise are joined in the end.
    """

    def __init__(self, n_rows: int) -> None:
        self.n_rows = n_rows
        self.out: Array | None = None
        self.lock = threading.Lock()

    def of(self, rows: Rows, f: Callable[[Block], Array]) -> Array:
        """Return `f(block)` of all blocks of these rows."""
        found = rows.each(partial(self._write, f))
        assert self.out is not None
        if all(other is None for _, other in found):
            return self.out
        return np.concatenate([self.out[part] if other is None else other for part, other in found])

    def _write(self, f: Callable[[Block], Array], block: Block) -> tuple[slice, Array | None]:
        """Write the part of a block; return where it is, and the part itself if it does not fit."""
        part = f(block)
        rows = slice(block.start, block.start + len(part))
        with self.lock:
            if self.out is None:
                order: Any = "F" if part.flags.fnc else "C"
                self.out = np.empty((self.n_rows, *part.shape[1:]), part.dtype, order)
        if part.dtype != self.out.dtype or part.shape[1:] != self.out.shape[1:]:
            return rows, part
        self.out[rows] = part
        return rows, None


def write_rows(f: Callable[[Block], tuple[Array, ...]], outs: tuple[Array, ...], block: Block) -> None:
    """Write `f(block)` into place: to keep the parts of all blocks and join them would take twice the memory."""
    for out, part in zip(outs, f(block), strict=True):
        out[block.start : block.start + len(part)] = part


def _checked(check: Callable[[Block], None], f: Callable[[Block], R], block: Block) -> R:
    check(block)
    return f(block)


def _nothing(block: Block) -> None:
    pass


def relabelled(block: Block, relabels: Iterable[Relabel]) -> Block:
    """Return a block with targets and weights changed by each function in turn."""
    for f in relabels:
        y, w = f(block.y, block.w)
        block = block._replace(y=y, w=w)
    return block


def _csr_rows(X: Matrix, rows: slice) -> Matrix:
    """Return a run of rows that shares its entries with X; slicing would copy them.

    Column numbers of 64 bits become 32 where these do: each pass then reads a quarter less.
    """
    start, stop, _ = rows.indices(X.shape[0])
    first, last = X.indptr[start], X.indptr[stop]
    part = type(X)((stop - start, X.shape[1]), dtype=X.dtype)
    number = np.int32 if max(last - first, X.shape[1]) < 2**31 else X.indices.dtype
    part.data, part.indices = X.data[first:last], X.indices[first:last].astype(number, copy=False)
    part.indptr = (X.indptr[start : stop + 1] - first).astype(number, copy=False)
    return part


def _pick(index: Array, block: Block) -> Block:
    first, last = np.searchsorted(index, [block.start, block.start + len(block.w)])
    here = index[first:last] - block.start
    return Block(block.X[here], None if block.y is None else block.y[here], block.w[here], 0)
