"""One pass of Lloyd's algorithm over any rows: nearest centres, and each cluster's weight, sum and squares.

    rows                                        way       why
    sparse, or few (see `uses_compiled`)        plain     NumPy alone; compiling would cost more than it saves
    dense, in memory                            compiled  remembers bounds and sums of each block (`BlockMemory`)
    dense, held by the workers of a cluster     compiled  the same, and the memory stays with the worker
    dense, streamed from a file                 compiled  starts afresh in every pass, so that nothing grows with n

The compiled ways give the same bits. Squared distances are part of the method, not a setting: another distance
would change `square_distances` here, `lloyd_loops` with `distance_bounds`, `leading_directions` and `exact_sums`
(their shortcuts rest on squares and the triangle inequality), the means in `local_search.move_centres`,
`one_column`, and the checker's distances and bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import uuid4

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

from certifit.checkers.cluster.kmeans import centre_of_mass
from certifit.checkers.cluster.semidefinite_bound import gram_bound
from certifit.checkers.cluster.spectral_bound import ClusterScatter, scatter_bound
from certifit.checkers.plain.blocks import dense
from certifit.cluster import lloyd_loops
from certifit.cluster.distance_bounds import PreparedCentres, RowBounds, new_row_bounds, prepare_centres
from certifit.cluster.exact_sums import ClusterSums, ExactSums, LloydState, new_exact_sums
from certifit.cluster.leading_directions import (
    LeadingDirections,
    RowSketch,
    add_directions_of,
    direction_count,
    find_directions,
    is_wide,
    no_sketch,
    sketch_rows,
)
from certifit.cluster.tuning import KMeansTuning
from certifit.core import wants_best_proof
from certifit.exceptions import DataError
from certifit.rows import Array, Block, Matrix, Rows
from certifit.rows.kept_passes import kept
from certifit.rows.sources.workers.remembered import PassMark, keep_memory, take_memory

_assign: Any = lloyd_loops.assign


def check_range(square: float) -> None:
    """Refuse values whose squares overflow."""
    if not np.isfinite(square):
        raise DataError(
            got="values so large that squared distances overflow",
            wanted="squared distances below 1e308",
            fix="Rescale the columns, for instance to unit variance.",
        )


def is_large(rows: Rows, k: int, tuning: KMeansTuning) -> bool:
    """Whether compiling saves more than it costs."""
    return rows.n_rows * rows.n_features * k > tuning.compiled_above


def uses_compiled(rows: Rows, k: int, tuning: KMeansTuning) -> bool:
    """Whether passes over these rows are compiled."""
    return is_large(rows, k, tuning) and not sparse.issparse(getattr(rows, "X", None))


# ------------------------------------------------------------------------------------------------ the plain way
def square_distances(X: Matrix, C: Array, compiled: bool) -> Array:
    """Return |x - c|² (n, k), each a sum of squared differences (of products where that is as accurate)."""
    if sparse.issparse(X):
        return _sparse_distances(X, C)
    if not compiled:
        return cdist(X, C, "sqeuclidean")
    out = np.empty((len(X), len(C)))
    lloyd_loops.square_distances(X, C, out)
    return out


def _sparse_distances(X: Matrix, C: Array) -> Array:
    """Return |x|² + |c|² - 2 x·c; rows for which that may be wrong are compared difference by difference."""
    X = X.astype(np.float64)
    x2 = np.asarray(X.multiply(X).sum(axis=1)).reshape(-1, 1)
    c2 = (C**2).sum(axis=1)
    D = np.maximum(x2 + c2 - 2 * (X @ C.T), 0.0)
    scale = x2 + c2.max()
    best = D.min(axis=1, keepdims=True)
    ties = (best + 8 * (X.shape[1] + 8) * lloyd_loops.EPS * scale >= D).sum(axis=1) > 1
    doubtful = np.flatnonzero(ties | (best < 1e-4 * scale).ravel())  # a tie, or digits lost to cancellation
    step = max(1, 2**20 // X.shape[1])
    for first in range(0, len(doubtful), step):
        rows = doubtful[first : first + step]
        D[rows] = cdist(X[rows].toarray(), C, "sqeuclidean")
    return D


def _plain_labels(C: Array, block: Block) -> Array:
    if sparse.issparse(block.X):
        return square_distances(block.X, C, compiled=False).argmin(axis=1).astype(np.int32)
    return _dense_labels(block.X, C).astype(np.int32)


def _plain_sums(C: Array, block: Block) -> ClusterSums:
    """Add up the clusters about the centres themselves."""
    X, w, k = block.X, block.w, len(C)
    if not sparse.issparse(X):
        return _dense_sums(X, w, C)
    D = square_distances(X, C, compiled=False)
    labels = D.argmin(axis=1).astype(np.int32)
    members = sparse.csr_array((w, labels, np.arange(len(w) + 1)), shape=(len(w), k)).T.tocsr()
    weight = np.bincount(labels, w, k)
    # Σ w (x - c) over entries that are there, less Σ w c over those that are not
    centred, there = X.astype(np.float64), X.astype(np.float64)
    centred.data -= C[np.repeat(labels, np.diff(X.indptr)), X.indices]
    there.data[:] = 1.0
    sums = (members @ centred).toarray() - C * (weight[:, None] - (members @ there).toarray())
    squares = np.bincount(labels, w * D[np.arange(len(w)), labels], k)
    return ClusterSums(weight, sums, squares)


def _dense_sums(X: Array, w: Array, C: Array) -> ClusterSums:
    labels = _dense_labels(X, C)
    Z = np.take(C, labels, axis=0)  # much quicker than C[labels]
    np.subtract(X, Z, out=Z)
    members = np.zeros((len(w), len(C)))
    members[np.arange(len(w)), labels] = w
    squares = np.bincount(labels, w * np.einsum("ij,ij->i", Z, Z), len(C))
    return ClusterSums(members.sum(axis=0), members.T @ Z, squares)


def _dense_labels(X: Array, C: Array) -> Array:
    """Return each row's nearest centre, the lowest number among equals.

    Distances come from products; where rounding may decide, or squares overflow, from differences.
    """
    n, d = X.shape
    with np.errstate(over="ignore", invalid="ignore"):
        half = np.einsum("ij,ij->i", C, C) / 2
        D = C @ X.T  # column by column, each centre's of all rows at a time
        np.subtract(half[:, None], D, out=D)  # (|x - c|² - |x|²) / 2
        least, second = D[0].copy(), np.full(n, np.inf, D.dtype)
        labels, larger, number = np.zeros(n, np.int32), np.empty_like(least), np.empty(n, np.int32)
        for c in range(1, len(C)):
            np.minimum(second, np.maximum(least, D[c], out=larger), out=second)
            np.minimum(least, D[c], out=least)
        for c in range(1, len(C)):  # added up, not chosen row by row: no branch that the processor has to guess
            labels += np.multiply(D[c] == least, c, out=number)
        np.subtract(second, least, out=second)
        rounding = 8 * (d + 8) * float(np.finfo(D.dtype).eps)
        total = 2 * np.float64(np.dot(X.ravel(), X.ravel()))  # no squared length is more; of few rows it is asked for
        close = np.flatnonzero(~(second > rounding * (total + 2 * half.max())))
        squares = np.einsum("ij,ij->i", X[close], X[close], dtype=np.float64)
        close = close[~(second[close] > rounding * (squares + 2 * half.max()))]
    if len(close):
        labels[close] = cdist(X[close], C, "sqeuclidean").argmin(axis=1)
    return labels


# ------------------------------------------------------------------------------------------------ the compiled way
@dataclass
class BlockMemory:
    """What compiled passes remember of a block."""

    bounds: RowBounds
    sketch: RowSketch | None = None
    sums: ExactSums | None = None


def new_memory(n: int) -> BlockMemory:
    return BlockMemory(new_row_bounds(n))


def assign_rows(centres: PreparedCentres, memory: BlockMemory, block: Block) -> ClusterSums:
    """Give each row of the block its nearest centre, in `memory.bounds.labels`, and return the clusters' sums."""
    n, (k, d) = len(block.w), centres.scaled.centres.shape
    anchors, exact = centres.anchors, memory.sums
    if exact is None:
        exact = new_exact_sums(block, k)
        anchors = anchors._replace(changed=np.ones(k, dtype=bool))
    totals = np.zeros(k), np.zeros((k, d)), np.zeros(k)
    sketch = no_sketch() if memory.sketch is None else memory.sketch
    _assign((block.X, block.w), centres.scaled, centres.moves, memory.bounds, sketch, anchors, exact, totals)
    # With few rows a cluster, adding them all again takes less than keeping sums for every cluster.
    memory.sums = exact if n >= 16 * k else None
    return ClusterSums(*totals)


def _streamed_sums(centres: PreparedCentres, block: Block) -> ClusterSums:
    return assign_rows(centres, new_memory(len(block.w)), block)


def _sums_on_workers(centres: PreparedCentres, mark: PassMark, block: Block) -> ClusterSums:
    """Do the same on the worker that holds the rows, with what it remembers of them."""
    memory = take_memory(block.X, mark.before()) or new_memory(len(block.w))
    sums = assign_rows(centres, memory, block)
    keep_memory(block.X, mark, memory)
    return sums


def _labels_on_workers(C: Array, mark: PassMark, block: Block) -> Array:
    """The labels of that pass, which found the nearest of the centres C."""
    memory = take_memory(block.X, mark)
    if memory is not None:
        return memory.bounds.labels
    return _streamed_labels(prepare_centres(LloydState(C, C), None), block)


def _streamed_labels(centres: PreparedCentres, block: Block) -> Array:
    memory = new_memory(len(block.w))
    assign_rows(centres, memory, block._replace(w=np.zeros(len(block.w))))  # rows of weight 0 are not added up
    return memory.bounds.labels


# ------------------------------------------------------------------------------------------------ single passes
def nearest(rows: Rows, C: Array, tuning: KMeansTuning = KMeansTuning()) -> Array:
    """Return the number of each row's nearest centre (n,), the lowest among equals."""
    if uses_compiled(rows, len(C), tuning) and C.size > tuning.plain_answers:
        return rows.map(partial(_streamed_labels, prepare_centres(LloydState(C, C), None)))
    return rows.map(partial(_plain_labels, C))


def cluster_sums(rows: Rows, C: Array, tuning: KMeansTuning = KMeansTuning()) -> ClusterSums:
    """Return each cluster's weight, sum and squares about its centre."""
    if uses_compiled(rows, len(C), tuning):
        return rows.sum(partial(_streamed_sums, prepare_centres(LloydState(C, C), None)))
    return rows.sum(partial(_plain_sums, C))


def farthest_rows(rows: Rows, C: Array, most: int, tuning: KMeansTuning = KMeansTuning()) -> FarthestRows:
    """Return at most `most` distinct rows, those farthest from their nearest centre; none that lie on one."""
    return rows.sum(partial(_farthest_of_block, C, is_large(rows, len(C), tuning), most))


@dataclass(frozen=True)
class FarthestRows:
    """Distinct rows, farthest first; a sum keeps the farthest of both."""

    X: Array  # (m, d)
    w: Array  # (m,) their weights, rows that are equal counted together
    labels: Array  # (m,) their nearest centres
    square: Array  # (m,) squared distances, above 0
    most: int

    def __add__(self, other: FarthestRows) -> FarthestRows:
        mine, others = (self.X, self.w, self.labels, self.square), (other.X, other.w, other.labels, other.square)
        X, w, labels, square = (np.concatenate(both) for both in zip(mine, others, strict=True))
        order = np.argsort(-square, kind="stable")
        return FarthestRows(X[order], w[order], labels[order], square[order], self.most).distinct()

    def distinct(self) -> FarthestRows:
        """Return at most `most` rows; of rows that are equal the first, with the weight of all."""
        _, first, same = np.unique(self.X, axis=0, return_index=True, return_inverse=True)
        w = np.bincount(same.ravel(), self.w, len(first))
        order = np.argsort(first)[: self.most]
        kept = first[order]
        return FarthestRows(self.X[kept], w[order], self.labels[kept], self.square[kept], self.most)


def _farthest_of_block(C: Array, compiled: bool, most: int, block: Block) -> FarthestRows:
    D = square_distances(block.X, C, compiled)
    labels = D.argmin(axis=1)
    square = np.where(block.w > 0, D[np.arange(len(D)), labels], 0.0)
    order = np.argsort(-square, kind="stable")[: 4 * most + 16]  # some of them may be equal
    order = order[square[order] > 0]
    return FarthestRows(dense(block.X[order]), block.w[order], labels[order], square[order], most).distinct()


# ------------------------------------------------------------------------------------------------ passes in a row
class Lloyd:
    """Passes over the same rows. Where these are in memory, here or on workers, each remembers the one before."""

    def __init__(self, rows: Rows, k: int, tuning: KMeansTuning = KMeansTuning()) -> None:
        self.rows, self.tuning = rows, tuning
        self.compiled = uses_compiled(rows, k, tuning)
        self.directions = find_directions(rows, k) if self.compiled else None
        # the same, with those of the centres in the first pass for which that is possible
        self.extended: LeadingDirections | None = None
        self.state: LloydState | None = None  # where the last pass was
        self.clusters: ClusterSums  # what it measured
        self._centres: PreparedCentres | None = None
        self._memory: dict[int, BlockMemory] = {}  # by the block's first row
        self._mark = PassMark(uuid4().hex, 0)  # by which workers know the passes

    def measure(self, state: LloydState) -> ClusterSums:
        """Assign all rows to their nearest centres and add up the clusters."""
        if self.directions is not None and self.extended is None:
            self.extended = add_directions_of(state.centres, self.directions)
        if not self.compiled:
            self.clusters = self.rows.sum(partial(_plain_sums, state.centres))
        elif self.rows.in_memory:
            self._centres = prepare_centres(state, self._centres, self.extended)
            self.clusters = kept(state, partial(self.rows.sum, self._remembered_sums))
        elif self.rows.distributed:
            self._centres = prepare_centres(state, self._centres)
            self._mark = self._mark.after()
            there = partial(_sums_on_workers, self._centres, self._mark)
            self.clusters = kept(state, partial(self.rows.sum, there))
        else:
            self.clusters = self.rows.sum(partial(_streamed_sums, prepare_centres(state, None)))
        self.state = state
        return self.clusters

    def _remembered_sums(self, block: Block) -> ClusterSums:
        assert self._centres is not None
        if block.start not in self._memory:
            self._memory[block.start] = new_memory(len(block.w))
        memory = self._memory[block.start]
        if self.extended is not None and memory.sketch is None:
            memory.sketch = sketch_rows(self.extended, block.X)
        return assign_rows(self._centres, memory, block)

    def labels(self) -> Array:
        """Return the nearest centres (n,) at the last pass."""
        assert self.state is not None
        if self._mark.number:
            return self.rows.map(partial(_labels_on_workers, self.state.centres, self._mark))
        if not self._memory:
            return nearest(self.rows, self.state.centres, self.tuning)
        return np.concatenate([self._memory[start].bounds.labels for start in sorted(self._memory)])

    def bound(self, C: Array, target: float | None = None, until: float = np.inf) -> float:
        """Return a number below which no k centres bring the objective; C (k, d) are good ones.

        The spectral bound serves all tables; for few rows the semidefinite bound is better, and takes longer than
        most fits. It is made where the best proof is wanted, or a bound at most `target` times smaller than the
        objective of C: few rows then get more time, but not beyond `until` (by `time.perf_counter`).
        """
        if self.directions is not None:
            return self._sketched_bound(len(C), self.extended or self.directions)
        assert self.state is not None
        k, (n, d), tuning = len(C), (self.rows.n_rows, self.rows.n_features), self.tuning
        mean = centre_of_mass(self.state.anchors, self.clusters.weight, self.clusters.sums)
        width = direction_count(k) if is_wide(d, k) and is_large(self.rows, k, tuning) else d
        bound = scatter_bound(self.rows, mean, float(self.clusters.weight.sum()), k, width)
        if target is None and not wants_best_proof():
            return bound
        return max(bound, gram_bound(self.rows, C, until, tuning=tuning.work(n, target)))

    def _sketched_bound(self, k: int, directions: LeadingDirections) -> float:
        remembered = self._memory and self.extended is not None
        f = self._remembered_scatter if remembered else partial(_scatter_in, directions)
        weight = float(self.clusters.weight.sum())
        return self.rows.sum(f).bound(k, weight, self.rows.n_rows, directions.error) / directions.scale**2

    def _remembered_scatter(self, block: Block) -> ClusterScatter:
        sketch = self._memory[block.start].sketch
        assert sketch is not None
        return _scatter_of(sketch, block.w)


def _scatter_in(directions: LeadingDirections, block: Block) -> ClusterScatter:
    return _scatter_of(sketch_rows(directions, block.X), block.w)


def _scatter_of(sketch: RowSketch, w: Array) -> ClusterScatter:
    return ClusterScatter.of(sketch.Y.astype(np.float64), w, np.minimum(sketch.length, 1e100) ** 2)
