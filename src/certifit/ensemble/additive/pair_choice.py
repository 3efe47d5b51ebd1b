"""Which pairs of columns get a term of their own: column generation on the dual of the additive model.

Where a box of a pair has a sum of slopes beyond the penalty's strength, the model without it is not the best: the
pair with the largest such sum enters, the model is solved again, roughly, and so on, until there are enough pairs or
no sum is too large.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np

from certifit.ensemble.additive.pair_descent import PairDescent, PairPoint, PairProblem, PairTuning, measure_pairs
from certifit.ensemble.additive.pair_terms import PairLevels, box_sums, coarse_levels
from certifit.ensemble.additive.problem import AdditivePoint, AdditiveProblem, balanced_slopes
from certifit.rows import Array
from certifit.rows.threads import parallel_map


@dataclass(frozen=True)
class ChoiceTuning:
    """How exactly the model is solved between two choices."""

    passes: int = 3


@dataclass(frozen=True)
class CoarseColumns:
    """Every column on the coarse grid of pairs."""

    codes: Array  # (d, n) uint8
    levels: Array  # (d,)
    belongs: tuple[Array, ...]  # of each column, the coarse level of each of its levels

    def cells(self, pair: tuple[int, int]) -> Array:
        """The cell of each row (n,), a byte."""
        j, k = pair
        return self.codes[j] * np.uint8(min(self.levels[k], 255)) + self.codes[k]

    def pair(self, columns: tuple[int, int]) -> PairLevels:
        j, k = columns
        return PairLevels(columns, (int(self.levels[j]), int(self.levels[k])))


def coarse_columns(problem: AdditiveProblem, missing: list[bool], tuning: PairTuning = PairTuning()) -> CoarseColumns:
    """The columns of a problem with at most as many levels as a pair may have."""
    table = problem.table
    masses = [np.bincount(codes, problem.s, int(k)) for codes, k in zip(table.codes, table.levels, strict=True)]
    belongs = tuple(coarse_levels(mass, lost, tuning.levels) for mass, lost in zip(masses, missing, strict=True))
    codes = np.stack([own[code] for own, code in zip(belongs, table.codes, strict=True)]).astype(np.uint8)
    return CoarseColumns(codes, np.array([own[-1] + 1 for own in belongs]), belongs)


def pair_problem(problem: AdditiveProblem, coarse: CoarseColumns, pairs: Iterable[tuple[int, int]]) -> PairProblem:
    """The problem with terms for these pairs."""
    chosen = tuple(pairs)
    cells = np.array([coarse.cells(pair) for pair in chosen], np.uint8).reshape(len(chosen), len(problem.y))
    return PairProblem(problem, tuple(coarse.pair(pair) for pair in chosen), cells)


def without_boxes(problem: PairProblem, point: AdditivePoint, boxes: tuple[Array, ...] = ()) -> PairPoint:
    """The point with all boxes at 0 but for those of the first pairs, which are given."""
    new = [np.zeros((4, pair.shape[0] - 1, pair.shape[1] - 1)) for pair in problem.pairs[len(boxes) :]]
    return PairPoint(point.values, point.intercept, (*boxes, *new))


def choose_pairs(
    problem: AdditiveProblem,
    coarse: CoarseColumns,
    point: AdditivePoint,
    most: int,
    tuning: ChoiceTuning = ChoiceTuning(),
) -> tuple[PairProblem, PairPoint]:
    """The problem with at most so many pairs, and a point of it; columns with a direction are in none."""
    free = [int(j) for j in np.flatnonzero(~problem.table.monotone & (coarse.levels > 1))]
    candidates = [*combinations(free, 2)]
    chosen: list[tuple[int, int]] = []
    now = pair_problem(problem, coarse, ())
    at = without_boxes(now, point)
    while len(chosen) < most and candidates:
        su = problem.s * balanced_slopes(problem, now.scores(at))
        sums = parallel_map(partial(_largest_box, coarse, su), candidates)
        best = int(np.argmax(sums))
        if sums[best] <= problem.alpha:
            break
        chosen.append(candidates.pop(best))
        now = pair_problem(problem, coarse, chosen)
        at = without_boxes(now, AdditivePoint(at.values, at.intercept), at.boxes)
        descent = PairDescent(now)
        for _ in range(tuning.passes):
            at = descent.update(at, measure_pairs(now, at)).params
    return now, at


def _largest_box(coarse: CoarseColumns, su: Array, columns: tuple[int, int]) -> float:
    """The largest |Σ s u| over the boxes of a pair."""
    shape = coarse.pair(columns).shape
    cells = np.bincount(coarse.cells(columns), su, shape[0] * shape[1]).reshape(shape)
    return float(np.abs(box_sums(cells)).max(initial=0.0))
