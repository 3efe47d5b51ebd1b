"""Bounds on the KL divergence between mixtures f = Σ π_a f_a and g = Σ ω_b g_b, from pairs of their members.

What one member gains from a mixture, E_{f_a} log g/f_a, lies between
    below:  log Σ_b ω_b exp(-KL(f_a, g_b))                                   (Hershey & Olsen 2007)
    above:  min_s 1/s log Σ_b ω_b^s ∫ f_a^(1-s) g_b^s,  0 < s <= 1           (Jensen, and (Σ z)^s <= Σ z^s)
and KL(f, g) = Σ π_a (E_{f_a} log f/f_a - E_{f_a} log g/f_a). The integral is a Rényi
divergence, exp(-s D_{1-s}(f_a, g_b)). For single members s -> 0 is exact.
Bounds on both sides of this difference: Durrieu, Thiran & Kelly (2012).
A second upper bound is Hershey & Olsen's: the cheapest way to move the weights of f to those of g.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp, rel_entr

from certifit.divergence.measures import kl, renyi
from certifit.divergence.mixtures import Distribution, FiniteMixture, components
from certifit.families import Family
from certifit.rows import Array
from certifit.rows.threads import single_threaded_blas


class Bounds(NamedTuple):
    """`lower` <= KL <= `upper`, both proved; `approximation` is Hershey & Olsen's variational one, not a bound."""

    lower: float
    upper: float
    approximation: float


def kl_bounds(f: Distribution, g: Distribution) -> Bounds:
    """Bounds on KL(f, g) for mixtures (or single members), without draws or integrals.

    >>> from certifit.divergence import Mixture
    >>> from certifit.families import Gaussian
    >>> f = Mixture([0.5, 0.5], [Gaussian(-3.0, 1.0), Gaussian(3.0, 1.0)])
    >>> g = Mixture([0.5, 0.5], [Gaussian(-3.0, 1.0), Gaussian(4.0, 1.0)])
    >>> found = kl_bounds(f, g)
    >>> bool(found.lower <= kl(f, g) <= found.upper)
    True
    """
    (pi, f_members), (omega, g_members) = _parts(f), _parts(g)
    with single_threaded_blas():  # small matrices: threads would only wait for each other
        inside, across = _pairs(f_members, f_members), _pairs(f_members, g_members)
        own_above, above = _above(pi, f_members, f_members), _above(omega, f_members, g_members)
    own_below, below = _below(pi, inside), _below(omega, across)
    upper = min(float(pi @ (own_above - below)), _transport(pi, omega, across))
    lower = max(0.0, float(pi @ (own_below - above)))
    return Bounds(min(lower, upper), upper, float(pi @ (own_below - below)))


def _parts(f: Distribution) -> tuple[Array, tuple[Family, ...]]:
    weights = f.weights[f.weights > 0] if isinstance(f, FiniteMixture) else np.ones(1)
    return weights, components(f)


def _pairs(f: tuple[Family, ...], g: tuple[Family, ...]) -> Array:
    """KL of every member of f from every member of g."""
    return np.array([[float(kl(a, b)) for b in g] for a in f])


def _below(omega: Array, divergences: Array) -> Array:
    return logsumexp(np.log(omega) - divergences, axis=1)


def _above(omega: Array, f: tuple[Family, ...], g: tuple[Family, ...]) -> Array:
    best = np.zeros(len(f))  # what s = 1 gives
    for s in (0.02, 0.1, 0.3, 0.6):
        overlap = -s * np.array([[float(renyi(a, b, 1 - s)) for b in g] for a in f])
        best = np.minimum(best, logsumexp(s * np.log(omega) + overlap, axis=1) / s)
    return best


def _transport(pi: Array, omega: Array, divergences: Array) -> float:
    """min over joint weights φ (rows sum to π) and ψ (columns sum to ω) of KL(φ, ψ) + Σ φ_ab KL(f_a, g_b)."""
    if np.isinf(divergences).all(axis=1).any():
        return np.inf
    log_pi, log_omega = np.log(pi)[:, None], np.log(omega)
    log_psi = log_pi + log_omega
    for _ in range(200):  # sweeps; each lowers the bound
        log_phi = log_psi - divergences
        log_phi = log_pi + log_phi - logsumexp(log_phi, axis=1, keepdims=True)
        reached = logsumexp(log_phi, axis=0)  # -inf where no member of f comes near
        log_psi = log_omega + log_phi - np.where(np.isfinite(reached), reached, 0.0)
    phi = np.exp(log_phi)
    cost = (phi[phi > 0] * divergences[phi > 0]).sum()
    return float(rel_entr(phi, np.exp(log_psi)).sum() + cost)
