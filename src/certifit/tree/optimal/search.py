"""The best tree of a depth of 1, 2 or 3 over given candidates.

A leaf of depth D is D conditions, so its statistics are sums over the bins of D columns. Regions of D - 1 conditions
are split along every column; the best costs of regions on the two sides of a candidate add up to those of the region
above. Candidates that give rows away make every cost too small, and the result a lower bound. Rows are counted once
for all sets of candidates.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from certifit.rows import Array
from certifit.rows.threads import parallel_map
from certifit.tree.optimal.bins import CodedColumns, SplitCandidates
from certifit.tree.optimal.scan_loops import (
    MISCLASSIFIED,
    ColumnCandidates,
    best_splits,
    count_labels,
    count_moments,
    leaf_costs,
)


class OutOfTimeError(Exception):
    """The time that a search was given is over."""


@dataclass(frozen=True)
class TargetStatistics:
    """What rows add to the statistics of their bins: a class and a weight, or the moments of an amount."""

    labels: Array | None  # (n,) of the least type that holds them
    weight: Array | None  # (n,); None where all are 1
    amounts: Array | None  # (n,) y, of which w, w (y - mean) and w (y - mean)² are counted
    channels: int
    kind: int = MISCLASSIFIED  # what a leaf costs
    mean: float = 0.0  # of the amounts

    def add(self, rows: slice, region: Array, codes: Sequence[Array], stats: Sequence[Array]) -> None:
        """Add a run of rows to the histograms (regions, bins + 1, channels) of their regions and columns' bins."""
        weight = np.ones(len(region)) if self.weight is None else self.weight[rows]
        if self.labels is not None:
            labels = self.labels[rows].astype(np.int32, copy=False)
            for code, own in zip(codes, stats, strict=True):
                count_labels(region, code[rows], labels, weight, own)
        elif self.amounts is not None:
            away = self.amounts[rows] - self.mean
            for code, own in zip(codes, stats, strict=True):
                count_moments(region, code[rows], away, weight, own)

    def leaf_costs(self, stats: Array, least: float = 0.0) -> Array:
        """The cost of regions (channels, r) as leaves (r,); inf below the least weight of a leaf."""
        cost = np.zeros(stats.shape[1])
        leaf_costs(stats, self.kind, least, cost, np.empty((2, len(cost))))
        return cost


@dataclass(frozen=True)
class BestNode:
    """A node of a best tree: its candidate, or -1 for a leaf, and what its branch costs."""

    candidate: int
    cost: float
    children: tuple[BestNode, ...] = ()


def fold_sides(stats: Array, candidates: ColumnCandidates) -> Array:
    """Bins (o, m + 1, i) replaced by the sides of all candidates (o, 2c, i): left and right of one after another."""
    m = stats.shape[1] - 1
    below = np.zeros(stats.shape)
    np.cumsum(stats[:, :m], axis=1, out=below[:, 1:])
    missing, to_left = stats[:, m:], candidates.missing_left[:, None].astype(np.float64)
    out = np.empty((stats.shape[0], 2 * len(candidates.low), stats.shape[2]))
    out[:, 0::2] = below[:, candidates.low] + to_left * missing
    out[:, 1::2] = below[:, m:] - below[:, candidates.high] + (1.0 - to_left) * missing
    return out


class RegionCosts:
    """What the regions of one set of candidates cost: both sides of every candidate, and of every other below."""

    def __init__(self, candidates: SplitCandidates, depth: int, leaf: float, least: float = 0.0) -> None:
        self.candidates, self.leaf, self.least = candidates, leaf, least
        self.sides = sides = 2 * len(candidates.low)
        self.leaves = np.zeros(sides)  # as leaves
        shape = (sides,) if depth < 3 else (sides, sides)
        self.best = np.full(shape if depth > 1 else 0, np.inf)  # split once, in D - 1 conditions
        self.chosen = np.full(self.best.shape, -1, np.int64 if depth < 3 else np.int32)
        self.depth = depth

    def span(self, j: int) -> slice:
        return slice(2 * int(self.candidates.first[j]), 2 * int(self.candidates.first[j + 1]))

    def fold(self, stats: Array, j: int) -> Array:
        """Bins of column j, the middle axis, replaced by both sides of its candidates, one by one."""
        return fold_sides(stats, self.candidates.of(j))

    # The tree ---------------------------------------------------------------------------------------------------

    def root(self) -> BestNode:
        """The best tree."""
        if not self.sides:
            return BestNode(-1, self.leaf)
        cost = self.root_costs()
        c = int(np.argmin(cost))
        if not cost[c] < self.leaf:
            return BestNode(-1, self.leaf)
        return BestNode(c, float(cost[c]), (self._child(2 * c), self._child(2 * c + 1)))

    def root_costs(self) -> Array:
        """The cost of the best tree below every candidate (c,)."""
        lowest = self._lowest()
        return lowest[0::2] + lowest[1::2]

    def _lowest(self) -> Array:
        if self.depth < 3:
            return self.leaves if self.depth == 1 else self.best
        middle, second = self._second()
        return np.minimum(middle[np.arange(self.sides), second], self.leaves)

    def _second(self) -> tuple[Array, Array]:
        """Depth 3: the cost of splitting a side by each candidate and splitting again, and the best candidate."""
        middle = self.best[:, 0::2] + self.best[:, 1::2]
        return middle, middle.argmin(axis=1)

    def _child(self, side: int) -> BestNode:
        if self.depth == 1:
            return BestNode(-1, float(self.leaves[side]))
        if self.depth == 2:
            return BestNode(int(self.chosen[side]), float(self.best[side]))
        middle = self.best[side, 0::2] + self.best[side, 1::2]
        c = int(np.argmin(middle))
        if not middle[c] < self.leaves[side]:
            return BestNode(-1, float(self.leaves[side]))
        below = [BestNode(int(self.chosen[side, k]), float(self.best[side, k])) for k in (2 * c, 2 * c + 1)]
        return BestNode(c, float(middle[c]), tuple(below))

    def below(self, limit: float) -> Array:
        """The candidates of trees that cost less than a limit: at the root all, below each the best."""
        if not self.sides:
            return np.zeros(0, np.int64)
        alive = np.flatnonzero(self.root_costs() < limit)
        found, sides = [alive], np.concatenate([2 * alive, 2 * alive + 1])
        if self.depth == 2:
            found.append(self.chosen[sides])
        elif self.depth == 3:
            second = self._second()[1][sides]
            found += [second, self.chosen[sides, 2 * second], self.chosen[sides, 2 * second + 1]]
        every = np.concatenate(found)
        return np.unique(every[every >= 0])


@dataclass(frozen=True)
class CountTuning:
    """How rows are counted."""

    block_rows: int = 65_536  # counted along several columns before the next, so that they stay in the cache
    filled_bytes: int = 2**22  # of histograms that are filled together
    kept_bytes: int = 2**28  # of histograms of pairs of columns that are counted once for both


RegionOfRows: TypeAlias = Callable[[slice], Array]  # the number of the region of each row of a run


def _everywhere(rows: slice) -> Array:
    """The one region of all rows."""
    return np.zeros(rows.stop - rows.start, np.uint8)


class TreeSearch:
    """Finds the best trees over sets of candidates, all from the same histograms."""

    def __init__(
        self,
        coded: CodedColumns,
        target: TargetStatistics,
        deadline: float = math.inf,
        tuning: CountTuning = CountTuning(),
    ) -> None:
        self.coded, self.target, self.deadline, self.tuning = coded, target, deadline, tuning
        self.d = len(coded.codes)

    def costs(self, sets: Sequence[SplitCandidates], depth: int, least: float = 0.0) -> list[RegionCosts]:
        """The costs of the regions of every set of candidates; only leaves of the first have a least weight."""
        whole = next(self._counted(_everywhere, 1, range(1))).sum(axis=1)
        leaf = float(self.target.leaf_costs(whole.T.copy())[0])
        found = [RegionCosts(candidates, depth, leaf, 0.0 if i else least) for i, candidates in enumerate(sets)]
        parallel_map(lambda j: self._lay_out(found, j), range(self.d))
        if depth == 2:
            pairs_of = self._pairs_of_columns()
            parallel_map(lambda a: self._split_sides(found, a, pairs_of(a)), range(self.d))
        elif depth == 3:
            pairs = [(a, b) for a in range(self.d) for b in range(a, self.d)]
            parallel_map(lambda pair: self._split_pairs(found, *pair), pairs)
        return found

    def _counted(self, region: RegionOfRows, regions: int, columns: range) -> Iterator[Array]:
        """The histograms (regions, bins + 1, channels) along some columns, one after another."""
        codes, step = self.coded.codes, self.tuning.block_rows
        size = 8 * regions * self.target.channels * max(self.coded.bins(j) + 1 for j in columns)
        together = max(1, self.tuning.filled_bytes // size)
        for first in range(0, len(columns), together):
            some = columns[first : first + together]
            found = [np.zeros((regions, self.coded.bins(j) + 1, self.target.channels)) for j in some]
            for start in range(0, codes.shape[1], step):
                if time.monotonic() > self.deadline:
                    raise OutOfTimeError
                rows = slice(start, min(start + step, codes.shape[1]))
                self.target.add(rows, region(rows), [codes[j] for j in some], found)
            yield from found

    def _pairs_of_columns(self) -> Callable[[int], Iterable[Array]]:
        """A function that gives the histograms of a column with all columns: pairs are counted once, if they fit."""
        bins = np.array([self.coded.bins(j) + 1 for j in range(self.d)])

        def counted(a: int, first: int = 0) -> Iterator[Array]:
            return self._counted(self.coded.codes[a].__getitem__, int(bins[a]), range(first, self.d))

        if bins.sum() ** 2 / 2 * self.target.channels * 8 > self.tuning.kept_bytes:
            return counted
        kept = parallel_map(lambda a: [*counted(a, a)], range(self.d))
        return lambda a: [kept[b][a - b].transpose(1, 0, 2) if b < a else kept[a][b - a] for b in range(self.d)]

    def _split(self, stats: Array, candidates: ColumnCandidates, least: float, best: Array, chosen: Array) -> None:
        """Lower the best costs of regions by the splits of one column."""
        regions, bins, channels = stats.shape
        below = np.zeros((bins, channels, regions))
        np.cumsum(stats[:, :-1].transpose(1, 2, 0), axis=0, out=below[1:])
        missing, scratch = stats[:, -1].T.copy(), np.empty((channels + 3, regions))
        best_splits(below, missing, candidates, (self.target.kind, least), best, chosen, scratch)

    def _lay_out(self, found: Sequence[RegionCosts], j: int) -> None:
        """The sides of column j's candidates as leaves."""
        stats = next(self._counted(_everywhere, 1, range(j, j + 1)))
        for costs in found:
            costs.leaves[costs.span(j)] = self.target.leaf_costs(costs.fold(stats, j)[0].T.copy(), costs.least)

    def _split_sides(self, found: Sequence[RegionCosts], a: int, pairs: Iterable[Array]) -> None:
        """The best splits of both sides of column a's candidates, along any column."""
        work = [(costs, costs.span(a)) for costs in found if costs.span(a).stop > costs.span(a).start]
        for costs, span in work:
            costs.best[span] = costs.leaves[span]
        for b, stats in enumerate(pairs if work else []):
            regions, bins, channels = stats.shape
            for costs, span in work:
                folded = costs.fold(stats.reshape(1, regions, -1), a).reshape(-1, bins, channels)
                self._split(folded, costs.candidates.of(b), costs.least, costs.best[span], costs.chosen[span])

    def _split_pairs(self, found: Sequence[RegionCosts], a: int, b: int) -> None:
        """The best splits of regions of two conditions, on columns a <= b, along any column."""
        codes, inner = self.coded.codes, self.coded.bins(b) + 1
        outer = self.coded.bins(a) + 1
        work = []

        def region(rows: slice) -> Array:
            return codes[a][rows].astype(np.int32) * inner + codes[b][rows]

        for costs in found:
            shape = (costs.span(a).stop - costs.span(a).start, costs.span(b).stop - costs.span(b).start)
            if shape[0] * shape[1]:
                work.append((costs, shape, np.empty(shape[0] * shape[1]), np.full(shape[0] * shape[1], -1)))
        for c, stats in enumerate(self._counted(region, outer * inner, range(self.d)) if work else []):
            _, bins, channels = stats.shape
            for costs, shape, cost, split in work:
                folded = costs.fold(stats.reshape(1, outer, -1), a)
                folded = costs.fold(folded.reshape(shape[0], inner, -1), b).reshape(-1, bins, channels)
                if c == 0:
                    cost[:] = self.target.leaf_costs(folded.sum(axis=1).T.copy(), costs.least)
                self._split(folded, costs.candidates.of(c), costs.least, cost, split)
        for costs, shape, cost, split in work:
            rows, columns = costs.span(a), costs.span(b)
            costs.best[rows, columns], costs.chosen[rows, columns] = cost.reshape(shape), split.reshape(shape)
            costs.best[columns, rows], costs.chosen[columns, rows] = cost.reshape(shape).T, split.reshape(shape).T
