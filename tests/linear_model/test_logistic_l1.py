"""Logistic regression with L1 and elastic-net penalties, against scikit-learn and the subgradient equations."""

import numpy as np
import pytest
from scipy import sparse
from sklearn import linear_model

from certifit import DataError, LogisticRegression, audit
from tests.common.catalogue import three, two
from tests.linear_model.logistic_tables import TABLES, certified


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


def test_the_lasso_of_several_classes_forms_the_hessian():
    words = r"12006 parameters with an L1 penalty and 3 classes; wanted at most 4000.*penalty='l2'"
    with pytest.raises(DataError, match=words):
        LogisticRegression("l1").fit(np.zeros((4, 4001)), [0, 1, 0, 2])


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


@pytest.mark.filterwarnings("ignore::certifit.CertificateWarning")
def test_a_weak_penalty_of_large_columns_is_proved_by_fit_and_audit():
    """Slopes of 1e4 are to be known to 1e-4 of their last digit, and of collinear columns one is enough."""
    agreed = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(25, 3)) * [1e3, 1.0, 1e-2]
        X[:, 2] = 2 * X[:, 0]
        y = (X[:, 0] / 1e3 + rng.normal(size=25) > 0).astype(int)
        model = LogisticRegression(penalty="l1", C=1e4, tol=2e-7).fit(X, y)
        found = audit(model, X, y)
        assert found.holds == model.certificate_.holds, (seed, found.failures())
        assert found.bound <= model.certificate_.objective * (1 + 1e-12)
        agreed.append(found.holds)
    assert sum(agreed) > len(agreed) / 2
