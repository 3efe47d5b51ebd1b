"""Naive Bayes re-checked from the data: the moment equations that define a closed-form fit hold to rounding.

    min over π, θ of   - Σᵢ wᵢ [log π_{yᵢ} + Σⱼ log p(xᵢⱼ | θ_{yᵢ,j})]  +  pseudo-observations of the smoothing

has its minimum where every class expects what its rows have on average, E_θ[T] = mean of T, pseudo-observations
included. Plain float64 NumPy: two passes for means and variances, counts cell by cell. Missing entries are left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from certifit.checkers.plain.blocks import dense
from certifit.core import Certificate, Check
from certifit.rows import Array, Block, Rows, Sums

CLAIM = "every class expects what its rows have on average: the minimum, in closed form"


class Evidence(NamedTuple):
    """What one group of parameters contributes to the certificate."""

    objective: float  # at the parameters
    bound: float  # at the solution of the moment equations
    checks: tuple[Check, ...]


def assemble(evidence: Iterable[Evidence], tol: float) -> Certificate:
    parts = list(evidence)
    objective, bound = sum(part.objective for part in parts), sum(part.bound for part in parts)
    checks = tuple(check for part in parts for check in part.checks)
    return Certificate("exact", CLAIM, objective, bound, tol, checks=checks)


# ------------------------------------------------------------------------------- sums by class, from the rows
@dataclass(frozen=True)
class _Centred(Sums):
    weight: Array  # Σ w of the rows that have the column  (k, d)
    z: Array  # Σ w (x - centre)  (k, d)
    zz: Array  # Σ w (x - centre)²  (k, d)


@dataclass(frozen=True)
class Moments:
    weight: Array  # (k, d)
    mean: Array  # (k, d)
    ssd: Array  # Σ w (x - mean)²  (k, d)


@dataclass(frozen=True)
class Cells(Sums):
    """Weights of the rows in each cell of a partition."""

    mass: Array


def pieces(block: Block) -> Iterator[tuple[Array, Array, Array]]:
    """Rows with weight as float64, their classes and weights, a bounded number of entries at a time."""
    step = max(1, 2**21 // block.X.shape[1])
    for first in range(0, len(block.w), step):
        here = slice(first, first + step)
        some = block.w[here] > 0
        assert block.y is not None
        yield dense(block.X[here])[some], block.y[here][some], block.w[here][some]


def _centred(centre: Array, block: Block) -> _Centred:
    weight, z, zz = np.zeros((3, *centre.shape))
    for X, y, w in pieces(block):
        for c in np.unique(y):
            Z, v = X[y == c] - centre[c], w[y == c]
            there = ~np.isnan(Z)
            Z[~there] = 0.0
            weight[c] += v @ there
            z[c] += v @ Z
            zz[c] += v @ Z**2
    return _Centred(weight, z, zz)


def sums(rows: Rows, k: int) -> Array:
    """Σ w x by class (k, d)."""
    return rows.sum(partial(_centred, np.zeros((k, rows.n_features)))).z


def moments(rows: Rows, k: int) -> Moments:
    """Class-wise means, then centred sums of squares: two passes."""
    first = rows.sum(partial(_centred, np.zeros((k, rows.n_features))))
    mean = _ratio(first.z, first.weight)
    second = rows.sum(partial(_centred, mean))
    delta = _ratio(second.z, second.weight)
    return Moments(second.weight, mean + delta, second.zz - second.weight * delta**2)


def _threshold(t: float, k: int, block: Block) -> Cells:
    mass = np.zeros((k, block.X.shape[1], 2))
    for X, y, w in pieces(block):
        for c in np.unique(y):
            Z, v = X[y == c], w[y == c]
            mass[c] += np.stack([v @ (t >= Z), v @ (t < Z)], axis=-1)
    return Cells(mass)


def threshold_counts(rows: Rows, k: int, t: float) -> Array:
    """Weights of x <= t and x > t by class (k, d, 2)."""
    return rows.sum(partial(_threshold, t, k)).mass


def _category(sizes: Array, k: int, block: Block) -> Cells:
    first = np.concatenate([[0], np.cumsum(sizes + 1)])  # one more cell: not among the categories
    mass = np.zeros((k, first[-1]))
    for X, y, w in pieces(block):
        for j, size in enumerate(sizes):
            x = X[:, j]
            there = ~np.isnan(x)
            known = (x >= 0) & (x < size)
            cell = np.where(known, np.floor(x), size)[there].astype(np.int64)
            np.add.at(mass, (y[there], first[j] + cell), w[there])
    return Cells(mass)


def category_counts(rows: Rows, k: int, sizes: Array) -> list[Array]:
    """Weights of each category by class, (k, categories + 1) for each column; the last cell is for unknown ones."""
    mass = rows.sum(partial(_category, np.asarray(sizes, np.int64), k)).mass
    return np.split(mass, np.cumsum(np.asarray(sizes) + 1)[:-1], axis=1)


# ------------------------------------------------------------------------------------------------- evidence
def priors(log_prior: Array, count: Array, given: Array | None, tol: float) -> Evidence:
    """Class priors against the share of each class, or against those given."""
    expected = _ratio(count, count.sum()) if given is None else given
    with np.errstate(over="ignore"):
        residual = _worst(np.exp(log_prior) - expected)
    log_expected = _log(expected)
    return Evidence(-_total(count, log_prior), -_total(count, log_expected), (Check("class priors", residual, tol),))


def counts(name: str, found: Array, expected: Array, tol: float) -> Evidence:
    """Stored counts against those of the rows, relative to the largest."""
    scale = max(float(np.abs(expected).max(initial=0.0)), 1e-300)
    return Evidence(0.0, 0.0, (Check(f"{name}, relative", _worst((found - expected) / scale), tol),))


def gaussian(theta: Array, var: Array, epsilon: float, shared: bool, found: Moments, tol: float) -> Evidence:
    """Means and variances (k, d) of the classes that have rows; ε is added to every variance.

    var = ssd / weight + ε minimises  Σ weight [log(2π var) + (ssd / weight + ε) / var] / 2.
    """
    W = found.weight
    some = W > 0
    wanted = _ratio(found.ssd, W) if not shared else np.broadcast_to(_ratio(found.ssd.sum(0), W.sum(0)), W.shape)
    wanted = wanted + epsilon
    eps = float(np.finfo(theta.dtype).eps) if theta.dtype.kind == "f" else 0.0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        off = np.abs(theta.astype(np.float64) - found.mean)
        off = np.where(off <= 4 * eps * np.abs(found.mean), 0.0, off)  # θ is stored rounded
        at_mean = off / np.sqrt(wanted)
        at_var = var / wanted - 1.0
        spread = _ratio(found.ssd, W) + epsilon
        objective = 0.5 * W * (np.log(2 * np.pi * var) + (spread + off**2) / var)
        bound = 0.5 * W * (np.log(2 * np.pi * wanted) + spread / wanted)
    return Evidence(
        _sum_or_inf(objective[some]),
        _sum_or_inf(bound[some]),
        (
            Check("class means, in standard deviations", _worst(at_mean[some]), tol),
            Check("class variances, relative", _worst(at_var[some]), tol),
        ),
    )


def linear_form(coef: Array, intercept: Array, theta: Array, var: Array, prior: Array, tol: float) -> Evidence:
    """Shared variance: differences of coef (k, d) and intercept (k,) to the first class's are those of the scores."""
    slope = (theta - theta[:1]) / var
    with np.errstate(invalid="ignore"):
        level = _log(prior) - _log(prior[:1]) - 0.5 * (slope * (theta + theta[:1])).sum(axis=1)
        off = np.column_stack([(coef - coef[:1] - slope) * np.sqrt(var), intercept - intercept[:1] - level])
        scale = 1.0 + np.abs(slope * np.sqrt(var)).max() + np.abs(0.5 * slope * (theta + theta[:1])).sum(axis=1).max()
    return Evidence(0.0, 0.0, (Check("linear form, relative", _worst(off / scale), tol),))


def cells(log_p: Array, mass: Array, tol: float, name: str = "log-probabilities") -> Evidence:
    """Log-probabilities of the cells of a partition (last axis) against smoothed counts, normalised.

    p = mass / Σ mass minimises - Σ mass log p; without any mass the cells are equally likely.
    """
    log_expected = normalised(mass)
    with np.errstate(invalid="ignore"):
        residual = np.where(log_p == log_expected, 0.0, log_p - log_expected)
    check = Check(name, _worst(residual), tol)
    return Evidence(-_total(mass, log_p), -_total(mass, log_expected), (check,))


def matching(expected: Array, total: Array, squares: Array, weight: float, loss: float, tol: float) -> Evidence:
    """E T of a member against the mean of T over its rows (m,), relative to the root of the mean of T²."""
    off = np.abs(expected - _ratio(total, weight)) if weight > 0 else np.zeros(total.shape)
    off = _ratio(off, np.sqrt(_ratio(squares, weight))) + np.where((squares == 0) & (off > 0), np.inf, 0.0)
    return Evidence(loss, loss, (Check("mean of the statistic, relative", _worst(off), tol),))


def named(name: str, evidence: Evidence) -> Evidence:
    """Evidence whose checks say which columns they speak of."""
    return evidence._replace(checks=tuple(Check(f"{name}: {c.name}", c.residual, c.limit) for c in evidence.checks))


def columns(evidence: Iterable[Evidence]) -> Evidence:
    """The evidence of many columns as one: objectives added, the worst of each check."""
    parts = list(evidence)
    worst = [
        max(same, key=lambda c: math.inf if math.isnan(c.residual) else c.residual)
        for same in zip(*(part.checks for part in parts), strict=True)
    ]
    return Evidence(sum(p.objective for p in parts), sum(p.bound for p in parts), tuple(worst))


def complement(weights: Array, mass: Array, norm: bool, tol: float) -> list[Evidence]:
    """Weights -log p of the words of all other classes (mass, smoothed), or those divided by their sum."""
    if not norm:
        return [cells(-weights, mass, tol)]
    expected = -normalised(mass)
    endless = np.isinf(expected)
    for row, those in zip(expected, endless, strict=True):
        row[:] = those / those.sum() if those.any() else row / row.sum() if row.any() else 0.0
    return [cells(normalised(mass), mass, tol), counts("feature weights", weights, expected, tol)]


def normalised(mass: Array) -> Array:
    """log(mass / Σ mass) over the last axis."""
    total = mass.sum(axis=-1, keepdims=True)
    return np.where(total > 0, _log(_ratio(mass, total)), -math.log(mass.shape[-1]))


def both_sides(log_p: Array) -> Array:
    """log(1 - p) and log p, stacked (…, 2); NaN where p > 1."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.stack([np.log(-np.expm1(log_p)), log_p], axis=-1)


def _ratio(a: Array, b: Array | float) -> Array:
    """a / b, 0 where b is 0."""
    return np.divide(a, b, out=np.zeros(np.broadcast_shapes(np.shape(a), np.shape(b))), where=np.asarray(b) > 0)


def _log(p: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.log(p)


def _total(mass: Array, log_p: Array) -> float:
    """Σ mass log p with 0 log 0 = 0; -inf where that is not a number."""
    with np.errstate(invalid="ignore"):
        return -_sum_or_inf(-np.where(mass > 0, mass * log_p, 0.0))


def _sum_or_inf(values: Array) -> float:
    total = float(values.sum())
    return math.inf if math.isnan(total) else total


def _worst(residual: Array) -> float:
    return float(np.abs(residual).max(initial=0.0))
