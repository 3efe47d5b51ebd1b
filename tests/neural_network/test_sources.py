"""Networks from files and from Dask: the bits of a fit in memory, without all rows in memory."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from certifit import ConvNetClassifier, MLPClassifier, MLPRegressor
from certifit.neural_network.network import perceptron
from certifit.neural_network.output_losses import OUTPUT_LOSSES
from certifit.neural_network.training.network_rows import NetworkRows
from certifit.neural_network.training.rows_on_workers import RowsOnWorkers, WorkerSlopes, WorkerTuning
from certifit.neural_network.training.slopes import MinibatchSlopes
from certifit.neural_network.training.stochastic import OrderTuning, epoch_order
from certifit.rows import as_rows
from certifit.rows.rows import Rows
from certifit.rows.sources.dask import DaskRows

RNG = np.random.default_rng(0)
N, D = 500, 12
X = RNG.normal(size=(N, D)).astype(np.float32)
KIND = np.array(["low", "mid", "high"])[np.digitize(X[:, 0] + X[:, 1] ** 2, [0.0, 1.5])]
AMOUNT = X @ RNG.normal(size=D) + 1.0
WEIGHT = RNG.integers(0, 3, N).astype(float)
NAMES = [f"x{j}" for j in range(D)]
FRAME = pd.DataFrame(X, columns=NAMES).assign(kind=KIND, amount=AMOUNT, weight=WEIGHT)
FIT = {"max_iter": 3, "batch_size": 64, "random_state": 0}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Three Parquet files, with small row groups that no block ends at."""
    folder = tmp_path_factory.mktemp("rows")
    for k, (a, b) in enumerate(((0, 90), (90, 333), (333, N))):
        table = pa.Table.from_pandas(FRAME.iloc[a:b], preserve_index=False)
        pq.write_table(table, folder / f"{k}.parquet", row_group_size=37)
    return folder


@pytest.fixture
def nothing_loaded(monkeypatch):
    """Rows that are not in memory cannot be loaded."""

    def refuse(_):
        raise AssertionError("all rows were loaded")

    monkeypatch.setattr(Rows, "load", refuse)


def same(one, other):
    pairs = zip((*one.coefs_, *one.intercepts_), (*other.coefs_, *other.intercepts_), strict=True)
    return all(a.dtype == b.dtype and (a == b).all() for a, b in pairs)


def dask_frame(rows):
    return dd.from_pandas(FRAME, chunksize=rows, sort=False)


MORE = {
    "plain": {},
    "early stopping": {"early_stopping": True, "validation_fraction": 0.2},
    "lbfgs": {"solver": "lbfgs", "alpha": 20.0, "max_iter": 300},
}


@pytest.mark.parametrize("more", MORE)
@pytest.mark.usefixtures("nothing_loaded")
def test_files_give_the_bits_of_memory(files, blocks_of, more):
    settings = {**FIT, **MORE[more], "tol": 1e-2}
    features = [*NAMES, "weight"]
    whole = MLPClassifier((9,), **settings).fit(FRAME[features], KIND, sample_weight=WEIGHT)
    for rows in (64, 200):
        blocks_of(rows)
        found = MLPClassifier((9,), **settings)
        found.fit(str(files / "*.parquet"), "kind", sample_weight=WEIGHT, columns=features)
        assert same(found, whole)
        assert (
            found.loss_curve_ == whole.loss_curve_ if not settings.get("solver") else found.n_iter_ == whole.n_iter_
        )
        assert found.certificate_.holds


@pytest.mark.parametrize("partition", [100, 333])
@pytest.mark.usefixtures("nothing_loaded")
def test_dask_gives_the_bits_of_memory(partition):
    """Chunks of 64 rows are measured on workers and added there in the order of memory; also with dropout."""
    layers = [("dense", 400), "relu", ("dropout", 0.2)]
    settings = {**FIT, "layers": layers, "batch_size": 256, "max_iter": 2}
    whole = ConvNetClassifier(**settings).fit(X, KIND)
    lazy = da.from_array(X, chunks=(partition, D))
    found = ConvNetClassifier(**settings).fit(lazy, KIND)
    assert same(found, whole)
    assert found.training_state_.checksum == whole.training_state_.checksum


@pytest.mark.usefixtures("nothing_loaded")
def test_weights_and_validation_rows_on_dask():
    settings = {**FIT, "early_stopping": True, "validation_fraction": 0.2}
    whole = MLPRegressor("huber", (6,), **settings).fit(FRAME[NAMES], AMOUNT, sample_weight=WEIGHT)
    found = MLPRegressor("huber", (6,), **settings)
    found.fit(dask_frame(170), "amount", sample_weight="weight", columns=NAMES)
    assert same(found, whole)
    assert found.validation_scores_ == whole.validation_scores_


def test_windows_of_workers_change_no_bit():
    """Few minibatches at a time, or all of them, of which the last is smaller and has fewer chunks."""
    network, loss = perceptron(D, (600,), 1, "relu"), OUTPUT_LOSSES["squared_error"]
    params, order = RNG.normal(size=network.n_parameters), RNG.permutation(N)
    here = NetworkRows(X.astype(float), AMOUNT[:, None], np.ones(N))
    rows = as_rows(da.from_array(X.astype(float), chunks=(150, D)), AMOUNT, target="numbers")
    assert isinstance(rows, DaskRows)
    there = RowsOnWorkers.of(rows, column, np.dtype(float))
    with MinibatchSlopes(network, loss, params) as plain:
        every = (plain.at(here, order[k * 200 : (k + 1) * 200], 3.0, (0, k)) for k in range(3))
        wanted = [(value, slope.copy()) for value, slope in every]
    assert (plain.chunks_of(200), plain.chunks_of(100)) == (2, 1)
    for window in (1, 1 << 20):
        slopes = WorkerSlopes(there, network, loss, params, WorkerTuning(window))
        slopes.expect(order, 200)
        for k, (value, slope) in enumerate(wanted):
            found = slopes.at(there, order[k * 200 : (k + 1) * 200], 3.0, (0, k))
            assert found[0] == value
            assert (found[1] == slope).all()


def column(y):
    return np.asarray(y, dtype=float).reshape(len(y), 1)


def test_rows_on_workers_are_the_rows_asked_for():
    rows = RowsOnWorkers.of(dask_rows(X), column, np.dtype(np.float32))
    index = RNG.permutation(N)[:70]
    found = rows.take(index)
    np.testing.assert_array_equal(found.X, X[index])
    np.testing.assert_array_equal(found.Y[:, 0], AMOUNT.astype(np.float32)[index])


def dask_rows(table):
    return as_rows(da.from_array(table, chunks=(61, D)), AMOUNT, target="numbers")


def test_a_large_table_is_shuffled_within_windows_of_runs():
    tuning = OrderTuning(window_entries=40 * D, run_entries=5 * D)
    order = epoch_order(200, D, (1, 2), tuning)
    np.testing.assert_array_equal(np.sort(order), np.arange(200))
    runs = [set((order[k : k + 40] // 5).tolist()) for k in range(0, 200, 40)]
    assert all(len(run) == 8 for run in runs)
    assert len({*order[:40].tolist()} & {*range(40)}) < 20
    np.testing.assert_array_equal(order, epoch_order(200, D, (1, 2), tuning))
    small = epoch_order(200, D, (1, 2))
    np.testing.assert_array_equal(small, np.random.default_rng((1, 2)).permutation(200))
