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
from certifit.core import Certificate, Check, rounding_within
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
    worst = [max(same, key=_badness) for same in zip(*(part.checks for part in parts), strict=True)]
    return MomentEvidence(sum(p.objective for p in parts), sum(p.bound for p in parts), tuple(worst))


def _badness(check: Check) -> tuple[bool, float]:
    """Order checks: those that fail last, and by how much of its limit each uses up."""
    used = check.residual / check.limit if check.limit > 0 else check.residual
    return not check.passed, math.inf if math.isnan(used) else used


def with_prefix(name: str, evidence: MomentEvidence) -> MomentEvidence:
    """Return the same evidence with a prefix, the family of the columns, to the name of each check."""
    return evidence._replace(checks=tuple(Check(f"{name}: {c.name}", c.residual, c.limit) for c in evidence.checks))


# ------------------------------------------------------------------------------------------------ classes and counts
def prior_evidence(log_prior: Array, count: Array, given: Array | None, tol: float) -> MomentEvidence:
    """Compare logarithms of class priors (k,) with those of each class's share, or of those given."""
    log_expected = safe_log(safe_ratio(count, count.sum()) if given is None else given)
    check = Check("log-priors of the classes", _largest(_log_differences(log_prior, log_expected)), tol)
    return MomentEvidence(-_log_likelihood(count, log_prior), -_log_likelihood(count, log_expected), (check,))


def count_evidence(
    name: str, found: Array, expected: Array, tol: float, scale: float | None = None
) -> MomentEvidence:
    """Compare stored counts with those of the rows, relative to the largest; they add nothing to the objective."""
    scale = max(float(np.abs(expected).max(initial=0.0)), 1e-300) if scale is None else scale
    with np.errstate(invalid="ignore", over="ignore"):
        residual = _largest((found - expected) / scale)
    return MomentEvidence(0.0, 0.0, (Check(f"{name}, relative", residual, tol),))


# ------------------------------------------------------------------------------------------------- Gaussian columns
class GaussianRules(NamedTuple):
    """What is known of Gaussian columns besides their means and variances."""

    epsilon: float  # added to every variance
    shared: bool = False  # one variance of a column for all classes
    rounding: float = float(np.finfo(np.float64).eps)  # relative, of means in the precision of the rows
    pooled: bool = True  # whether a class without a value in a column has the moments of all rows there


def gaussian_evidence(
    theta: Array, var: Array, rules: GaussianRules, found: PlainClassMoments, tol: float
) -> MomentEvidence:
    """Check means and variances (k, d).

    var = ssd / weight + ε minimises  Σ weight [log(2π var) + (ssd / weight + ε) / var] / 2.
    """
    W, epsilon = found.weight, rules.epsilon
    observed = W > 0
    mean, wanted = _gaussian_solution(rules, found)
    looked_at = observed | rules.pooled
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        off = np.abs(theta - mean)
        # Stored means are rounded.
        stored = rounding_within(4 * rules.rounding * np.abs(mean), np.sqrt(wanted))
        off = np.where(off <= stored, 0.0, off)
        mean_error, variance_error = off / np.sqrt(wanted), var / wanted - 1.0
        spread = safe_ratio(found.ssd, W) + epsilon
        objective = 0.5 * W * (np.log(2 * np.pi * var) + (spread + off**2) / var)
        bound = 0.5 * W * (np.log(2 * np.pi * wanted) + spread / wanted)
    return MomentEvidence(
        _sum_or_inf(objective[observed]),
        _sum_or_inf(bound[observed]),
        (
            Check("class means, in standard deviations", _largest(mean_error[looked_at]), tol),
            Check("class variances, relative", _largest(variance_error[looked_at]), tol),
        ),
    )


def _gaussian_solution(rules: GaussianRules, found: PlainClassMoments) -> tuple[Array, Array]:
    """Return the means and variances (k, d) that minimise the objective.

    A class without a value in some column has the moments of all rows there; a column without any has variance 1.
    """
    W, every = found.weight, found.pooled()
    if rules.shared:
        within = np.broadcast_to(safe_ratio(found.ssd.sum(0), W.sum(0)), W.shape)
    else:
        within = np.where(W > 0, safe_ratio(found.ssd, W), safe_ratio(every.ssd, every.weight))
    variance = np.where(every.weight > 0, within + rules.epsilon, 1.0)
    return np.where(W > 0, found.mean, every.mean), variance


def epsilon_evidence(epsilon: float, wanted: float, var: Array, tol: float) -> MomentEvidence:
    """Compare the ε that a model reports with what its settings say, relative to the smallest variance it is in."""
    off = abs(epsilon - wanted) / max(float(var.min(initial=math.inf)), 1e-300)
    return MomentEvidence(0.0, 0.0, (Check("epsilon, relative to the smallest variance", off, tol),))


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
    check = Check("log-probabilities", _largest(_log_differences(log_p, log_expected)), tol)
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


def _log_differences(log_p: Array, log_expected: Array) -> Array:
    """Return log p - log expected, 0 where both are -inf."""
    with np.errstate(invalid="ignore"):
        return np.where(log_p == log_expected, 0.0, log_p - log_expected)


def _log_likelihood(mass: Array, log_p: Array) -> float:
    """Return Σ mass log p with 0 log 0 = 0, and -inf where that is not a number."""
    with np.errstate(invalid="ignore"):
        return -_sum_or_inf(-np.where(mass > 0, mass * log_p, 0.0))


def _sum_or_inf(values: Array) -> float:
    total = float(values.sum())
    return math.inf if math.isnan(total) else total


def _largest(residual: Array) -> float:
    return float(np.abs(residual).max(initial=0.0))
