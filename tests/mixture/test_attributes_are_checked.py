"""Nothing of a mixture can be wrong unseen, saddles are no maxima, and honest fits pass."""

import copy
import warnings

import numpy as np
import pytest
from sklearn import mixture

from certifit import DataError, GaussianMixture, Mixture, audit, compare
from tests.mixture.mixture_tables import every_shape, two_groups


# ------------------------------------------------------------------------------------------------ saddles
@every_shape
def test_equal_components_are_a_saddle(kind):
    """k times the likeliest single Gaussian: EM gains nothing there, and two groups are well apart."""
    X = two_groups()
    single = GaussianMixture(1, covariance_type=kind).fit(X)
    model = copy.deepcopy(single).set_params(n_components=2)
    model.weights_, model.means_ = np.full(2, 0.5), np.repeat(single.means_, 2, axis=0)
    if kind != "tied":
        model.covariances_ = np.repeat(single.covariances_, 2, axis=0)
    failures = audit(model, X).failures()
    assert any("a saddle: moving components 0 and 1 apart gains" in words for words in failures)
    precisions = single.precisions_ if kind == "tied" else np.repeat(single.precisions_, 2, axis=0)
    start = {"weights_init": [0.5, 0.5], "means_init": model.means_, "precisions_init": precisions}
    parted = GaussianMixture(2, covariance_type=kind, **start).fit(X)  # leaves the saddle
    usual = GaussianMixture(2, covariance_type=kind, random_state=0).fit(X)
    assert parted.certificate_.holds
    assert audit(parted, X).holds
    assert parted.lower_bound_ > single.lower_bound_ + 0.1
    np.testing.assert_allclose(parted.lower_bound_, usual.lower_bound_, atol=1e-3)
    theirs = mixture.GaussianMixture(2, covariance_type=kind, tol=1e-9, reg_covar=0.0, **start).fit(X)
    assert any("a saddle" in words for words in audit(theirs, X).failures())


def test_a_component_without_weight_is_a_saddle_too():
    X = two_groups()
    model = GaussianMixture(2, weights_init=[1.0, 0.0], random_state=0).fit(X)
    usual = GaussianMixture(2, random_state=0).fit(X)
    np.testing.assert_allclose(model.lower_bound_, usual.lower_bound_, atol=1e-3)
    assert audit(model, X).holds


@pytest.mark.parametrize("seed", range(4))
@every_shape
def test_honest_maxima_hold(kind, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, 2)) * 10.0 ** rng.integers(-6, 7) + rng.choice([0.0, 1e8])
    X[rng.random(X.shape) < 0.05] = np.nan
    w = rng.integers(0, 3, 80).astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # collapsed components are named
        model = GaussianMixture(3, covariance_type=kind, random_state=seed, max_iter=5000).fit(X, sample_weight=w)
    checked = audit(model, X, sample_weight=w)
    assert model.certificate_.holds == checked.holds, (model.certificate_.failures(), checked.failures())
    assert checked.holds, checked.failures()


# ------------------------------------------------------------------------------------------------ other libraries
@every_shape
@pytest.mark.parametrize("reg_covar", [0.0, 1e-6, 0.5])
def test_scikit_learns_fixed_point(kind, reg_covar):
    """Its steps add reg_covar to every variance: where that matters, its result is no maximum of the likelihood."""
    X = two_groups()
    settings = {"tol": 1e-10, "max_iter": 5000, "random_state": 0}
    theirs = mixture.GaussianMixture(2, covariance_type=kind, reg_covar=reg_covar, **settings).fit(X)
    checked = audit(theirs, X, tol=1e-6)
    assert checked.holds, checked.failures()
    assert "its own EM steps" in checked.claim
    np.testing.assert_allclose(-checked.objective, theirs.score(X), rtol=1e-10)
    other = copy.deepcopy(theirs).set_params(reg_covar=reg_covar + 0.1)
    assert not audit(other, X, tol=1e-6).holds
    for name in ("weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_", "lower_bound_"):
        wrong = copy.deepcopy(theirs)
        value = np.array(getattr(wrong, name))
        value.flat[0] *= 1.05
        setattr(wrong, name, value)
        assert not audit(wrong, X, tol=1e-6).holds, name


def test_equal_components_that_added_variances_hold_together_are_no_saddle():
    """scikit-learn's own steps take its components together again; the likelihood alone would part them."""
    X = np.random.default_rng(0).normal(size=(200, 4))
    settings = {"reg_covar": 0.5, "tol": 1e-10, "max_iter": 5000, "random_state": 0}
    theirs = mixture.GaussianMixture(2, **settings).fit(X)
    apart = {"means_init": theirs.means_ + np.array([[0.3], [-0.3]]), "weights_init": [0.5, 0.5]}
    again = mixture.GaussianMixture(2, **settings, **apart).fit(X)
    np.testing.assert_allclose(again.lower_bound_, theirs.lower_bound_, rtol=1e-7)
    assert audit(theirs, X).holds


# ------------------------------------------------------------------------------------------------ settings
@pytest.mark.parametrize("library", [GaussianMixture, mixture.GaussianMixture])
def test_shapes_are_those_of_the_settings(library):
    X = two_groups()
    model = library(2, random_state=0, tol=1e-8, max_iter=2000).fit(X)
    for settings in ({"n_components": 3}, {"covariance_type": "diag"}):
        with pytest.raises(DataError, match="as n_components="):
            audit(copy.deepcopy(model).set_params(**settings), X)


def test_reg_covar_is_that_of_the_fit():
    X = two_groups()
    model = GaussianMixture(2, random_state=0).fit(X)
    assert not audit(model.set_params(reg_covar=0.1), X).holds


# ------------------------------------------------------------------------------------------------ imagined rows
@pytest.mark.parametrize("family", [["gaussian", "bernoulli", "categorical", "poisson"], ["poisson", "gaussian"] * 2])
def test_imagined_rows_and_units_are_checked(family):
    rng = np.random.default_rng(0)
    y = np.arange(120) % 2
    parts = {
        "gaussian": rng.normal(3 * y, 1.0),
        "bernoulli": (rng.random(120) < 0.2 + 0.5 * y).astype(float),
        "categorical": rng.integers(0, 2 + y).astype(float),
        "poisson": rng.poisson(2 + 4 * y).astype(float),
    }
    X = np.column_stack([parts[name] for name in family])
    model = Mixture(family, random_state=0).fit(X)
    assert audit(model, X).holds
    for name in model.prior_:
        for damage in (lambda a: a * 1.01, lambda a: a + 1):
            wrong = copy.deepcopy(model)
            before = np.asarray(wrong.prior_[name], float)
            wrong.prior_[name] = damage(before)
            if not np.array_equal(before, wrong.prior_[name]):
                assert not audit(wrong, X).holds, name
    wrong = copy.deepcopy(model)
    wrong.parameter_names_ = wrong.parameter_names_[::-1]
    assert not audit(wrong, X).holds
    with pytest.raises(DataError, match="n_components, family and the rows"):
        audit(copy.deepcopy(model).set_params(n_components=3), X)


@pytest.mark.parametrize("offset", [0.0, 1e8, 1e12, 1e14])
@pytest.mark.parametrize("seed", range(2))
def test_far_from_0_fit_and_audit_say_the_same(offset, seed):
    X = two_groups(120, seed) + offset
    for model in (Mixture("gaussian", 2, random_state=0), GaussianMixture(2, random_state=0)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X)
        assert model.certificate_.holds == audit(model, X).holds
        assert offset > 1e8 or model.certificate_.holds


def test_mixtures_are_compared_only_with_those_of_the_same_problem():
    """Different numbers, shapes and penalties are different problems; different starts are not."""
    X = np.random.default_rng(0).normal(size=(60, 2)) + np.repeat([[0.0], [6.0], [12.0]], 20, axis=0)
    models = {
        "one": GaussianMixture(2, random_state=0),
        "another start": GaussianMixture(2, random_state=1, init_params="random_from_data"),
        "three": GaussianMixture(3, random_state=0),
        "diagonal": GaussianMixture(2, covariance_type="diag", random_state=0),
        "penalised": GaussianMixture(2, reg_covar=0.1, random_state=0),
        "scikit-learn's": mixture.GaussianMixture(2, random_state=0),
    }
    table = compare({name: model.fit(X) for name, model in models.items()}, X, show=False)
    problems = list(table.problems.values())
    assert problems[0] == problems[1]
    assert len(set(problems)) == 5
    assert any("reg_covar=0.1" in words for words in table.differences())
