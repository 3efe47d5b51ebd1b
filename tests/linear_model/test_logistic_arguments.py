"""Calls written for scikit-learn's LogisticRegression run unchanged, and mean the same problem."""

import inspect

import numpy as np
import pytest
from scipy import sparse
from sklearn import linear_model
from sklearn.exceptions import ConvergenceWarning

from certifit import LogisticRegression, audit
from certifit.exceptions import DataError
from tests.common.catalogue import three, two

SOLVERS = ("lbfgs", "liblinear", "newton-cg", "newton-cholesky", "sag", "saga")


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("l1_ratio", [0.0, 0.4, 1.0])
def test_every_solver_of_scikit_learn_gives_the_one_minimum(solver, l1_ratio):
    X, y = two()
    model = LogisticRegression(C=0.3, l1_ratio=l1_ratio, solver=solver, tol=1e-10).fit(X, y)
    plain = LogisticRegression(C=0.3, l1_ratio=l1_ratio, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=2e-4)
    assert audit(model, X, y).holds


def test_arguments_that_steer_scikit_learns_solver_change_nothing():
    X, y = three()
    plain = LogisticRegression().fit(X, y)
    ignored = {"dual": True, "intercept_scaling": 7, "multi_class": "multinomial", "n_jobs": 2, "verbose": 3}
    model = LogisticRegression(**ignored, random_state=1).fit(X, y)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    assert {*ignored, "random_state"} == set(LogisticRegression.ignored)


def test_no_parameter_of_scikit_learn_is_missing():
    theirs = inspect.signature(linear_model.LogisticRegression).parameters
    ours = inspect.signature(LogisticRegression).parameters
    assert set(theirs) <= set(ours)
    other = {name for name in theirs if theirs[name].default != ours[name].default}
    assert other <= set(LogisticRegression.differences)


@pytest.mark.parametrize(("penalty", "l1_ratio"), [("deprecated", 0.5), ("l2", None), ("deprecated", 0.0)])
def test_penalty_and_l1_ratio_mean_what_they_mean_there(penalty, l1_ratio):
    X, y = two()
    model = LogisticRegression(penalty, l1_ratio=l1_ratio, C=0.1).fit(X, y)
    theirs = linear_model.LogisticRegression(
        l1_ratio=l1_ratio or 0.0, C=0.1, solver="saga", tol=1e-8, max_iter=100_000
    )
    np.testing.assert_allclose(model.coef_, theirs.fit(X, y).coef_, atol=2e-3)
    assert audit(model, X, y).holds


def test_a_c_that_is_ignored_is_said():
    with pytest.warns(UserWarning, match="penalty=None will ignore the C=3"):
        LogisticRegression(None, C=3.0).fit(*two())


@pytest.mark.parametrize("data", [two, three])
def test_sparse_coefficients_predict_the_same_and_are_audited(data):
    X, y = data()
    model = LogisticRegression(l1_ratio=1.0, C=0.05).fit(X, y)
    before, total = model.predict_proba(X), model.objective(X, y).total
    assert sparse.issparse(model.sparsify().coef_)
    for table in (X, sparse.csr_matrix(X)):
        np.testing.assert_allclose(model.predict_proba(table), before, rtol=1e-12)
    assert model.objective(X, y).total == pytest.approx(total, rel=1e-12)
    assert audit(model, X, y).holds
    model.coef_ = 1.5 * model.coef_
    assert not audit(model, X, y).holds
    model.coef_ = model.coef_ / 1.5
    assert isinstance(model.densify().coef_, np.ndarray)
    np.testing.assert_allclose(model.predict_proba(X), before, rtol=1e-12)


def test_coefficients_of_several_classes_sum_to_zero():
    """The ridge penalty is smallest so, whatever is common to all classes."""
    X, y = three()
    for tol in (1e-2, 1e-6):
        model = LogisticRegression(tol=tol).fit(X, y)
        np.testing.assert_allclose(model.coef_.sum(axis=0), 0, atol=1e-14 * np.abs(model.coef_).max() * 10)
        assert audit(model, X, y).holds


@pytest.mark.parametrize(
    ("solver", "words"),
    [
        ("lbfgs", "lbfgs failed to converge"),
        ("newton-cg", r"newton-cg failed to converge.* Increase the number of iterations"),
        ("newton-cholesky", "did not converge after 1 iterations"),
        ("liblinear", "Liblinear failed to converge"),
        ("saga", "The max_iter was reached"),
    ],
)
def test_filters_of_scikit_learns_warnings_find_their_words(solver, words):
    X, y = two()
    with pytest.warns(ConvergenceWarning, match=f"stopped by max_iter=1.*scikit-learn would say: .*{words}"):
        LogisticRegression(solver=solver, max_iter=1, tol=1e-15).fit(X, y)


@pytest.mark.parametrize("table", [two, three])
@pytest.mark.parametrize("solver", ["lbfgs", "newton-cholesky"])
def test_less_than_the_usual_gap_asks_for_digits_of_the_coefficients(table, solver):
    """Where the gradient of scikit-learn's objective vanishes, which Newton's method finds to the last digits."""
    X, y = table()
    theirs = linear_model.LogisticRegression(solver="newton-cholesky", tol=1e-12).fit(X, y)
    coarse = LogisticRegression(solver=solver, tol=1e-3).fit(X, y)
    fine = LogisticRegression(solver=solver, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(fine.coef_, theirs.coef_, atol=1e-5 * np.abs(theirs.coef_).max())
    assert np.abs(coarse.coef_ - theirs.coef_).max() > np.abs(fine.coef_ - theirs.coef_).max()
    assert fine.certificate_.tol == 1e-8


def test_a_penalty_and_a_ratio_that_do_not_go_together():
    with pytest.warns(UserWarning, match="l1_ratio=0.5 is left aside"):
        LogisticRegression("l1", l1_ratio=0.5).fit([[0.0], [1.0], [2.0]], [0, 1, 0])
    with pytest.raises(DataError, match="without l1_ratio; wanted l1_ratio between 0 and 1"):
        LogisticRegression("elasticnet", l1_ratio=None).fit([[0.0], [1.0]], [0, 1])
