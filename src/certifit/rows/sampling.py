"""Samples of rows: evenly spaced, or drawn at random in proportion to their weight."""

from __future__ import annotations

from functools import partial

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
    nor whether a row is written twice or has weight 2.
    """
    u = rng.random(count)
    key = rows.map(partial(_place_and_weight, rng.normal(size=rows.n_features) if rows.n_rows <= count else None))
    order = np.argsort(key[:, 0], kind="stable")
    return order[pick(key[order, 1], u)]


def pick(mass: Array, u: Array) -> Array:
    """Return places drawn in proportion to their mass, by inverting the distribution function at u in [0, 1)."""
    total = np.cumsum(mass)
    last = np.searchsorted(total, total[-1])
    return np.minimum(np.searchsorted(total, u * total[-1], side="right"), last)


def _place_and_weight(direction: Array | None, block: Block) -> Array:
    """Return the number by which rows are sorted, and their weight (rows, 2)."""
    place = np.zeros(len(block.w)) if direction is None else np.asarray(block.X @ direction, dtype=np.float64)
    return np.column_stack([place, block.w])
