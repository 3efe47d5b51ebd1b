"""What the k-means kernel needs beside the rows: the centres in its coordinates, and its notes on each block.

Everything here is a bound on the safe side of rounding, or a copy in other coordinates; see `cluster.lloyd_loops`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from certifit.checkers.cluster.spectral_bound import directions
from certifit.cluster import lloyd_loops as kernel
from certifit.rows import Array, Block, Rows, Sums

EPS = float(np.finfo(np.float64).eps)
_assign: Any = kernel.assign


class Point(NamedTuple):
    """Where the loop stands."""

    centres: Array  # (k, d)
    anchors: Array  # (k, d) points near the centres about which each cluster is summed


@dataclass(frozen=True)
class Clusters(Sums):
    """What a pass measures."""

    weight: Array  # (k,) Σ w
    sums: Array  # (k, d) Σ w (x - anchor)
    squares: Array  # (k,) Σ w |x - anchor|²


class Frame(NamedTuple):
    """The centres as the kernel wants them: its arguments, in order."""

    centres: Array  # (k, d)
    anchors: Array  # (k, d)
    moved: Array  # (k,) anchors that changed since the last pass
    shift: Array  # (d,) near the centres' mean
    scale: float  # a power of two that brings the centres near 1
    small: Array  # (k, p) float32, (centres - shift) * scale, or these in the leading directions
    half: Array  # (k,) float32, half their squared lengths
    norms: Array  # (k,) at least |centres - shift|
    reach: float  # at least the greatest of them, scaled
    steps: float  # roundings in a product of row and centre
    near: Array  # (k,) at most half the distance to the closest other centre
    drift: Array  # (k,) at least the distance moved since the last pass
    fall: Array  # (k,) the greatest drift of the others
    outside: float  # the greatest length outside the leading directions
    apart: Array  # (k, k) lengths of the centres' differences outside them; (0, 0) where all directions are used


def make_frame(at: Point, previous: Frame | None, lead: Lead | None = None) -> Frame:
    C, A = at
    k, d = C.shape
    up = 1 + (d + 16) * EPS
    shift = C.mean(axis=0) if lead is None else lead.shift
    Z = C - shift
    norms = np.sqrt((Z**2).sum(axis=1)) * up
    longest = float(norms.max())
    scale = power_of_two(longest) if lead is None else lead.scale
    Z = Z * scale
    near = _apart(Z, -1.0)
    near[np.arange(k), np.arange(k)] = np.inf
    near = near.min(axis=1) / (2 * scale)
    if previous is None:
        moved, drift = np.ones(k, dtype=bool), np.zeros(k)
    else:
        moved = (previous.anchors != A).any(axis=1)
        drift = np.sqrt(((C - previous.centres) ** 2).sum(axis=1)) * up
    fall = np.full(k, drift.max())
    fastest = int(drift.argmax())
    fall[fastest] = np.delete(drift, fastest).max(initial=0.0)
    small, steps, outside, apart = Z, d + 8.0, 0.0, np.empty((0, 0))
    if lead is not None:
        inside = Z @ lead.V
        over = Z - inside @ lead.V.T
        outside = float(np.sqrt((over**2).sum(axis=1).max()) * up + 1e-12 * longest * scale)
        if _holds(outside, longest * scale):
            small, apart = inside, _apart(over, 1.0) + 1e-12 * longest * scale
            steps = lead.error * 2.0**24 + inside.shape[1] + 8
    half = (0.5 * (Z**2).sum(axis=1)).astype(np.float32)
    steps = steps if d < 2**20 else np.inf  # so many roundings that nothing is known
    small = np.ascontiguousarray(small, dtype=np.float32)
    reach = longest * scale
    return Frame(C, A, moved, shift, scale, small, half, norms, reach, steps, near, drift, fall, outside, apart)


def _holds(outside: float, longest: float) -> bool:
    """Whether directions say enough: centres that are means have little outside them, single rows much."""
    return outside <= longest / 4


def power_of_two(length: float) -> float:
    """The scale that brings this length to between 1/2 and 1."""
    return 2.0 ** -int(np.frexp(length)[1]) if 0 < length < np.inf else 1.0


def _apart(Z: Array, side: float) -> Array:
    """Distances between rows of Z (k, k), from products; on the safe side of rounding, below (-1) or above (1)."""
    squares = (Z**2).sum(axis=1)
    doubt = 8 * (Z.shape[1] + 16) * EPS * float(squares.max())
    return np.sqrt(np.maximum(squares[:, None] + squares - 2 * (Z @ Z.T) + side * doubt, 0.0))


class Lead(NamedTuple):
    """A few directions in which wide rows vary most."""

    V: Array  # (d, p) orthonormal columns
    shift: Array  # (d,) exact in float32
    scale: float

    @property
    def error(self) -> float:
        """Of a projection in float32, relative to the row's length."""
        d, p = self.V.shape
        return float(np.sqrt(p) * (d + 8) * 2.0**-24)


def lead_directions(rows: Rows, k: int) -> Lead | None:
    """Directions from a sample of the rows; None where rows are not wide enough for them to pay."""
    p = few(k)
    if rows.n_features < 4 * p:
        return None
    X = rows.thin(max(1, rows.n_rows // (32 * p))).X
    shift = X.mean(axis=0, dtype=np.float64).astype(np.float32).astype(np.float64)
    scale = power_of_two(float(np.sqrt(((X - shift) ** 2).sum(axis=1).max())))
    if not 2.0**-40 < scale < 2.0**40:
        return None  # float32 could not hold the rows
    return Lead(directions(X, shift, p), shift, scale)


def aimed(lead: Lead, C: Array) -> Lead | None:
    """These directions and those in which the centres C (k, d) lie beside them; None where that is most of C."""
    Z = (C - lead.shift) * lead.scale
    over = Z - (Z @ lead.V) @ lead.V.T
    if not _holds(np.sqrt((over**2).sum(axis=1).max()), np.sqrt((Z**2).sum(axis=1).max())):
        return None
    return lead._replace(V=np.linalg.qr(np.hstack([lead.V, over.T]))[0])


def few(k: int) -> int:
    """Directions that hold most of what k centres differ in."""
    return max(32, 4 * k)


class Sketch(NamedTuple):
    """Wide rows in the leading directions, shifted and scaled."""

    Y: Array  # (n, p) float32
    length: Array  # (n,) of the whole row
    rest: Array  # (n,) at least its length outside these directions


def make_sketch(lead: Lead, X: Array) -> Sketch:
    n, p = len(X), lead.V.shape[1]
    Y, squares = np.empty((n, p), np.float32), np.empty((n, 1))
    V, shift = (lead.V * lead.scale).astype(np.float32), lead.shift.astype(X.dtype)
    Z = np.empty((min(n, 256), X.shape[1]), np.float32)  # stays in the cache
    with np.errstate(over="ignore", invalid="ignore"):
        for first in range(0, n, len(Z)):
            part = X[first : first + len(Z)]
            np.subtract(part, shift, out=Z[: len(part)], casting="same_kind")
            np.dot(Z[: len(part)], V, out=Y[first : first + len(part)])
            kernel.square_distances(part, lead.shift[None], squares[first : first + len(part)])
    length = np.sqrt(squares[:, 0]) * lead.scale
    unfit = ~(length < 2.0**60)  # out of float32's range: told apart in float64
    Y[unfit], length[unfit] = 0.0, np.inf
    inside = np.sqrt(np.einsum("ij,ij->i", Y, Y, dtype=np.float64))
    inside = np.maximum(inside - lead.error * length, 0.0)
    rest = np.sqrt(np.maximum(length**2 * (1 + (X.shape[1] + 16) * EPS) - inside**2, 0.0))
    return Sketch(Y, length, rest)


NO_SKETCH = Sketch(np.empty((0, 0), np.float32), np.empty(0), np.empty(0))


class Ledger(NamedTuple):
    """Sums over a block's clusters that rows may enter and leave in any order, to the same last bit."""

    coarse: float  # 3/2 2^52 steps of a grid on which the sums of all rows are exact
    fine: float  # likewise, for what rows leave beside it
    limit: float  # (w |x - anchor|)² up to which that holds
    least: float  # weight below which the grids would cost digits
    major: Array  # (k, d) Σ w (x - anchor), its part on the coarse grid
    minor: Array  # (k, d) its part on the fine grid
    square: Array  # (n,) w |x - anchor|²
    stray: Array  # (n,) rows beyond limit or least, which are added up every time


def new_ledger(block: Block, k: int) -> Ledger:
    """Grids from a few rows of the block: 2^12 times what is usual still fits, and rounding is at 2^-62 of it."""
    n, d = block.X.shape
    some = slice(None, None, max(1, n // 64))
    w = block.w[some]
    with np.errstate(over="ignore"):
        lengths = np.sqrt((np.diff(block.X[some].astype(np.float64), axis=0) ** 2).sum(axis=1))
    lengths, w = lengths[lengths > 0], w[w > 0]
    usual = float(np.median(w)) if len(w) else 1.0
    top = int(np.frexp(usual * np.median(lengths))[1]) + 12 if len(lengths) else 0
    top = min(max(top, -500), 500)  # squares of numbers beyond it are of no use
    bits = (n - 1).bit_length()
    return Ledger(
        1.5 * 2.0 ** (top + bits + 1), 1.5 * 2.0 ** (top + 2 * bits - 51), 4.0**top, usual / 2**10,
        np.empty((k, d)), np.empty((k, d)), np.zeros(n), np.zeros(n, dtype=bool),
    )  # fmt: skip


@dataclass
class Notes:
    """What the kernel remembers of a block."""

    labels: Array  # (n,)
    upper: Array  # (n,) at least the distance to the own centre
    lower: Array  # (n,) at most that to any other
    sketch: Sketch = NO_SKETCH
    ledger: Ledger | None = None


def run_kernel(frame: Frame, notes: Notes, block: Block) -> Clusters:
    n, (k, d) = len(block.w), frame.centres.shape
    if notes.ledger is None:
        notes.ledger = new_ledger(block, k)
        frame = frame._replace(moved=np.ones(k, dtype=bool))
    total = Clusters(np.zeros(k), np.zeros((k, d)), np.zeros(k))
    _assign(
        block.X, block.w, *frame, notes.labels, notes.upper, notes.lower, *notes.sketch, *notes.ledger,
        total.sums, total.weight, total.squares,
    )  # fmt: skip
    if n < 16 * k:
        notes.ledger = None  # not worth its memory
    return total


def new_notes(n: int) -> Notes:
    return Notes(np.zeros(n, np.int32), np.full(n, np.inf), np.zeros(n))
