"""The KL divergence and related measures, for probability vectors, members of families and mixtures.

Two members of one family have a closed form. Other pairs take a sum (whole numbers), adaptive quadrature (real
numbers) or Monte Carlo with a standard error (vectors). References: Cover & Thomas, Elements of Information Theory
(2006), chapters 2 and 8; van Erven & Harremoës, Rényi divergence and Kullback-Leibler divergence (2014).
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, TypeGuard

import numpy as np

from certifit.divergence.integrals import NO_MASS, comparable, divergence_total, expectation
from certifit.divergence.mixtures import Distribution, FiniteMixture, components
from certifit.divergence.terms import (
    Terms,
    affinity_change_terms,
    affinity_terms,
    jensen_shannon_terms,
    kl_terms,
    squared_hellinger_terms,
    total_variation_terms,
)
from certifit.divergence.value import Divergence, Estimate
from certifit.divergence.vectors import probability_vector, vector_cross_entropy, vector_pair, vector_total
from certifit.exceptions import DataError
from certifit.families import Family
from certifit.rows import Array

DRAWS = 100_000


def kl(p: Any, q: Any, *, draws: int = DRAWS, random_state: Any = 0) -> Divergence:
    """Return the Kullback-Leibler divergence E_p log p(x)/q(x), in nats.

    Parameters
    ----------
    p, q : two probability vectors over the same entries, or two distributions: members of families or mixtures
    draws, random_state : for Monte Carlo, which is used for vectors x without a closed form

    Vectors are not normalised: one that does not sum to one is refused. Conventions: 0 ln 0/0 = 0, 0 ln 0/q = 0 and
    p ln p/0 = inf.

    >>> kl([0.5, 0.5, 0.0], [0.25, 0.75, 0.0])
    0.14384103622589045
    >>> kl([0.5, 0.5], [1.0, 0.0])
    inf (supports differ: p[1] = 0.5, q[1] = 0)
    >>> from certifit.families import Gaussian, Poisson
    >>> kl(Gaussian(0.0, 1.0), Gaussian(1.0, 1.0))
    0.5
    >>> kl(Poisson(3.0), Gaussian(3.0, 3.0))
    inf (disjoint supports: one is discrete, the other continuous)
    """
    if not _is_vectors(p, q) and _same_family(p, q):
        value = p.kl(q)
        return Divergence(value, note=NO_MASS if math.isinf(value) else "")
    return _divergence(kl_terms, p, q, draws, random_state)


def jensen_shannon(p: Any, q: Any, *, draws: int = DRAWS, random_state: Any = 0) -> Divergence:
    """Return the mean of KL(p, m) and KL(q, m), m = (p + q)/2: symmetric, at most ln 2.

    Parameters
    ----------
    p, q, draws, random_state : as for `kl`

    >>> jensen_shannon([1.0, 0.0], [0.0, 1.0])
    0.6931471805599453 (disjoint supports: p and q share no entry)
    """
    return _divergence(jensen_shannon_terms, p, q, draws, random_state)


def total_variation(p: Any, q: Any, *, draws: int = DRAWS, random_state: Any = 0) -> Divergence:
    """Return the largest difference in the probability of an event, ½ Σ|p - q| <= 1.

    Parameters
    ----------
    p, q, draws, random_state : as for `kl`

    >>> total_variation([0.5, 0.5], [0.25, 0.75])
    0.25
    """
    return _divergence(total_variation_terms, p, q, draws, random_state)


def hellinger(p: Any, q: Any, *, draws: int = DRAWS, random_state: Any = 0) -> Divergence:
    """Return the Hellinger distance sqrt(½ Σ(√p - √q)²), a metric of at most 1.

    Parameters
    ----------
    p, q, draws, random_state : as for `kl`

    >>> hellinger([1.0, 0.0], [0.36, 0.64])  # 1 - 0.6 = 0.4, and its root
    0.6324555320336759
    """
    if not _is_vectors(p, q) and _has_closed_renyi(p, q):
        square: Estimate = Estimate(-math.expm1(-0.5 * _closed_renyi(p, q, 0.5)))
    else:
        square = _divergence(squared_hellinger_terms, p, q, draws, random_state)
    root = math.sqrt(square)
    error = square.error / (2 * root) if root > 0 else math.sqrt(square.error)
    return Divergence(root, error, square.method, square.note)


def renyi(p: Any, q: Any, alpha: float, *, draws: int = DRAWS, random_state: Any = 0) -> Divergence:
    """Return the Rényi divergence log(Σ p^α q^(1-α))/(α - 1) of order α > 0; α = 1 is `kl`.

    Parameters
    ----------
    p, q, draws, random_state : as for `kl`
    alpha : the order, above 0

    >>> from certifit.families import Gaussian
    >>> renyi(Gaussian(0.0, 1.0), Gaussian(1.0, 1.0), 0.5)  # α (difference of means)²/2
    0.25
    """
    if not 0 < alpha < math.inf:
        raise DataError(got=f"alpha = {alpha:g}", wanted="a finite order above 0")
    if alpha == 1:
        return kl(p, q, draws=draws, random_state=random_state)
    if not _is_vectors(p, q) and _has_closed_renyi(p, q):
        return Divergence(_closed_renyi(p, q, alpha))
    if alpha < 0.5:  # (1-α) D_α(p, q) = α D_{1-α}(q, p), which keeps the digits that a small α would cost
        other = renyi(q, p, 1 - alpha, draws=draws, random_state=random_state)
        share = alpha / (1 - alpha)
        return Divergence(share * other, share * other.error, other.method, other.note)
    sign = math.copysign(1.0, alpha - 1)
    change = _divergence(affinity_change_terms(alpha), p, q, draws, random_state)
    if sign * change > -0.5:
        value, slope = math.log1p(sign * change), 1 / (1 + sign * change)
    else:  # p and q hardly overlap: sum the overlap itself, not its difference from 1
        change = _divergence(affinity_terms(alpha), p, q, draws, random_state)
        value, slope = (math.log(change), 1 / change) if change > 0 else (-math.inf, 0.0)
    return Divergence(value / (alpha - 1), slope * change.error / abs(alpha - 1), change.method, change.note)


def cross_entropy(p: Any, q: Any, *, draws: int = DRAWS, random_state: Any = 0) -> Estimate:
    """Return -E_p log q(x), the mean code length of q for x from p, in nats.

    Parameters
    ----------
    p, q, draws, random_state : as for `kl`

    Densities may exceed one, so this may be negative. It equals entropy(p) + kl(p, q), and also exists for a discrete
    p and a continuous q.

    >>> round(cross_entropy([0.5, 0.5], [0.25, 0.75]) - entropy([0.5, 0.5]), 12)  # kl
    0.143841036226
    """
    if _is_vectors(p, q):
        return vector_cross_entropy(*vector_pair(p, q))
    if comparable(p, q) and _same_family(p, q):
        return Estimate(p.entropy() + p.kl(q))
    return expectation(partial(_minus_log_density, q), p, draws, random_state)


def entropy(p: Any, *, draws: int = DRAWS, random_state: Any = 0) -> Estimate:
    """Return -E log p(x) in nats, for densities the differential entropy, which may be negative.

    Parameters
    ----------
    p, draws, random_state : as for `kl`

    >>> entropy([0.5, 0.25, 0.25]) / np.log(2)  # bits
    1.5
    """
    if isinstance(p, Family):
        return Estimate(p.entropy())
    if isinstance(p, FiniteMixture):
        return expectation(partial(_minus_log_density, p), p, draws, random_state)
    p = probability_vector(p)
    return vector_cross_entropy(p, p)


def _minus_log_density(q: Distribution, x: Array) -> Array:
    return -q.log_density(x)


def _is_distribution(p: Any) -> TypeGuard[Distribution]:
    return isinstance(p, Family | FiniteMixture)


def _is_vectors(p: Any, q: Any) -> bool:
    """Return True for two vectors and False for two distributions, and refuse one of each."""
    if _is_distribution(p) != _is_distribution(q):
        raise DataError(
            got=f"p of type {type(p).__name__} and q of type {type(q).__name__}",
            wanted="two probability vectors, or two distributions",
            fix="A vector of probabilities is Categorical(p) as a distribution.",
        )
    return not _is_distribution(p)


def _same_family(p: Distribution, q: Distribution) -> bool:
    """Return whether both are members of one family, with the same known parameters and dimension."""
    if not (isinstance(p, Family) and type(p) is type(q)):
        return False
    shapes = [{name: np.shape(value) for name, value in member.parameters.items()} for member in (p, q)]
    return shapes[0] == shapes[1] and all(np.array_equal(getattr(p, name), getattr(q, name)) for name in p.known)


def _has_closed_renyi(p: Distribution, q: Distribution) -> bool:
    """Return whether Rényi divergences have a closed form, which they lack where η is infinite."""
    if not (isinstance(p, Family) and isinstance(q, Family) and _same_family(p, q)):
        return False
    try:
        return bool(np.isfinite(p.natural).all() and np.isfinite(q.natural).all())
    except DataError:
        return False


def _closed_renyi(p: Family, q: Family, alpha: float) -> float:
    """Return D_α(p, q) from the member m with natural parameters α η_p + (1-α) η_q, proportional to p^α q^(1-α).

    (1-α) D_α(p, q) = α KL(m, p) + (1-α) KL(m, q). Nothing large is subtracted, and an error in m counts squared.
    """
    eta = alpha * p.natural + (1 - alpha) * q.natural
    try:
        m = type(p).from_natural(eta, **p.known_values)
    except DataError:  # α > 1 can leave the family: the integral is infinite
        return math.inf
    return m.kl(q) + alpha / (1 - alpha) * m.kl(p)


def _divergence(terms: Terms, p: Any, q: Any, draws: int, random_state: Any) -> Divergence:
    """Add up the terms over the entries of two vectors or the supports of two distributions."""
    if _is_vectors(p, q):
        value = vector_total(terms, *vector_pair(p, q))
    else:
        value = divergence_total(terms, p, q, draws, random_state)
        if math.isinf(value) and comparable(p, q) and _support_words(p) != _support_words(q):
            note = f"supports differ: p has {_support_words(p)}, q has {_support_words(q)}"
            value = Estimate(value, 0.0, value.method, note)
    return Divergence(value, value.error, value.method, value.note)


def _support_words(p: Distribution) -> str:
    return " and ".join(sorted({m.support.words for m in components(p)}))
