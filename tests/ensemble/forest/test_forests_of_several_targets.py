"""Forests of several targets: the trees of one target each where nothing is shared, scikit-learn's shapes, proofs."""

from dataclasses import fields, replace

import numpy as np
import pytest
from sklearn import ensemble
from sklearn.metrics import r2_score

import certifit
from certifit import (
    DataError,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    audit,
)
from certifit.tree.binned import bins
from certifit.tree.binned.seeded import growing


def amounts(n=240, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)).round(1)
    return X, np.column_stack([X[:, 0] ** 2 + rng.normal(size=n), 3 * X[:, 1] + rng.normal(size=n)])


def labels(n=240, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)).round(1)
    third = np.digitize(X[:, 1] + 0.3 * rng.normal(size=n), [-0.5, 0.5])
    return X, np.column_stack([(X[:, 0] + X[:, 1] > 0).astype(int), third])


ALL = [(RandomForestClassifier, labels), (ExtraTreesClassifier, labels)]
ALL += [(RandomForestRegressor, amounts), (ExtraTreesRegressor, amounts)]


# ------------------------------------------------------------------------------------------------------ agreement
@pytest.mark.compiled
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")  # 64 bits wrap around on purpose
@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error", "poisson"])
def test_one_tree_on_all_rows_and_columns_is_the_decision_tree(criterion):
    """The sums of exact trees of several targets, which are checked against scikit-learn's."""
    of_classes = criterion in ("gini", "entropy")
    X, Y = labels(80) if of_classes else amounts(80)
    X[::9, 3] = np.nan
    Y = np.abs(Y) if criterion == "poisson" else Y
    settings = {"criterion": criterion, "max_depth": 3, "random_state": 0}
    forest, tree = (
        (RandomForestClassifier, DecisionTreeClassifier)
        if of_classes
        else (RandomForestRegressor, DecisionTreeRegressor)
    )
    mine = forest(1, bootstrap=False, max_features=None, **settings).fit(X, Y)
    one = tree(**settings).fit(X, Y)
    np.testing.assert_array_equal(mine.estimators_[0].tree_.feature, one.tree_.feature)
    np.testing.assert_allclose(mine.estimators_[0].tree_.value, one.tree_.value, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(mine.estimators_[0].tree_.impurity, one.tree_.impurity, rtol=1e-9, atol=1e-12)
    assert mine.certificate_.holds


@pytest.mark.parametrize(("cls", "data"), ALL)
def test_shapes_and_quality_of_scikit_learn(cls, data):
    X, Y = data()
    mine = cls(15, random_state=0).fit(X[:160], Y[:160])
    peer = getattr(ensemble, cls.__name__)(15, random_state=0).fit(X[:160], Y[:160])
    assert mine.n_outputs_ == peer.n_outputs_ == 2
    a, b = mine.predict(X[160:]), peer.predict(X[160:])
    assert a.shape == b.shape
    if data is labels:
        assert mine.n_classes_ == peer.n_classes_ == [2, 3]
        assert [p.shape for p in mine.predict_proba(X[160:])] == [p.shape for p in peer.predict_proba(X[160:])]
        assert [p.shape for p in mine.predict_log_proba(X[:2])] == [(2, 2), (2, 3)]
        assert abs((a == Y[160:]).mean() - (b == Y[160:]).mean()) < 0.1
    else:
        assert abs(mine.score(X[160:], Y[160:]) - peer.score(X[160:], Y[160:])) < 0.1
    assert audit(mine, X[:160], Y[:160]).holds
    assert audit(peer, X[:160], Y[:160]).holds
    np.testing.assert_allclose(mine.to_sklearn().predict(X[:9]), mine.predict(X[:9]))
    assert mine.objective(X[:160], Y[:160]).total == pytest.approx(mine.certificate_.objective, rel=1e-9)


@pytest.mark.parametrize(("cls", "data"), ALL)
@pytest.mark.parametrize("weighted", [False, True])
def test_without_compiled_loops_they_have_the_same_bits(monkeypatch, cls, data, weighted):
    X, Y = data(120)
    X[::7, 2] = np.nan
    w = np.random.default_rng(3).random(len(X)) + 0.1 if weighted else None
    found = []
    for plain in (True, False):
        for place in (growing.PLAIN_FIRST, bins.PLAIN_FIRST):
            monkeypatch.setattr(place, "suffices", lambda entries, plain=plain: plain)
        found.append(cls(3, random_state=1, min_samples_leaf=2).fit(X, Y, w).trees_)
    for field in fields(found[0]):
        np.testing.assert_array_equal(*(getattr(trees, field.name) for trees in found), err_msg=field.name)


# ------------------------------------------------------------------------------------------------------ out of bag
def test_out_of_bag_answers_of_amounts_as_scikit_learn_counts_them():
    X, Y = amounts()
    model = RandomForestRegressor(40, oob_score=True, random_state=0).fit(X, Y)
    known = ~np.isnan(model.oob_prediction_).any(axis=1)
    assert model.oob_prediction_.shape == model.oob_residual_.shape == Y.shape
    assert model.oob_score_ == pytest.approx(r2_score(Y[known], model.oob_prediction_[known]))
    assert model.oob_interval_[0] < model.oob_score_ < model.oob_interval_[1]
    assert model.certificate_.kind == "statistical"
    assert audit(model, X, Y).holds
    peer = ensemble.RandomForestRegressor(40, oob_score=True, random_state=0).fit(X, Y)
    assert abs(peer.oob_score_ - model.oob_score_) < 0.1
    assert audit(peer, X, Y).holds


def test_out_of_bag_answers_of_labels_are_right_where_all_are():
    X, Y = labels()
    Y = (Y > 0).astype(int)
    model = RandomForestClassifier(40, oob_score=True, random_state=0).fit(X, Y)
    peer = ensemble.RandomForestClassifier(40, oob_score=True, random_state=0).fit(X, Y)
    assert model.oob_decision_function_.shape == peer.oob_decision_function_.shape == (len(X), 2, 2)
    said = model.oob_decision_function_.argmax(axis=1)
    assert model.oob_score_ == pytest.approx((said == Y).all(axis=1).mean())
    assert audit(model, X, Y).holds
    assert audit(peer, X, Y).holds
    own = RandomForestClassifier(20, oob_score=lambda true, said: (true == said).mean(), random_state=0).fit(X, Y)
    assert own.oob_score_ > own.set_params(oob_score=True).fit(X, Y).oob_score_
    found = model.oob_permutation_importances(X, Y, n_repeats=1, random_state=0)
    assert set(np.argsort(found.importances_mean)[-2:]) == {0, 1}


# ------------------------------------------------------------------------------------------------ weights and files
@pytest.mark.parametrize("weight", ["balanced", "balanced_subsample", [{0: 2.0, 1: 1.0}, {2: 5.0}]], ids=str)
def test_class_weights_of_both_targets(weight):
    X, Y = labels()
    model = RandomForestClassifier(5, class_weight=weight, random_state=0).fit(X, Y)
    assert audit(model, X, Y).holds
    with pytest.raises(DataError, match="number of elements in class_weight should match number of outputs"):
        RandomForestClassifier(5, class_weight=[{0: 1.0}]).fit(X, Y)


def test_saved_warm_started_and_named(tmp_path):
    import pandas as pd

    X, Y = labels()
    frame = pd.DataFrame(X, columns=list("abcd")).assign(one=Y[:, 0], two=Y[:, 1])
    model = ExtraTreesClassifier(3, random_state=0, warm_start=True).fit(frame, ["one", "two"])
    model.set_params(n_estimators=5).fit(frame, ["one", "two"])
    assert len(model.trees_) == 5
    certifit.save(model, tmp_path / "forest.certifit")
    again = certifit.load(tmp_path / "forest.certifit")
    np.testing.assert_array_equal(again.predict(frame[list("abcd")]), model.predict(frame[list("abcd")]))
    assert audit(again, frame, ["one", "two"]).holds


# ---------------------------------------------------------------------------------------------------------- refusals
@pytest.mark.parametrize(("cls", "data"), ALL)
def test_a_wrong_value_of_the_second_target_does_not_hold(cls, data):
    X, Y = data()
    model = cls(3, random_state=0).fit(X, Y)
    value = model.trees_.value.copy()
    value[:, -1] += 0.1
    model.trees_ = replace(model.trees_, value=value)
    assert not audit(model, X, Y).holds


def test_splits_of_one_target_alone_do_not_hold():
    X, Y = amounts()
    model = RandomForestRegressor(2, random_state=0, bootstrap=False, max_depth=2).fit(X, Y)
    other = RandomForestRegressor(2, random_state=0, bootstrap=False, max_depth=2).fit(X, Y[:, [0, 0]])
    model.trees_ = other.trees_
    failed = [check.name for check in audit(model, X, Y).checks if not check.passed]
    assert "best split of a node missed by, of its impurity" in failed


def test_intervals_are_the_jackknife_plus_of_each_target():
    """The definition of Kim, Xu & Barber (2020), from the members and the rows that they have drawn."""
    X, Y = amounts(80)
    model = RandomForestRegressor(12, oob_score=True, random_state=0, max_depth=3).fit(X, Y)
    drawn = np.array([np.isin(np.arange(80), sample) for sample in model.estimators_samples_])
    some = ~drawn.all(axis=0)
    said = np.stack([tree.predict(X[:5]) for tree in model.estimators_])
    found = model.predict_interval(X[:5], 0.8)
    assert found.shape == (5, 2, 2)
    m = int(some.sum())
    for t in range(2):
        means = np.array([said[~drawn[:, i], :, t].mean(axis=0) for i in np.flatnonzero(some)])
        residual = np.abs(model.oob_residual_[some, t])[:, None]
        low = np.sort(means - residual, axis=0)[int(np.floor(0.2 * (m + 1))) - 1]
        high = np.sort(means + residual, axis=0)[int(np.ceil(0.8 * (m + 1))) - 1]
        np.testing.assert_allclose(found[:, t], np.column_stack([low, high]), rtol=1e-12)


def test_quantiles_of_one_tree_are_those_of_its_leaf_for_each_target():
    X, Y = amounts(80)
    model = RandomForestRegressor(1, bootstrap=False, max_leaf_nodes=5, random_state=0).fit(X, Y)
    found = model.predict_quantiles(X[:5], (0.25, 0.5), fitted_on=(X, Y))
    leaf = model.apply(X)[:, 0]
    for i in range(5):
        own = np.sort(Y[leaf == leaf[i]], axis=0)
        for q, level in enumerate((0.25, 0.5)):
            np.testing.assert_array_equal(found[i, :, q], own[int(np.ceil(level * len(own))) - 1])


def test_what_is_of_one_target_says_so():
    X, Y = amounts()
    model = RandomForestRegressor(5, oob_score=True, random_state=0).fit(X, Y)
    with pytest.raises(DataError, match="the 2 of the fit"):
        model.predict_quantiles(X, fitted_on=(X, Y[:, 0]))
    with pytest.raises(DataError, match="target"):
        audit(model, X, Y[:, 0])
    with pytest.raises(DataError, match="targets"):
        RandomForestRegressor(2, monotonic_cst=[1, 0, 0, 0]).fit(X, Y)
    with pytest.raises(DataError, match="several targets"):
        certifit.prove_monotone(model, 0)
