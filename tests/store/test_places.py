"""Nodes, columns or neighbours that point nowhere are refused before compiled loops go there, from files or not."""

from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest

import certifit
from certifit import DataError, load, save

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4))
Y = (X[:, 0] + X[:, 1] ** 2 > 0.5).astype(int)
KINDS = np.column_stack([RNG.integers(4, size=120).astype(float), X])

MODELS = {
    "tree": lambda: certifit.DecisionTreeClassifier(max_depth=4).fit(X, Y),
    "tree with categories": lambda: certifit.DecisionTreeRegressor(max_depth=3, categorical_features=[0]).fit(
        KINDS, KINDS[:, 0] ** 2
    ),
    "optimal tree": lambda: certifit.OptimalTreeClassifier(max_depth=2).fit(X, Y),
    "forest": lambda: certifit.RandomForestClassifier(4, random_state=0).fit(X, Y),
    "boosting": lambda: certifit.GradientBoostingRegressor(n_estimators=4).fit(X, X[:, 0]),
    "binned boosting": lambda: certifit.HistGradientBoostingClassifier(
        max_iter=4, categorical_features=[0], min_samples_leaf=5
    ).fit(KINDS, Y),
    "stumps": lambda: certifit.AdaBoostClassifier(n_estimators=5).fit(X, Y),
}
# What is changed: whole numbers that say where to go, by their names in all kinds of trees.
PLACES = {
    "children_left", "children_right", "feature", "left", "right", "column", "kinds", "category_set", "first",
    "category_first", "answers",
}  # fmt: skip


def trees_of(model):
    """The name of the attribute that holds trees, and what it holds."""
    ((name, trees),) = [(k, v) for k, v in vars(model).items() if is_dataclass(v) and hasattr(v, "check_places")]
    return name, trees


def place_changes(array):
    """Arrays of places with one entry, or the number of them, changed."""
    chosen = np.flatnonzero(array.ravel() >= 0)
    for value in (2**40, len(array) + 3, -7):
        if len(chosen):
            changed = array.copy()
            changed.flat[chosen[len(chosen) // 2]] = min(value, np.iinfo(array.dtype).max)
            yield changed
    yield array[:-1]
    yield array.astype(np.float64)


@pytest.mark.parametrize("name", MODELS)
def test_places_that_are_not_there_are_refused(name, tmp_path):
    model = MODELS[name]()
    attribute, trees = trees_of(model)
    save(model, tmp_path / "m.certifit")
    assert (load(tmp_path / "m.certifit").predict(KINDS[:, : model.n_features_in_]) == model.predict(
        KINDS[:, : model.n_features_in_]
    )).all()  # fmt: skip
    tried = 0
    for field in fields(trees):
        array = getattr(trees, field.name)
        if field.name not in PLACES or not len(array):
            continue
        for changed in place_changes(array):
            setattr(model, attribute, replace(trees, **{field.name: changed}))
            save(model, tmp_path / "m.certifit")
            with pytest.raises(DataError, match="cannot read"):
                load(tmp_path / "m.certifit")
            tried += 1
    assert tried >= 8


def damaged_trees(trees):
    """Trees with one of their arrays of places changed, or with values of fewer nodes."""
    for field in fields(trees):
        array = getattr(trees, field.name)
        if field.name in PLACES and len(array):
            yield from (replace(trees, **{field.name: changed}) for changed in place_changes(array))
    value = "leaf_weight" if hasattr(trees, "leaf_weight") else "value"
    yield replace(trees, **{value: getattr(trees, value)[:-1]})


@pytest.mark.parametrize("name", MODELS)
def test_no_row_walks_through_damaged_trees(name):
    model = MODELS[name]()
    attribute, trees = trees_of(model)
    for damaged in damaged_trees(trees):
        setattr(model, attribute, damaged)
        with pytest.raises(DataError, match="as their fit left them"):
            model.predict(KINDS[:, : model.n_features_in_])


@pytest.mark.parametrize("name", MODELS)
def test_no_row_walks_to_columns_that_it_does_not_have(name):
    model = MODELS[name]()
    model.n_features_in_ = 1
    with pytest.raises(DataError, match=r"columns of rows with|1 features"):
        model.predict(KINDS[:, :1])


ENSEMBLES = {
    "bag of trees": certifit.BaggingClassifier(certifit.DecisionTreeClassifier(max_depth=3), 2, random_state=0),
    "bag of forests": certifit.BaggingClassifier(
        certifit.RandomForestClassifier(2, random_state=0), 2, random_state=0
    ),
    "bag of boostings": certifit.BaggingClassifier(
        certifit.HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=5), 2, random_state=0
    ),
    "boosted trees": certifit.AdaBoostClassifier(certifit.DecisionTreeClassifier(max_depth=2), n_estimators=3),
    "boosted forests": certifit.AdaBoostClassifier(
        certifit.RandomForestClassifier(2, max_depth=2, random_state=0), n_estimators=2
    ),
}


@pytest.mark.parametrize("name", ENSEMBLES)
def test_audits_refuse_damaged_trees_of_members(name):
    model = ENSEMBLES[name].fit(X, Y)
    members = model.estimators_ if hasattr(model, "estimators_") else model.members_
    attribute, trees = trees_of(members[-1])
    assert certifit.audit(model, X, Y).holds
    for damaged in damaged_trees(trees):
        setattr(members[-1], attribute, damaged)
        with pytest.raises(DataError, match=r"tree|forest|fit together"):
            certifit.audit(model, X, Y)


@pytest.mark.parametrize("name", MODELS)
def test_columns_that_rows_do_not_have_are_refused(name, tmp_path):
    model = MODELS[name]()
    model.n_features_in_ = 1
    save(model, tmp_path / "m.certifit")
    with pytest.raises(DataError, match=r"more columns than its rows have|other columns"):
        load(tmp_path / "m.certifit")


def test_a_way_down_that_never_ends_is_refused(tmp_path):
    """A node whose child is its parent; two nodes with the same child."""
    model = MODELS["tree"]()
    left, right = model.tree_.children_left, model.tree_.children_right
    inner = np.flatnonzero(left > 0)
    for child in (inner[0], right[inner[0]]):
        changed = left.copy()
        changed[inner[1]] = child
        model.tree_ = replace(model.tree_, children_left=changed)
        save(model, tmp_path / "m.certifit")
        with pytest.raises(DataError, match=r"behind them|no parent or several"):
            load(tmp_path / "m.certifit")
        model.tree_ = replace(model.tree_, children_left=left)


@pytest.mark.parametrize("value", [-1, 120, 2**40])
def test_neighbours_that_are_not_there_are_refused(value, tmp_path):
    model = certifit.LocallyLinearEmbedding(n_neighbors=8).fit(X)
    model.neighbors_[3, 4] = value
    save(model, tmp_path / "m.certifit")
    with pytest.raises(DataError, match="neighbours that are not there"):
        load(tmp_path / "m.certifit")
