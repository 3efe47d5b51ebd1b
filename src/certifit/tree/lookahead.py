"""Growing a tree two levels ahead: a node's question is the first of the best tree of depth 2 on its rows.

Greedy growth cannot tell the first question of an exclusive or from any other: alone it gains nothing. The best tree
of depth 2 over the borders of bins of a node's rows (`optimal/search`) shows what a question and those below it gain
together. Where only one level is left, or nothing is gained in two, the node's best question is taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from certifit.rows import Array
from certifit.rows.rows import ArrayRows
from certifit.tree.exact.entries import Split
from certifit.tree.exact.growth import TreeGrower
from certifit.tree.optimal.bins import CodedColumns, SplitCandidates, code_rows, first_borders, split_candidates
from certifit.tree.optimal.scan_loops import ENTROPY, GINI, SQUARES
from certifit.tree.optimal.search import TargetStatistics, TreeSearch


@dataclass(frozen=True)
class LookaheadTuning:
    """How many bins a column of a node has at most."""

    bins: int = 32


@dataclass(frozen=True)
class LookaheadRows:
    """The rows that a tree grows on, as they are."""

    X: Array  # (n, d)
    y: Array  # (n,) class numbers or amounts
    w: Array  # (n,)
    criterion: str
    classes: int  # 0 for amounts
    score_unit: float  # the score that one unit of weight times impurity is

    def target(self, rows: Array) -> TargetStatistics:
        """What some of the rows add to histograms."""
        y, w = self.y[rows], self.w[rows]
        if self.classes:
            kind = GINI if self.criterion == "gini" else ENTROPY
            return TargetStatistics(y.astype(np.int32), w, None, self.classes, kind)
        return TargetStatistics(None, w, y, 3, SQUARES, float(np.average(y, weights=w)))


class LookaheadGrower(TreeGrower):
    """Grows one tree whose splits look two levels ahead."""

    def __init__(self, source: LookaheadRows, *parts: Any, ahead: LookaheadTuning = LookaheadTuning()) -> None:
        super().__init__(*parts)
        self.source, self.ahead = source, ahead

    def _is_small(self, k: int) -> bool:
        """No subtree is grown without looking ahead."""
        return False

    def _best(self, k: int) -> Split | None:
        greedy = super()._best(k)
        if self.nodes.depth[k] + 1 >= self.growth.depth:
            return greedy
        if not self.steps.may_split(self.table, self.y, self.growth, self.rules, self.nodes, k):
            return None
        return self._ahead(k) or greedy

    def _ahead(self, k: int) -> Split | None:
        """The first question of the best tree of depth 2, or None where it gains too little."""
        node = self._node(k)
        rows = self.table.entries[0, node.start : node.end] & 0xFFFFFFFF
        columns = self.steps.columns_to_try(self.table, self.rules, node)
        X = np.asarray(self.source.X[np.ix_(rows, columns)], np.float64)
        coded = code_rows(ArrayRows(X), first_borders(X, self.source.w[rows], self.ahead.bins))
        candidates = split_candidates(coded, relaxed=False)
        costs = TreeSearch(coded, self.source.target(rows)).costs([candidates], 2)[0]
        if not costs.sides:
            return None
        cost = np.where(self._allowed(coded, candidates, self.source.w[rows]), costs.root_costs(), np.inf)
        c = int(np.argmin(cost))
        gain = float(costs.leaf - cost[c]) * self.source.score_unit
        if not (np.isfinite(gain) and gain > 1e-9 * costs.leaf * self.source.score_unit):
            return None
        if gain < self.growth.decrease:
            return None
        self.nodes.gain[k] = gain
        j = int(candidates.column[c])
        lost = coded.codes[j] == coded.bins(j)
        low = int(candidates.low[c])
        threshold = np.inf if low == coded.bins(j) else coded.threshold(j, int(candidates.bin[c]))
        position = int((coded.codes[j] < low).sum())
        missing_left, some = bool(candidates.missing_left[c]), bool(lost.any())
        return Split(gain, int(columns[j]), position, missing_left, some, threshold, -1)

    def _allowed(self, coded: CodedColumns, candidates: SplitCandidates, w: Array) -> Array:
        """Which candidates leave enough rows and weight on both sides (c,)."""
        found = np.zeros(len(candidates.low), bool)
        unit = self.rules.leaf_weight / (self.nodes.weight[0] / self.source.w.sum())
        for c, j in enumerate(candidates.column):
            lost = coded.codes[j] == coded.bins(j)
            left = np.where(lost, candidates.missing_left[c], coded.codes[j] < candidates.low[c])
            rows, weight = int(left.sum()), float(w[left].sum())
            enough = min(rows, len(w) - rows) >= max(1, self.rules.leaf_rows)
            found[c] = enough and min(weight, float(w.sum()) - weight) >= unit
        return found
