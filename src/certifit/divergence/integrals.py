"""Sums and integrals over the supports of one or two distributions.

whole numbers  a sum, extended until its tail is negligible
real numbers   adaptive quadrature (`divergence.quadrature`)
vectors, and whole numbers of very large spread    Monte Carlo with a standard error
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import fsum
from typing import Any

import numpy as np
from scipy.special import expit

from certifit.divergence.mixtures import Distribution, components
from certifit.divergence.quadrature import Nodes, QuadratureTuning, cut_pieces, integrate
from certifit.divergence.terms import Terms
from certifit.divergence.value import Estimate
from certifit.exceptions import DataError
from certifit.rows import Array
from certifit.rows.threads import single_threaded_blas

NO_MASS = "p has mass where q has none"


@dataclass(frozen=True)
class SumTuning:
    """The numbers that decide how far sums over whole numbers go."""

    most_values: int = 500_000  # whole numbers that are still summed one by one
    spread: int = 40  # standard deviations around the means at which sums begin: exp(-40) is below rounding
    negligible: float = 1e-17  # share of the sum below which a tail ends


def is_scalar(p: Distribution) -> bool:
    return not components(p)[0].support.vector


def is_discrete(p: Distribution) -> bool:
    return bool(components(p)[0].support.discrete)


def comparable(p: Distribution, q: Distribution) -> bool:
    """Return whether both are discrete or both continuous, and refuse two x of different dimensions."""
    if np.shape(p.mean) != np.shape(q.mean):
        raise DataError(
            got=f"distributions over x of shapes {np.shape(p.mean)} and {np.shape(q.mean)}",
            wanted="two distributions over the same x",
        )
    return is_discrete(p) == is_discrete(q)


def divergence_total(terms: Terms, p: Distribution, q: Distribution, draws: int, random_state: Any) -> Estimate:
    """Return the sum or integral of the terms over the supports of p and q."""
    if not comparable(p, q):  # then no point has mass of both: one point stands for p, one for q
        alone = terms(np.array([1.0, 0.0]), np.array([0.0, 1.0]), np.array([-np.inf, np.inf]))
        return Estimate(fsum(alone), note="disjoint supports: one is discrete, the other continuous")
    nodes = grid(partial(_terms_at, terms, p, q), p, q) if is_scalar(p) else None
    if nodes is None:
        return _monte_carlo(terms, p, q, draws, random_state)
    return total(nodes, discrete=is_discrete(p))


def _terms_at(terms: Terms, p: Distribution, q: Distribution, x: Array) -> Array:
    log_p, log_q = p.log_density(x), q.log_density(x)
    with np.errstate(over="ignore"):
        return terms(np.exp(log_p), np.exp(log_q), _log_ratio(log_q, log_p))


def _log_ratio(log_q: Array, log_p: Array) -> Array:
    """Return log q/p, 0 where both densities are 0."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(log_q) & np.isneginf(log_p), 0.0, log_q - log_p)


def method_name(discrete: bool) -> str:
    """Return the name of the method by which nodes are added up."""
    return "sum over whole numbers" if discrete else "adaptive quadrature"


def total(nodes: Nodes, discrete: bool) -> Estimate:
    """Return the sum or integral over nodes; an error below 1e-14 of it is rounding and not reported."""
    method = method_name(discrete)
    value = np.inf if np.isinf(nodes.error[0]) else fsum(nodes.dx * nodes.f[:, 0])
    if value == np.inf:
        return Estimate(value, 0.0, method, NO_MASS if discrete else "the integral is infinite")
    error = nodes.error[0] if nodes.error[0] > 1e-14 * abs(value) else 0.0
    return Estimate(value, error, method)


def grid(f: Callable[[Array], Array], *distributions: Distribution) -> Nodes | None:
    """Return nodes at which f (n,) -> (n,) or (n, m) is summed or integrated, None where they are too many to sum."""
    members = [m for p in distributions for m in components(p)]
    ends = [_end_or_infinity(e) for m in members for e in (m.support.low, m.support.high)]
    lower, upper = min(ends), max(ends)
    places = [(float(m.mean), float(np.sqrt(m.variance))) for m in members]
    if not members[0].support.discrete:
        return integrate(f, cut_pieces(lower, upper, ends, places), QuadratureTuning())
    tuning = SumTuning()
    first = max(lower, np.floor(min(mean - tuning.spread * sd for mean, sd in places)))
    last = min(upper, np.ceil(max(mean + tuning.spread * sd for mean, sd in places)) + tuning.spread)
    return None if last - first > tuning.most_values else _whole_numbers(f, (lower, upper), (first, last), tuning)


def _end_or_infinity(x: float) -> float:
    """Return the end of a support, with the largest float, which stands for no end, as infinity."""
    return x if abs(x) < np.finfo(float).max else float(np.copysign(np.inf, x))


def _whole_numbers(
    f: Callable[[Array], Array], ends: tuple[float, float], start: tuple[float, float], tuning: SumTuning
) -> Nodes:
    """Take the whole numbers of `start`, then runs of doubling length towards the ends until they add nothing.

    The error is the sum over the last run, where a tail is cut off.
    """
    (lower, upper), (first, last) = ends, start
    x = np.arange(first, last + 1)
    values = f(x).reshape(len(x), -1)  # (n, m)
    error = np.zeros(values.shape[1])
    for sign, edge, end in ((1, last, upper), (-1, first, lower)):
        length, added = float(len(x)), np.zeros_like(error)
        while sign * (end - edge) > 0 and len(x) < tuning.most_values:
            stop = sign * min(sign * end, sign * edge + length)
            more = np.arange(edge + sign, stop + sign, sign)
            tail = f(more).reshape(len(more), -1)
            x, values = np.concatenate([x, more]), np.concatenate([values, tail])
            added, edge, length = np.abs(tail).sum(axis=0), stop, 2 * length
            if (added <= tuning.negligible * np.abs(values).sum(axis=0)).all():
                break
        if sign * (end - edge) > 0:
            error += added
    return Nodes(x, np.ones(len(x)), values, error)


def _monte_carlo(terms: Terms, p: Distribution, q: Distribution, draws: int, random_state: Any) -> Estimate:
    """Return the mean of terms/m over draws from m = (p + q)/2, half of them from p and half from q.

    Drawing from m keeps the ratios p/m and q/m below 2, so that no draw has a huge weight.
    """
    rng = np.random.default_rng(random_state)
    means, variances = [], []
    for source in (p, q):
        with single_threaded_blas():  # small matrices: threads would only wait for each other
            x = source.sample(draws // 2, rng)
            u = _log_ratio(q.log_density(x), p.log_density(x))
        each = terms(2 * expit(-u), 2 * expit(u), u)
        with np.errstate(invalid="ignore"):
            means.append(each.mean())
            variances.append(each.var() / len(each))
    value = 0.5 * sum(means)
    error = 0.5 * float(np.sqrt(sum(variances))) if np.isfinite(value) else 0.0
    return Estimate(value, error, f"Monte Carlo, {2 * (draws // 2):,} draws")


def expectation(f: Callable[[Array], Array], p: Distribution, draws: int, random_state: Any) -> Estimate:
    """Return E f(x) for x from p, where f maps (n,) or (n, d) to (n,)."""
    nodes = grid(partial(weighted, f, p), p) if is_scalar(p) else None
    if nodes is not None:
        return total(nodes, discrete=is_discrete(p))
    with single_threaded_blas():
        each = f(p.sample(draws, np.random.default_rng(random_state)))
    return Estimate(each.mean(), each.std() / np.sqrt(draws), f"Monte Carlo, {draws:,} draws")


def weighted(f: Callable[[Array], Array], p: Distribution, x: Array) -> Array:
    """Return p(x) f(x), which is 0 where p has no mass, even if f is infinite there."""
    density = np.exp(p.log_density(x))
    with np.errstate(invalid="ignore", over="ignore"):
        values = np.where(density > 0, (density * f(x).T), 0.0)
    return values.T
