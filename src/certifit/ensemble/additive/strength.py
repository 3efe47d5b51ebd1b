"""The strength of an additive model's penalty, chosen by the rows that a quarter of them are left out of.

Rows are told apart by their contents, so that a row of weight 2 is two rows, one of weight 0 is none, and equal rows
are never on both sides.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from certifit.ensemble.additive.block_descent import BlockDescent, BlockDescentTuning
from certifit.ensemble.additive.problem import (
    AdditivePoint,
    AdditiveProblem,
    LevelTable,
    largest_flow,
    measure,
    row_losses,
)
from certifit.numerics.compiled.random_bits import GOLDEN, finished
from certifit.rows import Array


@dataclass(frozen=True)
class StrengthTuning:
    """How many strengths are tried, each this share of the one before."""

    most: int = 16
    share: float = 0.6
    passes: int = 3  # over the rows for each of them
    patience: int = 3  # strengths in a row that predict worse
    fallback: float = 0.1  # of the strength at which all functions vanish, where there is nothing to compare


def choose_strength(
    problem: AdditiveProblem, start: AdditivePoint, X: Array, tuning: StrengthTuning = StrengthTuning()
) -> float:
    """The strength whose model, fitted to three quarters of the rows, predicts the others best."""
    full = largest_flow(problem, start)
    if full == 0:
        return 1.0  # any strength has the same answer
    out = held_out_rows(X)
    kept = ~out
    if not (out.any() and kept.any()) or np.ptp(problem.y[kept]) == 0:
        return float(full * tuning.fallback)
    fit, rest = _part(problem, kept), _part(problem, out)
    point, losses, alphas = start, [], []
    for k in range(tuning.most):
        alpha = full * tuning.share ** (k + 1)
        now = replace(fit, alpha=alpha)
        descent = BlockDescent(now, replace(BlockDescentTuning(), first_newton=2))
        for _ in range(tuning.passes):
            point = descent.update(point, measure(now, point)).params
        losses.append(float(rest.s @ row_losses(rest.loss, rest.y, rest.scores(point))))
        alphas.append(alpha)
        if k - int(np.argmin(losses)) >= tuning.patience:
            break
    return float(alphas[int(np.argmin(losses))])


def _part(problem: AdditiveProblem, rows: Array) -> AdditiveProblem:
    table = problem.table
    codes = np.ascontiguousarray(table.codes[:, rows])
    s = problem.s[rows] / problem.s[rows].sum()
    return replace(problem, table=LevelTable(codes, table.levels, table.low, table.high), y=problem.y[rows], s=s)


def held_out_rows(X: Array) -> Array:
    """A quarter of the rows (n,) bool, by a hash of their entries."""
    bits = np.ascontiguousarray(X, dtype=np.float64) + 0.0  # -0 is 0
    found = np.zeros(len(X), np.uint64)
    with np.errstate(over="ignore"):
        for column in bits.T:
            found = finished(found + np.ascontiguousarray(column).view(np.uint64) + GOLDEN)
    return (found >> np.uint64(62)) == 0
