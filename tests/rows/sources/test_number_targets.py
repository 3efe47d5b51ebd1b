"""Targets that are numbers, one or several: by name or beside the table, from every source."""

import tempfile
from decimal import Decimal
from pathlib import Path

import dask.array as da
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import DataConversionWarning

from certifit.rows import ArrayRows, as_rows
from tests.rows.sources.one_table import (
    BLOCK,
    COUNT,
    FEATURES,
    FORMS,
    FRAME,
    D,
    N,
    X,
    arrow,
    dask_frame,
    each_form,
    memory_map,
)


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
    np.testing.assert_array_equal(rows.thin(1).y, PAIR)
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
