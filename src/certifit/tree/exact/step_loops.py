"""The steps of growth, each called from Python: for large nodes, whose columns several threads share.

A way in from Python is compiled for each, which takes longer than the loop itself: so steps that hardly look at rows
are those of `plain_steps`. Small tables need none of these.
"""

from __future__ import annotations

import numpy as np

from certifit.numerics.compiled.compiling import called_from_python_uncounted
from certifit.rows import Array
from certifit.tree.exact import plain_steps
from certifit.tree.exact.category_loops import CategoryOrders
from certifit.tree.exact.entries import NodeToSplit, SortedTable, Split, SplitRules, node_room
from certifit.tree.exact.growth_loops import NodeTable
from certifit.tree.exact.median_loops import MedianTable, _median_of, _median_score, _rank_targets
from certifit.tree.exact.plain_steps import NodeSums, columns_to_try, may_split
from certifit.tree.exact.split_loops import _best_split, _mark_sides, _node_sums, _part_rows

__all__ = [
    "add_children",
    "best_split",
    "columns_to_try",
    "mark_sides",
    "may_split",
    "node_score",
    "part_rows",
    "rank_targets",
]


def rank_targets(table: SortedTable, medians: MedianTable, start: int, end: int) -> None:
    """Number the rows of a node in the order of their targets."""
    _rank_with_room(table, medians, start, end, node_room(0, 0, end - start, False))


@called_from_python_uncounted
def _rank_with_room(table, medians, start, end, room):
    """The same, with room to work in."""
    _rank_targets(table, medians, start, end, room)


def best_split(
    table: SortedTable,
    rules: SplitRules,
    columns: Array,
    node: NodeToSplit,
    medians: MedianTable | None,
    means: bool | None,
    categories: CategoryOrders | None,
) -> Split:
    """Return the best split of a node along any of these columns."""
    room = node_room(0, rules.channels, node.end - node.start, medians is not None)
    return Split(*split_with_room(table, rules, columns, node._replace(room=room), medians, means, categories))


@called_from_python_uncounted
def split_with_room(table, rules, columns, node, medians, means, categories):
    """The same, with room to work in."""
    return _best_split(table, rules, columns, node, medians, means, categories)


def node_score(table: SortedTable, rules: SplitRules, node: NodeToSplit, medians: MedianTable | None) -> float:
    """Return the score of a node that is not split."""
    if medians is None:
        return plain_steps.node_score(table, rules, node)
    return float(_score_by_medians(table, node, medians))


@called_from_python_uncounted
def _score_by_medians(table, node, medians):
    """Return the score of a node whose targets are ranked."""
    return _median_score(table, medians, node.start, node.end)


@called_from_python_uncounted
def mark_sides(table, rules, split, node, categories):
    """Note which of a node's rows go left, and return how many."""
    return _mark_sides(table, rules, split, node, categories)


def part_rows(table: SortedTable, first: int, last: int, start: int, end: int) -> None:
    """Put the rows that go left before the others, in the order of each of the columns [first, last)."""
    _part_with_room(table, first, last, start, end, np.empty(end - start, np.int64))


@called_from_python_uncounted
def _part_with_room(table, first, last, start, end, kept):
    """The same, with room to work in."""
    _part_rows(table, first, last, start, end, kept)


def add_children(
    table: SortedTable,
    rules: SplitRules,
    nodes: NodeTable,
    k: int,
    children: tuple[int, int],
    split: Split,
    medians: MedianTable | None,
) -> None:
    """Write down the split of node k and its two children, the first of them node `made` with `count` rows."""
    start, made, sums = int(nodes.start[k]), children[0], np.zeros(rules.channels, np.int64)
    weight = _sums_of_run(table, start, start + children[1], sums)
    plain_steps.write_children(table, rules, nodes, k, children, split, NodeSums(weight, sums))
    if medians is not None and table.monotone[split.column] != 0:
        # Between the children's values, their medians, lies the border that neither side's descendants may cross.
        room = node_room(0, 0, int(nodes.end[k]) - start, False)
        runs = [(int(nodes.start[c]), int(nodes.end[c])) for c in (made, made + 1)]
        middle = sum(_median_of_run(table, medians, *run, room) for run in runs) / 2
        nodes.limits[made : made + 2] = nodes.limits[k]
        rises = table.monotone[split.column] > 0
        nodes.limits[made, 1 if rises else 0] = middle
        nodes.limits[made + 1, 0 if rises else 1] = middle


@called_from_python_uncounted
def _sums_of_run(table, start, end, sums):
    """Fill in the sums over the rows of a run and return their weight."""
    return _node_sums(table, start, end, sums)


@called_from_python_uncounted
def _median_of_run(table, medians, start, end, room):
    """Return the median of the first target of a run of rows, in the unit of the amounts."""
    return _median_of(table, medians, start, end, room)
