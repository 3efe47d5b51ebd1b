"""Proof that an additive model is the best one on its levels: a point of the dual, in plain NumPy.

    min  Σ s φ(y, b + Σ_j f_j(x_j)) / Σ s + α Σ_j TV(f_j),      f_j constant between the model's thresholds

A function is a sum of steps, so its total variation is the sum of their sizes, and the dual asks for u with Σ s u = 0
whose sums over the rows above every threshold are at most α: τ u for any balanced u, τ = min(1, α / largest sum).
The optimum is then at least -Σ s φ*(τ u) (Fenchel). Where a column may only rise, steps down do not exist, and only
sums that ask for a step up count. Rows that lack a value are a level next to the lowest. Terms of pairs of columns
are sums of boxes, whose sums of u are held to α like those of steps (`pair_boxes`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.special import expit, xlog1py, xlogy

from certifit.checkers.ensemble.additive.pair_boxes import PlainPair
from certifit.checkers.plain.blocks import dense
from certifit.checkers.plain.dual_points import EPS, summation_error
from certifit.core import Certificate, Check
from certifit.rows import Array, Block, Rows, Sums

CLAIM = "objective within gap of the least of all additive models on these levels"
CLAIM_OF_PAIRS = f"{CLAIM}, with boxes of these pairs of columns"


@dataclass(frozen=True)
class PlainShape:
    """The function of one column."""

    thresholds: Array  # (k - 1,)
    values: Array  # (k,)
    missing: float | None  # its value for rows that lack one; None where the fit met none
    direction: int  # -1, 0 or 1


@dataclass(frozen=True)
class AdditiveClaim:
    """What a fitted additive model says."""

    shapes: tuple[PlainShape, ...]
    counts: tuple[Array, ...]  # of rows by level, missing ones first where there were any
    intercept: float
    loss: str  # squared_error, log_loss or poisson
    alpha: float
    told: float  # the strength that the model says it has
    pairs: tuple[PlainPair, ...] = ()
    strange_pairs: int = 0  # terms that were not asked for, or are not there

    @property
    def reach(self) -> float:
        """The largest size that the terms of a score can add up to."""
        largest = [np.abs(_path(shape)).max() for shape in self.shapes] + [pair.size for pair in self.pairs]
        return abs(self.intercept) + float(sum(largest))

    @property
    def penalty(self) -> float:
        steps = sum(float(np.abs(np.diff(_path(shape))).sum()) for shape in self.shapes)
        return self.alpha * (steps + sum(pair.size for pair in self.pairs))


def _path(shape: PlainShape) -> Array:
    """The values of all levels, missing first where there is such a level."""
    return shape.values if shape.missing is None else np.append(shape.missing, shape.values)


def levels(shape: PlainShape, x: Array) -> Array:
    """The level of each row along the path (n,); missing ones that the fit did not meet are at -1."""
    found = np.searchsorted(shape.thresholds, x, side="left")
    if shape.missing is None:
        return np.where(np.isnan(x), -1, found)
    return np.where(np.isnan(x), 0, found + 1)


def scores(claim: AdditiveClaim, X: Array) -> Array:
    """b + Σ f_j(x_j) + Σ f_jk(x_j, x_k) of every row (n,)."""
    total = np.full(len(X), claim.intercept)
    for j, shape in enumerate(claim.shapes):
        total += np.append(_path(shape), 0.0)[levels(shape, X[:, j])]
    for pair in claim.pairs:
        total += pair.scores(X)
    return total


def losses(loss: str, y: Array, score: Array) -> Array:
    """φ of every row (n,)."""
    if loss == "squared_error":
        return (y - score) ** 2 / 2
    if loss == "log_loss":
        return np.logaddexp(0.0, np.where(y > 0.5, -score, score))
    # With r = score - log y that is y (exp r - 1 - r), in which nothing cancels but near r = 0, where the series is
    # taken: the terms of exp(score) - y score + y log y - y are of the size of y log y.
    r = np.where(y > 0, score - np.log(np.where(y > 0, y, 1.0)), 0.0)
    series = r * r / 2 * (1 + r / 3 * (1 + r / 4 * (1 + r / 5)))
    return np.where(y > 0, y * np.where(np.abs(r) < 1e-3, series, np.expm1(r) - r), np.exp(score))


def slopes_at(loss: str, y: Array, score: Array) -> Array:
    """φ' of every row (n,)."""
    if loss == "squared_error":
        return score - y
    if loss == "log_loss":
        return np.where(y > 0.5, -expit(-score), expit(score))
    r = score - np.log(np.where(y > 0, y, 1.0))
    return np.where(y > 0, y * np.expm1(r), np.exp(score))


def conjugates(loss: str, y: Array, u: Array) -> tuple[Array, Array]:
    """-φ*(u) of every row, and the size of its terms."""
    if loss == "squared_error":
        return -(u**2) / 2 - u * y, u**2 / 2 + np.abs(u * y)
    if loss == "log_loss":
        # The entropy of the other class's probability, which keeps its digits next to 0.
        other = np.minimum(np.abs(u), 1.0)
        found = -xlogy(other, other) - xlog1py(1 - other, -other)
        return found, found
    # With d = u / y that is -y ((1 + d) log(1 + d) - d) - u log y, the first by its series near d = 0.
    count = np.where(y > 0, y, 1.0)
    d, along = np.maximum(u / count, -1.0), u * np.log(count)
    series = d * d / 2 * (1 - d / 3 * (1 - d / 2 * (1 - 3 * d / 5)))
    whole = (1 + d) * np.log1p(np.maximum(d, -1 + EPS)) - d
    rare = np.maximum(u, 0.0)
    lost = y * np.where(np.abs(d) < 1e-3, series, whole)
    found = np.where(y > 0, -lost - along, rare - xlogy(rare, rare))
    return found, np.where(y > 0, lost + np.abs(along), np.abs(xlogy(rare, rare)) + rare)


@dataclass(frozen=True)
class AdditivePrimalSums(Sums):
    """What the rows say of a model."""

    weight: float
    loss: float
    size: float  # Σ w of the sizes of the losses' terms
    up: float  # Σ w u over rows with u > 0
    down: float
    digits: float  # Σ w of what the last digits of targets leave open in squared errors
    counts: Array  # of rows of positive weight by level, all columns one after another


@dataclass(frozen=True)
class AdditiveDualSums(Sums):
    """What a dual point adds up to."""

    gain: float
    gain_size: float
    flows: Array  # Σ w u by level, all columns and pairs one after another
    mass: float  # Σ w |u|


def _by_level(claim: AdditiveClaim, X: Array, v: Array) -> Array:
    """Sums of v by level, all columns one after another."""
    found = []
    for j, shape in enumerate(claim.shapes):
        at, k = levels(shape, X[:, j]), len(_path(shape))
        found.append(np.bincount(at[at >= 0], v[at >= 0], k))
    return np.concatenate([*found, *(pair.sums(X, v) for pair in claim.pairs)])


def _shifted(claim: AdditiveClaim, X: Array, block: Block) -> tuple[Array, Array]:
    """Targets and scores (n,); of squared errors both less the intercept, so that nothing cancels far from 0."""
    y = np.asarray(block.y, np.float64)
    if claim.loss != "squared_error":
        return y, scores(claim, X)
    return y - claim.intercept, scores(replace(claim, intercept=0.0), X)


def _primal(claim: AdditiveClaim, block: Block) -> AdditivePrimalSums:
    X, w = dense(block.X), block.w
    y, score = _shifted(claim, X, block)
    with np.errstate(over="ignore", invalid="ignore"):
        each, u = losses(claim.loss, y, score), slopes_at(claim.loss, y, score)
    wu = np.where(w > 0, w * u, 0.0)
    terms, digits = _rounding_of_losses(claim, np.asarray(block.y, np.float64), score, u)
    return AdditivePrimalSums(
        float(w.sum()), float(np.where(w > 0, w * each, 0.0).sum()), float(w @ (np.abs(each) + terms)),
        float(wu[wu > 0].sum()), -float(wu[wu < 0].sum()),
        float(w @ digits), _by_level(claim, X, (w > 0).astype(float)),
    )  # fmt: skip


def _rounding_of_losses(claim: AdditiveClaim, y: Array, score: Array, u: Array) -> tuple[Array, Array]:
    """Sizes of the terms of losses (n,), whose rounding counts, and what the last digits of targets leave open."""
    if claim.loss == "squared_error":
        last = 4 * EPS * np.abs(y)
        return np.abs((y - claim.intercept) * score), last * np.abs(u) + last**2
    # No terms of the other losses cancel: they are off by the rounding of the score alone, and of log y.
    reach = np.full(len(y), claim.reach)
    if claim.loss == "log_loss":
        return np.abs(u) * reach, np.zeros(len(y))
    reach += np.abs(np.log(np.where(y > 0, y, 1.0)))
    with np.errstate(over="ignore"):
        return np.abs(u) * reach, np.exp(score) * (8 * EPS * reach) ** 2


def _dual(claim: AdditiveClaim, balance: tuple[float, float], block: Block) -> AdditiveDualSums:
    X, w = dense(block.X), block.w
    y, score = _shifted(claim, X, block)
    with np.errstate(over="ignore"):
        u = slopes_at(claim.loss, y, score)
    u = u * np.where(u > 0, balance[0], balance[1])
    gain, size = conjugates(claim.loss, y, u)
    return AdditiveDualSums(
        float(w @ gain), float(w @ size), _by_level(claim, X, w * u), float(w @ np.abs(u))
    )  # fmt: skip


def certify_additive(claim: AdditiveClaim, rows: Rows, tol: float) -> Certificate:
    """Check an additive model on rows whose y are amounts, or 0 and 1."""
    found = rows.sum(partial(_primal, claim))
    total = found.weight
    objective = found.loss / total + claim.penalty
    bound = _lower_bound(claim, found, rows)
    told = np.concatenate([*claim.counts, *(pair.counts.ravel() for pair in claim.pairs)])
    wrong = float(np.abs(found.counts - told).max())
    bent = sum(_wrong_steps(shape) for shape in claim.shapes)
    other = not (claim.alpha > 0 and claim.told == claim.alpha)
    checks = (
        Check("alpha_ is not the strength asked for, or not above 0 (1: yes)", float(other), 0.0),
        Check("counts of levels off by", wrong, 0.0),
        Check("steps against the direction of a monotone column", float(bent), 0.0),
        *([Check("pairs of columns that were not asked for, or are not there", float(claim.strange_pairs), 0.0)]
          if claim.pairs or claim.strange_pairs else []),
    )  # fmt: skip
    rounding = 8 * summation_error(rows.n_rows) * (found.size / total + claim.penalty) + found.digits / total
    scale = objective + float(found.size / total) + rounding
    words = CLAIM_OF_PAIRS if claim.pairs else CLAIM
    return Certificate(
        "optimal", words, objective, bound, tol, tol * abs(objective) + rounding, checks, {"alpha": claim.alpha},
        scale=scale,
    )  # fmt: skip


def _wrong_steps(shape: PlainShape) -> int:
    return int((np.diff(shape.values) * shape.direction < 0).sum())


def _lower_bound(claim: AdditiveClaim, found: AdditivePrimalSums, rows: Rows) -> float:
    """The dual objective of the slopes at the model, balanced and shrunk until they are feasible."""
    less = min(found.up, found.down)
    if not (np.isfinite(found.up) and np.isfinite(found.down)):
        return -np.inf
    balance = (less / found.up if found.up > 0 else 0.0, less / found.down if found.down > 0 else 0.0)
    sums = rows.sum(partial(_dual, claim, balance))
    total, share = found.weight, 4 * summation_error(rows.n_rows)
    if not claim.alpha > 0:
        return -np.inf
    largest = _largest_sum(claim, sums.flows / total) + share * sums.mass / total
    shrink = min(1.0, claim.alpha / largest) if largest > 0 else 1.0
    at = sums if shrink == 1.0 else rows.sum(partial(_dual, claim, (shrink * balance[0], shrink * balance[1])))
    # The sum is out of balance by rounding: the heavier side shrinks by as much.
    return float((at.gain - share * at.gain_size) / total - 8 * EPS * abs(at.gain) / total)


def _largest_sum(claim: AdditiveClaim, flows: Array) -> float:
    """The largest sum of s u above any threshold that asks for a step which is allowed."""
    largest, start = 0.0, 0
    for shape in claim.shapes:
        k = len(_path(shape))
        above = np.cumsum(flows[start : start + k][::-1])[::-1][1:]
        start += k
        free = np.zeros(k - 1, bool)
        free[: 0 if shape.missing is None else 1] = True  # the step from missing values has no direction
        up = np.where(free | (shape.direction >= 0), -above, 0.0)
        down = np.where(free | (shape.direction <= 0), above, 0.0)
        largest = max(largest, float(np.maximum(up, down).max(initial=0.0)))
    for pair in claim.pairs:
        cells = pair.counts.size
        largest = max(largest, pair.largest_sum(flows[start : start + cells]))
        start += cells
    return largest
