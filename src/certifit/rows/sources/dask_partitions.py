"""Partitions of Dask collections: small ones are joined, lazy ones are held by the workers where they fit.

A pass over rows is a task for each partition, and each costs the scheduler about four milliseconds. Partitions much
smaller than they might be are therefore joined to groups, whose borders lie where a table in memory has borders of
blocks: the sums then have its bits. What is lazy would be read or computed anew in every pass; from the second pass
on it is held where there is room, and a line says so.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import dask
import numpy as np
from dask.delayed import delayed

from certifit.exceptions import DataError, tell_reader
from certifit.rows.sources.memory import available_bytes


@dataclass(frozen=True)
class PartitionTuning:
    """When partitions are joined, and when they are held."""

    most_groups: int = 256  # tasks of a pass, where partitions are small
    group_bytes: float = 128e6  # of a group, at most
    small_share: float = 0.25  # of a group's rows, up to which partitions are joined
    held_share: float = 0.5  # of the memory that is free, at most, that held partitions take


class DaskPartition(NamedTuple):
    """One partition: the arguments of its task."""

    X: Any  # a delayed array, or a pandas frame with every column in use
    y: Any  # a delayed array or series, a NumPy array, or None
    w: Any  # likewise, the row weights
    start: int  # number of its first row in the whole table
    rows: int


class PartitionStore:
    """Partitions that several rows share; it counts passes, and holds what is lazy from the second one on."""

    tuning: ClassVar[PartitionTuning] = PartitionTuning()

    def __init__(self, parts: list[DaskPartition], row_bytes: float, passes: int = 0) -> None:
        self.parts, self.bytes = parts, row_bytes * sum(part.rows for part in parts)
        self.passes = passes  # begun so far; counting the rows of partitions is one

    def begin_pass(self) -> list[DaskPartition]:
        """The partitions for one more pass."""
        self.passes += 1
        if self.passes == 2:
            self._hold()
        return self.parts

    def compute(self, *tasks: Any) -> tuple[Any, ...]:
        """The results of tasks of a pass; where the cluster is lost, the error says after how many passes."""
        return compute_tasks(*tasks, stood=f" in pass {self.passes} over the rows")

    def _hold(self) -> None:
        lazy = [value for part in self.parts for value in part[:3] if hasattr(value, "__dask_graph__")]
        if not lazy or not _has_work(lazy[0]) or self.bytes > self.tuning.held_share * free_bytes():
            return
        held = iter(keep_on_workers(lazy))
        for k, part in enumerate(self.parts):
            X, y, w = (next(held) if hasattr(value, "__dask_graph__") else value for value in part[:3])
            self.parts[k] = DaskPartition(X, y, w, part.start, part.rows)
        where = "the workers of the Dask cluster" if current_client() is not None else "this process"
        tell_reader(f"certifit: {self.bytes / 1e6:,.0f} MB of rows, lazy and read in every pass, are held by {where}")


# ------------------------------------------------------------------------------------------------ groups
def joined_partitions(
    parts: list[DaskPartition], block_rows: int, row_bytes: float, tuning: PartitionTuning = PartitionTuning()
) -> list[DaskPartition]:
    """Join partitions that are small, to groups of 2^k blocks; others stay as they are.

    Which they are depends on the partitions alone, not on the cluster, and so do the bits of a fit.
    """
    n = sum(part.rows for part in parts)
    rows = block_rows
    while rows * tuning.most_groups < n and 2 * rows * row_bytes <= tuning.group_bytes:
        rows *= 2
    if len(parts) < 2 or n / len(parts) > tuning.small_share * min(rows, n):
        return parts
    ends = np.cumsum([part.rows for part in parts])
    groups = []
    for first, last in pairwise([*range(0, n, rows), n]):
        inside = range(int(np.searchsorted(ends, first, side="right")), int(np.searchsorted(ends, last)) + 1)
        cuts = [(k, max(first - parts[k].start, 0), min(last - parts[k].start, parts[k].rows)) for k in inside]
        X, y, w = (_joined([_cut(parts[k][role], a, b, parts[k].rows) for k, a, b in cuts]) for role in range(3))
        groups.append(DaskPartition(X, y, w, first, last - first))
    return groups


def _cut(values: Any, first: int, last: int, rows: int) -> Any:
    """Some rows of a partition."""
    if values is None or (first, last) == (0, rows):
        return values
    return values[first:last] if isinstance(values, np.ndarray) else delayed(_some_rows)(values, first, last)


def _joined(pieces: list[Any]) -> Any:
    if pieces[0] is None or len(pieces) == 1:
        return pieces[0]
    return np.concatenate(pieces) if isinstance(pieces[0], np.ndarray) else delayed(_join)(pieces)


def _some_rows(values: Any, first: int, last: int) -> Any:
    return values.iloc[first:last] if hasattr(values, "iloc") else values[first:last]


def _join(pieces: list[Any]) -> Any:
    if not hasattr(pieces[0], "iloc"):
        return np.concatenate(pieces)
    import pandas as pd

    return pd.concat(pieces, ignore_index=True)


# ------------------------------------------------------------------------------------------------ the cluster
def compute_tasks(*tasks: Any, stood: str = "") -> tuple[Any, ...]:
    """The results of tasks; `stood` says in an error what they were for."""
    return _answered(dask.compute, tasks, stood)


def keep_on_workers(tasks: list[Any]) -> list[Any]:
    """Tasks whose results are computed now and stay where they are."""
    return list(_answered(dask.persist, tasks))


def _answered(ask: Callable[..., tuple[Any, ...]], tasks: Sequence[Any], stood: str = "") -> tuple[Any, ...]:
    try:
        if not _inside_a_task():
            return ask(*tasks)
        from distributed import worker_client

        # A task that waits for others gives its place to them, or they would wait for it.
        with worker_client():
            return ask(*tasks)
    except Exception as error:
        if not isinstance(error, CancelledError) and not type(error).__module__.startswith("distributed"):
            raise
        raise DataError(
            got=f"no answer from the Dask cluster{stood} ({type(error).__name__}: {' '.join(str(error).split())})",
            wanted="a scheduler and workers that answer",
            fix="Check that the cluster is up and its workers have memory enough, make a new dask.distributed.Client "
            "and fit again, from where it stood if fit(checkpoint='fit.ckpt') was asked for; without a Client, Dask "
            "uses the threads of this machine.",
        ) from error


def _inside_a_task() -> bool:
    """Whether this thread runs a task of a Dask worker."""
    if "distributed" not in sys.modules:
        return False
    from distributed import get_worker

    try:
        get_worker()
    except ValueError:
        return False
    return True


def current_client() -> Any:
    """The client of the cluster that computes tasks; None where threads of this process do."""
    if "distributed" not in sys.modules or dask.config.get("scheduler", None) in ("threads", "sync", "processes"):
        return None
    from distributed import get_client

    try:
        return get_client()
    except ValueError:
        return None


def free_bytes() -> float:
    """Memory that partitions could be held in: of all workers together, or of this process."""
    client = current_client()
    if client is None:
        return available_bytes()
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    used = (worker.get("metrics", {}).get("memory", 0) for worker in workers)
    return float(sum(max(worker["memory_limit"] - some, 0) for worker, some in zip(workers, used, strict=True)))


def _has_work(task: Any) -> bool:
    """Whether a collection has to be computed: it is neither held by workers nor data of this process."""
    nodes = list(dict(task.__dask_graph__()).values())
    if current_client() is not None:
        return not all(type(node).__name__ == "Future" for node in nodes)
    return any(callable(getattr(node, "func", None)) or (type(node) is tuple and callable(node[0])) for node in nodes)
