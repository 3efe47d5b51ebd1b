"""Dask partitions as people have them: many and small, empty, lazy, of mixed types; and clusters that are gone."""

from itertools import pairwise

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask.delayed import delayed
from scipy import sparse

from certifit import CertificateWarning, GaussianMixture, LogisticRegression
from certifit.exceptions import DataError
from certifit.rows import ArrayRows, as_rows
from certifit.rows.sources import dask_partitions
from certifit.rows.sources.dask_partitions import DaskPartition, PartitionTuning, compute_tasks, joined_partitions
from tests.rows.sources.one_table import BLOCK, CENTRE, D, X, bits, scatter
from tests.rows.sources.test_dask_clusters import trace

FRAME = pd.DataFrame(X, columns=[f"x{j}" for j in range(D)])


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="sync"):
        yield


@pytest.fixture
def plain(_small_blocks):
    return ArrayRows(X)


def partial_scatter(block):
    return scatter(CENTRE, block)


@pytest.mark.parametrize("chunk", [7, BLOCK // 5, BLOCK // 4 - 1])
def test_small_partitions_are_joined_to_blocks(chunk, plain):
    """Any cut of the rows then gives the bits of the table in memory."""
    rows = as_rows(da.from_array(X, chunks=(chunk, D)))
    assert len(rows.parts) == -(-len(X) // BLOCK)
    assert bits(rows.sum(partial_scatter)) == bits(plain.sum(partial_scatter))
    assert [block.start for block in rows] == [block.start for block in plain]


def displaced(values):
    """The same numbers at an odd address, as what came over a network may be."""
    room = np.empty(values.nbytes + 2, np.uint8)[2:]
    room[:] = np.frombuffer(values.tobytes(), np.uint8)
    return room.view(values.dtype).reshape(values.shape)


def test_addresses_do_not_change_the_bits(plain):
    moved, wanted = displaced(X), bits(plain.sum(partial_scatter))
    assert not moved.flags.aligned
    assert all(block.X.flags.aligned for block in ArrayRows(moved))
    assert bits(ArrayRows(moved).sum(partial_scatter)) == wanted
    chunks = [delayed(displaced)(X[a : a + 2 * BLOCK]) for a in range(0, len(X), 2 * BLOCK)]
    there = [da.from_delayed(chunk, (np.nan, D), X.dtype) for chunk in chunks]
    assert bits(as_rows(da.concatenate(there)).sum(partial_scatter)) == wanted


def test_held_blocks_that_moved_to_another_worker_have_the_same_bits(plain, monkeypatch):
    """Work is stolen and workers retire: blocks then come over the network, to any address."""

    def moved(parts):
        return [[block._replace(X=displaced(block.X)) for block in part] for part in parts]

    wanted = bits(plain.sum(partial_scatter))
    monkeypatch.setattr(dask_partitions, "keep_on_workers", lambda tasks: list(map(delayed(moved), tasks)))
    rows = as_rows(dd.from_pandas(FRAME, npartitions=3).map_partitions(lambda part: part, meta=FRAME[:0]))
    assert [bits(rows.sum(partial_scatter)) for _ in range(2)] == [wanted, wanted]
    assert rows.store.runs
    assert all(rows.each(has_aligned_rows))
    assert all(rows.relabel(same_targets).each(has_aligned_rows))


def test_two_thousand_partitions_are_few_tasks():
    parts = [DaskPartition([np.zeros((100, 2))], None, [np.ones(100)], 100 * k, 100) for k in range(2000)]
    found = joined_partitions(parts, 32_768, 32.0)
    assert [part.rows for part in found] == [32_768] * 6 + [200_000 - 6 * 32_768]
    assert sum(sum(map(len, part.X)) for part in found) == sum(sum(map(len, part.w)) for part in found) == 200_000
    few = PartitionTuning(most_groups=2)
    assert [part.rows for part in joined_partitions(parts, 32_768, 32.0, few)] == [131_072, 68_928]
    large = [part._replace(start=65_536 * k, rows=65_536) for k, part in enumerate(parts[:9])]
    assert joined_partitions(large, 32_768, 32.0) == large


@pytest.mark.parametrize("chunk", [BLOCK + 1, 2 * BLOCK - 1, 3 * BLOCK, 5 * BLOCK, 347, 501, len(X) - 1])
def test_any_cut_of_the_rows_has_the_bits_of_the_table_in_memory(chunk, plain):
    """Rows of a block that two partitions share go to the second; sums are added in the tree of all blocks."""
    rows = as_rows(da.from_array(X, chunks=(chunk, D)))
    assert [block.start for block in rows] == [block.start for block in plain]
    assert rows.sum(trace).order == plain.sum(trace).order
    uneven = [dd.from_pandas(FRAME[a:b], npartitions=1) for a, b in pairwise([0, 3, chunk, chunk + 1, len(X)])]
    for table in (rows, as_rows(dd.from_pandas(FRAME, chunksize=chunk)), as_rows(dd.concat(uneven))):
        assert {bits(table.sum(partial_scatter)) for _ in range(3)} == {bits(plain.sum(partial_scatter))}
        np.testing.assert_array_equal(table.load().X, X)


def test_frames_with_targets_of_their_own():
    table = FRAME - FRAME.mean()
    target = (table["x0"] > 0).astype(int).to_numpy()
    frame = dd.from_pandas(table.assign(t=target), npartitions=60)
    straight = LogisticRegression().fit(table.to_numpy(), target)
    for fitted in (
        LogisticRegression().fit(frame, "t"),
        LogisticRegression().fit(frame.drop(columns="t"), frame["t"]),
        LogisticRegression().fit(frame.drop(columns="t"), target),
        LogisticRegression().fit(frame.drop(columns="t").to_dask_array(), frame["t"].to_dask_array()),
    ):
        np.testing.assert_array_equal(fitted.coef_, straight.coef_)


def has_aligned_rows(block):
    return block.X.flags.aligned


def same_targets(y, w):
    return y, w


def read_rows(reads, frame):
    reads.append(len(frame))
    return frame


@pytest.mark.parametrize("fits", [True, False])
def test_lazy_partitions_are_held_where_they_fit(fits, monkeypatch):
    """Rows are counted, read once more and held, with a line that says so; or read in every pass."""
    told, reads = [], []
    monkeypatch.setattr(dask_partitions, "tell_reader", told.append)
    monkeypatch.setattr(dask_partitions, "available_bytes", lambda: 1e12 if fits else 1.0)
    frame = dd.from_pandas(FRAME, npartitions=3).map_partitions(lambda part: read_rows(reads, part), meta=FRAME[:0])
    rows = as_rows(frame)
    sums = [bits(rows.relabel(same_targets).sum(partial_scatter)) for _ in range(4)]
    assert len(set(sums)) == 1
    assert sum(reads) == (2 if fits else 5) * len(X)
    assert [line.split(":")[0] for line in told] == (["certifit"] if fits else [])


def test_what_is_there_already_is_not_held_again(monkeypatch):
    monkeypatch.setattr(dask_partitions, "keep_on_workers", None)  # to call it would be an error
    rows = as_rows(da.from_array(X, chunks=(BLOCK, D)))
    for _ in range(3):
        rows.sum(partial_scatter)


@pytest.mark.usefixtures("ticking")
def test_a_time_limit_ends_a_fit_between_passes():
    table = da.from_array(np.random.default_rng(0).normal(size=(600, 2)), chunks=(300, 2))
    with pytest.warns(CertificateWarning, match="gain of one more EM step"):
        model = GaussianMixture(3, tol=0.0, max_iter=1000, max_time=0.05, random_state=0).fit(table)
    assert 1 <= model.n_iter_ < 60


def without_a_column(rows, odd):
    return FRAME[rows].drop(columns="x1") if rows.start == odd else FRAME[rows]


@pytest.mark.parametrize("pieces", [3, 90])
def test_a_partition_without_a_column_is_refused_by_name(pieces):
    """Joined to others, its missing column would be missing entries, which some models take."""
    cuts = pairwise(np.linspace(0, len(X), pieces + 1).astype(int).tolist())
    frame = dd.from_map(without_a_column, [slice(a, b) for a, b in cuts], odd=len(X) // pieces, meta=FRAME[:0])
    with pytest.raises(DataError, match=r"partition \(around row \d+\) without 'x1'"):
        as_rows(frame, missing=True).sum(partial_scatter)
    with pytest.raises(DataError, match=r"partition lacks a key \(\['x1'\] not in index\); .* same columns"):
        as_rows(frame[["x0", "x1"]])


@pytest.mark.parametrize(
    ("table", "got"),
    [
        (dd.from_pandas(FRAME, npartitions=2)["x1"], "a Dask Series of shape"),
        (delayed(X), "a Dask Delayed(Leaf)? as X"),
        (da.from_array(X, chunks=(50, D)).astype(complex), r"'X' \(complex128\)"),
        (dd.from_pandas(FRAME.astype(complex), npartitions=2), r"'x0' \(complex128\)"),
        (da.from_array(X, chunks=(2, D)).map_blocks(sparse.csr_array), "sparse chunks"),
    ],
)
def test_what_is_no_table_of_numbers_is_refused(table, got):
    with pytest.raises(DataError, match=got):
        as_rows(table).sum(partial_scatter)


def uncounted(values, chunks):
    """A Dask array whose chunks have lengths that Dask does not know."""
    lazy = da.from_array(values, chunks=(tuple(chunks),))
    return lazy[lazy > -np.inf]


@pytest.mark.usefixtures("_small_blocks")
@pytest.mark.parametrize("role", ["y", "sample_weight"])
@pytest.mark.parametrize("moved", [5, -5])
def test_partitions_of_another_length_than_those_of_rows_are_refused(role, moved):
    """Rows of a block that two partitions share would be cut from other places of each."""
    half = len(X) // 2
    given = {"y": np.ones(2 * half)} | {role: uncounted(np.ones(2 * (half + moved)), [half + moved] * 2)}
    with pytest.raises(DataError, match=rf"{role} with {half + moved} entries for a partition of {half} rows"):
        as_rows(da.from_array(X[: 2 * half], chunks=(half, D)), target="numbers", **given).sum(partial_scatter)


def make_text(part, partition_info=None):
    second = partition_info is not None and partition_info["number"] == 1
    return part.assign(x2=part["x2"].astype(str)) if second else part


def test_partitions_of_another_type_are_refused_by_name():
    frame = dd.from_pandas(FRAME, npartitions=3).map_partitions(make_text, meta=FRAME[:0])
    with pytest.raises(DataError, match=r"\(around row (48\d|896)\) whose column 'x2' is (str|object), while"):
        as_rows(frame).sum(partial_scatter)


def unread(_):
    raise OSError("page 3 is damaged")


def test_partitions_that_cannot_be_read_are_refused_in_words():
    with pytest.raises(DataError, match=r"partition cannot be read \(page 3 is damaged\); .* Fit to the path"):
        as_rows(dd.from_map(unread, [0, 1], meta=FRAME[:0]))


def test_a_lost_cluster_says_where_the_fit_stood(monkeypatch):
    from distributed.client import FutureCancelledError

    def lost(*_):
        raise FutureCancelledError("sum-1", "scheduler-connection-lost")

    rows = as_rows(da.from_array(X, chunks=(BLOCK, D)))
    rows.sum(partial_scatter)
    monkeypatch.setattr(dask_partitions.dask, "compute", lost)
    with pytest.raises(DataError, match=r"no answer from the Dask cluster in pass 2 over the rows .*checkpoint"):
        rows.sum(partial_scatter)
    with pytest.raises(DataError, match="no answer"):
        compute_tasks()
