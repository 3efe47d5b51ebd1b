"""Missing values come as NaN from every source, where they are taken."""

import tempfile
from functools import partial
from pathlib import Path

import dask.array as da
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

from certifit.core import Certificate, Estimator, Objective
from certifit.exceptions import DataError
from certifit.rows import ArrayRows, as_rows
from tests.rows.sources.one_table import BLOCK, FORMS, N, Scatter, X, arrow, bits, memory_map


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
    rows = as_rows(HOLED_FORMS[form](tmp_path), missing=True)
    assert rows.dtype == np.float64
    assert all(b.X.flags.c_contiguous and b.X.dtype == np.float64 for b in rows)
    np.testing.assert_array_equal(np.concatenate([b.X for b in rows]), HOLES)
    assert bits(rows.sum(mean_of_present)) == bits(ArrayRows(HOLES).sum(mean_of_present))
    with pytest.raises(DataError, match=r"NaN in|columns without any value"):
        as_rows(HOLED_FORMS[form](Path(tempfile.mkdtemp(dir=tmp_path)))).load()


@pytest.mark.parametrize("form", [form for form in FORMS if form != "csv"])
def test_single_precision_with_holes_stays(form, tmp_path):
    values = HOLES[:, :2].astype(np.float32)
    rows = as_rows(FORMS[form](pd.DataFrame(values, columns=["a", "b"]), tmp_path), missing=True)
    assert all(b.X.dtype == np.float32 for b in rows)
    np.testing.assert_array_equal(rows.load().X, values)


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint16(), pa.int32(), pa.int64(), pa.bool_(), pa.decimal128(5, 2)])
def test_numbers_of_any_type_with_holes(kind, tmp_path):
    table = pa.table(
        {"a": pa.array([1, None, 0], pa.int8()).cast(kind), "b": pa.array([None, 0, 1], pa.int8()).cast(kind)}
    )
    pq.write_table(table, tmp_path / "t.parquet")
    for source in (table, pl.from_arrow(table), table.to_pandas(types_mapper=pd.ArrowDtype), tmp_path / "t.parquet"):
        np.testing.assert_array_equal(as_rows(source, missing=True).load().X, [[1, np.nan], [np.nan, 0], [0, 1]])


def test_stored_holes_of_a_sparse_matrix():
    dense = np.where(HOLES[:, :3] < 1e4, 0.0, HOLES[:, :3])
    rows = as_rows(sparse.csr_array(dense), sparse=True, missing=True)
    np.testing.assert_array_equal(np.concatenate([b.X.toarray() for b in rows]), dense)


class Mean(Estimator):
    """The mean of what is there."""

    missing = True

    def _fit(self, rows, previous):
        parts = rows.sum(lambda b: np.array([np.nansum(b.X, axis=0), (~np.isnan(b.X)).sum(axis=0)]))
        return {"mean_": parts[0] / parts[1], "certificate_": Certificate("exact", "mean")}

    def objective(self, X, y=None, sample_weight=None):
        total = self._rows(X, y, sample_weight).sum(lambda b: np.nansum((b.X - self.mean_) ** 2))
        return Objective(total, total, 0.0)


def test_an_estimator_says_whether_it_takes_holes():
    class Strict(Mean):
        missing = False

    X = HOLES[:, :3]
    model = Mean().fit(X)
    np.testing.assert_allclose(model.mean_, np.nanmean(X, axis=0), rtol=1e-14)
    np.testing.assert_allclose(model.objective(X).total, np.nansum((X - model.mean_) ** 2), rtol=1e-12)
    assert model.__sklearn_tags__().input_tags.allow_nan
    assert not Strict().__sklearn_tags__().input_tags.allow_nan
    for call in (Strict().fit, Strict().fit(X[~np.isnan(X).any(axis=1)]).objective):
        with pytest.raises(DataError, match="NaN in row"):
            call(X)
