"""Decision trees: known splits, brute force over all of them, scikit-learn's trees, and degenerate tables."""

import copy
import itertools
import math

import numpy as np
import pytest
from sklearn import tree as theirs
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine

import certifit
from certifit import DataError, DecisionTreeClassifier, DecisionTreeRegressor, audit

TABLES = {"iris": load_iris, "wine": load_wine, "cancer": load_breast_cancer}


def gini_fall(y, left, w):
    """What a split lowers the weighted Gini impurity by, written out."""

    def mass(part):
        total = w[part].sum()
        return total * (1 - sum((w[part & (y == c)].sum() / total) ** 2 for c in np.unique(y)))

    everywhere = np.ones(len(y), bool)
    return mass(everywhere) - mass(left) - mass(~left)


# ------------------------------------------------------------------------------------------------- known answers
@pytest.mark.parametrize("seed", range(20))
def test_the_first_split_is_the_best_of_all(seed):
    """Brute force: every threshold of every column."""
    rng = np.random.default_rng(seed)
    X, y, w = rng.integers(0, 6, size=(25, 3)) * 1.5, rng.integers(0, 3, 25), rng.uniform(0.1, 3, 25)
    root = DecisionTreeClassifier(max_depth=1).fit(X, y, w).tree_
    falls = [gini_fall(y, X[:, j] <= t, w) for j in range(3) for t in np.unique(X[:, j])[:-1]]
    reached = gini_fall(y, X[:, root.feature[0]] <= root.threshold[0], w)
    assert reached == pytest.approx(max(falls), rel=1e-12)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize(
    "settings", [{"max_depth": 2}, {"max_leaf_nodes": 4}, {"criterion": "entropy", "max_depth": 2}]
)
def test_as_good_a_tree_as_scikit_learns(name, settings):
    X, y = TABLES[name](return_X_y=True)
    ours = DecisionTreeClassifier(**settings).fit(X, y)
    other = theirs.DecisionTreeClassifier(random_state=0, **settings).fit(X, y)
    leaf = other.tree_.children_left < 0
    reached = other.tree_.impurity[leaf] @ other.tree_.weighted_n_node_samples[leaf] / len(X)
    assert ours.certificate_.objective == pytest.approx(reached, rel=1e-9)
    assert audit(other, X, y).holds


def test_the_same_tree_as_scikit_learns_where_the_best_splits_are_unique():
    X, y = load_diabetes(return_X_y=True)
    ours = DecisionTreeRegressor(max_depth=3).fit(X, y).tree_
    other = theirs.DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, y).tree_
    assert np.array_equal(ours.children_left, other.children_left)
    assert np.array_equal(ours.feature, other.feature)
    assert np.allclose(ours.threshold, other.threshold, rtol=1e-6)
    assert np.allclose(ours.value, other.value)
    assert np.allclose(ours.impurity, other.impurity)


def test_an_exclusive_or_is_learnt_though_no_first_split_gains():
    X = np.array(list(itertools.product([0.0, 1.0], repeat=2)))
    assert DecisionTreeClassifier().fit(X, [0, 1, 1, 0]).score(X, [0, 1, 1, 0]) == 1.0


def test_of_equal_splits_the_lowest_column_and_threshold_win():
    x = np.array([0.0, 1.0, 2.0, 3.0])
    model = DecisionTreeClassifier(max_depth=1).fit(np.column_stack([x, -x, x]), [0, 1, 1, 0])
    assert (model.tree_.feature[0], model.tree_.threshold[0]) == (0, 0.5)


# ------------------------------------------------------------------------------------------------------- numbers
def test_neighbouring_doubles_are_told_apart():
    x = np.array([1.0, np.nextafter(1.0, 2.0)])
    model = DecisionTreeClassifier().fit(x[:, None], [0, 1])
    assert model.predict(x[:, None]).tolist() == [0, 1]


@pytest.mark.parametrize(("far", "unit"), [(1e9, 1.0), (0.0, 1e-12), (1e15, 4.0), (0.0, 1e150)])
def test_a_step_is_found_at_any_offset_and_scale(far, unit):
    X = np.arange(100.0)[:, None]
    y = far + unit * (X[:, 0] >= 37)
    model = DecisionTreeRegressor(max_depth=1).fit(X, y)
    assert model.tree_.threshold[0] == 36.5
    assert np.allclose(model.predict(X), y, rtol=1e-15, atol=1e-9 * unit)


def test_huge_and_denormal_values():
    x = np.array([-1.7e308, -1e-310, 0.0, 1e-310, 1.7e308])
    y = [0, 1, 0, 1, 0]
    assert DecisionTreeClassifier().fit(x[:, None], y).score(x[:, None], y) == 1.0


def test_missing_values_go_to_the_side_that_gains():
    x = np.array([0.0, 1.0, 2.0, 3.0, np.nan, np.nan])
    low = DecisionTreeClassifier().fit(x[:, None], [0, 0, 1, 1, 0, 0])
    high = DecisionTreeClassifier().fit(x[:, None], [0, 0, 1, 1, 1, 1])
    apart = DecisionTreeClassifier(max_depth=1).fit(x[:, None], [0, 0, 0, 0, 1, 1])
    for model, answer in ((low, 0), (high, 1), (apart, 1)):
        assert model.tree_.node_count == 3
        assert model.predict([[np.nan]]).tolist() == [answer]
        assert model.certificate_.holds
    assert apart.tree_.threshold[0] == np.inf


def test_leaves_of_nothing_but_zeros_are_proved():
    """The mean of a leaf is the root's and a difference from it: of 0 that leaves -1e-30 beside amounts of 2."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(60, 3)).round(1)
        y, w = (X[:, 0] > 0) * rng.integers(0, 3, 60).astype(float), rng.random(60)
        model = DecisionTreeRegressor(max_depth=3).fit(X, y, w)
        assert model.certificate_.holds
        assert audit(model, X, y, sample_weight=w).holds


def test_zero_weights_are_no_rows():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 2, 60)
    w = (np.arange(60) < 40).astype(float)
    assert np.array_equal(
        DecisionTreeClassifier().fit(X, y, w).tree_.threshold,
        DecisionTreeClassifier().fit(X[:40], y[:40]).tree_.threshold,
    )
    amounts = rng.normal(size=60)  # some of them negative, which the checker must not take logarithms of
    assert DecisionTreeRegressor().fit(X, amounts, w).certificate_.holds


def test_one_class_constant_columns_and_one_row():
    model = DecisionTreeClassifier().fit(np.ones((5, 2)), ["a"] * 5)
    assert model.predict(np.zeros((1, 2))).tolist() == ["a"]
    assert DecisionTreeRegressor().fit([[1.0]], [3.0]).predict([[0.0]]).tolist() == [3.0]
    mixed = DecisionTreeClassifier().fit(np.ones((4, 2)), [0, 1, 1, 1])
    assert mixed.predict_proba([[1.0, 1.0]]).tolist() == [[0.25, 0.75]]


# ----------------------------------------------------------------------------------------------- pruning, monotony
def test_scikit_learns_trees_are_held_to_the_values_that_they_part():
    """They take values nearer than 1e-7 for equal: here the column that would tell the classes apart."""
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = np.column_stack([4e-4 + 5e-8 * y, y + 0.8 * rng.normal(size=40)])
    model = theirs.DecisionTreeClassifier(max_depth=2).fit(X, y)
    assert set(model.tree_.feature[model.tree_.feature >= 0]) == {1}
    assert audit(model, X, y).holds
    ours = DecisionTreeClassifier(max_depth=2).fit(X, y)
    assert ours.tree_.feature[0] == 0
    assert audit(ours, X, y).holds
    model.tree_.threshold[0] += 0.3
    assert not audit(model, X, y).holds


def test_pruning_is_that_of_scikit_learn():
    X, y = load_wine(return_X_y=True)
    ours = DecisionTreeClassifier().cost_complexity_pruning_path(X, y)
    other = theirs.DecisionTreeClassifier(random_state=0).cost_complexity_pruning_path(X, y)
    assert np.allclose(ours.ccp_alphas[-5:], other.ccp_alphas[-5:])
    for alpha in (0.01, 0.05, 0.3):
        kept = DecisionTreeClassifier(ccp_alpha=alpha).fit(X, y)
        assert (
            kept.get_n_leaves()
            == theirs.DecisionTreeClassifier(random_state=0, ccp_alpha=alpha).fit(X, y).get_n_leaves()
        )
        assert kept.certificate_.holds


@pytest.mark.parametrize("direction", [1, -1])
def test_monotone_columns_stay_monotone(direction):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 2))
    y = direction * X[:, 0] + np.sin(9 * X[:, 0]) / 3 + X[:, 1] + 0.1 * rng.normal(size=300)
    model = DecisionTreeRegressor(max_depth=6, monotonic_cst=[direction, 0]).fit(X, y)
    grid = np.linspace(0, 1, 201)
    for other in (0.1, 0.5, 0.9):
        rise = np.diff(model.predict(np.column_stack([grid, np.full(201, other)])))
        assert (direction * rise >= 0).all()
    free = DecisionTreeRegressor(max_depth=6).fit(X, y)
    assert (np.diff(free.predict(np.column_stack([grid, np.full(201, 0.5)]))) * direction < 0).any()


# ---------------------------------------------------------------------------------------------------------- proofs
def test_a_split_that_is_not_the_best_does_not_hold():
    """scikit-learn's tree of another column is honest about its nodes, and not greedy."""
    X, y = load_iris(return_X_y=True)
    model = theirs.DecisionTreeClassifier(max_depth=1, random_state=0).fit(X[:, :2], y)
    padded = np.column_stack([X[:, :2], np.zeros(len(X))])
    poor = theirs.DecisionTreeClassifier(max_depth=1, random_state=0).fit(padded, y)
    assert audit(poor, padded, y).holds
    found = audit(poor, np.column_stack([X[:, :2], X[:, 2]]), y)
    assert [check.name for check in found.checks if not check.passed] == [
        "best split of a node missed by, of its impurity"
    ]
    assert audit(model, X[:, :2], y).holds


@pytest.mark.parametrize("library", [certifit, theirs])
def test_of_several_medians_a_node_says_the_middle(library):
    """Every number between the two middle rows has the same sum of distances; a prediction is one of them."""
    X, y = np.zeros((4, 1)), np.array([0.0, 1.0, 4.0, 9.0])
    model = library.DecisionTreeRegressor(criterion="absolute_error").fit(X, y)
    assert model.predict(X[:1]) == [2.5]
    assert audit(model, X, y).holds
    for another in (1.0, 2.0, 2.6, 4.0):
        found = audit(replaced_value(model, another), X, y)
        assert not found.holds
        assert "middle of several" in found.failures()[0]
    uneven = np.array([1.0, 1.0, 1.0, 0.5])
    model.fit(X, y, sample_weight=uneven)
    assert model.predict(X[:1]) == [1.0]
    assert audit(model, X, y, uneven).holds


def replaced_value(model, value):
    """The same tree of one node, which says this value."""
    changed = copy.deepcopy(model)
    changed.tree_.value[:] = value
    return changed


def test_a_tree_stopped_too_early_does_not_hold():
    X, y = load_iris(return_X_y=True)
    model = DecisionTreeClassifier(max_depth=1).fit(X, y).set_params(max_depth=None)
    assert any("should have been split" in words for words in audit(model, X, y).failures())


def test_arrays_that_are_no_tree_are_refused():
    from dataclasses import replace

    X, y = load_iris(return_X_y=True)
    model = DecisionTreeClassifier(max_depth=2).fit(X, y)
    whole = model.tree_
    circle = whole.children_left.copy()
    circle[0] = 0
    wrongs = ({"children_left": circle}, {"feature": whole.feature + 9}, {"threshold": whole.threshold[:-1]},
              {"n_features": 4.0})  # fmt: skip
    for wrong in wrongs:
        model.tree_ = replace(whole, **wrong)
        with pytest.raises(DataError, match="in a fitted tree"):
            audit(model, X, y)


def test_a_saved_tree_is_the_same(tmp_path):
    X, y = load_wine(return_X_y=True)
    model = DecisionTreeClassifier().fit(X, y)
    certifit.save(model, tmp_path / "tree.certifit")
    again = certifit.load(tmp_path / "tree.certifit")
    assert np.array_equal(again.predict(X), model.predict(X))
    assert audit(again, X, y).holds


# ------------------------------------------------------------------------------------------------------- lookahead
def test_looking_ahead_finds_an_exclusive_or():
    """Among columns of noise, greedy growth takes one that seems to gain a little."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(400, 6))
    y = (X[:, 2] > 0) ^ (X[:, 4] > 0)
    ahead = DecisionTreeClassifier(max_depth=2, lookahead=2).fit(X, y)
    assert ahead.score(X, y) > 0.95
    assert set(ahead.tree_.feature[ahead.tree_.feature >= 0]) == {2, 4}
    assert DecisionTreeClassifier(max_depth=2).fit(X, y).score(X, y) < 0.7
    assert "two levels ahead" in ahead.certificate_.claim
    assert audit(ahead, X, y).holds


@pytest.mark.parametrize("seed", range(4))
def test_looking_ahead_takes_the_first_question_of_the_best_tree_of_depth_two(seed):
    """With few values every threshold is a border: no tree of depth 2 has a smaller squared error."""
    from certifit import OptimalTreeRegressor

    rng = np.random.default_rng(seed)
    X, y, w = rng.integers(0, 9, size=(60, 3)).astype(float), rng.normal(size=60), rng.uniform(0.5, 2, 60)
    X[rng.random(X.shape) < 0.1] = np.nan
    ahead = DecisionTreeRegressor(max_depth=2, lookahead=2).fit(X, y, w)
    best = OptimalTreeRegressor(max_depth=2).fit(X, y, w)
    assert ahead.certificate_.objective == pytest.approx(best.certificate_.objective, rel=1e-9)
    assert ahead.certificate_.holds


def test_looking_ahead_keeps_to_the_rules():
    X, y = load_wine(return_X_y=True)
    for settings in ({"min_samples_leaf": 20}, {"max_leaf_nodes": 5}, {"criterion": "entropy"}, {"max_features": 3}):
        model = DecisionTreeClassifier(lookahead=2, random_state=0, **settings).fit(X, y)
        assert model.certificate_.holds
        assert model.score(X, y) > 0.85
    for settings in ({"splitter": "random"}, {"categorical_features": [0]}, {"monotonic_cst": [0] * 13}):
        with pytest.raises(DataError, match="lookahead=2 with"):
            DecisionTreeClassifier(lookahead=2, **settings).fit(X, y > 0)


@pytest.mark.parametrize("seed", [1, 2, 9, 10])
def test_weights_of_eight_decades_are_proved(seed):
    """A mean is measured from the heavier child, and splits are told apart to the digits that the weights have."""
    rng = np.random.default_rng(seed)
    X, y, w = rng.normal(size=(40, 2)), rng.normal(size=40), 10.0 ** rng.uniform(-4, 4, size=40)
    model = DecisionTreeRegressor().fit(X, y, w)
    assert model.certificate_.holds, model.certificate_.failures()
    root = model.tree_.value[0, 0, 0]
    assert root == pytest.approx(math.fsum(w * y) / math.fsum(w), rel=4e-15)
    model.tree_.value[0] *= 1 + 1e-9
    assert not audit(model, X, y, w).holds


def test_fewer_rows_than_a_leaf_needs_are_one_leaf():
    model = DecisionTreeClassifier(min_samples_leaf=3).fit([[1.0], [2.0]], ["a", "b"])
    assert model.tree_.node_count == 1
    assert model.certificate_.holds
    assert audit(model, [[1.0], [2.0]], ["a", "b"]).holds


@pytest.mark.parametrize("far", [1e7, 1e9, 1e12])
def test_a_group_far_from_the_others_is_split_as_if_it_were_alone(far):
    """The first question parts the groups; below it, only distances within a group matter."""
    rng = np.random.default_rng(2)
    x, steps = np.arange(40.0), rng.integers(0, 3, 40)
    X = np.stack([x, rng.permutation(40) % 20, rng.normal(size=40)], axis=1)
    tree = DecisionTreeRegressor(max_depth=3).fit(X, np.where(x < 20, 0.0, far) + steps)
    assert tree.certificate_.holds
    for group, offset in ((x < 20, 0.0), (x >= 20, far)):
        alone = DecisionTreeRegressor(max_depth=2).fit(X[group], steps[group])
        np.testing.assert_allclose(tree.predict(X[group]) - offset, alone.predict(X[group]), atol=far * 1e-15)


@pytest.mark.parametrize("seed", range(4))
def test_scikit_learns_trees_hold_beside_a_heavy_row_and_where_columns_are_monotone(seed):
    rng = np.random.default_rng(seed)
    X, far, w = rng.normal(size=(150, 2)), 100 + rng.normal(size=150), np.ones(150)
    w[0] = 1e5
    # Impurities of children are left over from their parents', with these ones' rounding.
    heavy = theirs.DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, far, sample_weight=w)
    assert audit(heavy, X, far, sample_weight=w).holds
    heavy.tree_.impurity[1:] *= 1.01
    assert not audit(heavy, X, far, sample_weight=w).holds
    y = X[:, 0] + rng.normal(size=150)
    for model, target in ((theirs.DecisionTreeRegressor, y), (theirs.DecisionTreeClassifier, (y > 0).astype(int))):
        tree = model(monotonic_cst=[1, 0], random_state=0).fit(X, target)
        assert audit(tree, X, target).holds
        leaf = int(np.flatnonzero(tree.tree_.children_left < 0)[0])
        tree.tree_.value[leaf] = tree.tree_.value[leaf][:, ::-1] if tree.tree_.value.shape[2] > 1 else 7.0
        assert not audit(tree, X, target).holds
    strange = theirs.DecisionTreeRegressor(criterion="absolute_error", monotonic_cst=[1, 0], max_depth=2).fit(X, y)
    with pytest.raises(DataError, match="monotonic_cst"):
        audit(strange, X, y)
