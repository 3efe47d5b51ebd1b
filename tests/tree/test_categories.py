"""Trees that split categories: brute force over all ways to part them, labels in words, unknown ones, and proofs."""

import itertools

import numpy as np
import pandas as pd
import pytest

import certifit
from certifit import DataError, DecisionTreeClassifier, DecisionTreeRegressor, audit
from certifit.tree import export_text


def spread(y, w):
    return w @ (y - np.average(y, weights=w)) ** 2 if len(y) else 0.0


def ways_to_part(values):
    """All sets of categories that leave some on either side."""
    for size in range(1, len(values)):
        yield from itertools.combinations(values, size)


@pytest.mark.parametrize("seed", range(8))
def test_no_way_to_part_categories_is_better(seed):
    """Of an amount and of two classes the best of all 2^g ways is found, with weights."""
    rng = np.random.default_rng(seed)
    g, w = rng.integers(0, 6, 40) * 3.0 - 4, rng.uniform(0.2, 2, 40)
    y = rng.normal(size=6)[(g / 3 + 2).astype(int) % 6] + rng.normal(size=40)
    for model, target in (
        (DecisionTreeRegressor(max_depth=1, categorical_features=[0]), y),
        (DecisionTreeClassifier(max_depth=1, categorical_features=[0]), (y > 0).astype(float)),
    ):
        model.fit(g[:, None], target, w)
        best = min(
            spread(target[side], w[side]) + spread(target[~side], w[~side])
            for side in (np.isin(g, part) for part in ways_to_part(np.unique(g)))
        )
        scale = 2 if isinstance(model, DecisionTreeClassifier) else 1  # Gini's is twice the variance of 0 and 1
        assert model.certificate_.objective * w.sum() == pytest.approx(scale * best, rel=1e-9)
        assert model.certificate_.holds
        assert audit(model, g[:, None], target, w).holds


def table(n=200, seed=0):
    rng = np.random.default_rng(seed)
    g = rng.integers(0, 9, n)
    frame = pd.DataFrame({"kind": pd.Categorical([f"k{i}" for i in g]), "x": rng.normal(size=n)})
    return frame, rng.normal(size=9)[g] * 2 + frame["x"].to_numpy() + 0.3 * rng.normal(size=n), g


@pytest.mark.parametrize("asked", ["from_dtype", ["kind"], [0], [True, False]])
def test_categories_in_words(asked):
    frame, y, _ = table()
    frame.loc[[3, 7], "kind"] = np.nan
    model = DecisionTreeRegressor(max_depth=4, categorical_features=asked).fit(frame, y)
    assert model.certificate_.holds
    assert audit(model, frame, y).holds
    assert model.is_categorical_.tolist() == [True, False]
    assert "kind in {" in export_text(model)
    shuffled = frame.assign(kind=frame["kind"].cat.reorder_categories(frame["kind"].cat.categories[::-1]))
    assert np.array_equal(model.predict(shuffled), model.predict(frame))
    # A label that the fit did not meet counts as missing.
    odd = frame.head(1).astype({"kind": object})
    first = odd.assign(kind="never seen"), odd.assign(kind=np.nan)
    assert model.predict(first[0]) == model.predict(first[1])


@pytest.mark.parametrize("settings", [
    {"criterion": "entropy"}, {"max_leaf_nodes": 6}, {"ccp_alpha": 0.01}, {"splitter": "random", "random_state": 3},
])  # fmt: skip
def test_three_classes(settings):
    frame, y, g = table()
    labels = np.digitize(y, [-1, 1])
    model = DecisionTreeClassifier(categorical_features=["kind"], **settings).fit(frame, labels)
    assert model.certificate_.holds
    assert audit(model, frame, labels).holds
    codes = np.column_stack([g, frame["x"]])
    numbers = DecisionTreeClassifier(categorical_features=[0], **settings).fit(codes, labels)
    assert np.array_equal(numbers.predict(codes), model.predict(frame))


def test_several_targets_and_absolute_errors():
    frame, y, _ = table()
    model = DecisionTreeRegressor(criterion="absolute_error", categorical_features=["kind"], max_depth=5)
    model.fit(frame, np.column_stack([y, -(y**2)]))
    assert model.certificate_.holds


def test_another_set_of_categories_does_not_hold():
    from dataclasses import replace

    frame, y, _ = table()
    model = DecisionTreeRegressor(max_depth=2, categorical_features=["kind"]).fit(frame, y)
    sets = model.tree_.category_left.copy()
    sets[0] = 1 - sets[0]
    whole = model.tree_
    model.tree_ = replace(whole, category_left=sets)
    assert not audit(model, frame, y).holds
    # A split that is honest about its nodes, and not the best.
    left = np.zeros_like(whole.category_left)
    left[0, 0] = 1
    poor = DecisionTreeRegressor(max_depth=1, categorical_features=["kind"]).fit(frame, y)
    goes = (frame["kind"] == "k0").to_numpy()
    values = np.array([y.mean(), y[goes].mean(), y[~goes].mean()])
    poor.tree_ = replace(
        poor.tree_, category_left=left[:1], value=values[:, None, None],
        impurity=np.array([y.var(), y[goes].var(), y[~goes].var()]),
        n_node_samples=np.array([len(y), goes.sum(), (~goes).sum()]),
        weighted_n_node_samples=np.array([len(y), goes.sum(), (~goes).sum()], float),
    )  # fmt: skip
    assert [check.name for check in audit(poor, frame, y).checks if not check.passed] == [
        "best split of a node missed by, of its impurity"
    ]
    model.tree_ = replace(whole, category_values=whole.category_values[::-1])
    with pytest.raises(DataError, match="in a fitted tree"):
        audit(model, frame, y)
    for name in ("category_first", "category_set", "category_left"):  # numbers by which nodes are found
        model.tree_ = replace(whole, **{name: getattr(whole, name).astype(np.float32)})
        with pytest.raises(DataError, match="not whole in a fitted tree"):
            audit(model, frame, y)


def test_wrong_columns_are_refused():
    frame, y, _ = table()
    for asked in ([5], ["colour"], [True, False, True], "by_type"):
        with pytest.raises(DataError, match="categorical_features"):
            DecisionTreeRegressor(categorical_features=asked).fit(frame[["x"]], y)
    with pytest.raises(DataError, match="monotonic_cst on a column of categories"):
        DecisionTreeRegressor(categorical_features=[0], monotonic_cst=[1, 0]).fit(frame, y)


def test_a_tree_of_categories_is_saved(tmp_path):
    frame, y, _ = table()
    model = DecisionTreeRegressor(max_depth=3, categorical_features=["kind"]).fit(frame, y)
    certifit.save(model, tmp_path / "tree.certifit")
    again = certifit.load(tmp_path / "tree.certifit")
    assert np.array_equal(again.predict(frame), model.predict(frame))
    assert audit(again, frame, y).holds


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")  # 64 bits wrap around on purpose
@pytest.mark.compiled
def test_the_order_of_categories_is_that_of_their_means():
    rng = np.random.default_rng(1)
    g, y = rng.integers(0, 5, 14), rng.normal(size=14)
    model = DecisionTreeRegressor(max_depth=1, categorical_features=[0]).fit(g[:, None], y)
    left = model.tree_.category_left[0].astype(bool)
    means = np.array([y[g == c].mean() for c in np.unique(g)])
    assert means[left].max() < means[~left].min() or means[~left].max() < means[left].min()
