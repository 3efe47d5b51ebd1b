"""Blocks: runs of consecutive rows, the unit in which rows are read, measured and summed, and how large they are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array: TypeAlias = NDArray[Any]
Matrix: TypeAlias = Any  # a dense array (rows, d), C-contiguous, or scipy.sparse CSR


class Block(NamedTuple):
    """A run of consecutive rows."""

    X: Matrix  # (rows, d) float32 or float64, C-contiguous or CSR
    y: Array | None  # (rows,); (rows, m) where m > 1 targets are asked for
    w: Array  # (rows,) row weights, float64; ones where the table has none
    start: int  # index of the first row in the whole table


@dataclass(frozen=True)
class BlockTuning:
    """How large blocks are. That depends on the shape of the data alone, never on the number of threads.

    A block has about `entries` entries. It has at least `few_rows` rows, unless these have more than `most_entries`
    entries: with fewer rows, adding d x d matrices would take longer than computing them. It has at most `most_rows`
    rows, so that there is a block for every thread. A block of CSR rows has at least `entries_per_column` entries
    for each column, or `most_rows` rows.
    """

    entries: int = 2**19
    few_rows: int = 2048
    most_entries: int = 2**22
    most_rows: int = 32_768
    entries_per_column: int = 16
    fixed_rows: int | None = None  # every block has this many rows, whatever its entries


_tuning = BlockTuning()


@contextmanager
def block_tuning(tuning: BlockTuning) -> Iterator[None]:
    """Cut rows that are made inside this context into blocks by `tuning`.

    >>> with block_tuning(BlockTuning(fixed_rows=7)):
    ...     block_rows(784)
    7
    """
    global _tuning
    before, _tuning = _tuning, tuning
    try:
        yield
    finally:
        _tuning = before


def row_major(values: Array, dtype: Any = None) -> Array:
    """Return an array in row-major order, at an address that suits its numbers.

    What a Dask worker received over a network may lie anywhere, and NumPy adds such numbers in another order.
    """
    return np.require(np.asarray(values), dtype, ["C_CONTIGUOUS", "ALIGNED"])


def aligned_block(block: Block) -> Block:
    """Return a block whose numbers lie at addresses that suit them: one that came over a network is copied."""
    y = None if block.y is None else row_major(block.y)
    return block._replace(X=row_major(block.X), y=y, w=row_major(block.w))


def transpose(X: Matrix) -> Matrix:
    """Return the transpose of rows, without a copy: SciPy's own copies the entries of a CSR block at each call.

    >>> (transpose(sparse.csr_array([[1.0, 2.0]])) @ np.ones(1)).tolist()
    [1.0, 2.0]
    """
    if not (sparse.issparse(X) and X.format == "csr"):
        return X.T
    out = sparse.csc_array(X.shape[::-1], dtype=X.dtype)
    out.data, out.indices, out.indptr = X.data, X.indices, X.indptr
    return out


def block_rows(row_entries: float) -> int:
    """Return how many rows with this many entries make a block: a power of two.

    With a power of two, a Dask partition of 2^k rows has whole blocks, and none has to be moved to another.

    >>> block_rows(784), block_rows(50), block_rows(16), block_rows(50_000)
    (2048, 8192, 32768, 64)
    """
    if _tuning.fixed_rows is not None:
        return _tuning.fixed_rows
    entries = max(1.0, row_entries)
    least = min(float(_tuning.few_rows), _tuning.most_entries / entries)
    rows = min(max(_tuning.entries / entries, least), _tuning.most_rows)
    return 1 << max(0, int(np.log2(rows)))


def sparse_block_rows(row_entries: float, columns: int) -> int:
    """Return how many CSR rows with this many entries on average make a block: enough to pay for sums by column."""
    rows = block_rows(row_entries)
    if _tuning.fixed_rows is None:
        while rows * row_entries < _tuning.entries_per_column * columns and rows < _tuning.most_rows:
            rows *= 2
    return rows
