"""The steps of growth by operations on whole arrays: for small tables, for which nothing has to be compiled then.

Those that take little time beside the search for splits are what large tables take, too.

Sums are whole numbers and scores are computed in the order of the compiled loops (`step_loops`), so that both give
the same bits. There are no medians and no categories here.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from certifit.numerics.compiled.random_bits import random_bits_of_pairs
from certifit.rows import Array
from certifit.tree.exact.entries import NodeCentre, NodeToSplit, SortedTable, Split, SplitRules
from certifit.tree.exact.growth_loops import GrowthRules, NodeTable
from certifit.tree.exact.split_loops import POSITIVE, QUADRATIC


class NodeSums(NamedTuple):
    """What the rows of a node add up to."""

    weight: int
    sums: Array  # (c,) int64


NO_SPLIT = Split(-np.inf, -1, 0, False, False, np.nan, -1)
_logarithms = np.frompyfunc(math.log, 1, 1)  # NumPy's own differ in their last bits


def may_split(table: SortedTable, y: Array, growth: GrowthRules, rules: SplitRules, nodes: NodeTable, k: int) -> bool:
    """Whether a node is one that the rules let be split, whatever its best split is."""
    start, end = nodes.start[k], nodes.end[k]
    if nodes.depth[k] >= growth.depth or end - start < max(growth.split_rows, 2 * rules.leaf_rows):
        return False
    if nodes.weight[k] < 2 * rules.leaf_weight:
        return False
    return _differ(table, y, start, min(start + 100, end)) or _differ(table, y, start, end)


def _differ(table: SortedTable, y: Array, start: int, end: int) -> bool:
    """Whether the rows of a run have different targets."""
    here = y[table.entries[0, start:end] & 0xFFFFFFFF]
    return bool((here != here[0]).any())


def columns_to_try(table: SortedTable, rules: SplitRules, node: NodeToSplit) -> Array:
    """Return the columns that vary in a node; with fewer columns allowed, some of them drawn at random, ascending."""
    found = np.flatnonzero(table.entries[:, node.start] >> 32 != table.entries[:, node.end - 1] >> 32)
    m = len(found)
    if m <= rules.columns:
        return found
    key = random_bits_of_pairs(rules.seed, node.key) ^ np.uint64(0x5851F42D4C957F2D)
    turn = np.arange(rules.columns)
    others = turn + (random_bits_of_pairs(key, turn) % (m - turn).astype(np.uint64)).astype(np.int64)
    for i, other in enumerate(others):  # a shuffle that stops early
        found[i], found[other] = found[other], found[i]
        found[: i + 1].sort()
    return found[: rules.columns]


def best_split(table: SortedTable, rules: SplitRules, columns: Array, node: NodeToSplit, *_: None) -> Split:
    """Return the best split of a node along any of these columns."""
    if not len(columns):
        return NO_SPLIT
    entries = table.entries[columns, node.start : node.end]
    rank, row, m = entries >> 32, entries & 0xFFFFFFFF, node.end - node.start
    known = (rank < np.diff(table.first)[columns][:, None]).sum(axis=1)  # rows with a value, of each column
    # Axes of what follows: columns, missing rows right or left, borders.
    sides = 2 if (known < m).any() else 1
    weight, sums = _left_sums(table, rules, row, known, sides)
    after = np.arange(m)
    allowed = np.zeros((len(columns), sides, m), bool)
    allowed[:, :, :-1] = (rank[:, 1:] != rank[:, :-1])[:, None]
    allowed[:, 1:] &= after < known[:, None, None] - 1
    drawn = np.full(len(columns), np.nan)
    if rules.random:
        drawn, between = _drawn_thresholds(table, rules, columns, node, rank, known)
        allowed &= (between | (after >= known[:, None] - 1))[:, None]
    count = after + 1 + np.array([0, 1])[:sides, None] * (m - known)[:, None, None]
    allowed &= (count >= rules.leaf_rows) & (m - count >= rules.leaf_rows)
    rest = node.weight - weight
    allowed &= (weight >= rules.leaf_weight) & (rest >= rules.leaf_weight)
    others = [int(total) - s for total, s in zip(node.total, sums, strict=True)]
    if node.limits[0] > -np.inf or node.limits[1] < np.inf or table.monotone[columns].any():
        allowed &= _keeps_order(table.monotone[columns], node, sums[-1], others[-1], (weight, rest))
    score = np.full(allowed.shape, -np.inf)
    centre = _node_centre(table, node)
    score[allowed] = _side_score(rules.score, [s[allowed] for s in sums], weight[allowed], centre)
    score[allowed] += _side_score(rules.score, [s[allowed] for s in others], rest[allowed], centre)
    c, side, i = np.unravel_index(int(np.argmax(score)), score.shape)
    if score[c, side, i] == -np.inf:
        return NO_SPLIT
    j, with_missing = int(columns[c]), bool(known[c] < m)
    threshold = np.inf if i + 1 == known[c] else float(drawn[c])
    if i + 1 < known[c] and not rules.random:
        low, high = table.values[table.first[j] + rank[c, i : i + 2]]
        middle = low / 2 + high / 2
        threshold = float(middle if low <= middle < high else low)
    return Split(float(score[c, side, i]), j, int(i) + 1, side == 1, with_missing, threshold, -1)


def _left_sums(
    table: SortedTable, rules: SplitRules, row: Array, known: Array, sides: int
) -> tuple[Array, list[Array]]:
    """The weight that goes left at each border (columns, sides, m), and the sums of each channel."""
    parts = [table.weight[row]]
    for c in range(rules.channels):
        if table.moments.shape[1]:
            parts.append(table.moments[row, c])
        else:
            parts.append(parts[0] * (table.labels[row] == c).sum(axis=2))
    found = []
    for part in parts:
        right = np.cumsum(part, axis=1)
        lost = right[:, -1] - np.where(known > 0, right[np.arange(len(row)), known - 1], 0)
        found.append(np.stack([right, right + lost[:, None]][:sides], axis=1))
    return found[0], found[1:]


def _drawn_thresholds(
    table: SortedTable, rules: SplitRules, columns: Array, node: NodeToSplit, rank: Array, known: Array
) -> tuple[Array, Array]:
    """A threshold drawn for each column, and the borders that it lies between (columns, m)."""
    bits = random_bits_of_pairs(random_bits_of_pairs(rules.seed, node.key), columns)
    share = (bits >> np.uint64(11)).astype(np.float64) / 2.0**53
    drawn, between = np.full(len(columns), np.nan), np.zeros(rank.shape, bool)
    for c in np.flatnonzero(known):
        x = table.values[table.first[columns[c]] + rank[c, : known[c]]]
        drawn[c] = x[0] * (1 - share[c]) + x[-1] * share[c]
        if not x[0] <= drawn[c] < x[-1]:
            drawn[c] = x[0]
        between[c, : known[c] - 1] = (x[:-1] <= drawn[c]) & (drawn[c] < x[1:])
    return drawn, between


def _node_centre(table: SortedTable, node: NodeToSplit) -> NodeCentre:
    """The mean amounts of a node; of classes 0, whose sums are scored as they are."""
    total, weight = node.total, node.weight
    if not table.moments.shape[1]:
        return NodeCentre(np.zeros(len(total), np.int64), np.zeros(len(total)))
    whole = np.rint(total / float(weight)).astype(np.int64)
    return NodeCentre(whole, (total - whole * weight) / float(weight))


def _side_score(score: int, sums: list[Array], weight: Array, centre: NodeCentre) -> Array:
    """The scores of children: the larger, the purer."""
    found, heavy = np.zeros(len(weight)), weight.astype(np.float64)
    for amount, whole, part in zip(sums, *centre, strict=True):
        if score == QUADRATIC:
            s = (amount - whole * weight).astype(np.float64) - part * heavy
            found += s * s
            continue
        s = amount.astype(np.float64)
        full = s > 0
        found[full] += s[full] * np.asarray(_logarithms(s[full] / heavy[full]), np.float64)
        if score == POSITIVE:
            found[~full] = -np.inf
    return found / heavy if score == QUADRATIC else found


def _keeps_order(
    directions: Array, node: NodeToSplit, left: Array, right: Array, weights: tuple[Array, Array]
) -> Array:
    """Where the children's values are in the right order, and within what ancestors' splits leave them."""
    with np.errstate(divide="ignore", invalid="ignore"):
        a, b = left / weights[0], right / weights[1]
    low, high = node.limits
    ordered = (a - b) * directions[:, None, None] <= 0
    return ordered & (low <= a) & (a <= high) & (low <= b) & (b <= high)


def node_score(table: SortedTable, rules: SplitRules, node: NodeToSplit, *_: None) -> float:
    """Return the score of a node that is not split."""
    sums = [np.array([total]) for total in node.total]
    return float(_side_score(rules.score, sums, np.array([node.weight]), _node_centre(table, node))[0])


def mark_sides(table: SortedTable, _rules: SplitRules, split: Split, node: NodeToSplit, *_: None) -> int:
    """Note which of a node's rows go left, and return how many."""
    j = split.column
    entries = table.entries[j, node.start : node.end]
    left = np.arange(len(entries)) < split.position
    left[entries >> 32 == table.first[j + 1] - table.first[j]] = split.missing_left
    table.left[entries & 0xFFFFFFFF] = left
    return int(left.sum())


def part_rows(table: SortedTable, first: int, last: int, start: int, end: int) -> None:
    """Put the rows that go left before the others, in the order of each of the columns [first, last)."""
    entries = table.entries[first:last, start:end]
    left = table.left[entries & 0xFFFFFFFF] != 0
    parts = [entries[side].reshape(last - first, -1) for side in (left, ~left)]
    table.entries[first:last, start:end] = np.concatenate(parts, axis=1)


def add_children(
    table: SortedTable, rules: SplitRules, nodes: NodeTable, k: int, children: tuple[int, int], split: Split, *_: None
) -> None:
    """Write down the split of node k and its two children, the first of them node `made` with `count` rows."""
    start, count = nodes.start[k], children[1]
    row = table.entries[:1, start : start + count] & 0xFFFFFFFF
    weight, sums = _left_sums(table, rules, row, np.array([count]), 1)
    left = NodeSums(int(weight[0, 0, -1]), np.array([s[0, 0, -1] for s in sums]))
    write_children(table, rules, nodes, k, children, split, left)


def write_children(
    table: SortedTable,
    rules: SplitRules,
    nodes: NodeTable,
    k: int,
    children: tuple[int, int],
    split: Split,
    left: NodeSums,
) -> None:
    """Write down the split of node k and its two children, of which the left one's rows add up to `left`."""
    made, count = children
    pair = slice(made, made + 2)
    nodes.column[k], nodes.threshold[k] = split.column, split.threshold
    nodes.missing_left[k], nodes.met_missing[k] = split.missing_left, split.met_missing
    nodes.left[k], nodes.right[k] = made, made + 1
    middle = nodes.start[k] + count
    nodes.start[pair], nodes.end[pair] = (nodes.start[k], middle), (middle, nodes.end[k])
    nodes.depth[pair] = nodes.depth[k] + 1
    nodes.key[pair] = random_bits_of_pairs(nodes.key[k : k + 1], np.arange(2))
    nodes.limits[pair] = nodes.limits[k]
    nodes.weight[pair] = left.weight, nodes.weight[k] - left.weight
    nodes.sums[made] = left.sums
    nodes.sums[made + 1] = nodes.sums[k] - nodes.sums[made]
    direction = table.monotone[split.column]
    if direction != 0:
        # Between the children's values lies the border that neither side's descendants may cross.
        a, b = nodes.sums[pair, rules.channels - 1] / nodes.weight[pair]
        nodes.limits[made, 1 if direction > 0 else 0] = (a + b) / 2
        nodes.limits[made + 1, 0 if direction > 0 else 1] = (a + b) / 2
