"""Naive Bayes in arithmetic: offsets, updates, columns without variance, and pseudo-counts of 0."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn import naive_bayes as sk
from sklearn.datasets import load_iris

from certifit import BernoulliNB, CategoricalNB, ComplementNB, DataError, GaussianNB, MultinomialNB
from certifit.checkers.naive_bayes import adapter as auditing
from tests.naive_bayes.naive_bayes_models import AUDITORS, DISCRETE, EVERY, digits, ours_alone, same_model


# ---------------------------------------------------------------------------------------------- numerics
def exact_variance(x):
    values = [Fraction(float(v)) for v in x]
    mean = sum(values) / len(values)
    return float(sum((v - mean) ** 2 for v in values) / len(values))


@pytest.mark.parametrize("offset", [0.0, 1e8, -1e12])
def test_variances_are_right_at_any_offset(offset):
    """Classes at different offsets; against rational arithmetic."""
    rng = np.random.default_rng(0)
    y = np.arange(600) % 2
    X = offset * (1 + 2 * y[:, None]) + rng.normal(size=(600, 3)) * [1.0, 0.01, 100.0]
    model = GaussianNB(var_smoothing=0.0).fit(X, y)
    expected = [[exact_variance(X[y == c, j]) for j in range(3)] for c in range(2)]
    np.testing.assert_allclose(model.var_, expected, rtol=1e-12)
    assert auditing.audit_gaussian_nb(model, X, y, None, 1e-10).holds


def test_a_first_block_unlike_the_rest():
    """Centres from the first rows are of no use for the others: a second pass is."""
    rng = np.random.default_rng(0)
    n = 70_000  # three blocks
    y = np.arange(n) % 2
    X = rng.normal(size=(n, 2)) + 1e9 * (np.arange(n) >= 2)[:, None]
    model = GaussianNB(var_smoothing=0.0).fit(X[2:], y[2:])
    w = np.ones(n)
    w[:2] = 1e-12  # rows of nearly no weight decide the first centres
    far = GaussianNB(var_smoothing=0.0).fit(X, y, w)
    np.testing.assert_allclose(far.theta_, model.theta_, rtol=1e-12)
    assert (far.var_ < 1e3).all()


@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_partial_fit_is_fit(offset):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 500)
    X = offset + rng.normal(size=(500, 4)) * [1.0, 0.1, 10.0, 1.0] + y[:, None]
    X[rng.random(X.shape) < 0.1] = np.nan
    w = rng.exponential(size=500)
    whole = GaussianNB().fit(X, y, w)
    model = GaussianNB()
    for here in np.array_split(np.argsort(X[:, 1]), 7):  # batches that differ
        model.partial_fit(X[here], y[here], classes=[2, 0, 1], sample_weight=w[here])
    np.testing.assert_allclose(model.var_, whole.var_, rtol=1e-12)
    np.testing.assert_allclose(model.theta_, whole.theta_, rtol=1e-14)
    np.testing.assert_allclose(model.epsilon_, whole.epsilon_, rtol=1e-12)
    assert model.certificate_.holds
    assert auditing.audit_gaussian_nb(model, X, y, w, 1e-10).holds


def test_scikit_learns_partial_fit_is_not_its_fit():
    """It takes the smoothing of the last batch for that of all, and subtracts what it had not added."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), np.arange(200) % 2
    X[:100, 1] *= 1e6  # the first batch has a wide column, the second has not
    peer, mine = sk.GaussianNB(), GaussianNB()
    for here in (slice(0, 100), slice(100, 200)):
        peer.partial_fit(X[here], y[here], classes=[0, 1])
        mine.partial_fit(X[here], y[here], classes=[0, 1])
    right = sk.GaussianNB().fit(X, y)
    assert np.abs(peer.var_ / right.var_ - 1).max() > 1e-4
    np.testing.assert_allclose(mine.var_, right.var_, rtol=1e-12)
    assert not auditing.audit_gaussian_nb(peer, X, y, None, 1e-6).holds


@pytest.mark.parametrize(("ours", "params"), [(o, p) for o, _, p in EVERY if o is not GaussianNB])
def test_discrete_partial_fit_is_fit(ours, params):
    X, y = digits()
    whole, model = ours(**params).fit(X, y), ours(**params)
    for here in np.array_split(np.argsort(y), 5):  # most classes are absent from most batches
        model.partial_fit(X[here], y[here], classes=[0, 1, 2])
        assert not np.isnan(model.predict_proba(X)).any()
    same_model(model, whole, X, 1e-13)


def test_a_class_without_rows_yet():
    """It has no prior, and where a prior is given it looks like all rows."""
    X, y = load_iris(return_X_y=True)
    some = y < 2
    for variance in ("separate", "shared"):
        model = GaussianNB(variance=variance).partial_fit(X[some], y[some], classes=[0, 1, 2])
        p = model.predict_proba(X)
        assert (p[:, 2] == 0).all()
        np.testing.assert_allclose(p.sum(axis=1), 1.0)
    given = GaussianNB(priors=[0.3, 0.3, 0.4]).partial_fit(X[some], y[some], classes=[0, 1, 2])
    np.testing.assert_allclose(given.theta_[2], X[some].mean(axis=0))
    np.testing.assert_allclose(given.var_[2], X[some].var(axis=0) + given.epsilon_)


def test_log_probabilities_far_out():
    """Two unit Gaussians at ±1: log p/(1-p) = 2x; probabilities down to 1e-300 and beyond."""
    X, y = np.array([[-2.0], [0.0], [0.0], [2.0]]), [0, 0, 1, 1]
    model = GaussianNB(var_smoothing=0.0).fit(X, y)
    x = np.array([[-400.0], [-345.0], [-20.0], [345.0], [1e5]])
    np.testing.assert_allclose(model.predict_log_proba(x)[:3, 1], 2 * x[:3, 0], rtol=1e-13)
    np.testing.assert_allclose(model.predict_proba(x)[1, 1], np.exp(-690.0), rtol=1e-11)
    np.testing.assert_allclose(model.predict_log_proba(x)[2, 0], -np.exp(-40.0), rtol=1e-12)  # next to 0
    np.testing.assert_allclose(model.predict_log_proba(x)[4, 0], -2e5, rtol=1e-11)  # of joint scores of -5e9
    assert np.isfinite(model.predict_log_proba([[1e150], [-1e150]])).all()


@ours_alone
def test_single_precision_rows_double_precision_sums(ours, params):
    X, y = digits()
    half, whole = (
        ours(**params).fit(X.astype(np.float32), y),
        ours(**params).fit(X, y),
    )  # whole numbers: exact in both
    same_model(half, whole, X, 1e-13)
    np.testing.assert_array_equal(half.predict(X.astype(np.float32)), whole.predict(X))


# ------------------------------------------------------------------------------------------ degenerate columns
def test_constant_columns():
    X, y = load_iris(return_X_y=True)
    X = np.column_stack([X, np.full(len(X), 0.1), y])
    model = GaussianNB().fit(X, y)
    np.testing.assert_allclose(model.var_[:, 4:], np.full((3, 2), model.epsilon_))
    assert model.score(X, y) == 1.0
    assert np.isfinite(model.predict_log_proba(X)).all()


@pytest.mark.parametrize(
    ("X", "params", "words"),
    [
        (np.ones((4, 2)), {}, "do not vary"),
        ([[0.0, 1.0], [1.0, 1.0], [2.0, 2.0], [5.0, 3.0]], {"var_smoothing": 0.0}, "column numbers 1"),
    ],
)
def test_no_variance_at_all_is_an_error(X, params, words):
    with pytest.raises(DataError, match=words):
        GaussianNB(**params).fit(X, [0, 0, 1, 1])


@pytest.mark.parametrize("ours", [GaussianNB, *DISCRETE])
def test_one_class(ours):
    model = ours().fit([[1.0, 0.0], [2.0, 1.0]], ["only", "only"])
    np.testing.assert_array_equal(model.predict_proba([[1.0, 1.0]]), [[1.0]])
    assert model.predict([[1.0, 1.0]]).tolist() == ["only"]


# ------------------------------------------------------------------------------------------------ alpha = 0
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_evidence_that_a_class_cannot_give(form):
    """Class b never had column 0, class a never column 1; a row with both is impossible: the prior is left."""
    X, y = form(np.array([[1.0, 0, 1], [1, 0, 0], [0, 1, 1]])), ["a", "a", "b"]
    rows = form(np.array([[1.0, 0, 1], [0, 1, 1], [1, 1, 1]]))
    for model in (BernoulliNB(alpha=0.0), MultinomialNB(alpha=0.0), CategoricalNB(alpha=0.0)):
        p = model.fit(X, y).predict_proba(rows)
        np.testing.assert_allclose(p, [[1, 0], [0, 1], [2 / 3, 1 / 3]], atol=1e-15)
        assert model.predict(rows).tolist() == ["a", "b", "a"]
        assert (model.predict_joint_log_proba(rows)[2] == -np.inf).all()
        assert model.certificate_.holds
        assert AUDITORS[type(model)](model, X, y, None, 1e-10).holds
        log_p = model.predict_log_proba(rows)
        assert not np.isnan(log_p).any()
        assert log_p[0].tolist() == [0.0, -np.inf]


@pytest.mark.parametrize("norm", [False, True])
def test_complement_without_smoothing_is_the_limit(norm):
    X, y = np.array([[3.0, 0, 1, 0], [2, 1, 0, 0], [0, 4, 1, 0]]), [0, 1, 1]
    rows = np.array([[1.0, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 1], [5, 1, 1, 0], [0, 0, 0, 0]])
    limit = ComplementNB(alpha=0.0, norm=norm).fit(X, y)
    near = ComplementNB(alpha=1e-280, norm=norm).fit(X, y)
    atol = 2e-2 if norm else 1e-12  # weights of the rest fall with 1 / log alpha only
    np.testing.assert_allclose(limit.predict_proba(rows), near.predict_proba(rows), atol=atol)
    assert limit.certificate_.holds
    assert auditing.audit_complement_nb(limit, X, y, None, 1e-10).holds


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 1e-300, 1e-12, 1.0]), st.booleans())
def test_never_nan(seed, alpha, fit_prior):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (rng.integers(2, 9), 3)).astype(float)
    y = rng.integers(0, 3, len(X))
    new = rng.integers(0, 3, (9, 3)).astype(float)
    for cls in DISCRETE:
        extra = {"min_categories": 3} if cls is CategoricalNB else {}
        model = cls(alpha=alpha, fit_prior=fit_prior, **extra).partial_fit(X, y, classes=[0, 1, 2])
        p = model.predict_proba(new)
        np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
        assert not np.isnan(model.predict_log_proba(new)).any()
        assert model.certificate_.holds


def test_counts_of_the_other_classes_beside_a_class_that_has_nearly_all():
    """1e20 + 3 + 4 - 1e20 would be 0 in float64."""
    X, y = np.array([[1e20, 1.0], [3.0, 2.0], [4.0, 1.0]]), [0, 1, 2]
    model = ComplementNB(alpha=0.5).fit(X, y)
    np.testing.assert_allclose(model.feature_log_prob_[0], -np.log(np.array([7.5, 3.5]) / 11), rtol=1e-14)
    assert auditing.audit_complement_nb(model, X, y, None, 1e-10).holds
