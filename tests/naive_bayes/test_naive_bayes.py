"""Naive Bayes against scikit-learn and scipy.stats: attributes, answers, certificates and sources."""

import pickle

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.special import softmax
from sklearn import naive_bayes as sk
from sklearn.datasets import load_iris

import certifit
from certifit import BernoulliNB, CategoricalNB, GaussianNB, LogisticRegression, MultinomialNB
from certifit.checkers.naive_bayes import adapter as auditing
from tests.common.tuning import tuned
from tests.naive_bayes.naive_bayes_models import (
    AUDITORS,
    EVERY,
    NAMES,
    digits,
    every,
    ours_alone,
    same,
    same_model,
    with_missing_entries,
)


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


@ours_alone
def test_a_model_can_be_saved(ours, params, tmp_path):
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


@ours_alone
def test_audit_notices_a_damaged_attribute(ours, params):
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
    with pytest.raises(AttributeError):
        model.coef_ = model.coef_ * 1.001  # computed from checked attributes
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


# ---------------------------------------------------------------------------------------------------- sparse
@ours_alone
@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csr_array, sparse.csc_array])
def test_sparse_is_dense(ours, params, form):
    X, y = digits()
    dense = ours(**params).fit(X, y)
    model = ours(**params).fit(form(X), y)
    same_model(model, dense, X, 1e-12)
    same(model.predict_joint_log_proba(form(X)), dense.predict_joint_log_proba(X), 1e-10, 1e-10)


@ours_alone
def test_sparse_rows_made_dense_a_few_at_a_time(ours, params):
    X, y = digits()
    whole, few = (ours(**params) for _ in range(2))
    whole.fit(X, y), tuned(few, dense_entries=400).fit(sparse.csr_array(X), y)
    same_model(few, whole, X, 1e-12)
    same(few.predict_joint_log_proba(sparse.csr_array(X)), whole.predict_joint_log_proba(X), 1e-10, 1e-10)


@pytest.mark.parametrize("binarize", [-0.5, 0.0, 0.5])
def test_sparse_yes_and_no_with_missing_entries(binarize):
    rng = np.random.default_rng(0)
    X = rng.integers(-1, 3, (60, 5)).astype(float)
    X[rng.random(X.shape) < 0.2] = np.nan
    y = rng.integers(0, 2, 60)
    for alpha in (0.0, 1.0):
        dense = BernoulliNB(binarize=binarize, alpha=alpha).fit(X, y)
        model = BernoulliNB(binarize=binarize, alpha=alpha).fit(sparse.csr_array(X), y)
        same_model(model, dense, X, 1e-12)
        same(model.predict_proba(sparse.csr_array(X)), dense.predict_proba(X), 1e-12)


# ----------------------------------------------------------------------------------------------------- sources
def test_files_and_dask_give_the_same_model(tmp_path):
    X, y = with_missing_entries()
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(40)]).assign(kind=y)
    frame.to_parquet(tmp_path / "t.parquet")
    memory = GaussianNB().fit(frame.drop(columns="kind"), y)
    for model in (
        GaussianNB().fit(tmp_path / "t.parquet", "kind"),
        GaussianNB().fit(da.from_array(X, chunks=(128, 40)), da.from_array(y, chunks=128)),
    ):
        np.testing.assert_allclose(model.theta_, memory.theta_, rtol=1e-13)
        np.testing.assert_allclose(model.var_, memory.var_, rtol=1e-12)
