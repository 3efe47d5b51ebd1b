"""Bounds on distances between rows and centres that spare most comparisons.

For every row two numbers are kept (Hamerly, Making k-means even faster, 2010): `upper`, at least the distance to its
own centre, and `lower`, at most the distance to any other. When centres move, the triangle inequality widens both by
how far. While upper < lower, or upper is below half the distance from the own centre to the next, the row's label
cannot change, and the row is not even read. The other rows are compared with the centres in float32, for which the
centres are shifted and scaled to lengths near 1, and bounds on the rounding error say where that is not enough.

Everything here is on the safe side of rounding; the loops that use it are in `lloyd_loops`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from certifit.cluster.exact_sums import Anchors, LloydState, power_of_two
from certifit.cluster.leading_directions import LeadingDirections, mostly_inside
from certifit.cluster.lloyd_loops import EPS
from certifit.rows import Array


class RowBounds(NamedTuple):
    """What is known of each row's distances, kept from pass to pass."""

    labels: Array  # (n,) int32, the nearest centre
    upper: Array  # (n,) at least the distance to it
    lower: Array  # (n,) at most that to any other; of sketched rows, only `lower - upper` bounds the difference


def new_row_bounds(n: int) -> RowBounds:
    """Return bounds that know nothing: every row has to be compared."""
    return RowBounds(np.zeros(n, np.int32), np.full(n, np.inf), np.zeros(n))


class ScaledCentres(NamedTuple):
    """The centres c, and z = (c - shift) * scale in float32 for products with rows."""

    centres: Array  # (k, d)
    shift: Array  # (d,) near the centres' mean
    scale: float  # a power of two that brings the centres' lengths near 1
    small: Array  # (k, p) float32, z (p = d) or its coordinates in p leading directions
    half: Array  # (k,) float32, |z|²/2
    norms: Array  # (k,) at least |c - shift|
    reach: float  # at least the greatest |z|
    roundings: float  # in a product of row and centre
    outside: float  # at least the greatest length of a z outside the leading directions
    apart: Array  # (k, k) at least the lengths of differences of z outside them; (0, 0) where all are used


class CentreMoves(NamedTuple):
    """How far centres are apart, and how far they moved since the last pass."""

    half_gap: Array  # (k,) at most half the distance to the closest other centre
    drift: Array  # (k,) at least the distance moved
    other_drift: Array  # (k,) the greatest drift of the other centres


class PreparedCentres(NamedTuple):
    """All that the compiled pass is told about centres."""

    scaled: ScaledCentres
    moves: CentreMoves
    anchors: Anchors


def prepare_centres(
    state: LloydState, previous: PreparedCentres | None, directions: LeadingDirections | None = None
) -> PreparedCentres:
    """Scale the centres, in all directions or in the leading ones, and measure how far they moved."""
    C = state.centres
    k, d = C.shape
    safe = 1 + (d + 16) * EPS  # makes rounded lengths upper bounds
    shift = C.mean(axis=0) if directions is None else directions.shift
    Z = C - shift
    norms = np.sqrt((Z**2).sum(axis=1)) * safe
    longest = float(norms.max())
    scale = power_of_two(longest) if directions is None else directions.scale
    Z = Z * scale
    reach = longest * scale
    small, roundings, outside, apart = Z, d + 8.0, 0.0, np.empty((0, 0))
    if directions is not None:
        inside = Z @ directions.V
        over = Z - inside @ directions.V.T
        outside = float(np.sqrt((over**2).sum(axis=1).max()) * safe + 1e-12 * longest * scale)
        if mostly_inside(outside, reach):
            small, apart = inside, _distances_between(over, 1.0) + 1e-12 * longest * scale
            roundings = directions.error * 2.0**24 + inside.shape[1] + 8
    half = (0.5 * (Z**2).sum(axis=1)).astype(np.float32)
    roundings = roundings if d < 2**20 else np.inf  # so many that nothing is known
    small = np.ascontiguousarray(small, dtype=np.float32)
    scaled = ScaledCentres(C, shift, scale, small, half, norms, reach, roundings, outside, apart)
    if previous is None:
        changed, drift = np.ones(k, dtype=bool), np.zeros(k)
    else:
        changed = (previous.anchors.points != state.anchors).any(axis=1)
        drift = np.sqrt(((C - previous.scaled.centres) ** 2).sum(axis=1)) * safe
    return PreparedCentres(scaled, _moves(Z, scale, drift), Anchors(state.anchors, changed))


def _moves(Z: Array, scale: float, drift: Array) -> CentreMoves:
    """Measure the scaled centres Z (k, d) against each other."""
    gaps = _distances_between(Z, -1.0)
    np.fill_diagonal(gaps, np.inf)
    other_drift = np.full(len(Z), drift.max())
    fastest = int(drift.argmax())
    other_drift[fastest] = np.delete(drift, fastest).max(initial=0.0)
    return CentreMoves(gaps.min(axis=1) / (2 * scale), drift, other_drift)


def _distances_between(Z: Array, side: float) -> Array:
    """Return distances between the rows of Z (k, k), by products: never too large (side -1) or too small (1)."""
    squares = (Z**2).sum(axis=1)
    doubt = 8 * (Z.shape[1] + 16) * EPS * float(squares.max())
    return np.sqrt(np.maximum(squares[:, None] + squares - 2 * (Z @ Z.T) + side * doubt, 0.0))
