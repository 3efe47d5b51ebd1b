"""Whether nodes say the medians of their rows: half of the weight on either side, in the middle where several do.

Between two rows every number is a median, with the same sum of distances, as where half of the weight is exactly
below. The middle is what trees say there, ours and scikit-learn's; of weights that are no whole numbers rounding
decides whether it is half, so that any median will do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit.checkers.plain.dual_points import EPS
from certifit.checkers.tree.plain_tree import PlainTree
from certifit.core import Check
from certifit.rows import Array, Block, Largest, Sums


@dataclass(frozen=True)
class MedianSums(Sums):
    """Of the rows that pass each of m nodes, for t targets: what lies on either side of the claimed median v."""

    size: Array  # (m, t) Σ w |y - v|
    below: Array  # (m, t) Σ w of y < v
    above: Array  # (m, t) Σ w of y > v
    weight: Array  # (m, t) Σ w
    lower: Largest  # (m, t) the largest y below v
    upper: Largest  # (m, t) minus the smallest y above v
    parts: float  # how much of the weights is no whole number


def median_sums(tree: PlainTree, value: Array, y: Array, block: Block) -> MedianSums:
    """What a block's rows add, for claimed medians (m, t) and targets (n, t)."""
    size, below, above, weight = (np.zeros(value.shape) for _ in range(4))
    lower, upper = np.full(value.shape, -np.inf), np.full(value.shape, -np.inf)
    for rows, node in tree.levels(block):
        amounts, w = y[rows], np.broadcast_to(block.w[rows, None], y[rows].shape)
        away = amounts - value[node]
        for total, part in ((size, np.abs(away)), (below, away < 0), (above, away > 0), (weight, np.ones_like(away))):
            for j in range(value.shape[1]):
                total[:, j] += np.bincount(node, w[:, j] * part[:, j], len(value))
        for nearest, side, sign in ((lower, away < 0, 1.0), (upper, away > 0, -1.0)):
            np.maximum.at(nearest, node, np.where(side & (w > 0), sign * amounts, -np.inf))
    parts = float(np.abs(block.w - np.round(block.w)).sum())
    return MedianSums(size, below, above, weight, Largest(lower), Largest(upper), parts)


def median_checks(found: MedianSums, value: Array, rounding: float) -> tuple[Check, Check]:
    """Whether v (m, t) are medians, up to this rounding of a sum of weights, and the middle of several."""
    heavy = np.where(found.weight > 0, found.weight, 1.0)
    beside = float((np.maximum(found.below, found.above) / heavy).max(initial=0.0))
    low = np.where(2 * found.below == heavy, found.lower.value, value)
    high = np.where(2 * found.above == heavy, -found.upper.value, value)
    several = np.isfinite(low) & np.isfinite(high) & (low < high) & (found.parts == 0)
    with np.errstate(invalid="ignore"):
        off = np.where(several, np.abs(value - (low / 2 + high / 2)), 0.0)
        allowed = 8 * EPS * np.maximum(np.abs(low), np.abs(high)) + np.finfo(float).tiny
        aside = float(np.where(several, off / allowed, 0.0).max(initial=0.0))
    return (
        Check("share of a node's weight on one side of its median", beside, 0.5 + rounding),
        Check("medians off the middle of several by, of what rounding allows", aside, 1.0),
    )
