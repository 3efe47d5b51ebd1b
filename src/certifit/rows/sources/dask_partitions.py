"""Partitions of Dask collections: small ones are joined, and workers hold their blocks of rows where these fit.

A pass over rows is a task for each partition, and each costs the scheduler about three milliseconds. Partitions much
smaller than they might be are therefore joined to groups. Whatever the partitions, their borders are moved to where a
table in memory has borders of blocks, so that sums have its bits: the rows of a block that two partitions share go to
the second. What is lazy would be read or computed anew in every pass, and rows of a frame
would be cut out of its columns and checked; from the second pass on their blocks are held where there is room, a few
runs of partitions for each worker's thread, of those that the same worker has, and a line says so.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, ClassVar, NamedTuple

import dask
import numpy as np
from dask.delayed import delayed

from certifit.exceptions import DataError, tell_reader
from certifit.rows.sources.memory import available_bytes
from certifit.rows.sources.workers.partition_values import check_length
from certifit.rows.threads import thread_count


@dataclass(frozen=True)
class PartitionTuning:
    """When partitions are joined, and when they are held."""

    most_groups: int = 256  # tasks of a pass, where partitions are small
    group_bytes: float = 128e6  # of a group, at most
    small_share: float = 0.25  # of a group's rows, up to which partitions are joined
    held_share: float = 0.5  # of the memory that is free, at most, that held blocks take
    runs_per_thread: int = 4  # of held partitions, each one task of a pass: enough that no thread waits long
    sums_of_a_task: int = 16  # that one task adds; a power of two
    look_seconds: float = 2.0  # between two looks at whether a cluster whose answer is waited for has workers
    worker_seconds: float = 300.0  # for the first worker of a cluster that has none
    reach_seconds: float = 30.0  # for a client to reach its scheduler


class DaskPartition(NamedTuple):
    """One partition, or several of which some rows are taken: the arguments of its task."""

    X: list[Any]  # of delayed arrays, or pandas frames with every column in use, one after the other
    y: list[Any] | None  # of delayed arrays or series, or NumPy arrays
    w: list[Any] | None  # likewise, the row weights
    start: int  # number of its first row in the whole table
    rows: int


class PartitionRun(NamedTuple):
    """Some partitions, ascending, that one task of a pass is given."""

    numbers: Sequence[int]
    parts: Any  # a task that gives the list of each partition's blocks, held by a worker; or their arguments


class PartitionStore:
    """Partitions that several rows share; it counts passes, and has their blocks held from the second one on."""

    tuning: ClassVar[PartitionTuning] = PartitionTuning()

    def __init__(
        self, parts: list[DaskPartition], row_bytes: float, passes: int, joined: bool, owners: Sequence[str] = ()
    ) -> None:
        self.parts, self.bytes = parts, row_bytes * sum(part.rows for part in parts)
        self.joined = joined  # of smaller ones, which would be done again in every pass
        self.passes = passes  # begun so far; counting the rows of partitions is one
        self.owners = owners or [""] * len(parts)  # the worker that has each partition, where that is known
        self.runs: list[PartitionRun] = []  # none where blocks are not held

    def begin_pass(self, cut: Callable[[list[DaskPartition]], Any]) -> list[PartitionRun]:
        """The partitions that each task of one more pass is given; `cut` makes lists of blocks of them."""
        self.passes += 1
        if self.passes == 2:
            self._hold(cut)
        return self.runs or [PartitionRun([number], [tuple(part)]) for number, part in enumerate(self.parts)]

    def partition(self, number: int) -> Any:
        """One partition, as tasks take it: its arguments, or a task that gives its blocks."""
        for run in self.runs:
            if number in run.numbers:
                return run.parts[run.numbers.index(number)]
        return tuple(self.parts[number])

    def compute(self, *tasks: Any) -> tuple[Any, ...]:
        """The results of tasks of a pass; where the cluster is lost, the error says after how many passes."""
        return compute_tasks(*tasks, stood=f" in pass {self.passes} over the rows")

    def _hold(self, cut: Callable[[list[DaskPartition]], Any]) -> None:
        given = chain.from_iterable(values or () for part in self.parts for values in part[:3])
        lazy = [value for value in given if hasattr(value, "__dask_graph__")]
        # On a cluster, what is held already is cut, checked and joined to runs, once instead of in every pass.
        work = self.joined or current_client() is not None or (lazy and _has_work(lazy[0]))
        if not lazy or not work or self.bytes > self.tuning.held_share * free_bytes():
            return
        count = 1
        while 2 * count * self.tuning.runs_per_thread * thread_total() <= len(self.parts):
            count *= 2  # a run of 2^k partitions is a subtree of their sum
        of_owners: dict[str, list[int]] = {}  # so that rows need not go from worker to worker
        for number, owner in enumerate(self.owners):
            of_owners.setdefault(owner, []).append(number)
        runs = [own[k : k + count] for own in of_owners.values() for k in range(0, len(own), count)]
        held = keep_on_workers([cut([self.parts[number] for number in run]) for run in runs])
        self.runs = [PartitionRun(*run) for run in zip(runs, held, strict=True)]
        where = "the workers of the Dask cluster" if current_client() is not None else "this process"
        tell_reader(f"certifit: {self.bytes / 1e6:,.0f} MB of rows, lazy and read in every pass, are held by {where}")


# ------------------------------------------------------------------------------------------------ groups
def joined_partitions(
    parts: list[DaskPartition], block_rows: int, row_bytes: float, tuning: PartitionTuning = PartitionTuning()
) -> list[DaskPartition]:
    """Have partitions begin where blocks do; small ones are joined, to groups of 2^k blocks.

    Where they begin depends on the partitions alone, not on the cluster.
    """
    n = sum(part.rows for part in parts)
    rows = block_rows
    while rows * tuning.most_groups < n and 2 * rows * row_bytes <= tuning.group_bytes:
        rows *= 2
    ends = np.cumsum([part.rows for part in parts])
    if len(parts) > 1 and n / len(parts) <= tuning.small_share * min(rows, n):
        borders = [*range(0, n, rows), n]
    else:
        borders = sorted({0, *(end // block_rows * block_rows for end in ends.tolist()), n})
    if borders == [0, *ends]:
        return parts
    groups = []
    for first, last in pairwise(borders):
        inside = range(int(np.searchsorted(ends, first, side="right")), int(np.searchsorted(ends, last)) + 1)
        cuts = [(parts[k], max(first - parts[k].start, 0), min(last - parts[k].start, parts[k].rows)) for k in inside]
        X, y, w = (_pieces(role, cuts) for role in ("X", "y", "w"))
        groups.append(DaskPartition(X or [], y, w, first, last - first))
    return groups


def _pieces(role: str, cuts: Sequence[tuple[DaskPartition, int, int]]) -> list[Any] | None:
    """Some rows of each partition's X, y or w."""
    if getattr(cuts[0][0], role) is None:
        return None
    return [_cut(getattr(part, role)[0], first, last, part.rows, role) for part, first, last in cuts]


def _cut(values: Any, first: int, last: int, rows: int, role: str) -> Any:
    """Some rows of a partition."""
    if (first, last) == (0, rows):
        return values
    if isinstance(values, np.ndarray):
        return values[first:last]
    return delayed(_cut_here)(values, first, last, rows, role)


def _cut_here(values: Any, first: int, last: int, rows: int, role: str) -> Any:
    """Some rows of a partition, refused where it has not the length of that of X, which Dask may not know."""
    check_length(len(values), rows, role)
    return take_rows(values, first, last)


def take_rows(values: Any, first: int, last: int) -> Any:
    """The rows with these numbers of an array, a series or a frame."""
    return values.iloc[first:last] if hasattr(values, "iloc") else values[first:last]


def take_from(pieces: Sequence[Any], first: int, last: int) -> list[Any]:
    """The rows with these numbers of pieces that lie one after the other."""
    found = []
    for piece in pieces:
        if first < len(piece) and last > 0:
            found.append(take_rows(piece, max(first, 0), last))
        first, last = first - len(piece), last - len(piece)
    return found


# ------------------------------------------------------------------------------------------------ the cluster
def compute_tasks(*tasks: Any, stood: str = "") -> tuple[Any, ...]:
    """The results of tasks; `stood` says in an error what they were for."""
    return _answered(_computed, tasks, stood)


def _computed(*tasks: Any) -> tuple[Any, ...]:
    """The results of tasks, from the current cluster as soon as it has workers, or from threads of this process."""
    client = current_client()
    if client is None:
        return dask.compute(*tasks)
    from distributed import wait

    tuning, begin, told = PartitionStore.tuning, time.monotonic(), False
    futures = client.compute(list(tasks))
    try:
        while True:
            try:
                wait(futures, timeout=tuning.look_seconds)
                return tuple(client.gather(futures))
            except TimeoutError:
                # Tasks wait for ever where nobody runs them; that they wait has an adaptive cluster start workers.
                reached = client.status == "running"
                if reached and client.nthreads():
                    begin, told = time.monotonic(), False
                elif time.monotonic() - begin > (tuning.worker_seconds if reached else tuning.reach_seconds):
                    raise _without_workers(client, time.monotonic() - begin) from None
                elif not told:
                    tell_reader(f"certifit: {_named(client)} has no workers; waiting for the first one")
                    told = True
    finally:
        for future in futures:
            future.release()


def _named(client: Any) -> str:
    """A cluster in words."""
    return f"the Dask cluster {getattr(client.scheduler, 'address', '')}".rstrip()


def _without_workers(client: Any, seconds: float) -> DataError:
    """What to say where no worker came."""
    return DataError(
        got=f"no workers of {_named(client)} for {seconds:.0f} s (its client is {client.status})",
        wanted="at least one worker",
        fix="Start workers, and wait for them with client.wait_for_workers(1) where they take longer; or close a "
        "client that was left behind: dask.distributed.default_client().close().",
    )


def keep_on_workers(tasks: list[Any]) -> list[Any]:
    """Tasks whose results are computed now and stay where they are."""
    return list(_answered(dask.persist, tasks))


def _answered(ask: Callable[..., tuple[Any, ...]], tasks: Sequence[Any], stood: str = "") -> tuple[Any, ...]:
    try:
        if not worker_address():
            return ask(*tasks)
        from distributed import worker_client

        # A task that waits for others gives its place to them, or they would wait for it.
        with worker_client():
            return ask(*tasks)
    except Exception as error:
        lost = isinstance(error, (CancelledError, TimeoutError)) or type(error).__module__.startswith("distributed")
        if isinstance(error, OSError) and not lost:
            raise _unread(error) from error
        if isinstance(error, KeyError) and not lost:
            raise DataError(
                got=f"a Dask collection of which a partition lacks a key ({' '.join(map(str, error.args))})",
                wanted="the same columns in all partitions",
                fix="Add them where the partition is made.",
            ) from error
        if not lost:
            raise
        raise DataError(
            got=f"no answer from the Dask cluster{stood} ({type(error).__name__}: {' '.join(str(error).split())})",
            wanted="a scheduler and workers that answer",
            fix="Check that the cluster is up and its workers have memory enough, make a new dask.distributed.Client "
            "and fit again, from where it stood if fit(checkpoint='fit.ckpt') was asked for; without a Client, Dask "
            "uses the threads of this machine.",
        ) from error


def _unread(error: OSError) -> DataError:
    """What to say where a task of a collection could not read what it is made of."""
    return DataError(
        got=f"a Dask collection of which a partition cannot be read ({' '.join(str(error).split())})",
        wanted="files that are there and complete",
        fix="Fit to the path of the files, without Dask, to learn which one it is and where.",
    )


def worker_address() -> str:
    """The address of the Dask worker of which this thread runs a task; empty where it runs none."""
    if "distributed" not in sys.modules:
        return ""
    from distributed import get_worker

    try:
        return str(get_worker().address)
    except ValueError:
        return ""


def current_client() -> Any:
    """The client of the cluster that computes tasks; None where threads of this process do."""
    named = dask.config.get("scheduler", None) in (None, "dask.distributed", "distributed")
    if not named or "distributed" not in sys.modules:
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
    # a worker without a limit has what there is here, in the likely case that machines are alike
    left = ((worker["memory_limit"] or available_bytes()) - worker["metrics"].get("memory", 0) for worker in workers)
    return float(sum(max(some, 0) for some in left))


def thread_total() -> int:
    """Threads that work on tasks: of all workers together, or of this process."""
    client = current_client()
    if client is None:
        return thread_count()
    return max(1, sum(client.nthreads().values()))


def _has_work(task: Any) -> bool:
    """Whether a collection has to be computed: it is no data of this process."""
    nodes = list(dict(task.__dask_graph__()).values())
    return any(callable(getattr(node, "func", None)) or (type(node) is tuple and callable(node[0])) for node in nodes)
