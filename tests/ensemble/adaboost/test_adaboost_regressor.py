"""AdaBoost for amounts: scikit-learn's stages, the rules written out, and odd tables."""

import copy

import numpy as np
import pytest
from sklearn import ensemble as theirs
from sklearn.datasets import load_diabetes
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeRegressor as SklearnTree

from certifit import AdaBoostRegressor, DataError, audit

LOSSES = ("linear", "square", "exponential")


@pytest.mark.parametrize("loss", LOSSES)
def test_rows_drawn_give_the_stages_of_scikit_learn(loss):
    """The same trees, where their best splits are unique."""
    X, y = load_diabetes(return_X_y=True)
    X = X.astype(np.float32)  # as scikit-learn's trees see it
    ours = AdaBoostRegressor(n_estimators=4, loss=loss, random_state=0, resample=True).fit(X, y)
    other = theirs.AdaBoostRegressor(n_estimators=4, loss=loss, random_state=0).fit(X, y)
    assert np.allclose(ours.estimator_errors_, other.estimator_errors_, rtol=1e-9)
    assert np.allclose(ours.estimator_weights_, other.estimator_weights_, rtol=1e-9)
    assert np.allclose(ours.predict(X), other.predict(X))
    pairs = zip(ours.staged_predict(X), other.staged_predict(X), strict=True)
    assert all(np.allclose(a, b) for a, b in pairs)
    assert audit(other, X, y).holds


@pytest.mark.parametrize("loss", LOSSES)
def test_the_rules_written_out(loss):
    X, y = load_diabetes(return_X_y=True)
    model = AdaBoostRegressor(SklearnTree(max_depth=2, random_state=0), n_estimators=5, loss=loss, learning_rate=0.7)
    model.fit(X, y)
    w = np.full(len(y), 1 / len(y))
    for tree, strength, error in zip(
        model.estimators_, model.estimator_weights_, model.estimator_errors_, strict=True
    ):
        again = SklearnTree(max_depth=2, random_state=tree.random_state).fit(X, y, w)
        assert np.allclose(again.predict(X), tree.predict(X))
        share = np.abs(tree.predict(X) - y) / np.abs(tree.predict(X) - y).max()
        lost = {"linear": share, "square": share**2, "exponential": 1 - np.exp(-share)}[loss]
        e = w @ lost
        assert error == pytest.approx(e, rel=1e-12)
        assert strength == pytest.approx(0.7 * np.log((1 - e) / e), rel=1e-12)
        w = w * (e / (1 - e)) ** (0.7 * (1 - lost))
        w /= w.sum()
    # The median: at least half of the strength predicts no more, at least half no less.
    told = np.stack([tree.predict(X) for tree in model.estimators_])
    a, median = model.estimator_weights_[:, None], model.predict(X)
    assert ((a * (told <= median)).sum(axis=0) >= a.sum() / 2 - 1e-12).all()
    assert ((a * (told >= median)).sum(axis=0) >= a.sum() / 2 - 1e-12).all()
    assert np.allclose(list(model.staged_score(X, y))[-1], model.score(X, y))


def test_a_learner_without_weights_sees_rows_drawn_by_them():
    X, y = load_diabetes(return_X_y=True)
    model = AdaBoostRegressor(KNeighborsRegressor(), n_estimators=3, random_state=0).fit(X, y)
    assert audit(model, X, y).holds
    again = AdaBoostRegressor(KNeighborsRegressor(), n_estimators=3, random_state=0).fit(X, y)
    assert np.array_equal(model.predict(X), again.predict(X))
    with pytest.raises(DataError, match=r"doesn't support sample_weight.*resample=True"):
        AdaBoostRegressor(KNeighborsRegressor(), resample=False).fit(X, y)


def test_a_perfect_fit_and_a_poor_one():
    X = np.arange(8.0)[:, None]
    model = AdaBoostRegressor(n_estimators=4).fit(X, (X[:, 0] > 3) * 5.0)
    assert model.estimator_weights_.tolist() == [1, 0, 0, 0]
    assert model.score(X, (X[:, 0] > 3) * 5.0) == 1.0
    poor = np.array([0.0, 1, 1, 0, 1, 0, 0, 1, 0, 1])
    only = AdaBoostRegressor(n_estimators=4).fit(np.ones((10, 1)), poor)
    assert len(only.estimators_) == 1
    assert only.predict([[1.0]]).tolist() == [0.5]
    assert audit(only, np.ones((10, 1)), poor).holds
    other = theirs.AdaBoostRegressor(n_estimators=4, random_state=0).fit(np.ones((10, 1)), poor)
    assert len(other.estimators_) == 1


def test_rows_held_out_say_when_to_stop():
    X, y = load_diabetes(return_X_y=True)
    model = AdaBoostRegressor(n_estimators=60, n_iter_no_change=3, validation_fraction=0.2, random_state=1).fit(X, y)
    assert 1 <= len(model.estimators_) < 60
    assert audit(model, X, y).holds


def test_tampered_stages_do_not_hold():
    X, y = load_diabetes(return_X_y=True)
    model = theirs.AdaBoostRegressor(n_estimators=5, random_state=0).fit(X, y)
    for name, factor in (("estimator_weights_", 1.01), ("estimator_errors_", 0.99)):
        wrong = copy.deepcopy(model)
        setattr(wrong, name, getattr(wrong, name) * factor)
        assert not audit(wrong, X, y).holds
    wrong = copy.deepcopy(model)
    wrong.estimators_[1], wrong.estimators_[3] = wrong.estimators_[3], wrong.estimators_[1]
    assert not audit(wrong, X, y).holds
