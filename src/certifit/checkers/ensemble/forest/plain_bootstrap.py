"""What a forest's seeds decide, worked out plainly: which rows a tree drew, and which columns a node was shown.

All random bits are SplitMix64's finaliser of two numbers (Steele, Lea & Flood 2014): anyone can recompute them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from certifit.checkers.plain.blocks import dense
from certifit.exceptions import DataError
from certifit.rows import Array, Block, Rows

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # SplitMix64's step: 2^64 divided by the golden ratio


def finished(z: Array) -> Array:
    """The finaliser of 64 bits each."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


def mixed(a: Any, b: Any) -> Array:
    """64 random bits that depend on two numbers alone."""
    with np.errstate(over="ignore"):
        return finished(np.asarray(a).astype(np.uint64) + GOLDEN * (np.asarray(b).astype(np.uint64) + np.uint64(1)))


def share_of(bits: Array) -> Array:
    """Random bits as numbers in [0, 1)."""
    return np.asarray((bits >> np.uint64(11)).astype(np.float64) / 2.0**53)


def check_whole(*arrays: Any) -> None:
    """Refuse numbers of rows, and seeds, that are not whole."""
    if any(np.asarray(a).dtype.kind not in "iu" or np.asarray(a).ndim != 1 for a in arrays):
        raise DataError(
            got="numbers of rows or seeds that are not whole", wanted="those of the fit", fix="Fit it again."
        )


def row_order(rows: Rows) -> Array:
    """Rows in the order in which they are laid end to end: by a hash of their values (float32) and targets."""
    return np.argsort(rows.map(_hashes), kind="stable")


def _hashes(block: Block) -> Array:
    with np.errstate(over="ignore"):
        values = dense(block.X).astype(np.float32) + np.float32(0.0)
    bits = np.where(np.isnan(values), np.int32(-1), values.view(np.int32)).astype(np.int64)
    y = np.asarray(block.y, np.float64).reshape(len(bits), -1) + 0.0
    found = np.zeros(len(bits), np.uint64)
    for column in (*np.ascontiguousarray(y.T).view(np.int64), *bits.T):
        found = mixed(found, column)
    return found


@dataclass(frozen=True)
class DrawTuning:
    """How many rows one member may draw: each draw takes a number of eight bytes."""

    most: int = 100_000_000


def checked_draws(draws: int, tuning: DrawTuning = DrawTuning()) -> int:
    """The same number of draws; refused where whole weights, which count as so many rows, ask for too many."""
    if draws > tuning.most:
        raise DataError(
            got=f"{draws:.3g} rows to draw for each member: a row of whole weight w counts as w rows",
            wanted=f"at most {tuning.most}",
            fix="Set max_samples to the number of rows, or divide all weights by their largest.",
        )
    return draws


def drawn_counts(seed: int, draws: int, order: Array, weight: Array) -> Array:
    """How often a tree with this seed drew each row (n,)."""
    ends = np.cumsum(weight[order])
    key = np.uint64(seed) ^ np.uint64(0x8CB92BA72F3D8DD7)
    at = share_of(mixed(key, np.arange(checked_draws(draws)))) * ends[-1]
    place = np.minimum(np.searchsorted(ends, at, side="right"), len(order) - 1)
    return np.bincount(order[place], minlength=len(order))


def node_keys(left: Array, right: Array, seed: int, n_columns: int) -> Array:
    """The random bits of every node, by its path from the root."""
    key = np.zeros(len(left), np.uint64)
    key[0] = np.uint64(seed)
    level = np.zeros(1, np.int64)
    while len(level):
        inner = level[left[level] >= 0]
        key[left[inner]], key[right[inner]] = mixed(key[inner], n_columns), mixed(key[inner], n_columns + 1)
        level = np.concatenate([left[inner], right[inner]])
    return key


def column_order(key: Any, n_columns: int, first: int) -> list[int]:
    """The first columns that a node with these bits looks at: the beginning of a shuffle."""
    moved: dict[int, int] = {}
    found = []
    bits = mixed(key, np.arange(first))
    for i in range(first):
        at = i + int(bits[i] % np.uint64(n_columns - i))
        found.append(moved.get(at, at))
        moved[at] = moved.get(i, i)
    return found
