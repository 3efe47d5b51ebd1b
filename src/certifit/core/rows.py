"""A table seen as a fixed sequence of row blocks. *Rows* know how to sum; *models* never loop over data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from certifit.core.sums import S
from certifit.core.threads import parallel_map, parallel_sum

Array: TypeAlias = NDArray[Any]
Matrix: TypeAlias = Any  # a dense array (rows, d), C-contiguous, or scipy.sparse CSR
Relabel: TypeAlias = Callable[[Array | None, Array], tuple[Array | None, Array]]  # (y, w) -> (y, w)


class Block(NamedTuple):
    """A run of consecutive rows."""

    X: Matrix  # (rows, d) float32 or float64, C-contiguous or CSR
    y: Array | None  # (rows,)
    w: Array  # (rows,) row weights, float64, always there
    start: int  # index of the first row in the whole table


def block_rows(row_entries: float) -> int:
    """Rows in a block of rows with this many entries: a power of two, from the data's shape alone.

    About half a million entries, but no fewer than 1024 rows unless rows are very wide (sums of d x d matrices
    should not cost more than the products they add) and no more than 32768 (so that threads share the work).
    A power of two makes any Dask partition or file of 2^k rows an aligned run of blocks: see `tree_sum`.

    >>> block_rows(784), block_rows(50), block_rows(16), block_rows(50_000)
    (1024, 8192, 32768, 64)
    """
    entries = max(1.0, row_entries)
    rows = min(max(2**19 / entries, min(1024.0, 2**22 / entries)), 32768.0)
    return 1 << max(0, int(np.log2(rows)))


class Rows(ABC):
    """A re-iterable table of rows; every pass gives the same blocks in the same order."""

    n_features: int
    n_rows: int
    dtype: np.dtype[Any]
    names: Array | None = None  # column names, where the source has them
    in_memory = False  # True where a pass costs no reading, so that O(n) state beside it pays

    @abstractmethod
    def __iter__(self) -> Iterator[Block]:
        """The blocks, in order."""

    @abstractmethod
    def relabel(self, f: Relabel) -> Rows:
        """The same rows with targets and weights `f(y, w)`; `f` must work row by row."""

    def sum(self, f: Callable[[Block], S]) -> S:
        """Add `f(block)` over all blocks; the same bits for any number of threads."""
        return parallel_sum(f, self)

    def map(self, f: Callable[[Block], Array]) -> Array:
        """`f(block)` for every block, one output per row, in the order of the rows."""
        return np.concatenate(parallel_map(f, self))

    def take(self, index: Array) -> ArrayRows:
        """The rows with these numbers (ascending), in memory."""
        index = np.asarray(index)

        def pick(block: Block) -> Block:
            first, last = np.searchsorted(index, [block.start, block.start + len(block.w)])
            here = index[first:last] - block.start
            return Block(block.X[here], None if block.y is None else block.y[here], block.w[here], 0)

        return _stack(parallel_map(pick, self), self.names)

    def thin(self, stride: int) -> ArrayRows:
        """Every `stride`-th row, in memory."""
        return self.take(np.arange(0, self.n_rows, stride))

    def load(self) -> ArrayRows:
        """All rows, in memory."""
        return _stack(list(self), self.names)


class ArrayRows(Rows):
    """A dense array (also a memory map) or a CSR matrix that is already here. Expects validated input."""

    in_memory = True

    def __init__(self, X: Matrix, y: Array | None = None, w: Array | None = None, names: Array | None = None) -> None:
        # one conversion, not one per pass; a memory map is left where it is
        self.X = X if sparse.issparse(X) or isinstance(X, np.memmap) else np.ascontiguousarray(X)
        self.n_rows, self.n_features = X.shape
        self.dtype = X.dtype
        self.y = y
        self.w = np.ones(self.n_rows) if w is None else np.asarray(w, dtype=np.float64)
        self.names = names
        row_entries = X.nnz / max(1, self.n_rows) if sparse.issparse(X) else self.n_features
        self.block_rows = block_rows(row_entries)

    def __iter__(self) -> Iterator[Block]:
        for start in range(0, self.n_rows, self.block_rows):
            rows = slice(start, start + self.block_rows)
            X = self.X[rows] if sparse.issparse(self.X) else np.ascontiguousarray(self.X[rows])
            yield Block(X, None if self.y is None else self.y[rows], self.w[rows], start)

    def relabel(self, f: Relabel) -> ArrayRows:
        y, w = f(self.y, self.w)
        return ArrayRows(self.X, y, w, self.names)

    def take(self, index: Array) -> ArrayRows:
        y = None if self.y is None else self.y[index]
        return ArrayRows(self.X[index], y, self.w[index], self.names)

    def load(self) -> ArrayRows:
        return self


def _stack(blocks: list[Block], names: Array | None) -> ArrayRows:
    stack = sparse.vstack if sparse.issparse(blocks[0].X) else np.concatenate
    y = None if blocks[0].y is None else np.concatenate([b.y for b in blocks if b.y is not None])
    return ArrayRows(stack([b.X for b in blocks]), y, np.concatenate([b.w for b in blocks]), names)
