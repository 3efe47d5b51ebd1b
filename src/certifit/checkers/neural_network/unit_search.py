"""The most that one ReLU can gain, bounded from above by branch and bound over the directions of its weights.

For slopes v (n, k) that add up to 0, a unit of direction w, |w| = 1, and bias b gains |Σ vᵢ relu(w·xᵢ + b)|. For one
w the best b is found exactly: the sum is linear in b between rows, so that its norm is largest where the unit is
switched at a row, or where all rows are on. From w to w + δ no b gains more than

    Σ |vᵢ| |δ·(xᵢ - m)|  <=  sqrt(S δ'Mδ),    S = Σ |vᵢ|,  M = Σ |vᵢ| (xᵢ - m)(xᵢ - m)',

more (Cauchy & Schwarz), for any point m. So a box of directions about w is bounded by its middle and its widths along
the axes of M; boxes with the largest bounds are halved until these are close to what is gained, or work runs out.
Whatever the work was, the largest bound that is left holds for all directions. Columns that hardly vary cost little.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit.rows import Array


@dataclass(frozen=True)
class UnitSearchTuning:
    """How long boxes are halved."""

    close: float = 0.1  # relative distance of bound and gain at which nothing more is asked for
    boxes: int = 512  # halved at a time, at least; of more, a quarter
    entries: float = 1e7  # of projections of rows, in all
    bookkeeping: int = 400  # entries that a box itself is as much work as
    rounding: float = 1e-11  # of a gain, relative to the largest that rows could have


def best_gains(projections: Array, v: Array) -> Array:
    """The largest |Σ vᵢ relu(±(pᵢ + b))| over all b and both signs, for each line of projections (m, n)."""
    order = np.argsort(-projections, axis=1, kind="stable")
    p = np.take_along_axis(projections, order, axis=1)[:, :, None]
    slopes = v[order]  # (m, n, k)
    on = np.cumsum(slopes * p, axis=1) - np.cumsum(slopes, axis=1) * p  # with the unit switched at each row
    every = np.einsum("mn,nk->mk", projections, v)[:, None]  # with all rows on
    # relu(-z) = relu(z) - z, and a bias gains nothing where v adds up to 0.
    sizes = [np.sqrt((part**2).sum(axis=2)).max(axis=1) for part in (on, on - every, every)]
    return np.asarray(np.maximum.reduce(sizes))


def searched_gain(X: Array, v: Array, goal: float, tuning: UnitSearchTuning = UnitSearchTuning()) -> float:
    """An upper bound of the gain of any unit, as low as the work allows; below `goal` it need not be lower."""
    size = np.linalg.norm(v, axis=1)
    total = float(size.sum())
    centred = X - (size @ X) / max(total, 1e-300)
    spread, axes = np.linalg.eigh((centred * size[:, None]).T @ centred)
    spread, rows = np.maximum(spread, 0.0), centred @ axes
    whole = float(np.sqrt(total * spread[-1])) * (1 + 1e-9)
    slack, d = tuning.rounding * whole * len(X), X.shape[1]
    # Half of all directions is enough, because both signs are looked at: the last axis has the largest spread.
    middles, widths = np.zeros((1, d)), np.ones((1, d))
    middles[0, -1], widths[0, -1] = 0.5, 0.5
    bounds, best, work = np.full(1, np.inf), 0.0, 0.0
    while work < tuning.entries and bounds.max() > max(goal, best * (1 + tuning.close)):
        place = np.argsort(-bounds)
        count = max(tuning.boxes, len(place) // 4)
        chosen, kept = place[:count], place[count:]
        new, narrow = _halves(middles[chosen], widths[chosen], spread)
        low = np.linalg.norm(np.maximum(np.abs(new) - narrow, 0.0), axis=1)
        high = np.linalg.norm(np.abs(new) + narrow, axis=1)
        touching = (low <= 1) & (high >= 1)  # the others hold no direction of length 1
        new, narrow = new[touching], narrow[touching]
        gains = best_gains(new @ rows.T, v)
        work += len(new) * (v.size + tuning.bookkeeping)
        length = np.maximum(np.linalg.norm(new, axis=1), 1e-300)
        best = max(best, float((gains / length).max(initial=0.0)))
        far = np.sqrt(total * (narrow**2 @ spread)) * (1 + 1e-9)
        middles, widths = np.vstack([middles[kept], new]), np.vstack([widths[kept], narrow])
        bounds = np.concatenate([bounds[kept], gains + far + slack])
    return float(bounds.max(initial=0.0)) if len(bounds) else 0.0


def _halves(middles: Array, widths: Array, spread: Array) -> tuple[Array, Array]:
    """Both halves of each box, cut across the side that adds most to its bound."""
    cost = widths**2 * (spread + 1e-12 * spread[-1])
    side = cost.argmax(axis=1)
    lines = np.arange(len(middles))
    narrow = widths.copy()
    narrow[lines, side] *= 0.5
    step = np.zeros_like(middles)
    step[lines, side] = narrow[lines, side]
    return np.vstack([middles - step, middles + step]), np.vstack([narrow, narrow])
