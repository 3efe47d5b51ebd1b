"""Least squares of several targets: each target's fit is that of the target alone, and one certificate proves all."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import linear_model

from certifit import ElasticNet, Lasso, LinearRegression, PoissonRegressor, Ridge, audit
from certifit.exceptions import CertificateWarning, DataError

RNG = np.random.default_rng(3)
X = RNG.normal(size=(80, 5)) + np.array([0, 0, 3, 0, -2])
Y = X @ RNG.normal(size=(5, 3)) + RNG.normal(size=(80, 3)) * [1.0, 0.1, 5.0] + [0, 10, -4]
PAIRS = [
    (LinearRegression(), linear_model.LinearRegression()),
    (LinearRegression(fit_intercept=False), linear_model.LinearRegression(fit_intercept=False)),
    (LinearRegression(positive=True), linear_model.LinearRegression(positive=True)),
    (Ridge(2.0), linear_model.Ridge(2.0, tol=1e-12)),
    (Ridge([0.5, 20.0, 3.0]), linear_model.Ridge([0.5, 20.0, 3.0], tol=1e-12)),
    (Lasso(0.2, tol=1e-12), linear_model.Lasso(0.2, tol=1e-12)),
    (ElasticNet(0.2, tol=1e-12), linear_model.ElasticNet(0.2, tol=1e-12)),
]


@pytest.mark.parametrize(("model", "theirs"), PAIRS, ids=str)
def test_coefficients_are_those_of_scikit_learn(model, theirs):
    for table in (X, sparse.csr_matrix(X)):
        if sparse.issparse(table) and model.positive:
            continue  # scikit-learn has no such fit
        model.fit(table, Y)
        theirs.fit(table, Y)
        assert model.coef_.shape == theirs.coef_.shape == (3, 5)
        np.testing.assert_allclose(model.coef_, theirs.coef_, atol=1e-5)
        np.testing.assert_allclose(model.predict(table), theirs.predict(table), atol=1e-4)
        assert model.score(X, Y) == pytest.approx(theirs.score(X, Y), rel=1e-6)
        assert model.certificate_.holds
        assert audit(model, table, Y).holds


@pytest.mark.parametrize("model", [model for model, _ in PAIRS], ids=str)
def test_a_wrong_target_is_noticed_and_its_gap_stated(model):
    model.fit(X, Y)
    model.coef_ = model.coef_ * [[1.0], [1.0], [1.05]]
    found = audit(model, X, Y)
    assert not found.holds
    bad = [check.name for check in found.checks if not check.passed]
    assert "gap of target 2" in bad
    assert not {"gap of target 0", "gap of target 1"} & set(bad)


def test_a_tiny_target_is_not_hidden_by_a_huge_one():
    small = np.column_stack([1e9 * Y[:, 0], Y[:, 1]])
    model = Ridge(tol=1e-4).fit(X, small)
    model.coef_[1] *= 1.1
    assert not audit(model, X, small).holds


def test_one_target_alone_gives_the_same():
    model = Lasso(0.3).fit(X, Y)
    for k in range(3):
        alone = Lasso(0.3).fit(X, Y[:, k])
        np.testing.assert_array_equal(model.coef_[k], alone.coef_)
        assert model.dual_gap_[k] == alone.dual_gap_
        assert model.deviance_[k] == alone.deviance_
    assert model.certificate_.objective == pytest.approx(model.objective(X, Y).total, rel=1e-12)
    assert len(model.certificate_.parameter_error) in (0, 3)
    assert model.sparse_coef_.shape == (3, 5)


def test_weights_and_names_of_columns():
    frame = pd.DataFrame(X, columns=list("abcde")).assign(u=Y[:, 0], v=Y[:, 1], w=RNG.integers(0, 3, 80))
    model = LinearRegression().fit(frame, y=["u", "v"], sample_weight="w")
    plain = linear_model.LinearRegression().fit(X, Y[:, :2], sample_weight=frame["w"])
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-8)
    assert list(model.feature_names_in_) == list("abcde")
    assert audit(model, frame, ["u", "v"], "w").holds


def test_a_single_column_keeps_the_shape_that_scikit_learn_gives():
    for ours, theirs in ((LinearRegression(), linear_model.LinearRegression()), (Lasso(), linear_model.Lasso())):
        ours.fit(X, Y[:, :1])
        theirs.fit(X, Y[:, :1])
        assert ours.coef_.shape == theirs.coef_.shape
        assert ours.predict(X).shape == theirs.predict(X).shape
        assert audit(ours, X, Y[:, :1]).holds


def test_warm_start_and_no_standard_errors():
    model = ElasticNet(0.1, warm_start=True).fit(X, Y)
    assert (model.fit(X, Y).n_iter_ == 0).all()
    plain = LinearRegression().fit(X, Y)
    assert "several targets" in plain.no_errors_because_
    for name in ("standard_errors_", "p_values_", "aic_"):
        assert not hasattr(plain, name)


def test_what_does_not_go_with_several_targets():
    with pytest.raises(DataError, match="2 penalties for 3 targets"):
        Ridge([1.0, 2.0]).fit(X, Y)
    with pytest.raises(DataError, match="2 penalties for one target"):
        Ridge([1.0, 2.0]).fit(X, Y[:, 0])
    with pytest.raises(DataError, match="offset beside 3 targets"):
        Ridge().fit(X, Y, offset=np.ones(80))
    with pytest.raises(ValueError, match="1d array"):
        PoissonRegressor().fit(X, np.abs(Y))
    with pytest.raises(DataError, match="alpha"):
        Ridge([1.0, -2.0, 1.0]).fit(X, Y)
    with pytest.warns(CertificateWarning, match="gap of target 0"):
        Lasso(max_iter=0).fit(X, Y)
    with pytest.raises(DataError, match="for every column of y"):
        audit(Ridge().fit(X, Y), X, Y[:, :2])
