"""What a forest for amounts says beyond the mean: intervals by the jackknife+ after the bootstrap, and quantiles."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit.rows import Array, Block


def jackknife_intervals(model: Any, unseen: Array, coverage: float, block: Block) -> Array:
    """Intervals (n, t, 2) for the rows of a block, of each target by itself.

    `unseen` (trees, m) says which rows of the fit each tree did not see.
    """
    trees, at = model.trees_, model._leaves(block)
    said = trees.value[at + trees.first[:-1]]  # (n, trees, t)
    some = unseen.any(axis=0)
    residual = np.abs(model.oob_residual_[some]).reshape(int(some.sum()), -1)
    found = [
        _intervals_of_target(said[..., k], unseen[:, some], residual[:, k], coverage) for k in range(said.shape[2])
    ]
    return np.stack(found, axis=1)


def _intervals_of_target(said: Array, unseen: Array, residual: Array, coverage: float) -> Array:
    """Intervals (n, 2) of one target, from what trees say (n, trees) and the sizes of out-of-bag residuals (m,).

    With μ_i(x) the mean of the trees without row i and r_i the size of its out-of-bag residual, the ends are the
    ⌊(1-c)(m+1)⌋-th smallest μ_i(x) - r_i and the ⌈c(m+1)⌉-th smallest μ_i(x) + r_i (Kim, Xu & Barber 2020).
    """
    without = unseen.astype(np.float64)
    m, out = len(residual), np.empty((len(said), 2))
    high = int(np.ceil(coverage * (m + 1) * (1 - 1e-12)))  # 0.55 times 100 is more than 55 in floating point
    low = m + 1 - high
    step = max(1, 4_000_000 // max(m, 1))
    for start in range(0, len(said), step):
        mean = said[start : start + step] @ without / without.sum(axis=0)
        part = slice(start, start + step)
        out[part, 0] = np.sort(mean - residual, axis=1)[:, low - 1] if low >= 1 else -np.inf
        out[part, 1] = np.sort(mean + residual, axis=1)[:, high - 1] if high <= m else np.inf
    return out


def leaf_quantiles(model: Any, levels: Array, known: tuple[Array, Array, Array], block: Block) -> Array:
    """Quantiles (n, t, q) for the rows of a block, of each target by itself.

    `known` are targets (m, t), leaves and weights (m, trees) of the rows of the fit.
    Row i of the fit counts for x the mean over trees of its share of the leaf that x reaches, if it is in it.
    """
    y, at, weight = known
    here = model._leaves(block)
    shares = np.zeros((len(here), len(y)))
    for t in range(here.shape[1]):
        mass = np.bincount(at[:, t], weight[:, t])
        share = weight[:, t] / np.where(mass[at[:, t]] > 0, mass[at[:, t]], 1.0)
        shares += np.where(here[:, t, None] == at[None, :, t], share, 0.0)
    return np.stack([_weighted_quantiles(target, shares, levels) for target in y.T], axis=1)


def _weighted_quantiles(y: Array, shares: Array, levels: Array) -> Array:
    """Quantiles (n, q) of targets (m,) that count differently for each of n rows (n, m)."""
    order = np.argsort(y, kind="stable")
    running = np.cumsum(shares[:, order], axis=1)
    running /= running[:, -1:]
    found = np.stack([(running < level - 1e-12).sum(axis=1) for level in levels], axis=1)
    return y[order][np.minimum(found, len(y) - 1)]
