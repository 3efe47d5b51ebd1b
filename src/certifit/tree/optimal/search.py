"""The best tree of a depth of 1, 2 or 3 over given candidates.

A leaf of depth D is D conditions, so its statistics are sums over the bins of D columns. Regions of D - 1 conditions
are split along every column; the best costs of regions that lie on the two sides of a candidate add up to those of the
region above. Candidates that give rows away make every cost too small, and the result a lower bound.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import partial

import numpy as np

from certifit.rows import Array
from certifit.rows.threads import parallel_map
from certifit.tree.optimal.bins import CodedColumns, SplitCandidates
from certifit.tree.optimal.scan_loops import best_splits, count_labels, count_moments, fold_sides, leaf_costs


class OutOfTime(Exception):
    """The time that a search was given is over."""


@dataclass(frozen=True)
class TargetStatistics:
    """What rows add to the statistics of their bins: a class and a weight, or moments."""

    labels: Array | None  # (n,) int32
    weight: Array  # (n,)
    moments: Array | None  # (n, 3) w, w (y - mean), w (y - mean)²
    channels: int

    @property
    def amounts(self) -> bool:
        return self.moments is not None

    def count(self, region: Array, codes: Array, regions: int, bins: int) -> Array:
        """The histogram (regions, bins + 1, channels)."""
        stats = np.zeros((regions, bins + 1, self.channels))
        if self.moments is None:
            count_labels(region, codes, self.labels, self.weight, stats)
        else:
            count_moments(region, codes, self.moments, stats)
        return stats


@dataclass(frozen=True)
class BestNode:
    """A node of a best tree: its candidate, or -1 for a leaf, and what its branch costs."""

    candidate: int
    cost: float
    children: tuple[BestNode, ...] = ()


@dataclass(frozen=True)
class BestTree:
    """The best tree, and the candidates of trees whose cost is below some other's."""

    root: BestNode
    below: Array  # numbers of candidates


class TreeSearch:
    """Finds the best tree over some candidates."""

    def __init__(
        self, coded: CodedColumns, target: TargetStatistics, candidates: SplitCandidates, deadline: float = math.inf
    ) -> None:
        self.coded, self.target, self.candidates, self.deadline = coded, target, candidates, deadline
        self.d, self.sides = len(coded.codes), 2 * len(candidates.low)
        self.everywhere = np.zeros(coded.codes.shape[1], np.uint8)
        whole = self._count(self.everywhere, 0, 1).sum(axis=1)
        self.leaf = self._leaf_cost(whole)[0]

    def best(self, depth: int, limit: float = -math.inf) -> BestTree:
        """The best tree; `below` are candidates of those with a cost under the limit."""
        if not self.sides:
            return BestTree(BestNode(-1, float(self.leaf)), np.zeros(0, np.int64))
        if depth == 1:
            return self._of_depth_one(limit)
        return self._of_depth_two(limit) if depth == 2 else self._of_depth_three(limit)

    # Histograms --------------------------------------------------------------------------------------------------

    def _count(self, region: Array, j: int, regions: int) -> Array:
        if time.monotonic() > self.deadline:
            raise OutOfTime
        return self.target.count(region, self.coded.codes[j], regions, self.coded.bins(j))

    def _fold(self, stats: Array, j: int) -> Array:
        own = self.candidates.of(j)
        out = np.empty((stats.shape[0], 2 * len(own.low), stats.shape[2]))
        fold_sides(stats, own, out)
        return out

    def _leaf_cost(self, stats: Array) -> Array:
        flat = stats.reshape(-1, stats.shape[-1])
        cost = np.empty(len(flat))
        leaf_costs(flat, self.target.amounts, cost)
        return cost

    def _span(self, j: int) -> slice:
        return slice(2 * int(self.candidates.first[j]), 2 * int(self.candidates.first[j + 1]))

    # Regions of one condition: both sides of every candidate ------------------------------------------------------

    def _region_leaves(self) -> Array:
        """The cost of every side of every candidate as a leaf (s,)."""
        parts = [self._leaf_cost(self._fold(self._count(self.everywhere, j, 1), j)) for j in range(self.d)]
        return np.concatenate(parts)

    def _of_depth_one(self, limit: float) -> BestTree:
        leaves = self._region_leaves()
        cost = leaves[0::2] + leaves[1::2]
        root = self._above(cost, float(self.leaf), lambda side: BestNode(-1, float(leaves[side])))
        return BestTree(root, np.flatnonzero(cost < limit))

    @staticmethod
    def _above(cost: Array, leaf: float, child) -> BestNode:  # type: ignore[no-untyped-def]
        """The node above the sides of the best candidate; a leaf where no candidate gains."""
        c = int(np.argmin(cost))
        if not cost[c] < leaf:
            return BestNode(-1, leaf)
        return BestNode(c, float(cost[c]), (child(2 * c), child(2 * c + 1)))

    # Depth 2 ----------------------------------------------------------------------------------------------------

    def _split_regions(self, a: int) -> tuple[Array, Array]:
        """The best split of every side of every candidate of column a: costs and candidates."""
        codes, own = self.coded.codes, self.candidates.of(a)
        regions = 2 * len(own.low)
        best, chosen = np.full(regions, np.inf), np.full(regions, -1)
        for b in range(self.d if regions else 0):
            stats = self._count(codes[a], b, self.coded.bins(a) + 1)
            bins = stats.shape[1]
            folded = self._fold(stats.reshape(1, stats.shape[0], -1), a)[0].reshape(regions, bins, -1)
            if b == 0:
                best[:] = self._leaf_cost(folded.sum(axis=1))
            best_splits(folded, self.candidates.of(b), self.target.amounts, best, chosen)
        return best, chosen

    def _of_depth_two(self, limit: float) -> BestTree:
        found = parallel_map(self._split_regions, range(self.d))
        best, chosen = (np.concatenate(part) for part in zip(*found, strict=True))
        leaves = self._region_leaves()
        cost = best[0::2] + best[1::2]

        def child(side: int) -> BestNode:
            return self._leaf_pair(float(best[side]), int(chosen[side]), float(leaves[side]))

        alive = np.flatnonzero(cost < limit)
        below = np.concatenate([alive, chosen[2 * alive], chosen[2 * alive + 1]])
        return BestTree(self._above(cost, float(self.leaf), child), np.unique(below[below >= 0]))

    @staticmethod
    def _leaf_pair(cost: float, candidate: int, leaf: float) -> BestNode:
        """A node whose children are leaves, or a leaf where it gains nothing."""
        if candidate < 0 or not cost < leaf:
            return BestNode(-1, leaf)
        return BestNode(candidate, cost, (BestNode(-1, math.nan), BestNode(-1, math.nan)))

    # Depth 3 ----------------------------------------------------------------------------------------------------

    def _split_pair(self, best: Array, chosen: Array, pair: tuple[int, int]) -> None:
        """Fill in the best splits of the regions of two conditions, on columns a <= b (s, s)."""
        a, b = pair
        rows, columns = self._span(a), self._span(b)
        shape = (rows.stop - rows.start, columns.stop - columns.start)
        if not shape[0] * shape[1]:
            return
        codes, inner = self.coded.codes, self.coded.bins(b) + 1
        region = codes[a].astype(np.int32) * inner + codes[b]
        cost, split = np.full(shape[0] * shape[1], np.inf), np.full(shape[0] * shape[1], -1)
        for c in range(self.d):
            stats = self._count(region, c, (self.coded.bins(a) + 1) * inner)
            bins, channels = stats.shape[1:]
            folded = self._fold(stats.reshape(1, self.coded.bins(a) + 1, -1), a)[0]
            folded = self._fold(folded.reshape(shape[0], inner, bins * channels), b).reshape(-1, bins, channels)
            if c == 0:
                cost[:] = self._leaf_cost(folded.sum(axis=1))
            best_splits(folded, self.candidates.of(c), self.target.amounts, cost, split)
        best[rows, columns], chosen[rows, columns] = cost.reshape(shape), split.reshape(shape)
        best[columns, rows], chosen[columns, rows] = cost.reshape(shape).T, split.reshape(shape).T

    def _of_depth_three(self, limit: float) -> BestTree:
        best, chosen = np.full((self.sides, self.sides), np.inf), np.full((self.sides, self.sides), -1, np.int32)
        pairs = [(a, b) for a in range(self.d) for b in range(a, self.d)]
        parallel_map(partial(self._split_pair, best, chosen), pairs)
        leaves = self._region_leaves()
        middle = best[:, 0::2] + best[:, 1::2]  # the cost of splitting a region by a candidate, and splitting again
        second = middle.argmin(axis=1)
        lowest = np.minimum(middle[np.arange(self.sides), second], leaves)
        cost = lowest[0::2] + lowest[1::2]

        def child(side: int) -> BestNode:
            c = int(second[side])
            if not middle[side, c] < leaves[side]:
                return BestNode(-1, float(leaves[side]))
            below = [BestNode(int(chosen[side, k]), float(best[side, k])) for k in (2 * c, 2 * c + 1)]
            return BestNode(c, float(middle[side, c]), tuple(below))

        alive = np.flatnonzero(cost < limit)
        sides = np.concatenate([2 * alive, 2 * alive + 1])
        deeper = [chosen[sides, 2 * second[sides]], chosen[sides, 2 * second[sides] + 1]]
        below = np.concatenate([alive, second[sides], *deeper])
        return BestTree(self._above(cost, float(self.leaf), child), np.unique(below[below >= 0]))
