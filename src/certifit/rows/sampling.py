"""Samples of rows: evenly spaced, or drawn at random in proportion to their weight."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from certifit.rows.block import Array, Block
from certifit.rows.rows import ArrayRows, Rows


def evenly_spaced(rows: Rows, size: int = 2**15, entries: int = 2**26) -> ArrayRows:
    """Load evenly spaced rows: fewer than twice `size` of them and twice so many entries; all if they fit."""
    stride = max(1, rows.n_rows // size, rows.n_rows * rows.n_features // entries)
    return rows.load() if stride == 1 else rows.thin(stride)


def draw_rows(rows: Rows, count: int, rng: np.random.Generator) -> Array:
    """Return the numbers of rows drawn in proportion to their weight, with replacement (count,).

    A table of at most `count` rows is first sorted by a random projection: then neither the order of rows matters,
    nor whether a row is written twice or has weight 2. Of more rows nothing is kept but weights that differ.
    """
    u = rng.random(count)
    if rows.n_rows > count:
        return _pick_among_blocks(rows.each(_block_weight), u)
    key = rows.map(partial(_place_and_weight, rng.normal(size=rows.n_features)))
    order = np.argsort(key[:, 0], kind="stable")
    return order[pick(key[order, 1], u)]


def pick(mass: Array, u: Array) -> Array:
    """Return places drawn in proportion to their mass, by inverting the distribution function at u in [0, 1)."""
    total = np.cumsum(mass)
    return _places(total, u * total[-1])


def _places(total: Array, wanted: Array) -> Array:
    """Where sums (n,) of masses that are never negative first exceed what is wanted, or reach their end."""
    return np.minimum(np.searchsorted(total, wanted, side="right"), np.searchsorted(total, total[-1]))


def _place_and_weight(direction: Array, block: Block) -> Array:
    """Return the number by which rows are sorted, and their weight (rows, 2)."""
    return np.column_stack([np.asarray(block.X @ direction, dtype=np.float64), block.w])


class _BlockWeight(NamedTuple):
    """The weights of the rows of a block."""

    start: int
    total: float
    each: Array  # (rows,), or (1,) where all are equal
    rows: int


def _block_weight(block: Block) -> _BlockWeight:
    equal = bool((block.w == block.w[0]).all())
    return _BlockWeight(block.start, float(block.w.sum()), block.w[:1].copy() if equal else block.w, len(block.w))


def _pick_among_blocks(blocks: list[_BlockWeight], u: Array) -> Array:
    """`pick` from the weights of rows in blocks."""
    ends = np.cumsum([block.total for block in blocks])
    wanted = u * ends[-1]
    owner = _places(ends, wanted)
    found = np.empty(len(u), np.int64)
    for k in np.unique(owner).tolist():
        mine, block = owner == k, blocks[k]
        inside = np.maximum(wanted[mine] - (ends[k] - block.total), 0.0)
        found[mine] = block.start + _places(np.cumsum(np.broadcast_to(block.each, block.rows)), inside)
    return found
