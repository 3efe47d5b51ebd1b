"""Coefficients of at least 0: known solutions, the conditions of the minimum, proofs that notice what is wrong."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import nnls
from sklearn import linear_model

from certifit import ElasticNet, Lasso, LinearRegression, Ridge, audit
from certifit.optimise.coordinate_descent_loops import descend_nonnegative

RNG = np.random.default_rng(5)
X = RNG.normal(size=(60, 6)) + np.array([0, 0, 5, 0, 0, 0])
y = X @ [2.0, -1.0, 0.5, 0.0, 1.0, -3.0] + RNG.normal(size=60)
MODELS = [
    LinearRegression(positive=True),
    Ridge(3.0, positive=True),
    Lasso(0.1, positive=True),
    ElasticNet(0.1, l1_ratio=0.3, positive=True),
]


def test_least_squares_are_lawson_and_hansons():
    model = LinearRegression(positive=True, fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(model.coef_, nnls(X, y)[0], atol=1e-10)
    centred = LinearRegression(positive=True).fit(X, y)
    np.testing.assert_allclose(centred.coef_, nnls(X - X.mean(axis=0), y - y.mean())[0], atol=1e-10)
    assert (model.coef_ == 0).any()


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("intercept", [True, False])
def test_the_conditions_of_the_minimum_hold(model, intercept):
    """Slopes are 0 where coefficients are positive, and not negative where they are 0."""
    model.set_params(fit_intercept=intercept, tol=1e-12).fit(X, y)
    alpha = 0.0 if isinstance(model, LinearRegression) else model.alpha * (1 if isinstance(model, Ridge) else len(X))
    r = X @ model.coef_ + model.intercept_ - y
    slope = X.T @ r + alpha * ((1 - model.l1_ratio) * model.coef_ + model.l1_ratio)
    assert (model.coef_ >= 0).all()
    assert (model.coef_ == 0).any()
    assert (model.coef_ > 0).any()
    np.testing.assert_allclose(slope[model.coef_ > 0], 0, atol=1e-4)
    assert (slope[model.coef_ == 0] > 0).all()
    assert model.certificate_.kind == "optimal"
    assert "coefficients of at least 0" in model.certificate_.claim
    assert audit(model, X, y).holds


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_what_is_wrong_is_noticed(model):
    model.fit(X, y)
    right, used = model.coef_, int(np.argmax(model.coef_ > 0))
    unused = int(np.argmax(model.coef_ == 0))
    for number, by in ((used, 0.1), (used, -0.1), (unused, 0.1), (unused, -1e-9)):
        model.coef_ = right.copy()
        model.coef_[number] += by
        found = audit(model, X, y)
        assert not found.holds
        assert found.bound <= model.certificate_.objective * (1 + 1e-12)
    # The unconstrained minimum is no answer, nor is its part above 0.
    model.coef_ = np.maximum(model.set_params(positive=False).fit(X, y).coef_, 0.0)
    assert not audit(model.set_params(positive=True), X, y).holds


@pytest.mark.parametrize("seed", range(12))
def test_bounds_are_below_every_feasible_point(seed):
    """Whatever the coefficients are, the audit's bound is one: no nonnegative point is below it."""
    rng = np.random.default_rng(seed)
    Z, t = rng.normal(size=(12, 4)), rng.normal(size=12)
    for model in (LinearRegression(positive=True), Ridge(0.5, positive=True), Lasso(0.05, positive=True)):
        model.fit(Z, t)
        best = model.objective(Z, t).total
        model.coef_ = np.maximum(rng.normal(size=4), 0.0)
        assert audit(model, Z, t).bound <= best * (1 + 1e-9)


@pytest.mark.parametrize("cls", [Lasso, ElasticNet])
def test_more_columns_than_rows(cls):
    wide = RNG.normal(size=(20, 60))
    target = wide[:, 0] - wide[:, 1] + 0.1 * RNG.normal(size=20)
    model = cls(0.05, positive=True).fit(wide, target)
    theirs = getattr(linear_model, cls.__name__)(0.05, positive=True, tol=1e-10, max_iter=100_000).fit(wide, target)
    assert model.certificate_.holds
    assert audit(model, wide, target).holds
    assert audit(theirs, wide, target).holds
    np.testing.assert_allclose(model.predict(wide), theirs.predict(wide), atol=1e-3)


COLLINEAR = {
    "indicators of all levels": np.eye(4)[RNG.integers(4, size=60)],
    "a column twice": X[:, :1],
    "a sum": X.sum(axis=1, keepdims=True),
    "the negative": -X,
    "constants": np.column_stack([np.zeros(60), np.ones(60)]),
    "more columns than rows": RNG.normal(size=(60, 70)),
}


@pytest.mark.parametrize("more", COLLINEAR.values(), ids=COLLINEAR)
@pytest.mark.parametrize("intercept", [True, False])
def test_squares_of_collinear_columns_are_proved(more, intercept):
    """The Hessian is singular: columns that are held at 0 by their slopes are left out of it."""
    Z, w = np.hstack([X, more]), RNG.exponential(size=60)
    model = LinearRegression(positive=True, fit_intercept=intercept).fit(Z, y, w)
    shift = np.average(Z, axis=0, weights=w) if intercept else 0.0
    root = np.sqrt(w)[:, None] * np.column_stack([Z - shift, y - (np.average(y, weights=w) if intercept else 0.0)])
    least = nnls(root[:, :-1], root[:, -1])[1] ** 2 / 2
    for found in (model.certificate_, audit(model, Z, y, w)):
        assert found.holds
        assert least * (1 - 1e-5) - 1e-9 <= found.bound <= least * (1 + 1e-12)
    model.coef_ = model.coef_ + 0.01 * (model.coef_ == model.coef_.max())
    assert not audit(model, Z, y, w).holds


def test_errors_of_coefficients_hold():
    for model in (LinearRegression(positive=True), Ridge(2.0, positive=True)):
        exact = model.set_params(tol=1e-14).fit(X, y).coef_
        rough = model.set_params(tol=1e-3).fit(X, y)
        error = np.array(audit(rough, X, y).parameter_error[0][:-1])
        assert (np.abs(rough.coef_ - exact) <= error).all()
        rough.coef_ = exact + np.where(exact > 0, 1e-3, 0.0)
        error = np.array(audit(rough, X, y).parameter_error[0][:-1])
        assert (np.abs(rough.coef_ - exact) <= error).all()


def test_weights_sparse_rows_and_float32():
    w = RNG.integers(0, 3, 60).astype(float)
    model = Ridge(1.0, positive=True).fit(sparse.csr_matrix(X), y, sample_weight=w)
    repeated = Ridge(1.0, positive=True).fit(np.repeat(X, w.astype(int), axis=0), np.repeat(y, w.astype(int)))
    np.testing.assert_allclose(model.coef_, repeated.coef_, atol=1e-8)
    small = LinearRegression(positive=True).fit(X.astype(np.float32), y)
    assert audit(small, X.astype(np.float32), y).holds


def test_no_standard_errors_and_the_reason():
    model = LinearRegression(positive=True).fit(X, y)
    assert model.covariance_ is None
    assert "held at 0 or above" in model.no_errors_because_
    assert not hasattr(model, "standard_errors_")


@pytest.mark.compiled
def test_coordinate_descent_solves_a_small_problem():
    H, q, x = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([-1.0, 1.0]), np.zeros(2)
    descend_nonnegative(H, q, x, 1e-30, 1000)
    np.testing.assert_allclose(x, [0.5, 0.0])
    assert descend_nonnegative(H, q, x, 1e-30, 1000) == 1


@pytest.mark.parametrize("strength", [1e-15, 1e-6, 1.0])
def test_a_target_that_asks_for_negative_coefficients_alone_is_proved(strength):
    """Zero is the best there is, however weak the penalty: slopes that the bound at 0 takes up need no penalty."""
    far = np.abs(X) * [1e5, 1e8, 1e7, 1e8, 1e6, 1e8] + 1e6
    target = -np.abs(y) * 1e4
    model = Lasso(strength, positive=True, fit_intercept=False).fit(far, target)
    np.testing.assert_array_equal(model.coef_, 0.0)
    found = audit(model, far, target)
    assert found.holds
    assert found.bound == pytest.approx(0.5 * target @ target, rel=1e-12)
    model.coef_ = np.full(6, 1e-6)
    assert not audit(model, far, target).holds
