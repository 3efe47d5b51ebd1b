"""The duality gap of trees of depth 2, and boosting that closes it: bounds that no model of the size is below."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor as SklearnRegressor

from certifit import GradientBoostingRegressor, HistGradientBoostingClassifier, HistGradientBoostingRegressor, audit
from certifit.checkers.ensemble.boosting.box_gap import (
    Condition,
    GridTable,
    asked_borders,
    border_grid,
    box_gap,
    box_size,
    boxes_of,
)
from certifit.checkers.ensemble.boosting.plain_trees import final_scores, plain_trees
from certifit.checkers.ensemble.score_losses import plain_score_loss
from certifit.exceptions import DataError


def problem(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).round(1)
    y = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + 0.3 * rng.normal(size=n)
    X[rng.random(n) < 0.1, 1] = np.nan
    return X, y


def all_boxes(X, grid):
    """Every box with at most two conditions, as columns (n, m), by asking each row."""
    sides = [np.ones(len(X), bool)]
    for j, borders in enumerate(grid):
        for t, missing, left in product([*borders, np.inf], (False, True), (False, True)):
            sides.append(Condition(j, t, missing, left).holds(X))
    return np.unique(np.stack([a & b for a in sides for b in sides], axis=1).astype(float), axis=1)


def test_two_way_tables_find_the_largest_sum_of_any_box():
    X, _ = problem(40)
    v = np.random.default_rng(1).normal(size=40)
    v -= v.mean()
    grid = [np.array([-0.5, 0.3]), np.array([0.0]), np.array([-1.0, 0.2])]
    assert GridTable(X, grid).largest_sum(v) == pytest.approx(np.abs(all_boxes(X, grid).T @ v).max(), rel=1e-12)


def test_trees_of_depth_2_are_sums_of_boxes():
    X, y = problem()
    trees = plain_trees(HistGradientBoostingRegressor(max_depth=2, max_iter=8).fit(X, y).trees_)
    F = np.zeros(len(y))
    for (_, box), height in boxes_of(trees).items():
        F += height * np.logical_and.reduce([condition.holds(X) for condition in box])
    rest = final_scores(trees, X)[:, 0] - F
    assert np.allclose(rest, rest[0])


@pytest.mark.parametrize("name", ["squared_error", "log_loss", "absolute_error"])
def test_no_sum_of_boxes_of_this_size_is_below_the_bound(name):
    X, y = problem(60)
    rng = np.random.default_rng(2)
    y = (y > 0).astype(float) if name == "log_loss" else y
    cls = HistGradientBoostingClassifier if name == "log_loss" else HistGradientBoostingRegressor
    model = cls(name, max_depth=2, max_iter=10, min_samples_leaf=3).fit(X, y)
    trees, loss, w = plain_trees(model.trees_), plain_score_loss(name), np.ones(60)
    grid = border_grid(X, asked_borders(trees, 3), 3)
    size, H = box_size(trees), all_boxes(X, grid)
    found = box_gap(X, y, w, final_scores(trees, X)[:, 0], size, loss, grid)
    assert found.bound <= found.objective == pytest.approx(60 * model.certificate_.objective)
    for _ in range(300):
        beta = rng.exponential(size=H.shape[1]) ** 6 * rng.choice([-1, 1], H.shape[1])
        F = model.trees_.baseline[0] + H @ (beta * size / np.abs(beta).sum())
        assert loss.value(y, F).sum() >= found.bound


@pytest.mark.parametrize("settings", [{"max_leaf_nodes": 2}, {"max_depth": 2}])
@pytest.mark.parametrize("loss", ["squared_error", "log_loss", "poisson"])
def test_corrective_boosting_closes_the_gap_at_the_same_size(loss, settings):
    X, y = problem()
    y = {"squared_error": y, "log_loss": (y > 0).astype(int), "poisson": np.exp(y)}[loss]
    cls = HistGradientBoostingClassifier if loss == "log_loss" else HistGradientBoostingRegressor
    model = cls(loss, max_iter=20, **settings).fit(X, y)
    stages = model.certificate_
    model.set_params(corrective=True).fit(X, y)
    found = model.certificate_
    assert stages.kind == "bounded"
    assert found.kind == "optimal"
    assert found.holds
    assert stages.bound - 1e-12 <= found.objective < stages.objective
    assert found.gap < 1e-2 * stages.gap
    assert model.coefficient_size_ <= stages.facts["size of the model"] * (1 + 1e-9)
    assert audit(model, X, y).holds
    assert model.objective(X, y).total == pytest.approx(found.objective)


def test_a_corrected_model_that_was_changed_is_found_out():
    X, y = problem()
    model = HistGradientBoostingRegressor(max_iter=20, max_leaf_nodes=2, corrective=True).fit(X, y)
    trees = model.trees_
    largest = np.abs(trees.value).argmax()
    turned, moved = trees.value.copy(), trees.threshold.copy()
    turned[largest] *= -1
    moved[np.searchsorted(trees.first, largest, side="right") * 3 - 3] += 1.0
    for changed in (
        {"value": trees.value * 1.01},
        {"value": turned},
        {"threshold": moved},
        {"baseline": trees.baseline + 0.1},
    ):
        model.trees_ = replace(trees, **changed)
        assert not audit(model, X, y).holds
    model.trees_ = trees
    assert not audit(model, X, y + X[:, 2]).holds


@pytest.mark.parametrize("settings", [{}, {"max_depth": 2, "loss": "absolute_error"}])
def test_corrective_boosting_says_what_it_cannot_correct(settings):
    X, y = problem()
    with pytest.raises(DataError, match="trees of depth 1 or 2"):
        HistGradientBoostingRegressor(corrective=True, **settings).fit(X, y)


def test_exact_trees_of_depth_2_carry_their_gap():
    X, y = problem()
    found = GradientBoostingRegressor(max_depth=2, n_estimators=10).fit(X, y).certificate_
    assert found.kind == "bounded"
    assert found.holds
    # scikit-learn's boosting of the same depth, and of no larger size, is not below the bound.
    theirs = SklearnRegressor(max_depth=2, max_iter=3).fit(X, y)
    assert 0.5 * np.mean((y - theirs.predict(X)) ** 2) >= found.bound
