"""Growing one tree of a forest: its rows as whole numbers, the compiled growth, and the nodes that come of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from certifit.ensemble.forest.candidate_loops import (
    ENTROPY,
    FIELD,
    GINI,
    LABEL,
    MANY,
    PACKED,
    PAIR,
    POISSON,
    SQUARED,
    CodeList,
    SplitTerms,
    TreeRows,
)
from certifit.ensemble.forest.growth_loops import (
    CodedTable,
    ColumnOrder,
    ForestRules,
    GrownNodes,
    Growth,
    WaitingNodes,
    grow_best_first,
    grow_tree,
)
from certifit.ensemble.forest.measure_loops import measure_amounts, measure_classes
from certifit.numerics.compiled.compiling import PlainFirst
from certifit.rows import Array
from certifit.tree.exact.target_sums import amount_sums, class_sums
from certifit.tree.fitted_tree import Tree

PLAIN_FIRST = PlainFirst(grow_tree)

SCORES = {
    "gini": GINI, "entropy": ENTROPY, "log_loss": ENTROPY,
    "squared_error": SQUARED, "friedman_mse": SQUARED, "poisson": POISSON,
}  # fmt: skip


@dataclass(frozen=True)
class ForestPlan:
    """What all trees of a forest share: the coded table and the rules of growth."""

    table: CodedTable
    criterion: str
    classes: int  # 0 for amounts
    rules: ForestRules
    leaf_rows: int
    leaf_share: float  # least weight of a leaf, as a share of the tree's
    decrease: float  # least fall of impurity, times the node's share of all weight
    most_leaves: int | None

    @property
    def score(self) -> int:
        return SCORES[self.criterion]


@dataclass(frozen=True)
class WholeTargets:
    """The rows of a tree as whole numbers, and the units in which they are counted."""

    form: int
    a: Array  # (m,) int64
    b: Array  # (m,) int64; empty unless form is PAIR
    weight_unit: float
    score_unit: float  # the score that one unit of weight times impurity is


def whole_targets(plan: ForestPlan, y: Array, w: Array) -> WholeTargets:
    """Rows with targets y and weights w, in the form that suits them."""
    none = np.empty(0, np.int64)
    if not plan.classes:
        sums = amount_sums(y[:, None], w, centred=plan.criterion != "poisson")
        unit = 1 / sums.unit if plan.criterion == "poisson" else sums.weight_unit / sums.unit / sums.unit
        return WholeTargets(PAIR, sums.moments[:, 0].copy(), sums.weight, sums.weight_unit, unit)
    label = y.astype(np.int64)
    logs = 1.0 if plan.score == GINI else math.log(2)
    total = float(w.sum())
    whole = bool((w == np.rint(w)).all())
    if plan.classes <= 2 and whole and max(total, len(w)) < 2**FIELD:
        return WholeTargets(PACKED, (1 << (2 * FIELD)) | (w.astype(np.int64) << (FIELD * label)), none, 1.0, logs)
    if plan.classes <= 2:
        sums = class_sums(y[:, None], [2], w)
        a, b = (np.where(label == c, sums.weight, 0) for c in (0, 1))
        return WholeTargets(PAIR, a, b, sums.weight_unit, logs / sums.weight_unit)
    unit = 1.0 if whole and total < 2.0 ** (LABEL - 1) else 2.0 ** (math.frexp(total)[1] - LABEL + 1)
    weight = np.maximum(np.rint(w / unit), 1).astype(np.int64)
    return WholeTargets(MANY, (label << LABEL) | weight, none, unit, logs / unit)


def _scratch(form: int, m: int, classes: int, d: int) -> tuple[CodeList, ColumnOrder]:
    k = max(classes, 1) if form == MANY else 1
    many = form == MANY
    lists = np.zeros((4, 256), np.int64)
    found = CodeList(
        lists[0], lists[1], lists[2], lists[3], np.zeros(1024, np.int64),
        np.zeros(max(m, 256 * k) if many else 1, np.uint64), np.zeros(256 * k if many else 1, np.int64),
        np.zeros(k), np.zeros(k),
    )  # fmt: skip
    columns = ColumnOrder(
        np.arange(d, dtype=np.int32), np.zeros(d, np.int32), np.zeros(d, np.uint8), np.zeros(d, np.int32)
    )
    return found, columns


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


def grown_tree(plan: ForestPlan, weight: Array, seed: int) -> Tree:
    """Grow a tree on the rows of positive weight (n,)."""
    table, k, d = plan.table, plan.classes, len(plan.table.codes)
    row = np.flatnonzero(weight > 0).astype(np.uint32)
    m, w = len(row), weight[row].astype(np.float64)
    targets = whole_targets(plan, table.y[row], w)
    total = float(w.sum())
    terms = SplitTerms(
        plan.score, targets.form, max(k, 1), plan.leaf_rows, plan.leaf_share * total / targets.weight_unit
    )
    least = plan.decrease * total * targets.score_unit
    # A split may lower the impurity by nothing, as the first of an exclusive or: rounding must not forbid it.
    rules = plan.rules._replace(decrease=least if least > 0 else -np.inf)
    rows = TreeRows(row, targets.a, targets.b, np.empty_like(row), np.empty_like(targets.a), np.empty_like(targets.b))
    found, columns = _scratch(targets.form, m, k, d)
    growth = Growth(table, rows, terms, rules, found, columns, np.zeros(max(k, 1)))
    if plan.most_leaves is None:
        nodes, waiting = _room(m, 2 * m - 1, m + 2, seed)
        made = grow_tree(growth, nodes, waiting)
    else:
        leaves = min(plan.most_leaves, m)
        nodes, waiting = _room(m, 2 * leaves - 1, 2 * leaves + 2, seed)
        made = grow_best_first(growth, nodes, waiting, leaves)
    if k:
        found_measures = measure_classes(nodes, made, row, table.y, weight, k, plan.score)
    else:
        found_measures = measure_amounts(nodes, made, row, table.y, weight, plan.score)
    return _as_tree(nodes, made, found_measures, d, k)


def _as_tree(nodes: GrownNodes, made: int, measures: tuple[Array, Array, Array], d: int, classes: int) -> Tree:
    weight, value, impurity = measures
    count = (nodes.end - nodes.start)[:made]
    return Tree(
        nodes.left[:made].copy(), nodes.right[:made].copy(), nodes.column[:made].copy(),
        nodes.threshold[:made].copy(), nodes.missing_left[:made].copy(), impurity, count, weight, value[:, None], d,
        np.array([max(classes, 1)]),
    )  # fmt: skip
