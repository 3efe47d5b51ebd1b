"""Single trees on binned columns (`max_bins`): the exact tree where no value is lost, the same bits, and proofs."""

from dataclasses import fields, replace

import numpy as np
import pytest

import certifit
from certifit import DataError, DecisionTreeClassifier, DecisionTreeRegressor, audit
from certifit.tree.binned import bins
from certifit.tree.binned.seeded import growing


def table(n=300, seed=0):
    """Columns of few values, so that bins lose none of them; three classes, amounts, weights."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 40, size=(n, 4)).astype(float)
    amount = X[:, 0] * np.sign(X[:, 1] - 20) + 3 * rng.normal(size=n)
    return X, np.digitize(amount, [-8.0, 8.0]), amount, rng.integers(1, 4, n).astype(float)


MODELS = [
    (DecisionTreeClassifier(max_depth=4), "classes"),
    (DecisionTreeClassifier(max_depth=4, criterion="entropy"), "classes"),
    (DecisionTreeRegressor(max_depth=4, min_samples_leaf=5), "amounts"),
    (DecisionTreeRegressor(max_leaf_nodes=9, criterion="poisson"), "counts"),
    (DecisionTreeClassifier(max_depth=3, class_weight="balanced"), "two targets"),
    (DecisionTreeRegressor(max_depth=3), "two amounts"),
]


def targets(kind):
    X, label, amount, w = table()
    several = {
        "two targets": np.column_stack([label, X[:, 2] > 20]),
        "two amounts": np.column_stack([amount, X[:, 3]]),
    }
    return X, {"classes": label, "amounts": amount, "counts": np.abs(amount), **several}[kind], w


@pytest.mark.parametrize(("model", "kind"), MODELS, ids=str)
def test_where_bins_lose_no_value_it_is_the_exact_tree(model, kind):
    X, y, w = targets(kind)
    exact = model.set_params(max_bins=None).fit(X, y, w)
    wanted, answers = exact.tree_, exact.predict(X)
    found = model.set_params(max_bins=64).fit(X, y, w)
    np.testing.assert_array_equal(found.tree_.feature, wanted.feature)
    np.testing.assert_array_equal(found.tree_.n_node_samples, wanted.n_node_samples)
    np.testing.assert_allclose(found.tree_.impurity, wanted.impurity, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.tree_.value, wanted.value, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.predict(X), answers)
    assert found.certificate_.holds
    assert audit(found, X, y, w).holds
    assert found.objective(X, y, w).total == pytest.approx(found.certificate_.objective, rel=1e-9)


@pytest.mark.parametrize(("model", "kind"), [MODELS[i] for i in (0, 2, 4, 5)], ids=str)
def test_without_compiled_loops_it_has_the_same_bits(monkeypatch, model, kind):
    X, y, w = targets(kind)
    found = []
    for plain in (True, False):
        for place in (growing.PLAIN_FIRST, bins.PLAIN_FIRST):
            monkeypatch.setattr(place, "suffices", lambda entries, plain=plain: plain)
        found.append(model.set_params(max_bins=16).fit(X, y, w).tree_)
    for field in fields(found[0]):
        np.testing.assert_array_equal(*(getattr(tree, field.name) for tree in found), err_msg=field.name)


def test_thresholds_are_borders_and_bins_are_few():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(2000, 3))
    X[rng.random(X.shape) < 0.05] = np.nan
    y = np.nan_to_num(X[:, 0]) + np.isnan(X[:, 1])
    model = DecisionTreeRegressor(max_bins=10, max_depth=5).fit(X, y)
    assert max(map(len, model.borders_)) == 9
    asks = model.tree_.feature >= 0
    for j, t in zip(model.tree_.feature[asks], model.tree_.threshold[asks], strict=True):
        assert np.isinf(t) or t in model.borders_[j]
    assert model.certificate_.holds
    assert audit(model, X, y).holds


def sabotaged(model, kind):
    tree, inner = model.tree_, np.flatnonzero(model.tree_.children_left >= 0)
    if kind == "another border":
        threshold = tree.threshold.copy()
        j = tree.feature[0]
        threshold[0] = model.borders_[j][
            (np.searchsorted(model.borders_[j], threshold[0]) + 2) % len(model.borders_[j])
        ]
        model.tree_ = replace(tree, threshold=threshold)
    elif kind == "between borders":
        threshold = tree.threshold.copy()
        threshold[inner] = np.nextafter(threshold[inner], np.inf)
        model.tree_ = replace(tree, threshold=threshold)
    elif kind == "borders that fall":
        model.borders_ = tuple(b[::-1] for b in model.borders_)
    elif kind == "coarse bins":
        model.borders_ = tuple(b[:2] if j not in tree.feature else b for j, b in enumerate(model.borders_))
    elif kind == "a value":
        model.tree_ = replace(tree, value=tree.value + 0.1)
    return model


@pytest.mark.parametrize("kind", ["another border", "between borders", "borders that fall", "coarse bins", "a value"])
def test_what_is_not_so_does_not_hold(kind):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 3))
    y = X[:, 0] + 0.1 * rng.normal(size=400)
    model = DecisionTreeRegressor(max_bins=32, max_depth=1).fit(X, y)
    assert audit(model, X, y).holds
    assert not audit(sabotaged(model, kind), X, y).holds


def test_more_borders_than_bins_or_none_are_refused():
    X, y, _ = targets("amounts")
    model = DecisionTreeRegressor(max_bins=8, max_depth=2).fit(X, y)
    model.max_bins = 4
    with pytest.raises(DataError, match="borders_"):
        audit(model, X, y)
    model.max_bins = 8
    del model.borders_
    with pytest.raises(DataError, match="borders_"):
        audit(model, X, y)


@pytest.mark.parametrize(
    "settings", [{"lookahead": 2}, {"criterion": "absolute_error"}, {"categorical_features": [0]}], ids=str
)
def test_what_codes_do_not_know_is_refused(settings):
    X, y, _ = targets("amounts")
    with pytest.raises(DataError, match="max_bins=16 with"):
        DecisionTreeRegressor(max_bins=16, **settings).fit(X, y)


def test_drawn_thresholds_and_columns_and_pruning():
    X, y, w = targets("classes")
    model = DecisionTreeClassifier(max_bins=255, splitter="random", max_features=2, random_state=0).fit(X, y, w)
    assert "drawn at random" in model.certificate_.claim
    assert audit(model, X, y, w).holds
    pruned = DecisionTreeClassifier(max_bins=255, ccp_alpha=0.01, random_state=0).fit(X, y)
    assert pruned.get_n_leaves() < DecisionTreeClassifier(max_bins=255, random_state=0).fit(X, y).get_n_leaves()
    assert pruned.certificate_.holds


def test_it_is_saved(tmp_path):
    X, y, _ = targets("amounts")
    model = DecisionTreeRegressor(max_bins=8, max_depth=3).fit(X, y)
    certifit.save(model, tmp_path / "tree.certifit")
    again = certifit.load(tmp_path / "tree.certifit")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert audit(again, X, y).holds
