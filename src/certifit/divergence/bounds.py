"""Bounds on the KL divergence between mixtures f = Σ π_a f_a and g = Σ ω_b g_b, from pairs of their members.

The divergence is a difference of two log ratios, KL(f, g) = Σ π_a (E_{f_a} log f/f_a - E_{f_a} log g/f_a), and each
of them, for f as for g, has a bound on either side (used in this way by Durrieu, Thiran & Kelly 2012):
    lower  log Σ_b ω_b exp(-KL(f_a, g_b))                                    (Hershey & Olsen 2007)
    upper  min_s 1/s log Σ_b ω_b^s ∫ f_a^(1-s) g_b^s,  0 < s <= 1            (Jensen, and (Σ z)^s <= Σ z^s)
The integral is exp(-s D_{1-s}(f_a, g_b)) with a Rényi divergence D. For single members s -> 0 is exact.
A second upper bound, also Hershey & Olsen's, is the least cost of moving the weights of f to those of g.
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
    """`lower` <= KL <= `upper`, both proved; `approximation` is Hershey & Olsen's variational one, not a bound.

    >>> from certifit.divergence import kl_bounds
    >>> from certifit.families import Gaussian
    >>> found = kl_bounds(Gaussian(0.0, 1.0), Gaussian(1.0, 1.0))  # of single members KL is known: 1/2
    >>> found.lower <= 0.5 <= found.upper
    True
    """

    lower: float
    upper: float
    approximation: float


def kl_bounds(f: Distribution, g: Distribution) -> Bounds:
    """Return bounds on KL(f, g) for mixtures or single members, without draws or integrals.

    Parameters
    ----------
    f, g : members of families or mixtures of them

    >>> from certifit.divergence import Mixture
    >>> from certifit.families import Gaussian
    >>> f = Mixture([0.5, 0.5], [Gaussian(-3.0, 1.0), Gaussian(3.0, 1.0)])
    >>> g = Mixture([0.5, 0.5], [Gaussian(-3.0, 1.0), Gaussian(4.0, 1.0)])
    >>> found = kl_bounds(f, g)
    >>> bool(found.lower <= kl(f, g) <= found.upper)
    True
    """
    (pi, f_members), (omega, g_members) = _weights_and_members(f), _weights_and_members(g)
    with single_threaded_blas():  # small matrices: threads would only wait for each other
        within_f, f_to_g = _pairwise_kl(f_members, f_members), _pairwise_kl(f_members, g_members)
        f_upper, g_upper = _upper_log_ratio(pi, f_members, f_members), _upper_log_ratio(omega, f_members, g_members)
    f_lower, g_lower = _lower_log_ratio(pi, within_f), _lower_log_ratio(omega, f_to_g)
    upper = min(float(pi @ (f_upper - g_lower)), _transport_bound(pi, omega, f_to_g))
    lower = max(0.0, float(pi @ (f_lower - g_upper)))
    return Bounds(min(lower, upper), upper, float(pi @ (f_lower - g_lower)))


def _weights_and_members(f: Distribution) -> tuple[Array, tuple[Family, ...]]:
    weights = f.weights[f.weights > 0] if isinstance(f, FiniteMixture) else np.ones(1)
    return weights, components(f)


def _pairwise_kl(f: tuple[Family, ...], g: tuple[Family, ...]) -> Array:
    """Return KL(f_a, g_b) of every pair of members."""
    return np.array([[float(kl(a, b)) for b in g] for a in f])


def _lower_log_ratio(omega: Array, divergences: Array) -> Array:
    return logsumexp(np.log(omega) - divergences, axis=1)


def _upper_log_ratio(omega: Array, f: tuple[Family, ...], g: tuple[Family, ...]) -> Array:
    best = np.zeros(len(f))  # the bound at s = 1
    for s in (0.02, 0.1, 0.3, 0.6):
        overlap = -s * np.array([[float(renyi(a, b, 1 - s)) for b in g] for a in f])
        best = np.minimum(best, logsumexp(s * np.log(omega) + overlap, axis=1) / s)
    return best


def _transport_bound(pi: Array, omega: Array, divergences: Array) -> float:
    """Minimise KL(φ, ψ) + Σ φ_ab KL(f_a, g_b) over joint weights φ (rows sum to π) and ψ (columns sum to ω)."""
    if np.isinf(divergences).all(axis=1).any():
        return np.inf
    log_pi, log_omega = np.log(pi)[:, None], np.log(omega)
    log_psi = log_pi + log_omega
    for _ in range(200):  # sweeps; each lowers the bound
        log_phi = log_psi - divergences
        log_phi = log_pi + log_phi - logsumexp(log_phi, axis=1, keepdims=True)
        reached = logsumexp(log_phi, axis=0)  # -inf for a member of g that no member of f moves weight to
        log_psi = log_omega + log_phi - np.where(np.isfinite(reached), reached, 0.0)
    phi = np.exp(log_phi)
    cost = (phi[phi > 0] * divergences[phi > 0]).sum()
    return float(rel_entr(phi, np.exp(log_psi)).sum() + cost)
