"""Columns far from 0: a free intercept absorbs any offset, so linear models must find the same coefficients as fast.

The expected values are those of the centred table (the problem is invariant) or of scikit-learn on it. Entries are
multiples of 2⁻²⁰ and offsets whole numbers, so that no digit is lost in moving the table.
"""

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import linear_model

from certifit import ElasticNet, GeneralizedLinearRegressor, Lasso, LogisticRegression, audit
from certifit.linear_model.linear_rows import row_shift, shift_rows
from certifit.linear_model.logistic.problem import LogisticRows, Penalised
from certifit.linear_model.logistic.solve import LogisticLimits
from certifit.rows import as_rows
from tests.common.catalogue import three, two

OFFSETS = [1, 10, 100, 10**4, 10**8]
FORMS = {"dense": np.asarray, "csr": sparse.csr_array}


def grid(X):
    """Centred and exact to move."""
    return np.round((X - X.mean(axis=0)) * 2**20) / 2**20


def assert_moves(model, X, y, offset, form):
    """Same coefficients and objective, no more than twice the updates, proved twice."""
    plain, steps = model.fit(X, y).coef_.copy(), np.max(model.n_iter_)
    objective = model.certificate_.objective
    moved = form(X + offset)
    model.fit(moved, y)
    np.testing.assert_allclose(model.coef_, plain, atol=5e-5)
    np.testing.assert_array_equal(model.coef_ == 0, plain == 0)
    np.testing.assert_allclose(model.certificate_.objective, objective, rtol=1e-8)
    assert np.max(model.n_iter_) <= 2 * steps
    assert model.certificate_.holds
    assert audit(model, moved, y).holds


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("params", [{"penalty": "l1"}, {"l1_ratio": 0.5}, {}], ids=str)
@pytest.mark.parametrize("data", [two, three])
def test_logistic(data, params, offset, form):
    X, y = data()
    assert_moves(LogisticRegression(C=0.1, tol=1e-10, **params), grid(X), y, offset, FORMS[form])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize(
    "model",
    [
        Lasso(0.3, tol=1e-10),
        ElasticNet(0.3, tol=1e-10),
        GeneralizedLinearRegressor("poisson", alpha=0.1, l1_ratio=1.0, tol=1e-10),
        GeneralizedLinearRegressor("binomial", alpha=0.05, l1_ratio=0.5, tol=1e-10),
    ],
    ids=["lasso", "elastic net", "poisson", "binomial"],
)
def test_generalised_linear(model, offset, form):
    X, y = two()
    assert_moves(model, grid(X), y.astype(float), offset, FORMS[form])


def test_the_table_that_stalled():
    """N(100, 1), just below the offset from which rows are shifted; scikit-learn on the centred table."""
    rng = np.random.default_rng(0)
    X = rng.normal(100, 1, size=(100, 2))
    y = (rng.random(100) < 1 / (1 + np.exp(X[:, 1] - X[:, 0] - 1))).astype(int)
    theirs = linear_model.LogisticRegression(solver="saga", l1_ratio=1.0, tol=1e-9, max_iter=20000).fit(X - 100, y)
    for form in FORMS.values():
        model = LogisticRegression("l1", tol=1e-9).fit(form(X), y)
        np.testing.assert_allclose(model.coef_, theirs.coef_, atol=1e-4)
        assert model.n_iter_ <= 10
        assert model.certificate_.holds


@pytest.mark.parametrize("offset", [30, 10**8])
def test_every_source(offset, tmp_path):
    X, y = two()
    X = grid(X) + offset
    table = pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])]).assign(y=y)
    table.to_parquet(tmp_path / "table.parquet", row_group_size=40)
    here = LogisticRegression("l1", C=0.1, tol=1e-9).fit(X, y)
    for there in (tmp_path / "table.parquet", dd.from_pandas(table, npartitions=3)):
        model = LogisticRegression("l1", C=0.1, tol=1e-9).fit(there, "y")
        np.testing.assert_allclose(model.coef_, here.coef_, atol=1e-7)
        assert model.certificate_.holds


@pytest.mark.parametrize("offset", [3, 50])
def test_single_precision(offset):
    """float32 keeps 2⁻¹⁵ beside 50."""
    X, y = two()
    X = np.round(grid(X) * 2**15) / 2**15
    plain = LogisticRegression("l1", C=0.1, tol=1e-9).fit(X, y)
    moved = LogisticRegression("l1", C=0.1, tol=1e-9).fit((X + offset).astype(np.float32), y)
    np.testing.assert_allclose(moved.coef_, plain.coef_, atol=1e-5)


@pytest.mark.parametrize("offset", [1, 50])
def test_the_hessian_is_measured_where_it_is_needed(offset):
    """Zeros are screened as in the centred table: classes out of balance do not make every column a candidate."""
    rng = np.random.default_rng(0)
    X = grid(rng.normal(size=(1000, 60)))
    y = (rng.random(1000) < 1 / (1 + np.exp(1.5 - X[:, 0]))).astype(int)
    widths = []
    for table in (X, X + offset):
        data = LogisticRows.of(as_rows(table, y, target="classes"), None, intercept=True)
        best = Penalised(50.0, 0.0, newton=True).minimise(data, np.zeros(data.shape), LogisticLimits(1e-6, 50))
        widths.append(len(best.params.rule.columns))
    assert widths[0] == widths[1] < 20


@pytest.mark.parametrize("offset", [1, 10, 50, 10**4])
def test_more_columns_than_the_preconditioner_factors(offset):
    rng = np.random.default_rng(0)
    X = grid(rng.normal(size=(100, 2100)))
    y = (rng.random(100) < 1 / (1 + np.exp(1 - X[:, 0]))).astype(int)
    plain = LogisticRegression(C=0.01, solver="lbfgs").fit(X, y)
    moved = LogisticRegression(C=0.01, solver="lbfgs").fit(X + offset, y)
    assert moved.n_iter_ <= 2 * plain.n_iter_
    assert moved.certificate_.holds
    np.testing.assert_allclose(moved.certificate_.objective, plain.certificate_.objective, rtol=2e-6)


def test_csr_rows_are_shifted_where_they_are_full():
    rng = np.random.default_rng(0)
    X = sparse.random_array((500, 6), density=0.2, rng=rng, format="csr").toarray()
    X[:, 2], X[:, 4] = 10**6 + rng.normal(size=500), 5.0
    X[7, 2] = X[7, 4] = 0.0  # far columns, their zeros too
    S = sparse.csr_array(X)
    shift = row_shift(S[8:], np.ones(492))
    np.testing.assert_allclose(shift, [0, 0, X[8:, 2].mean(), 0, 5, 0])
    Z = shift_rows(S, shift)
    assert sparse.issparse(Z)
    assert Z.nnz <= S.nnz + 2
    np.testing.assert_array_equal(Z.toarray(), X - shift)
    assert row_shift(S[:, [0, 1, 3]], np.ones(500)) is None
    assert row_shift(S, np.zeros(500)) is None
