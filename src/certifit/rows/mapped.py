"""Rows seen through a function of them (features, say), made block by block and never held all at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from certifit.rows.block import Array, Block, block_rows
from certifit.rows.rows import ArrayRows, R, Relabel, Rows
from certifit.rows.sums import S, tree_sum


class MappedRows(Rows):
    """The rows f(block) (rows, width) of other rows, wherever these are, with their targets and weights.

    Blocks are cut to the size that suits the new width. `f` must be picklable and work row by row; every pass calls
    it again, so that these rows are not in memory even where the others are.

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

    def sum(self, f: Callable[[Block], S]) -> S:
        return self.rows.sum(partial(_sum, f, self.f, self.piece))

    def each(self, f: Callable[[Block], R]) -> list[R]:
        return [found for part in self.rows.each(partial(_each, f, self.f, self.piece)) for found in part]

    def take(self, index: Array) -> ArrayRows:
        return MappedRows(self.rows.take(index), self.f, self.n_features).load()

    def load(self) -> ArrayRows:
        rows = self.rows.load()
        X = np.empty((self.n_rows, self.n_features))  # filled as they are made, else twice the memory is needed
        MappedRows(rows, self.f, self.n_features).each(partial(_put, X))
        return ArrayRows(X, rows.y, rows.w)


def _pieces(f: Callable[[Block], Array], size: int, block: Block) -> Iterator[Block]:
    for a in range(0, len(block.w), size):
        part = slice(a, a + size)
        y = None if block.y is None else block.y[part]
        piece = Block(block.X[part], y, block.w[part], block.start + a)
        yield piece._replace(X=f(piece))


def _sum(f: Callable[[Block], S], mapped: Callable[[Block], Array], size: int, block: Block) -> S:
    return tree_sum(map(f, _pieces(mapped, size, block)))


def _each(f: Callable[[Block], R], mapped: Callable[[Block], Array], size: int, block: Block) -> list[R]:
    return [f(piece) for piece in _pieces(mapped, size, block)]


def _put(X: Array, block: Block) -> None:
    X[block.start : block.start + len(block.w)] = block.X
