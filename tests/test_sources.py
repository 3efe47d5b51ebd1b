"""One table in every form it can come in: the same rows, the same sums, to the bit where the blocks agree."""

import gc
import os
import signal
import tempfile
import threading
import weakref
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from itertools import pairwise
from pathlib import Path

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import DataConversionWarning

from certifit.core import (
    ArrayRows,
    Certificate,
    DataError,
    Estimator,
    Objective,
    Sums,
    as_rows,
    encode_labels,
    set_threads,
)
from certifit.core.checks import Terms
from certifit.core.file_rows import FileRows
from certifit.core.files import ArrowTable
from certifit.core.frames import Columns

BLOCK = 128  # rows in a block, here
N, D = 11 * BLOCK + 37, 5
FEATURES = [f"petal.{j}" for j in range(D)]  # dots in names are common in files written by R
KINDS = np.array(["setosa", "versicolor", "virginica"])


@pytest.fixture(autouse=True)
def _small_blocks(blocks_of):
    blocks_of(BLOCK)


@pytest.fixture(autouse=True)
def _threads():
    yield
    set_threads(None)


@dataclass(frozen=True)
class Scatter(Sums):
    weight: float
    total: np.ndarray  # (d,)
    scatter: np.ndarray  # (d, d)


def scatter(centre, block):
    """Centred scatter: nothing cancels, whatever the offset of the data. The total hands the block itself to BLAS."""
    Z = block.X - centre
    return Scatter(block.w.sum(), block.w @ block.X, (Z * block.w[:, None]).T @ Z)


def row_sums(block):
    return block.X.sum(axis=1)


def bits(sums):
    return np.float64(sums.weight).tobytes() + sums.total.tobytes() + sums.scatter.tobytes()


def frame(dtype=np.float64):
    rng = np.random.default_rng(3)
    X = (1e4 + rng.standard_normal((N, D))).astype(dtype)
    table = pd.DataFrame(X, columns=FEATURES)
    table.insert(2, "kind", KINDS[rng.integers(0, 3, N)])
    table["count"] = rng.integers(0, 5, N).astype(np.float64)
    return table


FRAME = frame()
X, KIND, COUNT = FRAME[FEATURES].to_numpy(), FRAME["kind"].to_numpy(dtype="U"), FRAME["count"].to_numpy()
CENTRE = X.mean(axis=0)
TABLE = pa.Table.from_pandas(FRAME, preserve_index=False)


@pytest.fixture
def in_memory(_small_blocks):
    return ArrayRows(X, KIND, COUNT)


def parquet_file(path, table=TABLE, **options):
    pq.write_table(table, path, **options)
    return path


def parquet_directory(path):
    """Files of uneven sizes (one without rows) and odd row groups."""
    path.mkdir()
    cuts = [0, 1, 200, 200, 701, 1300, N]
    for i, (a, b) in enumerate(pairwise(cuts)):
        pq.write_table(
            TABLE.slice(a, b - a), path / f"part-{i}.parquet", row_group_size=[1, 7, 500, 77, 10_000, 3][i]
        )
    (path / "_SUCCESS").touch()
    return path


def csv_file(path):
    pa.csv.write_csv(TABLE, path)
    return path


def gzipped(path):
    with pa.CompressedOutputStream(str(path), "gzip") as out:
        pa.csv.write_csv(TABLE, out)
    return path


class Exporter:
    """Something that offers its rows by Arrow's C interface, and nothing else."""

    def __arrow_c_stream__(self, requested_schema=None):
        return TABLE.__arrow_c_stream__(requested_schema)


def dask_frame(rows, table=FRAME):
    cuts = range(0, len(table), rows)
    return dd.from_map(lambda a: table.iloc[a : a + rows], list(cuts), meta=table.iloc[:0])


def arrow(table):
    return pa.Table.from_pandas(table, preserve_index=False)


def csv_of(table, path):
    table.to_csv(path, index=False)
    return path


FORMS = {  # a pandas frame in every form that has named columns
    "pandas": lambda table, _: table,
    "polars": lambda table, _: pl.from_pandas(table),
    "polars lazy": lambda table, _: pl.from_pandas(table).lazy(),
    "arrow": lambda table, _: arrow(table),
    "arrow reader": lambda table, _: arrow(table).to_reader(max_chunksize=100),
    "parquet": lambda table, folder: parquet_file(folder / "t.parquet", arrow(table), row_group_size=100),
    "csv": lambda table, folder: csv_of(table, folder / "t.csv"),
    "dask frame": lambda table, _: dask_frame(2 * BLOCK, table),
}
each_form = pytest.mark.parametrize("form", FORMS)


NAMED = {
    "pandas": lambda _: FRAME,
    "polars": lambda _: pl.from_pandas(FRAME),
    "polars lazy": lambda _: pl.from_pandas(FRAME).lazy(),
    "arrow": lambda _: TABLE,
    "arrow batch": lambda _: TABLE.combine_chunks().to_batches()[0],
    "arrow reader": lambda _: TABLE.to_reader(max_chunksize=100),
    "arrow stream": lambda _: Exporter(),
    "arrow dataset": lambda folder: pa.dataset.dataset(parquet_directory(folder / "d")),
    "dataset in memory": lambda _: pa.dataset.dataset(TABLE),
    "parquet": lambda folder: str(parquet_file(folder / "t.parquet")),
    "parquet path": lambda folder: parquet_file(folder / "t.pq", row_group_size=100),
    "directory": lambda folder: parquet_directory(folder / "d"),
    "csv": lambda folder: csv_file(folder / "t.csv"),
    "csv.gz": lambda folder: gzipped(folder / "t.csv.gz"),
    "dask frame": lambda _: dask_frame(2 * BLOCK),
}


def dask_unknown(rows):
    return dask_frame(rows)[FEATURES].to_dask_array()


UNNAMED = {
    "array": lambda _: (X, KIND, COUNT),
    "list": lambda _: (X.tolist(), KIND.tolist(), COUNT.tolist()),
    "Fortran order": lambda _: (np.asfortranarray(X), KIND, COUNT),
    "memory map": lambda folder: (memory_map(folder, X), KIND, COUNT),
    "dask array": lambda _: (da.from_array(X, chunks=(BLOCK, 2)), KIND, COUNT),
    "dask throughout": lambda _: (
        da.from_array(X, chunks=(4 * BLOCK, D)),
        da.from_array(KIND, chunks=100),
        da.from_array(COUNT, chunks=4 * BLOCK),
    ),
    "dask of unknown lengths": lambda _: (
        dask_unknown(BLOCK),
        dask_frame(BLOCK)["kind"],
        dask_frame(BLOCK)["count"],
    ),
}


def memory_map(folder, values, order="C"):
    file = np.memmap(folder / "x.dat", values.dtype, "w+", shape=values.shape, order=order)
    file[:] = values
    file.flush()
    return np.memmap(folder / "x.dat", values.dtype, "r", shape=values.shape, order=order)


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


def test_every_source_gives_the_same_labels(rows):
    labels = encode_labels(rows)
    assert labels.classes.tolist() == KINDS.tolist()
    np.testing.assert_array_equal(labels.weight, [COUNT[kind == KIND].sum() for kind in KINDS])
    np.testing.assert_array_equal(np.concatenate([b.y for b in labels.rows]), np.searchsorted(KINDS, KIND))


def test_rows_can_be_taken_into_memory(rows):
    index = np.array([0, 1, BLOCK - 1, BLOCK, 700, N - 1])
    for found, expected in (
        (rows.take(index), index),
        (rows.thin(100), np.arange(0, N, 100)),
        (rows.load(), slice(N)),
    ):
        assert found.in_memory
        np.testing.assert_array_equal(found.X, X[expected])
        np.testing.assert_array_equal(found.y.astype("U"), KIND[expected])
        np.testing.assert_array_equal(found.w, COUNT[expected])


def half_weight(y, w):
    return y, w / 2


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
    np.testing.assert_array_equal(rows.thin(50).X.toarray(), dense[::50])


def test_repeated_entries_of_a_sparse_matrix_are_added_in_a_copy():
    given = sparse.csr_array((np.array([1.0, 2.0, 3.0]), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 2))
    rows = as_rows(given, sparse=True)
    np.testing.assert_array_equal(rows.X.toarray(), [[0, 3], [3, 0]])
    assert rows.X.nnz == 2
    assert given.nnz == 3


# ------------------------------------------------------------------------------------------------ types
SMALL = {
    "array": lambda _: FRAME[FEATURES].to_numpy(np.float32),
    "pandas": lambda _: FRAME[FEATURES].astype(np.float32),
    "polars": lambda _: pl.from_pandas(FRAME[FEATURES].astype(np.float32)),
    "lazy": lambda _: pl.from_pandas(FRAME[FEATURES].astype(np.float32)).lazy(),
    "parquet": lambda folder: parquet_file(
        folder / "t.parquet", pa.Table.from_pandas(FRAME[FEATURES].astype(np.float32))
    ),
    "dask": lambda _: da.from_array(FRAME[FEATURES].to_numpy(np.float32), chunks=(BLOCK, D)),
    "dask frame": lambda _: dask_frame(BLOCK)[FEATURES].astype(np.float32),
}


@pytest.mark.parametrize("name", SMALL)
def test_single_precision_stays(name, tmp_path):
    rows = as_rows(SMALL[name](tmp_path))
    expected = ArrayRows(X.astype(np.float32))
    assert rows.dtype == np.float32
    assert all(b.X.dtype == np.float32 for b in rows)
    assert bits(rows.sum(partial(scatter, CENTRE))) == bits(expected.sum(partial(scatter, CENTRE)))


MIXED = pd.DataFrame(
    {
        "single": np.array([1.5, 2.5, 3.5], np.float32),
        "whole": np.array([1, 2, 2**40]),
        "byte": np.array([255, 0, 1], np.uint8),
        "yes": [True, False, True],
    }
)


@each_form
@pytest.mark.parametrize("columns", [["single", "byte"], ["whole"], ["byte"], ["yes"], list(MIXED)])
def test_numbers_of_other_types_become_double_precision(form, columns, tmp_path):
    table = MIXED[columns]
    loaded = as_rows(FORMS[form](table, tmp_path)).load()
    assert loaded.X.dtype == np.float64
    np.testing.assert_array_equal(loaded.X, table.to_numpy(np.float64))


def test_files_of_a_directory_may_differ_in_the_kind_of_number(tmp_path):
    pq.write_table(pa.table({"a": pa.array([1, 2], pa.int32()), "y": ["p", "q"]}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"y": ["q"], "a": pa.array([0.5], pa.float32())}), tmp_path / "1.parquet")
    rows = as_rows(tmp_path, "y", target="classes").load()
    assert rows.X.dtype == np.float64
    np.testing.assert_array_equal(rows.X, [[1], [2], [0.5]])
    assert rows.y.tolist() == ["p", "q", "q"]


@pytest.mark.parametrize(
    "labels",
    [[0, 1, 1], [True, False, True], ["a", "b", "a"], [0.0, 1.0, 2.0], pd.Categorical(["u", "v", "u"])],
    ids=["int", "bool", "text", "float", "category"],
)
def test_targets_of_any_type(labels, tmp_path):
    table = pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": labels})
    expected = np.unique(np.asarray(labels)).tolist()
    sources = [table, pl.from_pandas(table), pl.from_pandas(table).lazy(), pa.Table.from_pandas(table)]
    sources += [
        parquet_file(tmp_path / "t.parquet", pa.Table.from_pandas(table)),
        dd.from_pandas(table, npartitions=2),
    ]
    table.to_csv(tmp_path / "t.csv", index=False)
    for source in [*sources, tmp_path / "t.csv"]:
        assert encode_labels(as_rows(source, "y", target="classes")).classes.tolist() == expected


def test_integers_that_could_be_missing_are_labels_like_others_where_none_is(tmp_path):
    table = pd.DataFrame({"x": [1.0, 2.0], "y": pd.array([3, 4], "Int64")})
    for source in (dd.from_pandas(table, npartitions=1), parquet_file(tmp_path / "t.parquet", pa.table(table))):
        assert as_rows(source, "y", target="classes").load().y.dtype == np.int64


def test_csv_takes_whole_numbers_first_and_fractions_later(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "1,\n" * 10 + "1,2\n" * 700_000 + "0.5,3\n")  # beyond the parser's first block
    table = as_rows(path, y="b").load()
    assert table.X[-1, 0] == 0.5
    assert table.n_rows == 700_011


def test_csv_text_may_contain_commas_and_line_ends(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('a,y\n1,"p, q"\n2,"line\nline"\n')
    assert as_rows(path, "y", target="classes").load().y.tolist() == ["p, q", "line\nline"]


# ------------------------------------------------------------------------------------------------ holes
def holed(dtype=np.float64):
    """The table with holes, and the numbers it stands for. One column of whole numbers, one without any value."""
    rng = np.random.default_rng(5)
    values = np.column_stack([X[:, :2], rng.integers(0, 9, N), np.full(N, np.nan)]).astype(dtype)
    values[rng.random((N, 4)) < 0.1] = np.nan
    table = pd.DataFrame(values, columns=["a", "b", "whole", "empty"]).astype({"whole": "Int64"})
    table["empty"] = pd.array([None] * N, pd.ArrowDtype(pa.null()))
    return table, values


HOLED, HOLES = holed()
HOLED_FORMS = {
    **{form: partial(make, HOLED) for form, make in FORMS.items()},
    "pandas of objects": lambda _: HOLED.astype(object),
    "pandas on arrow": lambda _: arrow(HOLED).to_pandas(types_mapper=pd.ArrowDtype),
    "array": lambda _: HOLES,
    "list": lambda _: HOLES.tolist(),
    "memory map": lambda folder: memory_map(folder, HOLES),
    "dask array": lambda _: da.from_array(HOLES, chunks=(2 * BLOCK, 3)),
}


def mean_of_present(block):
    """What a model that takes holes does: leave them out of its sums."""
    here = ~np.isnan(block.X)
    X = np.where(here, block.X, 0.0)
    return Scatter(float(here.sum()), block.w @ X, X.T @ X)


@pytest.mark.parametrize("form", HOLED_FORMS)
def test_holes_come_as_nan_from_every_source_where_they_are_taken(form, tmp_path):
    rows = as_rows(HOLED_FORMS[form](tmp_path), holes=True)
    assert rows.dtype == np.float64
    assert all(b.X.flags.c_contiguous and b.X.dtype == np.float64 for b in rows)
    np.testing.assert_array_equal(np.concatenate([b.X for b in rows]), HOLES)
    assert bits(rows.sum(mean_of_present)) == bits(ArrayRows(HOLES).sum(mean_of_present))
    with pytest.raises(DataError, match=r"NaN in|columns without any value"):
        as_rows(HOLED_FORMS[form](Path(tempfile.mkdtemp(dir=tmp_path)))).load()


@pytest.mark.parametrize("form", [form for form in FORMS if form != "csv"])
def test_single_precision_with_holes_stays(form, tmp_path):
    values = HOLES[:, :2].astype(np.float32)
    rows = as_rows(FORMS[form](pd.DataFrame(values, columns=["a", "b"]), tmp_path), holes=True)
    assert all(b.X.dtype == np.float32 for b in rows)
    np.testing.assert_array_equal(rows.load().X, values)


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint16(), pa.int32(), pa.int64(), pa.bool_(), pa.decimal128(5, 2)])
def test_numbers_of_any_type_with_holes(kind, tmp_path):
    table = pa.table(
        {"a": pa.array([1, None, 0], pa.int8()).cast(kind), "b": pa.array([None, 0, 1], pa.int8()).cast(kind)}
    )
    pq.write_table(table, tmp_path / "t.parquet")
    for source in (table, pl.from_arrow(table), table.to_pandas(types_mapper=pd.ArrowDtype), tmp_path / "t.parquet"):
        np.testing.assert_array_equal(as_rows(source, holes=True).load().X, [[1, np.nan], [np.nan, 0], [0, 1]])


def test_stored_holes_of_a_sparse_matrix():
    dense = np.where(HOLES[:, :3] < 1e4, 0.0, HOLES[:, :3])
    rows = as_rows(sparse.csr_array(dense), sparse=True, holes=True)
    np.testing.assert_array_equal(np.concatenate([b.X.toarray() for b in rows]), dense)


class Mean(Estimator):
    """The mean of what is there."""

    holes = True

    def _fit(self, rows, previous):  # noqa: ARG002
        parts = rows.sum(lambda b: np.array([np.nansum(b.X, axis=0), (~np.isnan(b.X)).sum(axis=0)]))
        return {"mean_": parts[0] / parts[1], "certificate_": Certificate("exact", "mean")}

    def objective(self, X, y=None, sample_weight=None):
        total = self._rows(X, y, sample_weight).sum(lambda b: np.nansum((b.X - self.mean_) ** 2))
        return Objective(total, total, 0.0)


def test_an_estimator_says_whether_it_takes_holes():
    class Strict(Mean):
        holes = False

    X = HOLES[:, :3]
    model = Mean().fit(X)
    np.testing.assert_allclose(model.mean_, np.nanmean(X, axis=0), rtol=1e-14)
    np.testing.assert_allclose(model.objective(X).total, np.nansum((X - model.mean_) ** 2), rtol=1e-12)
    assert model.__sklearn_tags__().input_tags.allow_nan
    assert not Strict().__sklearn_tags__().input_tags.allow_nan
    for call in (Strict().fit, Strict().fit(X[~np.isnan(X).any(axis=1)]).objective):
        with pytest.raises(DataError, match="NaN in row"):
            call(X)


# ------------------------------------------------------------------------------------------------ targets as numbers
def policies():
    """A column of whole numbers and one of single precision among the features, as a pair of targets."""
    rng = np.random.default_rng(6)
    table = FRAME[FEATURES].copy()
    table.insert(1, "claims", rng.integers(0, 5, N))
    table.insert(4, "exposure", rng.integers(1, 64, N).astype(np.float32) / 64)
    return table


POLICIES = policies()
PAIR = POLICIES[["claims", "exposure"]].to_numpy(np.float64)
BESIDE = {
    "array": PAIR,
    "Fortran order": np.asfortranarray(PAIR),
    "list": PAIR.tolist(),
    "pandas": POLICIES[["claims", "exposure"]],
    "polars": pl.from_pandas(POLICIES[["claims", "exposure"]]),
}


def same_pairs(rows):
    assert rows.names is None or rows.names.tolist() == FEATURES
    assert all(b.y.dtype == np.float64 and b.y.flags.c_contiguous and b.X.flags.c_contiguous for b in rows)
    assert [b.y.shape for b in rows] == [(len(b.w), 2) for b in rows]
    np.testing.assert_array_equal(np.concatenate([b.X for b in rows]), X)
    np.testing.assert_array_equal(rows.load().y, PAIR)
    np.testing.assert_array_equal(rows.thin(100).y, PAIR[::100])
    np.testing.assert_array_equal(rows.take(np.array([1, 700])).y, PAIR[[1, 700]])
    np.testing.assert_array_equal(rows.relabel(halves).load().y, PAIR / 2)
    assert rows.sum(product).tobytes() == ArrayRows(X, PAIR).sum(product).tobytes()


def halves(y, w):
    return y / 2, w


def product(block):
    return block.X.T @ block.y


@each_form
def test_several_targets_by_name(form, tmp_path):
    model = BaseEstimator()
    y = ["claims", "exposure"]
    rows = as_rows(FORMS[form](POLICIES, tmp_path), y, estimator=model, target="numbers", targets=2)
    same_pairs(rows)
    # a fitted model takes the features it knows; where no target is asked for, those named are still no features
    for options in ({"estimator": model, "reset": False}, {"y": tuple(y), "targets": 2}):
        other = as_rows(FORMS[form](POLICIES, Path(tempfile.mkdtemp(dir=tmp_path))), **options)
        assert other.names.tolist() == FEATURES
        assert next(iter(other)).y is None


@each_form
@pytest.mark.parametrize("beside", BESIDE)
def test_several_targets_beside_a_table(form, beside, tmp_path):
    source = FORMS[form](POLICIES[FEATURES], tmp_path)
    same_pairs(as_rows(source, BESIDE[beside], target="numbers", targets=2))


@pytest.mark.parametrize("beside", BESIDE)
def test_several_targets_beside_an_array(beside, tmp_path):
    for source in (X, X.tolist(), memory_map(tmp_path, X), da.from_array(X, chunks=(BLOCK, 2))):
        same_pairs(as_rows(source, BESIDE[beside], target="numbers", targets=2))
    rows = as_rows(sparse.csr_array(X), BESIDE[beside], target="numbers", targets=2, sparse=True)
    np.testing.assert_array_equal(np.concatenate([b.y for b in rows]), PAIR)


def test_several_targets_in_dask():
    source, frame = da.from_array(X, chunks=(2 * BLOCK, D)), dask_frame(2 * BLOCK, POLICIES)
    pair = frame[["claims", "exposure"]]
    for y in (da.from_array(PAIR, chunks=(100, 1)), da.from_array(PAIR, chunks=(2 * BLOCK, 2)), pair):
        same_pairs(as_rows(source, y, target="numbers", targets=2))
    same_pairs(as_rows(frame[FEATURES], pair, target="numbers", targets=2))
    same_pairs(as_rows(frame[FEATURES].to_dask_array(), pair.to_dask_array(), target="numbers", targets=2))


@each_form
@pytest.mark.parametrize(
    "values",
    [
        np.array([3, 0, 2]),
        np.array([True, False, True]),
        np.array([0.5, 1.25, -3.0], np.float32),
        pd.array([3, 0, 2], "Int64"),
        pd.array([Decimal("0.5"), Decimal("1.25"), Decimal(-3)], pd.ArrowDtype(pa.decimal128(5, 2))),
    ],
    ids=["int", "bool", "single", "Int64", "decimal"],
)
def test_a_target_of_any_kind_of_number_is_read_in_double_precision(form, values, tmp_path):
    table = pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": values})
    expected = np.array(values, dtype=np.float64)
    named = as_rows(FORMS[form](table, tmp_path), "y", target="numbers")
    folder = Path(tempfile.mkdtemp(dir=tmp_path))
    for rows in (named, as_rows(FORMS[form](table[["x"]], folder), table["y"], target="numbers")):
        (block,) = rows
        assert block.y.dtype == np.float64
        np.testing.assert_array_equal(block.y, expected)


@pytest.mark.parametrize("source", [X, da.from_array(X, chunks=(2 * BLOCK, D)), arrow(FRAME[FEATURES])], ids=type)
def test_a_target_that_is_a_column_vector_is_flattened_with_scikit_learns_warning(source):
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
        rows = as_rows(source, COUNT[:, None], target="numbers")
    np.testing.assert_array_equal(rows.load().y, COUNT)


# ------------------------------------------------------------------------------------------------ memory
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16, ">f8"])
def test_a_memory_map_stays_on_disk(order, dtype, tmp_path):
    values = X.astype(dtype)
    given = memory_map(tmp_path, values, order)
    rows = as_rows(given)
    assert rows.X is given
    assert not rows.in_memory
    assert rows.dtype == (np.float32 if dtype == np.float32 else np.float64)
    expected = ArrayRows(values.astype(rows.dtype))
    assert bits(rows.sum(partial(scatter, CENTRE))) == bits(expected.sum(partial(scatter, CENTRE)))


class Counted(ArrowTable):
    """Hands out fresh batches and remembers which are still in use."""

    def __init__(self):
        super().__init__(TABLE)
        self.given = []  # a weak reference to one column's memory in each batch
        self.most = 0
        self.open = 0

    def _read(self, types, rows):
        self.open += 1
        try:
            for batch in super()._read(types, rows):
                memory = batch["count"].to_numpy().copy()
                self.given.append(weakref.ref(memory))
                self.most = max(self.most, sum(given() is not None for given in self.given))
                yield batch.set_column(batch.schema.get_field_index("count"), "count", pa.array(memory))
                del memory
        finally:
            self.open -= 1


def counted():
    return FileRows(Counted(), Columns(tuple(FEATURES), ("kind",), "count"), Terms("classes"))


@pytest.mark.parametrize("threads", [1, 3])
def test_few_blocks_are_in_memory_at_a_time(threads, in_memory):
    set_threads(threads)
    rows = counted()
    assert bits(rows.sum(partial(scatter, CENTRE))) == bits(in_memory.sum(partial(scatter, CENTRE)))
    # one in each thread's hands, one read ahead, one the reader cuts, one being handed over
    assert rows.source.most <= threads + 3


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_a_pass_that_stops_early_closes_its_files_and_thread(error):
    set_threads(2)
    rows, before = counted(), threading.active_count()

    def fail(block):
        if block.start >= 3 * BLOCK:
            raise error
        return 1.0

    with pytest.raises(error):
        rows.sum(fail)
    with pytest.raises(error):
        rows.map(fail)
    for _ in rows:
        break
    gc.collect()
    assert rows.source.open == 0
    assert threading.active_count() == before


@pytest.mark.parametrize("name", ["polars lazy", "arrow reader", "arrow stream"])
def test_what_can_be_read_only_once_is_kept_in_a_file_while_in_use(name, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    rows = as_rows(NAMED[name](tmp_path), "kind", target="classes")
    (file,) = tmp_path.glob("certifit-*/*.parquet")
    assert pq.ParquetFile(file).schema_arrow.names == [*FEATURES, "count", "kind"]
    shared = rows.relabel(half_weight)
    del rows
    gc.collect()
    assert shared.sum(row_count) == N
    del shared
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def row_count(block):
    return len(block.w)


# ------------------------------------------------------------------------------------------------ names
@pytest.mark.parametrize("name", NAMED)
def test_named_columns(name, tmp_path):
    model = BaseEstimator()
    rows = as_rows(NAMED[name](tmp_path), "kind", "count", estimator=model, target="classes")
    assert model.feature_names_in_.tolist() == rows.names.tolist() == FEATURES
    assert model.feature_names_in_.dtype == object
    assert model.n_features_in_ == D
    # a fitted model finds its columns in a table that holds others too, in whatever order
    again = as_rows(NAMED[name](Path(tempfile.mkdtemp(dir=tmp_path))), estimator=model, reset=False)
    np.testing.assert_array_equal(again.load().X, X)
    # no target is asked for: a named one is still not a feature
    other = as_rows(NAMED[name](Path(tempfile.mkdtemp(dir=tmp_path))), "kind")
    assert other.names.tolist() == [*FEATURES, "count"]
    assert next(iter(other)).y is None


@pytest.mark.parametrize("name", [name for name in NAMED if name != "pandas"])
def test_columns_are_found_by_name_not_by_place(name, tmp_path):
    model = BaseEstimator()
    as_rows(FRAME[FEATURES[::-1]], estimator=model)
    rows = as_rows(NAMED[name](tmp_path), estimator=model, reset=False)
    np.testing.assert_array_equal(rows.load().X, X[:, ::-1])


def test_a_pandas_frame_of_the_same_columns_in_another_order_is_refused_as_scikit_learn_does():
    model = BaseEstimator()
    as_rows(FRAME[FEATURES], estimator=model)
    with pytest.raises(ValueError, match="must be in the same order"):
        as_rows(FRAME[FEATURES[::-1]], estimator=model, reset=False)


@pytest.mark.parametrize("name", NAMED)
def test_missing_columns_are_named(name, tmp_path):
    model = BaseEstimator()
    as_rows(FRAME[FEATURES].rename(columns={"petal.1": "sepal"}), estimator=model)
    with pytest.raises(ValueError, match=r"(?s)should match those .* yet now missing:\n- sepal"):
        as_rows(NAMED[name](tmp_path), "kind", "count", estimator=model, reset=False)


def test_names_on_one_side_only(tmp_path):
    model = BaseEstimator()
    path = parquet_file(tmp_path / "t.parquet", TABLE.select(FEATURES))
    as_rows(X, estimator=model)
    with pytest.warns(UserWarning, match="X has feature names, but BaseEstimator was fitted without"):
        as_rows(path, estimator=model, reset=False)
    as_rows(path, estimator=model)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        as_rows(da.from_array(X), estimator=model, reset=False)
    as_rows(X, estimator=model)
    with pytest.raises(ValueError, match="X has 3 features, but BaseEstimator is expecting 5"):
        as_rows(da.from_array(X[:, :3]), estimator=model, reset=False)


def test_rows_pass_through_and_are_noted(tmp_path):
    model = BaseEstimator()
    rows = as_rows(parquet_file(tmp_path / "t.parquet"), "kind", "count")
    assert as_rows(rows, estimator=model) is rows
    assert model.feature_names_in_.tolist() == FEATURES


# ------------------------------------------------------------------------------------------------ clusters
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

    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
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
