"""Gaussian mixtures: published fits, scikit-learn's, starts, and the objective that EM climbs."""

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn import mixture
from sklearn.exceptions import ConvergenceWarning

from certifit.exceptions import DataError
from certifit.mixture.gaussian.gaussian_mixture import GaussianMixture
from tests.mixture.mixture_tables import (
    IRIS,
    audit,
    covariances,
    every_shape,
    joint,
    old_faithful,
    two_groups,
    with_missing,
)


# ------------------------------------------------------------------------------------------ published, and peers
@pytest.mark.parametrize(("k", "kind", "printed"), [(3, "tied", -1126.316), (2, "full", -1130.264)])
def test_old_faithful(k, kind, printed):
    """The maxima that R's package mclust prints for its models EEE and VVV."""
    geyser = old_faithful()
    assert geyser.shape == (272, 2)
    model = GaussianMixture(k, covariance_type=kind, reg_covar=0, tol=1e-8, random_state=0).fit(geyser)
    assert model.loglikelihood_ == pytest.approx(printed, abs=5e-4)
    assert model.certificate_.holds


@every_shape
def test_iris_like_scikit_learn(kind):
    """From the same start, to the same maximum of the same objective (at a fixed reg_covar)."""
    start = {"means_init": IRIS[[10, 60, 120]], "weights_init": np.full(3, 1 / 3)}
    params = {"n_components": 3, "covariance_type": kind, "reg_covar": 1e-6, "max_iter": 5000, "random_state": 0}
    ours = GaussianMixture(**params, **start, tol=1e-10).fit(IRIS)
    theirs = mixture.GaussianMixture(**params, means_init=ours.means_, tol=1e-12).fit(IRIS)
    assert ours.score(IRIS) == pytest.approx(theirs.score(IRIS), abs=2e-6)
    assert audit(theirs, IRIS, tol=1e-4).holds
    assert ours.bic(IRIS) == pytest.approx(theirs.bic(IRIS), abs=2e-3)
    assert ours.n_parameters() == theirs._n_parameters()
    for name in ("covariances_", "precisions_", "precisions_cholesky_", "means_", "weights_"):
        assert getattr(ours, name).shape == getattr(theirs, name).shape, name
    theirs.weights_, theirs.means_, theirs.covariances_ = ours.weights_, ours.means_, ours.covariances_
    theirs.precisions_cholesky_ = ours.precisions_cholesky_
    np.testing.assert_allclose(ours.predict_proba(IRIS), theirs.predict_proba(IRIS), atol=1e-10)
    np.testing.assert_allclose(ours.score_samples(IRIS), theirs.score_samples(IRIS), rtol=1e-10)
    np.testing.assert_array_equal(ours.predict(IRIS), theirs.predict(IRIS))


@pytest.mark.parametrize("init", ["kmeans", "k-means++", "random", "random_from_data", "hierarchical"])
def test_starts(init):
    X = two_groups()
    model = GaussianMixture(2, init_params=init, n_init=3, random_state=0).fit(X)
    assert model.certificate_.holds
    assert model.converged_
    assert sorted(np.bincount(model.predict(X)).tolist()) == [100, 100]


def test_the_best_of_several_starts_is_kept():
    params = {"covariance_type": "spherical", "init_params": "random", "random_state": 3, "tol": 1e-4}
    many = GaussianMixture(5, n_init=4, **params).fit(IRIS)
    one = GaussianMixture(5, n_init=1, **params).fit(IRIS)
    assert many.lower_bound_ > one.lower_bound_ + 1e-3
    assert many.certificate_.objective == pytest.approx(-many.lower_bound_, rel=1e-12)


def test_warm_start_goes_on_from_the_last_fit():
    with pytest.warns(ConvergenceWarning):
        model = GaussianMixture(3, max_iter=2, warm_start=True, random_state=0).fit(IRIS)
    before = model.lower_bound_
    model.set_params(max_iter=1000).fit(IRIS)
    assert model.lower_bounds_[0] == pytest.approx(before, rel=1e-12)
    assert model.certificate_.holds


def test_another_shape_does_not_start_warm_nor_spoil_the_fit():
    """With as many components as columns, arrays of diagonal and of tied covariances look alike."""
    X = two_groups()
    model = GaussianMixture(2, covariance_type="diag", warm_start=True, random_state=0).fit(X)
    before = model.score_samples(X)
    model.set_params(covariance_type="tied")
    np.testing.assert_array_equal(model.score_samples(X), before)
    fresh = GaussianMixture(2, covariance_type="tied", random_state=0).fit(X)
    np.testing.assert_array_equal(model.fit(X).lower_bounds_, fresh.lower_bounds_)


def test_sampling():
    model = GaussianMixture(2, random_state=0).fit(two_groups())
    X, y = model.sample(20_000, random_state=0)
    again = GaussianMixture(2, means_init=model.means_, random_state=0).fit(X)
    np.testing.assert_allclose(again.means_, model.means_, atol=0.03)
    np.testing.assert_allclose(again.covariances_, model.covariances_, atol=0.03)
    np.testing.assert_allclose(np.bincount(y) / len(y), model.weights_, atol=0.02)
    for bad in (0, -1, 2.5):
        with pytest.raises(DataError, match="n_samples"):
            model.sample(bad)


# ------------------------------------------------------------------------------------------ the objective
@every_shape
def test_the_objective_is_what_it_says(kind):
    """Mean log-likelihood by SciPy, less the penalty with NumPy's inverses."""
    w = np.random.default_rng(0).exponential(size=len(IRIS))
    model = GaussianMixture(2, covariance_type=kind, reg_covar=0.01, random_state=0).fit(IRIS, sample_weight=w)
    data = w @ logsumexp(joint(model, IRIS), axis=1) / w.sum()
    penalty = 0.01 / 2 * np.mean([np.trace(np.linalg.inv(C)) for C in covariances(model)])
    assert model.lower_bound_ == pytest.approx(data - penalty, rel=1e-11)
    found = model.objective(IRIS, sample_weight=w)
    assert found.total == pytest.approx(penalty - data, rel=1e-11)
    assert found.penalty == pytest.approx(penalty, rel=1e-11)
    assert model.loglikelihood_ == pytest.approx(data * w.sum(), rel=1e-11)
    assert audit(model, IRIS, w).holds


@every_shape
@pytest.mark.parametrize("reg", [0.0, 1e-3, 0.1])
def test_em_never_falls_and_the_gradient_vanishes(kind, reg):
    """Against central differences of the objective along random directions, at a tight tolerance."""
    X = with_missing(IRIS, 0.05)
    model = GaussianMixture(2, covariance_type=kind, reg_covar=reg, tol=1e-13, max_iter=5000, random_state=0).fit(X)
    assert np.diff(model.lower_bounds_).min(initial=0.0) >= -1e-13
    rng = np.random.default_rng(0)
    for name in ("means_", "covariances_"):
        at = getattr(model, name)
        for _ in range(2):
            v = rng.normal(size=at.shape) * np.abs(at).mean()
            v = v if at.ndim < 2 or name == "means_" or at.shape[-1] != at.shape[-2] else v + np.swapaxes(v, -1, -2)
            values = []
            for h in (-1e-6, 1e-6):
                setattr(model, name, at + h * v)
                values.append(model.objective(X).total)
            setattr(model, name, at)
            assert abs(values[1] - values[0]) / 2e-6 < 1e-5


def test_units_do_not_matter():
    X = two_groups()
    plain = GaussianMixture(2, random_state=0).fit(X)
    for scale in (1e-9, 1e9, np.array([1e-9, 1e6])):
        model = GaussianMixture(2, random_state=0).fit(X * scale)
        np.testing.assert_allclose(model.means_, plain.means_ * scale, rtol=1e-9)
        np.testing.assert_allclose(model.predict_proba(X * scale), plain.predict_proba(X), atol=1e-9)


@every_shape
def test_far_from_the_origin(kind):
    """Standard deviation 1e-2 at 1e8: the same model as at 0, of rows rounded as they are there."""
    far = two_groups() * 1e-2 + 1e8
    near = far - 1e8  # exact
    model = GaussianMixture(2, covariance_type=kind, random_state=0).fit(far)
    plain = GaussianMixture(2, covariance_type=kind, random_state=0).fit(near)
    np.testing.assert_allclose(model.covariances_, plain.covariances_, rtol=1e-9)
    np.testing.assert_allclose(model.means_ - 1e8, plain.means_, atol=2e-8)
    np.testing.assert_allclose(model.predict_proba(far), plain.predict_proba(near), atol=1e-5)
    assert audit(model, far).holds


@every_shape
def test_means_that_cannot_be_stored_are_not_claimed(kind):
    """Doubles near 1e15 are 0.125 apart: the certificate is that of the rounded means, which are not at rest."""
    X = two_groups() + 1e15
    with pytest.warns(ConvergenceWarning, match="gain of one more EM step"):
        model = GaussianMixture(2, covariance_type=kind, random_state=0).fit(X)
    assert not audit(model, X).holds
    assert model.certificate_.objective == pytest.approx(audit(model, X).objective, rel=1e-9)
    assert len(model.lower_bounds_) == model.n_iter_ + 1


@every_shape
def test_narrow_components_far_apart(kind):
    """1e5 standard deviations between them: each is measured about its own mean, and nothing cancels."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3)) * 1e-2 + 1e3 * (np.arange(90) % 3)[:, None]
    model = GaussianMixture(3, covariance_type=kind, reg_covar=0, random_state=0).fit(X)
    S = np.stack([np.cov(X[j::3].T, ddof=0) for j in range(3)])
    expected = {
        "full": S,
        "tied": np.stack([S.mean(axis=0)] * 3),
        "diag": S * np.eye(3),
        "spherical": np.trace(S, axis1=1, axis2=2)[:, None, None] / 3 * np.eye(3),
    }[kind]
    floor = np.diag(model.reg_covar_)
    floor = floor.mean(axis=0).sum() * np.eye(3) if kind == "spherical" else floor
    found = covariances(model)[np.argsort(model.means_[:, 0])] - floor
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert audit(model, X).holds
    X = with_missing(X, 0.1)
    assert audit(GaussianMixture(3, covariance_type=kind, reg_covar=0, random_state=0).fit(X), X).holds
