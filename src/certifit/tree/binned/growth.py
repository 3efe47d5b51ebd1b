"""Growing a tree on binned columns: small tables in one compiled call, large ones split by split, on threads."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from certifit.numerics.compiled.compiling import PlainFirst
from certifit.numerics.compiled.workers import Workers
from certifit.rows import Array
from certifit.rows.threads import thread_count
from certifit.tree.binned.bins import ColumnBins
from certifit.tree.binned.growth_loops import (
    GrowingTree,
    grow_alone,
    take_step,
)
from certifit.tree.binned.histogram_loops import pack_pairs
from certifit.tree.binned.plain_growth import grow_plainly, plain_pack
from certifit.tree.binned.search_loops import NODE, BinnedRules

PLAIN_FIRST, PLAIN_PAIRS = PlainFirst(grow_alone), PlainFirst(pack_pairs)
_ANY_DEPTH = int(np.iinfo(np.int64).max)


@dataclass(frozen=True)
class BinnedTuning:
    """How work is shared out, and how much is kept."""

    shared_entries: int = 600_000  # tables with fewer entries (rows times columns) are grown on one thread
    block_rows: int = 4096  # rows are dealt out to chunks in blocks of so many
    counted_rows: int = 16_384  # children of nodes with at most so many rows have their rows counted
    kept_bytes: int = 2**28  # of histograms of nodes that wait to be split
    leaf_hessian: float = 1e-3  # least sum of Hessians of a leaf


@dataclass(frozen=True)
class BinnedLimits:
    """The rules that a tree must keep to."""

    max_leaf_nodes: int | None = 31
    max_depth: int | None = None
    min_samples_leaf: int = 20
    l2_regularization: float = 0.0
    max_features: int | None = None  # how many columns each split looks at; None for all
    monotone: Array | None = None  # (d,) -1, 0 or 1
    groups: Array | None = None  # (g, d) bool: columns that may meet in a branch


@dataclass(frozen=True)
class PackedScale:
    """The units of packed pairs: a gradient is qg / scales[0], a Hessian qh / scales[1]."""

    scales: tuple[float, float]
    shift: int
    constant: bool  # whether every Hessian is one unit

    @property
    def value_unit(self) -> float:
        """What -G / H in units has to be multiplied by."""
        return self.scales[1] / self.scales[0]


def packed_scale(n: int, gradient_size: float, hessian_sum: float, constant: float | None) -> PackedScale:
    """Units so small that no sum over any rows overflows, given Σ |g| and Σ h; `constant` is the one h of all rows.

    A gradient's part has 64 - shift bits with its sign, a Hessian's `shift`; rounding adds at most n units to each.
    Sums of gradients stay below 2⁵², so that they are whole numbers in floating point too.
    """
    if constant is not None and constant > 0:
        shift = max(10, n.bit_length() + 1)
        return PackedScale(
            (_power_below((2.0 ** (62 - shift) - n) / (gradient_size or 1.0)), 1 / constant), shift, True
        )
    shift = 32
    room = 2.0 ** (62 - shift) - n
    return PackedScale(
        (_power_below(room / (gradient_size or 1.0)), _power_below((2.0**shift - 1 - 2 * n) / (hessian_sum or 1.0))),
        shift, False,
    )  # fmt: skip


def _power_below(x: float) -> float:
    """The largest power of 2 that is at most x: products with it are exact."""
    return 2.0 ** (math.frexp(x)[1] - 1)


class BinnedGrower:
    """Grows trees on the same codes again and again; holds everything that they share."""

    def __init__(
        self, codes: Array, bins: ColumnBins, limits: BinnedLimits, tuning: BinnedTuning = BinnedTuning()
    ) -> None:
        self.limits, self.tuning = limits, tuning
        self.n, self.d = codes.shape
        self.workers = Workers(thread_count() if codes.size >= tuning.shared_entries else 1)
        self.first_rows, self.borders = _dealt(self.n, self.workers.count, tuning.block_rows)
        self.spans = [*pairwise(np.linspace(0, self.n, self.workers.count + 1).astype(int))]
        self.tree, self.root = self._empty_tree(codes, bins), _root_of(self.n)
        odd = limits.monotone is not None or limits.groups is not None or bool(bins.is_categorical.any())
        self.special = True if odd or (limits.max_features or self.d) < self.d else None  # for the compiled loops
        self.is_simple = self.special is None and self.workers.count == 1

    def close(self) -> None:
        """Let the threads end, and forget the rows."""
        self.workers.close()
        del self.tree, self.first_rows

    def pack(self, g: Array, h: Array, scale: PackedScale, seed: int) -> None:
        """Round gradients and Hessians of all rows to whole numbers."""
        if PLAIN_PAIRS.suffices(self.n * self.d):
            with PLAIN_PAIRS.timed():
                self.tree.packed[:] = plain_pack(g, h, scale.scales, scale.shift, seed)
            return
        scales = np.array(scale.scales)

        def pack(k: int) -> None:
            pack_pairs((g, h), scales, scale.shift, seed, self.spans[k], self.tree.packed)

        self.workers.run(pack)

    def grow(self, scale: PackedScale, seed: int, largest_hessian: float) -> GrowingTree:
        """Grow a tree on the packed pairs; it is overwritten by the next."""
        limits, d = self.limits, self.d
        depth = limits.max_depth or _ANY_DEPTH
        rules = BinnedRules(
            scale.shift, limits.l2_regularization * scale.scales[1], scale.value_unit, limits.min_samples_leaf,
            max(self.tuning.leaf_hessian * scale.scales[1], 0.5), min(d, limits.max_features or d), seed,
            limits.monotone is not None, limits.max_leaf_nodes or -1, depth,
            max(self.tuning.counted_rows, 32 * limits.min_samples_leaf), scale.constant,
            math.ceil(largest_hessian * scale.scales[1]) + 1,
        )  # fmt: skip
        self._start(seed)
        if self.is_simple and PLAIN_FIRST.suffices(self.n * self.d):
            with PLAIN_FIRST.timed():
                grow_plainly(self.tree, rules)
        elif self.workers.count == 1:
            grow_alone(self.tree, rules, self.special)
        else:
            self._grow_on_threads(rules)
        return self.tree

    def _start(self, seed: int) -> None:
        tree, root = self.tree, np.asarray(self.tree.nodes)[:1]
        tree.rows[:] = self.first_rows
        tree.runs[0, :, 0], tree.runs[0, :, 1] = self.borders[:-1], self.borders[1:]
        root[:] = self.root
        root["key"] = seed
        slots = len(tree.free) - 3
        tree.free[:slots] = np.arange(slots) + self.workers.count
        tree.free[slots:] = slots, 1, 1

    def _grow_on_threads(self, rules: BinnedRules) -> None:
        tree, k = self.tree, -1

        def visit(chunk: int) -> None:
            tree.left_rows[chunk] = take_step(tree, rules, k, chunk, self.special)

        self.workers.run(visit)
        while (k := take_step(tree, rules, k, -1, self.special)) >= 0:
            self.workers.run(visit)

    def _empty_tree(self, codes: Array, bins: ColumnBins) -> GrowingTree:
        limits, n, d, chunks = self.limits, self.n, self.d, self.workers.count
        most = max(1, n // max(1, limits.min_samples_leaf))
        if limits.max_leaf_nodes is not None:
            most = min(most, limits.max_leaf_nodes)
        if limits.max_depth is not None and limits.max_depth < 40:
            most = min(most, 2**limits.max_depth)
        slots = max(4, min(most + 1, self.tuning.kept_bytes // (d * 256 * 16)))
        direction = np.zeros(d) if limits.monotone is None else limits.monotone
        columns = np.stack([bins.n_bins, bins.is_categorical, direction], axis=1).astype(np.int64)
        groups = np.zeros((0, d)) if limits.groups is None else limits.groups
        histograms = (chunks + slots, d * 256)
        return GrowingTree(
            codes.reshape(-1), np.empty(n, np.int64), self.first_rows.copy(), np.empty(n, np.int32), columns,
            np.ascontiguousarray(groups, np.uint8), np.zeros(2 * most, NODE).view(np.recarray),
            np.zeros((2 * most, chunks, 2), np.int64), np.zeros((2 * most, 256), np.uint8),
            np.zeros(histograms, np.int64), np.zeros(histograms, np.int32), np.zeros(slots + 3, np.int64),
            np.zeros(d, np.uint8), np.zeros(256, np.int64), np.zeros(chunks, np.int64),
        )  # fmt: skip


def _root_of(n: int) -> Array:
    """The root (1,) of a tree that has not grown, of so many rows."""
    root = np.zeros(1, NODE)
    root["count"], root["low"], root["high"] = n, -np.inf, np.inf
    for name in ("left", "right", "parent", "slot", "column"):
        root[name] = -1
    return root


def _dealt(n: int, chunks: int, block: int) -> tuple[Array, Array]:
    """Row numbers (n,), those of a chunk after another's, and where chunks begin and end.

    Blocks are dealt out in turn, because tables may be sorted.
    """
    out, borders, at = np.empty(n, np.int32), [0], 0
    for chunk in range(chunks):
        for start in range(chunk * block, n, chunks * block):
            stop = min(start + block, n)
            out[at : at + stop - start] = np.arange(start, stop)
            at += stop - start
        borders.append(at)
    return out, np.array(borders)
