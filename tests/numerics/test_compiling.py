"""Loops that are interpreted at first: the same bits as compiled ones, and when they are compiled."""

import pickle

import numpy as np
import pytest

from certifit import (
    AdaBoostClassifier,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from certifit.numerics import compiling
from certifit.numerics.compiled.compiling import (
    InterpretedFirst,
    InterpreterTuning,
    called_from_python,
    compiled_at_once,
)
from certifit.tree import fitted_tree
from certifit.tree.route_loops import leaves_of_rows


def add_squares(x):
    total = 0.0
    for i in range(len(x)):
        total += x[i] * x[i]
    return total


def loop(monkeypatch, tmp_path, **tuning):
    """The loop above, with nothing of it on disk, and a list of how often its plain twin was called."""
    calls = []
    made = InterpretedFirst(called_from_python(add_squares), InterpreterTuning(**tuning))
    monkeypatch.setattr(made, "_mark", lambda types: tmp_path / "-".join(types))

    def plain(_):
        return lambda x: (calls.append(1), add_squares(x))[1]

    monkeypatch.setattr(compiling, "interpreted", plain)
    return made, calls


def test_a_loop_is_compiled_when_a_table_is_large_or_time_is_up(monkeypatch, tmp_path):
    small, large = np.arange(3.0), np.arange(11.0)
    many, calls = loop(monkeypatch, tmp_path, most_entries=10)
    assert [many(small), many(small), len(calls)] == [5.0, 5.0, 2]
    assert [many(large), len(calls)] == [385.0, 2]
    assert [many(small), len(calls)] == [5.0, 2]  # compiled by now
    assert [many(small.astype(np.float32)), len(calls)] == [5.0, 3]  # but not for float32
    again, calls = loop(monkeypatch, tmp_path)
    assert [again(small), len(calls)] == [5.0, 0]  # it is on disk
    late, calls = loop(monkeypatch, tmp_path / "elsewhere", seconds=0.0)
    assert [late(small), len(calls)] == [5.0, 0]
    asked, calls = loop(monkeypatch, tmp_path / "elsewhere")
    with compiled_at_once():
        assert [asked(small), len(calls)] == [5.0, 0]


def fitted(model, X, y):
    tree = getattr(model.fit(X, y, np.arange(len(X)) % 5 / 3 + 0.1), "trees_", None) or getattr(model, "tree_", None)
    if tree is None:
        return [model.decision_function(X)]
    names = ("children_left", "feature", "threshold", "missing_go_to_left", "impurity", "value")
    return [getattr(tree, name) for name in names] + [model.predict(X)]


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeClassifier(criterion="entropy"),
        DecisionTreeRegressor(criterion="absolute_error", max_depth=3),
        DecisionTreeRegressor(criterion="poisson", splitter="random", random_state=0),
        RandomForestClassifier(4, criterion="log_loss", random_state=0),
        ExtraTreesClassifier(4, criterion="entropy", random_state=0),
        RandomForestRegressor(4, random_state=0, max_depth=5),
        AdaBoostClassifier(n_estimators=4),
    ],
    ids=lambda model: f"{type(model).__name__}-{getattr(model, 'criterion', '')}",
)
def test_interpreted_and_compiled_loops_give_the_same_bits(monkeypatch, model):
    """The two tiers may follow one another in one process, or in two: no bit may tell which one it was."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.arange(60) % 3
    y = y + rng.random(60) if "Regressor" in type(model).__name__ else y
    with compiled_at_once():
        compiled = fitted(model, X, y)
    monkeypatch.setattr(InterpretedFirst, "__call__", lambda self, *args: self._interpreted(args))
    for a, b in zip(compiled, fitted(model, X, y), strict=True):
        assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


def test_a_small_table_is_fitted_without_compiling(monkeypatch):
    """A model that was not met before, with nothing on disk: no loop of it is compiled."""
    fresh = InterpretedFirst(leaves_of_rows.compiled)
    monkeypatch.setattr(fresh, "_kept", lambda types: False)
    monkeypatch.setattr(fitted_tree, "leaves_of_rows", fresh)
    X = np.arange(20.0)[:, None]
    assert (DecisionTreeClassifier().fit(X, X[:, 0] > 9).predict(X) == (X[:, 0] > 9)).all()
    assert fresh.spent > 0
    assert not fresh.compiled_types
    assert pickle.loads(pickle.dumps(leaves_of_rows)) is leaves_of_rows
