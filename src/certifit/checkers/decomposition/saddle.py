"""Whether probabilistic PCA has stopped at a saddle: a point that EM does not leave, and that is no maximum.

At such a point another direction u has more variance than one of the components, and turning the component towards u
raises the likelihood. With W + ε u vᵀ in place of W, C = σ² I + W Wᵀ on the observed entries x of a row,
a = C⁻¹ x, and z, M its posterior, the second derivative of the row's log-likelihood by ε is vᵀKv,
    K = (α² - P) I + T Tᵀ + (P - α²) Q - P z zᵀ - α (z Tᵀ + T zᵀ),
    α = u·a,  P = uᵀC⁻¹u,  T = WᵀC⁻¹u,  Q = WᵀC⁻¹W = I - σ² M⁻¹.
u are the directions in which the residuals a are largest, found from their products with some random columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from certifit.checkers.decomposition.code_posteriors import RowPosteriors, pieces, row_posteriors
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


def upward_direction(W: Array, noise: float, residuals: Array, curves: Callable[[Array], Array]) -> WayUp:
    """Return the steepest way up along the directions of the largest residuals.

    `residuals` is the mean of a aᵀ Ω, and `curves` gives the mean K (m, k, k) for directions (d, m).
    """
    U = _candidates(W, noise, residuals)
    return max((_way_up(W, noise, u, K) for u, K in zip(U.T, curves(U), strict=True)), key=lambda way: way.gain)


def _candidates(W: Array, noise: float, residuals: Array, most: int = 8) -> Array:
    """Return the leading direction of the residuals, and others that may have more variance than a component.

    At a maximum on complete rows every component has more variance than any direction beside them; with missing
    entries directions with half as much are looked at too.
    """
    U, values, _ = np.linalg.svd(residuals, full_matrices=False)
    d, m = residuals.shape
    # Random columns have about √m of their length along any direction; unit vectors have 1.
    variances = values * noise**2 / (np.sqrt(m) if m < d else 1.0)
    least = float(np.linalg.eigvalsh(W.T @ W)[0]) + noise
    count = int((variances[:most] > least / 2).sum())
    return U[:, : max(1, count)]


def _way_up(W: Array, noise: float, u: Array, K: Array) -> WayUp:
    values, vectors = np.linalg.eigh(K)
    v = vectors[:, -1]
    length = float(np.sqrt(((W @ v) ** 2).sum() + noise))
    return WayUp(u, v, length, 0.5 * max(0.0, float(values[-1])) * length**2)


def curvature(mean: Array, W: Array, noise: float, u: Array, block: Block) -> Array:
    """Return Σ w K (k, k) of the rows of a block for one direction u (d,)."""
    return curvatures(mean, W, noise, u[:, None], block)[0]


def curvatures(mean: Array, W: Array, noise: float, U: Array, block: Block) -> Array:
    """Return Σ w K (m, k, k) of the rows of a block for directions U (d, m)."""
    k = W.shape[1]
    total = np.zeros((U.shape[1], k, k))
    for X, w in pieces(block, k):
        found = row_posteriors(mean, W, noise, X)
        inverse = np.linalg.inv(found.M)
        for i, u in enumerate(U.T):
            total[i] += _curvature(found, inverse, W, noise, u, w)
    return total


def _curvature(found: RowPosteriors, inverse: Array, W: Array, noise: float, u: Array, w: Array) -> Array:
    g = (found.here * u) @ W
    T = (inverse @ g[..., None])[..., 0]
    P = (found.here @ u**2 - (T * g).sum(axis=1)) / noise
    alpha = (found.Z @ u - (g * found.z).sum(axis=1)) / noise
    bend = w * (P - alpha**2)
    mixed = (w * alpha)[:, None] * found.z
    total = float((w * (alpha**2 - P) + bend).sum()) * np.eye(W.shape[1])
    total -= noise * np.tensordot(bend, inverse, axes=1)
    total += (w[:, None] * T).T @ T - ((w * P)[:, None] * found.z).T @ found.z
    total -= mixed.T @ T + T.T @ mixed
    return total
