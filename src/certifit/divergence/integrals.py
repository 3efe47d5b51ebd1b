"""Sums and integrals over what two distributions live on: counted, by quadrature, or by draws with an error bar."""

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
    """How far sums over whole numbers go."""

    most_values: int = 500_000  # whole numbers that are still summed one by one
    spread: int = 40  # standard deviations around the means at which sums begin: exp(-40) is below rounding
    negligible: float = 1e-17  # share of the sum below which a tail ends


def is_scalar(p: Distribution) -> bool:
    return not components(p)[0].support.vector


def is_discrete(p: Distribution) -> bool:
    return bool(components(p)[0].support.discrete)


def comparable(p: Distribution, q: Distribution) -> bool:
    """Whether the two have densities with respect to the same thing; an error where x differs in dimension."""
    if np.shape(p.mean) != np.shape(q.mean):
        raise DataError(
            got=f"distributions over x of shapes {np.shape(p.mean)} and {np.shape(q.mean)}",
            wanted="two distributions over the same x",
        )
    return is_discrete(p) == is_discrete(q)


def divergence_total(terms: Terms, p: Distribution, q: Distribution, draws: int, random_state: Any) -> Estimate:
    """Σ or ∫ of the terms over everywhere p or q live."""
    if not comparable(p, q):
        return _apart(terms, "disjoint supports: one is discrete, the other continuous")
    nodes = grid(partial(_terms_at, terms, p, q), p, q) if is_scalar(p) else None
    if nodes is None:
        return _monte_carlo(terms, p, q, draws, random_state)
    return total(nodes, discrete=is_discrete(p))


def _apart(terms: Terms, note: str) -> Estimate:
    """The value where nothing is shared: all of p, then all of q."""
    p, q, u = np.array([1.0, 0.0]), np.array([0.0, 1.0]), np.array([-np.inf, np.inf])
    return Estimate(fsum(terms(p, q, u)), note=note)


def _terms_at(terms: Terms, p: Distribution, q: Distribution, x: Array) -> Array:
    log_p, log_q = p.log_density(x), q.log_density(x)
    with np.errstate(over="ignore"):
        return terms(np.exp(log_p), np.exp(log_q), _difference(log_q, log_p))


def _difference(log_q: Array, log_p: Array) -> Array:
    """log q/p; 0 where neither lives."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(log_q) & np.isneginf(log_p), 0.0, log_q - log_p)


def method_name(discrete: bool) -> str:
    """How nodes are added up, in words."""
    return "sum over whole numbers" if discrete else "adaptive quadrature"


def total(nodes: Nodes, discrete: bool) -> Estimate:
    """The sum or integral over nodes; an error below 1e-14 of it is rounding, and not reported."""
    method = method_name(discrete)
    value = np.inf if np.isinf(nodes.error[0]) else fsum(nodes.dx * nodes.f[:, 0])
    if value == np.inf:
        return Estimate(value, 0.0, method, NO_MASS if discrete else "the integral is infinite")
    error = nodes.error[0] if nodes.error[0] > 1e-14 * abs(value) else 0.0
    return Estimate(value, error, method)


def grid(f: Callable[[Array], Array], *distributions: Distribution) -> Nodes | None:
    """Nodes at which f (n,) -> (n,) or (n, m) is summed or integrated; None where there are too many to sum."""
    members = [m for p in distributions for m in components(p)]
    ends = [_end(e) for m in members for e in (m.support.low, m.support.high)]
    lower, upper = min(ends), max(ends)
    places = [(float(m.mean), float(np.sqrt(m.variance))) for m in members]
    if not members[0].support.discrete:
        return integrate(f, cut_pieces(lower, upper, ends, places), QuadratureTuning())
    tuning = SumTuning()
    first = max(lower, np.floor(min(mean - tuning.spread * sd for mean, sd in places)))
    last = min(upper, np.ceil(max(mean + tuning.spread * sd for mean, sd in places)) + tuning.spread)
    return None if last - first > tuning.most_values else _whole_numbers(f, (lower, upper), (first, last), tuning)


def _end(x: float) -> float:
    return x if abs(x) < np.finfo(float).max else float(np.copysign(np.inf, x))


def _whole_numbers(
    f: Callable[[Array], Array], ends: tuple[float, float], start: tuple[float, float], tuning: SumTuning
) -> Nodes:
    """The whole numbers of `start`, and on towards the ends in runs that double in length until they add nothing.

    The error is the last run.
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
    """Mean of terms/m over draws from m = (p + q)/2, half from each: bounded wherever the terms are."""
    rng = np.random.default_rng(random_state)
    means, variances = [], []
    for source in (p, q):
        with single_threaded_blas():  # small matrices: threads would only wait for each other
            x = source.sample(draws // 2, rng)
            u = _difference(q.log_density(x), p.log_density(x))
        each = terms(2 * expit(-u), 2 * expit(u), u)
        with np.errstate(invalid="ignore"):
            means.append(each.mean())
            variances.append(each.var() / len(each))
    value = 0.5 * sum(means)
    error = 0.5 * float(np.sqrt(sum(variances))) if np.isfinite(value) else 0.0
    return Estimate(value, error, f"Monte Carlo, {2 * (draws // 2):,} draws")


def expectation(f: Callable[[Array], Array], p: Distribution, draws: int, random_state: Any) -> Estimate:
    """E f(x) for x from p, f (n,) or (n, d) -> (n,)."""
    nodes = grid(partial(weighted, f, p), p) if is_scalar(p) else None
    if nodes is not None:
        return total(nodes, discrete=is_discrete(p))
    with single_threaded_blas():
        each = f(p.sample(draws, np.random.default_rng(random_state)))
    return Estimate(each.mean(), each.std() / np.sqrt(draws), f"Monte Carlo, {draws:,} draws")


def weighted(f: Callable[[Array], Array], p: Distribution, x: Array) -> Array:
    """p(x) f(x), 0 where p has no mass, whatever f is there."""
    density = np.exp(p.log_density(x))
    with np.errstate(invalid="ignore", over="ignore"):
        values = np.where(density > 0, (density * f(x).T), 0.0)
    return values.T
