"""SelectFromModel: scikit-learn's columns, whatever the estimator, and choices that were tampered with."""

import copy

import numpy as np
import pytest
import sklearn.feature_selection as theirs
import sklearn.linear_model as peers
from scipy import sparse
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

import certifit
from certifit import CertificateWarning, Lasso, LogisticRegression, Ridge, SelectFromModel, audit
from certifit.exceptions import DataError

X, y = load_wine(return_X_y=True)
X = X / X.std(axis=0)


@pytest.mark.parametrize(
    ("estimator", "params"),
    [
        (LogisticRegression(), {}),
        (LogisticRegression(penalty="l1", C=0.1), {}),
        (LogisticRegression(l1_ratio=1.0, C=0.1), {"norm_order": 2}),
        (Lasso(0.05), {}),
        (peers.Ridge(), {"threshold": "1.25*median"}),
        (peers.Ridge(), {"threshold": "mean", "max_features": 2}),
        (Ridge(), {"threshold": -np.inf, "max_features": lambda X: X.shape[1] // 3}),
        (Ridge(), {"threshold": 0.1, "importance_getter": lambda model: model.coef_**2}),
        (RandomForestClassifier(n_estimators=5, random_state=0), {}),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, dict) else str(part),
)
def test_it_keeps_the_columns_that_scikit_learn_keeps(estimator, params):
    model, peer = (module.SelectFromModel(estimator, **params).fit(X, y) for module in (certifit, theirs))
    np.testing.assert_array_equal(model.get_support(), peer.get_support())
    assert model.threshold_ == peer.threshold_
    np.testing.assert_array_equal(model.transform(X), peer.transform(X))
    for one in (model, peer):
        found = audit(one, X, y)
        assert found.kind == "exact"
        assert found.holds
    assert model.certificate_.holds
    assert getattr(model, "max_features_", None) == getattr(peer, "max_features_", None)


def test_the_threshold_beside_an_l1_share_that_was_chosen():
    model = SelectFromModel(certifit.ElasticNetCV(l1_ratio=[1.0], alphas=10)).fit(X, y)
    assert model.threshold_ == 1e-5
    np.testing.assert_array_equal(model.get_support(), np.abs(model.estimator_.coef_) >= 1e-5)
    assert audit(model, X, y).holds


def test_weights_reach_the_estimator():
    w = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    model = SelectFromModel(Ridge()).fit(X, y, w)
    np.testing.assert_allclose(model.estimator_.coef_, Ridge().fit(X, y, w).coef_, rtol=1e-6)
    assert audit(model, X, y, w).holds
    with pytest.raises(DataError, match="takes none"):
        SelectFromModel(peers.Lars()).fit(X, y, w)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_rows_without_weight_are_finite_too(value):
    """The estimator does not see them; scikit-learn hands it every row, and it refuses these."""
    w, bad = np.ones(len(y)), X.copy()
    w[5], bad[5, 2] = 0.0, value
    with pytest.raises(ValueError, match="NaN" if np.isnan(value) else "infinity"):
        theirs.SelectFromModel(peers.Lasso(0.05)).fit(bad, y, sample_weight=w)
    with pytest.raises(DataError, match="in row 5, column 2"):
        SelectFromModel(Lasso(0.05)).fit(bad, y, w)
    model = SelectFromModel(Lasso(0.05)).fit(X, y, w)
    with pytest.raises(DataError, match="in row 5, column 2"):
        audit(model, bad, y, w)


def test_entries_that_a_pipeline_fills_are_its_own_concern():
    holes = X.copy()
    holes[3, 1] = np.nan
    inner = make_pipeline(SimpleImputer(), peers.Ridge())
    model = SelectFromModel(inner, importance_getter=lambda p: p[-1].coef_).fit(holes, y)
    assert model.certificate_.holds
    assert audit(model, holes, y).holds


def test_a_fitted_estimator_is_copied():
    inner = Lasso(0.05).fit(X, y)
    model = SelectFromModel(inner, prefit=True).fit(X, y)
    assert model.estimator_ is not inner
    np.testing.assert_array_equal(model.estimator_.coef_, inner.coef_)
    assert model.certificate_.holds
    with pytest.raises(NotFittedError):
        SelectFromModel(Lasso(), prefit=True).fit(X, y)


def test_sparse_rows():
    light = sparse.csr_array(np.where(X > 4, X, 0.0))
    model = SelectFromModel(LogisticRegression()).fit(light, y)
    assert sparse.issparse(model.transform(light))
    assert audit(model, light, y).holds


def test_a_pipeline_is_audited_by_its_last_step():
    inner = make_pipeline(certifit.PCA(5), Ridge())
    model = SelectFromModel(inner, importance_getter=lambda p: p[0].components_.T @ p[1].coef_).fit(X, y)
    assert audit(model, X, y).holds


@pytest.mark.parametrize(
    ("words", "change"),
    [
        ("columns kept", lambda m: setattr(m, "support_", ~m.support_)),
        ("its own audit", lambda m: setattr(m.estimator_, "coef_", m.estimator_.coef_ * 1.1)),
    ],
)
def test_what_was_tampered_with_is_noticed(words, change):
    model = SelectFromModel(Lasso(0.05)).fit(X, y)
    hurt = copy.deepcopy(model)
    change(hurt)
    found = audit(hurt, X, y)
    assert not found.holds
    assert any(words in failure for failure in found.failures())


def test_another_forest_is_noticed():
    model = SelectFromModel(RandomForestClassifier(n_estimators=5, random_state=0)).fit(X, y)
    model.estimator_ = RandomForestClassifier(n_estimators=5, random_state=1).fit(X, y)
    assert any("settings of estimator_" in failure for failure in audit(model, X, y).failures())


def test_an_estimator_that_stopped_early_is_told():
    with pytest.warns(CertificateWarning, match="its own audit"):
        model = SelectFromModel(peers.Lasso(1e-4, max_iter=3, tol=10.0)).fit(X, y)
    assert not model.certificate_.holds


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"threshold": "middle"}, "threshold"),
        ({"threshold": "two*mean"}, "threshold"),
        ({"max_features": -1}, "max_features"),
        ({"max_features": lambda X: 0.5}, "whole number"),
    ],
)
def test_wrong_settings_are_refused(params, words):
    with pytest.raises(DataError, match=words):
        SelectFromModel(Ridge(), **params).fit(X, y)


def test_a_forest_is_audited_on_the_rows_that_count():
    """A forest knows its rows one by one: those without weight were never shown to it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    y, w = (X[:, 0] > 0).astype(int), np.where(np.arange(30) < 5, 0.0, 2.0)
    forest = certifit.RandomForestClassifier(3, max_depth=2, random_state=0)
    model = SelectFromModel(forest).fit(X, y, w)
    assert audit(model, X, y, w).holds
    model.estimator_.trees_.value[:] = model.estimator_.trees_.value[:, ::-1]
    assert not audit(model, X, y, w).holds
