"""Files and Dask data: the same score as in memory on the same split, without a table in memory."""

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge as TheirRidge

from certifit import DataError, GaussianNB, LinearRegression, as_rows, assess
from certifit.model_selection import HashedKFold, HashedSplit


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    table["kind"] = np.where(X.sum(axis=1) + rng.normal(size=600) > 0, "yes", "no")
    table["amount"] = X @ [1.0, 2.0, 3.0] + rng.normal(size=600)
    return table


def test_a_file_is_assessed_as_the_same_split_in_memory(frame, tmp_path):
    path = tmp_path / "rows.parquet"
    frame.drop(columns="amount").to_parquet(path)
    found = assess(GaussianNB(), path, "kind", metrics=["accuracy", "roc_auc"])
    X, y = frame[["a", "b", "c"]].to_numpy(), frame["kind"].to_numpy()
    same = assess(GaussianNB(), X, y, method=HashedSplit(0.25), metrics=["accuracy", "roc_auc"])
    for claim, wanted in zip(found.claims, same.claims, strict=True):
        assert claim.estimate == pytest.approx(wanted.estimate, abs=1e-12)
    assert found["accuracy"].way == "binomial"
    assert found["accuracy"].low == pytest.approx(same["accuracy"].low)
    assert found.certificate.holds
    assert "a hash of the row number" in str(found).replace("\n", " ")
    assert found.per_class().to_frame()["rows"].sum() == len(found.tested.test)


def test_folds_of_a_file(frame, tmp_path):
    path = str(tmp_path / "rows.parquet")
    frame.drop(columns="kind").to_parquet(path)
    found = assess(LinearRegression(), path, "amount", method="k-fold", n_splits=3)
    X, y = frame[["a", "b", "c"]].to_numpy(), frame["amount"].to_numpy()
    same = assess(LinearRegression(), X, y, method=HashedKFold(3))
    for claim, wanted in zip(found.claims, same.claims, strict=True):
        np.testing.assert_allclose(claim.values, wanted.values, rtol=1e-8)
    assert found.n_fits == 3
    assert found.certificate.holds


def test_dask_data_and_rows(frame):
    table = frame.drop(columns="amount")
    found = assess(GaussianNB(), dd.from_pandas(table, npartitions=3), "kind", test_size=0.4)
    rows = as_rows(table, y="kind", target="classes")
    same = assess(GaussianNB(), rows, None, test_size=0.4)
    assert found["accuracy"].estimate == pytest.approx(same["accuracy"].estimate, abs=1e-12)
    assert found.certificate.holds


def test_a_leak_in_a_file_is_named(frame, tmp_path):
    path = tmp_path / "rows.parquet"
    frame.drop(columns="amount").assign(later=(frame["kind"] == "yes") * 2.0).to_parquet(path)
    assert "later (100.0 %)" in " ".join(str(assess(GaussianNB(), path, "kind")).split())


def test_what_blocks_cannot_do_is_said(frame, tmp_path):
    path = tmp_path / "rows.parquet"
    frame.drop(columns="kind").to_parquet(path)
    with pytest.raises(DataError, match="an estimator of certifit's"):
        assess(TheirRidge(), path, "amount")
    with pytest.raises(DataError, match="method='holdout' with test_size"):
        assess(LinearRegression(), path, "amount", method="bootstrap")
    with pytest.raises(DataError, match="groups"):
        assess(LinearRegression(), path, "amount", groups=np.zeros(600))
