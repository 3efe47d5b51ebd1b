"""Sums over Dask workers: added in a tree, and the same bits when a worker is lost."""

import os
import signal
from dataclasses import dataclass
from functools import partial

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd

from certifit import LogisticRegression
from certifit.rows import as_rows, encode_labels
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
