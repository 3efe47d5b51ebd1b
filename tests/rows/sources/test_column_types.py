"""Numbers and labels of every type, from every source."""

from functools import partial

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from certifit import DataError, TableClassifier
from certifit.rows import ArrayRows, as_rows, encode_labels
from certifit.table.reading import as_table, table_blocks
from tests.rows.sources.one_table import (
    BLOCK,
    CENTRE,
    FEATURES,
    FORMS,
    FRAME,
    D,
    X,
    bits,
    dask_frame,
    each_form,
    parquet_file,
    scatter,
)

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


UNLIKE = {
    "whole numbers, fractions": ([1, 2, 3], [0.5, 1.5, 2.5]),
    "nothing, numbers": (pa.nulls(3), [0.5, 1.5, 2.5]),
    "numbers, nothing": ([0.5, 1.5, 2.5], pa.nulls(3)),
    "text, nothing": (["a", "b", "a"], pa.nulls(3)),
    "categories, text": (pa.array(["a", "b", "a"]).dictionary_encode(), ["b", "c", "a"]),
    "other categories": (
        pa.array(["a", "b", "a"]).dictionary_encode(),
        pa.array(["c", "b"] * 2).dictionary_encode()[:3],
    ),
    "categories of other types": (
        pa.array(["a", "b", "a"]).dictionary_encode(),
        pa.array(["c", "b", "c"], pa.large_string()).dictionary_encode(),
    ),
    "coded numbers, numbers": (pa.array([1.5, 2.5, 1.5]).dictionary_encode(), [0.5, 1.5, 2.5]),
}


@pytest.mark.parametrize("name", UNLIKE)
def test_files_of_one_table_may_differ_in_type(name, tmp_path):
    """Whole, block by block and by workers, the table of two files is the one table of both."""
    values = [part if isinstance(part, pa.Array) else pa.array(part) for part in UNLIKE[name]]
    for k, part in enumerate(values):
        pq.write_table(pa.table({"a": part, "x": [0.0, 1.0, 5.0], "y": ["p", "q", "q"]}), tmp_path / f"{k}.parquet")
    (schema,) = {block.schema for block in table_blocks(tmp_path, rows=2)}
    whole = as_table(tmp_path)
    assert whole.schema == schema
    plain = [part.dictionary_decode() if isinstance(part, pa.DictionaryArray) else part for part in values]
    expected = [value for part in plain for value in part.cast(_value_type(schema.field("a").type)).to_pylist()]
    assert whole["a"].to_pylist() == expected
    joined = as_table([tmp_path / "0.parquet", tmp_path / "1.parquet"])
    assert joined.equals(whole)
    model = TableClassifier().fit(tmp_path, "y")
    assert model.predict(tmp_path).tolist() == model.predict(whole).tolist()


def _value_type(kind):
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def test_a_file_without_columns_has_no_target(tmp_path):
    pq.write_table(pa.table({}), tmp_path / "t.parquet")
    with pytest.raises(DataError, match=r"wanted one of its columns \(it has none\)"):
        as_rows(tmp_path / "t.parquet", "y")
    with pytest.raises(DataError, match="no rows"):
        TableClassifier().fit(tmp_path / "t.parquet", "y")


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


def test_a_single_column_may_have_a_bar_in_its_name(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("P(a|b)\n0.5\n0.25\n")
    assert as_rows(path).load().X.ravel().tolist() == [0.5, 0.25]
