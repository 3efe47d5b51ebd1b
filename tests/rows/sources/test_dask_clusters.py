"""Sums over Dask workers: added in a tree, and the same bits when a worker is lost."""

import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, replace
from functools import partial
from textwrap import dedent

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from certifit import DataError, LogisticRegression
from certifit.rows import ArrayRows, as_rows, encode_labels
from certifit.rows.sources.dask_partitions import PartitionStore
from tests.rows.sources.one_table import BLOCK, CENTRE, COUNT, KIND, KINDS, D, X, bits, row_sums, scatter


@dataclass(frozen=True)
class Trace:
    """A sum that writes down in which order and in which processes it was added."""

    order: str
    places: frozenset = frozenset()

    def __add__(self, other):
        return Trace(f"({self.order}+{other.order})", self.places | other.places | {os.getpid()})


def trace(block):
    return Trace(str(block.start // BLOCK))


def test_partitions_are_added_in_a_tree(in_memory):
    rows = as_rows(da.from_array(X, chunks=(BLOCK, D)))
    assert rows.sum(trace).order == in_memory.sum(trace).order


def die_once(mark, centre, block):
    """Measure a block; the first to come to block 3 takes its worker down with it."""
    if block.start == 3 * BLOCK:
        try:
            os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            pass
        else:
            os.kill(os.getpid(), signal.SIGKILL)
    return scatter(centre, block)


def test_a_lost_worker_does_not_change_the_bits(tmp_path, in_memory):
    from distributed import Client, LocalCluster

    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with (
        dask.config.set({"distributed.worker.daemon": False, "logging.distributed": "critical"}),
        LocalCluster(**options, silence_logs=50) as cluster,
        Client(cluster) as client,
    ):
        before = set(client.run(os.getpid).values())
        rows = as_rows(da.from_array(X, chunks=(2 * BLOCK, D)), KIND, COUNT, target="classes")
        found = rows.sum(partial(die_once, str(tmp_path / "mark"), CENTRE))
        assert (tmp_path / "mark").exists()
        assert bits(found) == bits(in_memory.sum(partial(scatter, CENTRE)))
        assert before != set(client.run(os.getpid).values())
        np.testing.assert_array_equal(rows.map(row_sums), in_memory.map(row_sums))
        assert encode_labels(rows).classes.tolist() == KINDS.tolist()
        found = rows.sum(trace)
        assert found.order == in_memory.sum(trace).order
        assert os.getpid() not in found.places  # partial sums meet on the workers


def test_workers_that_come_and_go_do_not_change_the_bits():
    """An adaptive cluster, in a program of its own: none at first, more while there is work, and held blocks move."""
    program = """
        import time
        from functools import partial
        import dask.array as da
        from distributed import Client, LocalCluster
        from certifit.rows import ArrayRows, as_rows
        from certifit.rows.block import BlockTuning, block_tuning
        from tests.rows.sources.one_table import BLOCK, CENTRE, D, X, bits, scatter

        def slow_scatter(centre, block):
            time.sleep(0.03)
            return scatter(centre, block)

        small = {"n_workers": 0, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
        with block_tuning(BlockTuning(fixed_rows=BLOCK)), LocalCluster(**small) as cluster, Client(cluster) as client:
            cluster.adapt(minimum=0, maximum=3, interval="20ms", target_duration="50ms", wait_count=1)
            rows = as_rows(da.from_array(X, chunks=(BLOCK, D)))
            counts, sums = set(), set()
            for _ in range(10):
                counts.add(len(client.nthreads()))
                sums.add(bits(rows.sum(partial(slow_scatter, CENTRE))))
            assert 0 in counts and len(counts) > 1, counts
            assert sums == {bits(ArrayRows(X).sum(partial(scatter, CENTRE)))}
    """
    told = subprocess.run([sys.executable, "-c", dedent(program)], capture_output=True, text=True, timeout=300)
    assert told.returncode == 0, told.stderr


def test_a_cluster_without_workers_is_waited_for_and_then_refused(monkeypatch, capsys):
    from distributed import Client, LocalCluster

    swift = replace(PartitionStore.tuning, look_seconds=0.1, worker_seconds=1.0)
    monkeypatch.setattr(PartitionStore, "tuning", swift)
    monkeypatch.setattr("certifit.exceptions.in_notebook", lambda: True)
    small = {"n_workers": 0, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    with LocalCluster(**small, silence_logs=50) as cluster, Client(cluster):
        rows = as_rows(da.ones((10, 2), chunks=5))
        with pytest.raises(DataError, match=r"no workers of the Dask cluster inproc://.* for 1 s") as caught:
            rows.sum(lambda block: block.X.sum())
        assert "wait_for_workers" in caught.value.fix
        assert "has no workers; waiting for the first one" in capsys.readouterr().err
        monkeypatch.setattr(PartitionStore, "tuning", replace(swift, worker_seconds=300.0))
        late = threading.Timer(0.5, cluster.scale, (1,))
        late.start()
        assert rows.sum(lambda block: block.X.sum()) == 20
        late.join()


def test_a_client_that_never_reached_a_scheduler_is_not_waited_for_without_end(monkeypatch):
    from distributed import Client, default_client

    tuning = replace(PartitionStore.tuning, look_seconds=0.1, reach_seconds=0.5)
    monkeypatch.setattr(PartitionStore, "tuning", tuning)
    with pytest.raises(ValueError, match="missing port number"):
        Client("nowhere")
    try:
        with pytest.raises(DataError, match="its client is connecting"):
            as_rows(da.ones((10, 2), chunks=5)).sum(lambda block: block.X.sum())
    finally:
        default_client().close(timeout=5)


def part_of_frame(first, last):
    return pd.DataFrame(X[first:last], columns=[f"x{j}" for j in range(D)])


def test_partitions_that_one_worker_has_are_held_together(monkeypatch):
    """Rows stay where they are; sums of partitions that do not follow each other have the bits all the same."""
    from distributed import Client, LocalCluster

    monkeypatch.setattr(PartitionStore, "tuning", replace(PartitionStore.tuning, runs_per_thread=1))
    plain = ArrayRows(X)
    small = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    with LocalCluster(**small, silence_logs=50) as cluster, Client(cluster) as client:
        workers = [*client.nthreads()]
        parts, owners = [], []
        for k, first in enumerate(range(0, len(X), BLOCK + 40)):
            owners.append(workers[k % 3 == 0])
            parts.append(client.submit(part_of_frame, first, first + BLOCK + 40, workers=owners[-1]))
        rows = as_rows(dd.from_delayed(parts, meta=part_of_frame(0, 0)))
        sums = {bits(rows.sum(partial(scatter, CENTRE))) for _ in range(3)}
        assert sums == {bits(plain.sum(partial(scatter, CENTRE)))}
        assert all(len({rows.store.owners[number] for number in run.numbers}) == 1 for run in rows.store.runs)
        assert len(rows.store.runs) < len(rows.parts)
        assert sorted(number for run in rows.store.runs for number in run.numbers) == [*range(len(rows.parts))]
        assert {*rows.store.owners} == {*workers}
        np.testing.assert_array_equal(rows.map(row_sums), plain.map(row_sums))
        assert [block.start for block in rows] == [*range(0, len(X), BLOCK)]


def fit_there(frame):
    return LogisticRegression().fit(frame, "t").coef_


def test_a_fit_inside_the_only_worker_does_not_wait_for_itself():
    from distributed import Client

    table = pd.DataFrame(X - CENTRE, columns=[f"x{j}" for j in range(D)])
    table["t"] = (table["x0"] > 0).astype(int)
    options = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    with dask.config.set({"distributed.comm.timeouts.connect": "60s"}), Client(**options, silence_logs=50) as client:
        inside = client.submit(fit_there, dd.from_pandas(table, npartitions=50)).result(timeout=120)
    np.testing.assert_array_equal(inside, LogisticRegression().fit(table.drop(columns="t"), table["t"]).coef_)
