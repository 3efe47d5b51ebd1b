"""Columns that are combinations of others: the shortest coefficients, what is known of them, and who notices."""

import numpy as np
import pytest
from scipy import sparse

from certifit import GeneralizedLinearRegressor, LinearRegression, PoissonRegressor, Ridge, audit
from certifit.exceptions import DataError
from certifit.linear_model.glm.glm import CollinearWarning

pytestmark = pytest.mark.filterwarnings("ignore::certifit.linear_model.glm.glm.CollinearWarning")
RNG = np.random.default_rng(14)
N = 60
BASE = RNG.normal(size=(N, 4)) + np.array([0.0, 3.0, -50.0, 1e3])
WEIGHTS = RNG.integers(0, 3, size=N).astype(float)
TABLES = {
    "sum": np.column_stack([BASE, BASE[:, 0] + BASE[:, 2]]),
    "copies": np.column_stack([BASE[:, 1], BASE, BASE[:, 1]]),
    "constant": np.column_stack([BASE, np.full(N, 7.0)]),
    "units": np.column_stack([BASE[:, 0], 1e5 * BASE[:, 1], 1e-4 * BASE[:, 0], BASE[:, 1] - BASE[:, 0]]),
    "wide": RNG.normal(size=(12, 30)),
    "zero": np.column_stack([BASE, np.zeros(N)]),
}


def targets(X):
    return RNG.normal(size=len(X)) + 3


def shortest(X, y, w, intercept):
    """By the pseudo-inverse of the centred columns, of unit length, and their projection onto all rows' span."""
    root = np.sqrt(w)
    Z = X - np.average(X, axis=0, weights=w) if intercept else X
    t = y - np.average(y, weights=w) if intercept else y
    unit = np.maximum(np.linalg.norm(Z * root[:, None], axis=0), 1e-300)
    U, s, V = np.linalg.svd(Z * root[:, None] / unit, full_matrices=False)
    rank = int((s > 1e-10 * s[0]).sum())
    beta = (V[:rank].T @ ((U[:, :rank].T @ (root * t)) / s[:rank])) / unit
    rows = V[:rank] * unit  # what is orthogonal to all of these changes no score
    return np.linalg.pinv(rows) @ (rows @ beta), rank


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_shortest_coefficients_are_found_and_proved(table, intercept, weighted):
    X = TABLES[table]
    y, w = targets(X), WEIGHTS[: len(X)] if weighted else np.ones(len(X))
    expected, rank = shortest(X, y, w, intercept)
    model = LinearRegression(fit_intercept=intercept).fit(X, y, w)
    unit = np.abs(X).max(axis=0)
    np.testing.assert_allclose(model.coef_ * unit, expected * unit, atol=1e-7 * np.linalg.norm(expected * unit))
    assert np.linalg.norm(model.coef_) <= np.linalg.norm(expected) * (1 + 1e-9)
    assert model.rank_ == rank
    assert model.certificate_.holds
    assert audit(model, X, y, w).holds
    scores = model.predict(X)
    dropped = LinearRegression(fit_intercept=intercept, collinear="drop").fit(X, y, w)
    np.testing.assert_allclose(scores[w > 0], dropped.predict(X)[w > 0], rtol=1e-7, atol=1e-7)


def test_sparse_rows_and_several_targets():
    X = TABLES["sum"]
    Y = np.column_stack([targets(X), targets(X)])
    both = LinearRegression().fit(X, Y)
    other = LinearRegression().fit(sparse.csr_matrix(X), Y)
    for k in range(2):
        expected = shortest(X, Y[:, k], np.ones(N), True)[0]
        np.testing.assert_allclose(both.coef_[k], expected, atol=1e-8)
        np.testing.assert_allclose(other.coef_[k], expected, atol=1e-8)
    assert audit(both, X, Y).holds


@pytest.mark.parametrize(
    "model", [LinearRegression(), Ridge(alpha=0.0), PoissonRegressor(alpha=0.0), LinearRegression(covariance=None)]
)
@pytest.mark.parametrize("size", [1e-3, 1e-6])
def test_coefficients_that_moved_where_no_score_changes_are_noticed(model, size):
    X = TABLES["sum"]
    y = np.floor(np.abs(targets(X)))
    model.fit(X, y)
    assert audit(model, X, y).holds
    along = np.array([1.0, 0.0, 1.0, 0.0, -1.0])
    assert abs(model.coef_ @ along) <= 1e-12 * np.linalg.norm(model.coef_)
    model.coef_ = model.coef_ + size * np.linalg.norm(model.coef_) * along
    found = audit(model, X, y)
    assert not found.holds
    assert not next(check for check in found.checks if "changes no score" in check.name).passed


def test_errors_of_the_coefficients_reach_the_exact_ones():
    """x and 2x share their slope as 1 to 2, and the error that is proved has to cover what was computed."""
    x = np.arange(-8.0, 9.0)
    y = 5.0 * x + 1
    y[8] += 17.0  # at x = 0: the mean rises by 1, the slope stays
    model = LinearRegression().fit(np.column_stack([x, 2 * x]), y)
    errors = np.abs(np.append(model.coef_ - [1.0, 2.0], model.intercept_ - 2.0))
    (proved,) = model.certificate_.parameter_error
    assert (errors <= proved).all()
    assert max(proved) < 1e-10


@pytest.mark.parametrize(
    ("table", "open_"),
    [("sum", [1, 3, 5]), ("copies", [1, 3, 6]), ("constant", [0, 5]), ("zero", [5])],
)
def test_standard_errors_are_those_of_coefficients_that_are_determined(table, open_):
    X = TABLES[table]
    y = targets(X)
    model = LinearRegression().fit(X, y)
    dropped = LinearRegression(collinear="drop").fit(X, y)
    errors = model.standard_errors_
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(errors)), open_)
    known = ~np.isnan(errors)
    np.testing.assert_allclose(errors[known], dropped.standard_errors_[known], rtol=1e-6)
    for covariance in (np.nan_to_num(model.covariance_, nan=1.0), np.full_like(model.covariance_, np.nan)):
        model.covariance_ = covariance
        assert not audit(model, X, y).holds


def test_the_intercept_is_open_where_a_column_differs_by_a_constant():
    X = np.column_stack([BASE, BASE[:, 0] + 3])
    errors = LinearRegression().fit(X, targets(X)).standard_errors_
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(errors)), [0, 1, 5])


def test_the_setting_and_the_coefficients_have_to_agree():
    X = TABLES["sum"]
    y = targets(X)
    model = LinearRegression().fit(X, y)
    assert not audit(model.set_params(collinear="drop"), X, y).holds
    with pytest.raises(DataError, match="refuse"):
        audit(model.set_params(collinear="refuse"), X, y)
    dropped = LinearRegression(collinear="drop").fit(X, y)
    assert dropped.coef_[4] == 0
    assert audit(dropped, X, y).holds
    assert not audit(dropped.set_params(collinear="shortest"), X, y).holds


def test_columns_are_named_in_the_warning_and_in_the_summary():
    X = TABLES["sum"]
    with pytest.warns(CollinearWarning, match=r"column 4: combinations .* the shortest are taken"):
        model = LinearRegression().fit(X, targets(X))
    summary = str(model.summary())
    assert "before them: x4." in summary
    assert summary.count("open") == 4  # three coefficients, and what the word means
    assert max(map(len, summary.splitlines())) <= 80


def test_a_warm_start_begins_where_the_last_fit_ended():
    X = TABLES["sum"]
    y = np.floor(np.abs(targets(X)))
    model = GeneralizedLinearRegressor("poisson", collinear="shortest", warm_start=True).fit(X, y)
    first, coef = model.n_iter_, model.coef_
    model.fit(X, y)
    assert model.n_iter_ < first
    np.testing.assert_allclose(model.coef_, coef, atol=1e-9)


@pytest.mark.parametrize("table", ["wide", "sum"])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_a_vanishing_ridge_penalty_gives_the_shortest_coefficients(table, make):
    X = TABLES[table]
    y = X @ RNG.normal(size=X.shape[1]) + 10
    model = Ridge(alpha=1e-16, tol=1e-12).fit(make(X), y)
    np.testing.assert_allclose(model.coef_, shortest(X, y, np.ones(len(X)), True)[0], rtol=1e-7, atol=1e-9)
    assert model.certificate_.holds
    assert audit(model, X, y).holds
