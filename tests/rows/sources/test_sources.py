"""One table in every form it can come in: the same rows, the same sums, to the bit where the blocks agree."""

import tempfile
from functools import partial
from itertools import pairwise
from pathlib import Path

import dask.array as da
import dask.dataframe as dd
import narwhals
import numpy as np
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from certifit.rows import as_rows, encode_labels, set_threads
from tests.rows.sources.one_table import (
    BLOCK,
    CENTRE,
    COUNT,
    FEATURES,
    FRAME,
    KIND,
    KINDS,
    NAMED,
    TABLE,
    UNNAMED,
    D,
    N,
    X,
    bits,
    dask_frame,
    half_weight,
    parquet_directory,
    row_sums,
    scatter,
)


@pytest.fixture(params=[*NAMED, *UNNAMED])
def rows(request, tmp_path):
    if request.param in NAMED:
        return as_rows(NAMED[request.param](tmp_path), "kind", "count", target="classes")
    return as_rows(*UNNAMED[request.param](tmp_path), target="classes")


def test_the_sum_is_what_numpy_says(in_memory):
    found = in_memory.sum(partial(scatter, CENTRE))
    Z = X - CENTRE
    assert found.weight == COUNT.sum()
    np.testing.assert_allclose(found.scatter, np.einsum("ni,nj,n->ij", Z, Z, COUNT), rtol=1e-12, atol=1e-9)


def test_every_source_gives_the_same_rows(rows, in_memory):
    assert (rows.n_rows, rows.n_features, rows.dtype) == (N, D, np.float64)
    assert bits(rows.sum(partial(scatter, CENTRE))) == bits(in_memory.sum(partial(scatter, CENTRE)))
    np.testing.assert_array_equal(rows.map(row_sums), in_memory.map(row_sums))
    np.testing.assert_array_equal(np.concatenate([b.X for b in rows]), X)
    assert [b.start for b in rows] == list(range(0, N, BLOCK))
    assert all(b.X.flags.c_contiguous for b in rows)


def sums_and_weights(block):
    return block.X.sum(axis=1), block.w


def test_every_source_fills_arrays_in_one_pass(rows):
    sums, w = np.empty(N), np.empty(N)
    rows.fill(sums_and_weights, (sums, w))
    np.testing.assert_array_equal(sums, X.sum(axis=1))
    np.testing.assert_array_equal(w, COUNT)


def test_every_source_gives_the_same_labels(rows):
    labels = encode_labels(rows)
    assert labels.classes.tolist() == KINDS.tolist()
    np.testing.assert_array_equal(labels.weight, [COUNT[kind == KIND].sum() for kind in KINDS])
    np.testing.assert_array_equal(np.concatenate([b.y for b in labels.rows]), np.searchsorted(KINDS, KIND))


def test_a_thinned_table_has_one_of_every_so_many_rows(rows):
    """Wherever a class returns in a fixed rhythm, thinned rows have their share of it."""
    found = as_rows(np.arange(1000.0)[:, None]).thin(8).X[:, 0]
    assert (found // 8).tolist() == list(range(125))
    assert all(10 <= (found % 8 == k).sum() <= 20 for k in range(8))
    assert as_rows(np.arange(3.0)[:, None]).thin(7).X.tolist() == [[0.0]]
    assert as_rows(np.arange(3.0)[:, None]).thin(1).X.ravel().tolist() == [0.0, 1.0, 2.0]
    np.testing.assert_array_equal(rows.thin(100).X, as_rows(X).thin(100).X)


def test_rows_can_be_taken_into_memory(rows):
    index = np.array([0, 1, BLOCK - 1, BLOCK, 700, N - 1])
    for found, expected in (
        (rows.take(index), index),
        (rows.load(), slice(N)),
    ):
        assert found.in_memory
        np.testing.assert_array_equal(found.X, X[expected])
        np.testing.assert_array_equal(found.y.astype("U"), KIND[expected])
        np.testing.assert_array_equal(found.w, COUNT[expected])


def first_letter(y, w):
    return np.array([str(label)[0] for label in y]), w


def test_relabelling_is_lazy_and_composes(rows):
    changed = rows.relabel(half_weight).relabel(first_letter)
    np.testing.assert_array_equal(np.concatenate([b.w for b in changed]), COUNT / 2)
    assert "".join(changed.load().y) == "".join(label[0] for label in KIND)
    np.testing.assert_array_equal(np.concatenate([b.w for b in rows]), COUNT)  # as it was


@pytest.mark.parametrize("threads", [1, 2, 3, 5])
def test_threads_do_not_change_the_bits(threads, tmp_path, in_memory):
    expected = bits(in_memory.sum(partial(scatter, CENTRE)))
    set_threads(threads)
    assert bits(in_memory.sum(partial(scatter, CENTRE))) == expected
    for name in ("directory", "csv"):
        rows = as_rows(NAMED[name](tmp_path), "kind", "count", target="classes")
        assert bits(rows.sum(partial(scatter, CENTRE))) == expected


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cuts=st.lists(st.integers(0, N), max_size=6), group=st.integers(1, 600))
def test_cuts_of_files_and_row_groups_do_not_change_the_bits(cuts, group, in_memory):
    edges = [0, *sorted(cuts), N]
    with tempfile.TemporaryDirectory() as folder:
        for i, (a, b) in enumerate(pairwise(edges)):
            pq.write_table(TABLE.slice(a, b - a), Path(folder, f"{i}.parquet"), row_group_size=group)
        rows = as_rows(folder, "kind", "count", target="classes")
        assert bits(rows.sum(partial(scatter, CENTRE))) == bits(in_memory.sum(partial(scatter, CENTRE)))


@pytest.mark.parametrize("rows", [1, 100, 3 * BLOCK, 1000])
def test_other_partitions_agree_to_rounding(rows, in_memory):
    expected = in_memory.sum(partial(scatter, CENTRE))
    for X_, y, w in (
        (da.from_array(X, chunks=(max(rows, 50), D)), KIND, COUNT),
        (dask_frame(max(rows, 50)), "kind", "count"),
    ):
        found = as_rows(X_, y, w, target="classes").sum(partial(scatter, CENTRE))
        np.testing.assert_allclose(
            found.scatter, expected.scatter, rtol=1e-10, atol=1e-10 * np.trace(expected.scatter)
        )


def test_empty_partitions_are_left_out():
    kept = as_rows(dask_frame(BLOCK)[dask_frame(BLOCK)["kind"] == "setosa"], "kind", target="classes")
    assert kept.n_rows == (KIND == "setosa").sum()
    some = dask_frame(100)
    some = some[some["petal.0"] == X[950, 0]]  # one row in ten partitions
    np.testing.assert_array_equal(as_rows(some, "kind", "count").load().X, X[[950]])


@pytest.mark.parametrize("name", ["csr", "coo", "csc"])
def test_sparse(name):
    dense = np.where(X > 1e4 + 1, X, 0.0)
    rows = as_rows(getattr(sparse, f"{name}_array")(dense), KIND, COUNT, target="classes", sparse=True)
    found = rows.sum(lambda b: (b.X * b.w[:, None]).T @ b.X)
    np.testing.assert_allclose(found.toarray(), (dense * COUNT[:, None]).T @ dense, rtol=1e-10)
    taken = rows.take(np.arange(0, N, 50))
    np.testing.assert_array_equal(taken.X.toarray(), dense[::50])


def test_repeated_entries_of_a_sparse_matrix_are_added_in_a_copy():
    given = sparse.csr_array((np.array([1.0, 2.0, 3.0]), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 2))
    rows = as_rows(given, sparse=True)
    np.testing.assert_array_equal(rows.X.toarray(), [[0, 3], [3, 0]])
    assert rows.X.nnz == 2
    assert given.nnz == 3


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # Dask's own, of pandas, when it reads files
def test_dask_columns_of_one_frame_may_be_passed_apart(tmp_path):
    """Dask merges small files where few columns are read: X and y of one frame would be cut in different places."""
    parquet_directory(tmp_path / "d")
    frame = dd.read_parquet(tmp_path / "d")
    together = as_rows(frame, "kind", "count", target="classes")
    apart = as_rows(frame.drop(columns=["kind", "count"]), frame["kind"], frame["count"], target="classes")
    assert bits(together.sum(partial(scatter, CENTRE))) == bits(apart.sum(partial(scatter, CENTRE)))
    assert apart.load().y.tolist() == together.load().y.tolist()


def test_dask_targets_are_taken_in_their_order_whatever_the_index():
    table = pd.DataFrame({"x": np.arange(6.0)})
    labels = pd.Series(list("abcdef"), index=range(6)[::-1])
    X, y = (dd.from_pandas(data, npartitions=1, sort=False) for data in (table, labels))
    rows = as_rows(X, y, target="classes")
    assert rows.load().y.tolist() == list("abcdef")


def test_narwhals_frames_keep_their_names():
    rows = as_rows(narwhals.from_native(pl.from_pandas(FRAME)), "kind", "count", target="classes")
    assert rows.names.tolist() == FEATURES
