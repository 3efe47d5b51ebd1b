"""Paths of lasso and elastic net fits, against scikit-learn's and against the condition for a coefficient to be 0."""

import numpy as np
import pytest
from scipy import sparse
from sklearn import linear_model

from certifit import ElasticNet, Lasso, enet_path, lasso_path
from certifit.exceptions import DataError

RNG = np.random.default_rng(1)
X = RNG.normal(size=(50, 8))
X -= X.mean(axis=0)
Y = X @ RNG.normal(size=(8, 2)) + RNG.normal(size=(50, 2))
Y -= Y.mean(axis=0)


@pytest.mark.parametrize("positive", [False, True])
def test_paths_are_those_of_scikit_learn(positive):
    strengths, target = [0.5, 0.05, 0.2], Y[:, 0]
    ours = enet_path(X, target, l1_ratio=0.7, alphas=strengths, positive=positive, tol=1e-12)
    theirs = linear_model.enet_path(X, target, l1_ratio=0.7, alphas=strengths, positive=positive, tol=1e-12)
    np.testing.assert_array_equal(ours[0], theirs[0])
    np.testing.assert_allclose(ours[1], theirs[1], atol=1e-6)
    assert ours[2].shape == theirs[2].shape


def test_the_largest_strength_is_the_smallest_that_leaves_nothing():
    alphas, coefs, gaps, passes = lasso_path(X, Y[:, 0], alphas=20, eps=1e-2, return_n_iter=True)
    assert alphas[0] == pytest.approx(np.abs(X.T @ Y[:, 0]).max() / 50)
    assert alphas[-1] == pytest.approx(1e-2 * alphas[0])
    np.testing.assert_allclose(coefs[:, 0], 0, atol=1e-10)
    assert (coefs[:, 1] != 0).any()
    assert coefs.shape == (8, 20)
    assert gaps.shape == passes.shape == (20,)
    assert (gaps >= 0).all()
    np.testing.assert_allclose(alphas, linear_model.lasso_path(X, Y[:, 0], alphas=20, eps=1e-2)[0])


def test_arguments_of_scikit_learns_solver_are_taken():
    given = {"precompute": True, "Xy": X.T @ Y[:, 0], "copy_X": False, "verbose": 1, "selection": "random"}
    plain = lasso_path(X, Y[:, 0], alphas=[0.1])
    for more in (given, {"n_alphas": 7, "check_input": False, "random_state": 0}):
        np.testing.assert_array_equal(lasso_path(X, Y[:, 0], alphas=[0.1], **more)[1], plain[1])
    assert len(lasso_path(X, Y[:, 0], n_alphas=7)[0]) == 7
    np.testing.assert_allclose(lasso_path(sparse.csr_matrix(X), Y[:, 0], alphas=[0.1])[1], plain[1], atol=1e-8)
    start = enet_path(X, Y[:, 0], alphas=[0.1], coef_init=np.ones(8), tol=1e-13)[1]
    np.testing.assert_allclose(start, enet_path(X, Y[:, 0], alphas=[0.1], tol=1e-13)[1], atol=2e-6)


def test_a_path_of_each_target():
    alphas, coefs, gaps = lasso_path(X, Y, alphas=[0.3, 0.1])
    assert coefs.shape == (2, 8, 2)
    assert gaps.shape == (2, 2)
    alone = Lasso(alphas[0], fit_intercept=False).fit(X, Y[:, 1])
    np.testing.assert_allclose(coefs[1, :, 0], alone.coef_, atol=1e-4)


def test_a_ridge_has_no_largest_strength():
    with pytest.raises(DataError, match="l1_ratio=0"):
        ElasticNet.path(X, Y[:, 0], l1_ratio=0)


def test_an_intercept_is_refused_and_check_input_taken():
    with pytest.raises(DataError, match="without intercept"):
        lasso_path(X, Y[:, 0], fit_intercept=True)
    np.testing.assert_array_equal(Lasso(0.1).fit(X, Y, check_input=False).coef_, Lasso(0.1).fit(X, Y).coef_)
