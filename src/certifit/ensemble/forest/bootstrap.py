"""The bootstrap of a forest: the order in which rows stand for it, and how often each tree draws each of them.

Draws fall on rows laid end to end, each as long as its weight, in the order of a hash of their contents. So neither
the order of the rows matters nor whether a row of weight 2 is written twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from certifit.checkers.ensemble.forest.plain_bootstrap import checked_draws
from certifit.checkers.plain.blocks import dense
from certifit.numerics.compiled.random_bits import random_bits_of_pairs
from certifit.rows import Array, Block, Rows

DRAWING = np.uint64(0x8CB92BA72F3D8DD7)  # tells the draws of rows from those of columns


def hash_block(block: Block) -> Array:
    """64 bits of each row of a block: its values to float32 precision, and its targets."""
    with np.errstate(over="ignore"):  # what float32 cannot hold is infinite to it
        values = dense(block.X).astype(np.float32) + np.float32(0.0)  # -0 is 0
    bits = np.where(np.isnan(values), np.int32(-1), np.ascontiguousarray(values).view(np.int32))
    y = np.asarray(block.y, np.float64).reshape(len(bits), -1) + 0.0
    found = np.zeros(len(bits), np.uint64)
    for column in (*np.ascontiguousarray(y.T).view(np.int64), *bits.T):
        found = random_bits_of_pairs(found, column)
    return found


@dataclass(frozen=True)
class Bootstrap:
    """Draws with replacement from rows laid end to end, each as long as its weight."""

    order: Array  # (n,) int32: rows in the order in which they are laid
    weight: Array  # (n,) float64
    draws: int  # of each tree

    @classmethod
    def of(cls, rows: Rows, weight: Array, draws: int) -> Bootstrap:
        hashes = rows.map(hash_block)
        return cls(np.argsort(hashes, kind="stable").astype(np.int32), weight, draws)

    @cached_property
    def _ends(self) -> Array:
        """The running sums of weights (n,), in the order in which rows are laid."""
        return np.cumsum(self.weight[self.order])

    def counts(self, seed: int) -> Array:
        """How often a tree with this seed draws each row (n,)."""
        order, ends = self.order, self._ends
        bits = random_bits_of_pairs(np.uint64(seed) ^ DRAWING, np.arange(checked_draws(self.draws)))
        at = (bits >> np.uint64(11)).astype(np.float64) / 2.0**53 * ends[-1]
        # Weights that merely add up to n, such as 2 and 0, are not even: ends are 1, 2, 3, … where all of them are 1.
        even = bool((ends == np.arange(1, len(ends) + 1)).all())
        place = at.astype(np.int64) if even else np.searchsorted(ends, at, side="right")
        return np.bincount(order[np.minimum(place, len(order) - 1)], minlength=len(order)).astype(np.int32)

    def unseen(self, seeds: Array) -> Array:
        """Which rows of positive weight each tree has not drawn (trees, n)."""
        return np.stack([(self.counts(seed) == 0) & (self.weight > 0) for seed in seeds])


def number_of_draws(asked: Any, sample_weight: Array) -> int:
    """How many rows a tree draws: all of them by default; a row of whole weight w counts as w rows."""
    whole = (sample_weight == np.rint(sample_weight)).all()
    n = float(sample_weight.sum()) if whole else float((sample_weight > 0).sum())
    if asked is None:
        return int(n)
    return int(asked) if isinstance(asked, (int, np.integer)) else max(1, round(asked * n))
