"""Fitted models on tables that are not in memory: targets by name, lazy Dask answers, streams, addresses, files."""

import os
from pathlib import Path

import dask.array as da
import dask.dataframe as dd
import fsspec
import narwhals
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest
import sklearn
from pyarrow import csv, parquet
from sklearn.decomposition import PCA as TheirPCA
from sklearn.linear_model import LogisticRegression as TheirLogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from certifit import (
    PCA,
    SVC,
    SVR,
    DataError,
    GaussianNB,
    KMeans,
    LinearSVR,
    LogisticRegression,
    Ridge,
    TableClassifier,
    TableRegressor,
    as_rows,
    load,
    save,
    write_predictions,
)
from certifit.datasets import penguins_path, penguins_table

NUMBERS = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm"]
WHOLE = penguins_table().drop_null().append_column("weight", pa.array(1.0 + np.arange(333) % 3))
FRAME = WHOLE.to_pandas()
X, SPECIES, MASS, W = FRAME[NUMBERS], FRAME["species"], FRAME["body_mass_g"], FRAME["weight"]


class Relation:
    """What DuckDB's relations and other libraries' tables offer: an Arrow stream, and nothing else."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


@pytest.fixture
def path(tmp_path):
    parquet.write_table(WHOLE, tmp_path / "birds.parquet", row_group_size=100)
    return str(tmp_path / "birds.parquet")


@pytest.fixture
def lazy():
    return dd.from_pandas(FRAME, npartitions=3)


CLASSIFIERS = (LogisticRegression(), GaussianNB(), SVC())
REGRESSORS = (Ridge(), SVR(C=100.0), LinearSVR())


@pytest.mark.parametrize("model", [*CLASSIFIERS, *REGRESSORS], ids=lambda model: type(model).__name__)
def test_scores_of_a_path_take_targets_and_weights_by_name(model, path, lazy):
    name, y = ("species", SPECIES) if model in CLASSIFIERS else ("body_mass_g", MASS)
    fitted = model.fit(X, y)
    plain, weighted = fitted.score(X, y), fitted.score(X, y, W)
    for table in (path, FRAME, WHOLE, lazy):
        assert fitted.score(table, name) == pytest.approx(plain, rel=1e-12)
        assert fitted.score(table, y=name, sample_weight="weight") == pytest.approx(weighted, rel=1e-12)
    assert fitted.score(lazy[NUMBERS], lazy[name], lazy["weight"]) == pytest.approx(weighted, rel=1e-12)
    assert plain != weighted
    with pytest.raises(DataError, match="y='mass', which is not a column of X"):
        fitted.score(path, "mass")


@pytest.mark.parametrize(
    ("model", "methods"),
    [
        (PCA(2).fit(X), ("transform", "score_samples")),
        (KMeans(3, random_state=0).fit(X), ("predict", "transform")),
        (LogisticRegression().fit(X, SPECIES), ("predict", "predict_proba", "decision_function")),
        (GaussianNB().fit(X, SPECIES), ("predict", "predict_log_proba")),
        (SVC(probability=True).fit(X, SPECIES), ("predict", "predict_proba")),
        (TableClassifier().fit(WHOLE, "species"), ("predict", "predict_proba")),
        (TableRegressor().fit(WHOLE, "body_mass_g"), ("predict",)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_answers_about_dask_are_lazy(model, methods, lazy, path):
    for method in methods:
        ask = getattr(model, method)
        expected = ask(FRAME if "Table" in type(model).__name__ else X)
        with_empty = dd.concat(
            [lazy.partitions[:1], lazy.partitions[1:].query("body_mass_g < 0"), lazy.partitions[1:]]
        )
        for table in (lazy, with_empty):
            found = ask(table)
            assert isinstance(found, da.Array)
            assert found.dtype == expected.dtype
            agree(found.compute(), expected)
        agree(ask(path), expected)


def agree(found, expected):
    """Labels are the same; numbers up to rounding, which depends on where blocks are cut."""
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    else:
        np.testing.assert_array_equal(found, expected)


def test_answers_about_dask_arrays_have_known_shapes():
    values = X.to_numpy()
    lazy = da.from_array(values, chunks=(100, 2))
    model = PCA(2).fit(values)
    found = model.transform(lazy)
    assert found.shape == (333, 2)
    np.testing.assert_array_equal(found, model.transform(values))
    labels = KMeans(3, random_state=0).fit(values)
    assert labels.predict(lazy).shape == (333,)
    np.testing.assert_array_equal(labels.predict(lazy), labels.predict(values))


def test_wrong_columns_of_a_lazy_table_are_refused_at_once(lazy):
    with pytest.raises(ValueError, match=r"feature names|features"):
        PCA(2).fit(X).transform(lazy[["bill_length_mm", "year"]])


def test_dask_answers_survive_saving(tmp_path, lazy):
    save(PCA(1).fit(X), tmp_path / "pca.certifit")
    assert load(tmp_path / "pca.certifit").transform(lazy).compute().shape == (333, 1)


def test_columns_by_name(path, lazy):
    expected = PCA(1).fit(X).components_
    for table in (path, FRAME, WHOLE, lazy, pl.from_arrow(WHOLE)):
        rows = as_rows(table, columns=NUMBERS)
        assert rows.names.tolist() == NUMBERS
        np.testing.assert_allclose(PCA(1).fit(rows).components_, expected, rtol=1e-12)
    rows = as_rows(path, "species", "weight", target="classes", columns=NUMBERS)
    model = LogisticRegression().fit(rows)
    np.testing.assert_allclose(model.coef_, LogisticRegression().fit(X, SPECIES, W).coef_, rtol=1e-6)
    assert model.score(path, "species") == pytest.approx(0.98, abs=0.02)
    with pytest.raises(DataError, match="columns='bill', which is not a column"):
        as_rows(path, columns=["bill"])
    with pytest.raises(DataError, match="ndarray as X, which has no column names"):
        as_rows(X.to_numpy(), columns=NUMBERS)


def tables_of_any_kind(folder):
    """The penguins in every form that a model of a table takes."""
    halves = [WHOLE.slice(0, 150), WHOLE.slice(150)]
    for i, half in enumerate(halves):
        parquet.write_table(half, folder / f"part{i}.parquet")
    csv.write_csv(WHOLE, folder / "birds.csv")
    with fsspec.open("memory://birds/birds.parquet", "wb") as file:
        parquet.write_table(WHOLE, file)
    return {
        "CSV": str(folder / "birds.csv"),
        "path": folder / "birds.csv",
        "pattern": str(folder / "part*.parquet"),
        "list": [folder / "part0.parquet", folder / "part1.parquet"],
        "address": "memory://birds/birds.parquet",
        "local address": f"file://{folder / 'part0.parquet'}",
        "stream": Relation(WHOLE),
        "dataset": pyarrow.dataset.dataset([folder / "part0.parquet", folder / "part1.parquet"]),
        "narwhals": narwhals.from_native(FRAME),
        "polars": pl.from_arrow(WHOLE),
        "query": pl.from_arrow(WHOLE).lazy(),
        "Dask": dd.from_pandas(FRAME, npartitions=2),
    }


def test_models_of_tables_take_any_table(tmp_path):
    expected = TableClassifier().fit(WHOLE, "species")
    for kind, table in tables_of_any_kind(tmp_path).items():
        model = TableClassifier().fit(table, y="species")
        if kind == "local address":
            assert model.n_rows_ == 150
            continue
        assert model.n_rows_ == 333, kind
        np.testing.assert_allclose(model.model_.coef_, expected.model_.coef_, atol=1e-9, err_msg=kind)
        again = tables_of_any_kind(tmp_path)[kind]
        assert (np.asarray(model.predict(again)) == expected.predict(WHOLE)).all(), kind
        assert model.score(tables_of_any_kind(tmp_path)[kind]) == expected.score(WHOLE), kind


def test_other_models_take_a_stream_and_an_address_in_memory(tmp_path):
    expected = Ridge().fit(X.assign(body_mass_g=MASS), "body_mass_g")
    tables = tables_of_any_kind(tmp_path)
    for kind in ("address", "stream", "narwhals", "query", "pattern", "list"):
        rows = as_rows(tables[kind], "body_mass_g", target="numbers", columns=NUMBERS)
        np.testing.assert_allclose(Ridge().fit(rows).coef_, expected.coef_, rtol=1e-9, err_msg=kind)


def test_what_training_did_not_see_is_counted_over_all_blocks(tmp_path):
    model = TableClassifier().fit(WHOLE, "species")
    new = WHOLE.set_column(1, "island", pa.array(["Mars", "Biscoe", None] * 111))
    parts = [tmp_path / f"{i}.parquet" for i in range(3)]
    for i, part in enumerate(parts):
        parquet.write_table(new.slice(111 * i, 111), part)
    with pytest.warns(UserWarning, match="training") as found:
        model.predict(parts)
    said = [str(warning.message) for warning in found]
    assert len(said) == 2
    assert said[0].startswith("TableClassifier: 111 value(s) of 'island' are categories that training did not see")
    assert said[1].startswith("TableClassifier: 111 value(s) of 'island' are missing")


@pytest.mark.parametrize("ending", ["parquet", "pq", "csv"])
def test_predictions_are_written_block_by_block(tmp_path, path, ending):
    model = LogisticRegression().fit(X, SPECIES)
    out = tmp_path / f"out.{ending}"
    rows = write_predictions(model, path, out, methods=("predict", "predict_proba"), keep=["year", "sex"])
    assert rows == 333
    found = csv.read_csv(out) if ending == "csv" else parquet.read_table(out)
    assert found.column_names == ["year", "sex", "prediction", *(f"probability {c}" for c in model.classes_)]
    assert found["prediction"].to_pylist() == model.predict(X).tolist()
    np.testing.assert_array_equal(found["probability Gentoo"].to_numpy(), model.predict_proba(X)[:, 2])
    assert found["sex"].to_pylist() == FRAME["sex"].tolist()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["birds.parquet", out.name]


def test_what_other_libraries_models_say_is_written_too(tmp_path, path):
    pipeline = make_pipeline(StandardScaler(), TheirLogisticRegression()).fit(X, SPECIES)
    write_predictions(pipeline, path, tmp_path / "out.parquet")
    assert parquet.read_table(tmp_path / "out.parquet")["prediction"].to_pylist() == pipeline.predict(X).tolist()
    scores = TheirPCA(2).fit(X)
    write_predictions(scores, path, tmp_path / "out.parquet")  # in the place of the older file
    found = parquet.read_table(tmp_path / "out.parquet").to_pandas()
    assert list(found) == ["pca0", "pca1"]
    np.testing.assert_allclose(found, scores.transform(X))


def test_a_table_larger_than_a_block_is_never_whole(tmp_path):
    """More rows than a block has: the file grows block by block, and an error leaves the older file as it was."""
    n = 200_000
    table = pa.table({"x": np.arange(n) % 97 / 10, "z": np.arange(n) % 31 / 10})
    parquet.write_table(table, tmp_path / "t.parquet", row_group_size=10_000)
    model = PCA(1).fit(str(tmp_path / "t.parquet"))
    out = tmp_path / "out.parquet"
    assert write_predictions(model, tmp_path / "t.parquet", out) == n
    assert parquet.ParquetFile(out).num_row_groups > 1
    np.testing.assert_allclose(parquet.read_table(out)["pca0"].to_numpy(), model.transform(table)[:, 0])
    before = out.read_bytes()
    parquet.write_table(
        table.set_column(0, "x", pa.array(np.where(np.arange(n) < n - 1, 1.0, np.nan))), tmp_path / "bad.pq"
    )
    with pytest.raises(DataError, match="NaN in row"):
        write_predictions(model, tmp_path / "bad.pq", out)
    assert out.read_bytes() == before
    assert not list(tmp_path.glob(".*.tmp"))


def test_a_table_is_not_overwritten_by_what_is_said_of_it(tmp_path, path):
    """By whatever name the same file is called, and whether it is read alone or with others."""
    model = LogisticRegression().fit(X, SPECIES)
    os.link(path, tmp_path / "same.parquet")
    (tmp_path / "link.parquet").symlink_to(path)
    before = Path(path).read_bytes()
    sources = [path, Path(path), [path], str(tmp_path / "*.parquet"), tmp_path]
    for source in sources:
        for out in (path, tmp_path / "same.parquet", tmp_path / "link.parquet"):
            with pytest.raises(DataError, match="as input and output"):
                write_predictions(model, source, out)
    assert Path(path).read_bytes() == before


def test_files_of_unknown_kind_and_methods_that_are_not_there_are_refused(tmp_path, path):
    model = PCA(1).fit(X)
    with pytest.raises(DataError, match=r"ends in \.parquet, \.pq or \.csv"):
        write_predictions(model, path, tmp_path / "out.xlsx")
    with pytest.raises(DataError, match="methods that a PCA has"):
        write_predictions(model, path, tmp_path / "out.csv", methods="predict_proba")
    with pytest.raises(DataError, match="no column to keep 'id'"):
        write_predictions(model, path, tmp_path / "out.csv", keep=["id"])


def test_the_penguins_are_a_data_frame():
    from certifit import load_penguins

    frame = load_penguins()
    assert isinstance(frame, pd.DataFrame)
    assert frame.shape == (344, 8)
    columns, species = load_penguins(return_X_y=True)
    assert species.equals(frame["species"])
    assert list(columns) == [name for name in frame if name != "species"]
    assert TableClassifier().fit(columns, species).score(penguins_path(), "species") > 0.98


def test_dask_answers_are_lazy_frames_where_pandas_is_asked_for():
    frame = X.set_index(np.arange(7, 7 + len(X)))
    model = PCA(2).fit(frame).set_output(transform="pandas")
    expected, lazy = model.transform(frame), dd.from_pandas(frame, npartitions=3)
    for found in (model.transform(lazy), PCA(2).set_output(transform="pandas").fit_transform(lazy)):
        assert found.npartitions == 3
        assert found._meta.dtypes.equals(expected.dtypes)
        pd.testing.assert_frame_equal(found.compute(), expected, rtol=1e-9)
    some = lazy.map_partitions(lambda part: part[part.index < 10])  # of which two are empty
    pd.testing.assert_frame_equal(model.transform(some).compute(), expected.loc[:9])
    numbers = PCA(2).fit(X.to_numpy()).set_output(transform="pandas")
    found = numbers.transform(da.from_array(X.to_numpy(), chunks=(100, 2)))
    np.testing.assert_allclose(found.compute(), expected, rtol=1e-9)
    with sklearn.config_context(transform_output="pandas"):
        assert list(PCA(1).fit(X).transform(lazy).columns) == ["pca0"]
    with pytest.raises(DataError, match="frames that Dask knows"):
        model.set_output(transform="polars").transform(lazy)


def test_no_text_of_a_csv_file_is_a_formula(tmp_path):
    odd = ["=cmd()", "+1+cmd|x", "-2", "-2+3", "@SUM(A1)", "\tx", "a=b", None, "", "1e-3"]
    table = pa.table({"x": np.arange(10.0), "=id": odd, "kind": pa.array(odd).dictionary_encode()})
    model = PCA(1).fit(table.select(["x"]))
    with pytest.warns(UserWarning, match="11 names or text cells begin as formulas do"):
        write_predictions(model, table, tmp_path / "out.csv", keep=["=id", "kind"])
    found = csv.read_csv(tmp_path / "out.csv", convert_options=csv.ConvertOptions(strings_can_be_null=False))
    assert found.column_names == ["'=id", "kind", "pca0"]
    expected = ["'=cmd()", "'+1+cmd|x", "-2", "'-2+3", "'@SUM(A1)", "'\tx", "a=b", "", "", "1e-3"]
    assert found["'=id"].to_pylist() == found["kind"].to_pylist() == expected
    write_predictions(model, table, tmp_path / "out.parquet", keep=["=id"])
    assert parquet.read_table(tmp_path / "out.parquet")["=id"].to_pylist() == odd
