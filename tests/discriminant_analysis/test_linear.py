"""Linear discriminant analysis: known solutions, scikit-learn's, Ledoit & Wolf's shrinkage, and wrong models."""

import copy
import warnings
from fractions import Fraction

import numpy as np
import pytest
from scipy import linalg, sparse
from sklearn import discriminant_analysis
from sklearn.cluster import KMeans
from sklearn.covariance import OAS
from sklearn.datasets import load_digits, load_iris, load_wine

from certifit import DataError, LinearDiscriminantAnalysis, audit

SETTINGS = [
    {},
    {"store_covariance": True},
    {"solver": "lsqr"},
    {"solver": "eigen"},
    {"solver": "lsqr", "shrinkage": "auto"},
    {"solver": "eigen", "shrinkage": "auto"},
    {"solver": "eigen", "shrinkage": 0.3},
    {"solver": "lsqr", "shrinkage": 1.0},
    {"solver": "eigen", "covariance_estimator": OAS()},
]
TABLES = {"iris": load_iris, "wine": load_wine}


def labelled(name, classes=None):
    X, y = TABLES[name](return_X_y=True)
    return (X, y) if classes is None else (X[y < classes], y[y < classes])


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("name", TABLES)
def test_it_is_scikit_learns(name, settings, classes, given):
    X, y = labelled(name, classes)
    priors = np.arange(1.0, classes + 1) / np.arange(1.0, classes + 1).sum() if given else None
    mine = LinearDiscriminantAnalysis(priors=priors, **settings).fit(X, y)
    theirs = discriminant_analysis.LinearDiscriminantAnalysis(priors=priors, **settings).fit(X, y)
    assert mine.certificate_.holds
    assert audit(mine, X, y).holds
    assert audit(theirs, X, y).holds
    np.testing.assert_allclose(mine.predict_proba(X), theirs.predict_proba(X), atol=1e-10)
    np.testing.assert_allclose(
        mine.predict_log_proba(X).max(axis=1), theirs.predict_log_proba(X).max(axis=1), atol=1e-9
    )
    for attribute in ("means_", "priors_", "covariance_", "xbar_", "explained_variance_ratio_"):
        if hasattr(theirs, attribute):
            np.testing.assert_allclose(getattr(mine, attribute), getattr(theirs, attribute), rtol=1e-8, atol=1e-10)
    if settings.get("solver") != "lsqr":
        np.testing.assert_allclose(np.abs(mine.transform(X)), np.abs(theirs.transform(X)), atol=1e-8)
        assert [*mine.get_feature_names_out()] == [*theirs.get_feature_names_out()]


def test_the_textbooks_formulas():
    """Directions are scipy's generalised eigenvectors of B against W, and coefficients solve W β = m - m̄."""
    X, y = labelled("wine")
    model = LinearDiscriminantAnalysis().fit(X, y)
    means = np.stack([X[y == c].mean(axis=0) for c in range(3)])
    W = sum((X[y == c] - means[c]).T @ (X[y == c] - means[c]) for c in range(3)) / len(X)
    away = means - X.mean(axis=0)
    B = (away.T * np.bincount(y)) @ away / len(X)
    values, vectors = linalg.eigh(B, W)
    np.testing.assert_allclose(model.coef_, linalg.solve(W, away.T).T, rtol=1e-7)
    np.testing.assert_allclose(np.abs(model.scalings_), np.abs(vectors[:, :-3:-1]), atol=1e-8)
    np.testing.assert_allclose(model.explained_variance_ratio_, values[:-3:-1] / values.sum(), rtol=1e-10)
    # The smallest value of the objective is minus half the sum of the ratios.
    assert model.objective(X, y).total == pytest.approx(-values.sum() / 2, rel=1e-10)


def test_two_gaussians_far_from_zero():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 3)), np.arange(400) % 2
    X[:, 0] += 2 * y
    for solver in ("svd", "lsqr", "eigen"):
        near = LinearDiscriminantAnalysis(solver).fit(X, y)
        far = LinearDiscriminantAnalysis(solver).fit(X + 1e7, y)
        assert far.certificate_.holds
        assert audit(far, X + 1e7, y).holds
        np.testing.assert_allclose(far.coef_, near.coef_, atol=1e-7)


def test_weights_count_rows():
    X, y = labelled("iris")
    w = np.arange(len(y)) % 3
    for settings in SETTINGS[:-1]:
        weighted = LinearDiscriminantAnalysis(**settings).fit(X, y, w)
        repeated = LinearDiscriminantAnalysis(**settings).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
        assert audit(weighted, X, y, w).holds
        np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-8)
        assert not audit(weighted, X, y).holds


def test_sparse_and_float32_rows():
    X, y = load_digits(return_X_y=True)
    whole = LinearDiscriminantAnalysis().fit(X, y)
    for table in (sparse.csr_array(X), X.astype(np.float32), np.asfortranarray(X)):
        other = LinearDiscriminantAnalysis().fit(table, y)
        assert other.certificate_.holds
        assert audit(other, table, y).holds
        np.testing.assert_allclose(other.coef_, whole.coef_, atol=1e-8)
        np.testing.assert_allclose(other.transform(table), whole.transform(X), atol=1e-4)


def test_collinear_and_constant_columns_are_left_out():
    X, y = labelled("iris")
    plain = LinearDiscriminantAnalysis().fit(X, y)
    wide = np.column_stack([X, X[:, 0] + X[:, 1], np.full(len(X), 0.1), 3 * X[:, 2] - X[:, 3]])
    model = LinearDiscriminantAnalysis().fit(wide, y)
    assert model.certificate_.facts["directions that vary within classes"] == "4 of 7"
    assert audit(model, wide, y).holds
    np.testing.assert_allclose(model.predict_proba(wide), plain.predict_proba(X), atol=1e-9)
    theirs = discriminant_analysis.LinearDiscriminantAnalysis().fit(wide, y)
    np.testing.assert_allclose(model.predict_proba(wide), theirs.predict_proba(wide), atol=1e-9)
    with pytest.raises(DataError, match="singular"):
        LinearDiscriminantAnalysis("eigen").fit(wide, y)
    for settings in ({"solver": "lsqr"}, {"solver": "eigen", "shrinkage": 0.01}):
        other = LinearDiscriminantAnalysis(**settings).fit(wide, y)
        assert audit(other, wide, y).holds


def test_more_columns_than_rows():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(30, 80)), np.arange(30) % 3
    model = LinearDiscriminantAnalysis().fit(X, y)
    theirs = discriminant_analysis.LinearDiscriminantAnalysis().fit(X, y)
    assert model.certificate_.holds
    assert audit(model, X, y).holds
    assert audit(theirs, X, y).holds
    np.testing.assert_allclose(model.decision_function(X), theirs.decision_function(X), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("settings", [{}, {"solver": "eigen"}, {"solver": "lsqr", "shrinkage": 0.2}], ids=str)
def test_wrong_models_that_look_right(settings):
    X, y = labelled("wine")
    theirs = discriminant_analysis.LinearDiscriminantAnalysis(**settings).fit(X, y)
    wrong = []
    for attribute in ("coef_", "intercept_", "means_", "priors_", "scalings_", "covariance_", "xbar_"):
        if hasattr(theirs, attribute):
            model = copy.deepcopy(theirs)
            setattr(model, attribute, getattr(model, attribute) * 1.01)
            wrong.append(model)
    other = copy.deepcopy(theirs)
    other.set_params(priors=[0.2, 0.3, 0.5])
    unbiased = copy.deepcopy(theirs)
    unbiased.coef_ = theirs.coef_ * (len(X) - 3) / len(X)  # W with n - k in place of n, as other programs have it
    for model in (*wrong, other, unbiased):
        assert not audit(model, X, y).holds
    if "scalings_" in vars(theirs):
        swapped = copy.deepcopy(theirs)
        swapped.scalings_ = theirs.scalings_[:, ::-1]
        assert not audit(swapped, X, y).holds
        fewer = copy.deepcopy(theirs)
        fewer.scalings_ = theirs.scalings_[:, :1]
        assert not audit(fewer, X, y).holds


@pytest.mark.parametrize("seed", range(40))
def test_honest_fits_hold(seed):
    """Tables of many shapes, scales and ranks; predictions are those of the pseudo-inverse in scaled columns."""
    rng = np.random.default_rng(seed)
    n, d, k = int(rng.integers(8, 60)), int(rng.integers(1, 12)), int(rng.integers(2, 5))
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) * 10.0 ** rng.uniform(-4, 4, d) + 10.0 ** rng.uniform(-2, 4)
    if seed % 3 == 0:
        X = np.column_stack([X, X @ rng.normal(size=(d, 2))])
    y = np.arange(n) % k
    X += (rng.normal(size=(k, X.shape[1])) * X.std(axis=0))[y] * 10.0 ** rng.uniform(-3, 2)
    w = rng.integers(1, 4, n).astype(float) if seed % 2 else np.ones(n)
    settings = [
        {},
        {"solver": "lsqr"},
        {"solver": "eigen", "shrinkage": 0.1},
        {"solver": "lsqr", "shrinkage": "auto"},
    ]
    model = LinearDiscriminantAnalysis(**settings[seed % 4]).fit(X, y, w)
    assert model.certificate_.holds, model.certificate_
    checked = audit(model, X, y, w)
    assert checked.holds, checked
    model.coef_ = model.coef_ * (1 + 1e-3)
    assert not audit(model, X, y, w).holds


def test_what_is_refused():
    X, y = labelled("iris")
    with pytest.raises(NotImplementedError, match="shrinkage"):
        LinearDiscriminantAnalysis(shrinkage="auto").fit(X, y)
    for settings, words in (
        ({"priors": [0.5, 0.5]}, "priors"),
        ({"priors": [0.5, -0.1, 0.6]}, "non-negative"),
        ({"n_components": 3}, "n_components"),
        ({"covariance_estimator": OAS()}, "svd"),
        ({"solver": "lsqr", "shrinkage": 0.1, "covariance_estimator": OAS()}, "Only one"),
        ({"solver": "qr"}, "solver"),
        ({"solver": "lsqr", "covariance_estimator": KMeans(2)}, "no covariance_"),
    ):
        with pytest.raises(DataError, match=words):
            LinearDiscriminantAnalysis(**settings).fit(X, y)
    with pytest.raises(DataError, match="more than"):
        LinearDiscriminantAnalysis().fit(X[:3], [0, 1, 2])
    with pytest.raises(DataError, match="do not vary"):
        LinearDiscriminantAnalysis().fit(np.repeat(X[:2], 3, axis=0), np.repeat([0, 1], 3))
    with pytest.raises(DataError, match="sample_weight"):
        LinearDiscriminantAnalysis("lsqr", covariance_estimator=OAS()).fit(X, y, np.full(len(y), 2.0))


def test_priors_are_made_to_sum_to_one():
    X, y = labelled("iris")
    with pytest.warns(UserWarning, match="sum"):
        model = LinearDiscriminantAnalysis(priors=[1, 1, 2]).fit(X, y)
    np.testing.assert_allclose(model.priors_, [0.25, 0.25, 0.5])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert audit(model, X, y).holds


def test_rows_that_differ_in_their_last_digits_have_the_covariance_of_exact_arithmetic():
    # The class means lie between two numbers of float64, a hundredth of a deviation from the nearest.
    X = np.array([[-0.23577979216797026], [-0.23577979216797576], [-0.23577979216797], [-0.23577979216797088],
                  [-0.2357797921679731]])  # fmt: skip
    y, w = np.array([2, 1, 2, 0, 2]), np.array([1.0, 1.0, 1.0, 1.0, 2.0])
    model = LinearDiscriminantAnalysis(store_covariance=True).fit(X, y, w)
    x, v = [Fraction(float(value)) for value in X[y == 2, 0]], [Fraction(1), Fraction(1), Fraction(2)]
    mean = sum(a * b for a, b in zip(v, x, strict=True)) / sum(v)
    within = sum(a * (b - mean) ** 2 for a, b in zip(v, x, strict=True)) / 6  # the other classes have one row each
    np.testing.assert_allclose(model.covariance_[0, 0], float(within), rtol=1e-12)
    assert audit(model, X, y, w).holds


def test_directions_of_rows_that_hardly_differ_far_from_zero():
    """Their deviations are a hundred or so last digits of their means, which the means therefore do not tell."""
    rng = np.random.default_rng(2)
    for _ in range(10):
        y = np.arange(9) % 3
        X = 1e6 + 2.0**-26 * (rng.integers(-2, 3, size=(9, 4)) + y[:, None] * [1, 0, 2, 0])
        model = LinearDiscriminantAnalysis("eigen", shrinkage=0.03).fit(X, y)
        # The same rows about 1e6 are whole numbers, of which nothing is rounded; directions do not change.
        near = LinearDiscriminantAnalysis("eigen", shrinkage=0.03).fit((X - 1e6) * 2.0**26, y)
        np.testing.assert_allclose(
            model.explained_variance_ratio_, near.explained_variance_ratio_, rtol=1e-6, atol=1e-9
        )
        assert model.certificate_.holds
        assert audit(model, X, y).holds


def test_sparse_rows_far_from_zero_keep_their_digits():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(12, 4)) * [1e-3, 1.0, 1e2, 1e-1] + [1e6, 1e4, 1e7, 1e5]
        y = np.arange(12) % 3
        model = LinearDiscriminantAnalysis().fit(sparse.csr_array(X), y)
        found = audit(model, sparse.csr_array(X), y)
        assert found.holds == model.certificate_.holds, found.failures()


def test_an_objective_has_the_digits_that_the_covariance_leaves():
    """Beside weights of seven decades the classes hardly spread across: fit and audit agree as far as they say."""
    X = np.array([[1664.88306458, 1665.59337445], [1663.93812619, 1664.36052241], [1667.14327176, 1669.25830672],
                  [1666.99481107, 1665.75817995], [1665.61433428, 1666.96207646]])  # fmt: skip
    y, w = np.array([1, 1, 2, 0, 2]), np.array([218.3, 29.4, 1.39e-4, 30.1, 3.85])
    model = LinearDiscriminantAnalysis(solver="lsqr").fit(X, y, w)
    found = audit(model, X, y, w)
    assert found.holds
    assert model.certificate_.holds
    apart = abs(found.objective - model.certificate_.objective)
    lost = found.limit - found.tol * abs(found.objective)
    assert apart <= lost < 1e-3 * abs(found.objective)
    assert lost > 1e-9 * abs(found.objective)
    assert found.bound <= min(found.objective, model.certificate_.objective)


def test_a_constant_column_of_huge_values_leaves_no_room_for_a_wrong_mean():
    t = np.repeat([0, 1], 8)
    Z = np.column_stack([np.random.default_rng(0).normal(size=16) + t, np.full(16, 3e20)])
    model = LinearDiscriminantAnalysis().fit(Z, t)
    assert model.certificate_.holds
    assert audit(model, Z, t).holds
    for name in ("means_", "xbar_"):
        wrong = copy.deepcopy(model)
        getattr(wrong, name)[..., 1] += 2e5
        assert not audit(wrong, Z, t).holds
