"""From the levels of trees that were grown together to the trees: numbers in preorder, values, impurities."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from certifit.rows import Array
from certifit.tree.binned.seeded.growing import GrowthPlan, joined_measures
from certifit.tree.fitted_tree import Tree


class LevelRows(NamedTuple):
    """The rows of all nodes of a level, those of one node after another."""

    node: Array  # (R,) ascending
    row: Array  # (R,) number in the table
    w: Array  # (R,) float64
    sums: Array  # (c, R) int64: what a row adds to the sums of its node


class LevelNodes(NamedTuple):
    """The nodes of a level; those that are split have their children in the next, in the same order."""

    tree: Array  # (N,)
    column: Array  # (N,) -2 for a leaf
    threshold: Array  # (N,) -2 for a leaf
    missing_left: Array  # (N,) uint8
    rows: Array  # (N,) how many


class LevelMeasures(NamedTuple):
    """What is said of the nodes of a level."""

    total: Array  # (N,) weights
    value: Array  # (N, k) weights of classes, or (N, 1) means
    spread: Array  # (N,) sums of squares from the mean; 0 for classes


def trees_of_levels(levels: list[tuple[LevelNodes, LevelRows]], plan: GrowthPlan, trees: int) -> list[Tree]:
    """The trees, each in preorder."""
    sizes: list[Array] = []
    for nodes, _ in reversed(levels):  # children before their parents
        inner = nodes.column >= 0
        size = np.ones(len(inner), np.int64)
        if inner.any():
            size[inner] += sizes[-1][0::2] + sizes[-1][1::2]
        sizes.append(size)
    place, left, right = _preorder([nodes.column >= 0 for nodes, _ in levels], sizes[::-1])
    parts = zip(*(nodes for nodes, _ in levels), strict=True)
    tree, column, threshold, missing, count = map(np.concatenate, parts)
    measures = joined_measures(plan, [_measured(levels, plan, t) for t in range(plan.targets)])
    order = np.lexsort((place, tree))
    ends = np.searchsorted(tree[order], np.arange(trees + 1))
    kind = np.array(plan.classes or (1,) * plan.targets)
    found_trees = []
    for start, stop in pairwise(ends):
        k = order[start:stop]
        found_trees.append(
            Tree(
                left[k].astype(np.int32), right[k].astype(np.int32), column[k].astype(np.int32), threshold[k],
                missing[k], measures.impurity[k], count[k].astype(np.int32), measures.weight[k], measures.value[k],
                len(plan.table.codes), kind.copy(),
            )
        )  # fmt: skip
    return found_trees


def _measured(
    levels: list[tuple[LevelNodes, LevelRows]], plan: GrowthPlan, target: int
) -> tuple[Array, Array, Array]:
    """Weights, values and impurities of a target in all nodes, level by level."""
    measures: list[LevelMeasures] = []
    for nodes, rows in reversed(levels):  # children before their parents
        found = _class_measures(rows, plan, target) if plan.classes else _amount_measures(rows, plan, target)
        inner = nodes.column >= 0
        if inner.any():
            _join_children(found, measures[-1], inner, bool(plan.classes))
        measures.append(found)
    total, value, spread = map(np.concatenate, zip(*measures[::-1], strict=True))
    return total, *_published(total, value, spread, bool(plan.classes))


def _class_measures(rows: LevelRows, plan: GrowthPlan, target: int) -> LevelMeasures:
    N, k = int(rows.node[-1]) + 1, plan.classes[target]
    label = plan.table.y[target, rows.row].astype(np.int64)
    value = np.bincount(rows.node * k + label, rows.w, N * k).reshape(N, k)
    return LevelMeasures(np.zeros(N), value, np.zeros(N))


def _amount_measures(rows: LevelRows, plan: GrowthPlan, target: int) -> LevelMeasures:
    node, w, y = rows.node, rows.w, plan.table.y[target, rows.row]
    N = int(node[-1]) + 1
    first = y[np.searchsorted(node, np.arange(N))]
    total = np.bincount(node, w, N)
    centre = first + np.bincount(node, w * (y - first[node]), N) / total
    centre += np.bincount(node, w * (y - centre[node]), N) / total  # what rounding has left
    away = y - centre[node]
    return LevelMeasures(total, centre[:, None], np.bincount(node, w * (away * away), N))


def _join_children(found: LevelMeasures, below: LevelMeasures, inner: Array, classes: bool) -> None:
    """Let nodes that are split say what their children say together."""
    total, value, spread = ((x[0::2], x[1::2]) for x in below)
    if classes:
        found.value[inner] = value[0] + value[1]
        return
    heavy, other = total[1] > total[0], total[1] <= total[0]  # the right child's mean is moved, or the left one's
    (a, b), (v, w) = ((np.where(heavy, y, x), np.where(other, y, x)) for x, y in ([m[:, 0] for m in value], total))
    found.total[inner] = v + w
    mean = a + w * (b - a) / found.total[inner]
    one, two = a - mean, b - mean
    found.value[inner, 0] = mean
    found.spread[inner] = spread[0] + spread[1] + (v * (one * one) + w * (two * two))


def _published(total: Array, value: Array, spread: Array, classes: bool) -> tuple[Array, Array]:
    """Class shares or means (m, k), and impurities (m,); weights of classes are added up in `total`."""
    if not classes:
        return value, spread / total
    squares = np.zeros(len(total))
    for c in range(value.shape[1]):
        total += value[:, c]
    share = value / total[:, None]
    for c in range(value.shape[1]):
        squares += share[:, c] * share[:, c]
    return share, 1.0 - squares


def _preorder(inner: list[Array], sizes: list[Array]) -> tuple[Array, Array, Array]:
    """Places of all nodes in the preorder of their trees, and those of their children, -1 for leaves."""
    place = [np.zeros(len(inner[0]), np.int64)]
    left: list[Array] = []
    right: list[Array] = []
    for level, split in enumerate(inner):
        at = place[level]
        children = np.zeros(2 * int(split.sum()), np.int64)
        if len(children):
            children[0::2] = at[split] + 1
            children[1::2] = at[split] + 1 + sizes[level + 1][0::2]
        for side, out in enumerate((left, right)):
            of_nodes = np.full(len(split), -1)
            of_nodes[split] = children[side::2]
            out.append(of_nodes)
        place.append(children)
    return np.concatenate(place[:-1]), np.concatenate(left), np.concatenate(right)
