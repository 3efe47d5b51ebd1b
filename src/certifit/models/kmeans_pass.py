"""One pass of Lloyd's algorithm over any rows: nearest centres, and each cluster's weight, sum and squares.

Large dense tables go through the kernel, which remembers what it can where rows stay in memory and starts afresh where
they are streamed: the bits are the same. Small tables and sparse ones take a plain way that needs no compiler.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

from certifit.core import Array, Block, Matrix, Rows, Sums
from certifit.kernels import kmeans as kernel

EPS = float(np.finfo(np.float64).eps)
SMALL = 2**22  # rows x columns x centres below which compiling costs more than it saves


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


def is_small(rows: Rows, k: int) -> bool:
    return rows.n_rows * rows.n_features * k <= SMALL


# ------------------------------------------------------------------------------------------------ the plain way
def square_distances(C: Array, small: bool, X: Matrix) -> Array:
    """|x - c|² (n, k), each a sum of squared differences (of products where that is as accurate)."""
    if sparse.issparse(X):
        return _sparse_distances(C, X)
    if small:
        return cdist(X, C, "sqeuclidean")
    out = np.empty((len(X), len(C)))
    kernel.square_distances(X, C, out)
    return out


def _sparse_distances(C: Array, X: Matrix) -> Array:
    x2 = np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).reshape(-1, 1)
    c2 = (C**2).sum(axis=1)
    D = np.maximum(x2 + c2 - 2 * (X @ C.T), 0.0)
    scale = x2 + c2.max()
    best = D.min(axis=1, keepdims=True)
    ties = (best + 8 * (X.shape[1] + 8) * EPS * scale >= D).sum(axis=1) > 1
    doubtful = np.flatnonzero(ties | (best < 1e-4 * scale).ravel())  # a tie, or digits lost to cancellation
    step = max(1, SMALL // X.shape[1])
    for first in range(0, len(doubtful), step):
        rows = doubtful[first : first + step]
        D[rows] = cdist(X[rows].toarray(), C, "sqeuclidean")
    return D


def _plain(C: Array, block: Block) -> tuple[Array, Clusters]:
    """Labels, and sums about the centres themselves."""
    X, w, k = block.X, block.w, len(C)
    D = square_distances(C, True, X)
    labels = D.argmin(axis=1).astype(np.int32)
    members = sparse.csr_array((w, labels, np.arange(len(w) + 1)), shape=(len(w), k)).T.tocsr()
    weight = np.bincount(labels, w, k)
    if sparse.issparse(X):
        sums = (members @ X).toarray() - weight[:, None] * C
    else:
        sums = members @ (X - C[labels])
    squares = np.bincount(labels, w * D[np.arange(len(w)), labels], k)
    return labels, Clusters(weight, sums, squares)


# ------------------------------------------------------------------------------------------------ the kernel's way
class Frame(NamedTuple):
    """The centres as the kernel wants them: its arguments, in order."""

    centres: Array  # (k, d)
    anchors: Array  # (k, d)
    moved: Array  # (k,) anchors that changed since the last pass
    shift: Array  # (d,) the centres' mean
    scale: float  # a power of two that brings the centres within 1 of the shift
    small: Array  # (k, d) float32, (centres - shift) * scale
    half: Array  # (k,) float32, half the squared lengths of these
    norms: Array  # (k,) at least |centres - shift|
    reach: float  # at least the greatest of them, scaled
    near: Array  # (k,) at most half the distance to the closest other centre
    drift: Array  # (k,) at least the distance moved since the last pass
    fall: Array  # (k,) the greatest drift of the others


def make_frame(at: Point, previous: Frame | None) -> Frame:
    C, A = at
    k, d = C.shape
    up = 1 + (d + 16) * EPS
    shift = C.mean(axis=0)
    Z = C - shift
    norms = np.sqrt((Z**2).sum(axis=1)) * up
    longest = float(norms.max())
    scale = 2.0 ** -int(np.frexp(longest)[1]) if 0 < longest < np.inf else 1.0
    Z = Z * scale
    lengths = (Z**2).sum(axis=1)
    near = np.full(k, np.inf)
    for first in range(0, k, 1024):
        part = slice(first, first + 1024)
        between = lengths[part, None] + lengths - 2 * (Z[part] @ Z.T) - 8 * (d + 16) * EPS
        between[np.arange(len(between)), np.arange(k)[part]] = np.inf
        near[part] = np.sqrt(np.maximum(between.min(axis=1), 0.0)) / (2 * scale)
    if previous is None:
        moved, drift = np.ones(k, dtype=bool), np.zeros(k)
    else:
        moved = (previous.anchors != A).any(axis=1)
        drift = np.sqrt(((C - previous.centres) ** 2).sum(axis=1)) * up
    fall = np.full(k, drift.max())
    first = int(drift.argmax())
    fall[first] = np.delete(drift, first).max(initial=0.0)
    half, reach = (0.5 * lengths).astype(np.float32), longest * scale
    return Frame(C, A, moved, shift, scale, Z.astype(np.float32), half, norms, reach, near, drift, fall)


@dataclass
class Notes:
    """What the kernel remembers of a block."""

    labels: Array  # (n,)
    upper: Array  # (n,) at least the distance to the own centre
    lower: Array  # (n, 1) at most that to any other; where rows are wide (n, k), at most that to each other
    cells: tuple[Array, Array, Array] | None = None  # sums (·, k, d), weights and squares (·, k) of runs of rows


def _kernel(frame: Frame, notes: Notes, block: Block) -> Clusters:
    n, (k, d) = len(block.w), frame.centres.shape
    run = 1 << max(5, int(np.ceil(np.log2(8 * k))))  # rows in a cell: at least eight for each of its sums
    if notes.cells is None:
        m = -(-n // run)
        notes.cells = np.empty((m, k, d)), np.empty((m, k)), np.empty((m, k))
        frame = frame._replace(moved=np.ones(k, dtype=bool))
    total = Clusters(np.zeros(k), np.zeros((k, d)), np.zeros(k))
    kernel.assign(
        block.X, block.w, *frame, notes.labels, notes.upper, notes.lower, *notes.cells, run,
        total.sums, total.weight, total.squares,
    )  # fmt: skip
    if n < 4 * k:
        notes.cells = None  # not worth their memory
    return total


def _fresh(frame: Frame, n: int) -> Notes:
    k, d = frame.centres.shape
    return Notes(np.zeros(n, np.int32), np.full(n, np.inf), np.zeros((n, k if d >= 8 * k else 1)))


def _streamed(frame: Frame, block: Block) -> Clusters:
    return _kernel(frame, _fresh(frame, len(block.w)), block)


def _streamed_labels(frame: Frame, block: Block) -> Array:
    notes = _fresh(frame, len(block.w))
    _kernel(frame, notes, block)
    return notes.labels


def _plain_sums(C: Array, block: Block) -> Clusters:
    return _plain(C, block)[1]


def _plain_labels(C: Array, block: Block) -> Array:
    return _plain(C, block)[0]


# ------------------------------------------------------------------------------------------------ passes
def nearest(rows: Rows, C: Array) -> Array:
    """The number of each row's nearest centre (n,), the lowest among equals."""
    if _is_plain(rows, len(C)):
        return rows.map(partial(_plain_labels, C))
    return rows.map(partial(_streamed_labels, make_frame(Point(C, C), None)))


def tally(rows: Rows, C: Array) -> Clusters:
    """Each centre's weight, sum and squares about itself."""
    if _is_plain(rows, len(C)):
        return rows.sum(partial(_plain_sums, C))
    return rows.sum(partial(_streamed, make_frame(Point(C, C), None)))


def farthest(rows: Rows, C: Array, most: int) -> Array:
    """At least one and at most `most` distinct rows (·, d): those farthest from their nearest centre."""
    return rows.sum(partial(_far, C, is_small(rows, len(C)), most)).X


@dataclass(frozen=True)
class _Far:
    """Distinct rows, farthest first."""

    X: Array  # (m, d)
    square: Array  # (m,) squared distances, above 0
    most: int

    def __add__(self, other: _Far) -> _Far:
        return _keep(np.concatenate([self.X, other.X]), np.append(self.square, other.square), self.most)


def _keep(X: Array, square: Array, most: int) -> _Far:
    order = np.argsort(-square, kind="stable")
    X, square = X[order], square[order]
    distinct = np.sort(np.unique(X, axis=0, return_index=True)[1])[:most]
    return _Far(X[distinct], square[distinct], most)


def _far(C: Array, small: bool, most: int, block: Block) -> _Far:
    square = np.where(block.w > 0, square_distances(C, small, block.X).min(axis=1), 0.0)
    order = np.argsort(-square, kind="stable")[: 4 * most + 16]
    order = order[square[order] > 0]
    X = block.X[order]
    return _keep(np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64), square[order], most)


class Lloyd:
    """Passes over the same rows. Where these are in memory, each remembers the one before."""

    def __init__(self, rows: Rows, k: int) -> None:
        self.rows, self.plain = rows, _is_plain(rows, k)
        self.at: Point | None = None  # where the last pass was
        self.last: Clusters  # what it found
        self._frame: Frame | None = None
        self._notes: dict[int, Notes] = {}  # by the block's first row

    def measure(self, at: Point) -> Clusters:
        if self.plain:
            self.last = self.rows.sum(partial(_plain_sums, at.centres))
        else:
            self._frame = make_frame(at, self._frame if self._notes else None)
            self.last = self.rows.sum(self._remembered if self.rows.in_memory else partial(_streamed, self._frame))
        self.at = at
        return self.last

    def _remembered(self, block: Block) -> Clusters:
        assert self._frame is not None
        if block.start not in self._notes:
            self._notes[block.start] = _fresh(self._frame, len(block.w))
        return _kernel(self._frame, self._notes[block.start], block)

    def labels(self) -> Array:
        """Nearest centres (n,) at the last pass."""
        assert self.at is not None
        if not self._notes:
            return nearest(self.rows, self.at.centres)
        return np.concatenate([self._notes[start].labels for start in sorted(self._notes)])


def _is_plain(rows: Rows, k: int) -> bool:
    return is_small(rows, k) or sparse.issparse(getattr(rows, "X", None))
