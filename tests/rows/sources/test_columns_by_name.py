"""`columns=` of fit: some columns of any table that has names, whatever it is."""

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from certifit import (
    GaussianNB,
    IncrementalPCA,
    KMeans,
    Lasso,
    LassoCV,
    LogisticRegression,
    TableClassifier,
    audit,
)
from certifit.exceptions import DataError

FRAME = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 4)), columns=list("abcd"))
FRAME["t"] = (FRAME["a"] + 0.5 * FRAME["c"] > 0).astype(int)
FRAME["w"] = 1.0 + np.arange(60) % 3


@pytest.fixture(params=["pandas", "arrow", "csv", "parquet", "dask"])
def table(request, tmp_path):
    if request.param == "csv":
        FRAME.to_csv(tmp_path / "t.csv", index=False)
        return tmp_path / "t.csv"
    if request.param == "parquet":
        FRAME.to_parquet(tmp_path / "t.parquet")
        return tmp_path / "t.parquet"
    if request.param == "dask":
        return dd.from_pandas(FRAME, npartitions=3)
    return FRAME if request.param == "pandas" else pa.Table.from_pandas(FRAME)


def test_fit_learns_from_the_columns_named(table):
    model = LogisticRegression().fit(table, y="t", sample_weight="w", columns=["c", "a"])
    plain = LogisticRegression().fit(FRAME[["c", "a"]], FRAME["t"], FRAME["w"])
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-9)
    assert model.feature_names_in_.tolist() == ["c", "a"]
    assert model.score(table, y="t") == plain.score(FRAME[["c", "a"]], FRAME["t"])
    assert audit(model, table, "t", "w").holds
    assert "_columns" not in vars(model)


@pytest.mark.parametrize("model", [Lasso(0.01), LassoCV(alphas=5), GaussianNB()], ids=str)
def test_whatever_the_signature_of_fit(model):
    assert model.fit(FRAME, "t", columns=["a", "b"]).n_features_in_ == 2


def test_methods_that_fit_on_the_way():
    labels = KMeans(2, random_state=0).fit_predict(FRAME, columns=["a", "b"])
    np.testing.assert_array_equal(labels, KMeans(2, random_state=0).fit_predict(FRAME[["a", "b"]]))
    model = IncrementalPCA(1).partial_fit(FRAME, columns=["a", "b"]).partial_fit(FRAME, columns=["a", "b"])
    assert model.n_features_in_ == 2
    assert IncrementalPCA(1).fit_transform(FRAME, columns=["a", "b"]).shape == (60, 1)


@pytest.mark.parametrize(
    ("columns", "words"),
    [("a", "a list of names"), ([], "a list of names"), ([0], "a list of names"), (["zz"], "not a column of X")],
)
def test_names_that_are_not_there(columns, words):
    with pytest.raises(DataError, match=words):
        Lasso().fit(FRAME, "t", columns=columns)


def test_where_there_are_no_names():
    with pytest.raises(DataError, match="no column names"):
        Lasso().fit(FRAME.to_numpy(), FRAME["t"], columns=["a"])
    with pytest.raises(DataError, match="Leave the other columns out"):
        TableClassifier().fit(FRAME, "t", columns=["a"])
