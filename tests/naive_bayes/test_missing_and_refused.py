"""Naive Bayes with missing entries, and what must be refused."""

import pickle
from functools import partial

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn import naive_bayes as sk
from sklearn.exceptions import NotFittedError

from certifit import BernoulliNB, CategoricalNB, ComplementNB, DataError, GaussianNB, MultinomialNB, audit
from certifit.checkers.naive_bayes import adapter as auditing
from tests.naive_bayes.naive_bayes_models import AUDITORS, DISCRETE, digits, with_missing_entries


# --------------------------------------------------------------------------------------------- missing entries
def test_gaussian_leaves_missing_entries_out():
    X, y = with_missing_entries()
    model = GaussianNB(var_smoothing=1e-2).fit(X, y)
    for c in range(3):
        np.testing.assert_allclose(model.theta_[c], np.nanmean(X[y == c], axis=0), rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(
            model.var_[c] - model.epsilon_, np.nanvar(X[y == c], axis=0), rtol=1e-9, atol=1e-12
        )
    np.testing.assert_allclose(model.epsilon_, 1e-2 * np.nanvar(X, axis=0).max(), rtol=1e-12)
    expected = np.log(model.class_prior_) + np.nansum(
        stats.norm.logpdf(X[:, None, :], model.theta_, np.sqrt(model.var_)), axis=2
    )
    np.testing.assert_allclose(model.predict_joint_log_proba(X), expected, rtol=1e-11)
    assert auditing.audit_gaussian_nb(model, X, y, None, 1e-10).holds
    np.testing.assert_allclose(model.predict_proba(np.full((1, 40), np.nan)), [model.class_prior_], rtol=1e-14)


@pytest.mark.parametrize(("ours", "params"), [(BernoulliNB, {"binarize": 3.0}), (CategoricalNB, {})])
def test_counts_leave_missing_entries_out(ours, params):
    """Each column is as if fitted alone on the rows that have it; a row is scored by the columns it has."""
    X, y = with_missing_entries()
    model = ours(**params, class_prior=[0.2, 0.3, 0.5]).fit(X, y)
    total = np.tile(np.log([0.2, 0.3, 0.5]), (len(X), 1))
    for j in range(X.shape[1]):
        there = ~np.isnan(X[:, j])
        alone = getattr(sk, ours.__name__)(**params, class_prior=[0.2, 0.3, 0.5]).fit(X[there, j : j + 1], y[there])
        total[there] += alone.predict_joint_log_proba(X[there, j : j + 1]) - np.log([0.2, 0.3, 0.5])
    np.testing.assert_allclose(model.predict_joint_log_proba(X), total, rtol=1e-11)
    assert AUDITORS[ours](model, X, y, None, 1e-10).holds


@pytest.mark.parametrize("ours", [MultinomialNB, ComplementNB])
def test_a_missing_count_is_refused(ours):
    with pytest.raises(DataError, match="NaN in row 1"):
        ours().fit([[1.0, 2.0], [np.nan, 1.0]], [0, 1])


# -------------------------------------------------------------------------------------------------- bad input
@pytest.mark.parametrize(
    ("model", "words"),
    [
        (GaussianNB(priors=[0.5, 0.5]), "wanted 3 probabilities"),
        (GaussianNB(priors=[0.5, 0.2, 0.2]), "sum to 1"),
        (GaussianNB(var_smoothing=-1.0), "var_smoothing=-1.0"),
        (GaussianNB(variance="same"), "one of 'separate', 'shared'"),
        (BernoulliNB(alpha=-1.0), "at least 0"),
        (BernoulliNB(alpha=[1.0, 2.0]), "alpha of shape"),
        (BernoulliNB(binarize=None), "wanted 0 or 1"),
        (BernoulliNB(class_prior=[2.0, 1.0, 1.0]), "sum to 1"),
        (CategoricalNB(min_categories=2.5), "min_categories=2.5"),
    ],
)
def test_refused_settings(model, words):
    X, y = digits()
    with pytest.raises(DataError, match=words):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_refused_values():
    with pytest.raises(DataError, match="Negative values in data"):
        MultinomialNB().fit([[1.0, -2.0], [1.0, 1.0]], [0, 1])
    with pytest.raises(DataError, match="wanted category numbers"):
        CategoricalNB().fit([[1.0, -0.5], [1.0, 1.0]], [0, 1])
    with pytest.raises(DataError, match="OrdinalEncoder"):
        CategoricalNB().fit([[1e12], [1.0]], [0, 1])
    model = CategoricalNB().fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(DataError, match="category 2 in column 0; wanted one of the 2 categories"):
        model.predict([[2.0]])
    with pytest.raises(DataError, match="no classes in the first call"):
        GaussianNB().partial_fit([[1.0]], [0])
    with pytest.raises(DataError, match="not fitted on"):
        GaussianNB().partial_fit([[1.0], [2.0]], [0, 5], classes=[0, 1])


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (GaussianNB(priors=[-1.0, 2.0]), "Priors must be non-negative"),
        (GaussianNB(priors=[0.5, 0.25, 0.25]), "Number of priors must match number of classes"),
        (BernoulliNB(class_prior=[2.0, 1.0]), "The sum of the priors should be 1"),
        (ComplementNB(), r"Negative values in data passed to ComplementNB \(input X\)"),
        (CategoricalNB(), r"Negative values in data passed to CategoricalNB \(input X\)"),
        (CategoricalNB(min_categories=[[3, 2]]), r"'min_categories' should have shape \(1,\)"),
    ],
)
def test_errors_have_scikit_learns_words_too(model, words):
    """Whoever looks for an error by its words finds them."""
    with pytest.raises(ValueError, match=words):
        model.fit([[-1.0], [2.0]], [0, 1])


def test_small_pseudo_counts_are_raised_with_a_warning():
    with pytest.warns(UserWarning, match="alpha too small will result in numeric errors"):
        model = BernoulliNB(alpha=0.0, force_alpha=False).fit([[0.0], [1.0]], [0, 1])
    assert np.isfinite(model.feature_log_prob_).all()


@pytest.mark.parametrize("ours", [GaussianNB, *DISCRETE])
def test_a_refused_batch_changes_nothing(ours):
    X, y = digits()
    model = ours().partial_fit(X, y, classes=[0, 1, 2])
    before = pickle.dumps(model)
    with pytest.raises(DataError):
        model.partial_fit(X, y + 7)
    assert pickle.dumps(model) == before
    fresh = ours()
    with pytest.raises(DataError):
        fresh.partial_fit(X, y + 7, classes=[0, 1, 2])
    assert vars(fresh) == vars(ours())


@pytest.mark.parametrize("ours", [GaussianNB, *DISCRETE])
@pytest.mark.parametrize("form", [np.asarray, np.float32, sparse.csr_array])
def test_infinities_are_refused_in_rows_without_weight_as_the_audit_refuses_them(ours, form):
    X, y = digits()
    weight = np.ones(len(y))
    weight[70] = 0.0
    model = ours().fit(form(X), y, weight)
    X[70, 3] = np.inf
    for taking in (ours().fit, model.partial_fit, partial(audit, model)):
        with pytest.raises(DataError, match="infinity in row 70, column 3 of X"):
            taking(form(X), y, sample_weight=weight)


@pytest.mark.parametrize("ours", [GaussianNB, *DISCRETE])
@pytest.mark.parametrize("form", [np.asarray, np.float32, sparse.csr_array])
@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinities_are_refused_with_their_place(ours, form, value):
    X, y = digits()
    bad = X.copy()
    bad[70, 3] = value
    words = "infinity in row 70, column 3 of X"
    for alpha in [{}] if ours is GaussianNB else [{"alpha": 1.0}, {"alpha": 0.0}]:
        with pytest.raises(DataError, match=words):
            ours(**alpha).fit(form(bad), y)
        model = ours(**alpha).fit(form(X), y)
        for method in (model.predict, model.predict_proba, model.predict_joint_log_proba):
            with pytest.raises(DataError, match=words):
                method(form(bad))
        with pytest.raises(DataError, match=words):
            model.objective(form(bad), y)
