"""Rows drawn at random by their weight, so that how a table is written down does not matter."""

from __future__ import annotations

from functools import partial

import numpy as np

from certifit.rows.block import Array, Block
from certifit.rows.rows import Rows


def draw_rows(rows: Rows, count: int, rng: np.random.Generator) -> Array:
    """Numbers of rows drawn by their weight, with replacement (count,).

    In a table of at most `count` rows they are drawn along an order of their values, a random projection: shuffling
    rows, or writing a row twice instead of weighting it 2, then changes nothing.
    """
    u = rng.random(count)
    key = rows.map(partial(_key, rng.normal(size=rows.n_features) if rows.n_rows <= count else None))
    order = np.argsort(key[:, 0], kind="stable")
    return order[pick(key[order, 1], u)]


def pick(mass: Array, u: Array) -> Array:
    """Places drawn in proportion to their mass: u in [0, 1) through the inverse of the distribution function."""
    total = np.cumsum(mass)
    last = np.searchsorted(total, total[-1])
    return np.minimum(np.searchsorted(total, u * total[-1], side="right"), last)


def _key(direction: Array | None, block: Block) -> Array:
    """(rows, 2): where a row comes in the order, and its weight."""
    place = np.zeros(len(block.w)) if direction is None else np.asarray(block.X @ direction, dtype=np.float64)
    return np.column_stack([place, block.w])
