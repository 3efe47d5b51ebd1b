"""The same rows with other weights, for models that leave some rows out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from scipy import sparse

from certifit.rows.block import Array, Block, Matrix
from certifit.rows.rows import ArrayRows, R, Relabel, Rows, relabelled
from certifit.rows.sums import S


class ReweightedRows(Rows):
    """The same rows, wherever they are, with weights `w` (n,).

    A row of weight 0 is replaced by `filler` (d,), a row like the others, or by zeros where rows are sparse. It may
    be an outlier so far away that its square overflows, or that it spoils the shift and the rounding of a sum.

    >>> from certifit.rows import as_rows
    >>> rows = ReweightedRows(as_rows([[1.0], [2.0], [1e200]]), np.array([1.0, 1.0, 0.0]), np.array([1.5]))
    >>> rows.sum(lambda block: block.w @ block.X**2)
    array([5.])
    """

    def __init__(self, rows: Rows, w: Array, filler: Array, relabels: tuple[Relabel, ...] = ()) -> None:
        self.rows, self.w, self.filler, self.relabels = rows, w, filler, relabels
        self.n_rows, self.n_features, self.dtype, self.names = rows.n_rows, rows.n_features, rows.dtype, rows.names
        self.in_memory = rows.in_memory

    def relabel(self, f: Relabel) -> ReweightedRows:
        return ReweightedRows(self.rows, self.w, self.filler, (*self.relabels, f))

    def __iter__(self) -> Iterator[Block]:
        return (_reweighted(self.w, self.filler, self.relabels, block) for block in self.rows)

    def _sum(self, f: Callable[[Block], S]) -> S:
        return self.rows.sum(partial(_apply, f, self.w, self.filler, self.relabels))

    def each(self, f: Callable[[Block], R]) -> list[R]:
        return self.rows.each(partial(_apply, f, self.w, self.filler, self.relabels))

    def take(self, index: Array) -> ArrayRows:
        return self._reweigh(self.rows.take(index), self.w[index])

    def load(self) -> ArrayRows:
        return self._reweigh(self.rows.load(), self.w)

    def _reweigh(self, found: ArrayRows, w: Array) -> ArrayRows:
        rows = ArrayRows(_replace_unused(found.X, w, self.filler), found.y, w, self.names)
        for f in self.relabels:
            rows = rows.relabel(f)
        return rows


def _apply(f: Callable[[Block], R], w: Array, filler: Array, relabels: tuple[Relabel, ...], block: Block) -> R:
    return f(_reweighted(w, filler, relabels, block))


def _reweighted(w: Array, filler: Array, relabels: tuple[Relabel, ...], block: Block) -> Block:
    w = w[block.start : block.start + len(block.w)]
    return relabelled(block._replace(X=_replace_unused(block.X, w, filler), w=w), relabels)


def _replace_unused(X: Matrix, w: Array, filler: Array) -> Matrix:
    out = w == 0
    if not out.any():
        return X
    if sparse.issparse(X):
        return sparse.diags_array((~out).astype(X.dtype)).tocsr() @ X
    return np.where(out[:, None], filler.astype(X.dtype), X)
