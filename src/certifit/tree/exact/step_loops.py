"""The steps of growth, each called from Python: for large nodes, whose columns several threads share.

A way in from Python is compiled for each, which takes longer than the loop itself; small tables need none of them.
"""

from __future__ import annotations

from certifit.numerics.compiled.compiling import called_from_python
from certifit.tree.exact.growth_loops import _add_children, _may_split
from certifit.tree.exact.median_loops import _rank_targets
from certifit.tree.exact.split_loops import (
    _best_split,
    _columns_to_try,
    _mark_sides,
    _node_score,
    _part_rows,
)


@called_from_python
def may_split(table, y, growth, rules, nodes, k):
    """Whether a node is one that the rules let be split, whatever its best split is."""
    return _may_split(table, y, growth, rules, nodes, k)


@called_from_python
def rank_targets(table, medians, start, end):
    """Number the rows of a node in the order of their targets."""
    _rank_targets(table, medians, start, end)


@called_from_python
def columns_to_try(table, rules, node):
    """Return the columns that vary in a node; with fewer columns allowed, some of them drawn at random, ascending."""
    return _columns_to_try(table, rules, node)


@called_from_python
def best_split(table, rules, columns, node, medians, categories):
    """Return the best split of a node along any of these columns."""
    return _best_split(table, rules, columns, node, medians, categories)


@called_from_python
def node_score(table, rules, node, medians):
    """Return the score of a node that is not split."""
    return _node_score(table, rules, node, medians)


@called_from_python
def mark_sides(table, rules, split, node, categories):
    """Note which of a node's rows go left, and return how many."""
    return _mark_sides(table, rules, split, node, categories)


@called_from_python
def part_rows(table, first, last, start, end):
    """Put the rows that go left before the others, in the order of each of the columns [first, last)."""
    _part_rows(table, first, last, start, end)


@called_from_python
def add_children(table, rules, nodes, k, children, split, medians):
    """Write down the split of node k and its two children, the first of them node `made` with `count` rows."""
    _add_children(table, rules, nodes, k, children, split, medians)
