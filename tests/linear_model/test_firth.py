"""Firth's logistic regression: closed forms, published numbers, an independent optimiser, and the corners."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.datasets import load_breast_cancer

from certifit import DataError, LogisticRegression, NoSolutionError, audit
from tests.common.catalogue import three, two

# Heinze & Schemper (2002), Statistics in Medicine 21: 79 cases of endometrial cancer, as pairs of pulsatility index
# of the uterine artery (PI) and endometrium height (EH); the table is public with Agresti, Foundations of Linear and
# Generalized Linear Models (2015). Neovascularisation (NV) separates: all who have it are of high grade.
LOW_GRADE = """
13 1.64  16 2.26   8 3.14  34 2.68  20 1.28   5 2.31  17 1.80  10 1.68  26 1.56  17 2.31   8 2.01   7 1.89  20 3.15
10 1.23  18 1.27  16 1.76  18 2.00  28 1.50  11 1.33  19 2.37  10 1.82  10 3.13  18 1.31  14 1.92  21 1.64  11 2.01
17 1.88  25 1.93  16 2.11  19 1.29  15 1.72  33 0.75  24 1.92  29 2.02  15 2.29  12 2.33   3 2.90  20 1.70  23 1.41
12 2.25  22 1.54  42 1.97  15 1.75  13 2.16  14 2.57  19 1.37  12 3.61  13 2.04  10 2.17
"""
HIGH_GRADE = """
 8 2.64  29 0.88  12 1.27  20 1.37   7 0.97  48 1.84  12 1.11  19 1.61   2 1.18  21 1.19  15 1.06  12 1.69   6 1.84
 5 1.30  17 0.96   5 0.35  33 0.85
"""
HIGH_GRADE_NV = """
38 0.97  22 1.14   7 0.88  25 0.91  15 0.58  22 1.44  40 1.18   5 0.93   0 1.17  49 0.27  11 1.01  21 0.98  19 1.02
"""


def endometrial():
    parts = [np.array(text.split(), float).reshape(-1, 2) for text in (LOW_GRADE, HIGH_GRADE, HIGH_GRADE_NV)]
    sizes = [len(part) for part in parts]
    return np.column_stack([np.repeat([0, 0, 1], sizes), np.concatenate(parts)]), np.repeat([0, 1, 1], sizes)


def firth(**params):
    return LogisticRegression("firth", **{"tol": 1e-10, **params})


def checked(model, X, y, w=None):
    assert np.isfinite(model.coef_).all()
    return model.certificate_.holds and audit(model, X, y, w).holds


def penalised_loss(Z, y, w, theta):
    """The definition, written out, without the constant."""
    eta = Z @ theta
    information = (Z.T * (w * expit(eta) * expit(-eta))) @ Z
    return w @ np.logaddexp(0, np.where(y > 0, -eta, eta)) - 0.5 * np.linalg.slogdet(information)[1]


# --------------------------------------------------------------------------------------- known solutions
@pytest.mark.parametrize("counts", [(30, 10, 5, 25), (6, 4, 0, 5), (7, 0, 0, 7), (1, 0, 0, 1)], ids=str)
def test_a_two_by_two_table_gets_half_a_row_in_every_cell(counts):
    """Saturated: the leverages of a group's rows sum to 1: Σ (y - p) + ½ - p = 0, that is p = (k + ½) / (n + 1)."""
    x, y = np.repeat([0.0, 0.0, 1.0, 1.0], counts), np.repeat([0, 1, 0, 1], counts)
    a, b, c, d = np.add(counts, 0.5)
    model = firth().fit(x[:, None], y)
    np.testing.assert_allclose(model.intercept_, np.log(b / a), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(model.coef_, [[np.log(d / c) - np.log(b / a)]], rtol=1e-8)
    assert checked(model, x[:, None], y)


def test_one_intercept_alone():
    """A column of zeros cannot be fitted, but a constant column can: log odds of (k + ½) / (n - k + ½)."""
    y = np.repeat([0, 1], [9, 3])
    model = firth(fit_intercept=False).fit(np.ones((12, 1)), y)
    np.testing.assert_allclose(model.coef_, [[np.log(3.5 / 9.5)]], rtol=1e-9)
    np.testing.assert_allclose(model.standard_errors_, [1 / np.sqrt(12 * (3.5 / 13) * (9.5 / 13))], rtol=1e-8)


def test_the_endometrial_study():
    """Coefficients of R's logistf, as the tests of the Python package firthlogist record them; standard errors are
    the roots of the diagonal of I⁻¹ there, by NumPy."""
    X, y = endometrial()
    with pytest.raises(NoSolutionError):
        LogisticRegression(None).fit(X, y)
    model = firth().fit(X, y)
    np.testing.assert_allclose(model.intercept_, [3.77455951], atol=2e-7)
    np.testing.assert_allclose(model.coef_, [[2.92927330, -0.03475175, -2.60416387]], atol=2e-7)
    Z = np.column_stack([np.ones(len(X)), X])
    p = expit(Z @ [3.77455951, 2.92927330, -0.03475175, -2.60416387])
    information = (Z.T * (p * (1 - p))) @ Z
    np.testing.assert_allclose(model.standard_errors_, np.sqrt(np.diag(np.linalg.inv(information))), rtol=1e-5)
    assert checked(model, X, y)


@pytest.mark.parametrize("intercept", [True, False])
def test_agrees_with_scipy(intercept):
    X, y = two(60)
    w = np.random.default_rng(0).exponential(size=len(X))
    Z = np.column_stack([X, np.ones(len(X))]) if intercept else X
    found = minimize(lambda theta: penalised_loss(Z, y, w, theta), np.zeros(Z.shape[1]), tol=1e-12)
    model = firth(fit_intercept=intercept).fit(X, y, w)
    theta = np.append(model.coef_, model.intercept_)[: Z.shape[1]]
    np.testing.assert_allclose(theta, found.x, atol=1e-4)
    assert penalised_loss(Z, y, w, theta) <= found.fun + 1e-12
    constant = 0.5 * np.linalg.slogdet((Z.T * w) @ Z / 4)[1]
    np.testing.assert_allclose(model.objective(X, y, w).total, penalised_loss(Z, y, w, theta) + constant, rtol=1e-12)
    np.testing.assert_allclose(model.objective(X, y, w).total, model.certificate_.objective, rtol=1e-12)
    assert checked(model, X, y, w)


def test_the_other_class_has_the_opposite_coefficients():
    X, y = endometrial()
    model, other = firth().fit(X, y), firth().fit(X, 1 - y)
    np.testing.assert_allclose(other.coef_, -model.coef_, rtol=1e-8)
    np.testing.assert_allclose(other.intercept_, -model.intercept_, rtol=1e-8)


def test_weights_are_copies_of_rows():
    """Also in the penalty, which a copy of every row changes: twice the table is not the same fit."""
    X, y = endometrial()
    w = np.arange(len(y)) % 3
    weighted, copied = firth().fit(X, y, w), firth().fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(weighted.coef_, copied.coef_, rtol=1e-7)
    np.testing.assert_allclose(weighted.standard_errors_, copied.standard_errors_, rtol=1e-7)
    once, twice = firth().fit(X, y), firth().fit(X, y, np.full(len(y), 2.0))
    assert abs(twice.coef_[0, 0] - once.coef_[0, 0]) > 0.1


def test_less_bias_than_maximum_likelihood():
    """Firth's estimate is nearer to the truth on average, over 60 tables of 40 rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    truth = np.array([1.0, -1.0])
    error = []
    for _ in range(60):
        y = (rng.random(40) < expit(X @ truth)).astype(int)
        try:
            plain = LogisticRegression(None, covariance=None).fit(X, y)
        except NoSolutionError:
            continue
        error.append(np.abs([plain.coef_[0], firth(tol=1e-6).fit(X, y).coef_[0]]) - np.abs(truth))
    plain, reduced = np.mean(error, axis=(0, 2))
    assert plain > 0.1
    assert abs(reduced) < 0.5 * plain


# ------------------------------------------------------------------------------------------------ corners
def test_separable_classes_have_finite_coefficients():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    with pytest.raises(NoSolutionError, match="penalty='firth'"):
        LogisticRegression(None).fit(X, y)
    model = firth(tol=1e-6).fit(X, y)
    assert np.abs(model.coef_).max() < 20
    assert checked(model, X, y)


@pytest.mark.parametrize(("offset", "scale"), [(0.0, 1e-9), (0.0, 1e9), (2.0**20, 1.0), (1e8, 1.0)])
def test_units_and_offsets_do_not_matter(offset, scale):
    X, y = endometrial()
    plain = firth(tol=1e-6).fit(X, y)
    moved = firth(tol=1e-6).fit(offset + scale * X, y)
    np.testing.assert_allclose(scale * moved.coef_, plain.coef_, rtol=1e-5)
    np.testing.assert_allclose(moved.certificate_.objective, plain.certificate_.objective, rtol=1e-6)
    np.testing.assert_allclose(scale * moved.standard_errors_[1:], plain.standard_errors_[1:], rtol=1e-5)
    assert checked(moved, offset + scale * X, y)


def test_sparse_rows_and_single_precision():
    X, y = endometrial()
    dense = firth(tol=1e-8).fit(X.astype(np.float32).astype(float), y)
    for other in (sparse.csr_array(X.astype(np.float32)), X.astype(np.float32)):
        np.testing.assert_allclose(firth(tol=1e-8).fit(other, y).coef_, dense.coef_, rtol=1e-6)


def test_the_same_from_a_file(tmp_path):
    X, y = endometrial()
    table = pa.table({"NV": X[:, 0], "PI": X[:, 1], "EH": X[:, 2], "HG": y})
    parquet.write_table(table, tmp_path / "table.parquet", row_group_size=20)
    here, there = firth().fit(X, y), firth().fit(tmp_path / "table.parquet", "HG")
    np.testing.assert_array_equal(there.coef_, here.coef_)
    np.testing.assert_array_equal(there.covariance_, here.covariance_)
    assert there.coefficient_table().names == ("intercept", "NV", "PI", "EH")


def test_warm_start():
    X, y = endometrial()
    model = firth(tol=1e-8, warm_start=True).fit(X, y)
    model.fit(X, y)
    assert model.n_iter_[0] == 0
    model.coef_ = 1e3 * model.coef_  # a start from which there is no way back is left aside
    model.fit(X, y)
    assert checked(model, X, y)


@pytest.mark.parametrize("attribute", ["coef_", "intercept_"])
@pytest.mark.parametrize("change", [1.01, -1.0, 1e3])
def test_a_sabotaged_model_is_found_out(attribute, change):
    X, y = endometrial()
    model = firth(tol=1e-6).fit(X, y)
    assert audit(model, X, y).holds
    setattr(model, attribute, change * getattr(model, attribute))
    assert not audit(model, X, y).holds


def test_a_fit_cut_short_says_so():
    X, y = endometrial()
    with pytest.warns(UserWarning, match="modified scores"):
        model = firth(max_iter=2).fit(X, y)
    assert not audit(model, X, y).holds
    assert audit(model, X, y).kind == "stationary"
    with pytest.raises(DataError, match="certificate does not hold"):
        _ = model.standard_errors_


def test_the_penalty_is_named_in_the_summary_and_c_is_ignored():
    X, y = endometrial()
    model = firth(C=1e-3).fit(X, y)
    np.testing.assert_array_equal(model.coef_, firth().fit(X, y).coef_)
    assert "firth" in model.summary()
    assert not hasattr(model, "aic_")


def test_settings_that_do_not_go_together():
    with pytest.raises(DataError, match="'sandwich' with penalty='firth'; wanted 'classical'"):
        firth(covariance="sandwich").fit(*two())


def test_three_classes_and_collinear_columns_are_refused():
    with pytest.raises(DataError, match="3 classes with penalty='firth'; wanted two"):
        firth().fit(*three())
    X, y = two()
    for bad in (np.column_stack([X, X[:, 0]]), np.column_stack([X, np.ones(len(X))])):
        with pytest.raises(DataError, match="combinations of others"):
            firth().fit(bad, y)


def test_columns_in_any_units_are_fitted():
    """The determinant of nearly collinear columns loses digits, which must not stop the line search."""
    X, y = load_breast_cancer(return_X_y=True)
    raw = LogisticRegression(penalty="firth").fit(X, y)
    scaled = LogisticRegression(penalty="firth").fit((X - X.mean(axis=0)) / X.std(axis=0), y)
    assert raw.certificate_.holds
    np.testing.assert_allclose(raw.coef_ * X.std(axis=0), scaled.coef_, atol=1e-4)
