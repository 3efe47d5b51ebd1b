"""Random forests and extremely randomised trees: growth, bootstrap, out-of-bag answers; what the audit notices."""

import contextlib
import copy
from dataclasses import replace

import numpy as np
import pytest
from sklearn import datasets, ensemble
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

import certifit
from certifit import (
    DataError,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    audit,
)
from certifit.checkers.ensemble.forest import plain_bootstrap
from certifit.checkers.ensemble.forest.out_of_bag import summarise
from certifit.ensemble.forest.bootstrap import Bootstrap
from certifit.rows import Block, as_rows
from certifit.tree.routing.packed_trees import add_leaf_values

CANCER = datasets.load_breast_cancer(return_X_y=True)
DIABETES = datasets.load_diabetes(return_X_y=True)
WINE = datasets.load_wine(return_X_y=True)
CLASSIFIERS = [RandomForestClassifier, ExtraTreesClassifier]
# Without Numba, NumPy says that random bits wrap around.
WRAPPING = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
REGRESSORS = [RandomForestRegressor, ExtraTreesRegressor]


def friedman(n, seed=0):
    return datasets.make_friedman1(n, random_state=seed)


# ------------------------------------------------------------------------------------------------------ agreement
@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_as_good_as_scikit_learn_on_classes(cls):
    """Within the sampling error of 400 test rows, and within 0.2 points of AUC more or less than noise."""
    X, y = datasets.make_classification(2400, 20, n_informative=8, flip_y=0.05, random_state=1)
    train, test, y_train, y_test = train_test_split(X, y, test_size=1600, random_state=0)
    peer = getattr(ensemble, cls.__name__)(60, random_state=0).fit(train, y_train)
    mine = cls(60, random_state=0).fit(train, y_train)
    a, b = (roc_auc_score(y_test, m.predict_proba(test)[:, 1]) for m in (mine, peer))
    assert abs(a - b) < 0.015
    assert abs(mine.score(test, y_test) - peer.score(test, y_test)) < 0.03


@pytest.mark.parametrize("cls", REGRESSORS)
def test_as_good_as_scikit_learn_on_amounts(cls):
    X, y = friedman(900)
    peer = getattr(ensemble, cls.__name__)(60, random_state=0).fit(X[:400], y[:400])
    mine = cls(60, random_state=0).fit(X[:400], y[:400])
    assert abs(mine.score(X[400:], y[400:]) - peer.score(X[400:], y[400:])) < 0.03


@pytest.mark.compiled
@WRAPPING
def test_one_tree_on_all_rows_and_columns_is_the_decision_tree():
    """Without chance, growth from codes and exact growth choose splits of the same impurity at every depth."""
    X, y = datasets.load_iris(return_X_y=True)
    settings = {"max_depth": 3, "random_state": 0}
    forest = RandomForestClassifier(1, bootstrap=False, max_features=None, **settings).fit(X, y)
    tree = certifit.DecisionTreeClassifier(**settings).fit(X, y)
    np.testing.assert_array_equal(forest.estimators_[0].tree_.feature, tree.tree_.feature)
    np.testing.assert_array_equal(forest.estimators_[0].tree_.n_node_samples, tree.tree_.n_node_samples)
    np.testing.assert_allclose(forest.predict_proba(X), tree.predict_proba(X), atol=1e-14)


def test_attributes_and_methods_of_scikit_learn():
    X, y = WINE
    mine = RandomForestClassifier(7, random_state=0, oob_score=True).fit(X, y)
    assert len(mine.estimators_) == len(mine) == 7
    assert mine.apply(X).shape == (len(X), 7)
    path, first = mine.decision_path(X[:5])
    assert path.shape == (5, first[-1])
    leaves = mine.apply(X[:5]) + first[:-1]
    assert all(path[i, leaf] == 1 for i in range(5) for leaf in leaves[i])
    assert mine.feature_importances_.sum() == pytest.approx(1)
    votes = np.mean([tree.predict_proba(X) for tree in mine.estimators_], axis=0)
    np.testing.assert_allclose(mine.predict_proba(X), votes, atol=1e-14)
    np.testing.assert_array_equal(mine.predict(X), mine.classes_[votes.argmax(axis=1)])
    unseen = np.ones((7, len(X)), bool)
    for t, sample in enumerate(mine.estimators_samples_):
        assert len(sample) == len(X)
        unseen[t, sample] = False
    for i in range(20):
        out = [tree.predict_proba(X[[i]])[0] for t, tree in enumerate(mine.estimators_) if unseen[t, i]]
        expected = np.mean(out, axis=0) if out else np.full(3, np.nan)
        np.testing.assert_allclose(mine.oob_decision_function_[i], expected, atol=1e-14)


# -------------------------------------------------------------------------------------------------------- settings
def test_settings_keep_their_word():
    X, y = CANCER
    forest = RandomForestClassifier(5, max_depth=3, min_samples_leaf=10, random_state=0).fit(X, y)
    for tree in forest.estimators_:
        assert tree.get_depth() <= 3
        assert tree.tree_.n_node_samples.min() >= 10
    few = RandomForestClassifier(5, max_leaf_nodes=6, random_state=0).fit(X, y)
    assert all(tree.get_n_leaves() <= 6 for tree in few.estimators_)
    cut = RandomForestClassifier(5, ccp_alpha=0.02, random_state=0).fit(X, y)
    whole = RandomForestClassifier(5, random_state=0).fit(X, y)
    assert sum(t.get_n_leaves() for t in cut.estimators_) < sum(t.get_n_leaves() for t in whole.estimators_)
    still = RandomForestClassifier(5, min_impurity_decrease=0.05, random_state=0).fit(X, y)
    heavy = RandomForestRegressor(5, min_weight_fraction_leaf=0.1, random_state=0).fit(*DIABETES)
    sampled = RandomForestClassifier(5, max_samples=0.3, random_state=0).fit(X, y)
    assert sampled.estimators_[0].tree_.weighted_n_node_samples[0] == round(0.3 * len(X))
    for model, data in ((forest, CANCER), (few, CANCER), (cut, CANCER), (still, CANCER), (heavy, DIABETES),
                        (sampled, CANCER)):  # fmt: skip
        assert audit(model, *data).holds


@pytest.mark.parametrize("class_weight", ["balanced", "balanced_subsample", {0: 1.0, 1: 5.0}])
@pytest.mark.parametrize("bootstrap", [True, False])
def test_class_weights(class_weight, bootstrap):
    X, y = CANCER
    model = RandomForestClassifier(4, class_weight=class_weight, bootstrap=bootstrap, max_depth=3, random_state=0)
    assert model.fit(X, y).certificate_.holds
    assert audit(model, X, y).holds
    share = np.mean([tree.tree_.value[0, 0, 1] for tree in model.estimators_])
    expected = 0.5 if isinstance(class_weight, str) else np.average(y == 1, weights=np.where(y == 1, 5.0, 1.0))
    assert share == pytest.approx(expected, abs=1e-9 if not bootstrap or class_weight != "balanced" else 0.05) or (
        isinstance(class_weight, dict) and abs(share - expected) < 0.05
    )


@pytest.mark.parametrize("drawn", [False, True])
def test_monotone_columns(drawn):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(400, 3))
    y = X[:, 0] + 0.5 * np.sin(12 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=400)
    cls = ExtraTreesRegressor if drawn else RandomForestRegressor
    model = cls(10, monotonic_cst=[1, 0, -1], random_state=0).fit(X, y)
    grid = np.tile(rng.uniform(size=(20, 1, 3)), (1, 50, 1))
    for j, sign in ((0, 1), (2, -1)):
        moved = grid.copy()
        moved[:, :, j] = np.linspace(0, 1, 50)
        steps = np.diff(model.predict(moved.reshape(-1, 3)).reshape(20, 50), axis=1)
        assert (sign * steps >= -1e-12).all()
    free = cls(10, random_state=0).fit(X, y)
    moved = grid.copy()
    moved[:, :, 0] = np.linspace(0, 1, 50)
    assert (np.diff(free.predict(moved.reshape(-1, 3)).reshape(20, 50), axis=1) < 0).any()
    assert audit(model, X, y).holds


def test_warm_start_adds_the_trees_that_a_larger_forest_would_have():
    X, y = WINE
    grown = RandomForestClassifier(3, warm_start=True, random_state=0).fit(X, y)
    grown.set_params(n_estimators=8).fit(X, y)
    whole = RandomForestClassifier(8, random_state=0).fit(X, y)
    np.testing.assert_array_equal(grown.predict_proba(X), whole.predict_proba(X))
    assert audit(grown, X, y).holds
    with pytest.warns(UserWarning, match="does not fit new trees"):
        grown.fit(X, y)
    with pytest.raises(DataError, match="larger or equal"):
        grown.set_params(n_estimators=2).fit(X, y)


@pytest.mark.parametrize("bad", [{"oob_score": True, "bootstrap": False}, {"max_samples": 5, "bootstrap": False},
                                 {"max_features": 0}, {"criterion": "gin"}, {"n_estimators": 0}])  # fmt: skip
def test_settings_that_make_no_sense_are_refused(bad):
    with pytest.raises(DataError):
        RandomForestClassifier(**bad).fit(*WINE)


# ------------------------------------------------------------------------------------------------------- hard data
@pytest.mark.parametrize("cls", [*CLASSIFIERS, *REGRESSORS])
def test_missing_values_constant_columns_and_many_values(cls):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(600, 5))
    X[:, 1] = 7.0
    X[:, 2] = np.nan
    X[rng.random(600) < 0.3, 0] = np.nan
    y = np.where(np.isnan(X[:, 0]), 1, X[:, 3] > 0).astype(int)
    model = cls(10, random_state=0, max_features=None).fit(X, y)
    assert model.score(X, y) > 0.98
    assert not np.isin(model.trees_.feature, (1, 2)).any()
    assert model.certificate_.holds
    assert audit(model, X, y).holds
    assert {len(b) for b in model.borders_} <= {0, 254}


def test_one_class_and_one_row():
    X = np.arange(6.0)[:, None]
    model = RandomForestClassifier(3, random_state=0).fit(X, np.array(["a"] * 6))
    assert (model.predict(X) == "a").all()
    assert audit(model, X, np.array(["a"] * 6)).holds
    assert RandomForestRegressor(3).fit(X[:1], [2.0]).predict(X[:2]).tolist() == [2.0, 2.0]


def test_a_unit_step_far_from_zero_is_found():
    X, y = np.arange(40.0)[:, None], 1e9 + (np.arange(40) >= 20)
    model = RandomForestRegressor(5, bootstrap=False).fit(X, y)
    np.testing.assert_allclose(model.predict([[19.2], [19.8]]) - 1e9, [0.0, 1.0], atol=1e-6)


def test_two_classes_packed_and_unpacked_are_the_same():
    """Weights too large to be packed in one number lead to the same trees."""
    X, y = CANCER
    plain = RandomForestClassifier(3, bootstrap=False, random_state=0).fit(X, y)
    heavy = RandomForestClassifier(3, bootstrap=False, random_state=0).fit(
        X, y, sample_weight=np.full(len(y), 2.0**20)
    )
    for name in ("feature", "threshold", "value"):
        np.testing.assert_array_equal(getattr(plain.trees_, name), getattr(heavy.trees_, name))


@pytest.mark.compiled
@WRAPPING
@pytest.mark.parametrize("cls", [RandomForestClassifier, ExtraTreesRegressor])
@pytest.mark.parametrize("most", [None, 5])
def test_growth_and_answers_are_those_of_plain_loops(cls, most):
    """The audit draws, routes and scores everything again in NumPy; compiled or not, nothing may differ."""
    X, y = (part[::3] for part in datasets.load_iris(return_X_y=True))
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    model = cls(2, random_state=0, max_leaf_nodes=most, bootstrap=True, oob_score=True).fit(X, y)
    assert audit(model, X, y).holds
    leaves = model.apply(X)
    value = [model.estimators_[t].tree_.value[leaves[:, t], 0] for t in range(2)]
    np.testing.assert_allclose(model._mean_value(Block(X, None, np.ones(len(X)), 0))[:, 0], np.mean(value, axis=0))


def test_many_classes_by_sorting_counting_and_sums_are_two_classes():
    """A third class without rows of its own in most nodes: trees on three labels, one of them of a single row."""
    X, y = datasets.make_classification(3000, 6, n_informative=4, n_redundant=0, random_state=0)
    far = np.vstack([X, np.full((1, 6), 50.0)])
    three = RandomForestClassifier(2, bootstrap=False, max_features=None, max_depth=6, random_state=0)
    three.fit(far, np.append(y, 2))
    assert three.certificate_.holds
    assert audit(three, far, np.append(y, 2)).holds
    two = RandomForestClassifier(2, bootstrap=False, max_features=None, max_depth=5, random_state=0).fit(X, y)
    assert abs(three.score(X, y) - two.score(X, y)) < 0.03


# ------------------------------------------------------------------------------------------------------- bootstrap
@pytest.mark.compiled
@WRAPPING
def test_draws_are_the_plain_ones_and_do_not_depend_on_the_order_of_rows():
    X, y = CANCER
    rows = as_rows(X, y.astype(float), target="numbers")
    w = np.random.default_rng(0).exponential(size=len(y))
    fast = Bootstrap.of(rows, w, 300)
    np.testing.assert_array_equal(fast.order, plain_bootstrap.row_order(rows))
    np.testing.assert_array_equal(fast.counts(5), plain_bootstrap.drawn_counts(5, 300, fast.order, w))
    assert fast.counts(5).sum() == 300
    turned = np.random.default_rng(1).permutation(len(y))
    again = Bootstrap.of(as_rows(X[turned], y[turned].astype(float), target="numbers"), w[turned], 300)
    np.testing.assert_array_equal(again.counts(5), fast.counts(5)[turned])


@pytest.mark.compiled
@WRAPPING
@pytest.mark.parametrize(
    "w", [[1.0, 1.0, 1.0, 2.0, 0.0], [0.0, 0.0, 2.5, 2.5, 0.0], [1.0] * 5, [3.0, 0.0, 1.0, 0.0, 7.0]]
)
def test_rows_without_weight_are_never_drawn(w):
    """Also where the weights of all rows add up to their number, as do weights of 1."""
    w, order = np.array(w), np.array([3, 1, 0, 2, 4], np.int32)
    draws = Bootstrap(order, w, 40)
    for seed in range(5):
        counts = draws.counts(seed)
        assert (counts[w == 0] == 0).all()
        np.testing.assert_array_equal(counts, plain_bootstrap.drawn_counts(seed, 40, order, w))


def test_a_tree_that_drew_fewer_rows_than_a_leaf_needs_is_its_root():
    """No rule of growth is broken where nothing grew."""
    X, y = np.arange(5.0)[:, None], np.array([1, 0, 0, 1, 2])
    w = np.array([0.2, 0.2, 0.05, 0.2, 4.3])  # most trees draw the last row again and again
    model = RandomForestClassifier(9, min_samples_leaf=3, random_state=0).fit(X, y, w)
    assert (np.diff(model.trees_.first) == 1).any()
    assert model.certificate_.holds
    assert audit(model, X, y, w).holds


def test_a_forest_of_weights_that_add_up_to_the_number_of_rows_holds():
    X, y, w = np.zeros((5, 2)), np.array([1, 3, 1, 2, 1]), np.array([1.0, 1.0, 1.0, 2.0, 0.0])
    model = RandomForestClassifier(3, random_state=0).fit(X, y, w)
    assert model.certificate_.holds
    assert audit(model, X, y, w).holds


@pytest.mark.parametrize("seed", [1, 2, 10])
def test_weights_of_twelve_decades(seed):
    """A node's mean keeps its digits beside a light child far away, and a split those that its weights have."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(10, 60))
    A = rng.normal(size=(n, 3))
    b, w = A[:, 0] + rng.normal(size=n), 10.0 ** rng.uniform(-6, 6, size=n)
    model = ExtraTreesRegressor(3, max_depth=[3, None][seed % 2], random_state=0).fit(A, b, w)
    assert model.certificate_.holds
    assert audit(model, A, b, w).holds


def test_draws_are_in_proportion_to_weights():
    w = np.array([1.0, 2.0, 5.0, 0.0])
    draws = Bootstrap(np.arange(4, dtype=np.int32), w, 80_000).counts(1)
    np.testing.assert_allclose(draws / 80_000, w / 8, atol=0.01)


# ------------------------------------------------------------------------------------------------------ out of bag
def test_the_interval_covers_the_accuracy_on_new_rows():
    """Of 40 forests on 120 rows at least 90 % (nominal 95 %), where independent errors would claim half the width."""
    covered = 0
    for seed in range(40):
        X, y = datasets.make_classification(1120, 8, n_informative=3, flip_y=0.2, random_state=seed, shuffle=True)
        model = RandomForestClassifier(25, oob_score=True, random_state=seed).fit(X[:120], y[:120])
        covered += model.oob_interval_[0] <= model.score(X[120:], y[120:]) <= model.oob_interval_[1]
    assert covered >= 36


def test_values_and_targets_near_the_end_of_the_floats():
    """Squares of squares of such targets, and float32 copies of such values, are beyond the largest number."""
    X, y = friedman(60)
    model = RandomForestRegressor(5, oob_score=True, random_state=0).fit(X * 1e300, y * 1e150)
    assert model.certificate_.holds
    assert np.isfinite(model.oob_interval_).all()
    small = summarise(y[:, None] + 1.0, y, np.ones(60), 0)
    assert summarise((y[:, None] + 1.0) * 2.0**500, y * 2.0**500, np.ones(60), 0) == small


def test_weights_of_twelve_decades_are_proved():
    """Both sides of a split are added up: a difference leaves a light side next to a heavy one no digits."""
    X, y = friedman(120)
    w = 10.0 ** np.random.default_rng(0).uniform(-6, 6, size=120)
    model = ExtraTreesRegressor(6, random_state=0).fit(X, y, w)
    assert audit(model, X, y, w).holds


def test_prediction_intervals_cover():
    X, y = friedman(700)
    model = RandomForestRegressor(60, oob_score=True, random_state=0).fit(X[:300], y[:300])
    found = model.predict_interval(X[300:], coverage=0.9)
    inside = (found[:, 0] <= y[300:]) & (y[300:] <= found[:, 1])
    assert 0.85 <= inside.mean() <= 0.97
    narrow = model.predict_interval(X[300:], coverage=0.5)
    assert (np.diff(narrow) < np.diff(found)).all()
    with pytest.raises(DataError, match="oob_score"):
        RandomForestRegressor(3).fit(X[:50], y[:50]).predict_interval(X)


def test_quantiles_of_one_tree_are_those_of_its_leaf():
    X, y = friedman(200)
    model = RandomForestRegressor(1, bootstrap=False, max_leaf_nodes=5, random_state=0).fit(X, y)
    found = model.predict_quantiles(X, (0.25, 0.5), fitted_on=(X, y))
    leaf = model.apply(X)[:, 0]
    for k in np.unique(leaf):
        here = np.sort(y[leaf == k])
        expected = [here[int(np.ceil(q * len(here))) - 1] for q in (0.25, 0.5)]
        np.testing.assert_array_equal(found[leaf == k], np.tile(expected, (len(here), 1)))


def test_quantiles_spread_with_the_noise():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(800, 1))
    y = X[:, 0] * rng.normal(size=800)
    model = RandomForestRegressor(40, min_samples_leaf=10, random_state=0).fit(X, y)
    found = model.predict_quantiles([[0.1], [0.9]], (0.1, 0.9), fitted_on=(X, y))
    width = np.diff(found, axis=1)[:, 0]
    assert width[1] > 4 * width[0]


def test_permutation_importances_tell_columns_that_matter():
    X, y = friedman(400)
    model = RandomForestRegressor(30, random_state=0, oob_score=True).fit(X, y)
    found = model.oob_permutation_importances(X, y, n_repeats=2, random_state=0)
    assert found.importances.shape == (10, 2)
    assert found.importances_mean[:5].min() > found.importances_mean[5:].max()


# --------------------------------------------------------------------------------------------------------- sabotage
def tampered(model, **changes):
    trees = model.trees_
    model.trees_ = replace(trees, **{name: change(getattr(trees, name).copy()) for name, change in changes.items()})
    return model


def next_name(change):
    return next(iter(change))


def moved(a):
    a[np.flatnonzero(a > -2)[3]] += 0.3
    return a


def other_seed(a):
    a[0] += 1
    return a


def other_column(a):
    k = np.flatnonzero(a >= 0)[0]
    a[k] = (a[k] + 1) % 4
    return a


@pytest.mark.parametrize(
    "change", [{"threshold": moved}, {"seed": other_seed}, {"feature": other_column}], ids=next_name
)
@pytest.mark.parametrize("cls", [*CLASSIFIERS, *REGRESSORS])
def test_what_no_growth_leaves_is_noticed(cls, change):
    X, y = datasets.load_iris(return_X_y=True)
    model = tampered(cls(4, random_state=0).fit(X, y), **change)
    with contextlib.suppress(DataError):
        assert not audit(model, X, y).holds


@pytest.mark.parametrize("part", ["value", "impurity", "weighted_n_node_samples"])
@pytest.mark.parametrize("cls", [*CLASSIFIERS, *REGRESSORS])
def test_what_is_not_a_number_is_noticed_wherever_it_stands(cls, part):
    X, y = datasets.load_iris(return_X_y=True)
    fitted = cls(3, max_depth=2, random_state=0).fit(X, y)
    for k in range(len(fitted.trees_.threshold)):

        def spoilt(a, k=k):
            a[k] = np.nan
            return a

        assert not audit(tampered(copy.copy(fitted), **{part: spoilt}), X, y).holds


def test_a_node_that_counts_one_row_too_many_is_noticed():
    X, y = datasets.load_iris(return_X_y=True)
    model = RandomForestClassifier(3, max_depth=2, random_state=0).fit(X, y)
    assert not audit(tampered(model, n_node_samples=other_seed), X, y).holds


def test_out_of_bag_residuals_that_are_not_numbers_are_noticed():
    X, y = datasets.load_diabetes(return_X_y=True)
    model = RandomForestRegressor(30, max_depth=2, oob_score=True, random_state=0).fit(X[:60], y[:60])
    assert audit(model, X[:60], y[:60]).holds
    model.oob_residual_ = np.full_like(model.oob_residual_, np.nan)
    assert not audit(model, X[:60], y[:60]).holds


@pytest.mark.parametrize("part", ["first", "seed", "threshold", "value"])
@pytest.mark.parametrize("change", [lambda a: None, lambda a: a.tolist(), lambda a: a + 0j])
def test_arrays_that_no_fit_leaves_are_refused_in_words(part, change):
    X, y = datasets.load_iris(return_X_y=True)
    model = tampered(RandomForestClassifier(2, random_state=0).fit(X, y), **{part: change})
    with pytest.raises(DataError, match=f"trees_.{part}"):
        audit(model, X, y)


def test_a_split_on_a_column_that_the_node_was_not_shown_is_noticed():
    """A whole tree grown by another seed is a good tree, but not the one of its seed."""
    X, y = datasets.load_iris(return_X_y=True)
    model = RandomForestClassifier(3, bootstrap=False, max_features=1, random_state=0).fit(X, y)
    model.trees_ = replace(model.trees_, seed=model.trees_.seed[::-1].copy())
    model.random_state = None
    found = audit(model, X, y)
    assert not found.holds
    assert any("best split" in failure for failure in found.failures())


def test_an_unfair_sample_is_noticed():
    """Trees that saw every row, passed off as trees on bootstrap samples."""
    X, y = CANCER
    model = RandomForestClassifier(3, bootstrap=False, random_state=0).fit(X, y)
    model.bootstrap = True
    assert not audit(model, X, y).holds


# ------------------------------------------------------------------------------------------- scikit-learn's forests
@pytest.mark.parametrize(
    "settings", [{}, {"oob_score": True}, {"class_weight": "balanced"}, {"class_weight": "balanced_subsample"},
                 {"max_samples": 0.5}, {"bootstrap": False}, {"criterion": "entropy"}], ids=str)  # fmt: skip
def test_scikit_learns_forests_are_audited(settings):
    X, y = CANCER
    model = ensemble.RandomForestClassifier(60 if "oob_score" in settings else 4, random_state=0, **settings)
    assert audit(model.fit(X, y), X, y).holds
    model.estimators_[0].random_state += 1
    if settings != {"bootstrap": False}:
        assert not audit(model, X, y).holds


def test_scikit_learns_regressors_are_audited_with_weights():
    X, y = DIABETES
    w = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    model = ensemble.RandomForestRegressor(40, oob_score=True, random_state=0).fit(X, y)
    assert audit(model, X, y).kind == "statistical"
    assert audit(model, X, y).holds
    model.oob_prediction_ = model.oob_prediction_ + 1
    assert not audit(model, X, y).holds
    weighted = ensemble.ExtraTreesRegressor(5, max_depth=6, random_state=0).fit(X, y, w)
    assert audit(weighted, X, y, w).holds
    assert not audit(weighted, X, y).holds


def test_rows_that_float32_sends_the_other_way_are_told():
    x = 1.0 + np.arange(40) * 2.0**-26  # neighbours that float32 does not tell apart
    X, y = np.concatenate([x, x + 1])[:, None], np.repeat([0, 1], 40)
    model = ensemble.RandomForestClassifier(10, random_state=0, bootstrap=False).fit(X, y)
    found = audit(model, X, y)
    assert "in 10 trees" in found.facts["rows that float32 sends the other way"]


# ------------------------------------------------------------------------------------------------------ small truths
def test_the_score_and_its_interval_by_hand():
    answers = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [np.nan, np.nan]])
    found = summarise(answers, np.array([0, 1, 1, 0]), np.ones(4), 2)
    assert found.score == pytest.approx(2 / 3)
    error = 2.5 * np.sqrt(2 / 9 / 3)
    assert found.low == pytest.approx(max(0.0, 2 / 3 - 1.959963985 * error))
    assert found.high == 1.0


def test_whole_weights_that_ask_for_too_many_draws_are_refused_in_words():
    X, y = datasets.load_iris(return_X_y=True)
    huge = np.full(len(y), 1e12)
    with pytest.raises(DataError, match="max_samples"):
        RandomForestClassifier(2, random_state=0).fit(X, y, sample_weight=huge)
    model = RandomForestClassifier(2, max_samples=100, random_state=0).fit(X, y, sample_weight=huge)
    assert audit(model, X, y, huge).holds


@pytest.mark.parametrize("missing", [False, True])
def test_many_rows_get_the_answers_that_rows_one_by_one_get(missing):
    X, y = friedman(1600)
    if missing:
        X[np.random.default_rng(0).random(X.shape) < 0.05] = np.nan
    forest = RandomForestRegressor(10, random_state=0).fit(X, y)
    assert forest.trees_.coded is not None  # so that many rows are answered from their codes
    block = Block(X, None, np.ones(len(X)), 0)
    found, want = np.zeros((len(X), 1)), np.zeros((len(X), 1))
    forest.trees_.add_answers(block, found)
    add_leaf_values(X, forest.trees_.packed, forest.trees_.value, want)
    np.testing.assert_array_equal(found, want)
    np.testing.assert_array_equal(forest.predict(X)[:50], np.concatenate([forest.predict(x[None]) for x in X[:50]]))


@pytest.mark.parametrize("members", [3, 40])
@pytest.mark.parametrize("data", [WINE, DIABETES], ids=["classes", "amounts"])
def test_the_score_of_scikit_learns_forests_counts_rows_that_every_tree_has_drawn(data, members):
    kind = ensemble.RandomForestClassifier if data is WINE else ensemble.RandomForestRegressor
    with pytest.warns(UserWarning, match="OOB") if members < 10 else contextlib.nullcontext():
        model = kind(members, oob_score=True, random_state=0).fit(*data)
    assert audit(model, *data).holds
    model.oob_score_ += 1e-6
    assert not audit(model, *data).holds


def test_the_audit_of_scikit_learns_forests_knows_where_thresholds_lie():
    # A threshold that moves between the same rows of its tree sends others another way.
    X, y = DIABETES
    model = ensemble.RandomForestRegressor(3, max_depth=4, random_state=0).fit(X, y)
    assert audit(model, X, y).holds
    tree = model.estimators_[1].tree_
    drawn = np.bincount(np.random.RandomState(model.estimators_[1].random_state).randint(0, len(y), len(y)))
    x = np.unique(X[np.flatnonzero(drawn), tree.feature[0]].astype(np.float32))
    place = np.searchsorted(x, tree.threshold[0])
    tree.threshold[0] = x[place - 1] * 0.9 + x[place] * 0.1
    assert not audit(model, X, y).holds


@pytest.mark.parametrize("data", [CANCER, DIABETES], ids=["classes", "amounts"])
def test_scikit_learn_clips_what_nodes_say_where_columns_are_monotone(data):
    X, y = data
    forest = ensemble.RandomForestClassifier if data is CANCER else ensemble.RandomForestRegressor
    model = forest(3, monotonic_cst=[1, -1] + [0] * (X.shape[1] - 2), random_state=0).fit(X, y)
    assert audit(model, X, y).holds
    model.monotonic_cst = None
    assert not audit(model, X, y).holds
