"""The moment equations of naive Bayes, which prove that parameters minimise the objective.

    min over π, θ of   - Σᵢ wᵢ [log π_{yᵢ} + Σⱼ log p(xᵢⱼ | θ_{yᵢ,j})]  +  pseudo-observations of the smoothing

has its minimum where, in every class, E_θ[T] equals the mean of T over the rows of that class, pseudo-observations
included. Each function below takes parameters and the sums of the rows, and returns the objective at the parameters,
its value at the solution of the equations (a lower bound), and how far the parameters are from that solution.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from certifit.checkers.naive_bayes.class_statistics import PlainClassMoments, safe_ratio
from certifit.core import Certificate, Check
from certifit.rows import Array


class MomentEvidence(NamedTuple):
    """The contribution of one group of parameters to the certificate."""

    objective: float  # at the parameters
    bound: float  # at the solution of the moment equations
    checks: tuple[Check, ...]


# --------------------------------------------------------------------------------------------- putting it together
def assemble(evidence: Iterable[MomentEvidence], tol: float) -> Certificate:
    """Return one certificate from the evidence of all groups of parameters, whose objectives are added."""
    parts = list(evidence)
    objective, bound = sum(part.objective for part in parts), sum(part.bound for part in parts)
    checks = tuple(check for part in parts for check in part.checks)
    claim = "every class expects what its rows have on average: the minimum, in closed form"
    return Certificate("exact", claim, objective, bound, tol, checks=checks)


def worst_of_columns(evidence: Iterable[MomentEvidence]) -> MomentEvidence:
    """Combine the evidence of many columns: their objectives are added, and of each check the worst is kept."""
    parts = list(evidence)
    worst = [
        max(same, key=lambda c: math.inf if math.isnan(c.residual) else c.residual)
        for same in zip(*(part.checks for part in parts), strict=True)
    ]
    return MomentEvidence(sum(p.objective for p in parts), sum(p.bound for p in parts), tuple(worst))


def with_prefix(name: str, evidence: MomentEvidence) -> MomentEvidence:
    """Return the same evidence with a prefix, the family of the columns, to the name of each check."""
    return evidence._replace(checks=tuple(Check(f"{name}: {c.name}", c.residual, c.limit) for c in evidence.checks))


# ------------------------------------------------------------------------------------------------ classes and counts
def prior_evidence(log_prior: Array, count: Array, given: Array | None, tol: float) -> MomentEvidence:
    """Compare class priors (k,) with the share of each class, or with those given."""
    expected = safe_ratio(count, count.sum()) if given is None else given
    with np.errstate(over="ignore"):
        residual = _largest(np.exp(log_prior) - expected)
    check = Check("class priors", residual, tol)
    return MomentEvidence(-_log_likelihood(count, log_prior), -_log_likelihood(count, safe_log(expected)), (check,))


def count_evidence(name: str, found: Array, expected: Array, tol: float) -> MomentEvidence:
    """Compare stored counts with those of the rows, relative to the largest; they add nothing to the objective."""
    scale = max(float(np.abs(expected).max(initial=0.0)), 1e-300)
    return MomentEvidence(0.0, 0.0, (Check(f"{name}, relative", _largest((found - expected) / scale), tol),))


# ------------------------------------------------------------------------------------------------- Gaussian columns
def gaussian_evidence(
    theta: Array, var: Array, epsilon: float, shared: bool, found: PlainClassMoments, tol: float
) -> MomentEvidence:
    """Check means and variances (k, d) of the classes that have rows; ε is added to every variance.

    var = ssd / weight + ε minimises  Σ weight [log(2π var) + (ssd / weight + ε) / var] / 2.
    """
    W = found.weight
    observed = W > 0
    if shared:
        wanted = np.broadcast_to(safe_ratio(found.ssd.sum(0), W.sum(0)), W.shape)
    else:
        wanted = safe_ratio(found.ssd, W)
    wanted = wanted + epsilon
    eps = float(np.finfo(theta.dtype).eps) if theta.dtype.kind == "f" else 0.0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        off = np.abs(theta.astype(np.float64) - found.mean)
        off = np.where(off <= 4 * eps * np.abs(found.mean), 0.0, off)  # the stored mean is rounded to its precision
        mean_error, variance_error = off / np.sqrt(wanted), var / wanted - 1.0
        spread = safe_ratio(found.ssd, W) + epsilon
        objective = 0.5 * W * (np.log(2 * np.pi * var) + (spread + off**2) / var)
        bound = 0.5 * W * (np.log(2 * np.pi * wanted) + spread / wanted)
    return MomentEvidence(
        _sum_or_inf(objective[observed]),
        _sum_or_inf(bound[observed]),
        (
            Check("class means, in standard deviations", _largest(mean_error[observed]), tol),
            Check("class variances, relative", _largest(variance_error[observed]), tol),
        ),
    )


def linear_form_evidence(
    coef: Array, intercept: Array, theta: Array, var: Array, prior: Array, tol: float
) -> MomentEvidence:
    """Compare coef (k, d) and intercept (k,) of shared variances with those that θ, v and π give.

    A vector common to all classes changes no probability, so differences to the first class are compared.
    """
    slope = (theta - theta[:1]) / var
    with np.errstate(invalid="ignore"):
        level = safe_log(prior) - safe_log(prior[:1]) - 0.5 * (slope * (theta + theta[:1])).sum(axis=1)
        off = np.column_stack([(coef - coef[:1] - slope) * np.sqrt(var), intercept - intercept[:1] - level])
        scale = 1.0 + np.abs(slope * np.sqrt(var)).max() + np.abs(0.5 * slope * (theta + theta[:1])).sum(axis=1).max()
    return MomentEvidence(0.0, 0.0, (Check("linear form, relative", _largest(off / scale), tol),))


# -------------------------------------------------------------------------------------------------- counted columns
def cell_evidence(log_p: Array, mass: Array, tol: float) -> MomentEvidence:
    """Compare log-probabilities of the cells of a partition (last axis) with normalised smoothed counts.

    p = mass / Σ mass minimises - Σ mass log p; without any mass the cells are equally likely.
    """
    log_expected = log_shares(mass)
    with np.errstate(invalid="ignore"):
        residual = np.where(log_p == log_expected, 0.0, log_p - log_expected)
    check = Check("log-probabilities", _largest(residual), tol)
    return MomentEvidence(-_log_likelihood(mass, log_p), -_log_likelihood(mass, log_expected), (check,))


def complement_evidence(weights: Array, mass: Array, norm: bool, tol: float) -> list[MomentEvidence]:
    """Compare weights with -log p (k, d) of the columns in all other classes (smoothed mass), normalised or not."""
    if not norm:
        return [cell_evidence(-weights, mass, tol)]
    expected = -log_shares(mass)
    infinite = np.isinf(expected)
    for row, those in zip(expected, infinite, strict=True):
        row[:] = those / those.sum() if those.any() else row / row.sum() if row.any() else 0.0
    return [cell_evidence(log_shares(mass), mass, tol), count_evidence("feature weights", weights, expected, tol)]


def log_shares(mass: Array) -> Array:
    """Return log(mass / Σ mass) over the last axis, with equal shares where there is no mass."""
    total = mass.sum(axis=-1, keepdims=True)
    return np.where(total > 0, safe_log(safe_ratio(mass, total)), -math.log(mass.shape[-1]))


def both_sides(log_p: Array) -> Array:
    """Return log(1 - p) and log p, stacked (…, 2), NaN where p > 1."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.stack([np.log(-np.expm1(log_p)), log_p], axis=-1)


# --------------------------------------------------------------------------------------------- exponential families
class StatisticMeans(NamedTuple):
    """The sums of a statistic T of m numbers over the rows of one class and column."""

    total: Array  # Σ w T  (m,)
    squares: Array  # Σ w T²  (m,)
    weight: float  # Σ w


def statistic_evidence(expected: Array, found: StatisticMeans, loss: float, tol: float) -> MomentEvidence:
    """Compare E T (m,) of a member with the mean of T over its rows, relative to the root of the mean of T²."""
    total, squares, weight = found
    off = np.abs(expected - safe_ratio(total, weight)) if weight > 0 else np.zeros(total.shape)
    off = safe_ratio(off, np.sqrt(safe_ratio(squares, weight))) + np.where((squares == 0) & (off > 0), np.inf, 0.0)
    return MomentEvidence(loss, loss, (Check("mean of the statistic, relative", _largest(off), tol),))


# ------------------------------------------------------------------------------------------------------- arithmetic
def safe_log(p: Array) -> Array:
    """Return log p with log 0 = -inf and NaN for negative numbers, without warnings."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(p)


def _log_likelihood(mass: Array, log_p: Array) -> float:
    """Return Σ mass log p with 0 log 0 = 0, and -inf where that is not a number."""
    with np.errstate(invalid="ignore"):
        return -_sum_or_inf(-np.where(mass > 0, mass * log_p, 0.0))


def _sum_or_inf(values: Array) -> float:
    total = float(values.sum())
    return math.inf if math.isnan(total) else total


def _largest(residual: Array) -> float:
    return float(np.abs(residual).max(initial=0.0))
