"""Logistic and softmax regression: closed forms, independent optimisers, and the corners. Firth's: test_firth.py."""

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from catalogue import three, two
from scipy import sparse, stats
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn import linear_model
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.preprocessing import StandardScaler

from certifit import CertificateWarning, DataError, LogisticRegression, NoSolutionError, audit

SOLVERS = ["auto", "newton-cholesky", "lbfgs"]
TABLES = {
    "cancer": load_breast_cancer(return_X_y=True),
    "iris": load_iris(return_X_y=True),
    "wine": load_wine(return_X_y=True),
}
TABLES = {name: (StandardScaler().fit_transform(X), y) for name, (X, y) in TABLES.items()}


def exact(**params):
    return LogisticRegression(**{"tol": 1e-12, **params})


def certified(model, X, y, w=None):
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.intercept_).all()
    return model.certificate_.holds and audit(model, X, y, w).holds


def best_by_scipy(X, y, w, C, intercept):
    """Minimise the written-out objective with SciPy's BFGS, all classes' scores free."""
    n, d, k = len(X), X.shape[1], y.max() + 1

    def value(flat):
        theta = flat.reshape(k, d + 1) if intercept else np.column_stack([flat.reshape(k, d), np.zeros(k)])
        eta = X @ theta[:, :d].T + theta[:, d]
        R = w[:, None] * (softmax(eta, axis=1) - np.eye(k)[y])
        gradient = np.column_stack([R.T @ X + theta[:, :d] / C, R.sum(axis=0)])
        total = -(w * log_softmax(eta, axis=1)[np.arange(n), y]).sum() + (theta[:, :d] ** 2).sum() / (2 * C)
        return total, (gradient if intercept else gradient[:, :d]).ravel()

    start = np.zeros(k * (d + intercept))
    return minimize(value, start, jac=True, method="BFGS", options={"gtol": 1e-9, "maxiter": 5000})


# --------------------------------------------------------------------------------------- known solutions
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_two_by_two_table_has_a_closed_form(solver):
    """Maximum likelihood with one 0/1 column: intercept = log odds at 0, coefficient = log odds ratio."""
    x = np.repeat([0.0, 0.0, 1.0, 1.0], [30, 10, 5, 25])
    y = np.repeat([0, 1, 0, 1], [30, 10, 5, 25])
    model = exact(penalty=None, solver=solver).fit(x[:, None], y)
    np.testing.assert_allclose(model.intercept_, np.log(10 / 30), rtol=1e-5)
    np.testing.assert_allclose(model.coef_, [[np.log(25 / 5) - np.log(10 / 30)]], rtol=1e-5)
    assert certified(model, x[:, None], y)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_table_of_three_classes_has_a_closed_form(solver):
    """Saturated softmax: the fitted probabilities are the relative frequencies, and the loss their entropy."""
    counts = np.array([[20, 5, 15], [8, 30, 2]])
    x = np.repeat([0.0, 0.0, 0.0, 1.0, 1.0, 1.0], counts.ravel())
    y = np.repeat([0, 1, 2, 0, 1, 2], counts.ravel())
    model = exact(penalty=None, solver=solver).fit(x[:, None], y)
    share = counts / counts.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba([[0.0], [1.0]]), share, rtol=1e-5)
    np.testing.assert_allclose(model.certificate_.objective, -(counts * np.log(share)).sum(), rtol=1e-11)
    assert certified(model, x[:, None], y)


@pytest.mark.parametrize("solver", SOLVERS)
def test_columns_that_say_nothing_leave_the_class_shares(solver):
    y = np.repeat([0, 1, 2], [50, 30, 20])
    for X in (np.zeros((100, 2)), np.full((100, 2), 7.0), np.full((100, 2), 1e8)):
        for penalty in ("l2", None):
            model = exact(penalty=penalty, solver=solver).fit(X, y)
            np.testing.assert_allclose(model.predict_proba(X[:1]), [[0.5, 0.3, 0.2]], rtol=1e-6)
            assert certified(model, X, y)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("params", [{}, {"C": 0.01}, {"C": 100.0}, {"fit_intercept": False}], ids=str)
@pytest.mark.parametrize("name", TABLES)
def test_agrees_with_scikit_learn(name, params, solver):
    X, y = TABLES[name]
    theirs = linear_model.LogisticRegression(solver="newton-cholesky", tol=1e-12, max_iter=1000, **params).fit(X, y)
    model = exact(solver=solver, **params).fit(X, y)
    np.testing.assert_allclose(model.coef_, theirs.coef_, atol=1e-4 * np.abs(theirs.coef_).max())
    np.testing.assert_allclose(model.predict_proba(X), theirs.predict_proba(X), atol=1e-5)
    np.testing.assert_array_equal(model.predict(X), theirs.predict(X))
    np.testing.assert_array_equal(model.classes_, theirs.classes_)
    assert certified(model, X, y)


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 3.0}, {0: 0.5, 1: 2.0, 2: 7.0}], ids=str)
def test_weights_agree_with_scikit_learn(class_weight):
    X, y = TABLES["wine"]
    w = np.random.default_rng(0).exponential(size=len(X))
    theirs = linear_model.LogisticRegression(
        solver="newton-cholesky", tol=1e-12, max_iter=1000, class_weight=class_weight
    ).fit(X, y, w)
    model = exact(class_weight=class_weight).fit(X, y, w)
    np.testing.assert_allclose(model.coef_, theirs.coef_, atol=1e-5)
    assert certified(model, X, y, w)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("data", [two, three])
def test_agrees_with_scipy(data, intercept, solver):
    X, y = data()
    w = np.random.default_rng(1).exponential(size=len(X))
    C = 0.5 if y.max() > 1 else 1.0  # SciPy's two scores share a two-class penalty: |β/2|² twice is |β|²/2
    found = best_by_scipy(X, y, w, C, intercept)
    model = exact(solver=solver, C=C if y.max() > 1 else 2 * C, fit_intercept=intercept).fit(X, y, w)
    if y.max() == 1:
        model_value = model.objective(X, y, w).data + (model.coef_**2).sum() / (4 * C)
    else:
        model_value = model.objective(X, y, w).total
    np.testing.assert_allclose(model_value, found.fun, rtol=1e-10)
    d = X.shape[1]
    theta = found.x.reshape(-1, d + intercept)[:, :d]
    expected = theta if y.max() > 1 else theta[1:] - theta[:1]
    np.testing.assert_allclose(model.coef_, expected, atol=2e-5)


def test_maximum_likelihood_solves_the_score_equations():
    """Σ w (p - y) (x, 1) = 0: fitted probabilities have the right total against every column."""
    X, y = three()
    w = np.random.default_rng(0).exponential(size=len(X))
    model = exact(penalty=None).fit(X, y, w)
    R = w[:, None] * (model.predict_proba(X) - np.eye(3)[y])
    np.testing.assert_allclose(R.T @ np.column_stack([X, np.ones(len(X))]), 0, atol=1e-4)
    assert certified(model, X, y, w)


def test_no_penalty_is_infinite_c():
    X, y = two()
    a, b = exact(penalty=None).fit(X, y), exact(C=np.inf).fit(X, y)
    np.testing.assert_array_equal(a.coef_, b.coef_)
    almost = exact(C=1e10).fit(X, y)
    np.testing.assert_allclose(almost.coef_, a.coef_, rtol=1e-4)


def test_many_parameters_take_the_other_road():
    """Digits, 10 x 65 parameters and more than Newton's share with the columns doubled."""
    X, y = load_digits(return_X_y=True)
    X = np.column_stack([X, X**2 / 16])[:900] / 16
    y = y[:900]
    model = LogisticRegression(tol=1e-9).fit(X, y)
    newton = LogisticRegression(tol=1e-9, solver="newton-cholesky").fit(X, y)
    assert model.coef_.size > 800
    np.testing.assert_allclose(model.certificate_.objective, newton.certificate_.objective, rtol=2e-9)
    assert certified(model, X, y)


def test_long_tables():
    """Newton from a subsample's solution, several blocks."""
    rng = np.random.default_rng(0)
    X = rng.normal(loc=[0.0, 5.0, 0.0], size=(2**18 + 5, 3))
    y = (rng.random(len(X)) < 1 / (1 + np.exp(-X @ [1.0, 0.2, -0.5]))).astype(int)
    theirs = linear_model.LogisticRegression(solver="newton-cholesky", tol=1e-10).fit(X, y)
    model = LogisticRegression(tol=1e-10).fit(X, y)
    np.testing.assert_allclose(model.coef_, theirs.coef_, rtol=1e-4)
    assert certified(model, X, y)


def test_a_separable_sample_of_a_long_table_is_not_a_separable_table():
    rng = np.random.default_rng(0)
    x = rng.normal(size=2**18)
    y = (rng.random(len(x)) < 1 / (1 + np.exp(-x))).astype(int)
    y[::8] = x[::8] > 0  # every row that a thinning by 8 keeps is on its side
    model = LogisticRegression(penalty=None).fit(x[:, None], y)
    assert certified(model, x[:, None], y)


# --------------------------------------------------------------------------------------------- corners
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("data", [two, three])
@pytest.mark.parametrize(("offset", "spread"), [(1e8, 1.0), (1e8, 1e-2), (-1e4, 1e-3)])
def test_an_offset_costs_no_digits(data, offset, spread, solver):
    """A free intercept absorbs any offset; the penalty is put on the same footing as the spread."""
    X, y = data()
    C = 1 / spread**2
    plain = exact(solver=solver, tol=1e-9).fit(X, y)
    moved = exact(solver=solver, tol=1e-9, C=C).fit(offset + spread * X, y)
    lost = 1e-16 * abs(offset) / spread  # what the moved table itself has forgotten of X
    np.testing.assert_allclose(moved.certificate_.objective, plain.certificate_.objective, rtol=1e-8 + 10 * lost)
    np.testing.assert_allclose(spread * moved.coef_, plain.coef_, atol=1e-3)
    assert certified(moved, offset + spread * X, y)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("data", [two, three])
@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_units_do_not_matter(data, scale, solver):
    X, y = data()
    plain = exact(penalty=None, solver=solver, tol=1e-8).fit(X, y)
    scaled = exact(penalty=None, solver=solver, tol=1e-8).fit(scale * X, y)
    np.testing.assert_allclose(scaled.certificate_.objective, plain.certificate_.objective, rtol=1e-7)
    assert certified(scaled, scale * X, y)
    penalised = LogisticRegression(solver=solver).fit(scale * X, y)
    assert certified(penalised, scale * X, y)


@pytest.mark.parametrize("data", [two, three])
@pytest.mark.parametrize("C", [1e-300, 1e-10, 1e10, 1e15])
def test_extreme_penalties(data, C):
    X, y = data()
    model = LogisticRegression(C=C).fit(X, y)
    assert certified(model, X, y)
    if C < 1:
        np.testing.assert_allclose(model.coef_, 0, atol=1e-6)
        np.testing.assert_allclose(model.predict_proba(X[:1])[0], np.bincount(y) / len(y), rtol=1e-5)
    else:
        free = LogisticRegression(penalty=None).fit(X, y)
        np.testing.assert_allclose(model.certificate_.objective, free.certificate_.objective, rtol=1e-5)


@pytest.mark.parametrize("data", [two, three])
@pytest.mark.parametrize("scale", [1e150, 1e-150, 1e-300, 5e-324 / 1e-3])
def test_values_at_the_ends_of_the_range(data, scale):
    """Fitted and proved, or said to be neither: no NaN, no false proof."""
    X, y = data()
    for penalty in ("l2", None):
        try:
            model = LogisticRegression(penalty=penalty, max_iter=100).fit(scale * X, y)
        except (CertificateWarning, FloatingPointError, DataError):
            continue
        assert certified(model, scale * X, y)
        if penalty is None:
            best = LogisticRegression(penalty=None).fit(X, y).certificate_.objective
            np.testing.assert_allclose(model.certificate_.objective, best, rtol=1e-5)


@pytest.mark.parametrize("data", [two, three])
def test_collinear_columns(data):
    X, y = data()
    twice = np.column_stack([X, X, np.ones(len(X)), np.zeros(len(X))])
    for penalty in ("l2", None):
        C = 2.0 if penalty == "l2" else 1.0
        single = exact(penalty=penalty, C=C).fit(X, y)  # sharing a coefficient halves its penalty
        double = exact(penalty=penalty, C=1.0).fit(twice, y)
        np.testing.assert_allclose(double.predict_proba(twice), single.predict_proba(X), atol=1e-5)
        assert certified(double, twice, y)


def test_nearly_collinear_columns_are_not_proved_falsely():
    """Columns that differ by 1e-9: the maximum lies far away along the difference, and rounding hides it."""
    X, y = two()
    rng = np.random.default_rng(0)
    close = np.column_stack([X, X + 1e-9 * rng.normal(size=X.shape)])
    with pytest.warns(CertificateWarning):
        LogisticRegression(penalty=None).fit(close, y)
    assert certified(LogisticRegression().fit(close, y), close, y)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("classes", [2, 3])
def test_fewer_rows_than_columns(classes, solver):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 50)), np.arange(20) % classes
    theirs = linear_model.LogisticRegression(tol=1e-10, max_iter=1000).fit(X, y)
    model = exact(solver=solver).fit(X, y)
    np.testing.assert_allclose(model.coef_, theirs.coef_, atol=1e-5)
    assert certified(model, X, y)
    with pytest.raises(NoSolutionError):
        LogisticRegression(penalty=None, solver=solver).fit(X, y)


def test_duplicate_rows_are_weights():
    X, y = three()
    a = exact(C=3.0).fit(X, y)
    b = exact(C=1.0).fit(np.tile(X, (3, 1)), np.tile(y, 3))
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-6)


@pytest.mark.parametrize("data", [two, three])
def test_an_outlier_far_away(data):
    X, y = data()
    X[0] = 1e9
    assert certified(LogisticRegression().fit(X, y), X, y)


def test_separable_with_a_penalty():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    for y in ((X[:, 0] > 0).astype(int), np.digitize(X[:, 0], [-0.5, 0.5])):
        for C in (1.0, 1e10):
            model = LogisticRegression(C=C).fit(X, y)
            assert model.score(X, y) > 0.9
            assert certified(model, X, y)


@pytest.mark.parametrize("weight", [1e-12, 1e12])
def test_classes_of_very_unequal_weight(weight):
    X, y = two()
    model = LogisticRegression(class_weight={0: weight}).fit(X, y)
    assert certified(model, X, y)


# -------------------------------------------------------------------------------------- L1 and elastic net
def saga(**params):
    return linear_model.LogisticRegression(solver="saga", tol=1e-9, max_iter=20000, **params)


@pytest.mark.parametrize("ratio", [1.0, 0.5, 0.01])
@pytest.mark.parametrize("C", [0.05, 1.0])
@pytest.mark.parametrize("name", TABLES)
def test_elastic_nets_agree_with_scikit_learn(name, C, ratio):
    X, y = TABLES[name]
    X = X[:, :6]
    theirs = saga(C=C, l1_ratio=ratio).fit(X, y)
    model = LogisticRegression(C=C, l1_ratio=ratio, tol=1e-10).fit(X, y)
    assert certified(model, X, y)
    total = model.certificate_.objective
    np.testing.assert_allclose(model.objective(X, y).total, total, rtol=1e-10)
    model.coef_, model.intercept_ = theirs.coef_, theirs.intercept_
    np.testing.assert_allclose(model.objective(X, y).total, total, rtol=1e-6)
    assert model.objective(X, y).total >= total * (1 - 1e-10)
    assert audit(theirs, X, y).holds


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("data", [two, three])
def test_the_lasso_solves_the_subgradient_equations(data, intercept):
    """Σ w (p - y) x = -sign(β)/C where β is not 0, at most 1/C in size where it is; zeros are exact."""
    X, y = data()
    w = np.random.default_rng(2).exponential(size=len(X))
    model = LogisticRegression("l1", C=0.05, tol=1e-12, fit_intercept=intercept).fit(X, y, w)
    proba = model.predict_proba(X)[:, 1:] if data is two else model.predict_proba(X)
    Y = np.eye(len(model.classes_))[y][:, -proba.shape[1] :]
    g = (w[:, None] * (proba - Y)).T @ X
    zero = model.coef_ == 0
    assert 0 < zero.sum() < zero.size
    np.testing.assert_allclose(g[~zero], -20 * np.sign(model.coef_[~zero]), rtol=1e-3)
    assert np.abs(g[zero]).max() <= 20 * (1 + 1e-6)
    assert certified(model, X, y, w)


def test_the_smallest_penalty_that_leaves_nothing():
    """All coefficients are 0 exactly where 1/C >= max |Σ w (ȳ - y) x|."""
    X, y = two()
    largest = np.abs((y - y.mean()) @ X).max()
    none = LogisticRegression("l1", C=1 / (1.001 * largest)).fit(X, y)
    np.testing.assert_array_equal(none.coef_, 0)
    np.testing.assert_allclose(none.intercept_, np.log(y.mean() / (1 - y.mean())), atol=1e-6)
    some = LogisticRegression("l1", C=1 / (0.9 * largest), tol=1e-9).fit(X, y)
    assert (some.coef_ != 0).sum() == 1
    assert certified(none, X, y)
    assert certified(some, X, y)


def test_penalties_by_other_names():
    X, y = three()
    for a, b in (
        ({"penalty": "l1"}, {"l1_ratio": 1.0}),
        ({"penalty": "elasticnet", "l1_ratio": 0.3}, {"l1_ratio": 0.3}),
        ({"penalty": "elasticnet"}, {}),
        ({"penalty": "l1", "C": np.inf}, {"penalty": None}),
    ):
        np.testing.assert_array_equal(
            LogisticRegression(**a).fit(X, y).coef_, LogisticRegression(**b).fit(X, y).coef_
        )


@pytest.mark.parametrize("classes", [2, 3])
def test_the_lasso_with_more_columns_than_rows(classes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 120))
    y = np.digitize(X[:, 0] + 0.5 * rng.normal(size=60), [0.0, 0.8][: classes - 1])
    model = LogisticRegression("l1", C=0.3).fit(X, y)
    assert 0 < (model.coef_ != 0).any(axis=0).sum() < 30
    assert certified(model, X, y)
    assert certified(model.set_params(l1_ratio=0.5, penalty="l2").fit(sparse.csr_array(X), y), sparse.csr_array(X), y)


def test_the_lasso_forms_the_hessian():
    with pytest.raises(DataError, match=r"4002 parameters with an L1 penalty; wanted at most 4000.*penalty='l2'"):
        LogisticRegression("l1").fit(np.zeros((4, 4001)), [0, 1, 0, 1])


@pytest.mark.parametrize("params", [{"l1_ratio": 1.0}, {"l1_ratio": 0.4}], ids=str)
@pytest.mark.parametrize("data", [two, three])
def test_an_elastic_net_that_is_not_optimal_is_found_out(data, params):
    X, y = data()
    model = LogisticRegression(**params).fit(X, y)
    assert audit(model, X, y).holds
    for change in (lambda b: 1.01 * b, lambda b: -b, lambda b: b + 1e-2, np.zeros_like):
        other = LogisticRegression(**params).fit(X, y)
        other.coef_ = change(model.coef_)
        found = audit(other, X, y)
        assert not found.holds
        assert found.bound <= model.certificate_.objective * (1 + 1e-12)


@pytest.mark.parametrize("classes", [2, 3])
def test_another_librarys_lasso_is_audited(classes):
    X, y = two() if classes == 2 else three()
    rough = linear_model.LogisticRegression(solver="saga", l1_ratio=1.0, max_iter=2, tol=1e-9)
    with pytest.warns(UserWarning, match="max_iter"):
        rough.fit(X, y)
    assert not audit(rough, X, y).holds
    assert audit(saga(l1_ratio=1.0).fit(X, y), X, y).holds
    if classes == 2:
        liblinear = linear_model.LogisticRegression(solver="liblinear", l1_ratio=1.0, fit_intercept=False, tol=1e-8)
        assert audit(liblinear.fit(X, y), X, y).holds


# --------------------------------------------------------------------------------------------- inference
def contrasts(model):
    """Standard errors of each class's (intercept, coefficients) minus those of class 0, (k - 1, d1)."""
    k = len(model.classes_)
    C = model.covariance_.reshape(k, -1, k, len(model.covariance_) // k)
    return np.sqrt([np.diag(C[c, :, c] + C[0, :, 0] - C[c, :, 0] - C[0, :, c]) for c in range(1, k)])


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize(("kind", "theirs"), [("classical", "nonrobust"), ("sandwich", "HC0")])
def test_standard_errors_agree_with_statsmodels(kind, theirs, offset):
    X, y = two()
    other = sm.Logit(y, sm.add_constant(X)).fit(disp=0, tol=1e-14, cov_type=theirs)
    model = LogisticRegression(None, covariance=kind).fit(X + offset, y)
    rest = slice(1 if offset else 0, None)  # the intercept is another one at an offset
    np.testing.assert_allclose(model.standard_errors_[rest], other.bse[rest], rtol=1e-6)
    np.testing.assert_allclose(model.p_values_[rest], other.pvalues[rest], rtol=1e-4)
    np.testing.assert_allclose(model.confidence_intervals(0.9)[rest], other.conf_int(0.1)[rest], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(model.loglikelihood_, other.llf, rtol=1e-10)
    np.testing.assert_allclose([model.aic_, model.bic_], [other.aic, other.bic], rtol=1e-10)
    assert model.deviance_ == -2 * model.loglikelihood_


@pytest.mark.parametrize(("kind", "theirs"), [("classical", "nonrobust"), ("sandwich", "HC0")])
@pytest.mark.parametrize("solver", SOLVERS)
def test_softmax_standard_errors_agree_with_statsmodels(solver, kind, theirs):
    X, y = three()
    other = sm.MNLogit(y, sm.add_constant(X)).fit(disp=0, tol=1e-14, cov_type=theirs)
    model = LogisticRegression(None, covariance=kind, solver=solver, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(model.coef_.sum(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(contrasts(model), np.asarray(other.bse).reshape(5, 2).T, rtol=1e-4)
    np.testing.assert_allclose([model.aic_, model.bic_], [other.aic, other.bic], rtol=1e-9)
    table = model.coefficient_table()
    assert table.names[0] == "0: intercept"
    assert len(table.names) == 15
    np.testing.assert_allclose(table.estimate[1:5], model.coef_[0])
    np.testing.assert_allclose(model.covariance_.reshape(3, 5, 3, 5).sum(axis=0), 0, atol=1e-10)  # they sum to 0


def test_standard_errors_of_a_two_by_two_table():
    """Of the log odds ratio: the root of the sum of the reciprocal counts (delta method); rows may be weights."""
    counts = np.array([30, 10, 5, 25])
    model = exact(penalty=None).fit([[0.0], [0.0], [1.0], [1.0]], [0, 1, 0, 1], counts)
    expected = np.sqrt([1 / 30 + 1 / 10, (1 / counts).sum()])
    np.testing.assert_allclose(model.standard_errors_, expected, rtol=2e-6)
    z = np.append(model.intercept_, model.coef_) / expected
    np.testing.assert_allclose(model.p_values_, 2 * stats.norm.sf(np.abs(z)), rtol=1e-5)
    free = exact(penalty=None, fit_intercept=False).fit([[1.0], [1.0]], [0, 1], [5, 25])
    np.testing.assert_allclose(free.standard_errors_, [np.sqrt(1 / 5 + 1 / 25)], rtol=2e-6)
    for word in ("intercept", "x0", "std err", "log-likelihood", "AIC", "optimal", "classical"):
        assert word in model.summary()


@pytest.mark.parametrize("kind", ["classical", "sandwich"])
@pytest.mark.parametrize("data", [two, three])
def test_standard_errors_from_a_file_and_from_dask(data, kind, tmp_path):
    X, y = data()
    table = pd.DataFrame(X, columns=list("abcd")).assign(y=y)
    table.to_parquet(tmp_path / "table.parquet", row_group_size=40)
    here = LogisticRegression(None, covariance=kind).fit(X, y)
    frame = dd.from_pandas(table, npartitions=3)
    for there in (tmp_path / "table.parquet", frame):
        model = LogisticRegression(None, covariance=kind).fit(there, "y")
        np.testing.assert_allclose(model.covariance_, here.covariance_, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({}, "penalised"),
        ({"penalty": "l1"}, "penalised"),
        ({"penalty": None, "covariance": None}, "none were asked for"),
        ({"penalty": None, "class_weight": "balanced"}, "class weights"),
    ],
    ids=str,
)
def test_standard_errors_are_refused_with_the_reason(params, reason):
    model = LogisticRegression(**params).fit(*two())
    with pytest.raises(DataError, match=reason):
        _ = model.standard_errors_
    assert reason in model.summary()
    assert hasattr(model, "aic_") == (params.get("penalty", "l2") is None)


def test_no_standard_errors_for_collinear_columns_or_unproved_fits():
    X, y = two()
    model = LogisticRegression(None).fit(np.column_stack([X, X[:, 0]]), y)
    with pytest.raises(DataError, match="combinations of others"):
        _ = model.standard_errors_
    np.testing.assert_allclose(model.aic_, LogisticRegression(None).fit(X, y).aic_, rtol=1e-8)
    with pytest.warns(CertificateWarning):
        short = LogisticRegression(None, max_iter=1).fit(X, y)
    with pytest.raises(DataError, match="certificate does not hold"):
        short.coefficient_table()


# -------------------------------------------------------------------------------------------- separation
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("complete", [True, False])
def test_another_librarys_fit_to_separable_classes_is_impossible(classes, complete):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = np.digitize(X[:, 0], [0.0, 0.7][: classes - 1])
    if not complete:  # rows on the border, of either class
        X, y = np.vstack([X, [[0.0, 1.0], [0.0, 1.0]]]), np.append(y, [0, 1])
    theirs = linear_model.LogisticRegression(C=np.inf, max_iter=200, tol=1e-6).fit(X, y)
    found = audit(theirs, X, y)
    assert found.kind == "impossible"
    assert found.holds
    v = np.array(found.witness)
    scores = X @ v[:, :2].T + v[:, 2]
    scores = np.column_stack([np.zeros(len(y)), scores]) if classes == 2 else scores
    lead = scores[np.arange(len(y)), y][:, None] - scores
    assert lead.min() >= -1e-9
    assert lead.max() > 0


def test_overlapping_classes_are_not_impossible():
    X, y = two()
    theirs = linear_model.LogisticRegression(C=np.inf, max_iter=2, tol=0.1)
    with pytest.warns(UserWarning, match="converge"):
        theirs.fit(X, y)
    found = audit(theirs, X, y)
    assert found.kind == "optimal"
    assert not found.holds


# ------------------------------------------------------------------------------------- labels and classes
@pytest.mark.parametrize(
    "names",
    [["b", "a", "c"], [10, -3, 7], [2.0, 1.0, 0.0], np.array(["x", "yy", "z"], dtype=object), [True, False]],
    ids=str,
)
def test_labels_of_any_type(names):
    X, y = three() if len(names) == 3 else two()
    labels = np.asarray(names)[y]
    model = LogisticRegression().fit(X, labels)
    np.testing.assert_array_equal(model.classes_, np.unique(labels))
    assert set(model.predict(X).tolist()) <= set(labels.tolist())
    assert model.score(X, labels) > 0.6
    order = np.argsort(np.argsort(np.asarray(names)))
    same = LogisticRegression().fit(X, order[y])
    np.testing.assert_allclose(model.predict_proba(X), same.predict_proba(X), rtol=1e-12)
    assert certified(model, X, labels)


def test_one_class_is_refused():
    with pytest.raises(DataError, match=r"one class: \[3\].*Check that the right column"):
        LogisticRegression().fit(np.arange(6.0)[:, None], np.full(6, 3))


def test_a_class_without_weight_is_no_class():
    X, y = three()
    w = (y != 1).astype(float)
    model = LogisticRegression().fit(X, y, w)
    assert model.classes_.tolist() == [0, 2]
    without = LogisticRegression().fit(X[y != 1], y[y != 1])
    np.testing.assert_allclose(model.coef_, without.coef_, rtol=1e-6)
    with pytest.raises(DataError, match="one class"):
        LogisticRegression().fit(X, y, (y == 1).astype(float))


@pytest.mark.parametrize("bad", [{0: 0.0}, {0: -1.0}, {0: np.nan}, {0: np.inf}], ids=str)
def test_class_weights_must_be_positive(bad):
    with pytest.raises(DataError, match=r"positive, finite weights.*leave its rows out"):
        LogisticRegression(class_weight=bad).fit(*two())


def test_class_weights_of_unknown_classes_are_refused():
    with pytest.raises(DataError, match=r"class_weight for \[7\]"):
        LogisticRegression(class_weight={7: 2.0}).fit(*two())
    with pytest.raises(DataError, match="class_weight='even'"):
        LogisticRegression(class_weight="even").fit(*two())


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"C": 0.0}, r"C=0\.0; wanted a positive number"),
        ({"C": -1.0}, r"C=-1\.0"),
        ({"C": np.nan}, "C=nan"),
        ({"penalty": "l0"}, "penalty='l0'; wanted one of"),
        ({"l1_ratio": 1.5}, r"l1_ratio=1\.5; wanted a number between 0 and 1"),
        ({"l1_ratio": np.nan}, "l1_ratio=nan"),
        ({"penalty": "l1", "solver": "lbfgs"}, "solver='lbfgs' with an L1 penalty; wanted 'auto'"),
        ({"covariance": "clustered"}, "covariance='clustered'; wanted one of"),
        ({"solver": "sgd"}, "solver='sgd'; wanted one of"),
    ],
)
def test_bad_parameters_are_refused(params, message):
    with pytest.raises(DataError, match=message):
        LogisticRegression(**params).fit(*two())


# -------------------------------------------------------------------------------------- what it is used for
@pytest.mark.parametrize("data", [two, three])
def test_answers_fit_together(data):
    X, y = data()
    model = LogisticRegression().fit(X, y)
    proba, eta = model.predict_proba(X), model.decision_function(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-14)
    np.testing.assert_allclose(np.log(proba), model.predict_log_proba(X), rtol=1e-12)
    np.testing.assert_array_equal(model.predict(X), model.classes_[proba.argmax(axis=1)])
    assert eta.shape == ((len(X),) if data is two else (len(X), 3))
    total, loss, penalty = model.objective(X, y)
    np.testing.assert_allclose(loss, -model.predict_log_proba(X)[np.arange(len(y)), y].sum(), rtol=1e-12)
    np.testing.assert_allclose(penalty, 0.5 * (model.coef_**2).sum(), rtol=1e-12)
    assert total == loss + penalty


def test_log_probabilities_keep_their_digits():
    model = LogisticRegression().fit(*two())
    model.coef_, model.intercept_ = np.array([[1.0, 0.0, 0.0, 0.0]]), np.array([0.0])
    far = [[1e4, 0, 0, 0], [-1e4, 0, 0, 0], [40.0, 0, 0, 0]]
    log_p = model.predict_log_proba(far)
    np.testing.assert_allclose(log_p[:, 0], [-1e4, 0, -40.0], rtol=1e-12)
    np.testing.assert_allclose(log_p[:, 1], [0, -1e4, -np.exp(-40.0)], rtol=1e-12)
    assert np.isfinite(model.predict_proba(far)).all()


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("classes", [2, 3])
def test_sparse_rows_are_dense_rows(classes, solver):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((300, 20)) < 0.2, rng.normal(size=(300, 20)) + 1, 0.0)
    y = (X[:, 0] + rng.normal(size=300) > 0.2).astype(int) + (classes - 2) * (rng.random(300) < 0.3)
    w = rng.exponential(size=300)
    for params in ({}, {"fit_intercept": False}, {"penalty": None}):
        dense = exact(solver=solver, tol=1e-10, **params).fit(X, y, w)
        csr = exact(solver=solver, tol=1e-10, **params).fit(sparse.csr_array(X), y, w)
        np.testing.assert_allclose(csr.predict_proba(sparse.csr_array(X)), dense.predict_proba(X), atol=1e-5)
        np.testing.assert_allclose(csr.certificate_.objective, dense.certificate_.objective, rtol=1e-9)
        assert certified(csr, sparse.csr_array(X), y, w)


@pytest.mark.parametrize("data", [two, three])
def test_float32(data):
    X, y = data()
    single = X.astype(np.float32)
    model, double = LogisticRegression().fit(single, y), LogisticRegression().fit(single.astype(np.float64), y)
    np.testing.assert_allclose(model.coef_, double.coef_, rtol=1e-6)
    assert model.coef_.dtype == np.float64


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("data", [two, three])
def test_warm_start(data, solver):
    X, y = data()
    model = LogisticRegression(warm_start=True, solver=solver).fit(X, y)
    cold = model.n_iter_[0]
    answer = model.predict_proba(X)
    model.fit(X, y)
    assert model.n_iter_[0] == 0 < cold
    np.testing.assert_allclose(model.predict_proba(X), answer, rtol=1e-12)
    assert certified(model, X, y)
    model.fit(X + 100, y)  # a start far from the new optimum is only a start
    assert certified(model, X + 100, y)
    model.set_params(fit_intercept=False).fit(X, y)
    assert certified(model, X, y)
    model.fit(X[:, :2], y)  # another shape: nothing to start from
    assert certified(model, X[:, :2], y)
    model.fit(X, np.where(y == 0, 5, y))  # other classes
    assert certified(model, X, np.where(y == 0, 5, y))


def test_history_ends_at_the_tolerance():
    X, y = three()
    model = LogisticRegression().fit(X, y)
    assert len(model.history_) == model.n_iter_[0] + 1
    assert model.history_[-1].gain <= 1e-6
    assert model.history_[-1].objective == model.certificate_.objective
    assert model.history_[0].objective == pytest.approx(len(y) * np.log(3))
    assert min(m.objective for m in model.history_) == pytest.approx(model.certificate_.objective, rel=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-8, 1e-12])
def test_the_tolerance_is_kept_and_true(tol, solver):
    X, y = three()
    best = exact(tol=1e-14).fit(X, y).certificate_.objective
    model = LogisticRegression(tol=tol, solver=solver).fit(X, y)
    assert model.certificate_.holds
    assert model.certificate_.objective <= best * (1 + tol) + 1e-12 * best
    assert model.certificate_.bound <= best * (1 + 1e-13)
    assert audit(model, X, y).holds
