"""Small forests and boostings by operations on whole arrays: the same bits as the compiled loops give."""

from dataclasses import fields

import numpy as np
import pytest

from certifit import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from certifit.tree.binned import bins, growth
from certifit.tree.binned.seeded import growing
from certifit.tree.routing import packed_trees

PLACES = [growing.PLAIN_FIRST, growth.PLAIN_FIRST, growth.PLAIN_PAIRS, bins.PLAIN_FIRST]
PLACES += [packed_trees.PLAIN_LEAVES, packed_trees.PLAIN_ANSWERS, packed_trees.PLAIN_SCORES]


def table(classes, seed=0, n=250, d=6):
    """Columns with many and few values, some missing; classes, or amounts where there are none; weights."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[:, 1] = np.round(X[:, 1], 1)
    X[:, 2] = rng.integers(0, 3, n)
    X[rng.random((n, d)) < 0.05] = np.nan
    score = np.nan_to_num(X[:, 0]) * np.nan_to_num(X[:, 1]) + np.nan_to_num(X[:, 2]) + 0.3 * rng.normal(size=n)
    y = np.argsort(np.argsort(score)) * classes // n if classes else np.exp(score)
    return X, y, rng.random(n) + 0.1


@pytest.fixture
def both_ways(monkeypatch):
    """A function that fits a model by operations on arrays and by compiled loops, and what both have counted."""

    def fit(model, *data):
        found = []
        for plain in (True, False):
            for place in PLACES:
                monkeypatch.setattr(place, "suffices", lambda entries, plain=plain: plain)
            fitted = model.set_params(random_state=0).fit(*data)
            found.append((fitted.trees_, fitted.predict(data[0])))
        (a, one), (b, two) = found
        for field in fields(a):
            if field.name != "categories":
                np.testing.assert_array_equal(getattr(a, field.name), getattr(b, field.name), err_msg=field.name)
        np.testing.assert_array_equal(one, two)
        return a

    return fit


FORESTS = [
    (RandomForestClassifier(4, random_state=0), 2),
    (RandomForestClassifier(4, random_state=1, max_features=1, min_samples_leaf=4), 3),
    (RandomForestClassifier(3, random_state=2, class_weight="balanced_subsample", max_depth=4), 2),
    (ExtraTreesClassifier(4, random_state=3), 4),
    (ExtraTreesClassifier(3, random_state=4, min_weight_fraction_leaf=0.02), 2),
    (RandomForestRegressor(3, random_state=5, min_samples_split=7), 0),
    (ExtraTreesRegressor(3, random_state=6, bootstrap=True, max_samples=0.5, ccp_alpha=0.01), 0),
]


@pytest.mark.parametrize(("model", "classes"), FORESTS, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_forests_are_the_same_either_way(both_ways, model, classes, weighted):
    X, y, w = table(classes)
    trees = both_ways(model, X, y, w) if weighted else both_ways(model, X, y)
    assert len(trees.value) > 10 * len(trees)


@pytest.mark.parametrize(
    ("model", "classes"),
    [
        (HistGradientBoostingClassifier(max_iter=5, random_state=0), 2),
        (HistGradientBoostingClassifier(max_iter=2, max_depth=3, max_leaf_nodes=None, l2_regularization=1.0), 3),
        (HistGradientBoostingRegressor(max_iter=5, max_leaf_nodes=8, min_samples_leaf=5), 0),
        (HistGradientBoostingRegressor(max_iter=3, loss="absolute_error", max_leaf_nodes=None, max_bins=30), 0),
    ],
    ids=str,
)
@pytest.mark.parametrize("weighted", [False, True])
def test_boostings_are_the_same_either_way(both_ways, model, classes, weighted):
    X, y, w = table(classes, seed=1)
    trees = both_ways(model, X, y, w) if weighted else both_ways(model, X, y)
    assert len(trees.value) > 2 * trees.n_trees
