"""The checker of k-means: recomputes from the data what a clustering by centres claims.

Every row has to be at its nearest centre, every centre at the mean of its rows, and a lower bound says how much
smaller the sum of squared distances could be at all. The checker uses no code of the solver.

    table                             lower bound
    any                               `spectral_bound`: eigenvalues of the scatter matrix
    one column                        `one_column`: the optimum itself
    up to some thousands of rows      `semidefinite_bound`: the dual of a relaxation, the better the more `effort`
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from certifit.checkers.cluster.one_column import LineTuning, line_bound
from certifit.checkers.cluster.semidefinite_bound import SemidefiniteTuning, gram_bound
from certifit.checkers.cluster.spectral_bound import EPS, scatter_bound
from certifit.checkers.plain.blocks import dense
from certifit.core import Certificate, Check
from certifit.exceptions import DataError
from certifit.rows import Array, Block, Rows, Sums


@dataclass(frozen=True)
class ClusterCheckTuning:
    """How much work the lower bound is worth."""

    full_columns: int = 1024  # columns up to which the whole scatter matrix is formed
    directions: int = 256  # directions that wider rows are projected on
    line: LineTuning = field(default_factory=LineTuning)
    gram: SemidefiniteTuning = field(default_factory=SemidefiniteTuning)

    def with_effort(self, effort: int) -> ClusterCheckTuning:
        """Return a tuning by which a small table's bound is improved for longer and in larger groups of rows.

        The time grows by the third power of `effort` at most. With 10 or more, many clusterings of a few hundred
        rows are proved optimal.
        """
        gram = replace(self.gram, steps=self.gram.steps * effort, group_rows=self.gram.group_rows * effort)
        return replace(self, gram=gram)


@dataclass(frozen=True)
class MeasuredClusters(Sums):
    """What the checker measures of the centres."""

    objective: float  # Σ w |x - c|²
    weight: Array  # (k,) Σ w of the rows nearest to each centre
    sums: Array  # (k, d) Σ w (x - c) over them
    wrong: float  # rows whose label is not their nearest centre
    labelled: float = np.nan  # Σ w |x - c|² to the centres that the labels name


def certify(
    centres: Array,
    labels: Array | None,
    tol: float,
    rows: Rows,
    target: float | None = None,
    inertia: float | None = None,
    *,
    tuning: ClusterCheckTuning = ClusterCheckTuning(),
) -> Certificate:
    """Check centres (k, d) on these rows and, where given, labels (n,) and the inertia that a model reports for them.

    `target` is the largest ratio of the objective to its lower bound that is allowed.
    """
    C = np.asarray(centres, dtype=np.float64)
    if labels is not None and len(labels) != rows.n_rows:
        raise DataError(
            got=f"labels of {len(labels)} rows and a table of {rows.n_rows}",
            wanted="the rows that the model was fitted on",
        )
    found = rows.sum(partial(_measure, C, None if labels is None else np.asarray(labels)))
    if not np.isfinite(found.objective):
        raise DataError(got="values so large that squared distances overflow", wanted="squared distances below 1e308")
    check_underflow(rows, C, found.objective)
    mean = centre_of_mass(C, found.weight, found.sums)
    width = rows.n_features if rows.n_features <= tuning.full_columns else tuning.directions
    bound = scatter_bound(rows, mean, float(found.weight.sum()), len(C), width)
    if rows.n_features == 1:
        bound = max(bound, line_bound(rows, len(C), tuning=tuning.line))
    else:
        bound = max(bound, gram_bound(rows, C, tuning=tuning.gram))
    more = () if inertia is None else (_check_inertia(inertia, found, C, rows.dtype, rows.n_rows),)
    return assemble(found, C, bound, tol, rows.dtype, target, more)


def _check_inertia(inertia: float, found: MeasuredClusters, C: Array, dtype: Any, n: int) -> Check:
    """Check that labels cost what a model reports, but for rounding in the precision it works in."""
    cost = found.objective if np.isnan(found.labelled) else found.labelled
    moved = _rounding(C, found.weight, dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        limit = (1e-6 + n * _eps(dtype)) * cost + 2 * np.sqrt(moved * cost) + moved
    limit = np.fmin(limit, 0.1 * cost)  # a wider one, or one that overflows, would allow any number
    return Check("reported inertia's distance from what its labels cost", abs(inertia - cost), float(limit))


def _eps(dtype: Any) -> float:
    return float(np.finfo(dtype).eps) if np.issubdtype(dtype, np.floating) else EPS


def _rounding(C: Array, weight: Array, dtype: Any) -> float:
    """Return how much moving centres by their last digits can change the objective."""
    with np.errstate(over="ignore", invalid="ignore"):  # huge rows may have no cost at all
        return float(16 * _eps(dtype) ** 2 * (weight @ (C**2).sum(axis=1)))


def check_underflow(rows: Rows, C: Array, objective: float) -> None:
    """Refuse rows beside their centres, but so close that squares vanish: a sum of 0 would prove nothing."""
    least = 1e-290  # below it, single squares lose digits to underflow
    if objective < least and rows.sum(partial(_total_distance, C)) > 0:
        raise DataError(
            got="rows so close together that squared distances underflow",
            wanted=f"squared distances that add up to {least:g} at least, unless every row lies on a centre",
            fix="Rescale the columns, for instance to unit variance.",
        )


def _total_distance(C: Array, block: Block) -> float:
    """Return Σ |x - c| over all columns and the rows with a positive weight: it does not underflow."""
    X = dense(block.X)[block.w > 0]
    return float(np.abs(X - C[cdist(X, C, "sqeuclidean").argmin(axis=1)]).sum()) if len(X) else 0.0


def centre_of_mass(C: Array, weight: Array, sums: Array) -> Array:
    """Return the mean of all rows (d,) from each cluster's weight and its sum about its centre."""
    return (weight @ C + sums.sum(axis=0)) / weight.sum()


def assemble(
    found: MeasuredClusters,
    C: Array,
    bound: float,
    tol: float,
    dtype: Any,
    target: float | None = None,
    more: tuple[Check, ...] = (),
) -> Certificate:
    """Make the certificate from what was measured.

    `dtype` is that of the rows: centres may be rounded to it, whatever they are stored in. `more` are further checks.
    """
    some = found.weight > 0
    gain = float(((found.sums[some] ** 2).sum(axis=1) / found.weight[some]).sum())
    rounding = _rounding(C, found.weight, dtype) + 1e-20 * found.objective
    relative = gain / found.objective if gain > rounding else 0.0
    perfect = found.objective == 0
    checks = (
        Check("rows nearer to another centre", found.wrong, 0.0),
        Check("gain from moving centres to their rows' means, relative", relative, tol),
        Check("centres without rows", 0.0 if perfect else float((~some).sum()), 0.0),
        *more,
    )
    if target is not None and not perfect:
        ratio = found.objective / bound if bound > 0 else np.inf
        checks = (*checks, Check("objective, relative to its lower bound", ratio, max(target, 1.0)))
    if perfect:
        claim = "every row lies on a centre: no sum of squared distances is smaller than 0"
        return Certificate("optimal", claim, 0.0, 0.0, tol, checks=checks)
    if bound <= 0:
        claim = (
            "no row is nearer to another centre, and moving centres to the means of their rows gains at most tol "
            "(relative); no lower bound above 0 is proved, so nothing is said about other clusterings"
        )
        return Certificate("stationary", claim, found.objective, tol=tol, checks=checks)
    bound = min(bound, found.objective)
    smallest = "the smallest that this many centres can reach"
    if found.objective - bound <= tol * found.objective:
        claim = f"sum of squared distances within gap of {smallest}"
        return Certificate("optimal", claim, found.objective, bound, tol, checks=checks)
    claim = f"sum of squared distances at most ratio times {smallest}"
    return Certificate("bounded", claim, found.objective, bound, tol, checks=checks)


@np.errstate(over="ignore", invalid="ignore")
def _measure(C: Array, labels: Array | None, block: Block) -> MeasuredClusters:
    """Measure the clusters in a block of rows, some at a time so that memory stays small."""
    k, d = C.shape
    origin = C.mean(axis=0)
    reach = np.sqrt(((C - origin) ** 2).sum(axis=1))
    eps = float(np.finfo(block.X.dtype).eps)
    total = MeasuredClusters(0.0, np.zeros(k), np.zeros((k, d)), 0.0, 0.0)
    step = max(1, 2**21 // (d + k))
    for first in range(0, len(block.w), step):
        X, w = dense(block.X[first : first + step]), block.w[first : first + step]
        D = cdist(X, C, "sqeuclidean")
        near = D.argmin(axis=1)
        every = np.arange(len(w))
        Z = X - C[near]
        member = np.zeros((len(w), k))
        member[every, near] = w
        wrong, labelled = 0.0, np.nan
        if labels is not None:
            given = labels[block.start + first : block.start + first + len(w)]
            known = (given >= 0) & (given < k)
            size = np.sqrt(((X - origin) ** 2).sum(axis=1)) + reach.max()
            own = D[every, np.where(known, given, 0)]
            wrong = float((~known | (own - D[every, near] > 4 * (d + 8) * eps * size**2)).sum())
            labelled = float(w @ own)
        total = total + MeasuredClusters(float(w @ D[every, near]), member.sum(axis=0), member.T @ Z, wrong, labelled)
    return total
