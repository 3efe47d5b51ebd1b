"""Growing an exact tree: large nodes one by one with threads on their columns, small subtrees one per thread.

Every split is the best of all thresholds between neighbouring values of every column that is looked at, or, with a
random splitter, of one threshold for each.
Reference: Breiman, Friedman, Olshen & Stone, Classification and Regression Trees (1984).
"""

from __future__ import annotations

import heapq
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from certifit.numerics.compiled.compiling import PlainFirst, PlainTuning
from certifit.rows import Array
from certifit.rows.threads import parallel_map, thread_count
from certifit.tree.exact import plain_steps, step_loops
from certifit.tree.exact.category_loops import CategoryOrders
from certifit.tree.exact.entries import NodeToSplit, SortedTable, Split, SplitRules, node_room
from certifit.tree.exact.growth_loops import (
    GrowthRules,
    NodeTable,
    empty_nodes,
    empty_subtree,
    grow_subtree,
)
from certifit.tree.exact.median_loops import MedianTable
from certifit.tree.exact.target_sums import TargetSums


@dataclass(frozen=True)
class GrowthTuning:
    """From how many entries (rows times columns) on several threads share a node."""

    shared_entries: int = 200_000


PLAIN_FIRST = PlainFirst(grow_subtree)
# The steps are as much to compile as the rest. Until that is done, or seems worth it, a table of moderate size is one
# subtree, which one thread grows.
ALONE_FIRST = PlainFirst(step_loops.split_with_room, PlainTuning(most_entries=2_000_000))


def sorted_table(X: Array, sums: TargetSums, monotone: Array) -> SortedTable:
    """Columns with the orders of their rows; equal values keep the order of the rows."""
    columns = [np.asarray(column, dtype=np.float64) for column in X.T]
    # Threads take longer to start than a small table to sort.
    ranked = parallel_map(_ranked, columns) if X.size > GrowthTuning().shared_entries else [*map(_ranked, columns)]
    entries = np.stack([entries for entries, _ in ranked])
    values = [values for _, values in ranked]
    first = np.cumsum([0, *map(len, values)])
    scratch = np.zeros(len(X), np.uint8)
    return SortedTable(
        entries, np.concatenate(values), first, sums.labels, sums.moments, sums.weight, scratch, monotone
    )


def _ranked(x: Array) -> tuple[Array, Array]:
    """The entries of a column in order (n,), and its distinct values."""
    order = np.argsort(x, kind="stable")  # NaN comes last
    known = x[order][: len(x) - int(np.isnan(x).sum())]
    new = np.append(True, known[1:] > known[:-1]) if len(known) else np.zeros(0, bool)
    rank = np.append(np.cumsum(new) - 1, np.full(len(x) - len(known), new.sum()))
    return (rank.astype(np.int64) << 32) | order, known[new]


def most_nodes(rows: int, levels: int) -> int:
    """The most nodes that a tree of so many rows can have, with so many levels below its root."""
    return 2 * rows - 1 if levels >= 62 else min(2 * rows - 1, 2 ** (levels + 1) - 1)


def _sums_of_all(table: SortedTable, channels: int) -> tuple[int, Array]:
    """The weight of all rows and their sums (c,), whole numbers."""
    sums = np.zeros(channels, np.int64)
    for channel in table.labels.T:
        np.add.at(sums, channel, table.weight)
    return int(table.weight.sum()), sums + (table.moments.sum(axis=0) if table.moments.shape[1] else 0)


class TreeGrower:
    """Grows one tree; holds its table and its nodes."""

    def __init__(
        self,
        table: SortedTable,
        y: Array,
        rules: SplitRules,
        growth: GrowthRules,
        medians: MedianTable | None = None,
        categories: CategoryOrders | None = None,
        tuning: GrowthTuning = GrowthTuning(),
    ) -> None:
        self.table, self.y, self.rules, self.growth = table, y, rules, growth
        self.medians, self.categories = medians, categories
        self.means = True if medians is None else None  # whether splits are scored by them; not None for the loops
        self.tuning = tuning
        self.is_plain = medians is None and categories is None and PLAIN_FIRST.suffices(table.entries.size)
        self.steps: Any = plain_steps if self.is_plain else step_loops
        n = table.entries.shape[1]
        self.nodes = empty_nodes(most_nodes(n, growth.depth), rules.channels)
        self.nodes.end[0] = n
        self.nodes.weight[0], self.nodes.sums[0] = _sums_of_all(table, rules.channels)
        self.nodes.key[0] = np.uint64(rules.seed)
        self.made = 1

    def grow(self, most_leaves: int | None = None) -> NodeTable:
        """Return the nodes of the whole tree, or of one with at most this many leaves, best splits first."""
        with PLAIN_FIRST.timed() if self.is_plain else nullcontext():
            return self._grow(most_leaves)

    def _grow(self, most_leaves: int | None) -> NodeTable:
        if most_leaves is None:
            if self.is_plain or self._is_small(0) or not ALONE_FIRST.suffices(self.table.entries.size):
                self._grow_all()
            else:
                with ALONE_FIRST.timed() if PLAIN_FIRST.is_compiled() else nullcontext():
                    self._graft(0, self._subtree(0))
            return self._in_preorder()
        self._grow_best_first(most_leaves)
        return NodeTable(*(column[: self.made] for column in self.nodes))

    def _grow_all(self) -> None:
        small, k = [], 0
        while k < self.made:
            if self._is_small(k) and not self.is_plain:
                small.append(k)
            elif (split := self._best(k)) is not None:
                self._split(k, split)
            k += 1
        small.sort(key=self._entries, reverse=True)  # the longest first, so that threads end together
        for k, subtree in zip(small, parallel_map(self._subtree, small), strict=True):
            self._graft(k, subtree)

    def _entries(self, k: int) -> int:
        return int(self.nodes.end[k] - self.nodes.start[k]) * len(self.table.entries)

    def _is_small(self, k: int) -> bool:
        """Whether a node is too small to be shared by threads."""
        return self._entries(k) < self.tuning.shared_entries

    def _subtree(self, k: int) -> NodeTable:
        """All nodes below node k, which becomes the first of them."""
        nodes = self.nodes
        rows, levels = int(nodes.end[k] - nodes.start[k]), self.growth.depth - int(nodes.depth[k])
        room = node_room(len(self.table.entries), self.rules.channels, rows, self.medians is not None)
        own = empty_subtree(most_nodes(rows, levels), nodes, k, room)
        rules = (self.growth, self.rules)
        made = grow_subtree(self.table, self.y, rules, own, self.medians, self.means, self.categories)
        return own.as_table(made)

    def _graft(self, k: int, subtree: NodeTable) -> None:
        """Put a subtree in the place of its first node."""
        more = len(subtree.left) - 1
        inner = subtree.left >= 0
        for children in (subtree.left, subtree.right):
            children[inner] += self.made - 1
        for mine, new in zip(self.nodes, subtree, strict=True):
            mine[k] = new[0]
            mine[self.made : self.made + more] = new[1:]
        self.made += more

    def _node(self, k: int) -> NodeToSplit:
        nodes = self.nodes
        key = int(nodes.key[k : k + 1].view(np.int64)[0])  # with its sign, as the loops have it
        return NodeToSplit(
            int(nodes.start[k]), int(nodes.end[k]), nodes.sums[k], int(nodes.weight[k]), nodes.limits[k], key, None
        )

    def _best(self, k: int) -> Split | None:
        """The best split of a node, or None where it stays a leaf; large nodes are shared by threads."""
        if not self.steps.may_split(self.table, self.y, self.growth, self.rules, self.nodes, k):
            return None
        node = self._node(k)
        if self.medians is not None:
            self.steps.rank_targets(self.table, self.medians, node.start, node.end)
        columns = self.steps.columns_to_try(self.table, self.rules, node)
        parts = np.array_split(columns, 1 if self._is_small(k) else thread_count())
        search = partial(self._best_of, node)
        found = [split for split in parallel_map(search, [p for p in parts if len(p)]) if split.column >= 0]
        if not found:
            return None
        best = max(found, key=lambda split: (split.score, -split.column))
        gain = best.score - self.steps.node_score(self.table, self.rules, node, self.medians)
        self.nodes.gain[k] = gain
        return best if gain >= self.growth.decrease else None

    def _best_of(self, node: NodeToSplit, columns: Array) -> Split:
        return self.steps.best_split(self.table, self.rules, columns, node, self.medians, self.means, self.categories)

    def _split(self, k: int, split: Split) -> None:
        start, end = int(self.nodes.start[k]), int(self.nodes.end[k])
        count = self.steps.mark_sides(self.table, self.rules, split, self._node(k), self.categories)
        d = len(self.table.entries)
        borders = np.linspace(0, d, 2 if self._is_small(k) else thread_count() + 1).astype(int)
        parallel_map(lambda span: self.steps.part_rows(self.table, *span, start, end), [*pairwise(borders)])
        self.steps.add_children(self.table, self.rules, self.nodes, k, (self.made, count), split, self.medians)
        self.made += 2

    def _grow_best_first(self, most_leaves: int) -> None:
        """Split the leaf that gains most, again and again."""
        waiting: list[tuple[float, int, Split]] = []

        def look_at(k: int) -> None:
            split = self._best(k)
            if split is not None:
                heapq.heappush(waiting, (-float(self.nodes.gain[k]), k, split))

        look_at(0)
        leaves = 1
        while waiting and leaves < most_leaves:
            _, k, split = heapq.heappop(waiting)
            self._split(k, split)
            leaves += 1
            for child in (self.made - 2, self.made - 1):
                look_at(child)

    def _in_preorder(self) -> NodeTable:
        """The nodes numbered as a walk that goes left first meets them, as scikit-learn does."""
        found: list[int] = []
        nodes, place = self.nodes, np.empty(self.made, np.int64)
        left, right = nodes.left[: self.made].tolist(), nodes.right[: self.made].tolist()
        stack = [0]
        while stack:
            k = stack.pop()
            found.append(k)
            if left[k] >= 0:
                stack += [right[k], left[k]]
        number = np.array(found)
        place[number] = np.arange(self.made)
        ordered = NodeTable(*(column[number] for column in nodes))
        inner = ordered.left >= 0
        for children in (ordered.left, ordered.right):
            children[inner] = place[children[inner]]
        return ordered
