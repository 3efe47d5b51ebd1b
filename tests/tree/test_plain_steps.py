"""Small trees by operations on whole arrays: the same bits as the compiled loops give, whatever the settings."""

from dataclasses import fields

import numpy as np
import pytest

from certifit import DecisionTreeClassifier, DecisionTreeRegressor, GradientBoostingRegressor
from certifit.tree.exact import growth
from certifit.tree.fitted_tree import Tree


def table(seed=0, n=300, d=5):
    """Columns with ties and missing values, three classes, amounts and weights."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[:, 1] = np.round(X[:, 1], 1)
    X[:, 2] = rng.integers(0, 3, n)
    X[rng.random((n, d)) < 0.05] = np.nan
    score = np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]) ** 2
    return X, np.digitize(score, [0.3, 1.5]), np.exp(score) + rng.random(n), rng.random(n) + 0.1


def same(a: Tree, b: Tree) -> None:
    for field in fields(Tree):
        np.testing.assert_array_equal(getattr(a, field.name), getattr(b, field.name), err_msg=field.name)


@pytest.fixture
def grown(monkeypatch):
    """A function that fits a model by the plain steps, or by the compiled ones."""

    def fit(model, plain, *data):
        monkeypatch.setattr(growth.PLAIN_FIRST, "suffices", lambda entries: plain)
        return model.fit(*data)

    return fit


TREES = [
    DecisionTreeClassifier(),
    DecisionTreeClassifier(criterion="entropy", min_samples_leaf=3),
    DecisionTreeClassifier(splitter="random", random_state=1),
    DecisionTreeClassifier(max_features=2, random_state=2, min_weight_fraction_leaf=0.01),
    DecisionTreeClassifier(max_leaf_nodes=9, min_impurity_decrease=0.001),
    DecisionTreeRegressor(),
    DecisionTreeRegressor(criterion="poisson", max_depth=4, min_samples_split=9),
    DecisionTreeRegressor(monotonic_cst=[1, 0, -1, 0, 0], max_depth=6),
    DecisionTreeRegressor(splitter="random", max_features=3, random_state=3, monotonic_cst=[1, 0, 0, 0, 0]),
]


@pytest.mark.parametrize("model", TREES, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_plain_and_compiled_steps_grow_the_same_tree(grown, model, weighted):
    X, labels, amounts, w = table()
    y = amounts if isinstance(model, DecisionTreeRegressor) else labels
    data = (X, y, w) if weighted else (X, y)
    plain = grown(model, True, *data).tree_
    assert plain.node_count > 5
    same(plain, grown(model, False, *data).tree_)


def test_several_targets_and_parts_of_the_rows(grown):
    X, labels, amounts, _ = table(1)
    both = np.column_stack([labels, labels[::-1]])
    model = DecisionTreeClassifier(max_depth=5)
    same(grown(model, True, X, both).tree_, grown(model, False, X, both).tree_)
    boosting = GradientBoostingRegressor(n_estimators=5, subsample=0.5, random_state=0)
    X = np.nan_to_num(X)
    one = grown(boosting, True, X, amounts).predict(X)
    np.testing.assert_array_equal(one, grown(boosting, False, X, amounts).predict(X))


@pytest.mark.parametrize("model", [DecisionTreeClassifier(max_depth=4), DecisionTreeRegressor(max_depth=4)], ids=str)
def test_one_thread_grows_the_tree_that_shared_steps_grow(monkeypatch, model):
    X, labels, amounts, _ = table(n=50_000)
    grown = []
    for alone in (True, False):
        monkeypatch.setattr(growth.ALONE_FIRST, "suffices", lambda entries, alone=alone: alone)
        grown.append(model.fit(X, labels if isinstance(model, DecisionTreeClassifier) else amounts).tree_)
    same(*grown)


def test_tables_of_moderate_size_do_not_wait_for_the_steps_of_growth(monkeypatch):
    monkeypatch.setattr(growth.ALONE_FIRST, "is_compiled", lambda: False)
    assert growth.ALONE_FIRST.suffices(1_000_000)
    assert not growth.ALONE_FIRST.suffices(3_000_000)
