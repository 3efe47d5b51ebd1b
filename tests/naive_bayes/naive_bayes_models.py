"""Naive Bayes models and their peers in scikit-learn, and what it means to be the same."""

import numpy as np
import pytest
from sklearn import naive_bayes as sk
from sklearn.datasets import load_digits

from certifit import BernoulliNB, CategoricalNB, ComplementNB, GaussianNB, MultinomialNB
from certifit.checkers.naive_bayes import adapter as auditing

EVERY = [
    (GaussianNB, sk.GaussianNB, {}),
    (GaussianNB, sk.GaussianNB, {"var_smoothing": 1e-3, "priors": [0.2, 0.3, 0.5]}),
    (BernoulliNB, sk.BernoulliNB, {"binarize": 3.0}),
    (BernoulliNB, sk.BernoulliNB, {"binarize": 3.0, "alpha": 0.1, "fit_prior": False}),
    (MultinomialNB, sk.MultinomialNB, {}),
    (MultinomialNB, sk.MultinomialNB, {"alpha": 1e-3, "class_prior": [0.2, 0.3, 0.5]}),
    (ComplementNB, sk.ComplementNB, {}),
    (ComplementNB, sk.ComplementNB, {"alpha": 0.3, "norm": True}),
    (CategoricalNB, sk.CategoricalNB, {"min_categories": 17}),
    (CategoricalNB, sk.CategoricalNB, {"alpha": 0.2, "min_categories": 20}),
]
every = pytest.mark.parametrize(("ours", "theirs", "params"), EVERY)
ours_alone = pytest.mark.parametrize(("ours", "params"), [(ours, params) for ours, _, params in EVERY])
DISCRETE = [BernoulliNB, MultinomialNB, ComplementNB, CategoricalNB]
AUDITORS = {
    GaussianNB: auditing.audit_gaussian_nb,
    BernoulliNB: auditing.audit_bernoulli_nb,
    MultinomialNB: auditing.audit_multinomial_nb,
    ComplementNB: auditing.audit_complement_nb,
    CategoricalNB: auditing.audit_categorical_nb,
}
NAMES = {
    "theta_", "var_", "epsilon_", "class_prior_", "class_count_", "classes_", "class_log_prior_", "feature_count_",
    "feature_log_prob_", "feature_all_", "category_count_", "n_categories_", "n_features_in_",
}  # fmt: skip


def digits(classes=3):
    """Pixels 0 to 16 of three digits; some are always 0."""
    X, y = load_digits(return_X_y=True)
    some = y < classes
    return X[some][:, :40], y[some]


def with_missing_entries(seed=0):
    rng = np.random.default_rng(seed)
    X, y = digits()
    X = X.copy()
    X[rng.random(X.shape) < 0.3] = np.nan
    return X, y


def same(a, b, rtol=1e-11, atol=1e-11):
    if isinstance(a, (list, tuple)):
        for left, right in zip(a, b, strict=True):
            same(left, right, rtol, atol)
    elif np.asarray(a).dtype.kind in "fc":
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)
    else:
        np.testing.assert_array_equal(a, b)


def same_model(a, b, X, rtol=1e-11):
    for name in vars(b):
        if name in NAMES:
            same(getattr(a, name), getattr(b, name), rtol)
    same(a.predict_joint_log_proba(X), b.predict_joint_log_proba(X), 1e-9, 1e-9)
    same(a.predict_log_proba(X), b.predict_log_proba(X), 1e-9, 1e-9)
    same(a.predict_proba(X), b.predict_proba(X), 1e-9, 1e-12)
