"""Naive Bayes against scikit-learn, scipy.stats and arithmetic; zeros, holes, offsets and updates."""

import pickle
from fractions import Fraction

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, stats
from scipy.special import softmax
from sklearn import naive_bayes as sk
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import NotFittedError

import certifit
from certifit import (
    BernoulliNB,
    CategoricalNB,
    ComplementNB,
    DataError,
    GaussianNB,
    LogisticRegression,
    MultinomialNB,
)
from certifit.auditing import naive_bayes as auditing
from certifit.kernels import naive_bayes as kernels

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


# ------------------------------------------------------------------------------------------- scikit-learn
@every
def test_scikit_learns_attributes_and_answers(ours, theirs, params):
    X, y = digits()
    mine, peer = ours(**params).fit(X, y), theirs(**params).fit(X, y)
    assert {name for name in vars(peer) if name.endswith("_")} <= NAMES
    same_model(mine, peer, X)
    np.testing.assert_array_equal(mine.predict(X), peer.predict(X))
    assert mine.certificate_.kind == "exact"
    assert mine.certificate_.holds


@pytest.mark.parametrize(("ours", "theirs", "params"), [e for e in EVERY if e[0] is not GaussianNB])
def test_weights_as_in_scikit_learn(ours, theirs, params):
    """Not for GaussianNB: scikit-learn's ε ignores the weights."""
    X, y = digits()
    w = np.random.default_rng(0).exponential(size=len(y))
    same_model(ours(**params).fit(X, y, w), theirs(**params).fit(X, y, w), X)


def test_gaussian_weights_count_rows():
    """A weight of 3 is a row three times, in ε as well."""
    X, y = load_iris(return_X_y=True)
    times = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = GaussianNB(var_smoothing=0.1).fit(X, y, times)
    repeated = sk.GaussianNB(var_smoothing=0.1).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    same_model(weighted, repeated, X)


@every
def test_parameters_of_scikit_learn_are_accepted(ours, theirs, params):
    given = {**theirs().get_params(), **params}
    assert ours(**given).get_params().items() >= given.items()


def test_text_labels_names_and_pickling():
    X, y = load_iris(as_frame=True, return_X_y=True)
    y = np.array(["setosa", "versicolor", "virginica"])[y]
    model = pickle.loads(pickle.dumps(GaussianNB().fit(X, y)))
    assert model.feature_names_in_.tolist() == X.columns.tolist()
    np.testing.assert_array_equal(model.predict(X), sk.GaussianNB().fit(X, y).predict(X))


@every
def test_a_model_can_be_saved(ours, theirs, params, tmp_path):  # noqa: ARG001
    X, y = digits()
    model = ours(**params).fit(X, y)
    certifit.save(model, tmp_path / "m.certifit")
    again = certifit.load(tmp_path / "m.certifit")
    np.testing.assert_array_equal(again.predict_log_proba(X), model.predict_log_proba(X))
    np.testing.assert_array_equal(again.partial_fit(X, y).class_count_, 2 * model.class_count_)


# ------------------------------------------------------------------------------------ certificate and audit
@every
def test_audit_agrees_and_accepts_scikit_learn(ours, theirs, params):
    X, y = digits()
    w = np.linspace(0.5, 2, len(y))
    audit = AUDITORS[ours]
    model = ours(**params).fit(X, y, w)
    checked = audit(model, X, y, w, 1e-10)
    assert checked.holds, checked
    same([checked.objective, checked.bound], [model.certificate_.objective] * 2, 1e-11)
    same(model.objective(X, y, w).total, checked.objective, 1e-11)
    assert audit(theirs(**params).fit(X, y), X, y, None, 1e-9).holds
    assert not audit(model, X, y, None, 1e-9).holds  # other weights


@every
def test_audit_notices_a_damaged_attribute(ours, theirs, params):  # noqa: ARG001
    X, y = digits()
    audit = AUDITORS[ours]
    best = ours(**params).fit(X, y).certificate_.objective
    names = {"theta_", "var_", "class_prior_", "class_count_", "class_log_prior_", "feature_count_",
             "feature_log_prob_", "category_count_"}  # fmt: skip
    seen = 0
    for name in names:
        model = ours(**params).fit(X, y)
        if not hasattr(model, name):
            continue
        seen += 1
        value = getattr(model, name)
        table = value[7] if isinstance(value, list) else value  # a column with several categories
        table.flat[np.abs(np.where(np.isinf(table), 0, table)).argmax()] *= 1.001
        checked = audit(model, X, y, None, 1e-6)
        assert not checked.holds, name
        assert checked.bound <= best * (1 + 1e-12)
    assert seen >= 4


def test_the_objective_is_a_minimum():
    """Any other parameters have a larger objective: data term plus pseudo-observations."""
    X, y = digits()
    rng = np.random.default_rng(0)
    for ours, _, params in EVERY:
        model = ours(**params).fit(X, y)
        best = model.certificate_.objective
        if ours is CategoricalNB:
            continue  # a list of tables: the multinomial's argument, column by column
        for name in ("theta_", "var_"):
            if hasattr(model, name):
                other = ours(**params).fit(X, y)
                setattr(other, name, getattr(other, name) * np.exp(0.1 * rng.normal(size=other.var_.shape)))
                assert other.objective(X, y).total > best + 1e-3
        if ours is MultinomialNB:
            p = np.exp(model.feature_log_prob_ + 0.1 * rng.normal(size=model.feature_log_prob_.shape))
            model.feature_log_prob_ = np.log(p / p.sum(axis=1, keepdims=True))
            assert model.objective(X, y).total > best + 1e-3


# ------------------------------------------------------------------------------------------ shared variance
@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_shared_variance_is_a_softmax(offset):
    X, y = load_iris(return_X_y=True)
    X = X + offset
    model = GaussianNB(variance="shared").fit(X, y)
    within = np.mean([(X[y == c] - X[y == c].mean(axis=0)) ** 2 for c in range(3)], axis=(0, 1))
    np.testing.assert_allclose(model.var_, np.tile(within + model.epsilon_, (3, 1)), rtol=1e-11)
    np.testing.assert_allclose(
        model.predict_proba(X), softmax(X @ model.coef_.T + model.intercept_, axis=1), rtol=1e-7, atol=1e-12
    )
    assert auditing.audit_gaussian_nb(model, X, y, None, 1e-9).holds
    model.coef_ = model.coef_ * 1.001
    assert not auditing.audit_gaussian_nb(model, X, y, None, 1e-9).holds
    assert not hasattr(GaussianNB().fit(X, y), "coef_")


def test_shared_variance_and_logistic_regression_have_one_form():
    """Logistic regression fitted to the posterior of a shared-variance model finds that model's coefficients."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 2)), np.arange(400) % 2
    X[y == 1] += [0.7, 0.5]
    model = GaussianNB(variance="shared").fit(X, y)
    p = model.predict_proba(X)
    twice, labels = np.concatenate([X, X]), np.repeat([0, 1], 400)
    logit = LogisticRegression(penalty=None, tol=1e-12).fit(twice, labels, np.concatenate([p[:, 0], p[:, 1]]))
    np.testing.assert_allclose(logit.coef_[0], model.coef_[1] - model.coef_[0], rtol=1e-4)
    np.testing.assert_allclose(logit.intercept_[0], model.intercept_[1] - model.intercept_[0], rtol=1e-4)


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


@every
def test_single_precision_rows_double_precision_sums(ours, theirs, params):  # noqa: ARG001
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


# ---------------------------------------------------------------------------------------------------- sparse
@every
@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csr_array, sparse.csc_array])
def test_sparse_is_dense(ours, theirs, params, form):  # noqa: ARG001
    X, y = digits()
    dense = ours(**params).fit(X, y)
    model = ours(**params).fit(form(X), y)
    same_model(model, dense, X, 1e-12)
    same(model.predict_joint_log_proba(form(X)), dense.predict_joint_log_proba(X), 1e-10, 1e-10)


@pytest.mark.parametrize("binarize", [-0.5, 0.0, 0.5])
def test_sparse_yes_and_no_with_holes(binarize):
    rng = np.random.default_rng(0)
    X = rng.integers(-1, 3, (60, 5)).astype(float)
    X[rng.random(X.shape) < 0.2] = np.nan
    y = rng.integers(0, 2, 60)
    for alpha in (0.0, 1.0):
        dense = BernoulliNB(binarize=binarize, alpha=alpha).fit(X, y)
        model = BernoulliNB(binarize=binarize, alpha=alpha).fit(sparse.csr_array(X), y)
        same_model(model, dense, X, 1e-12)
        same(model.predict_proba(sparse.csr_array(X)), dense.predict_proba(X), 1e-12)


# ----------------------------------------------------------------------------------------------------- holes
def with_holes(seed=0):
    rng = np.random.default_rng(seed)
    X, y = digits()
    X = X.copy()
    X[rng.random(X.shape) < 0.3] = np.nan
    return X, y


def test_gaussian_holes_are_left_out():
    X, y = with_holes()
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
def test_counted_holes_are_left_out(ours, params):
    """Each column is as if fitted alone on the rows that have it; a row is scored by the columns it has."""
    X, y = with_holes()
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
        (GaussianNB(variance="same"), "'separate' or 'shared'"),
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


# ----------------------------------------------------------------------------------------------------- sources
def test_files_and_dask_give_the_same_model(tmp_path):
    X, y = with_holes()
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(40)]).assign(kind=y)
    frame.to_parquet(tmp_path / "t.parquet")
    memory = GaussianNB().fit(frame.drop(columns="kind"), y)
    for model in (
        GaussianNB().fit(tmp_path / "t.parquet", "kind"),
        GaussianNB().fit(da.from_array(X, chunks=(128, 40)), da.from_array(y, chunks=128)),
    ):
        np.testing.assert_allclose(model.theta_, memory.theta_, rtol=1e-13)
        np.testing.assert_allclose(model.var_, memory.var_, rtol=1e-12)


# ---------------------------------------------------------------------------------------------------- kernels
@given(st.integers(0, 2**32 - 1), st.sampled_from([np.float32, np.float64]), st.booleans())
def test_kernels_and_their_plain_twins(seed, dtype, holes):
    rng = np.random.default_rng(seed)
    n, d, k = rng.integers(1, 14), rng.integers(1, 9), rng.integers(1, 4)
    X = rng.integers(0, 3, (n, d)).astype(dtype)
    if holes:
        X[rng.random(X.shape) < 0.3] = np.nan
    y, w = rng.integers(0, k, n).astype(np.int32), rng.integers(0, 3, n).astype(float)
    order, start = kernels.by_class(y, w, k)
    assert order.tolist() == [i for c in range(k) for i in range(n) if y[i] == c and w[i] > 0]
    mine = np.where((y == np.arange(k)[:, None]), w, 0.0)  # (k, n)
    there = ~np.isnan(X)
    Z = X.astype(np.float64)[None] - 0.5
    twin = [np.einsum("kn,nd->kd", mine, there.astype(float)),
            np.einsum("kn,knd->kd", mine, np.where(there, Z, 0.0).repeat(k, axis=0)),
            np.einsum("kn,knd->kd", mine, np.where(there, Z**2, 0.0).repeat(k, axis=0))]  # fmt: skip
    weight, z, zz = np.zeros((3, k, d))
    kernels.class_moments_with_holes(X, w, order, start, np.full((k, d), 0.5), weight, z, zz)
    np.testing.assert_allclose([weight, z, zz], twin, atol=1e-13)
    z, zz = np.zeros((2, k, d))
    kernels.class_moments(X, w, order, start, np.full((k, d), 0.5), z, zz)
    seen = ~np.isnan(np.where(mine[:, :, None] > 0, X[None], 0)).any(axis=1)  # columns of a class without a hole
    np.testing.assert_allclose(z[seen], twin[1][seen], atol=1e-13)
    np.testing.assert_allclose(zz[seen], twin[2][seen], atol=1e-13)
    assert np.isnan(z[~seen]).all()
    above, below = np.zeros((2, k, d))
    odd = np.zeros(d)
    kernels.class_threshold_counts(X, w, order, start, 0.5, above, below, odd)
    np.testing.assert_array_equal(np.isnan(odd), np.isnan(X[w > 0]).any(axis=0))
    np.testing.assert_array_equal([above, below], [mine @ (X > 0.5), mine @ (X <= 0.5)])
    up, down = np.log(rng.random((2, k, d)))
    up[0, 0] = -np.inf
    out = np.empty((n, k))
    kernels.threshold_scores(X, 0.5, up, down, out)
    yes, no = (X > 0.5)[:, None, :], (X <= 0.5)[:, None, :]
    np.testing.assert_allclose(out, np.where(yes, up, np.where(no, down, 0.0)).sum(axis=2), rtol=1e-12)
    D = rng.normal(size=(k, d))
    kernels.threshold_products(X, 0.5, D, out)
    expected = np.where(there.all(axis=1), ((X > 0.5) @ D.T).T, np.nan).T
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-14)
    mean, root = rng.normal(size=(k, d)), rng.random((k, d))
    kernels.gaussian_scores(X, mean, root, out)
    np.testing.assert_allclose(out, (((X[:, None, :] - mean) * root) ** 2).sum(axis=2), rtol=1e-12)
    kernels.gaussian_scores_with_holes(X, mean, root, np.full((k, d), 2.0), out)
    np.testing.assert_allclose(out, np.nansum(((X[:, None, :] - mean) * root) ** 2 + 2.0, axis=2), rtol=1e-12)
