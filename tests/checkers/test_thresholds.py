"""Thresholds that rows of the fit do not notice, and new rows do: they must be those of the rule of growth."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest

from certifit import (
    DecisionTreeRegressor,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    OptimalTreeRegressor,
    RandomForestRegressor,
    audit,
)
from certifit.checkers.tree.midpoints import thresholds_off_middle
from certifit.checkers.tree.plain_tree import plain_tree

MODELS = (
    DecisionTreeRegressor(max_depth=4),
    DecisionTreeRegressor(max_depth=4, max_bins=16),
    DecisionTreeRegressor(max_depth=4, splitter="random", random_state=0),
    RandomForestRegressor(1, max_depth=4, random_state=0),
    GradientBoostingRegressor(n_estimators=1, max_depth=4, subsample=0.6, random_state=0),
    HistGradientBoostingRegressor(max_iter=1, min_samples_leaf=2),
    OptimalTreeRegressor(max_depth=2, time_limit=0.0),
)


def table(n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    return X, X[:, 0] + 0.5 * rng.normal(size=n)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_a_threshold_that_moves_between_a_nodes_rows_is_seen(model):
    X, y = table()
    fitted = copy.deepcopy(model).fit(X, y)
    assert audit(fitted, X, y).holds
    name = "tree_" if hasattr(fitted, "tree_") else "trees_"
    trees = getattr(fitted, name)
    one = trees[0] if isinstance(trees, (list, tuple)) else trees
    left = np.asarray(getattr(one, "left", getattr(one, "children_left", None)))
    deepest = np.flatnonzero(left >= 0)[-1]  # with the fewest rows, and so the widest gap
    for step in (1e-9, -1e-9):
        threshold = np.array(one.threshold)
        threshold[deepest] += step
        moved = replace(one, threshold=threshold)
        hurt = copy.deepcopy(fitted)
        setattr(hurt, name, type(trees)([moved, *trees[1:]]) if one is not trees else moved)
        assert np.array_equal(hurt.predict(X), fitted.predict(X))
        assert not audit(hurt, X, y).holds


def test_a_border_beside_the_right_one_is_seen():
    """Four rows by themselves have the values 0, 1, 8 and 9 of a column with more: 2.5 splits them as 1.5 does."""
    X = np.array([[0.0, 0], [1, 0], [8, 0], [9, 0], *([x, 1.0] for x in range(10))])
    y = np.array([0.0, 0, 5, 5, *(100.0 + np.arange(10))])
    fitted = HistGradientBoostingRegressor(max_iter=1, min_samples_leaf=1, max_leaf_nodes=31).fit(X, y)
    trees = fitted.trees_
    inner = np.flatnonzero((trees.left >= 0) & (trees.column == 0) & (trees.count == 4))
    assert trees.threshold[inner] == [1.5]
    assert audit(fitted, X, y).holds
    threshold = np.array(trees.threshold)
    threshold[inner] = 2.5
    fitted.trees_ = replace(trees, threshold=threshold)
    assert not audit(fitted, X, y).holds


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeRegressor(splitter="random", max_bins=255, random_state=3),
        ExtraTreesRegressor(2, random_state=0),
        RandomForestRegressor(2, random_state=0),
    ],
    ids=str,
)
def test_a_border_beside_the_one_drawn_is_seen_at_every_node(model):
    X, y = table(150)
    fitted = copy.deepcopy(model).fit(X, y)
    assert audit(fitted, X, y).holds
    name, tried = "tree_" if hasattr(fitted, "tree_") else "trees_", 0
    trees = getattr(fitted, name)
    nodes = np.flatnonzero(trees.children_left >= 0)
    for k in np.random.default_rng(1).permutation(nodes)[:40]:
        borders, threshold = fitted.borders_[trees.feature[k]], np.array(trees.threshold)
        beside = np.searchsorted(borders, threshold[k]) + 1
        threshold[k] = borders[min(beside, len(borders) - 1)]
        hurt = copy.deepcopy(fitted)
        setattr(hurt, name, replace(trees, threshold=threshold))
        if np.array_equal(hurt.predict(X), fitted.predict(X)) and threshold[k] != trees.threshold[k]:
            tried += 1
            assert not audit(hurt, X, y).holds
    assert tried > 4


def test_a_best_trees_threshold_lies_between_values_that_a_border_of_its_bins_parts():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = np.where(X[:, 0] > 0, 1.0, -1.0) + 0.1 * rng.normal(size=400)
    fitted = OptimalTreeRegressor(max_depth=1, max_bins=4, time_limit=0.0).fit(X, y)
    assert audit(fitted, X, y).holds
    values = np.unique(X[:, fitted.tree_.feature[0]])
    beside = np.searchsorted(values, fitted.tree_.threshold[0]) + 1
    threshold = np.array(fitted.tree_.threshold)
    threshold[0] = values[beside - 1] / 2 + values[beside] / 2
    assert thresholds_off_middle(plain_tree(fitted.tree_, 2), X, fitted.borders_) == 0
    assert thresholds_off_middle(plain_tree(replace(fitted.tree_, threshold=threshold), 2), X, fitted.borders_) == 1
