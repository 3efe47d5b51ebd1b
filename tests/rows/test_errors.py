"""Bad input: the message says what was got, what was wanted and what to do, and names the place."""

import io
import os
import pickle
import subprocess
import sys
import threading
import time

import dask.array as da
import dask.dataframe as dd
import duckdb
import fsspec
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from scipy import sparse

from certifit.exceptions import DataError, SourceChangedError
from certifit.rows import as_rows


def refused(*args, got, wanted, fix="", **options):
    """as_rows, or the first pass over its rows, refuses: `got`, `wanted` and `fix` are parts of the message."""
    with pytest.raises(DataError) as caught:
        as_rows(*args, **options).load()
    error = caught.value
    assert got in error.got
    assert wanted in error.wanted
    assert fix in error.fix
    assert str(error).startswith(f"Got {error.got}; wanted {error.wanted}.")


def written(path, text):
    path.write_text(text)
    return path


def parquet(path, **columns):
    pq.write_table(pa.table(columns), path)
    return path


def test_errors_survive_pickling():
    error = DataError(got="a", wanted="b", fix="c")
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) == "Got a; wanted b. c"
    assert again.fix == "c"


# ------------------------------------------------------------------------------------------------ paths
def test_no_such_file(tmp_path):
    written(tmp_path / "penguins.csv", "a\n1\n")
    refused(tmp_path / "penguin.csv", got="penguin.csv", wanted="an existing", fix="Did you mean 'penguins.csv'?")
    refused("/nowhere/at/all.parquet", got="'/nowhere/at/all.parquet'", wanted="an existing")


def test_unknown_extension(tmp_path):
    refused(written(tmp_path / "t.xlsx", "x"), got="'.xlsx'", wanted=".parquet, .pq, .csv, .csv.gz", fix="data frame")


def test_directory_without_parquet(tmp_path):
    written(tmp_path / "t.csv", "a\n1\n")
    refused(tmp_path, got="without Parquet files", wanted=".parquet", fix="pyarrow.dataset")


# ------------------------------------------------------------------------------------------------ CSV
@pytest.mark.parametrize("text", ["", "a,b", "a,b\n"])
def test_csv_without_rows(text, tmp_path):
    refused(written(tmp_path / "t.csv", text), got="without rows", wanted="at least one row")


@pytest.mark.parametrize(("line", "values"), [("5", 1), ("5,6,7", 3)])
def test_ragged_csv(line, values, tmp_path):
    path = written(tmp_path / "t.csv", f"a,b\n1,2\n3,4\n{line}\n7,8\n")
    refused(path, got=f"line 4 of '{path}' with {values} fields ('{line}')", wanted="2 fields, as in the first line")


def test_notes_above_a_header_are_named(tmp_path):
    path = written(tmp_path / "t.csv", "# of the year 2020\n# by hand\na,b\n1,2\n3,4\n")
    got, fix = f"line 3 of '{path}' with 2 fields ('a,b')", "take notes and titles above them away"
    refused(path, got=got, wanted="1 field, as in the first line", fix=fix)


def test_ragged_csv_far_into_the_file(tmp_path):
    path = written(tmp_path / "t.csv", "a,b\n" + "1,2\n" * 1_200_000 + "3\n")
    refused(path, got=f"line 1200002 of '{path}' with 1 fields ('3')", wanted="2 fields, as in the first line")


def test_csv_type_that_changes(tmp_path):
    path = written(tmp_path / "t.csv", "a,b\n" + "1,2\n" * 1_200_000 + "1,two\n")
    refused(path, got="column 'b'", wanted="the type of the first rows (int64) in all rows", fix="missing value")


def test_csv_all_empty_column(tmp_path):
    path = written(tmp_path / "t.csv", "a,b\n1,\n2,NA\n3,\n")
    refused(path, got="NaN in every row from 0 to 2 of column 'b'", wanted="finite numbers", fix="leave it out")


@pytest.mark.parametrize("hole", ["", "NA", "NaN", "null", "N/A", "NULL", "nan"])
def test_csv_holes(hole, tmp_path):
    path = written(tmp_path / "t.csv", f"a,b\n1,2\n3,{hole}\n5,6\n")
    refused(path, got="NaN in row 1, column 'b'", wanted="finite", fix="SimpleImputer")


def test_damaged_gzip(tmp_path):
    refused(written(tmp_path / "t.csv.gz", "no gzip"), got="t.csv.gz", wanted="a CSV file")


# ------------------------------------------------------------------------------------------------ Parquet
def big(path, **options):
    rng = np.random.default_rng(0)
    table = pa.table({"a": rng.standard_normal(4000), "b": rng.standard_normal(4000)})
    pq.write_table(table, path, row_group_size=1000, use_dictionary=False, write_page_checksum=True, **options)
    return path


def damage(path, where, width=8):
    data = bytearray(path.read_bytes())
    data[where : where + width] = bytes(255 - byte for byte in data[where : where + width])
    path.write_bytes(data)


def test_truncated_parquet(tmp_path):
    path = big(tmp_path / "t.parquet")
    os.truncate(path, path.stat().st_size // 2)
    refused(path, got="t.parquet", wanted="a complete Parquet file", fix="Write the file again")


@pytest.mark.parametrize("content", [b"", b"PAR1", b"not parquet at all, but long enough"])
def test_not_parquet(content, tmp_path):
    path = tmp_path / "t.parquet"
    path.write_bytes(content)
    refused(path, got="t.parquet", wanted="a complete Parquet file")


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
@pytest.mark.parametrize("group", [0, 3])
def test_damaged_page(group, compression, tmp_path):
    """Also in the last row group only: the pass over the first ones does not help."""
    path = big(tmp_path / "t.parquet", compression=compression)
    chunk = pq.ParquetFile(path).metadata.row_group(group).column(1)
    damage(path, chunk.data_page_offset + chunk.total_compressed_size // 2)
    place = f"in row group {group} of "
    refused(path, got=place, wanted="a complete Parquet file")
    refused(path, got=f"column {chunk.path_in_schema!r} (", wanted="a complete Parquet file")
    refused(pa.dataset.dataset(path), got=f"t.parquet', in row group {group} ", wanted="complete files")


def test_one_damaged_file_of_a_directory_is_named(tmp_path):
    for name in ("a.parquet", "b.parquet", "c.parquet"):
        big(tmp_path / name)
    damage(tmp_path / "b.parquet", 4000)
    refused(tmp_path, got="b.parquet", wanted="a complete Parquet file")


def test_what_is_no_path_at_all_is_refused_in_few_words():
    refused("1,2\n" * 5000, got="…", wanted="an existing Parquet or CSV file")


def test_files_of_a_directory_that_do_not_fit(tmp_path):
    parquet(tmp_path / "0.parquet", a=[1.0], b=[2.0])
    parquet(tmp_path / "1.parquet", a=[1.0], c=[2.0])
    refused(tmp_path, got="different columns (b, c)", wanted="the same columns in every file")
    parquet(tmp_path / "1.parquet", a=[1.0], b=["two"])
    refused(tmp_path, got="1.parquet' with other types", wanted="the same type in every file")


def test_parquet_without_rows(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": pa.array([], pa.float64())}), path)
    refused(path, got="a table without rows", wanted="at least one row")


def test_empty_columns(tmp_path):
    refused(parquet(tmp_path / "t.parquet", a=[1.0], b=pa.nulls(1)), got="'b'", wanted="numbers", fix="Leave these")
    path = parquet(tmp_path / "f.parquet", a=[1.0, 2.0], b=pa.nulls(2, pa.float64()))
    refused(path, got="every row from 0 to 1 of column 'b'", wanted="finite")


# ------------------------------------------------------------------------------------------------ files that change
def rewrite(path):
    pq.write_table(pa.table({"a": np.zeros(4000), "b": np.zeros(4000)}), path)


def touch(path):
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))


def replace(path):
    """Another file of the same bytes and time under the same name."""
    other, status = path.with_suffix(".new"), path.stat()
    other.write_bytes(path.read_bytes())
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    other.rename(path)


def vanish(path):
    path.unlink()


def overwrite(path):
    """Other bytes in the same file, and its time set back, as copies do that keep times."""
    status = path.stat()
    with open(path, "r+b") as file:
        file.seek(status.st_size // 2)
        file.write(b"7777")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize("change", [rewrite, touch, replace, overwrite, vanish])
@pytest.mark.parametrize("form", ["file", "directory", "dataset", "csv"])
def test_a_file_that_changes_between_passes(form, change, tmp_path):
    path = big(tmp_path / "t.parquet")
    if form == "csv":
        path = tmp_path / "t.csv"
        pa.csv.write_csv(pq.read_table(tmp_path / "t.parquet"), path)
    rows = as_rows({"directory": tmp_path, "dataset": pa.dataset.dataset(tmp_path / "t.parquet")}.get(form, path))
    assert rows.sum(lambda block: len(block.w)) == 4000
    change(path)
    with pytest.raises(SourceChangedError, match=rf"{path.name}', which changed .* two versions must not be mixed"):
        rows.sum(lambda block: len(block.w))


@pytest.mark.parametrize("change", [rewrite, touch, vanish])
def test_a_file_that_changes_during_a_pass(change, tmp_path, blocks_of):
    """The sum is not handed out, although every block was read."""
    blocks_of(64)
    path = big(tmp_path / "t.parquet")
    os.utime(path, (1e9, 1e9))  # a file system's clock may stand still between two writes
    rows, changed = as_rows(path), threading.Event()

    def disturb(block):
        if block.start == 0:
            change(path)
            changed.set()
        assert changed.wait(60)  # or other threads would read the rest of the file before it changes
        return len(block.w)

    with pytest.raises(SourceChangedError, match=r"t\.parquet"):
        rows.sum(disturb)


@pytest.mark.parametrize("ends", [False, True])
def test_a_remote_file_that_changes_between_passes(ends):
    def write(value):
        pd.DataFrame({"a": np.full(4000, value), "b": np.arange(4000.0)}).to_parquet("memory://rows/changing.parquet")

    write(1.0)
    rows = as_rows("memory://rows/changing.parquet")
    assert rows.sum(lambda block: block.X[:, 0].sum()) == 4000
    if ends:
        fsspec.filesystem("memory").rm("/rows/changing.parquet")
    else:
        write(2.0)
    with pytest.raises(SourceChangedError, match=r"changing\.parquet', which changed"):
        rows.sum(lambda block: block.X[:, 0].sum())


def batches_then(error):
    """A stream that ends with an error after its first batch."""
    batch = pa.record_batch({"a": [1.0, 2.0], "b": [1.0, 0.0]})

    def give():
        yield batch
        raise error

    return pa.RecordBatchReader.from_batches(batch.schema, give())


def test_a_query_that_fails_says_what_its_own_program_said(tmp_path):
    refused(
        batches_then(RuntimeError("the server went away")), got="the server went away", wanted="gives them all, once"
    )
    refused(pl.scan_parquet(tmp_path / "none.parquet"), got="polars query that does not give", wanted="query")
    text = pl.LazyFrame({"a": ["1", "2", "x"]}).select(pl.col("a").cast(pl.Float64))
    refused(text, got="conversion from `str` to `f64` failed", wanted="query")
    connection = duckdb.connect()
    connection.execute("create table numbers as select 1.0 as a, 'x' as b")
    late = connection.sql("select a, cast(b as double) as b from numbers")
    refused(late, got="Could not convert string 'x' to DOUBLE", wanted="query")
    connection.close()
    refused(late, got="DuckDBPyRelation that does not give its rows", wanted="query")


def test_a_link_that_leads_nowhere(tmp_path):
    (tmp_path / "gone.parquet").symlink_to(tmp_path / "nowhere.parquet")
    (tmp_path / "round.csv").symlink_to(tmp_path / "round.csv")
    for name in ("gone.parquet", "round.csv"):
        refused(tmp_path / name, got=f"{name}', a link that leads nowhere", wanted="an existing file")


# ------------------------------------------------------------------------------------------------ columns
FRAME = pd.DataFrame(
    {"width": [1.0, 2.0], "length": [3.0, 4.0], "species": ["a", "b"], "day": pd.to_datetime([0, 1])}
)
FORMS = {
    "pandas": lambda frame, _: frame,
    "polars": lambda frame, _: pl.from_pandas(frame),
    "lazy": lambda frame, _: pl.from_pandas(frame).lazy(),
    "arrow": lambda frame, _: pa.Table.from_pandas(frame),
    "parquet": lambda frame, folder: frame.to_parquet(folder / "t.parquet") or folder / "t.parquet",
    "csv": lambda frame, folder: frame.to_csv(folder / "t.csv", index=False) or folder / "t.csv",
    "dask": lambda frame, _: dd.from_pandas(frame, npartitions=1),
}
each_form = pytest.mark.parametrize("form", FORMS)


@each_form
def test_missing_target_column(form, tmp_path):
    X = FORMS[form](FRAME, tmp_path)
    refused(
        X,
        "specie",
        target="classes",
        got="y='specie', which is not a column of X",
        wanted="'width', 'length', 'species', 'day'",
        fix="Did you mean 'species'?",
    )
    X = FORMS[form](FRAME, tmp_path)
    refused(
        X, "species", "wdth", target="classes", got="sample_weight='wdth'", wanted="", fix="Did you mean 'width'?"
    )


@each_form
def test_columns_that_are_not_numbers(form, tmp_path):
    X = FORMS[form](FRAME, tmp_path)
    refused(X, "width", got="'species' (", wanted="numbers or booleans", fix="OneHotEncoder")
    X = FORMS[form](FRAME[["width", "day"]], tmp_path)
    refused(X, got="'day' (", wanted="numbers or booleans", fix="name the target column with y=")


@each_form
def test_holes_are_named(form, tmp_path):
    X = FORMS[form](pd.DataFrame({"width": [1.0, 2.0, 3.0], "length": [1.0, 2.0, np.nan]}), tmp_path)
    refused(
        X, got="NaN in row 2, column 'length' of X", wanted="finite numbers (no NaN, no inf)", fix="Drop these rows"
    )


@each_form
def test_infinity_is_named(form, tmp_path):
    X = FORMS[form](pd.DataFrame({"width": [1.0, 2.0, 3.0], "length": [1.0, -np.inf, 1.0]}), tmp_path)
    refused(X, got="infinity in row 1, column 'length' of X", wanted="finite numbers (no NaN, no inf)")


@each_form
def test_infinity_is_named_among_holes(form, tmp_path):
    X = FORMS[form](pd.DataFrame({"width": [np.nan, 2.0, 3.0], "length": [1.0, np.nan, np.inf]}), tmp_path)
    refused(
        X, missing=True, got="infinity in row 2, column 'length' of X",
        wanted="finite numbers, or NaN for a missing entry", fix="Drop these rows, or make the entries NaN.",
    )  # fmt: skip


def test_infinity_is_named_among_stored_holes():
    X = sparse.csr_array([[0.0, np.nan, 1.0], [0.0, -np.inf, 0.0]])
    refused(X, missing=True, sparse=True, got="infinity in row 1, column 1 of X", wanted="finite numbers")


@pytest.mark.parametrize("form", [form for form in FORMS if form != "pandas"])
def test_holes_in_the_target(form, tmp_path):
    X = FORMS[form](pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": ["a", "b", None]}), tmp_path)
    refused(
        X, "y", target="classes", got="no value in row 2 of the target", wanted="a label in every row", fix="Drop"
    )
    X = FORMS[form](pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": [1.0, np.nan, 2.0]}), tmp_path)
    refused(X, "y", target="numbers", got="no value in row 1 of the target", wanted="a finite number", fix="Drop")


@each_form
def test_a_measurement_is_not_a_class(form, tmp_path):
    X = FORMS[form](pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": [0.5, 0.25, 2.0]}), tmp_path)
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        as_rows(X, "y", target="classes").load()


@each_form
def test_text_is_not_a_number_to_predict(form, tmp_path):
    X = FORMS[form](pd.DataFrame({"x": [1.0, 2.0], "y": ["a", "b"]}), tmp_path)
    refused(X, "y", target="numbers", got="a target of type", wanted="numbers", fix="classifier")


@each_form
def test_a_table_of_nothing_but_a_target(form, tmp_path):
    X = FORMS[form](pd.DataFrame({"y": [1.0, 2.0]}), tmp_path)
    refused(X, "y", got="without feature columns", wanted="at least one column")


def test_two_columns_of_one_name(tmp_path):
    refused(written(tmp_path / "t.csv", "a,b,a\n1,2,3\n"), got="same name: 'a'", wanted="a name for each column")


def test_names_where_there_are_none():
    for X in (np.eye(3), sparse.eye_array(3).tocsr(), da.from_array(np.eye(3))):
        refused(X, "kind", got="y='kind' with ", wanted="y as an array", fix="named columns", sparse=True)
        refused(X, None, "w", got="sample_weight='w' with", wanted="sample_weight as an array", sparse=True)
        refused(X, ["a", "b"], targets=2, got="y=['a', 'b'] with ", wanted="y as an array", sparse=True)


def test_names_that_are_not_text():
    refused(dd.from_pandas(pd.DataFrame(np.eye(2)), npartitions=1), got="not text: 0, 1", wanted="text", fix="rename")


def test_text_in_an_array():
    refused(np.array([["1.5", "x"]]), got="text among the features", wanted="numbers", fix="Encode")


@pytest.mark.parametrize(
    ("stranger", "fix"),
    [
        (lambda path: {"a": [1.0, 2.0]}, "pandas.DataFrame"),
        (lambda path: io.BytesIO(path.read_bytes()), "Pass the path"),
        (lambda path: pq.ParquetFile(io.BytesIO(path.read_bytes())), "Pass the path"),
        (lambda path: duckdb.connect(), "relation"),
        (lambda path: (row for row in np.eye(2)), ""),
        (lambda path: b"t.parquet", ""),
    ],
)
def test_what_has_no_rows(stranger, fix, tmp_path):
    X = stranger(parquet(tmp_path / "t.parquet", a=[1.0, 2.0, 3.0]))
    refused(X, got=f"an object of type {type(X).__name__} as X", wanted="a table", fix=fix)


# ------------------------------------------------------------------------------------------------ targets and weights
SOURCES = {
    "array": lambda _: np.eye(3),
    "memory map": lambda folder: np.memmap(folder / "x", float, "w+", shape=(3, 2)),
    "parquet": lambda folder: parquet(folder / "t.parquet", a=[1.0, 2.0, 3.0]),
    "dask": lambda _: da.from_array(np.eye(3), chunks=(2, 3)),
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    ("weight", "got", "wanted"),
    [
        ([1.0, 2.0], "sample_weight of 2 entries", "one for each of the 3 rows"),
        ([1.0, -2.0, 1.0], "negative sample_weight (-2 in row 1)", "at least 0"),
        ([0.0, 0.0, 0.0], "zero for every row", "at least one positive"),
        ([[1.0], [1.0], [1.0]], "sample_weight with 2 dimensions", "1-D"),
    ],
)
def test_weights(source, weight, got, wanted, tmp_path):
    refused(SOURCES[source](tmp_path), None, weight, got=got, wanted=wanted)


@pytest.mark.parametrize("source", SOURCES)
def test_targets_beside_a_source(source, tmp_path):
    X = SOURCES[source](tmp_path)
    refused(X, [0, 1], target="classes", got="y of 2 entries", wanted="one for each of the 3 rows")
    refused(X, target="classes", got="no target", wanted="requires y to be passed", fix="name of the target column")
    refused(
        X, [0, np.nan, 1], target="numbers", got="no value in row 1", wanted="a finite", fix="Input y contains NaN"
    )
    refused(
        X, np.ones((3, 2)), target="numbers", got="y with 2 columns", wanted="one target", fix="should be a 1d array"
    )
    refused(X, [0, None, 1], target="numbers", got="no value in row 1 of the target", wanted="a finite number")
    refused(X, ["a", "b", "c"], target="numbers", got="a target of type <U1", wanted="numbers", fix="classifier")


# ------------------------------------------------------------------------------------------------ several targets
PAIR = {"target": "numbers", "targets": 2}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    ("y", "got"),
    [
        ([1.0, 2.0, 3.0], "y with 1 dimensions"),
        (np.ones((3, 1)), "y with 1 columns"),
        (np.ones((3, 3)), "y with 3 columns"),
        (da.ones(3), "y with 1 dimensions"),
        (da.ones((3, 3)), "y with 3 columns"),
        ([["a", 1.0]] * 3, "could not convert string to float"),
        ([[1.0, 2.0], [1.0], [1.0, 2.0]], "y that is not a table of numbers"),
    ],
)
def test_targets_of_another_width(source, y, got, tmp_path):
    refused(SOURCES[source](tmp_path), y, **PAIR, got=got, wanted="2 columns of numbers: an array (n, 2)")


@pytest.mark.parametrize("source", SOURCES)
def test_values_of_several_targets_beside_a_source(source, tmp_path):
    X = SOURCES[source](tmp_path)
    refused(X, np.ones((2, 2)), **PAIR, got="y of 2 entries", wanted="one for each of the 3 rows")
    refused(X, **PAIR, got="no target", wanted="requires y to be passed")
    bad = np.ones((3, 2))
    bad[1, 1] = np.nan
    refused(X, bad, **PAIR, got="no value in row 1, column 1 of the target", wanted="a finite number", fix="Drop")
    frame = pd.DataFrame(bad, columns=["claims", "exposure"])
    refused(X, frame, **PAIR, got="no value in row 1, column 'exposure' of the target", wanted="a finite number")


@each_form
def test_values_of_several_targets_in_columns(form, tmp_path):
    def table(*exposure):
        return FORMS[form](pd.DataFrame({"x": [1.0, 2.0], "claims": [0, 1], "exposure": exposure}), tmp_path)

    y = ["claims", "exposure"]
    place = "in row 1, column 'exposure' of the target"
    refused(table(1.0, None), y, **PAIR, got=f"no value {place}", wanted="a finite number", fix="Drop")
    refused(table(1.0, -np.inf), y, **PAIR, got=f"infinity {place}", wanted="a finite number", fix="Drop")
    refused(table("a", "b"), y, **PAIR, got="", wanted="numbers")


@each_form
def test_names_of_several_targets(form, tmp_path):
    def table():
        return FORMS[form](pd.DataFrame({"x": [1.0, 2.0], "claims": [0, 1], "exposure": [1.0, 2.0]}), tmp_path)

    refused(table(), "claims", **PAIR, got="1 target column(s): 'claims'", wanted="2", fix="in a list")
    refused(table(), ["x", "claims", "exposure"], **PAIR, got="3 target column(s): 'x', ", wanted="2")
    refused(table(), ["claims", "exposur"], **PAIR, got="y='exposur'", wanted="'x', 'claims'", fix="mean 'exposure'?")


@pytest.mark.parametrize("form", ["arrow", "parquet", "csv", "lazy", "dask"])
def test_weights_in_a_column(form, tmp_path):
    def table(*w):
        return FORMS[form](pd.DataFrame({"x": [1.0, 2.0, 3.0], "w": w}), tmp_path)

    refused(table(1.0, -2.0, 1.0), None, "w", got="sample_weight -2 in row 1", wanted="at least 0")
    refused(table(1.0, 1.0, np.nan), None, "w", got="sample_weight nan in row 2", wanted="finite weights")
    refused(table(1.0, np.inf, 1.0), None, "w", got="sample_weight inf in row 1", wanted="finite weights")
    refused(table(0.0, 0.0, 0.0), None, "w", got="zero for every row", wanted="at least one positive weight")


@pytest.mark.parametrize("form", ["arrow", "parquet", "csv", "lazy", "dask"])
def test_weights_that_are_not_numbers(form, tmp_path):
    X = FORMS[form](pd.DataFrame({"x": [1.0, 2.0], "w": ["a", "b"]}), tmp_path)
    refused(X, None, "w", got="weights in column 'w' of type", wanted="numbers of at least 0")


def test_targets_that_are_lists():
    X = pa.table({"x": [1.0], "y": [[1, 2]]})
    refused(X, "y", target="classes", got="target column 'y' of type list", wanted="one number or label per row")


def test_rows_carry_their_own_target():
    refused(as_rows(np.eye(2)), [0, 1], got="beside rows", wanted="carry their own")


# ------------------------------------------------------------------------------------------------ Dask
def test_dask_shapes():
    refused(da.ones(3), got="shape (3,)", wanted="2-D")
    refused(da.ones((3, 2)).astype(str), got="'X' (", wanted="numbers")
    refused(da.ones((0, 2)), got="without rows", wanted="at least one row")
    refused(da.ones((4, 2)), da.ones((4, 2)), target="numbers", got="y with 2 dimensions", wanted="1-D")
    refused(
        da.ones((4, 2), chunks=2),
        da.ones(3, chunks=3),
        target="numbers",
        got="y in 1 Dask",
        wanted="partitioned like X",
    )
    chunks = da.from_array(np.eye(4), chunks=(2, 4)).map_blocks(sparse.csr_matrix)
    refused(chunks, got="sparse chunks", wanted="dense", fix="toarray")


def test_dask_partitions_that_do_not_fit():
    frame = dd.from_pandas(pd.DataFrame({"x": np.arange(10.0), "y": np.arange(10)}), npartitions=2)
    other = dd.concat([frame.partitions[1], frame.partitions[0].loc[:3]])
    refused(frame[["x"]], other["y"], target="classes", got="4 entries for a partition of 5", wanted="the same rows")


def test_dask_frames_of_another_number_of_partitions():
    frame = dd.from_pandas(pd.DataFrame({"x": np.arange(10.0), "y": np.arange(10)}), npartitions=2)
    whole = frame.repartition(npartitions=1)
    refused(frame[["x"]], whole["y"], target="classes", got="y in 1 Dask partitions and X in 2", wanted="like X")


def test_a_dask_partition_that_changes(tmp_path):
    path = parquet(tmp_path / "t.parquet", x=np.arange(10.0))
    rows = as_rows(dd.from_map(pd.read_parquet, [str(path)], meta=pd.read_parquet(path).iloc[:0]))
    parquet(tmp_path / "t.parquet", x=np.arange(9.0))
    with pytest.raises(SourceChangedError, match="Got a Dask partition of 9 rows; wanted the 10"):
        rows.sum(lambda block: len(block.w))


def test_an_unreachable_scheduler():
    """The scheduler dies: the sum ends with an error that says what to do, and does not hang."""
    from distributed import Client

    code = (
        "import asyncio\n"
        "from distributed import Scheduler\n"
        "async def main():\n"
        "    async with Scheduler(port=0, dashboard=False) as scheduler:\n"
        "        print(scheduler.address, flush=True)\n"
        "        await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as scheduler:
        address = scheduler.stdout.readline().strip()
        client = Client(address, timeout=3)
        try:
            rows = as_rows(da.ones((10, 2), chunks=5))
            scheduler.kill()
            scheduler.wait()
            while client.status == "running":
                time.sleep(0.05)
            with pytest.raises(DataError, match="no answer from the Dask cluster") as caught:
                rows.sum(lambda block: len(block.w))
        finally:
            client.close(timeout=1)
    assert "make a new dask.distributed.Client" in caught.value.fix
    assert rows.sum(lambda block: len(block.w)) == 10  # without a client: here


@pytest.mark.parametrize("labels", [["a", 1, "b", 2], [1, 2.5, "c", 1]])
def test_words_and_numbers_are_no_labels_of_one_kind(labels):
    y = np.array(labels, dtype=object)
    refused(np.eye(4), y, target="classes", got="words and numbers", wanted="one kind", fix="astype(str)")


def test_objects_of_one_kind_are_labels():
    assert as_rows(np.eye(4), np.array(["a", "b", "a", "c"], dtype=object), target="classes").load().n_rows == 4
