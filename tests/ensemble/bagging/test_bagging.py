"""Bagging: any estimator, samples from seeds, out-of-bag answers, and what the audit notices."""

import copy
from dataclasses import replace

import numpy as np
import pytest
from sklearn import datasets, ensemble
from sklearn.linear_model import LinearRegression as SklearnLine
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier as SklearnTree

from certifit import (
    BaggingClassifier,
    BaggingRegressor,
    DataError,
    DecisionTreeClassifier,
    GaussianNB,
    LogisticRegression,
    Ridge,
    audit,
)

IRIS = datasets.load_iris(return_X_y=True)
WINE = datasets.load_wine(return_X_y=True)
DIABETES = datasets.load_diabetes(return_X_y=True)


@pytest.mark.parametrize(
    "estimator",
    [KNeighborsClassifier(), SklearnTree(), GaussianNB(), make_pipeline(StandardScaler(), LogisticRegression()),
     make_pipeline(StandardScaler(), SklearnTree(max_features=2))], ids=lambda e: type(e).__name__,
)  # fmt: skip
def test_any_classifier(estimator):
    X, y = WINE
    words = np.array(["red", "rosé", "white"])[y]
    model = BaggingClassifier(estimator, 12, oob_score=True, random_state=0).fit(X, words)
    assert model.certificate_.holds
    assert audit(model, X, words).holds
    assert set(model.predict(X)) <= {"red", "rosé", "white"}
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert model.oob_interval_[0] <= model.oob_score_ <= model.oob_interval_[1]
    assert len(model) == 12


@pytest.mark.parametrize(
    "estimator",
    [KNeighborsRegressor(), Ridge(), make_pipeline(StandardScaler(), SklearnLine())],
    ids=lambda e: type(e).__name__,
)
def test_any_regressor(estimator):
    X, y = DIABETES
    model = BaggingRegressor(estimator, 8, oob_score=True, random_state=0).fit(X, y)
    assert audit(model, X, y).holds
    np.testing.assert_allclose(model.predict(X), np.mean([m.predict(X) for m in model.estimators_], axis=0))


def test_samples_and_columns_are_what_the_members_saw():
    X, y = WINE
    model = BaggingClassifier(SklearnTree(random_state=0), 6, max_features=5, max_samples=0.5, random_state=1)
    model.fit(X, y)
    for member, columns, sample in zip(
        model.estimators_, model.estimators_features_, model.estimators_samples_, strict=True
    ):
        assert len(columns) == len(set(columns)) == member.n_features_in_ == 5
        assert len(sample) == int(0.5 * len(X))
        weight = np.bincount(sample, minlength=len(X))
        again = SklearnTree(random_state=member.random_state)
        again.fit(X[weight > 0][:, columns], y[weight > 0], weight[weight > 0])
        np.testing.assert_array_equal(again.predict(X[:, columns]), member.predict(X[:, columns]))
    doubled = BaggingClassifier(SklearnTree(), 6, bootstrap_features=True, random_state=1).fit(X, y)
    assert any(len(set(c)) < X.shape[1] for c in doubled.estimators_features_)
    assert audit(doubled, X, y).holds


def test_pasting_draws_without_replacement():
    X, y = IRIS
    model = BaggingClassifier(GaussianNB(), 5, max_samples=60, bootstrap=False, random_state=0).fit(X, y)
    assert all(len(set(s)) == len(s) == 60 for s in model.estimators_samples_)
    assert len({tuple(s) for s in model.estimators_samples_}) == 5
    assert audit(model, X, y).holds


def test_a_class_that_a_sample_lacks_gets_probability_zero_from_its_member():
    X, y = np.arange(40.0)[:, None], np.r_[np.zeros(19), np.ones(20), [2]].astype(int)
    model = BaggingClassifier(GaussianNB(var_smoothing=1e-3), 10, random_state=0, oob_score=True).fit(X, y)
    assert {len(m.classes_) for m in model.estimators_} == {2, 3}
    assert model.predict_proba(X).shape == (40, 3)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert audit(model, X, y).holds


def test_a_member_that_refuses_a_sample_of_one_class_is_named():
    X, y = np.arange(12.0).reshape(6, 2), [0, 0, 0, 0, 0, 1]
    with pytest.raises(DataError, match="1 of 2 classes, which LogisticRegression refuses"):
        BaggingClassifier(LogisticRegression(), 10, random_state=0).fit(X, y)


def test_scores_are_averaged_where_members_have_them():
    X, y = datasets.load_breast_cancer(return_X_y=True)
    model = BaggingClassifier(make_pipeline(StandardScaler(), LogisticRegression()), 3, random_state=0).fit(X, y)
    expected = np.mean([m.decision_function(X) for m in model.estimators_], axis=0)
    np.testing.assert_allclose(model.decision_function(X), expected)
    assert not hasattr(BaggingClassifier(KNeighborsClassifier()), "decision_function")


def test_warm_start_and_jobs():
    X, y = IRIS
    whole = BaggingClassifier(SklearnTree(), 6, random_state=0).fit(X, y)
    grown = BaggingClassifier(SklearnTree(), 2, random_state=0, warm_start=True).fit(X, y)
    grown.set_params(n_estimators=6).fit(X, y)
    jobs = BaggingClassifier(SklearnTree(), 6, random_state=0, n_jobs=2).fit(X, y)
    for other in (grown, jobs):
        np.testing.assert_array_equal(other.predict_proba(X), whole.predict_proba(X))
    assert audit(grown, X, y).holds


@pytest.mark.parametrize("bad", [{"oob_score": True, "bootstrap": False}, {"oob_score": True, "warm_start": True},
                                 {"max_features": 9}, {"bootstrap": False, "max_samples": 500},
                                 {"max_samples": 1.5}])  # fmt: skip
def test_settings_that_make_no_sense_are_refused(bad):
    with pytest.raises(DataError):
        BaggingClassifier(GaussianNB(), **bad).fit(*IRIS)


def test_what_is_no_estimator_is_refused_in_words():
    with pytest.raises(DataError, match="estimator=3"):
        BaggingClassifier(3).fit(*IRIS)


def test_weights_for_members_that_take_none_are_drawn_by():
    X, y = IRIS
    w = np.random.default_rng(0).exponential(size=len(y))
    model = BaggingClassifier(KNeighborsClassifier(), 4, random_state=0).fit(X, y, sample_weight=w)
    assert audit(model, X, y, w).holds
    with pytest.raises(DataError, match="takes no sample_weight"):
        BaggingClassifier(KNeighborsClassifier(), 4, bootstrap=False).fit(X, y, sample_weight=w)


def test_what_no_fit_leaves_is_noticed():
    X, y = IRIS
    model = BaggingClassifier(DecisionTreeClassifier(max_depth=3), 4, random_state=0, oob_score=True).fit(X, y)
    for change in ("swap", "seed", "refit"):
        hurt = copy.deepcopy(model)
        if change == "swap":
            hurt.estimators_ = hurt.estimators_[::-1]
        elif change == "seed":
            hurt.seeds_ = hurt.seeds_ + 1
        else:
            hurt.estimators_ = [DecisionTreeClassifier(max_depth=3).fit(X, y)] * 4
        assert not audit(hurt, X, y).holds, change


@pytest.mark.parametrize("number", range(10))
def test_no_member_is_passed_over(number):
    X, y = IRIS
    model = BaggingClassifier(random_state=0).fit(X, y)
    tree = model.estimators_[number].tree_
    model.estimators_[number].tree_ = replace(tree, value=np.roll(tree.value, 1, axis=-1))
    assert not audit(model, X, y).holds


def test_members_of_other_settings_are_noticed():
    X, y = IRIS
    model = BaggingClassifier(DecisionTreeClassifier(max_depth=3), 4, random_state=0).fit(X, y)
    other = BaggingClassifier(DecisionTreeClassifier(max_depth=1), 4, random_state=0).fit(X, y)
    model.estimators_ = other.estimators_
    assert not audit(model, X, y).holds


def test_a_member_with_a_circle_of_nodes_is_refused():
    X, y = IRIS
    model = BaggingClassifier(n_estimators=2, random_state=0).fit(X, y)
    tree = model.estimators_[1].tree_
    left = tree.children_left.copy()
    left[np.flatnonzero(left > 0)[-1]] = 0
    model.estimators_[1].tree_ = replace(tree, children_left=left)
    with pytest.raises(DataError, match="exactly one other"):
        audit(model, X, y)


def test_scikit_learns_bags_are_audited():
    X, y = WINE
    theirs = ensemble.BaggingClassifier(SklearnTree(), 60, oob_score=True, max_features=0.5, random_state=0).fit(X, y)
    found = audit(theirs, X, y)
    assert found.holds
    assert found.kind == "statistical"
    theirs.oob_decision_function_ = theirs.oob_decision_function_[::-1]
    assert not audit(theirs, X, y).holds
    line = ensemble.BaggingRegressor(SklearnLine(), 5, random_state=0).fit(*DIABETES)
    assert audit(line, *DIABETES).holds
    line.estimators_[2].coef_ = line.estimators_[2].coef_ * 1.01
    assert not audit(line, *DIABETES).holds


def test_whole_weights_that_ask_for_too_many_draws_are_refused_in_words():
    X, y = IRIS
    huge = np.full(len(y), 1e12)
    with pytest.raises(DataError, match="max_samples"):
        BaggingClassifier(n_estimators=2, random_state=0).fit(X, y, sample_weight=huge)
    model = BaggingClassifier(n_estimators=2, max_samples=100, random_state=0).fit(X, y, sample_weight=huge)
    assert audit(model, X, y, huge).holds


def test_the_score_of_scikit_learns_bags_counts_rows_that_every_member_has_drawn():
    for kind, data in ((ensemble.BaggingClassifier, WINE), (ensemble.BaggingRegressor, DIABETES)):
        with pytest.warns((UserWarning, RuntimeWarning)):
            model = kind(n_estimators=3, oob_score=True, random_state=0).fit(*data)
        assert audit(model, *data).holds
        model.oob_score_ += 1e-6
        assert not audit(model, *data).holds
