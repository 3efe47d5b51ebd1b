"""Whether probabilistic PCA has stopped at a saddle: a point that EM does not leave, and that is no maximum.

At such a point another direction u has more variance than one of the components, and turning the component towards u
raises the likelihood. With W + ε u vᵀ in place of W, C = σ² I + W Wᵀ on the observed entries x of a row,
a = C⁻¹ x, and z, M its posterior, the second derivative of the row's log-likelihood by ε is vᵀKv,
    K = (α² - P) I + T Tᵀ + (P - α²) Q - P z zᵀ - α (z Tᵀ + T zᵀ),
    α = u·a,  P = uᵀC⁻¹u,  T = WᵀC⁻¹u,  Q = WᵀC⁻¹W = I - σ² M⁻¹.
u is the direction in which the residuals a are largest, found from their products with some random columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from certifit.checkers.decomposition.code_posteriors import pieces, row_posteriors
from certifit.rows import Array, Block


class WayUp(NamedTuple):
    """The direction u vᵀ in which W can be moved so that the likelihood curves up most."""

    u: Array  # (d,) of length 1
    v: Array  # (k,) of length 1
    length: float  # of a step from the component to the direction
    gain: float  # curvature times half the square of that length: about what can be gained, in nats a row


def random_columns(d: int, most: int = 32) -> Array:
    """Return random columns Ω (d, m), or all unit vectors where d is small."""
    return np.eye(d) if d <= most else np.random.default_rng(0).normal(size=(d, most))


def upward_direction(W: Array, noise: float, residuals: Array, curve: Callable[[Array], Array]) -> WayUp:
    """Return the steepest way up along the direction of the largest residuals; `curve` gives the mean K for a u."""
    u = np.linalg.svd(residuals, full_matrices=False)[0][:, 0]
    values, vectors = np.linalg.eigh(curve(u))
    v = vectors[:, -1]
    length = float(np.sqrt(((W @ v) ** 2).sum() + noise))
    return WayUp(u, v, length, 0.5 * max(0.0, float(values[-1])) * length**2)


def curvature(mean: Array, W: Array, noise: float, u: Array, block: Block) -> Array:
    """Return Σ w K (k, k) of the rows of a block."""
    k = W.shape[1]
    total = np.zeros((k, k))
    for X, w in pieces(block, k):
        found = row_posteriors(mean, W, noise, X)
        g = (found.here * u) @ W
        inverse = np.linalg.inv(found.M)
        T = (inverse @ g[..., None])[..., 0]
        P = (found.here @ u**2 - (T * g).sum(axis=1)) / noise
        alpha = (found.Z @ u - (g * found.z).sum(axis=1)) / noise
        bend = w * (P - alpha**2)
        mixed = (w * alpha)[:, None] * found.z
        total += float((w * (alpha**2 - P) + bend).sum()) * np.eye(k) - noise * np.tensordot(bend, inverse, axes=1)
        total += (w[:, None] * T).T @ T - ((w * P)[:, None] * found.z).T @ found.z
        total -= mixed.T @ T + T.T @ mixed
    return total
