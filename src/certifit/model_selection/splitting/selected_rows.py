"""Some of the rows of a table, wherever they are: what is left out is read and dropped, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic

import numpy as np

from certifit.exceptions import DataError
from certifit.rows.block import Array, Block
from certifit.rows.rows import ArrayRows, R, Relabel, Rows
from certifit.rows.sums import S


@dataclass(frozen=True)
class RowSelection:
    """Which rows of a table are kept, and how many come before every `stride`-th of them."""

    kept: Array  # (n,) bool
    before: Array  # (ceil(n / stride),) kept rows before each stretch
    stride: int = 4096

    @classmethod
    def of(cls, kept: Array, stride: int = 4096) -> RowSelection:
        counts = np.add.reduceat(kept, np.arange(0, len(kept), stride), dtype=np.int64)
        return cls(kept, np.concatenate([[0], np.cumsum(counts)[:-1]]), stride)

    def cut(self, block: Block) -> Block:
        """Return the kept rows of a block, numbered among all kept rows."""
        here = self.kept[block.start : block.start + len(block.w)]
        stretch = block.start // self.stride
        start = self.before[stretch] + np.count_nonzero(self.kept[stretch * self.stride : block.start])
        y = None if block.y is None else block.y[here]
        return Block(block.X[here], y, block.w[here], int(start))


@dataclass(frozen=True)
class PartialSum(Generic[S]):
    """A sum over blocks of which some have no row that is kept, and then no value."""

    value: Any = None

    def __add__(self, other: PartialSum[S]) -> PartialSum[S]:
        if self.value is None or other.value is None:
            return other if self.value is None else self
        return PartialSum(self.value + other.value)


class SelectedRows(Rows):
    """The rows of a table whose entry in `kept` (n,) is true; a file or a Dask collection stays where it is.

    >>> from certifit.rows import as_rows
    >>> rows = SelectedRows(as_rows([[1.0], [2.0], [4.0]]), np.array([True, False, True]))
    >>> rows.n_rows, rows.sum(lambda block: block.X.sum(axis=0))
    (2, array([5.]))
    """

    def __init__(self, rows: Rows, kept: Array) -> None:
        if len(kept) != rows.n_rows or not np.any(kept):
            raise DataError(
                got=f"{np.count_nonzero(kept)} rows kept of {len(kept)}, of a table of {rows.n_rows} rows",
                wanted="an entry for every row of the table, and at least one row kept",
            )
        self.rows, self.selection = rows, RowSelection.of(np.asarray(kept, dtype=bool))
        self.n_rows = int(np.count_nonzero(kept))
        self.n_features, self.dtype, self.names = rows.n_features, rows.dtype, rows.names
        self.in_memory = rows.in_memory

    def relabel(self, f: Relabel) -> SelectedRows:
        return SelectedRows(self.rows.relabel(f), self.selection.kept)

    def __iter__(self) -> Iterator[Block]:
        cut = (self.selection.cut(block) for block in self.rows)
        return (block for block in cut if len(block.w))

    def _sum(self, f: Callable[[Block], S]) -> S:
        return self.rows.sum(partial(_sum_kept, f, self.selection)).value

    def each(self, f: Callable[[Block], R]) -> list[R]:
        return [found for part in self.rows.each(partial(_list_kept, f, self.selection)) for found in part]

    def load(self) -> ArrayRows:
        return self.rows.take(np.flatnonzero(self.selection.kept))


def _sum_kept(f: Callable[[Block], S], selection: RowSelection, block: Block) -> PartialSum[S]:
    block = selection.cut(block)
    return PartialSum(f(block)) if len(block.w) else PartialSum()


def _list_kept(f: Callable[[Block], R], selection: RowSelection, block: Block) -> list[R]:
    block = selection.cut(block)
    return [f(block)] if len(block.w) else []
