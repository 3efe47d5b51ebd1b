"""Logistic and softmax regression: closed forms, independent optimisers, labels, answers. Firth's: test_firth.py."""

import copy

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn import linear_model
from sklearn.datasets import load_digits

from certifit import DataError, LogisticRegression, audit
from certifit.core import Certificate
from certifit.linear_model.logistic.problem import LogisticRows, Penalised
from certifit.linear_model.logistic.stored_coefficients import stored_coefficients
from certifit.rows import as_rows
from tests.common.catalogue import three, two
from tests.linear_model.logistic_tables import SOLVERS, TABLES, certified, exact


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
        ({"C": 0.0}, r"C=0\.0; wanted a number above 0"),
        ({"C": -1.0}, r"C=-1\.0"),
        ({"C": np.nan}, "C=nan"),
        ({"penalty": "l0"}, "penalty='l0'; wanted 'l2', 'l1', 'elasticnet', 'firth', 'deprecated' or None"),
        ({"l1_ratio": 1.5}, r"l1_ratio=1\.5; wanted a number between 0 and 1"),
        ({"l1_ratio": np.nan}, "l1_ratio=nan"),
        ({"multi_class": "ovr"}, "multi_class='ovr'; wanted one of .*OneVsRestClassifier"),
        ({"covariance": "clustered"}, "covariance='clustered'; wanted 'classical', 'sandwich' or None"),
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
    assert model.coef_.dtype == np.float32
    assert model.intercept_.dtype == double.coef_.dtype == np.float64
    assert certified(model, single, y)
    assert model.certificate_.objective == pytest.approx(model.objective(single, y).total, rel=1e-12)
    # Scores are summed in float64, and no row is far from that of the unrounded coefficients.
    np.testing.assert_allclose(model.decision_function(single), double.decision_function(single), atol=1e-4)


@pytest.mark.parametrize("data", [two, three])
def test_float32_keeps_the_digits_that_a_proof_needs(data):
    """Far from 0 the intercept follows the rounded coefficients; where a proof would be lost, they stay whole."""
    X, y = data()
    far = (8 * X + 1e6).astype(np.float32)
    model, double = LogisticRegression().fit(far, y), LogisticRegression().fit(far.astype(np.float64), y)
    assert model.coef_.dtype == np.float32
    assert certified(model, far, y)
    np.testing.assert_allclose(model.predict_proba(far), double.predict_proba(far), atol=1e-4)
    careless = copy.deepcopy(model)
    careless.coef_ = double.coef_.astype(np.float32)
    careless.intercept_ = double.intercept_.astype(np.float32)
    assert not certified(careless, far, y)
    rows, task = LogisticRows.of(as_rows(far, y, target="classes"), None, True), Penalised(0.0, 1.0, True)
    x = rows.start({"coef_": double.coef_, "intercept_": double.intercept_, "classes_": double.classes_}).ravel()
    claimed = Certificate("optimal", "nothing may be lost", 0.0, 0.0, 0.0, 0.0)
    fitted, kept = stored_coefficients(rows, task, x, claimed)
    assert kept is claimed
    assert fitted["coef_"].dtype == np.float64
    assert LogisticRegression(penalty=None).fit(X.astype(np.float32), y).coef_.dtype == np.float64


def test_float32_keeps_the_digits_that_an_outlier_needs():
    """Rounding moves the outlier's score by 98: nothing to the objective, and all that its bound is made of."""
    X = np.array([
        [645.07147, 1.6581185], [645.74304, 1.4924598], [646.08228, 2.1744950], [645.37933, 0.2776202],
        [645.46259, 3.2348990], [644.58795, 3.7089634], [645.44763, 0.8011322], [646.17023, 1.2891649],
        [6.4493953e10, 2.7131437e08],
    ], dtype=np.float32)  # fmt: skip
    y = np.array([1, 0, 1, 0, 1, 0, 1, 1, 0])
    w = np.array([5.8e-4, 9961.5, 106.0, 2.76, 0.375, 0.0264, 0.53, 1.4e-4, 1164.7])
    model = LogisticRegression().fit(X, y, sample_weight=w)
    assert model.coef_.dtype == np.float64
    assert model.certificate_.holds
    assert certified(model, X, y, w)


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
