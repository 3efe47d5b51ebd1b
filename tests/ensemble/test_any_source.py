"""Trees and ensembles from memory, Parquet and Dask, on any number of threads, a worker lost: the same bits."""

import hashlib
import os
import signal
import warnings
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import BaseEstimator

import certifit
from certifit.rows import set_threads

N, BLOCK, PART = 1500, 256, 350  # partitions end inside blocks
GROVE = {"n_estimators": 3, "max_depth": 5, "random_state": 0}
MODELS = [
    certifit.DecisionTreeClassifier(max_depth=4),
    certifit.DecisionTreeRegressor(max_leaf_nodes=9),
    certifit.DecisionTreeClassifier(max_depth=4, max_bins=32),
    certifit.OptimalTreeClassifier(max_depth=2, max_bins=6, time_limit=0.0),
    certifit.OptimalTreeRegressor(max_depth=2, max_bins=6, time_limit=0.0),
    certifit.RandomForestClassifier(**GROVE, oob_score=True),
    certifit.RandomForestRegressor(**GROVE),
    certifit.ExtraTreesClassifier(**GROVE),
    certifit.AdaBoostClassifier(n_estimators=5),
    certifit.AdaBoostClassifier(n_estimators=5, max_bins=16),
    certifit.HistGradientBoostingClassifier(max_iter=4, early_stopping=True, random_state=0),
    certifit.HistGradientBoostingRegressor(max_iter=4, categorical_features=["x3"], random_state=0),
    certifit.HistGradientBoostingRegressor(loss="quantile", quantile=[0.1, 0.9], max_iter=3, random_state=0),
    certifit.GradientBoostingClassifier(n_estimators=3, subsample=0.7, random_state=0),
    certifit.GradientBoostingRegressor(n_estimators=3, loss="huber"),
    certifit.AdaBoostRegressor(n_estimators=3, random_state=0),
    certifit.BaggingRegressor(n_estimators=3, random_state=0),
    certifit.AdditiveClassifier(alpha=0.01),
    certifit.AdditiveRegressor(alpha=0.1, interactions=[("x0", "x1")]),
]
each_model = pytest.mark.parametrize("model", MODELS, ids=lambda m: repr(m).partition("(")[0])


def frame():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(N, 4))
    X[:, 3] = rng.integers(0, 7, N)
    kind = (X[:, 0] + np.sin(3 * X[:, 1]) + 0.5 * rng.normal(size=N) > 0).astype(int)
    amount = X[:, 0] * X[:, 1] + (X[:, 3] > 3) + 0.1 * rng.normal(size=N)
    X[rng.random(X.shape) < 0.03] = np.nan
    columns = {f"x{j}": X[:, j] for j in range(4)}
    return pd.DataFrame({**columns, "kind": kind, "amount": amount, "w": rng.random(N) + 0.1})


FRAME = frame()
NAMES = [f"x{j}" for j in range(4)]


def target(model):
    return "kind" if model.target == "classes" else "amount"


def add_arrays(value, found):
    """Add every array inside a fitted attribute to a digest."""
    if isinstance(value, np.ndarray):
        found.update(f"{value.dtype}{value.shape}".encode() + value.tobytes())
    elif isinstance(value, (list, tuple)):
        for part in value:
            add_arrays(part, found)
    elif is_dataclass(value):
        for f in fields(value):
            add_arrays(getattr(value, f.name), found)
    elif isinstance(value, BaseEstimator):  # a member of a bag
        add_attributes(value, found)


def add_attributes(model, found):
    for name, value in sorted(vars(model).items()):
        if name.endswith("_") and name not in ("certificate_", "feature_names_in_"):
            add_arrays(value, found)


def digest(model):
    found = hashlib.sha256()
    add_attributes(model, found)
    return found.hexdigest()


def fitted(model, X, *more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", certifit.CertificateWarning)
        return digest(model.fit(X, *more))


@each_model
def test_threads_and_sources_do_not_change_the_bits(model, tmp_path, blocks_of):
    blocks_of(BLOCK)
    table = FRAME[[*NAMES, target(model), "w"]]
    found = set()
    try:
        for threads in (1, 2, 4):
            set_threads(threads)
            found.add(fitted(model, table, target(model), "w"))
    finally:
        set_threads(None)
    pq.write_table(pa.Table.from_pandas(table), tmp_path / "t.parquet", row_group_size=77)
    found.add(fitted(model, str(tmp_path / "t.parquet"), target(model), "w"))
    assert model.certificate_.holds
    parts = dd.from_map(lambda a: table.iloc[a : a + PART], list(range(0, N, PART)), meta=table.iloc[:0])
    found.add(fitted(model, parts, target(model), "w"))
    assert len(found) == 1
    other = table.assign(x0=table["x0"] + (table["x0"] > 0.5))
    assert fitted(model, other, target(model), "w") not in found


def die_once(mark, names, start):
    """A partition of the table; the first to read the second one takes its worker down with it."""
    if start == PART:
        try:
            os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            pass
        else:
            os.kill(os.getpid(), signal.SIGKILL)
    return FRAME[names].iloc[start : start + PART]


def test_a_lost_worker_does_not_change_the_bits(tmp_path, blocks_of):
    from distributed import Client, LocalCluster

    blocks_of(BLOCK)
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with (
        dask.config.set({"distributed.worker.daemon": False, "logging.distributed": "critical"}),
        LocalCluster(**options, silence_logs=50) as cluster,
        Client(cluster),
    ):
        names = [*NAMES, "kind", "w"]
        model = certifit.RandomForestClassifier(**GROVE, oob_score=True)
        mark = str(tmp_path / "died")
        read = partial(die_once, mark, names)
        parts = dd.from_map(read, list(range(0, N, PART)), meta=FRAME[names].iloc[:0])
        assert fitted(model, parts, "kind", "w") == fitted(model, FRAME[names], "kind", "w")
        assert Path(mark).exists()


def test_splits_are_searched_again_wherever_rows_come_from_and_an_audit_says_where_they_are_not(tmp_path):
    table = FRAME[[*NAMES, "kind"]]
    pq.write_table(pa.Table.from_pandas(table), tmp_path / "t.parquet")
    model = certifit.DecisionTreeClassifier(max_depth=4)
    memory = model.fit(table, "kind").certificate_
    files = model.fit(str(tmp_path / "t.parquet"), "kind").certificate_
    assert files.claim == memory.claim
    assert [check.name for check in files.checks] == [check.name for check in memory.checks]
    again = certifit.audit(model, str(tmp_path / "t.parquet"), "kind")
    assert again.holds
    assert "not searched again" in again.claim
    assert len(again.checks) < len(files.checks)
