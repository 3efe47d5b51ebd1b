"""Gaussian mixtures of degenerate tables: outliers, equal rows, constant columns; and what is refused."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from certifit.exceptions import DataError
from certifit.mixture.gaussian.gaussian_mixture import GaussianMixture
from tests.mixture.mixture_tables import audit, every_shape, two_groups


@pytest.mark.parametrize("size", [1e12, 1e140])
def test_a_far_outlier_is_one_component_and_named(size):
    X = np.concatenate([two_groups(), [[size, -size]]])
    with pytest.warns(ConvergenceWarning, match=r"component \d is held up by reg_covar alone: row 200\.") as caught:
        model = GaussianMixture(3, random_state=0).fit(X)
    assert caught[0].filename == __file__
    assert "row 200" in " ".join(map(str, model.certificate_.facts.values()))
    others = np.sort(model.means_[np.abs(model.means_[:, 0]) < 1e6, 0])
    plain = GaussianMixture(2, random_state=0).fit(two_groups())
    np.testing.assert_allclose(others, np.sort(plain.means_[:, 0]), atol=1e-3)
    assert model.certificate_.holds
    assert audit(model, X).holds


@every_shape
def test_more_components_than_distinct_rows(kind):
    X = np.repeat([[0.0, 0.0], [1.0, 1.0], [2.0, 5.0]], 5, axis=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = GaussianMixture(5, covariance_type=kind, random_state=0).fit(X)
    assert any("has no rows" in str(warning.message) for warning in caught)
    assert model.certificate_.holds
    assert np.isfinite(model.predict_proba(X)).all()
    np.testing.assert_allclose(np.sort(model.weights_), [0, 0, 1 / 3, 1 / 3, 1 / 3], atol=1e-12)


@every_shape
def test_identical_rows(kind):
    model = GaussianMixture(1, covariance_type=kind).fit(np.full((20, 2), 5.0))
    np.testing.assert_array_equal(model.means_, [[5, 5]])
    assert model.certificate_.holds


@pytest.mark.parametrize("reg", ["auto", 0])
def test_a_constant_column_is_no_collapse(reg):
    X = np.column_stack([two_groups(), np.full(200, 7.0)])
    model = GaussianMixture(2, reg_covar=reg, random_state=0).fit(X)
    assert model.certificate_.holds
    plain = GaussianMixture(2, reg_covar=reg, random_state=0).fit(X[:, :2])
    own, others = np.sort(model.predict_proba(X)), np.sort(plain.predict_proba(X[:, :2]))  # in either order
    np.testing.assert_allclose(own, others, atol=1e-6)


def test_a_start_that_collapses_is_held_by_the_penalty():
    X = two_groups()
    params = {
        "means_init": [[0, 0], [4, 3], X[7]],
        "precisions_init": np.eye(2) * np.array([1, 1, 1e8])[:, None, None],
    }
    for reg in ("auto", 0):
        with pytest.warns(ConvergenceWarning, match="component 2 is held up by reg_covar alone: rows? 7"):
            model = GaussianMixture(3, reg_covar=reg, **params).fit(X)
        assert model.certificate_.holds
        assert np.diff(model.lower_bounds_).min() >= -1e-12


def test_refusals():
    X = two_groups()
    bad = [
        ("covariance_type", "round", "one of"),
        ("init_params", "guess", "one of"),
        ("reg_covar", -1.0, "'auto' or a finite number of at least 0"),
        ("reg_covar", "none", "'auto' or a finite number of at least 0"),
        ("n_components", 0, "at least 1"),
        ("n_init", 0, "at least 1"),
        ("means_init", np.zeros((3, 2)), r"of shape \(1, 2\)"),
        ("weights_init", [-1.0], "not all of them 0"),
        ("precisions_init", -np.eye(2)[None], "positive definite"),
        ("precisions_init", [[[1.0, 0.5], [0.0, 1.0]]], "symmetric"),
    ]
    for name, value, words in bad:
        with pytest.raises(DataError, match=words):
            GaussianMixture(**{name: value}).fit(X)
    with pytest.raises(DataError, match="fewer rows than components"):
        GaussianMixture(3).fit(X[:2])
    with pytest.raises(DataError, match="overflow"):
        GaussianMixture(1).fit(np.concatenate([X, [[1e200, 0.0]]]))
    for scale in (1e-200, 1e154, [1.0, 1e-160]):
        with pytest.raises(DataError, match=r"quartiles are from .* wanted 1e-130 to"):
            GaussianMixture(1).fit(X * scale)
    with pytest.raises(DataError, match="column 1 of X without a single value"):
        GaussianMixture(1).fit(np.column_stack([X[:, 0], np.full(len(X), np.nan)]))


def test_rows_immensely_far_from_the_others_are_refused_in_words():
    """Beside 1e24 of variance along the outlier's direction, the other variances are rounding."""
    X = np.random.default_rng(0).normal(size=(6, 5))
    X[0] *= 1e13
    with pytest.raises(DataError, match="immensely far from the others"):
        GaussianMixture(random_state=0).fit(X)


def test_a_covariance_that_the_next_step_would_lose_does_not_hold():
    """Without the far rows' scatter the model is definite; with it, one more step is not."""
    X = np.random.default_rng(0).normal(size=(30, 5))
    model = GaussianMixture(random_state=0).fit(X)
    X[0] *= 1e13
    found = audit(model, X)
    assert not found.holds
    assert "not definite after one step" in "".join(found.failures())
