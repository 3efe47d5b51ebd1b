"""Rows that a network learns from: in memory, or in a temporary file, which may be larger than memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import sparse

from certifit.files.rows_on_disk import arrays_on_disk
from certifit.rows import Array, Matrix, Rows


@dataclass(frozen=True)
class NetworkRowsTuning:
    """How much is read at a time of a table on disk."""

    piece_entries: int = 1 << 22  # numbers in its rows


@dataclass(frozen=True)
class NetworkRows:
    """Rows to learn from, in memory or in a temporary file, which may be larger than memory."""

    X: Matrix  # (n, d), dense or CSR; a memory map where it is on disk
    Y: Array  # (n, k) targets, as wide as the network's scores; likewise
    w: Array  # (n,) positive weights

    @property
    def columns(self) -> int:
        return int(self.X.shape[1])

    def take(self, index: Array | slice) -> NetworkRows:
        return NetworkRows(self.X[index], self.Y[index], self.w[index])

    def part(self, index: Array) -> NetworkRows:
        """The rows with these numbers, which ascend; of a table on disk, on disk too."""
        if not isinstance(self.X, np.memmap):
            return self.take(index)
        step = max(1, NetworkRowsTuning().piece_entries // self.columns)
        pieces = (self.take(index[k : k + step]) for k in range(0, len(index), step))
        return NetworkRows(*arrays_on_disk((piece.X, piece.Y, piece.w) for piece in pieces))

    def pieces(self) -> Iterator[NetworkRows]:
        """All rows in order, some at a time."""
        step = max(1, NetworkRowsTuning().piece_entries // self.columns)
        return (self.take(slice(k, k + step)) for k in range(0, len(self), step))

    def __len__(self) -> int:
        return len(self.w)


class MinibatchRows(Protocol):
    """Rows to learn from, wherever they are."""

    @property
    def w(self) -> Array: ...

    @property
    def columns(self) -> int: ...

    def take(self, index: Array) -> NetworkRows: ...

    def __len__(self) -> int: ...


def rows_at_hand(rows: Rows, table: Callable[[Array], Array], dtype: np.dtype) -> NetworkRows:
    """Rows with a positive weight, any of which can be read at any time: in memory only if they were there before.

    `table` makes targets as wide as the scores. Other rows are read once, block by block, into a temporary file.
    """
    if rows.in_memory:
        data = rows.load()
        kept = data.w > 0
        Y = table(np.asarray(data.y)[kept]).astype(dtype)
        return NetworkRows(data.X if kept.all() else data.X[kept], Y, data.w[kept])

    def parts() -> Iterator[tuple[Array, ...]]:
        for block in rows:
            kept = block.w > 0
            yield block.X[kept], table(np.asarray(block.y)[kept]).astype(dtype), block.w[kept]

    return NetworkRows(*arrays_on_disk(parts()))


def dense_as(X: Matrix, dtype: np.dtype) -> Array:
    """Rows as a dense array of this type."""
    return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=dtype)
