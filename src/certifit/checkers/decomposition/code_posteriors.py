"""The posterior of the codes given a row's observed entries, by the textbook formula, with a matrix for every row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from certifit.checkers.plain.blocks import dense
from certifit.rows import Array, Block

LOG_2PI = float(np.log(2 * np.pi))


class RowPosteriors(NamedTuple):
    """The posterior of the codes of some rows, and their likelihood."""

    here: Array  # (rows, d) 1 where an entry is observed, 0 where not
    Z: Array  # (rows, d) x - μ, 0 where missing
    M: Array  # (rows, k, k) σ² I + Σ_observed w_j w_jᵀ
    z: Array  # (rows, k) M⁻¹ Wᵀ (x - μ)
    log_likelihood: Array  # (rows,)


def row_posteriors(mean: Array, W: Array, noise: float, X: Array) -> RowPosteriors:
    """Return the posteriors of rows with a matrix M for every row."""
    d, k = W.shape
    here = (~np.isnan(X)).astype(np.float64)
    Z = np.where(here > 0, X - mean, 0.0)
    pairs = (W[:, :, None] * W[:, None, :]).reshape(d, k * k)
    M = (here @ pairs).reshape(len(X), k, k) + noise * np.eye(k)
    b = Z @ W
    z = np.linalg.solve(M, b[..., None])[..., 0]
    n = here.sum(axis=1)
    distance = ((Z**2).sum(axis=1) - (b * z).sum(axis=1)) / noise
    log_det = (n - k) * np.log(noise) + np.linalg.slogdet(M)[1]
    return RowPosteriors(here, Z, M, z, -0.5 * (n * LOG_2PI + log_det + distance))


def pieces(block: Block, k: int) -> list[tuple[Array, Array]]:
    """Return rows of positive weight with an observed entry, so few at a time that matrices fill 2**22 numbers."""
    X, w = dense(block.X), block.w
    some = (w > 0) & ~np.isnan(X).all(axis=1)
    X, w = X[some], w[some]
    step = max(1, 2**22 // ((k + 1) ** 2 + X.shape[1]))
    return [(X[i : i + step], w[i : i + step]) for i in range(0, len(X), step)]
