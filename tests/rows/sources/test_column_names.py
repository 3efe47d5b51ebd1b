"""Columns by name: found, in any order, missed, refused."""

import tempfile
from pathlib import Path

import dask.array as da
import numpy as np
import pytest
from sklearn.base import BaseEstimator

from certifit.rows import as_rows
from tests.rows.sources.one_table import FEATURES, FRAME, NAMED, TABLE, D, X, parquet_file


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
