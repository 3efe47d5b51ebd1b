"""Generative against discriminative (Ng & Jordan 2001): one form, two fits, errors that cross as rows grow."""

import numpy as np
import pytest
from scipy.special import expit

from certifit import DataError, GaussianNB, LogisticRegression
from certifit.naive_bayes.plots import learning_curves, plot_learning_curves


def independent(n, d, seed):
    """Two classes whose columns are independent Gaussians of equal variance: naive Bayes' own assumption."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    return rng.normal(size=(n, d)) + 0.5 * y[:, None], y


def repeated(n, d, copies, seed):
    """Columns that are independent within a class, and noisy copies of one more, each of which naive Bayes counts."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    own = rng.normal(size=(n, d)) + 0.6 * y[:, None]
    shared = rng.normal(size=(n, 1)) + 0.6 * y[:, None]
    return np.column_stack([own, shared + 0.3 * rng.normal(size=(n, copies))]), y


def test_both_fits_go_to_the_same_boundary_where_the_assumption_holds():
    """For x | c ~ N(μ_c, I): β = μ₁ - μ₀ = 0.5 in every column; both errors fall as 1/√n."""
    for n, tolerance in ((2_000, 0.25), (200_000, 0.025)):
        X, y = independent(n, 3, seed=0)
        bayes, logit = GaussianNB(variance="shared").fit(X, y), LogisticRegression(penalty=None).fit(X, y)
        beta = bayes.coef_[1] - bayes.coef_[0]
        np.testing.assert_allclose(beta, np.full(3, 0.5), atol=tolerance)
        np.testing.assert_allclose(logit.coef_[0], np.full(3, 0.5), atol=tolerance)
        level = bayes.intercept_[1] - bayes.intercept_[0]
        np.testing.assert_allclose(bayes.predict_proba(X)[:, 1], expit(X @ beta + level), rtol=1e-9)


def test_naive_bayes_needs_fewer_rows_where_its_assumption_holds():
    X, y = independent(3_000, 40, seed=1)
    curves = learning_curves(X, y, [40, 80, 160], repeats=8)
    assert (curves.generative.mean(axis=1) < curves.discriminative.mean(axis=1) - 0.01).all()


def test_the_errors_cross_where_it_does_not():
    X, y = repeated(6_000, 20, 5, seed=2)
    curves = learning_curves(X, y, [20, 40, 80, 1_000, 4_000], repeats=8)
    gap = curves.discriminative.mean(axis=1) - curves.generative.mean(axis=1)
    assert (gap[:3] > 0.01).all()
    assert (gap[3:] < -0.02).all()
    assert curves.crossing == 1_000


def test_the_conditional_likelihood_of_logistic_regression_is_the_larger_one():
    """It maximises what naive Bayes of the same form only happens to reach."""
    X, y = repeated(2_000, 5, 10, seed=3)
    bayes, logit = GaussianNB(variance="shared").fit(X, y), LogisticRegression(penalty=None).fit(X, y)
    rows = np.arange(len(y))
    assert logit.predict_log_proba(X)[rows, y].sum() > bayes.predict_log_proba(X)[rows, y].sum() + 100


def test_the_picture():
    X, y = independent(300, 2, seed=4)
    curves = learning_curves(X, y, [10, 100], repeats=2)
    ax = plot_learning_curves(curves)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), curves.generative.mean(axis=1))
    np.testing.assert_allclose(ax.lines[1].get_ydata(), curves.discriminative.mean(axis=1))
    with pytest.raises(DataError, match="at most the 200 training rows"):
        learning_curves(X, y, [10, 1000])
