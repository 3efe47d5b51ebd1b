"""Solving additive models with terms of two columns: sweeps over the columns, and Newton on jumps and boxes together.

Functions of single columns move as without pairs (`block_descent`). Boxes enter by column generation: those whose
sums of slopes break the dual's limit most. Then intercept, jumps and boxes move together, by a Newton step with the
penalty in its quadratic model.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from certifit.core import Step
from certifit.ensemble.additive.block_descent import BlockDescent, BlockDescentTuning, Segments, curvatures
from certifit.ensemble.additive.pair_terms import PairLevels, box_cells, box_sums, box_values
from certifit.ensemble.additive.path_loops import segment_hessian
from certifit.ensemble.additive.problem import (
    AdditiveMeasures,
    AdditivePoint,
    AdditiveProblem,
    balanced_slopes,
    dual_gain,
    largest_sum_of_columns,
    slopes,
)
from certifit.optimise.proximal_newton import ProximalTuning, minimise_penalised_quadratic
from certifit.optimise.sparse_curvature import SweepGoals
from certifit.rows import Array


@dataclass(frozen=True)
class PairTuning:
    """How boxes enter, and how exactly Newton's steps are found."""

    levels: int = 16  # of a column of a pair, at most; their product is a byte
    new_boxes: int = 3  # of each kind and pair that enter at once
    rounds: int = 3  # of new boxes in a pass
    halvings: int = 12
    polishing: int = 1  # passes after the tolerance is reached
    sweeps: int = 300  # over the coordinates of a quadratic
    rounding: float = 1e-14  # of the objective, by which a whole step may raise it
    goal: float = 1e-22  # decrease of the quadratic at which its descent ends, as a share of the objective


class PairPoint(NamedTuple):
    """Functions of single columns by level, the intercept, and boxes of each pair."""

    values: Array  # (d, 256)
    intercept: float
    boxes: tuple[Array, ...]  # of each pair (4, k₁ - 1, k₂ - 1)


@dataclass(frozen=True)
class PairProblem:
    """The problem of single columns, and the cells of pairs."""

    mains: AdditiveProblem
    pairs: tuple[PairLevels, ...]
    cells: Array  # (p, n) uint8

    def pair_scores(self, boxes: tuple[Array, ...]) -> Array:
        score = np.zeros(len(self.mains.y))
        for own, cells in zip(boxes, self.cells, strict=True):
            score += box_values(own).ravel()[cells]
        return score

    def size(self, boxes: tuple[Array, ...]) -> float:
        return self.mains.alpha * float(sum(np.abs(own).sum() for own in boxes))

    def scores(self, point: PairPoint) -> Array:
        return self.mains.scores(AdditivePoint(point.values, point.intercept)) + self.pair_scores(point.boxes)

    def objective(self, score: Array, point: PairPoint) -> float:
        return self.mains.objective(score, point.values) + self.size(point.boxes)

    def box_flows(self, su: Array) -> list[Array]:
        """Σ s u over all boxes of each pair (4, k₁ - 1, k₂ - 1)."""
        return [
            box_sums(np.bincount(cells, su, pair.shape[0] * pair.shape[1]).reshape(pair.shape))
            for pair, cells in zip(self.pairs, self.cells, strict=True)
        ]


def measure_pairs(problem: PairProblem, point: PairPoint) -> AdditiveMeasures:
    """Scores, objective and duality gap at a point."""
    mains, score = problem.mains, problem.scores(point)
    objective = problem.objective(score, point)
    u = balanced_slopes(mains, score)
    su = mains.s * u
    boxes = max((float(np.abs(flows).max(initial=0.0)) for flows in problem.box_flows(su)), default=0.0)
    worst = max(largest_sum_of_columns(mains, su), boxes)
    shrink = min(1.0, mains.alpha / worst) if worst > 0 else 1.0
    bound = float(mains.s @ dual_gain(mains.loss, mains.y, shrink * u))
    return AdditiveMeasures(score, objective, objective - bound)


class PairDescent:
    """Passes over columns and pairs of one problem."""

    def __init__(
        self,
        problem: PairProblem,
        blocks: BlockDescentTuning = BlockDescentTuning(),
        tuning: PairTuning = PairTuning(),
    ) -> None:
        self.problem, self.blocks, self.tuning = problem, blocks, tuning
        self.polished = 0  # passes after the tolerance was reached
        # Jumps of single columns have their Newton steps together with the boxes.
        self.sweeps = BlockDescent(problem.mains, replace(blocks, first_newton=np.iinfo(np.int64).max))

    @property
    def memory(self) -> tuple[Any, ...]:
        return self.polished, self.sweeps.memory

    @memory.setter
    def memory(self, found: tuple[Any, ...]) -> None:
        self.polished, self.sweeps.memory = found

    def update(self, point: PairPoint, found: AdditiveMeasures) -> Step[PairPoint]:
        """A sweep over the columns, and Newton's steps on all jumps and boxes."""
        problem = self.problem
        size = problem.size(point.boxes)
        self.sweeps.problem = replace(problem.mains, offset=problem.pair_scores(point.boxes))
        alone = AdditiveMeasures(found.score, found.objective - size, found.gap)
        after = self.sweeps.update(AdditivePoint(point.values, point.intercept), alone).params
        point = PairPoint(after.values, after.intercept, point.boxes)
        for _ in range(self.tuning.rounds):
            point = self._newton(point)
        return Step(point, found.objective, found.gap)

    def _newton(self, point: PairPoint) -> PairPoint:
        """Let boxes enter, and move all that is there at once, where that lowers the objective."""
        problem, mains = self.problem, self.problem.mains
        score = problem.scores(point)
        segments = Segments(mains, point.values)
        chosen = self._active_boxes(point, score)
        if segments.count + sum(map(len, chosen)) > self.blocks.most_segments:
            return point
        H, g = self._system(segments, chosen, score)
        x = np.concatenate([[0.0], segments.jumps, *(b.ravel()[c] for b, c in zip(point.boxes, chosen, strict=True))])
        lam = np.full(len(x), mains.alpha)
        lam[0] = 0.0
        objective = problem.objective(score, point)
        goal = self.tuning.goal * abs(objective)
        goals = SweepGoals(goal, sweeps=self.tuning.sweeps)
        aim = minimise_penalised_quadratic(H, g, lam, x, goals, ProximalTuning())
        m = 1 + len(segments.jumps)
        limits = mains.table.low[segments.columns, segments.steps], mains.table.high[segments.columns, segments.steps]
        wrong = ((aim[1:m] < 0) & np.isinf(limits[0])) | ((aim[1:m] > 0) & np.isinf(limits[1]))
        aim[1:m][wrong] = 0.0
        step, share = aim - x, 1.0
        if mains.loss != "squared_error":
            far = self._moved(point, segments, chosen, step)
            moves = float(np.abs(problem.scores(far) - score).max())
            share = min(1.0, self.blocks.longest_move / moves) if moves > 0 else 1.0
        for _ in range(self.tuning.halvings):
            after = self._moved(point, segments, chosen, step if share == 1.0 else share * step)
            # Next to the minimum a step that halves the gap changes the objective by rounding alone.
            slack = self.tuning.rounding * abs(objective) if share == 1.0 else 0.0
            if problem.objective(problem.scores(after), after) < objective + slack:
                return after
            share /= 2
        return point

    def _active_boxes(self, point: PairPoint, score: Array) -> list[Array]:
        """The numbers of each pair's boxes that are there, and of those that ask most to be."""
        mains, found = self.problem.mains, []
        su = mains.s * slopes(mains.loss, mains.y, score)
        for own, flows in zip(point.boxes, self.problem.box_flows(su), strict=True):
            asked = np.where(own == 0, np.abs(flows), 0.0).reshape(4, own[0].size)
            best = np.argsort(-asked, axis=1, kind="stable")[:, : self.tuning.new_boxes]
            new = (best + np.arange(4)[:, None] * asked.shape[1]).ravel()
            new = new[asked.ravel()[new] > mains.alpha]
            found.append(np.union1d(np.flatnonzero(own), new))
        return found

    def _system(self, segments: Segments, chosen: list[Array], score: Array) -> tuple[Array, Array]:
        """Hessian and slope in the intercept, the jumps and the chosen boxes, without the penalty."""
        problem, mains = self.problem, self.problem.mains
        basis, numbers, first = [segments.basis()], [*segments.number], segments.count
        for pair, boxes in zip(problem.pairs, chosen, strict=True):
            # Cells that lie in the same boxes are one piece.
            inside = np.column_stack([np.zeros(pair.shape[0] * pair.shape[1]), box_cells(boxes, pair.shape)])
            pieces, piece = np.unique(inside, axis=0, return_inverse=True)
            number = np.zeros(256, np.int64)
            number[: len(piece.ravel())] = piece.ravel() + first
            numbers.append(number)
            basis.append(pieces[:, 1:])
            first += len(pieces)
        whole = np.zeros((first, sum(part.shape[1] for part in basis)))
        row = column = 0
        for part in basis:
            whole[row : row + len(part), column : column + part.shape[1]] = part
            row, column = row + len(part), column + part.shape[1]
        codes: Array = np.concatenate([mains.table.codes, problem.cells])
        segment: Array = np.stack(numbers)
        g = mains.s * slopes(mains.loss, mains.y, score)
        hessian = np.zeros((first, first))
        segment_hessian(codes, segment, mains.s * curvatures(mains.loss, score), hessian)
        hessian = np.triu(hessian) + np.triu(hessian, 1).T
        gradient = np.sum(
            [np.bincount(own[code], g, first) for own, code in zip(segment, codes, strict=True)], axis=0
        )
        return whole.T @ hessian @ whole, whole.T @ gradient

    def _moved(self, point: PairPoint, segments: Segments, chosen: list[Array], step: Array) -> PairPoint:
        """The point after a step; a jump that would change its sign vanishes."""
        m = 1 + len(segments.jumps)
        values, intercept = segments.moved(AdditivePoint(point.values, point.intercept), step[:m])
        boxes, at = [], m
        for own, numbers in zip(point.boxes, chosen, strict=True):
            new = own.ravel().copy()
            new[numbers] += step[at : at + len(numbers)]
            at += len(numbers)
            boxes.append(new.reshape(own.shape))
        return PairPoint(values, intercept, tuple(boxes))
