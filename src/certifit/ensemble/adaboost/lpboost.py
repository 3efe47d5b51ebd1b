"""LPBoost: the weights of stumps, and the stumps, that make the soft margin largest, by linear programming.

The dual has one constraint for each stump: a distribution of the rows under which no stump has an edge. Stumps are
added while one of them breaks that (column generation). Reference: Demiriz, Bennett & Shawe-Taylor, Linear
programming boosting via column generation, Machine Learning 46 (2002).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog

from certifit.ensemble.adaboost.stump_loops import ROW
from certifit.ensemble.adaboost.stumps import SortedStumps, Stumps, StumpSplit, threshold_between
from certifit.exceptions import DataError
from certifit.rows import Array


@dataclass(frozen=True)
class ColumnTuning:
    """When the generation of columns ends."""

    most_columns: int = 2000
    edge: float = 1e-8  # by which a new stump's edge must exceed that of all others
    least_weight: float = 1e-12  # of a stump that is kept


class SoftMarginStumps(NamedTuple):
    """Stumps with their weights, and the distribution that proves them."""

    members: Stumps
    weights: Array  # (m,) of sum 1
    errors: Array  # (m,) under the distribution
    distribution: Array  # (n,)


def corrected_stumps(
    start: Stumps, X: Array, labels: Array, s: Array, nu: float, tuning: ColumnTuning = ColumnTuning()
) -> SoftMarginStumps:
    """Solve the linear program from these stumps on; s (n,) adds up to 1."""
    search, sign = SortedStumps(X, labels, 2), 2.0 * labels - 1
    splits = [_split_of(start, m, X) for m in range(len(start))]
    answers = [tuple(pair) for pair in start.answers.tolist()]
    while True:
        signed = np.array([_told(split, pair) * sign for split, pair in zip(splits, answers, strict=True)])
        weights, d, edge = _solve(signed, s, nu)
        # One stump of each column at a time: the program is then solved less often.
        broken = [found for found in best_edges(search, d * sign) if found.edge > edge + tuning.edge]
        if not broken or len(splits) >= tuning.most_columns:
            break
        splits += [found.split for found in broken]
        answers += [found.answers for found in broken]
    kept = np.flatnonzero(weights > tuning.least_weight)
    members = [(splits[m], answers[m]) for m in kept]
    return _collected(members, weights[kept] / weights[kept].sum(), labels, d)


def _solve(signed: Array, s: Array, nu: float) -> tuple[Array, Array, float]:
    """Weights, distribution, largest edge: min γ with Σ d y h <= γ for each stump, Σ d = 1 and 0 <= d <= s/ν."""
    m, n = signed.shape
    found = linprog(
        np.append(np.zeros(n), 1.0),
        A_ub=np.hstack([signed, -np.ones((m, 1))]), b_ub=np.zeros(m),
        A_eq=np.append(np.ones(n), 0.0)[None], b_eq=[1.0],
        bounds=np.column_stack([np.append(np.zeros(n), -np.inf), np.append(s / nu, np.inf)]), method="highs",
    )  # fmt: skip
    if found.status != 0:
        raise DataError(got=f"a linear program that HiGHS did not solve ({found.message})", wanted="a solution",
                        fix="Set corrective=None, or take fewer rows.")  # fmt: skip
    return -found.ineqlin.marginals, found.x[:-1], float(found.x[-1])


def _told(split: StumpSplit, pair: tuple[int, ...]) -> Array:
    """The answers ±1 of a stump (n,)."""
    return np.where(split.left, 2.0 * pair[0] - 1, 2.0 * pair[1] - 1)


def _split_of(stumps: Stumps, m: int, X: Array) -> StumpSplit:
    j = int(stumps.column[m])
    x = X[:, j]
    left = np.ones(len(X), bool)
    if j >= 0:
        left = np.where(np.isnan(x), stumps.missing_left[m] != 0, x <= stumps.threshold[m])
    return StumpSplit(j, float(stumps.threshold[m]), bool(stumps.missing_left[m]), left)


class StumpEdge(NamedTuple):
    """A stump with answers ±1 in its leaves, and its edge Σ v h."""

    split: StumpSplit
    answers: tuple[int, ...]
    edge: float


def best_edges(search: SortedStumps, v: Array) -> list[StumpEdge]:
    """The constant answer and, of each column, the stump with the largest Σ v h, h = ±1 in each leaf."""
    total = float(v.sum())
    places = [(-1, 0, False)]
    for j, (entries, known) in enumerate(search.columns):
        rows = entries & ROW
        along = np.cumsum(v[rows])
        after = np.flatnonzero(entries > ROW) + 1
        after = after[after < len(rows)]
        lost = float(along[-1] - along[known - 1]) if known else 0.0
        best = -1.0
        for missing_left in (False, True) if known < len(rows) else (False,):
            cuts = after[after < known] if missing_left else after
            left = along[cuts - 1] + (lost if missing_left else 0.0)
            edge = np.abs(left) + np.abs(total - left)
            if len(edge) and edge.max() > best:
                best, place = float(edge.max()), (j, int(cuts[edge.argmax()]), missing_left)
        if best >= 0:
            places.append(place)
    return [_edge_at(search, v, place) for place in places]


def _edge_at(search: SortedStumps, v: Array, place: tuple[int, int, bool]) -> StumpEdge:
    split = _cut_split(search, *place)
    sides = [float(v[split.left].sum()), float(v[~split.left].sum())]
    return StumpEdge(split, tuple(int(side > 0) for side in sides), sum(map(abs, sides)))


def _cut_split(search: SortedStumps, j: int, position: int, missing_left: bool) -> StumpSplit:
    if j < 0:
        return StumpSplit(-1, np.nan, False, np.ones(len(search.labels), bool))
    entries, known = search.columns[j]
    rows = entries & ROW
    left = np.zeros(len(rows), bool)
    left[rows[:position]] = True
    left[rows[known:]] = missing_left
    if position == known:
        return StumpSplit(j, np.inf, False, left)
    low, high = (float(search.X[rows[i], j]) for i in (position - 1, position))
    return StumpSplit(j, threshold_between(low, high), missing_left, left)


def _collected(
    members: list[tuple[StumpSplit, tuple[int, ...]]], weights: Array, labels: Array, d: Array
) -> SoftMarginStumps:
    leaf_weight = [np.bincount(~split.left * 2 + labels, d, 4).reshape(2, 2) for split, _ in members]
    told = [np.where(split.left, pair[0], pair[1]) for split, pair in members]
    stumps = Stumps(
        np.array([split.column for split, _ in members], np.int64),
        np.array([split.threshold for split, _ in members]),
        np.array([split.missing_left for split, _ in members], np.uint8),
        np.stack(leaf_weight),
        np.stack([np.bincount(~split.left, minlength=2) for split, _ in members]),
        np.array([pair for _, pair in members], np.int64),
    )
    errors = np.array([float(d[answer != labels].sum()) for answer in told])
    return SoftMarginStumps(stumps, weights, errors, d)
