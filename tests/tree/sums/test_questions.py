"""Monotone columns, quantiles that cross and worst cases: proofs against brute force over every cell."""

import itertools

import numpy as np
import pytest
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

from certifit import (
    AdditiveClassifier,
    DataError,
    HistGradientBoostingClassifier,
    prove_monotone,
    prove_order,
    score_range,
)
from certifit.checkers.tree.sums.read_model import read_tree_sum
from tests.tree.sums.stand_ins import ExplainableBoostingClassifier, ExtremeBooster, LightBooster
from tests.tree.sums.write_dumps import table

X, LABEL, AMOUNT = table()


def small(seed, trees=3, depth=2, n=40):
    """A boosting whose trees may fall where others make up for it."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 5, (n, 2)).astype(float)
    y = X[:, 0] + rng.normal(0, 1.2, n) + X[:, 1] * rng.normal()
    return GradientBoostingRegressor(n_estimators=trees, max_depth=depth, learning_rate=0.5).fit(X, y)


def grid(step=0.5):
    return np.array(list(itertools.product(np.arange(-1, 6, step), repeat=2)))


def falls_somewhere(model, column):
    """Every cell of a grid that has a point in each of them."""
    told = model.predict(grid()).reshape(14, 14)
    return bool((np.diff(told, axis=column) < 0).any())


def test_verdicts_are_those_of_brute_force():
    seen = set()
    for seed, column in itertools.product(range(25), (0, 1)):
        model = small(seed)
        answer = prove_monotone(model, column)
        assert (answer.verdict == "no") == falls_somewhere(model, column), (seed, column)
        assert answer.certificate.holds == (answer.verdict == "yes")
        if answer.verdict == "no":
            first, second = answer.rows
            assert second[column] > first[column]
            assert np.delete(first, column).tolist() == np.delete(second, column).tolist()
            before, after = model.predict(answer.rows)
            assert after < before
        seen.add((answer.verdict, one_tree_falls(model, column)))
    # Also a sum that rises though one of its trees falls.
    assert seen == {("no", True), ("yes", False), ("yes", True)}


def one_tree_falls(model, column):
    """Whether any single tree of the sum falls."""
    told = [tree.predict(grid()).reshape(14, 14) for tree in model.estimators_[:, 0]]
    return any((np.diff(one, axis=column) < 0).any() for one in told)


@pytest.mark.parametrize("kind", [LightBooster, ExtremeBooster])
def test_boosters_with_and_without_the_constraint(kind):
    assert prove_monotone(kind("rising"), 0)
    free = kind("amounts")
    answer = prove_monotone(free, 0)
    assert answer.verdict == "no"
    told = free.predict(answer.rows, raw_score=True) if kind is LightBooster else [
        free.inplace_predict(answer.rows[i : i + 1], (0, 0), "margin", False)[0] for i in (0, 1)
    ]  # fmt: skip
    assert told[1] < told[0]
    assert answer.certificate.kind == "impossible"
    assert answer.certificate.proved


def test_a_reading_that_is_not_the_model_proves_nothing():
    model = LightBooster("rising")
    model.predict = lambda X, raw_score: np.zeros(len(X))
    assert prove_monotone(model, 0).verdict == "not decided"


def test_our_models_and_additive_ones():
    full = np.nan_to_num(X)
    rising = HistGradientBoostingClassifier(max_iter=10, min_samples_leaf=5, monotonic_cst=[1, 0, 0]).fit(full, LABEL)
    assert prove_monotone(rising, 0)
    falling = AdditiveClassifier(0.005, monotonic_cst=[0, 0, -1]).fit(X, LABEL)
    assert prove_monotone(falling, 2, -1)
    assert not prove_monotone(falling, 2, 1)
    assert prove_monotone(ExplainableBoostingClassifier(), 1).verdict == "no"


def test_a_budget_that_is_spent_decides_nothing():
    model = GradientBoostingRegressor(n_estimators=3, max_depth=3).fit(np.nan_to_num(X), AMOUNT)
    answer = prove_monotone(model, 0, max_boxes=1)
    assert answer.verdict == "not decided"
    assert not answer.certificate.holds


def test_questions_that_make_no_sense_are_refused():
    model = small(0)
    with pytest.raises(DataError, match="direction"):
        prove_monotone(model, 0, 2)
    with pytest.raises(DataError, match="column"):
        prove_monotone(model, 7)
    with pytest.raises(DataError, match="a fitted tree"):
        prove_monotone(object(), 0)
    private = HistGradientBoostingRegressor(max_iter=2).fit(np.nan_to_num(X), AMOUNT)
    with pytest.raises(DataError, match="whose trees are no public attributes"):
        prove_monotone(private, 0)


def test_order_of_two_models_against_brute_force():
    seen = set()
    for seed in range(12):
        lower, upper = small(seed, 2), small(seed + 100, 2)
        lower.init_.constant_ = lower.init_.constant_ - (seed % 4)
        answer = prove_order(lower, upper)
        crosses = bool((lower.predict(grid()) > upper.predict(grid())).any())
        assert (answer.verdict == "no") == crosses
        if crosses:
            assert lower.predict(answer.rows)[0] > upper.predict(answer.rows)[0]
        seen.add(answer.verdict)
    assert seen == {"yes", "no"}


def test_order_of_additive_models_is_decided_column_by_column():
    low, high = ExplainableBoostingClassifier(), ExplainableBoostingClassifier()
    high.intercept_ = high.intercept_ + 1e-9
    assert prove_order(low, high)
    assert prove_order(high, low).verdict == "no"
    high.term_scores_[1][4] -= 1e-6
    answer = prove_order(low, high)
    assert answer.verdict == "no"
    assert low.decision_function(answer.rows) > high.decision_function(answer.rows)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
def test_worst_cases_of_stumps_are_reached(epsilon):
    """Each column alone, over a fine grid; the sums of extremes are then reached by one row."""
    model = ExtremeBooster("stumps")
    rows = np.nan_to_num(X[:5])
    found = score_range(model, rows, epsilon)
    assert found.exact
    plain = read_tree_sum(model)
    for i, row in enumerate(rows):
        low = high = plain(row[None])[0, 0]
        for j in range(3):
            moved = np.tile(row, (4001, 1))
            moved[:, j] += np.linspace(-epsilon, epsilon, 4001)
            told = plain(moved)[:, 0] - plain(row[None])[0, 0]
            low, high = low + told.min(), high + told.max()
        assert found.low[i] == pytest.approx(low, abs=1e-12)
        assert found.high[i] == pytest.approx(high, abs=1e-12)


def test_worst_cases_of_trees_are_bounds():
    full = np.nan_to_num(X)
    model = RandomForestRegressor(5, max_depth=3, random_state=0).fit(full, AMOUNT)
    found = score_range(model, full, 0.2)
    assert not found.exact
    rng = np.random.default_rng(0)
    for _ in range(20):
        told = model.predict(full + rng.uniform(-0.2, 0.2, full.shape))
        assert (found.low <= told + 1e-12).all()
        assert (told <= found.high + 1e-12).all()
    still = score_range(model, full, 0.0)
    assert np.allclose(still.low, model.predict(full), atol=1e-12)


def test_worst_cases_of_our_additive_model_are_its_own():
    """`worst_case` of the model is computed from its functions, not from trees."""
    model = AdditiveClassifier(0.005).fit(X, LABEL)
    found = score_range(model, X, 0.25)
    loss = np.where(LABEL == 1, np.logaddexp(0, -found.low), np.logaddexp(0, found.high))
    assert np.allclose(loss, model.worst_case(X, LABEL, 0.25), atol=1e-12)


@pytest.mark.parametrize("kind", [AdditiveClassifier, RandomForestClassifier])
def test_settled_rows_keep_their_class(kind):
    """Log-odds about 0, or shares of votes about a half."""
    full = np.nan_to_num(X)
    model = (kind(0.005) if kind is AdditiveClassifier else kind(5, max_depth=3, random_state=0)).fit(full, LABEL)
    settled = score_range(model, full, 0.1).settled
    assert 0 < settled.sum() < len(full)
    rng = np.random.default_rng(0)
    for _ in range(10):
        moved = model.predict(full + rng.uniform(-0.1, 0.1, full.shape))
        assert (moved == model.predict(full))[settled].all()


def test_numbers_that_lightgbm_takes_for_others():
    """It cuts numbers off at 1e300, so nothing lies above such a threshold; up to 1e-35 they are 0."""
    model = LightBooster("stumps")
    for tree in model.written["dump"]["tree_info"]:
        tree["tree_structure"]["threshold"] = 1e300
    assert all(prove_monotone(model, j, way) for j in range(3) for way in (-1, 1))
    for tree in model.written["dump"]["tree_info"]:
        tree["tree_structure"]["threshold"] = -1.0000000180025095e-35
    plain = read_tree_sum(model)
    assert plain(np.full((1, 3), -1e-35)).tolist() == plain(np.zeros((1, 3))).tolist()


@pytest.mark.parametrize("seed", [0, 65])
def test_rows_that_refute_are_rows_that_the_model_takes(seed):
    """scikit-learn's GradientBoosting… refuses missing entries, so none stands in a row that refutes."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(60, 3)).round(), rng.normal(size=60)
    model = GradientBoostingRegressor(n_estimators=20, max_depth=4, random_state=0).fit(X, y)
    answer = prove_monotone(model, 0)
    assert answer.verdict == "no"
    before, after = model.predict(answer.rows)
    assert after < before
