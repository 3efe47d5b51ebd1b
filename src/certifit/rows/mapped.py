"""Rows computed from other rows, for instance kernel features, block by block: never all of them are in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from certifit.rows.block import Array, Block, block_rows
from certifit.rows.rows import ArrayRows, R, Relabel, Rows
from certifit.rows.sums import S, tree_sum


class MappedRows(Rows):
    """The rows f(block) (rows, width) of other rows, with their targets and weights.

    Blocks are cut again to the size for the new width. `f` must be picklable and work row by row. Every pass calls it
    again, so that these rows are never all in memory, even where the other rows are.

    >>> from certifit.rows import as_rows
    >>> squares = MappedRows(as_rows([[1.0, 2.0], [3.0, 4.0]]), lambda block: block.X[:, :1] ** 2, 1)
    >>> squares.sum(lambda block: block.X.sum(axis=0))
    array([10.])
    """

    def __init__(self, rows: Rows, f: Callable[[Block], Array], width: int) -> None:
        self.rows, self.f, self.n_features = rows, f, width
        self.n_rows = rows.n_rows
        self.dtype = np.dtype(np.float64)
        self.piece = block_rows(width)

    def relabel(self, f: Relabel) -> MappedRows:
        return MappedRows(self.rows.relabel(f), self.f, self.n_features)

    def __iter__(self) -> Iterator[Block]:
        for block in self.rows:
            yield from _pieces(self.f, self.piece, block)

    def _sum(self, f: Callable[[Block], S]) -> S:
        return self.rows.sum(partial(_sum_pieces, f, self.f, self.piece))

    def each(self, f: Callable[[Block], R]) -> list[R]:
        return [found for part in self.rows.each(partial(_list_pieces, f, self.f, self.piece)) for found in part]

    def take(self, index: Array) -> ArrayRows:
        return MappedRows(self.rows.take(index), self.f, self.n_features).load()

    def load(self) -> ArrayRows:
        rows = self.rows.load()
        # Blocks are written into place as they are made: joining them afterwards would take twice the memory.
        X = np.empty((self.n_rows, self.n_features))
        MappedRows(rows, self.f, self.n_features).each(partial(_write_block, X))
        return ArrayRows(X, rows.y, rows.w)


def _pieces(f: Callable[[Block], Array], size: int, block: Block) -> Iterator[Block]:
    for a in range(0, len(block.w), size):
        part = slice(a, a + size)
        y = None if block.y is None else block.y[part]
        piece = Block(block.X[part], y, block.w[part], block.start + a)
        yield piece._replace(X=f(piece))


def _sum_pieces(f: Callable[[Block], S], mapped: Callable[[Block], Array], size: int, block: Block) -> S:
    return tree_sum(map(f, _pieces(mapped, size, block)))


def _list_pieces(f: Callable[[Block], R], mapped: Callable[[Block], Array], size: int, block: Block) -> list[R]:
    return [f(piece) for piece in _pieces(mapped, size, block)]


def _write_block(X: Array, block: Block) -> None:
    X[block.start : block.start + len(block.w)] = block.X
