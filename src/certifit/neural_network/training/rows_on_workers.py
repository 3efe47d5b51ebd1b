"""Training on a Dask cluster: rows stay on the workers, which measure the chunks of every minibatch.

Chunks, their order and their arithmetic are those of a fit in memory, and their slopes are added in the same tree: so
the bits are the same too. A chunk of every minibatch lies on some worker; only slopes and parameters travel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from certifit.files.rows_on_disk import arrays_on_disk
from certifit.neural_network.network import Network
from certifit.neural_network.output_losses import OutputLoss
from certifit.neural_network.training.chunks import ChunkMeasure, TrainingTuning
from certifit.neural_network.training.network_rows import MinibatchRows, NetworkRows
from certifit.neural_network.training.slopes import MinibatchSlopes
from certifit.rows import Array, Block, Rows
from certifit.rows.threads import single_threaded_blas

TargetTable = Callable[[Array], Array]  # targets as wide as the scores


@dataclass(frozen=True)
class WorkerTuning:
    """How much of a table is put in order at a time."""

    window_entries: int = 1 << 26


@dataclass(frozen=True)
class RowsOnWorkers:
    """Rows to learn from, in the partitions of a Dask collection."""

    rows: Any  # DaskRows
    table: TargetTable
    dtype: np.dtype
    index: Array  # (n,) numbers of the rows that are used
    w: Array  # (n,) their positive weights

    @classmethod
    def of(cls, rows: Rows, table: TargetTable, dtype: np.dtype) -> RowsOnWorkers:
        """All rows with a positive weight."""
        w = rows.map(_weights)
        index = np.flatnonzero(w > 0)
        return cls(rows, table, dtype, index, w[index])

    @property
    def columns(self) -> int:
        return int(self.rows.n_features)

    @property
    def Y(self) -> Array:
        """Targets (n, k)."""
        return self.rows.map(partial(_target_table, self.table))[self.index].astype(self.dtype)

    def part(self, index: Array) -> RowsOnWorkers:
        """The rows with these numbers, which ascend."""
        return RowsOnWorkers(self.rows, self.table, self.dtype, self.index[index], self.w[index])

    def take(self, index: Array) -> NetworkRows:
        """The same here, in memory."""
        from certifit.rows.sources.dask_partitions import compute_tasks

        return _as_network_rows(self.table, self.dtype, compute_tasks(*self.rows.gather([self.index[index]]))[0])

    def on_disk(self) -> NetworkRows:
        """All of them in a temporary file here."""

        def parts() -> Any:
            for block in self.rows:
                first, last = np.searchsorted(self.index, [block.start, block.start + len(block.w)])
                here = self.index[first:last] - block.start
                picked = _as_network_rows(
                    self.table, self.dtype, Block(block.X[here], block.y[here], block.w[here], 0)
                )
                yield picked.X, picked.Y, picked.w

        return NetworkRows(*arrays_on_disk(parts()))

    def __len__(self) -> int:
        return len(self.w)


def slopes_of(rows: MinibatchRows, network: Network, loss: OutputLoss, params: Array) -> MinibatchSlopes:
    """What measures minibatches of these rows."""
    if isinstance(rows, RowsOnWorkers):
        return WorkerSlopes(rows, network, loss, params)
    return MinibatchSlopes(network, loss, params)


class ChunkTask(NamedTuple):
    """What a worker needs to measure one chunk of a minibatch."""

    place: int  # of the chunk in the minibatch
    rows: slice  # of those that it holds
    weight: float  # of the minibatch
    seed: tuple[int, ...] | None  # of what training draws


class WorkerSlopes(MinibatchSlopes):
    """Loss and slopes of minibatches, measured where the rows are."""

    def __init__(
        self,
        rows: RowsOnWorkers,
        network: Network,
        loss: OutputLoss,
        params: Array,
        worker_tuning: WorkerTuning = WorkerTuning(),
    ) -> None:
        super().__init__(network, loss, params)
        from certifit.rows.sources.dask import shared_task

        self.rows, self.worker_tuning = rows, worker_tuning
        self.model = shared_task((network, loss, self.tuning))
        self.order, self.batch = np.zeros(0, np.int64), 1
        self.held: list[Any] = []  # the first chunk of some minibatches, then the second of them, …
        self.first = self.last = 0  # the minibatches of which chunks are held
        self.starts = np.zeros((0, 0), np.int64)  # (minibatches, chunks) where each begins among those held

    def expect(self, order: Array, batch: int) -> None:
        self.order, self.batch = order, batch
        self.held, self.first, self.last = [], 0, 0

    def pair_at(
        self,
        rows: MinibatchRows,
        index: Array,
        weight: float,
        seed: tuple[int, ...],
        before: Callable[[int], None] = lambda thread: None,
    ) -> tuple[float, Array]:
        from dask.delayed import delayed

        from certifit.rows.sources.dask import shared_task
        from certifit.rows.sources.dask_partitions import compute_tasks

        before(0)
        number, chunks = seed[-1], self.chunks_of(len(index))
        if not self.first <= number < self.last:
            self._fetch(number)
        params = shared_task(self.params.copy())
        parts = [
            delayed(_measure)(self.model, params, self.held[c], self._task(number, c, weight, seed))
            for c in range(chunks)
        ]
        while len(parts) > 1:  # the tree of a fit in memory
            half = len(parts) // 2
            parts = [delayed(_add)(parts[k], parts[k + half]) for k in range(half)]
        losses, slopes = compute_tasks(parts[0])[0]
        self.interrupt.answer()
        return float(losses[:chunks].sum()) / weight, slopes[None].copy()

    def _edges(self, number: int) -> list[int]:
        """Where the chunks of a minibatch begin and end in the order of the epoch."""
        start = number * self.batch
        rows = min(self.batch, len(self.order) - start)
        chunks = self.chunks_of(rows)
        return [start + rows * c // chunks for c in range(chunks + 1)]

    def _fetch(self, number: int) -> None:
        """Bring the rows of this minibatch and of some after it together on the workers."""
        from dask.delayed import delayed

        from certifit.rows.sources.dask import shared_task
        from certifit.rows.sources.dask_partitions import keep_on_workers

        most = max(1, self.worker_tuning.window_entries // (self.batch * self.rows.columns))
        self.first, self.last = number, min(number + most, -(-len(self.order) // self.batch))
        every = [self._edges(k) for k in range(self.first, self.last)]
        lists = [
            np.concatenate([self.order[e[c] : e[c + 1]] for e in every if c + 1 < len(e)])
            for c in range(len(every[0]) - 1)
        ]
        self.starts = np.zeros((len(every) + 1, len(lists)), np.int64)
        for k, edges in enumerate(every):
            self.starts[k + 1] = self.starts[k]
            self.starts[k + 1, : len(edges) - 1] += np.diff(edges)
        blocks = self.rows.rows.gather([self.rows.index[rows] for rows in lists])
        table = shared_task(self.rows.table)
        self.held = keep_on_workers([delayed(_as_network_rows)(table, self.rows.dtype, block) for block in blocks])

    def _task(self, number: int, c: int, weight: float, seed: tuple[int, ...]) -> ChunkTask:
        start, end = self.starts[number - self.first : number - self.first + 2, c]
        rows = slice(int(start), int(end))
        return ChunkTask(c, rows, weight, (*seed, c) if self.network.draws else None)


# ------------------------------------------------------------------------------------------------ on the workers
def _weights(block: Block) -> Array:
    return block.w


def _target_table(table: TargetTable, block: Block) -> Array:
    return table(np.asarray(block.y))


def _as_network_rows(table: TargetTable, dtype: np.dtype, block: Block) -> NetworkRows:
    return NetworkRows(block.X, table(np.asarray(block.y)).astype(dtype), block.w)


def _measure(
    model: tuple[Network, OutputLoss, TrainingTuning], params: Array, held: NetworkRows, task: ChunkTask
) -> Any:
    """The loss of one chunk, at its place among zeros, and its slopes."""
    network, loss, tuning = model
    losses, slopes = np.zeros(tuning.most_chunks), np.zeros(network.n_parameters, params.dtype)
    draw = None if task.seed is None else np.random.default_rng(task.seed)
    rows, parts = held.take(task.rows), (network.parts(params), network.parts(slopes))
    with single_threaded_blas(), np.errstate(over="ignore", invalid="ignore"):
        measure = ChunkMeasure(network, loss, tuning)
        losses[task.place] = measure.measure(*parts, (rows.take, len(rows)), task.weight, draw)
    return losses, slopes


def _add(one: Any, other: Any) -> Any:
    return one[0] + other[0], one[1] + other[1]
