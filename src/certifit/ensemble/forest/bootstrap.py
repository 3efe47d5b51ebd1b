"""The bootstrap of a forest: the order in which rows stand for it, and how often each tree draws each of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from certifit.checkers.ensemble.forest.plain_bootstrap import checked_draws
from certifit.checkers.plain.blocks import dense
from certifit.ensemble.forest.bootstrap_loops import drawn_counts, row_hashes
from certifit.rows import Array, Block, Rows


def hash_block(block: Block) -> Array:
    """64 bits of each row of a block: its values to float32 precision, and its target."""
    values = dense(block.X).astype(np.float32) + np.float32(0.0)  # -0 is 0
    bits = np.where(np.isnan(values), np.int32(-1), np.ascontiguousarray(values).view(np.int32))
    return row_hashes(bits, (np.asarray(block.y, np.float64) + 0.0).view(np.int64))


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

    def counts(self, seed: int) -> Array:
        """How often a tree with this seed draws each row (n,)."""
        return drawn_counts(int(seed), checked_draws(self.draws), self.order, np.cumsum(self.weight[self.order]))

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
