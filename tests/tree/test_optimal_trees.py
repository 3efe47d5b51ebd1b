"""Best trees: brute force over every threshold, bounds on either side of it, known answers, and proofs."""

import itertools

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

import certifit
from certifit import (
    DataError,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    OptimalTreeClassifier,
    OptimalTreeRegressor,
    audit,
)
from certifit.rows import as_rows
from certifit.tree.optimal.bins import code_rows, split_candidates
from certifit.tree.optimal.search import TargetStatistics, TreeSearch


def leaf_cost(y, w, amounts):
    if not len(y):
        return 0.0
    if amounts:
        return float(w @ (y - np.average(y, weights=w)) ** 2)
    return float(w.sum() - max(w[y == c].sum() for c in np.unique(y)))


def brute_force(X, y, w, depth, amounts):
    """The least cost of any tree of a depth: every threshold of every column, missing values on either side."""
    best = leaf_cost(y, w, amounts)
    if depth == 0 or len(y) < 2:
        return best
    seen = set()
    for j in range(X.shape[1]):
        known = ~np.isnan(X[:, j])
        for t in np.unique(X[known, j]):
            for left in (X[:, j] <= t, (X[:, j] <= t) | ~known):
                key = left.tobytes()
                if key in seen or not 0 < left.sum() < len(y):
                    continue
                seen.add(key)
                cost = sum(brute_force(X[s], y[s], w[s], depth - 1, amounts) for s in (left, ~left))
                best = min(best, cost)
    return best


def problem(seed, n, d, amounts, missing=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).round(1 if seed % 2 else 3)
    y = rng.normal(size=n).round(2) if amounts else rng.integers(0, 3 if seed % 3 else 2, n)
    w = rng.integers(1, 4, n).astype(float) if seed % 2 else rng.uniform(0.2, 2.0, n)
    if missing:
        X[rng.random(X.shape) < 0.2] = np.nan
    return X, y, w


SIZES = {1: (40, 4), 2: (18, 3), 3: (9, 2)}


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("amounts", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_no_tree_is_better(depth, amounts, seed):
    X, y, w = problem(seed, *SIZES[depth], amounts, missing=seed >= 2)
    model = (OptimalTreeRegressor if amounts else OptimalTreeClassifier)(max_depth=depth).fit(X, y, w)
    best = brute_force(X, y, w, depth, amounts) / w.sum()
    assert model.objective(X, y, w).total == pytest.approx(best, rel=1e-9, abs=1e-12)
    assert model.certificate_.kind == "optimal"
    assert model.certificate_.holds
    assert audit(model, X, y, w).holds


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("amounts", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_few_bins_bound_the_best_tree_from_both_sides(depth, amounts, seed):
    """With three bins and no time for finer ones: lower bound <= optimum <= tree, and audits agree."""
    X, y, w = problem(seed, *SIZES[depth], amounts, missing=seed >= 3)
    made = OptimalTreeRegressor if amounts else OptimalTreeClassifier
    model = made(max_depth=depth, max_bins=3, time_limit=0.0).fit(X, y, w)
    best = brute_force(X, y, w, depth, amounts) / w.sum()
    assert model.lower_bound_ <= best * (1 + 1e-9) + 1e-12
    assert model.certificate_.objective >= best * (1 - 1e-9) - 1e-12
    assert model.certificate_.holds
    again = audit(model, X, y, w)
    assert (again.kind, again.bound) == (model.certificate_.kind, model.certificate_.bound)
    finer = made(max_depth=depth, max_bins=3, time_limit=None).fit(X, y, w)
    assert finer.certificate_.kind == "optimal"
    assert finer.certificate_.objective == pytest.approx(best, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_the_solver_and_the_checker_find_the_same_bound(depth):
    """Two implementations, compiled loops and tensors, of the cheapest tree that gives rows away."""
    from certifit.checkers.tree.optimal import binned_rows, cheapest_tree

    X, y, w = problem(1, 60, 3, amounts=False, missing=True)
    rows = as_rows(X, y, w, target="classes", missing=True)
    borders = [np.array([-0.5, 0.0, 0.7]), np.array([-1.0, 0.2]), np.zeros(0)]
    coded = code_rows(rows, borders)
    target = TargetStatistics(y.astype(np.int32), w, None, 3)
    found = TreeSearch(coded, target).costs([split_candidates(coded, relaxed=True)], depth)[0]
    assert found.root().cost == cheapest_tree(binned_rows(rows, borders, 3), depth)


@pytest.mark.compiled
def test_codes_count_the_borders_below_a_value_and_ranges_hold_the_values_of_a_bin():
    X, y, w = problem(2, 80, 3, amounts=False, missing=True)
    borders = [np.array([-0.5, 0.0, 0.7]), np.zeros(0), np.array([X[np.isfinite(X[:, 2]), 2][0]])]
    coded, kept = code_rows(as_rows(X, y, w, target="classes", missing=True), borders), X[w > 0]
    for j, own in enumerate(borders):
        x = kept[:, j]
        number = np.where(np.isnan(x), len(own) + 1, np.searchsorted(own, x))
        assert np.array_equal(coded.codes[j], number)
        for b in range(len(own) + 1):
            here = x[number == b]
            assert (coded.least[j][b], coded.largest[j][b]) == (here.min(initial=np.inf), here.max(initial=-np.inf))


def test_an_exclusive_or_of_three_columns_needs_depth_three():
    X = np.array(list(itertools.product([0.0, 1.0], repeat=4)))
    y = X[:, 0].astype(int) ^ X[:, 1].astype(int) ^ X[:, 3].astype(int)
    assert OptimalTreeClassifier(max_depth=3).fit(X, y).score(X, y) == 1.0
    assert OptimalTreeClassifier(max_depth=2).fit(X, y).certificate_.objective == 0.5


def test_iris_by_brute_force():
    """All 123 thresholds, and all below each of them; no tree of depth 2 does better than 6 of 150."""
    X, y = load_iris(return_X_y=True)
    model = OptimalTreeClassifier(max_depth=2).fit(X, y)
    assert model.certificate_.kind == "optimal"
    assert round(model.certificate_.objective * 150) == brute_force(X, y, np.ones(150), 2, False) == 6


def test_never_worse_than_a_greedy_tree():
    X, y = load_breast_cancer(return_X_y=True)
    best = OptimalTreeClassifier(max_depth=2).fit(X, y)
    greedy = DecisionTreeClassifier(max_depth=2).fit(X, y)
    assert best.certificate_.kind == "optimal"
    assert best.score(X, y) >= greedy.score(X, y)
    X, y = load_diabetes(return_X_y=True)
    best = OptimalTreeRegressor(max_depth=2).fit(X, y)
    assert best.certificate_.kind == "optimal"
    assert best.score(X, y) >= DecisionTreeRegressor(max_depth=2).fit(X, y).score(X, y)


def test_equal_rows_of_different_labels_are_a_floor():
    X, y = np.array([[0.0], [0.0], [1.0], [1.0], [1.0]]), [0, 1, 1, 1, 0]
    model = OptimalTreeClassifier(max_depth=3).fit(X, y)
    assert model.certificate_.objective == model.lower_bound_ == pytest.approx(0.4)
    assert model.certificate_.facts["rows equal in every column cost"] == pytest.approx(0.4)


def test_any_source_and_any_number_of_threads(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 4))
    y = (X[:, 0] * X[:, 1] > 0.1).astype(int)
    table = pa.table({**{f"x{j}": X[:, j] for j in range(4)}, "y": y})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=1000)
    settings = {"max_depth": 2, "max_bins": 16, "time_limit": 0.0}
    memory = OptimalTreeClassifier(**settings).fit(X, y)
    files = OptimalTreeClassifier(**settings).fit(tmp_path / "rows.parquet", "y")
    assert np.array_equal(memory.tree_.threshold, files.tree_.threshold)
    assert memory.certificate_.bound == files.certificate_.bound
    certifit.set_threads(1)
    try:
        one = OptimalTreeClassifier(**settings).fit(X, y)
    finally:
        certifit.set_threads(None)
    assert np.array_equal(memory.tree_.value, one.tree_.value)


def test_leaves_of_a_least_weight():
    X, y = load_iris(return_X_y=True)
    model = OptimalTreeClassifier(max_depth=3, min_weight_fraction_leaf=0.2).fit(X, y)
    leaves = model.tree_.children_left < 0
    assert model.tree_.weighted_n_node_samples[leaves].min() >= 30
    assert model.certificate_.kind == "bounded"
    assert audit(model, X, y).holds
    model.min_weight_fraction_leaf = 0.4
    assert not audit(model, X, y).holds


def test_constant_and_empty_columns_and_one_row():
    X = np.column_stack([np.ones(6), np.full(6, np.nan), [0.0, 0, 0, 1, 1, 1]])
    model = OptimalTreeClassifier(max_depth=3).fit(X, list("aaabbb"))
    assert model.score(X, list("aaabbb")) == 1.0
    assert model.tree_.node_count == 3
    assert OptimalTreeRegressor().fit([[1.0]], [3.0]).predict([[0.0]]).tolist() == [3.0]
    assert OptimalTreeClassifier().fit(np.ones((3, 2)), [1, 1, 1]).tree_.node_count == 1


def test_wrong_settings_are_refused():
    for settings in ({"max_depth": 4}, {"max_bins": 1}, {"time_limit": -1}):
        with pytest.raises(DataError):
            OptimalTreeClassifier(**settings).fit(np.eye(4), [0, 1, 0, 1])


# ---------------------------------------------------------------------------------------------------------- proofs
def test_a_greedy_tree_in_its_place_is_not_optimal():
    X = np.array(list(itertools.product([0.0, 1.0], repeat=2)) * 3 + [[0.0, 0.0]])
    y = (X[:, 0] != X[:, 1]).astype(int)
    best = OptimalTreeClassifier(max_depth=2).fit(X, y)
    worse = OptimalTreeClassifier(max_depth=1).fit(X, y)
    worse.max_depth = 2
    found = audit(worse, X, y)
    assert best.certificate_.objective == 0.0
    assert (found.kind, found.bound) == ("bounded", 0.0)


def test_numbers_that_are_wrong_do_not_hold():
    from dataclasses import replace

    X, y = load_iris(return_X_y=True)
    model = OptimalTreeClassifier(max_depth=2).fit(X, y)
    whole = model.tree_
    for wrong in (
        {"impurity": whole.impurity * 0.5},
        {"value": whole.value[:, :, ::-1]},
        {"threshold": whole.threshold + 1},
    ):
        model.tree_ = replace(whole, **wrong)
        assert not audit(model, X, y).holds
    model.tree_ = whole
    # Coarser bins prove less, and never more.
    model.borders_ = [own[::20] for own in model.borders_]
    coarse = audit(model, X, y)
    assert coarse.kind == "bounded"
    assert coarse.bound < model.certificate_.bound
    model.borders_ = [own[::-1] for own in model.borders_]
    with pytest.raises(DataError, match="borders_"):
        audit(model, X, y)


def test_a_saved_tree_is_the_same(tmp_path):
    X, y = load_iris(return_X_y=True)
    model = OptimalTreeClassifier(max_depth=2).fit(X, y)
    certifit.save(model, tmp_path / "best.certifit")
    again = certifit.load(tmp_path / "best.certifit")
    assert np.array_equal(again.predict(X), model.predict(X))
    assert audit(again, X, y).holds


@pytest.mark.compiled
def test_the_loops_against_sums_written_out():
    from certifit.tree.optimal.scan_loops import ColumnCandidates, best_splits, leaf_costs
    from certifit.tree.optimal.search import fold_sides

    rng = np.random.default_rng(0)
    stats = rng.integers(0, 5, size=(5, 3, 2)).astype(float)  # four bins and missing, three classes, two regions
    own = ColumnCandidates(np.array([1, 2]), np.array([2, 2]), np.array([False, True]), 7)
    sides = fold_sides(stats.reshape(1, 5, 6), own)
    known, lost = stats[:4], stats[4]
    wanted = [
        known[:1].sum(axis=0),
        known[2:].sum(axis=0) + lost,
        known[:2].sum(axis=0) + lost,
        known[2:].sum(axis=0),
    ]
    assert np.array_equal(sides[0].reshape(4, 3, 2), wanted)
    plain = np.array([side.sum(axis=0) - side.max(axis=0) for side in wanted])  # (4 sides, 2 regions)
    costs = np.zeros(2)
    leaf_costs(wanted[0], 0, 0.0, costs, np.empty((2, 2)))
    assert np.array_equal(costs, plain[0])
    best, chosen = np.full(2, np.inf), np.full(2, -1)
    below = np.concatenate([np.zeros((1, 3, 2)), known.cumsum(axis=0)])
    best_splits(below, lost, own, (0, 0.0), best, chosen, np.empty((6, 2)))
    pairs = plain[0::2] + plain[1::2]
    assert np.array_equal(best, pairs.min(axis=0))
    assert np.array_equal(chosen, 7 + pairs.argmin(axis=0))
