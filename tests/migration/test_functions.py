"""scikit-learn's functions under their own names: the same numbers for the same call."""

import numpy as np
import pytest
import sklearn.cluster
import sklearn.linear_model
import sklearn.manifold
import sklearn.svm
from scipy import sparse
from sklearn.datasets import load_iris, make_swiss_roll

from certifit import (
    DataError,
    LinearSVC,
    k_means,
    kmeans_plusplus,
    l1_min_c,
    locally_linear_embedding,
    ridge_regression,
)

X, y = load_iris(return_X_y=True)


def test_k_means():
    start = X[[0, 60, 120]]
    ours, theirs = (f(X, 3, init=start, n_init=1, return_n_iter=True) for f in (k_means, sklearn.cluster.k_means))
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-3)
    np.testing.assert_array_equal(ours[1], theirs[1])
    assert ours[2] == pytest.approx(theirs[2], rel=1e-6)
    assert len(k_means(X, 3, random_state=0)) == 3


@pytest.mark.parametrize("table", [X, sparse.csr_array(X)], ids=["dense", "sparse"])
def test_kmeans_plusplus(table):
    centres, indices = kmeans_plusplus(table, 4, random_state=0, n_local_trials=3, x_squared_norms=None)
    np.testing.assert_array_equal(X[indices], centres)
    assert len({*indices.tolist()}) == 4
    with pytest.raises(DataError):
        kmeans_plusplus(X, 151)
    with pytest.raises(ValueError, match="x_squared_norms 2 should be equal to the length of n_samples"):
        kmeans_plusplus(X, 3, x_squared_norms=X[:2])


@pytest.mark.parametrize("alpha", [2.0, [1.0, 5.0]])
def test_ridge_regression(alpha):
    targets = y.astype(float) if np.ndim(alpha) == 0 else np.column_stack([y, X[:, 0]])
    Z, w = X[:, 1:], np.linspace(1, 2, 150)
    ours, theirs = (
        f(Z, targets, alpha, sample_weight=w, solver="cholesky")
        for f in (ridge_regression, sklearn.linear_model.ridge_regression)
    )
    np.testing.assert_allclose(ours, theirs, rtol=1e-7)
    coef, passes, intercept = ridge_regression(Z, targets, alpha, return_n_iter=True, return_intercept=True)
    np.testing.assert_allclose(coef, sklearn.linear_model.Ridge(alpha).fit(Z, targets).coef_, rtol=1e-6)
    assert np.shape(passes) == np.shape(intercept)
    with pytest.raises(DataError, match="shrinkage"):
        ridge_regression(Z, targets, alpha, shrinkage=1)


@pytest.mark.parametrize("loss", ["squared_hinge", "log"])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("more", [{}, {"fit_intercept": False}, {"intercept_scaling": 20.0}])
def test_l1_min_c(loss, classes, more):
    kept = np.isin(y, range(classes))
    expected = sklearn.svm.l1_min_c(X[kept], y[kept], loss=loss, **more)
    assert l1_min_c(X[kept], y[kept], loss=loss, **more) == pytest.approx(expected, rel=1e-12)
    assert l1_min_c(sparse.csr_array(X[kept]), y[kept], loss=loss, **more) == pytest.approx(expected, rel=1e-12)


def test_below_it_every_coefficient_is_0():
    Z, t = X[:100], y[:100]
    least = l1_min_c(Z, t)
    for factor, none in ((0.99, True), (1.5, False)):
        assert bool((LinearSVC(penalty="l1", C=factor * least).fit(Z, t).coef_ == 0).all()) == none
    with pytest.raises(DataError, match="Ill-posed"):
        l1_min_c(np.zeros((2, 1)), [0, 1])


def test_locally_linear_embedding():
    roll = make_swiss_roll(300, random_state=0)[0]
    ours, error = locally_linear_embedding(roll, n_neighbors=12, n_components=2)
    theirs, their_error = sklearn.manifold.locally_linear_embedding(
        roll, n_neighbors=12, n_components=2, eigen_solver="dense"
    )
    assert error == pytest.approx(their_error, rel=1e-5)
    np.testing.assert_allclose(np.abs(ours), np.abs(theirs), atol=1e-6)
