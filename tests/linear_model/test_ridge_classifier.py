"""Ridge regression on labels: the normal equations, scikit-learn's answers, and proofs that notice what is wrong."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import linear_model
from sklearn.datasets import load_iris, load_wine

from certifit import DataError, Ridge, RidgeClassifier, audit, compare

TABLES = {"iris": load_iris(return_X_y=True), "wine": load_wine(return_X_y=True)}
TWO = {name: (X[y < 2], np.array(["no", "yes"])[y[y < 2]]) for name, (X, y) in TABLES.items()}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("settings", [{}, {"alpha": 30.0, "class_weight": "balanced"}, {"fit_intercept": False}])
def test_answers_are_those_of_scikit_learn(name, settings):
    for X, y in (TABLES[name], TWO[name]):
        model, theirs = RidgeClassifier(**settings).fit(X, y), linear_model.RidgeClassifier(**settings).fit(X, y)
        np.testing.assert_allclose(model.coef_, theirs.coef_, atol=1e-8)
        np.testing.assert_allclose(model.decision_function(X), theirs.decision_function(X), atol=1e-6)
        np.testing.assert_array_equal(model.predict(X), theirs.predict(X))
        assert audit(model, X, y).holds
        assert audit(theirs, X, y).holds
        assert model.objective(X, y).total == pytest.approx(model.certificate_.objective, rel=1e-9)


def test_two_classes_solve_the_normal_equations():
    X, y = TWO["iris"]
    model = RidgeClassifier(2.0).fit(X, y)
    Z, t = X - X.mean(axis=0), np.where(y == "yes", 1.0, -1.0)
    np.testing.assert_allclose(model.coef_, np.linalg.solve(Z.T @ Z + 2 * np.eye(4), Z.T @ (t - t.mean())), rtol=1e-9)
    assert model.coef_.shape == (4,)
    assert model.intercept_.shape == (1,)


def test_a_wrong_class_is_noticed():
    X, y = TABLES["wine"]
    model = RidgeClassifier().fit(X, y)
    model.coef_ = model.coef_ * [[1.0], [1.1], [1.0]]
    found = audit(model, X, y)
    assert not found.holds
    assert [c.name for c in found.checks if not c.passed] == ["gap of target 1"]
    other = np.where(y == 0, 1, y)
    with pytest.raises(ValueError, match="labels that the model was not fitted on"):
        audit(RidgeClassifier().fit(X, other), X, y)


def test_equal_problems_are_compared():
    X, y = TABLES["iris"]
    ours, theirs = RidgeClassifier(0.5).fit(X, y), linear_model.RidgeClassifier(0.5).fit(X, y)
    assert "Different problems" not in str(compare({"ours": ours, "theirs": theirs}, X, y))
    other = linear_model.RidgeClassifier(9.0).fit(X, y)
    assert "Different problems" in str(compare({"ours": ours, "other": other}, X, y))


@pytest.mark.parametrize("kind", [Ridge, RidgeClassifier])
def test_the_solver_that_was_asked_for_is_named(kind):
    X, y = np.arange(12.0).reshape(6, 2), [0, 1, 0, 1, 1, 0]
    assert kind(solver="svd").fit(X, y).solver_ == "svd"
    assert kind().fit(X, y).solver_ == "newton"
    assert not hasattr(kind(), "solver_")


LABELS = (TABLES["iris"][0] > np.median(TABLES["iris"][0], axis=0)).astype(int)[:, 1:]


@pytest.mark.parametrize("form", [np.asarray, pd.DataFrame, sparse.csr_array])
def test_several_labels_are_those_of_scikit_learn(form):
    X, w = TABLES["wine"][0][: len(LABELS), :5], np.linspace(0, 2, len(LABELS))
    model = RidgeClassifier(3.0).fit(X, form(LABELS), sample_weight=w)
    theirs = linear_model.RidgeClassifier(3.0).fit(X, LABELS, sample_weight=w)
    np.testing.assert_allclose(model.coef_, theirs.coef_, atol=1e-8)
    np.testing.assert_array_equal(model.predict(X), theirs.predict(X))
    assert model.score(X, LABELS) == theirs.score(X, LABELS)
    assert model.multilabel_
    assert model.objective(X, LABELS, w).total == pytest.approx(model.certificate_.objective, rel=1e-9)
    assert audit(model, X, LABELS, w).holds
    assert audit(theirs, X, LABELS, w).holds


def test_wrong_fits_of_several_labels_are_noticed():
    X = TABLES["wine"][0][: len(LABELS), :5]
    model = RidgeClassifier().fit(X, LABELS)
    assert not audit(model, X, LABELS[:, [0, 2, 1]]).holds
    with pytest.raises(DataError, match="like those that the model was fitted on"):
        audit(model, X, LABELS[:, 0])
    model.classes_ = model.classes_ + 1
    with pytest.raises(DataError, match="their numbers from 0"):
        audit(model, X, LABELS)


@pytest.mark.parametrize(
    ("labels", "settings", "words"),
    [(LABELS + 1, {}, "other numbers than 0 and 1"), (LABELS, {"class_weight": "balanced"}, "class_weight=None")],
)
def test_what_several_labels_cannot_be_is_said(labels, settings, words):
    with pytest.raises(DataError, match=words):
        RidgeClassifier(**settings).fit(TABLES["wine"][0][: len(LABELS)], labels)
