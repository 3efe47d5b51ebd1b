"""Sums over clusters that rows may enter and leave in any order, to the same last bit.

Between two Lloyd passes few rows change their cluster. It saves most additions to take these rows out of one sum and
add them to another, but ordinary floating-point sums would then depend on the way that led to a clustering. So each
term is split into a multiple of a coarse grid and a multiple of a fine one. The grids are so coarse that sums of a
whole block need no more than 53 bits: they never round, and their order does not matter (Demmel & Nguyen, Fast
reproducible floating-point summation, 2013).

Terms are w (x - anchor), not w x: an anchor is a point near its centre that stays where it is for many passes, so
that terms are small and nothing cancels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from certifit.rows import Array, Block, Sums


class LloydState(NamedTuple):
    """The parameters that Lloyd's algorithm updates."""

    centres: Array  # (k, d)
    anchors: Array  # (k, d) points near the centres about which each cluster is summed


@dataclass(frozen=True)
class ClusterSums(Sums):
    """What one pass over the rows measures of each cluster."""

    weight: Array  # (k,) Σ w
    sums: Array  # (k, d) Σ w (x - anchor)
    squares: Array  # (k,) Σ w |x - anchor|²


class Anchors(NamedTuple):
    """The points about which a pass sums."""

    points: Array  # (k, d)
    changed: Array  # (k,) bool, those that are not where they were in the last pass


class ExactSums(NamedTuple):
    """The sums of a block's clusters, kept from pass to pass.

    Rows that fit no grid (`off_grid`) are left out of `coarse_sums` and `fine_sums` and added anew in every pass.
    """

    coarse: float  # 3/2 2^52 steps of a grid on which the sum of all rows is exact
    fine: float  # the same for a second grid, which takes most of what terms are beside the first
    limit: float  # the largest (w |x - anchor|)² that fits the grids
    least: float  # the smallest weight that fits the grids: lighter rows would lose digits
    coarse_sums: Array  # (k, d) Σ w (x - anchor), its part on the coarse grid
    fine_sums: Array  # (k, d) its part on the fine grid
    square: Array  # (n,) w |x - anchor|² of each row
    off_grid: Array  # (n,) bool, rows beyond `limit` or `least`


def new_exact_sums(block: Block, k: int) -> ExactSums:
    """Choose grids from a few rows: 2^12 times their usual length still fits, and rounding is at 2^-62 of that."""
    n, d = block.X.shape
    some = slice(None, None, max(1, n // 64))
    w = block.w[some]
    with np.errstate(over="ignore"):
        lengths = np.sqrt((np.diff(block.X[some].astype(np.float64), axis=0) ** 2).sum(axis=1))
    lengths, w = lengths[lengths > 0], w[w > 0]
    usual = float(np.median(w)) if len(w) else 1.0
    top = int(np.frexp(usual * np.median(lengths))[1]) + 12 if len(lengths) else 0
    top = min(max(top, -500), 500)  # squares of numbers beyond it overflow or vanish
    bits = (n - 1).bit_length()
    return ExactSums(
        coarse=1.5 * 2.0 ** (top + bits + 1),
        fine=1.5 * 2.0 ** (top + 2 * bits - 51),
        limit=4.0**top,
        least=usual / 2**10,
        coarse_sums=np.empty((k, d)),
        fine_sums=np.empty((k, d)),
        square=np.zeros(n),
        off_grid=np.zeros(n, dtype=bool),
    )


def power_of_two(length: float) -> float:
    """Return the power of two that scales this length to between 1/2 and 1: such a scale changes no digit.

    >>> power_of_two(6.0)
    0.125
    """
    # The largest power of two that is a float scales the smallest numbers to 2⁻⁵¹ at least.
    return 2.0 ** min(1023, -int(np.frexp(length)[1])) if 0 < length < np.inf else 1.0
