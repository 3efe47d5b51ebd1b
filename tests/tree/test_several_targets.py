"""Trees of several targets and by absolute error: scikit-learn's trees, brute force over all splits, and proofs."""

import numpy as np
import pytest
from sklearn import tree as theirs
from sklearn.inspection import permutation_importance

import certifit
from certifit import DataError, DecisionTreeClassifier, DecisionTreeRegressor, audit


def two_targets(n=160, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, np.column_stack([X[:, 0] ** 2 + rng.normal(size=n), 3 * X[:, 1] + rng.normal(size=n)])


def two_labels(n=160, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, np.column_stack([(X[:, 0] + X[:, 1] > 0).astype(int), rng.integers(0, 3, n)])


def median_error(y, w):
    """Σ w |y - median|: the least over all of the targets."""
    return min((w * np.abs(y - m)).sum() for m in y)


# ------------------------------------------------------------------------------------------------- several targets
@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_classes_of_two_targets_as_scikit_learns(criterion):
    X, Y = two_labels()
    ours = DecisionTreeClassifier(criterion=criterion, max_depth=3).fit(X, Y)
    other = theirs.DecisionTreeClassifier(criterion=criterion, max_depth=3, random_state=0).fit(X, Y)
    assert np.array_equal(ours.tree_.feature, other.tree_.feature)
    assert np.allclose(ours.tree_.value, other.tree_.value)
    assert np.allclose(ours.tree_.impurity, other.tree_.impurity)
    assert np.array_equal(ours.predict(X), other.predict(X))
    for mine, his in zip(ours.predict_proba(X), other.predict_proba(X), strict=True):
        assert np.allclose(mine, his)
    assert (ours.n_outputs_, ours.n_classes_.tolist(), len(ours.classes_)) == (2, [2, 3], 2)
    assert ours.certificate_.holds
    assert audit(other, X, Y).holds


@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error", "poisson"])
def test_amounts_of_two_targets_as_scikit_learns(criterion):
    X, Y = two_targets()
    Y = np.abs(Y) if criterion == "poisson" else Y
    ours = DecisionTreeRegressor(criterion=criterion, max_depth=3).fit(X, Y)
    other = theirs.DecisionTreeRegressor(criterion=criterion, max_depth=3, random_state=0).fit(X, Y)
    assert np.array_equal(ours.tree_.feature, other.tree_.feature)
    assert np.allclose(ours.predict(X), other.predict(X))
    assert np.allclose(ours.tree_.impurity, other.tree_.impurity)
    assert ours.certificate_.holds
    assert audit(other, X, Y).holds
    assert ours.objective(X, Y).total == pytest.approx(ours.certificate_.objective)


def test_labels_in_words_names_of_columns_and_weights_of_classes():
    import pandas as pd

    X, Y = two_labels()
    frame = pd.DataFrame(X, columns=list("abcd")).assign(one=np.array(["no", "yes"])[Y[:, 0]], two=Y[:, 1])
    model = DecisionTreeClassifier(max_depth=2).fit(X, np.array([["no", "x"], ["yes", "y"]])[Y[:, 0]])
    assert [classes.tolist() for classes in model.classes_] == [["no", "yes"], ["x", "y"]]
    weights = [{"no": 2.0, "yes": 1.0}, {0: 1.0, 1: 1.0, 2: 5.0}]
    del frame["one"]
    numbers = frame.assign(one=Y[:, 0])
    balanced = DecisionTreeClassifier(class_weight="balanced", max_depth=2).fit(numbers, ["one", "two"])
    other = theirs.DecisionTreeClassifier(class_weight="balanced", max_depth=2, random_state=0).fit(X, Y)
    assert np.allclose(balanced.tree_.value, other.tree_.value)
    assert audit(balanced, numbers, ["one", "two"]).holds
    with pytest.raises(DataError, match="number of elements in class_weight should match number of outputs"):
        DecisionTreeClassifier(class_weight=weights[:1]).fit(X, Y)


def test_one_column_of_targets_is_one_target():
    X, Y = two_targets()
    model = DecisionTreeRegressor(max_depth=2).fit(X, Y[:, :1])
    assert model.predict(X).shape == (len(X),)


def test_permutation_importances_by_scikit_learn():
    X, Y = two_targets()
    found = permutation_importance(DecisionTreeRegressor(max_depth=4).fit(X, Y), X, Y, n_repeats=2, random_state=0)
    assert set(np.argsort(found.importances_mean)[-2:]) == {0, 1}


def test_a_value_of_the_second_target_that_is_wrong_does_not_hold():
    from dataclasses import replace

    for X, Y, model in (
        (*two_targets(), DecisionTreeRegressor(max_depth=2)),
        (*two_targets(), DecisionTreeRegressor(max_depth=2, criterion="absolute_error")),
        (*two_labels(), DecisionTreeClassifier(max_depth=2)),
    ):
        model.fit(X, Y)
        value = model.tree_.value.copy()
        value[:, 1, 0] += 0.37
        model.tree_ = replace(model.tree_, value=value)
        assert not audit(model, X, Y).holds


def test_targets_of_another_number_are_refused():
    X, Y = two_targets()
    model = DecisionTreeRegressor(max_depth=2).fit(X, Y)
    with pytest.raises(DataError, match="target"):
        audit(model, X, Y[:, 0])


# ------------------------------------------------------------------------------------------------- absolute errors
@pytest.mark.parametrize("seed", range(12))
def test_the_first_split_has_the_least_absolute_error(seed):
    """Brute force: every threshold of every column, every median; whole and broken weights, missing values."""
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 6, size=(25, 3)) * 1.5, rng.normal(size=25).round(1)
    w = rng.integers(1, 4, 25).astype(float) if seed % 2 else rng.uniform(0.1, 3, 25)
    if seed % 3 == 0:
        X[rng.random(X.shape) < 0.2] = np.nan
    model = DecisionTreeRegressor(criterion="absolute_error", max_depth=1).fit(X, y, w)
    best = np.inf
    for j in range(3):
        known = ~np.isnan(X[:, j])
        for t in np.unique(X[known, j]):
            for left in {(X[:, j] <= t).tobytes(), ((X[:, j] <= t) | ~known).tobytes()}:
                side = np.frombuffer(left, bool)
                if 0 < side.sum() < 25:
                    best = min(best, median_error(y[side], w[side]) + median_error(y[~side], w[~side]))
    assert model.objective(X, y, w).total * w.sum() == pytest.approx(best, rel=1e-12)
    assert model.certificate_.holds


def test_medians_are_those_of_scikit_learn_and_may_lie_between_two_rows():
    X, y = np.array([[0.0], [0.0], [1.0], [1.0]]), np.array([1.0, 3.0, 10.0, 20.0])
    model = DecisionTreeRegressor(criterion="absolute_error").fit(X, y)
    assert model.predict([[0.0], [1.0]]).tolist() == [2.0, 15.0]


@pytest.mark.parametrize("direction", [1, -1])
def test_monotone_medians(direction):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(200, 2))
    y = direction * X[:, 0] + np.sin(9 * X[:, 0]) / 3 + 0.2 * rng.normal(size=200)
    model = DecisionTreeRegressor(criterion="absolute_error", monotonic_cst=[direction, 0]).fit(X, y)
    grid = np.column_stack([np.linspace(0, 1, 101), np.full(101, 0.5)])
    assert (direction * np.diff(model.predict(grid)) >= 0).all()


def test_a_tree_of_several_targets_is_saved(tmp_path):
    X, Y = two_labels()
    model = DecisionTreeClassifier(max_depth=3).fit(X, Y)
    certifit.save(model, tmp_path / "tree.certifit")
    again = certifit.load(tmp_path / "tree.certifit")
    assert np.array_equal(again.predict(X), model.predict(X))
    assert audit(again, X, Y).holds


def test_random_thresholds_are_told_apart_from_best_ones():
    X, Y = two_targets()
    for criterion in ("squared_error", "absolute_error"):
        one, other = (
            DecisionTreeRegressor(criterion=criterion, splitter="random", random_state=seed).fit(X, Y[:, 0])
            for seed in (0, 1)
        )
        assert not np.array_equal(one.tree_.threshold[:3], other.tree_.threshold[:3])
        assert "drawn at random" in one.certificate_.claim
        assert one.certificate_.holds
        assert one.score(X, Y[:, 0]) == 1.0


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")  # 64 bits wrap around on purpose
@pytest.mark.compiled
def test_the_loops_of_medians(monkeypatch):
    """Medians and errors of prefixes against sorting each of them."""
    from certifit.numerics.compiled.compiling import compiled_at_once
    from certifit.tree.exact.measure_loops import PLAIN_FIRST, medians_of_nodes

    rng = np.random.default_rng(0)
    y, w = rng.normal(size=12), rng.integers(1, 4, 12).astype(float)
    start, end = np.array([0, 0, 5]), np.array([12, 5, 12])
    median, away = medians_of_nodes(y, w, start, end)
    for k in range(3):
        own, weight = y[start[k] : end[k]], w[start[k] : end[k]]
        assert median[k] == pytest.approx(np.median(np.repeat(own, weight.astype(int))))
        assert away[k] * weight.sum() == pytest.approx(median_error(own, weight))
    monkeypatch.setattr(PLAIN_FIRST, "is_compiled", lambda: False)
    y = rng.normal(size=300).round(1)
    for w in (np.ones(300), rng.random(300)):
        plain = medians_of_nodes(y, w, np.array([0, 0, 100, 299]), np.array([300, 100, 300, 300]))
        with compiled_at_once():
            loop = medians_of_nodes(y, w, np.array([0, 0, 100, 299]), np.array([300, 100, 300, 300]))
        assert np.array_equal(plain, loop)
    small = DecisionTreeRegressor(criterion="absolute_error").fit(rng.normal(size=(8, 2)).round(1), y[:8], w[:8])
    assert small.certificate_.holds
