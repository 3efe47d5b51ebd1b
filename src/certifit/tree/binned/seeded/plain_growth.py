"""Growing the trees of a small table together, a level at a time, by operations on whole arrays.

Nothing has to be compiled for it. Sums are whole numbers and what is random follows from the keys of nodes, so that
the trees have the same bits as those of the compiled loops (`growth_loops`), whose rules these are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from certifit.numerics.compiled.random_bits import random_bits_of_pairs
from certifit.rows import Array
from certifit.tree.binned.seeded.candidate_loops import (
    FIELD,
    FIELD_BITS,
    GINI,
    LABEL,
    MANY,
    MISSING,
    PACKED,
    SEVERAL,
    SQUARED,
    WEIGHT_BITS,
)
from certifit.tree.binned.seeded.growing import GrowthPlan, WholeTargets, whole_targets
from certifit.tree.binned.seeded.growth_loops import CodedTable
from certifit.tree.binned.seeded.plain_nodes import LevelNodes, LevelRows, trees_of_levels
from certifit.tree.fitted_tree import Tree


@dataclass(frozen=True)
class GrowTuning:
    """How many trees grow together."""

    entries: int = 200_000  # so many that their tables have this many entries in all
    kept: int = 8  # at a time, where a checkpoint keeps them


class LevelSplits(NamedTuple):
    """The best splits of the nodes of a level; `column` is -1 where there is none."""

    column: Array  # (N,)
    border: Array  # (N,) codes up to this one go left; 254 where only missing values go right
    missing_left: Array  # (N,) bool
    met_missing: Array  # (N,) bool


class CodeRuns(NamedTuple):
    """What the rows of each code add up to, of every column that each node looks at: codes ascending in each pair."""

    pair: Array  # (u,) number of the pair of node and column
    code: Array  # (u,)
    sums: Array  # (c, u) int64
    rows: Array  # (u,)


def can_grow_together(plan: GrowthPlan, weights: list[Array]) -> bool:
    """Whether the scores of these trees are such that both ways to grow them give the same bits."""
    usual = plan.most_leaves is None and plan.decrease <= 0 and not plan.table.monotone.any()
    # Sums of squares of many classes are exact up to here, in whatever order they are added.
    alike = plan.targets > 1 or max(plan.classes, default=1) <= 2
    exact = alike or all((w == np.rint(w)).all() and w.sum() < 2**26 for w in weights)
    return usual and plan.score in (GINI, SQUARED) and exact


def grow_together(plan: GrowthPlan, weights: list[Array], seeds: Array) -> list[Tree]:
    """Grow a tree for each seed, on the rows of positive weight (n,)."""
    row = [np.flatnonzero(w > 0) for w in weights]
    w = [weight[r].astype(np.float64) for weight, r in zip(weights, row, strict=True)]
    targets = [whole_targets(plan, plan.table.y[:, r], own) for r, own in zip(row, w, strict=True)]
    shares = zip(w, targets, strict=True)
    leaf_weight = np.array([plan.leaf_share * float(own.sum()) / t.weight_unit for own, t in shares])
    rows = LevelRows(
        np.repeat(np.arange(len(seeds)), [*map(len, row)]), np.concatenate(row), np.concatenate(w),
        np.concatenate([_channels(plan, t) for t in targets], axis=1),
    )  # fmt: skip
    tree, key, depth, levels = np.arange(len(seeds)), np.asarray(seeds).astype(np.uint64), 0, []
    while len(key):
        splits = _best_splits(plan, rows, key, leaf_weight[tree], depth)
        code = plan.table.codes[np.maximum(splits.column, 0)[rows.node], rows.row]
        left = np.where(code == MISSING, splits.missing_left[rows.node], code <= splits.border[rows.node])
        nodes = _level_nodes(plan.table, splits, rows, tree, left)
        levels.append((nodes, rows))
        inner = np.flatnonzero(splits.column >= 0)
        d = len(plan.table.codes)
        tree, key = np.repeat(tree[inner], 2), random_bits_of_pairs(key[inner, None], np.array([d, d + 1])).ravel()
        rows, depth = _children_rows(rows, splits.column >= 0, left), depth + 1
    return trees_of_levels(levels, plan, len(seeds))


def _channels(plan: GrowthPlan, targets: WholeTargets) -> Array:
    """What each row adds to the sums of its node (c, m): weights of classes, or else amounts and a weight."""
    a = targets.a
    if targets.form == SEVERAL:
        return np.vstack([targets.channels.T, targets.b])
    if targets.form == PACKED:
        return np.stack([a & FIELD_BITS, (a >> FIELD) & FIELD_BITS])
    if targets.form == MANY:
        return np.where(a >> LABEL == np.arange(plan.classes[0])[:, None], a & WEIGHT_BITS, 0)
    return np.stack([a, targets.b])


def _level_nodes(table: CodedTable, splits: LevelSplits, rows: LevelRows, tree: Array, left: Array) -> LevelNodes:
    """What is known of the nodes of a level once their splits are found."""
    inner, j = splits.column >= 0, np.maximum(splits.column, 0)
    at = np.where(splits.border == 254, 0, table.first[j] + splits.border)
    threshold = np.where(splits.border == 254, np.inf, table.borders[np.where(inner, at, 0)])
    count = np.bincount(rows.node, minlength=len(tree))
    # Where the node met no missing value, later ones go to the side with more rows.
    larger = 2 * np.bincount(rows.node[left], minlength=len(tree)) > count
    missing = np.where(splits.met_missing, splits.missing_left, larger) & inner
    return LevelNodes(
        tree, np.where(inner, splits.column, -2), np.where(inner, threshold, -2.0), missing.astype(np.uint8), count
    )


def _children_rows(rows: LevelRows, inner: Array, left: Array) -> LevelRows:
    """The rows of the children, the left one's first, in their order."""
    child = (2 * (np.cumsum(inner) - 1))[rows.node] + ~left
    kept = np.flatnonzero(inner[rows.node])
    kept = kept[np.argsort(child[kept], kind="stable")]
    return LevelRows(child[kept], rows.row[kept], rows.w[kept], rows.sums[:, kept])


def _best_splits(plan: GrowthPlan, rows: LevelRows, key: Array, leaf_weight: Array, depth: int) -> LevelSplits:
    """The best splits of all nodes of a level."""
    N, rules = len(key), plan.rules
    found = LevelSplits(np.full(N, -1), np.zeros(N, np.int64), np.zeros(N, bool), np.zeros(N, bool))
    count = np.bincount(rows.node, minlength=N)
    first = np.cumsum(count) - count
    total = np.add.reduceat(rows.sums, first, axis=1)
    weight = _weight(plan, total)
    y = plan.table.y[:, rows.row]
    pure = (np.minimum.reduceat(y, first, axis=1) == np.maximum.reduceat(y, first, axis=1)).all(axis=0)
    ready = ~pure & (count >= max(rules.split_rows, 2 * plan.leaf_rows)) & (weight >= 2 * leaf_weight)
    if depth >= rules.depth or not ready.any():
        return found
    codes = plan.table.codes[:, rows.row]
    varies = (np.minimum.reduceat(codes, first, axis=1) != np.maximum.reduceat(codes, first, axis=1)).T
    node, column = np.nonzero(_columns_shown(varies & ready[:, None], ready, key, rules.columns))
    if not len(node):
        return found
    runs = _code_runs(codes, rows, (node, column), first, count)
    drawn = _drawn_borders(plan.table, runs, key[node], column) if rules.drawn else np.full(len(node), -1)
    return _chosen(plan, runs, found, (node, column, drawn), (total, weight, count, leaf_weight))


def _columns_shown(varies: Array, ready: Array, key: Array, most: int) -> Array:
    """Which columns each node looks at (N, d): of the first it draws those that vary, or the first that does."""
    N, d = varies.shape
    order, shown, each = np.tile(np.arange(d), (N, 1)), np.zeros((N, d), bool), np.arange(N)
    for i in range(d):
        looking = ready & ((i < most) | ~shown.any(axis=1))
        if not looking.any():
            break
        at = i + (random_bits_of_pairs(key, i) % np.uint64(d - i)).astype(np.int64)
        j = order[each, at]
        order[each, at], order[each, i] = order[each, i], j
        shown[each, j] |= looking & varies[each, j]
    return shown


def _code_runs(codes: Array, rows: LevelRows, pairs: tuple[Array, Array], first: Array, count: Array) -> CodeRuns:
    """What the rows of each code add up to; `codes` (d, R) are those of the level's rows."""
    node, column = pairs
    size = count[node]
    pair = np.repeat(np.arange(len(node)), size)
    at = np.arange(len(pair)) + np.repeat(first[node] - (np.cumsum(size) - size), size)
    code = codes[column[pair], at]
    # By code, then by pair: numbers of one or two bytes are sorted digit by digit, many times faster than others.
    order = np.argsort(code, kind="stable")
    order = order[np.argsort(pair.astype(np.uint16 if len(node) < 2**16 else np.int64)[order], kind="stable")]
    key = pair[order] * 256 + code[order]
    starts = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
    sums = np.add.reduceat(rows.sums[:, at[order]], starts, axis=1)
    return CodeRuns(key[starts] >> 8, key[starts] & 255, sums, np.diff(np.append(starts, len(key))))


def _drawn_borders(table: CodedTable, runs: CodeRuns, key: Array, column: Array) -> Array:
    """The border nearest to a number drawn between those next to the lowest and the highest code of each pair."""
    bits = random_bits_of_pairs(key ^ np.uint64(0xD1B54A32D192ED03), column)
    share = (bits >> np.uint64(11)).astype(np.float64) / 2.0**53
    begin, end = (np.searchsorted(runs.pair, np.arange(len(column)), side=side) for side in ("left", "right"))
    low, high = runs.code[begin], runs.code[end - 1]
    high = np.where(high == MISSING, runs.code[np.maximum(end - 2, begin)], high)
    out = np.full(len(column), 254)
    for j in np.unique(column):
        p = np.flatnonzero((column == j) & (low < high) & (high < MISSING))
        borders = table.borders[table.first[j] : table.first[j + 1]]
        drawn = borders[low[p]] * (1 - share[p]) + borders[high[p] - 1] * share[p]
        k = np.clip(np.searchsorted(borders, drawn, side="right") - 1, low[p], high[p] - 1)
        after = np.minimum(k + 1, high[p] - 1)
        out[p] = np.where((k < after) & (borders[after] - drawn < drawn - borders[k]), after, k)
    return out


def _chosen(
    plan: GrowthPlan, runs: CodeRuns, found: LevelSplits, pairs: tuple[Array, Array, Array], whole: tuple[Array, ...]
) -> LevelSplits:
    """The best candidate of each node: of equal ones the lowest column's, then with missing values on the right."""
    (node, column, drawn), (total, weight, count, leaf_weight) = pairs, whole
    last = np.append(runs.pair[1:] != runs.pair[:-1], True)
    after = np.append(runs.code[1:], 0)
    end = np.flatnonzero(last)[runs.pair]
    lost = runs.code[end] == MISSING
    one = np.flatnonzero(~last & ((drawn[runs.pair] < 0) | (after == MISSING) | _holds(runs, after, drawn)))
    two = one[lost[one] & (after[one] != MISSING)]
    at, side = np.append(one, two), np.repeat([0, 1], [len(one), len(two)])
    order = np.lexsort((at, side, runs.pair[at]))
    at, side = at[order], side[order]
    begin = np.flatnonzero(np.append(True, last[:-1]))[runs.pair]
    left, rows = (_running(x, begin, end, at, side) for x in (runs.sums, runs.rows))
    here = node[runs.pair[at]]
    right = total[:, here] - left
    weight_left = _weight(plan, left)
    kept = (rows >= plan.leaf_rows) & (count[here] - rows >= plan.leaf_rows)
    kept &= (weight_left >= leaf_weight[here]) & (weight[here] - weight_left >= leaf_weight[here])
    if not kept.any():
        return found
    at, side, here, left, right = at[kept], side[kept], here[kept], left[:, kept], right[:, kept]
    score = _side_score(plan, left) + _side_score(plan, right)
    starts = np.flatnonzero(np.append(True, here[1:] != here[:-1]))
    best = np.repeat(np.maximum.reduceat(score, starts), np.diff(np.append(starts, len(here))))
    first = np.flatnonzero(score == best)
    k, place = np.unique(here[first], return_index=True)
    at, side = at[first[place]], side[first[place]]
    pair, code, above = runs.pair[at], runs.code[at], after[at]
    middle = np.where(drawn[pair] >= 0, drawn[pair], (code + above - 1) // 2)
    found.column[k], found.border[k] = column[pair], np.where(above == MISSING, 254, middle)
    found.missing_left[k], found.met_missing[k] = side == 1, lost[at]
    return found


def _holds(runs: CodeRuns, after: Array, drawn: Array) -> Array:
    """Whether the border drawn for a pair lies between a code and the next."""
    border = drawn[runs.pair]
    return (runs.code <= border) & (border < after)


def _running(x: Array, begin: Array, end: Array, at: Array, side: Array) -> Array:
    """Sums (…, u) up to the places `at` of their pair, with those of missing values on side 1."""
    below = np.cumsum(x, axis=-1)
    return below[..., at] - below[..., begin[at]] + x[..., begin[at]] + side * x[..., end[at]]


def _weight(plan: GrowthPlan, sums: Array) -> Array:
    """The weight of rows that add up to these sums (c, m): of one target's classes all of them, else the last."""
    found = sums.sum(axis=0) if plan.classes and plan.targets == 1 else sums[-1]
    return found.astype(np.float64)


def _side_score(plan: GrowthPlan, sums: Array) -> Array:
    """The score of one child of each candidate (c, m): the larger, the purer."""
    parts = sums if plan.classes and plan.targets == 1 else sums[:-1]
    squares = np.zeros(sums.shape[1])
    for a in parts.astype(np.float64):
        squares += a * a
    return squares / _weight(plan, sums)
