"""The additive model's problem: its levels, its objective and the duality gap of any point.

    min  Σ s φ(y, b + Σ_j f_j(x_j)) / Σ s + α Σ_j TV(f_j),      f_j constant between thresholds

Rows that lack a value are a level of their own, next to the lowest. With u = φ' at any scores, balanced so that
Σ s u = 0, and z the sums of s u above each threshold, τ u is a point of the dual for τ = min(1, α / max |z|) (only
the side that a monotone column allows counts), and the optimum is at least -Σ s φ*(τ u).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit, xlog1py, xlogy

from certifit.ensemble.adaboost.stumps import BinnedColumn
from certifit.ensemble.additive.path_loops import LOGISTIC, POISSON, SQUARED, add_columns
from certifit.rows import Array
from certifit.rows.threads import parallel_map

KINDS = {"squared_error": SQUARED, "log_loss": LOGISTIC, "poisson": POISSON}


@dataclass(frozen=True)
class LevelTable:
    """Every column as levels: missing values first where there are any, then bins in order."""

    codes: Array  # (d, n) uint8
    levels: Array  # (d,) how many each column has
    low: Array  # (d, 255) what a jump down costs, negative; -inf forbids it
    high: Array  # (d, 255)

    @property
    def monotone(self) -> Array:
        """The columns that may only rise or fall (d,) bool."""
        return np.asarray(np.isinf(self.low).any(axis=1) | np.isinf(self.high).any(axis=1))


def level_table(columns: list[BinnedColumn], directions: Array) -> LevelTable:
    """Levels of binned columns, with costs of 1 for every jump."""
    d = len(columns)
    low, high = np.full((d, 255), -1.0), np.full((d, 255), 1.0)
    codes = []
    for j, column in enumerate(columns):
        gone = column.codes == column.bins - 1 if column.missing else np.zeros(len(column.codes), bool)
        codes.append(np.where(gone, 0, column.codes + column.missing).astype(np.uint8))
        allowed = slice(int(column.missing), 255)  # the step from missing values to the lowest is free of direction
        if directions[j] > 0:
            low[j, allowed] = -np.inf
        if directions[j] < 0:
            high[j, allowed] = np.inf
    levels = np.array([column.bins for column in columns])
    return LevelTable(np.stack(codes), levels, low, high)


@dataclass(frozen=True)
class AdditiveProblem:
    """Rows, loss and penalty."""

    table: LevelTable
    y: Array  # (n,)
    s: Array  # (n,) weights that add up to 1
    loss: str
    alpha: float
    offset: Array | None = None  # (n,) scores of terms that are held

    @property
    def kind(self) -> int:
        return KINDS[self.loss]

    def scores(self, point: AdditivePoint) -> Array:
        score = np.full(len(self.y), point.intercept)
        add_columns(self.table.codes, point.values, score)
        return score if self.offset is None else score + self.offset

    def penalty(self, values: Array) -> float:
        jumps = np.abs(np.diff(values, axis=1))
        used = np.arange(1, values.shape[1]) < self.table.levels[:, None]
        return self.alpha * float(np.where(used, jumps, 0.0).sum())

    def objective(self, score: Array, values: Array) -> float:
        return float(self.s @ row_losses(self.loss, self.y, score)) + self.penalty(values)


class AdditivePoint(NamedTuple):
    """Functions by level, and the intercept."""

    values: Array  # (d, 256)
    intercept: float


class AdditiveMeasures(NamedTuple):
    """What one pass tells of a point."""

    score: Array  # (n,)
    objective: float
    gap: float


def row_losses(loss: str, y: Array, score: Array) -> Array:
    """φ of every row (n,); the Poisson loss is half the deviance, at least 0."""
    if loss == "squared_error":
        return (score - y) ** 2 / 2
    if loss == "log_loss":
        return np.logaddexp(0.0, np.where(y < 0.5, score, -score))
    with np.errstate(over="ignore", invalid="ignore"):  # an infinite loss is never accepted
        above, known = _above_target(y, score), y > 0
        # y (exp r - 1 - r), which loses no digits where large counts are met nearly; its series where r is small.
        near = above**2 / 2 + above**3 / 6 + above**4 / 24
        return np.where(known, y * np.where(np.abs(above) < 1e-4, near, np.expm1(above) - above), np.exp(score))


def _above_target(y: Array, score: Array) -> Array:
    """By how much scores are above the logarithms of counts (n,); where these are 0, the scores."""
    return score - np.log(np.where(y > 0, y, 1.0))


def slopes(loss: str, y: Array, score: Array) -> Array:
    """φ' of every row (n,)."""
    if loss == "squared_error":
        return score - y
    if loss == "log_loss":
        # The probability of the other class, whose digits 1 - p would lose.
        return np.where(y < 0.5, expit(score), -expit(-score))
    with np.errstate(over="ignore"):
        return np.where(y > 0, y * np.expm1(_above_target(y, score)), np.exp(score))


def dual_gain(loss: str, y: Array, u: Array) -> Array:
    """-φ*(u) of every row (n,)."""
    if loss == "squared_error":
        return -(u**2) / 2 - u * y
    if loss == "log_loss":
        other = np.minimum(np.abs(u), 1.0)
        return -xlogy(other, other) - xlog1py(1 - other, -other)
    # The same with the conjugate: -y ((1 + t) log(1 + t) - t) - u log y with t = u / y.
    known, count = y > 0, np.where(y > 0, y, 1.0)
    t = u / count
    near = t**2 / 2 - t**3 / 6 + t**4 / 12
    with np.errstate(divide="ignore", invalid="ignore"):
        whole = np.where(t > -1, (1 + t) * np.log1p(t), 0.0) - t
    return np.where(known, -y * np.where(np.abs(t) < 1e-4, near, whole) - u * np.log(count), u - xlogy(u, u))


def measure(problem: AdditiveProblem, point: AdditivePoint) -> AdditiveMeasures:
    """Scores, objective and duality gap at a point."""
    score = problem.scores(point)
    objective = problem.objective(score, point.values)
    u = balanced_slopes(problem, score)
    worst = largest_sum_of_columns(problem, problem.s * u)
    shrink = min(1.0, problem.alpha / worst) if worst > 0 else 1.0
    bound = float(problem.s @ dual_gain(problem.loss, problem.y, shrink * u))
    return AdditiveMeasures(score, objective, objective - bound)


def balanced_slopes(problem: AdditiveProblem, score: Array) -> Array:
    """Slopes (n,) of which the heavier sign is scaled down until Σ s u = 0."""
    u = slopes(problem.loss, problem.y, score)
    su = problem.s * u
    plus, minus = float(su[su > 0].sum()), -float(su[su < 0].sum())
    if plus > 0 and minus > 0:
        less = min(plus, minus)
        u = u * np.where(u > 0, less / plus, less / minus)
    return u


def largest_sum_of_columns(problem: AdditiveProblem, su: Array) -> float:
    """The largest sum of s u above a threshold of any column."""
    return max(parallel_map(lambda j: _largest_along(problem, su, j), range(len(problem.table.codes))))


def largest_flow(problem: AdditiveProblem, point: AdditivePoint) -> float:
    """The strength from which on no function leaves 0, where `point` is the best intercept."""
    su = problem.s * slopes(problem.loss, problem.y, problem.scores(point))
    return max(_largest_along(problem, su, j) for j in range(len(problem.table.codes)))


def _largest_along(problem: AdditiveProblem, su: Array, j: int) -> float:
    """The largest sum of s u above a threshold of column j, on the sides that jumps are allowed to."""
    k = int(problem.table.levels[j])
    sums = np.bincount(problem.table.codes[j], su, k)
    above = np.cumsum(sums[::-1])[::-1][1:]  # Σ s u over the levels above each step; a jump up there gains -above
    up = np.where(np.isfinite(problem.table.high[j, : k - 1]), -above, -np.inf)
    down = np.where(np.isfinite(problem.table.low[j, : k - 1]), above, -np.inf)
    return float(np.maximum(up, down).max(initial=0.0))
