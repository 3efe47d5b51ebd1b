"""One pass of Lloyd's algorithm over any rows: nearest centres, and each cluster's weight, sum and squares.

Large dense tables go through the kernel, which remembers what it can where rows stay in memory and starts afresh
where they are streamed: the bits are the same. Small tables and sparse ones take a plain way that needs no compiler.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

from certifit.checkers.cluster.kmeans import centre_of_mass
from certifit.checkers.cluster.semidefinite_bound import CLOSE, GROUP, gram_bound
from certifit.checkers.cluster.spectral_bound import Scatter, scatter_bound
from certifit.cluster import lloyd_loops as kernel
from certifit.cluster.distance_bounds import (
    EPS,
    NO_SKETCH,
    Clusters,
    Frame,
    Lead,
    Notes,
    Point,
    Sketch,
    aimed,
    few,
    lead_directions,
    make_frame,
    make_sketch,
    new_notes,
    run_kernel,
)
from certifit.exceptions import DataError
from certifit.rows import Array, Block, Matrix, Rows

PROVED, TINY = 1024, 512  # rows up to which a proof of optimality, and a better bound, is worth its time in a fit
STEPS, HARD = 10, 400  # to improve that bound (0.3 s at most), and where a ratio is asked for (seconds)
SMALL = 2**22  # rows x columns x centres below which compiling costs more than it saves


def check_range(square: float) -> None:
    """Refuse values whose squares overflow."""
    if not np.isfinite(square):
        raise DataError(
            got="values so large that squared distances overflow",
            wanted="squared distances below 1e308",
            fix="Rescale the columns, for instance to unit variance.",
        )


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
    X = X.astype(np.float64)
    x2 = np.asarray(X.multiply(X).sum(axis=1)).reshape(-1, 1)
    c2 = (C**2).sum(axis=1)
    D = np.maximum(x2 + c2 - 2 * (X @ C.T), 0.0)
    scale = x2 + c2.max()
    best = D.min(axis=1, keepdims=True)
    ties = (best + 8 * (X.shape[1] + 8) * EPS * scale >= D).sum(axis=1) > 1
    doubtful = np.flatnonzero(ties | (best < 1e-4 * scale).ravel())  # a tie, or digits lost to cancellation
    step = max(1, 2**20 // X.shape[1])
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
        centred, there = X.astype(np.float64), X.astype(np.float64)
        centred.data -= C[np.repeat(labels, np.diff(X.indptr)), X.indices]
        there.data[:] = 1.0
        sums = (members @ centred).toarray() - C * (weight[:, None] - (members @ there).toarray())
    else:
        sums = members @ (X - C[labels])
    squares = np.bincount(labels, w * D[np.arange(len(w)), labels], k)
    return labels, Clusters(weight, sums, squares)


def _streamed(frame: Frame, block: Block) -> Clusters:
    return run_kernel(frame, new_notes(len(block.w)), block)


def _streamed_labels(frame: Frame, block: Block) -> Array:
    notes = new_notes(len(block.w))
    run_kernel(frame, notes, block._replace(w=np.zeros(len(block.w))))  # rows of no weight are not added up
    return notes.labels


def _scatter(lead: Lead, block: Block) -> Scatter:
    return _sketched(make_sketch(lead, block.X), block.w)


def _sketched(sketch: Sketch, w: Array) -> Scatter:
    return Scatter.of(sketch.Y.astype(np.float64), w, np.minimum(sketch.length, 1e100) ** 2)


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
    """At most `most` distinct rows (·, d), those farthest from their nearest centre; none if all rows lie on one."""
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
        self.lead = None if self.plain else lead_directions(rows, k)
        self.aim: Lead | None = None  # these and the centres of the first pass that they nearly hold
        self.at: Point | None = None  # where the last pass was
        self.last: Clusters  # what it found
        self._frame: Frame | None = None
        self._notes: dict[int, Notes] = {}  # by the block's first row

    def measure(self, at: Point) -> Clusters:
        if self.lead is not None and self.aim is None:
            self.aim = aimed(self.lead, at.centres)
        if self.plain:
            self.last = self.rows.sum(partial(_plain_sums, at.centres))
        elif self.rows.in_memory:
            self._frame = make_frame(at, self._frame, self.aim)
            self.last = self.rows.sum(self._remembered)
        else:
            self.last = self.rows.sum(partial(_streamed, make_frame(at, None)))
        self.at = at
        return self.last

    def _remembered(self, block: Block) -> Clusters:
        assert self._frame is not None
        if block.start not in self._notes:
            self._notes[block.start] = new_notes(len(block.w))
        notes = self._notes[block.start]
        if self.aim is not None and notes.sketch is NO_SKETCH:
            notes.sketch = make_sketch(self.aim, block.X)
        return run_kernel(self._frame, notes, block)

    def bound(self, C: Array, target: float | None = None, until: float = np.inf) -> float:
        """A number below which no other k centres bring the objective; C (k, d) are good ones.

        Where it is to be at most `target` times smaller than their objective, few rows get more time, but not beyond
        `until` (`time.perf_counter`).
        """
        assert self.at is not None
        k, (n, d) = len(C), (self.rows.n_rows, self.rows.n_features)
        weight = float(self.last.weight.sum())
        if self.lead is None:
            mean = centre_of_mass(self.at.anchors, self.last.weight, self.last.sums)
            width = d if d < 4 * few(k) or is_small(self.rows, k) else few(k)
            bound = scatter_bound(self.rows, mean, weight, k, width)
            steps, close = STEPS if n <= TINY else 0, CLOSE
            if target is not None:
                steps, close = HARD if n <= GROUP else STEPS, max(CLOSE, 1 - 1 / target)
            return max(bound, gram_bound(self.rows, C, PROVED, steps, close=close, only_tight=True, until=until))
        lead = self.aim or self.lead
        scatter = self.rows.sum(self._scatter if self._notes and self.aim else partial(_scatter, lead))
        return scatter.bound(k, weight, n, lead.error) / lead.scale**2

    def _scatter(self, block: Block) -> Scatter:
        return _sketched(self._notes[block.start].sketch, block.w)

    def labels(self) -> Array:
        """Nearest centres (n,) at the last pass."""
        assert self.at is not None
        if not self._notes:
            return nearest(self.rows, self.at.centres)
        return np.concatenate([self._notes[start].labels for start in sorted(self._notes)])


def _is_plain(rows: Rows, k: int) -> bool:
    return is_small(rows, k) or sparse.issparse(getattr(rows, "X", None))
