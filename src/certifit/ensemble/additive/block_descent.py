"""Solving the additive model: block coordinate descent by exact total-variation steps, and Newton on its segments.

A sweep takes one column after another: with all other functions held, the best function of a column to second order
is a weighted total-variation problem on its levels, solved exactly in a pass over them (`fused_path`). Once the
functions' jumps settle, Newton's method moves the heights of all their constant pieces at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh

from certifit.core import Step
from certifit.ensemble.additive.path_loops import (
    CAREFUL_LOGISTIC,
    CAREFUL_POISSON,
    LOGISTIC,
    POISSON,
    RowRun,
    add_and_sum,
    fused_path,
    segment_hessian,
)
from certifit.ensemble.additive.problem import AdditiveMeasures, AdditivePoint, AdditiveProblem, slopes
from certifit.rows import Array
from certifit.rows.threads import parallel_map

CAREFUL = {LOGISTIC: CAREFUL_LOGISTIC, POISSON: CAREFUL_POISSON}


@dataclass(frozen=True)
class BlockDescentTuning:
    """How sweeps and Newton steps share the work."""

    chunk_rows: int = 32_768  # rows that one thread takes at a time
    first_newton: int = 3  # sweeps before the first Newton step
    most_segments: int = 1200  # of a Newton step
    most_pairs: float = 3e9  # rows times columns squared of a Newton step
    left_over: float = 1e-6  # share of the slope that a Newton step may leave before jumps count as too many
    halvings: int = 10
    longest_move: float = 3.0  # of a score in a Newton step, where the loss is no parabola
    careful_sweeps: int = 4  # after one that lost
    least_curvature: float = 1e-10  # of a level, as a share of all
    rounding: float = 1e-13  # of the objective
    polishing: int = 2  # passes after the tolerance is reached


class BlockDescent:
    """Sweeps over the columns of one problem; remembers how cautious its steps have to be."""

    def __init__(self, problem: AdditiveProblem, tuning: BlockDescentTuning = BlockDescentTuning()) -> None:
        self.problem, self.tuning = problem, tuning
        self.caution = 1.0  # factor on the curvature; a sweep that lost raises it
        self.careful = 0  # sweeps that take curvatures which do not vanish
        self.sweeps = 0
        self.polished = 0  # passes after the tolerance was reached
        n = len(problem.y)
        self.chunks = [slice(a, min(n, a + tuning.chunk_rows)) for a in range(0, n, tuning.chunk_rows)]

    @property
    def memory(self) -> tuple[Any, ...]:
        return self.caution, self.careful, self.sweeps, self.polished

    @memory.setter
    def memory(self, found: tuple[Any, ...]) -> None:
        self.caution, self.careful, self.sweeps, self.polished = found

    def update(self, point: AdditivePoint, found: AdditiveMeasures) -> Step[AdditivePoint]:
        """One sweep and, later, a Newton step."""
        best = found.objective
        for attempt in range(self.tuning.halvings):
            after, score = self._sweep(point, found.score)
            reached = self.problem.objective(score, after.values)
            # At the minimum a step changes the objective by rounding, which is no reason to be cautious.
            if reached <= best + self.tuning.rounding * abs(best) or not np.isfinite(best):
                break
            self.caution *= 4.0 if attempt else 1.0
            self.careful = self.tuning.careful_sweeps
        else:
            after, score, reached, self.caution = point, found.score, best, 1.0
        self.caution, self.careful = max(1.0, self.caution / 2.0), max(0, self.careful - 1)
        self.sweeps += 1
        if self.sweeps >= self.tuning.first_newton:
            after = self._newton(after, score, reached)
        return Step(after, found.objective, found.gap)

    def _sweep(self, point: AdditivePoint, score: Array) -> tuple[AdditivePoint, Array]:
        table, values, score = self.problem.table, point.values.copy(), score.copy()
        before, step = table.codes[0], np.zeros(256)
        for j in range(len(table.codes)):
            k = int(table.levels[j])
            sums = self._level_sums(before, step, j, score)
            step = np.zeros(256)
            step[:k] = self._best_path(j, values[j, :k], sums) - values[j, :k]
            values[j, :k] += step[:k]
            before = table.codes[j]
        score += step[before]
        return AdditivePoint(values, point.intercept), score

    def _level_sums(self, before: Array, step: Array, j: int, score: Array) -> Array:
        """Move the scores by the last step, and sum up derivatives by the levels of column j (2, k)."""
        problem, codes = self.problem, self.problem.table.codes[j]

        kind = CAREFUL.get(problem.kind, problem.kind) if self.careful else problem.kind

        def work(rows: slice) -> Array:
            sums = np.empty((2, int(problem.table.levels[j])))
            part = RowRun(problem.y[rows], problem.s[rows], score[rows])
            add_and_sum(kind, before[rows], step, codes[rows], part, sums)
            return sums

        # Chunks are added in their order, so that nothing depends on the number of threads.
        return np.sum(parallel_map(work, self.chunks), axis=0)

    def _best_path(self, j: int, values: Array, sums: Array) -> Array:
        table, alpha, k = self.problem.table, self.problem.alpha, len(values)
        weight = self.caution * sums[1] + self.tuning.least_curvature * max(float(sums[1].sum()), 1e-12)
        new = np.empty(k)
        target = values - sums[0] / weight
        fused_path(target, weight, alpha * table.low[j, : k - 1], alpha * table.high[j, : k - 1], new)
        return new

    # Newton on the segments -----------------------------------------------------------------------------------

    def _newton(self, point: AdditivePoint, score: Array, objective: float) -> AdditivePoint:
        """Move the heights of all constant pieces at once, where that lowers the objective."""
        problem, tuning = self.problem, self.tuning
        segments = Segments(problem, point.values)
        d, n = problem.table.codes.shape
        if segments.count > tuning.most_segments or float(n) * d * d > tuning.most_pairs or not segments.jumps.size:
            return point
        matrix, slope = segments.system(score)
        step = -shortest_solution(matrix, slope)
        if np.linalg.norm(slope + matrix @ step) > tuning.left_over * np.linalg.norm(slope):
            # There are more jumps than the scores of the rows need: fewer of them cost less.
            values, intercept = segments.moved(point, segments.idle_step(matrix))
            fewer = AdditivePoint(values, intercept)
            found = problem.objective(problem.scores(fewer), values)
            if found < objective:
                return self._newton(fewer, problem.scores(fewer), found)
        share = 1.0
        if problem.loss != "squared_error":
            # Losses on a scale of logarithms are like parabolas for steps of about 1, not beyond.
            moves = np.abs(problem.scores(AdditivePoint(segments.as_values(step[1:]), float(step[0])))).max()
            share = min(1.0, tuning.longest_move / moves) if moves > 0 else 1.0
        for _ in range(tuning.halvings):
            values, intercept = segments.moved(point, share * step)
            after = AdditivePoint(values, intercept)
            if problem.objective(problem.scores(after), values) < objective:
                return after
            share /= 2
        return point


class Segments:
    """The constant pieces of all functions; their jumps and the intercept are what Newton's method moves."""

    def __init__(self, problem: AdditiveProblem, values: Array) -> None:
        self.problem = problem
        table = problem.table
        jumps, least = np.diff(values, axis=1), 1e-9
        jumps[np.arange(1, 256) >= table.levels[:, None]] = 0.0
        # A jump of rounding's size, as of a column whose levels part rows like another's, is none: Newton's method
        # would share out the other's among both.
        new = np.abs(jumps) > least * np.abs(jumps).max()
        self.columns, self.steps = np.nonzero(new)  # where the jumps are, column by column
        self.jumps = jumps[new]
        self.within = np.concatenate([np.zeros((len(values), 1), np.int64), np.cumsum(new, axis=1)], axis=1)
        pieces = new.sum(axis=1) + 1
        self.first = np.concatenate([[0], np.cumsum(pieces)])
        self.number = self.within + self.first[:-1, None]
        self.count = int(self.first[-1])

    def basis(self) -> Array:
        """The matrix (pieces, 1 + jumps) that turns a change of intercept and jumps into one of the pieces."""
        found = np.zeros((self.count, 1 + len(self.jumps)))
        found[: self.first[1], 0] = 1.0  # the intercept moves every row once: by the pieces of the first column
        for i, (j, step) in enumerate(zip(self.columns, self.steps, strict=True)):
            piece = self.first[j] + self.within[j, step + 1]
            found[piece : self.first[j + 1], 1 + i] = 1.0
        return found

    def system(self, score: Array) -> tuple[Array, Array]:
        """Hessian and slope in the intercept and the jumps, with the signs of jumps as they are."""
        problem = self.problem
        codes = problem.table.codes
        g = problem.s * slopes(problem.loss, problem.y, score)
        h = problem.s * curvatures(problem.loss, score)
        hessian = np.zeros((self.count, self.count))
        segment_hessian(codes, self.number, h, hessian)
        hessian = np.triu(hessian) + np.triu(hessian, 1).T
        gradient = np.concatenate(
            [
                np.bincount(self.number[j][codes[j]] - self.first[j], g, int(self.first[j + 1] - self.first[j]))
                for j in range(len(codes))
            ]
        )
        basis = self.basis()
        slope = basis.T @ gradient
        slope[1:] += problem.alpha * np.sign(self.jumps)
        return basis.T @ hessian @ basis, slope

    def idle_step(self, matrix: Array, share: float = 1e-9) -> Array:
        """A change (1 + jumps,) that leaves all scores as they are, lowers the penalty and lets jumps vanish.

        Along directions of no curvature the penalty falls evenly until a jump vanishes; those left are the ones that
        do not bring it back.
        """
        size = np.sqrt(np.maximum(np.diag(matrix), np.finfo(float).tiny))
        value, vector = eigh(matrix / np.outer(size, size))
        free = np.linalg.qr(vector[:, value <= share * value[-1]] / size[:, None])[0]
        left, cost = self.jumps.copy(), np.append(0.0, np.sign(self.jumps))
        step = np.zeros(len(cost))
        while free.shape[1]:
            along = -free @ (free.T @ cost)
            rate = np.where(left != 0, -along[1:] / np.where(left != 0, left, 1.0), 0.0)
            k = int(np.argmax(rate))
            if rate[k] <= 0 or np.linalg.norm(along) <= share * np.linalg.norm(cost):
                break
            step += along / rate[k]
            left = np.where(left != 0, left + along[1:] / rate[k], 0.0)
            left[k], cost[1 + k], step[1 + k] = 0.0, 0.0, -self.jumps[k]
            # A reflection turns all that moves this jump into the first direction, which is then given up.
            turned = free[1 + k].copy()
            turned[0] += np.copysign(np.linalg.norm(turned), turned[0])
            free = (free - np.outer(free @ turned, 2 / (turned @ turned) * turned))[:, 1:]
        return step

    def as_values(self, jumps: Array) -> Array:
        """Functions (d, 256) with these jumps, from 0 on."""
        along = np.zeros(self.within.shape)
        along[self.columns, self.steps + 1] = jumps
        return np.cumsum(along, axis=1)

    def moved(self, point: AdditivePoint, step: Array) -> tuple[Array, float]:
        """Values and intercept after a step; a jump that would change its sign vanishes."""
        after = self.jumps + step[1:]
        change = np.where(after * self.jumps > 0, after, 0.0) - self.jumps
        values = point.values + self.as_values(change)
        # Levels on both sides of a jump that vanished have one value, to the last bit.
        for j, at in zip(self.columns[change == -self.jumps], self.steps[change == -self.jumps], strict=True):
            end = at + 1
            while end < values.shape[1] and self.within[j, end] == self.within[j, at + 1]:
                end += 1
            values[j, at + 1 : end] = values[j, at]
        return values, point.intercept + float(step[0])


def shortest_solution(matrix: Array, right: Array, share: float = 1e-9) -> Array:
    """The solution of a positive semidefinite system; of many the shortest, which rounding does not choose.

    Directions with eigenvalues below this share of the largest count as directions of no curvature.
    """
    size = np.sqrt(np.maximum(np.diag(matrix), np.finfo(float).tiny))
    scaled, target = matrix / np.outer(size, size), right / size
    try:
        factor, lower = cho_factor(scaled)
        pivots = np.diag(factor) ** 2
        if pivots.min() > share * pivots.max():
            return np.asarray(cho_solve((factor, lower), target) / size)
    except LinAlgError:
        pass
    value, vector = eigh(scaled)
    curved = value > share * value[-1]
    along = np.where(curved, vector.T @ target, 0.0) / np.where(curved, value, 1.0)
    return np.asarray(vector @ along) / size


def curvatures(loss: str, score: Array) -> Array:
    """φ" of every row (n,)."""
    if loss == "squared_error":
        return np.ones(len(score))
    if loss == "poisson":
        return np.exp(score)
    e = np.exp(-np.abs(score))
    return e / (1 + e) ** 2
