"""Growing trees from codes: their rows as whole numbers, the compiled growth, and the nodes that come of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from certifit.numerics.compiled.compiling import PlainFirst
from certifit.rows import Array
from certifit.tree.binned.seeded.candidate_loops import (
    ENTROPY,
    FIELD,
    GINI,
    LABEL,
    MANY,
    PACKED,
    PAIR,
    POISSON,
    SEVERAL,
    SQUARED,
    CodeList,
    ManyClasses,
    SplitTerms,
    TargetChannels,
    TreeRows,
)
from certifit.tree.binned.seeded.growth_loops import (
    CodedTable,
    CodeRules,
    ColumnOrder,
    GrownNodes,
    Growth,
    WaitingNodes,
    grow_best_first,
    grow_tree,
)
from certifit.tree.binned.seeded.measure_loops import measure_amounts, measure_classes
from certifit.tree.exact.criteria import NodeMeasures
from certifit.tree.exact.target_sums import amount_sums, class_sums
from certifit.tree.fitted_tree import Tree

PLAIN_FIRST = PlainFirst(grow_tree)

SCORES = {
    "gini": GINI, "entropy": ENTROPY, "log_loss": ENTROPY,
    "squared_error": SQUARED, "friedman_mse": SQUARED, "poisson": POISSON,
}  # fmt: skip


@dataclass(frozen=True)
class GrowthPlan:
    """What all trees share: the coded table and the rules of growth."""

    table: CodedTable
    criterion: str
    classes: tuple[int, ...]  # of each target; () for amounts
    rules: CodeRules
    leaf_rows: int
    leaf_share: float  # least weight of a leaf, as a share of the tree's
    decrease: float  # least fall of impurity, times the node's share of all weight
    most_leaves: int | None

    @property
    def score(self) -> int:
        return SCORES[self.criterion]

    @property
    def targets(self) -> int:
        return len(self.table.y)


@dataclass(frozen=True)
class WholeTargets:
    """The rows of a tree as whole numbers, and the units in which they are counted."""

    form: int
    a: Array  # (m,) int64
    b: Array  # (m,) int64; empty unless form is PAIR or SEVERAL
    weight_unit: float
    score_unit: float  # the score that one unit of weight times impurity is
    channels: Array = field(default_factory=lambda: np.empty((0, 0), np.int64))  # (m, c) int64, of several targets


def whole_targets(plan: GrowthPlan, y: Array, w: Array) -> WholeTargets:
    """Rows with targets y (t, m) and weights w (m,), in the form that suits them."""
    none = np.empty(0, np.int64)
    sums = class_sums(y.T, list(plan.classes), w) if plan.classes else amount_sums(y.T, w, plan.score == SQUARED)
    logs = 1.0 if plan.score == GINI else math.log(2)
    if plan.classes:
        unit = logs / sums.weight_unit
    else:
        unit = 1 / sums.unit if plan.score == POISSON else sums.weight_unit / sums.unit / sums.unit
    if plan.targets > 1:
        channels = sums.moments
        if plan.classes:
            channels = np.zeros((len(w), sums.channels), np.int64)
            np.put_along_axis(channels, sums.labels.astype(np.int64), sums.weight[:, None], axis=1)
        unit *= plan.targets
        return WholeTargets(SEVERAL, np.zeros(len(w), np.int64), sums.weight, sums.weight_unit, unit, channels)
    if not plan.classes:
        return WholeTargets(PAIR, sums.moments[:, 0].copy(), sums.weight, sums.weight_unit, unit)
    label, total, k = y[0].astype(np.int64), float(w.sum()), plan.classes[0]
    whole = bool((w == np.rint(w)).all())
    if k <= 2 and whole and max(total, len(w)) < 2**FIELD:
        return WholeTargets(PACKED, (1 << (2 * FIELD)) | (w.astype(np.int64) << (FIELD * label)), none, 1.0, logs)
    if k <= 2:
        a, b = (np.where(label == c, sums.weight, 0) for c in (0, 1))
        return WholeTargets(PAIR, a, b, sums.weight_unit, unit)
    unit = 1.0 if whole and total < 2.0 ** (LABEL - 1) else 2.0 ** (math.frexp(total)[1] - LABEL + 1)
    weight = np.maximum(np.rint(w / unit), 1).astype(np.int64)
    return WholeTargets(MANY, (label << LABEL) | weight, none, unit, logs / unit)


def _code_list() -> CodeList:
    """Room for what the codes of a column add up to."""
    lists = np.zeros((4, 256), np.int64)
    return CodeList(lists[0], lists[1], lists[2], lists[3], np.zeros(1024, np.int64))


def _many_classes(m: int, k: int) -> ManyClasses:
    """Room for what m rows are of k classes."""
    sums = np.zeros((3, k))
    entry, place = np.zeros(max(m, 256 * k), np.uint64), np.zeros(256, np.int64)
    return ManyClasses(sums[0], entry, place, np.zeros(256 * k, np.int64), sums[1], sums[2])


def _target_channels(row: Array, each: Array, n: int) -> TargetChannels:
    """What each of a tree's rows, of n in the table, adds to the channels: `each` (m, c)."""
    c = each.shape[1]
    rows = np.zeros((n, c), np.int64)
    rows[row] = each
    return TargetChannels(
        _code_list(), rows, np.zeros(c, np.int64), np.zeros(256 * c, np.int64), np.zeros(c, np.int64)
    )


def _room(m: int, nodes: int, waiting: int, key: Any) -> tuple[GrownNodes, WaitingNodes]:
    """Room for the nodes of a tree with m rows, and for those that wait, the root first."""
    ints = [np.empty(nodes, np.int32) for _ in range(5)]
    grown = GrownNodes(ints[0], ints[1], ints[2], np.empty(nodes), np.empty(nodes, np.uint8), ints[3], ints[4])
    more = np.zeros((5, waiting), np.int64)
    stack = WaitingNodes(
        more[0], more[1], more[2], np.zeros(waiting, np.uint64), more[3], more[4], np.empty((waiting, 2))
    )
    stack.end[0], stack.key[0] = m, key
    stack.limits[0] = -np.inf, np.inf
    return grown, stack


def grown_tree(plan: GrowthPlan, weight: Array, seed: int) -> Tree:
    """Grow a tree on the rows of positive weight (n,)."""
    table, (d, n) = plan.table, plan.table.codes.shape
    row = np.flatnonzero(weight > 0).astype(np.uint32)
    m, w = len(row), weight[row].astype(np.float64)
    targets = whole_targets(plan, table.y[:, row], w)
    total, k = float(w.sum()), max(plan.classes, default=1)
    terms = SplitTerms(
        plan.score, targets.form, k, plan.leaf_rows, plan.leaf_share * total / targets.weight_unit, plan.targets
    )
    least = plan.decrease * total * targets.score_unit
    # A split may lower the impurity by nothing, as the first of an exclusive or: rounding must not forbid it.
    rules = plan.rules._replace(decrease=least if least > 0 else -np.inf)
    rows = TreeRows(row, targets.a, targets.b, np.empty_like(row), np.empty_like(targets.a), np.empty_like(targets.b))
    columns = ColumnOrder(
        np.arange(d, dtype=np.int32), np.zeros(d, np.int32), np.zeros(d, np.uint8), np.zeros(d, np.int32)
    )
    growth = Growth(table, rows, terms, rules, columns)
    pair = _code_list() if targets.form in (PACKED, PAIR) else None
    classes = _many_classes(m, k) if targets.form == MANY else None
    channels = _target_channels(row, targets.channels, n) if targets.form == SEVERAL else None
    if plan.most_leaves is None:
        nodes, waiting = _room(m, 2 * m - 1, m + 2, seed)
        made = grow_tree(growth, pair, classes, channels, nodes, waiting)
    else:
        leaves = min(plan.most_leaves, m)
        nodes, waiting = _room(m, 2 * leaves - 1, 2 * leaves + 2, seed)
        made = grow_best_first(growth, pair, classes, channels, nodes, waiting, leaves)
    return _as_tree(nodes, made, _measured(plan, nodes, made, row, weight), plan)


def _measured(plan: GrowthPlan, nodes: GrownNodes, made: int, row: Array, weight: Array) -> NodeMeasures:
    """Weights, values and impurities of the nodes; of several targets the mean of their impurities."""
    parts = []
    for t, y in enumerate(plan.table.y):
        if plan.classes:
            parts.append(measure_classes(nodes, made, row, y, weight, plan.classes[t], plan.score))
        else:
            parts.append(measure_amounts(nodes, made, row, y, weight, plan.score))
    return joined_measures(plan, parts)


def joined_measures(plan: GrowthPlan, parts: list[tuple[Array, Array, Array]]) -> NodeMeasures:
    """Measures of all targets together, from weights (m,), values (m, k) and impurities (m,) of each."""
    weight, value, impurity = parts[0]
    if len(parts) == 1:
        return NodeMeasures(weight, value[:, None], impurity)
    values = np.zeros((len(weight), len(parts), max(plan.classes, default=1)))
    for t, (_, value, _) in enumerate(parts):
        values[:, t, : value.shape[1]] = value
    return NodeMeasures(weight, values, np.mean([part[2] for part in parts], axis=0))


def _as_tree(nodes: GrownNodes, made: int, measures: NodeMeasures, plan: GrowthPlan) -> Tree:
    count = (nodes.end - nodes.start)[:made]
    return Tree(
        nodes.left[:made].copy(), nodes.right[:made].copy(), nodes.column[:made].copy(),
        nodes.threshold[:made].copy(), nodes.missing_left[:made].copy(), measures.impurity, count, measures.weight,
        measures.value, len(plan.table.codes), np.array(plan.classes or (1,) * plan.targets),
    )  # fmt: skip
