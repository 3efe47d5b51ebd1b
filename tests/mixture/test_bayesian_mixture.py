"""Variational Gaussian mixtures: scikit-learn's answers, the exact evidence of one Gaussian, and wrong models."""

import copy

import numpy as np
import pytest
from scipy.special import multigammaln
from sklearn import mixture
from sklearn.datasets import load_iris

from certifit import BayesianGaussianMixture, DataError, audit

TYPES = ("full", "tied", "diag", "spherical")
WEIGHTS = ("dirichlet_process", "dirichlet_distribution")


@pytest.fixture(scope="module")
def iris():
    return load_iris().data


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("shape", TYPES)
def test_it_is_scikit_learns(iris, shape, weights):
    settings = {
        "n_components": 3,
        "covariance_type": shape,
        "weight_concentration_prior_type": weights,
        "random_state": 0,
    }
    mine = BayesianGaussianMixture(tol=1e-9, **settings).fit(iris)
    theirs = mixture.BayesianGaussianMixture(tol=1e-9, max_iter=5000, **settings).fit(iris)
    assert mine.certificate_.holds
    assert audit(mine, iris).holds
    assert audit(theirs, iris).holds
    a, b = np.lexsort(mine.means_.T), np.lexsort(theirs.means_.T)
    np.testing.assert_allclose(mine.means_[a], theirs.means_[b], atol=1e-3)
    np.testing.assert_allclose(mine.weights_[a], theirs.weights_[b], atol=1e-3)
    assert mine.lower_bound_ == pytest.approx(np.ravel(theirs.lower_bound_)[0], abs=1e-3)
    np.testing.assert_allclose(mine.score_samples(iris), theirs.score_samples(iris), atol=1e-2)
    np.testing.assert_allclose(mine.predict_proba(iris)[:, a], theirs.predict_proba(iris)[:, b], atol=1e-2)
    assert mine.precisions_.shape == theirs.precisions_.shape
    assert mine.sample(5)[0].shape == (5, 4)


def test_one_component_has_the_exact_evidence(iris):
    """With one Gaussian the posterior is exact: differences of bounds are differences of log-evidence.

    Of the Gauss-Wishart prior, the marginal likelihood in closed form (Murphy 2007, equation 266).
    """

    def log_evidence(X):
        n, d = X.shape
        m, off = X.mean(axis=0), X.mean(axis=0) - prior.mean_prior_
        S = (X - m).T @ (X - m) + n * 1e-6 * np.eye(d) + n / (n + 1) * np.outer(off, off)
        C0, nu = prior.covariance_prior_, d + n
        dets = d / 2 * np.linalg.slogdet(C0)[1] - nu / 2 * np.linalg.slogdet(C0 + S)[1]
        return multigammaln(nu / 2, d) - multigammaln(d / 2, d) + dets + d / 2 * np.log(1 / (n + 1))

    prior = BayesianGaussianMixture().fit(iris)
    shared = {"mean_prior": prior.mean_prior_, "covariance_prior": prior.covariance_prior_}
    parts = [iris, iris * [1, 1, 1, 2]]
    bounds = [BayesianGaussianMixture(**shared).fit(X).lower_bound_ for X in parts]
    wanted = log_evidence(parts[0]) - log_evidence(parts[1])
    assert bounds[0] - bounds[1] == pytest.approx(wanted, rel=1e-9)


def test_the_bound_never_falls_and_components_vanish(iris):
    model = BayesianGaussianMixture(n_components=8, weight_concentration_prior=1e-2, random_state=0).fit(iris)
    assert (np.diff(model.lower_bounds_) > -1e-6).all()
    assert model.certificate_.holds
    assert (model.weights_ > 0.01).sum() < 8
    assert model.weights_.sum() == pytest.approx(1)


def test_weights_of_rows_and_float32(iris):
    w = 1 + np.arange(len(iris)) % 2
    weighted = BayesianGaussianMixture(n_components=1).fit(iris, sample_weight=w)
    repeated = BayesianGaussianMixture(n_components=1).fit(np.repeat(iris, w, axis=0))
    np.testing.assert_allclose(weighted.covariances_, repeated.covariances_, rtol=1e-8)
    assert audit(weighted, iris, sample_weight=w).holds
    assert not audit(weighted, iris).holds
    narrow = BayesianGaussianMixture(n_components=2, random_state=0).fit(iris.astype(np.float32))
    assert audit(narrow, iris.astype(np.float32)).holds


def test_wrong_models_that_look_right(iris):
    theirs = mixture.BayesianGaussianMixture(n_components=2, tol=1e-9, max_iter=2000, random_state=0).fit(iris)
    assert audit(theirs, iris).holds
    early = mixture.BayesianGaussianMixture(n_components=3, max_iter=2, init_params="random", random_state=0)
    with pytest.warns(UserWarning, match="converge"):
        early.fit(iris)
    wrong = [early]
    for name in ("means_", "covariances_", "mean_precision_", "degrees_of_freedom_", "precisions_", "weights_",
                 "precisions_cholesky_", "mean_prior_", "covariance_prior_", "lower_bound_"):  # fmt: skip
        model = copy.deepcopy(theirs)
        setattr(model, name, getattr(model, name) * 1.02)
        wrong.append(model)
    for settings in ({"mean_precision_prior": 3.0}, {"weight_concentration_prior": 5.0}, {"reg_covar": 0.1}):
        wrong.append(copy.deepcopy(theirs).set_params(**settings))
    for model in wrong:
        assert not audit(model, iris).holds


def test_what_is_refused(iris):
    for settings, words in (
        ({"degrees_of_freedom_prior": 2.0}, "should be greater than 3"),
        ({"mean_prior": [0.0]}, "mean_prior"),
        ({"covariance_prior": np.eye(3)}, "covariance_prior"),
        ({"n_components": 151}, "fewer rows"),
        ({"weight_concentration_prior": 0.0}, "weight_concentration_prior"),
        ({"covariance_type": "round"}, "covariance_type"),
    ):
        with pytest.raises(DataError, match=words):
            BayesianGaussianMixture(**settings).fit(iris)
    with pytest.raises(DataError, match="positive definite"):
        BayesianGaussianMixture(reg_covar=0.0).fit(np.column_stack([iris, np.ones(len(iris))]))


def test_a_warm_start_goes_on(iris):
    model = BayesianGaussianMixture(n_components=3, random_state=0, warm_start=True).fit(iris)
    first = model.n_iter_
    assert model.fit(iris).n_iter_ < max(first, 4)


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_rows_without_spread_are_audited_as_they_are_fitted(kind):
    X = np.zeros((6, 2))
    model = BayesianGaussianMixture(covariance_type=kind, random_state=0).fit(X)
    assert audit(model, X).holds == model.certificate_.holds


def test_draws_change_as_little_as_the_covariances_they_are_from():
    """Eigenvectors of covariances that are next to spheres turn at the last digit; triangular roots do not."""
    X = np.random.default_rng(0).normal(size=(40, 3))
    model = BayesianGaussianMixture(n_components=1, reg_covar=1e6, random_state=0).fit(X)
    before = model.sample(20, random_state=1)[0]
    model.covariances_ = model.covariances_ * (1 + 1e-7 * np.random.default_rng(1).normal(size=(3, 3)) @ np.eye(3))
    np.testing.assert_allclose(model.sample(20, random_state=1)[0], before, rtol=1e-4, atol=1e-2)
