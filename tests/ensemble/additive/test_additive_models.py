"""Additive models: the convex problem solved by others, known solutions, and odd tables."""

import copy
import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import Lasso, LogisticRegression

import certifit
from certifit import AdditiveClassifier, AdditiveRegressor, DataError, audit
from certifit.ensemble.additive.block_descent import shortest_solution
from certifit.ensemble.additive.path_loops import (
    RowRun,
    add_and_sum,
    add_columns,
    fused_path,
    segment_hessian,
)
from certifit.ensemble.additive.shape_functions import range_extremes
from certifit.ensemble.additive.strength import held_out_rows


def wavy(n=200, d=3, seed=0, kind="squared"):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, d)), 1)
    score = np.sin(2 * X[:, 0]) + (X[:, 1] > 0.3) - 0.4
    y = {
        "squared": lambda: score + 0.5 * rng.normal(size=n),
        "classes": lambda: (rng.random(n) < 1 / (1 + np.exp(-2 * score))).astype(int),
        "counts": lambda: rng.poisson(np.exp(score)).astype(float),
    }[kind]()
    return X, y


def steps(X):
    """The indicators x_j > t of every threshold of every column (n, m)."""
    return np.column_stack([x > t for x in X.T for t in np.unique(x)[:-1]]).astype(float)


# ------------------------------------------------------------------------------------------------------- the path
@pytest.mark.compiled
@pytest.mark.parametrize("seed", range(6))
def test_the_path_is_the_minimum_of_its_problem(seed):
    """The optimality conditions: flows between levels stay within limits, and reach them where there is a jump."""
    rng = np.random.default_rng(seed)
    k = 12
    target, weight = rng.normal(size=k), rng.exponential(size=k) + 0.05
    low, high = -rng.exponential(size=k - 1) * 0.3, rng.exponential(size=k - 1) * 0.3
    if seed % 3 == 1:
        low[:] = -np.inf
    if seed % 3 == 2:
        high[3:] = np.inf
    v = np.empty(k)
    fused_path(target, weight, low, high, v)
    flow = np.cumsum(weight * (v - target))
    assert abs(flow[-1]) < 1e-12
    assert (flow[:-1] >= low - 1e-12).all()
    assert (flow[:-1] <= high + 1e-12).all()
    jump = np.diff(v)
    assert np.allclose(flow[:-1][jump > 1e-12], high[jump > 1e-12])
    assert np.allclose(flow[:-1][jump < -1e-12], low[jump < -1e-12])


@pytest.mark.compiled
def test_the_passes_over_rows_are_plain_sums():
    rng = np.random.default_rng(0)
    n, d = 50, 3
    codes = rng.integers(0, 5, size=(d, n)).astype(np.uint8)
    y, s, score, step = (
        rng.integers(0, 2, n).astype(float),
        rng.exponential(size=n),
        rng.normal(size=n),
        np.arange(256.0),
    )
    moved = score + step[codes[0]] * 1e-2
    derivatives = {
        0: (moved - y, np.ones(n)),
        1: (1 / (1 + np.exp(-moved)) - y, np.exp(-moved) / (1 + np.exp(-moved)) ** 2),
        2: (np.exp(moved) - y, np.exp(moved)),
    }
    for kind, (g, h) in derivatives.items():
        now, sums = score.copy(), np.empty((2, 5))
        add_and_sum(kind, codes[0], step * 1e-2, codes[1], RowRun(y, s, now), sums)
        assert np.allclose(now, moved)
        assert np.allclose(sums, [np.bincount(codes[1], s * g, 5), np.bincount(codes[1], s * h, 5)])
    values, total = rng.normal(size=(d, 256)), np.zeros(n)
    add_columns(codes, values, total)
    assert np.allclose(total, sum(values[j][codes[j]] for j in range(d)))
    number = np.arange(256) % 5 + 5 * np.arange(d)[:, None]
    found = np.zeros((15, 15))
    segment_hessian(codes, number, s, found)
    marks = np.concatenate([codes[j][:, None] == np.arange(5) for j in range(d)], axis=1).astype(float)
    assert np.allclose(found, np.triu(marks.T @ (marks * s[:, None])))


def test_the_extremes_of_runs():
    rng = np.random.default_rng(0)
    values = rng.normal(size=11)
    pairs = np.array([(a, b) for a, b in itertools.combinations_with_replacement(range(11), 2)])
    low, high = range_extremes(values, pairs[:, 0], pairs[:, 1])
    assert np.array_equal(low, [values[a : b + 1].min() for a, b in pairs])
    assert np.array_equal(high, [values[a : b + 1].max() for a, b in pairs])


# --------------------------------------------------------------------------------------------------- the optimum
@pytest.mark.parametrize("alpha", [0.3, 0.03])
def test_the_lasso_on_all_steps_is_the_same_problem(alpha):
    """An independent solver: scikit-learn's Lasso on indicators of all thresholds."""
    X, y = wavy(120)
    model = AdditiveRegressor(alpha=alpha, tol=1e-9).fit(X, y)
    lasso = Lasso(alpha=alpha, tol=1e-10, max_iter=100_000).fit(steps(X), y)
    reached = ((y - lasso.predict(steps(X))) ** 2).mean() / 2 + alpha * np.abs(lasso.coef_).sum()
    assert model.certificate_.objective == pytest.approx(reached, rel=1e-7)
    assert np.allclose(model.predict(X), lasso.predict(steps(X)), atol=1e-3)


def test_l1_logistic_regression_on_all_steps_is_the_same_problem():
    X, y = wavy(120, kind="classes")
    alpha = 0.02
    model = AdditiveClassifier(alpha=alpha, tol=1e-9).fit(X, y)
    other = LogisticRegression(l1_ratio=1.0, solver="saga", C=1 / (120 * alpha), tol=1e-10, max_iter=100_000)
    score = other.fit(steps(X), y).decision_function(steps(X))
    reached = (np.logaddexp(0, score) - y * score).mean() + alpha * np.abs(other.coef_).sum()
    assert model.certificate_.objective == pytest.approx(reached, rel=1e-6)


def test_poisson_by_a_general_solver():
    X, y = wavy(60, 2, kind="counts")
    X = np.round(X)
    alpha = 0.05
    model = AdditiveRegressor(alpha=alpha, loss="poisson", tol=1e-9).fit(X, y)
    H = np.column_stack([np.ones(60), steps(X), -steps(X)])

    def objective(v):
        eta = H @ v
        return (np.exp(eta) - y * eta).mean() + alpha * v[1:].sum()

    found = minimize(
        objective, np.zeros(H.shape[1]),
        jac=lambda v: H.T @ (np.exp(H @ v) - y) / 60 + alpha * np.r_[0, np.ones(len(v) - 1)],
        bounds=[(None, None)] + [(0, None)] * (H.shape[1] - 1), method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-10},
    )  # fmt: skip
    constant = (np.where(y > 0, y * np.log(np.maximum(y, 1)), 0.0) - y).mean()
    assert model.certificate_.objective == pytest.approx(found.fun + constant, rel=1e-6)


@pytest.mark.parametrize("direction", [1, -1])
def test_a_monotone_column_is_the_best_of_the_monotone_ones(direction):
    X, y = wavy(80, 2)
    X, alpha = X[:, :1], 0.02
    model = AdditiveRegressor(alpha=alpha, monotonic_cst=[direction], tol=1e-9).fit(X, direction * y)
    assert (direction * np.diff(model.shape_functions_[0].values) >= 0).all()
    H = np.column_stack([np.ones(80), steps(X) * direction])
    found = minimize(
        lambda v: ((direction * y - H @ v) ** 2).mean() / 2 + alpha * v[1:].sum(), np.zeros(H.shape[1]),
        jac=lambda v: H.T @ (H @ v - direction * y) / 80 + alpha * np.r_[0, np.ones(len(v) - 1)],
        bounds=[(None, None)] + [(0, None)] * (H.shape[1] - 1), method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-10},
    )  # fmt: skip
    assert model.certificate_.objective == pytest.approx(found.fun, rel=1e-6)
    free = AdditiveRegressor(alpha=alpha).fit(X, direction * y)
    assert (direction * np.diff(free.shape_functions_[0].values) < 0).any()
    bent = copy.deepcopy(free).set_params(monotonic_cst=[direction])
    assert not audit(bent, X, direction * y).holds


@pytest.mark.parametrize("kind", ["squared", "classes", "counts"])
def test_the_bound_is_honest_for_any_model(kind):
    """Whatever the functions are, no bound is above the optimum."""
    X, y = wavy(80, kind=kind)
    cls = AdditiveClassifier if kind == "classes" else AdditiveRegressor
    more = {"loss": "poisson"} if kind == "counts" else {}
    model = cls(alpha=0.05, tol=1e-9, **more).fit(X, y)
    best = model.certificate_.objective
    rng = np.random.default_rng(0)
    for size in (1e-3, 0.1, 1.0, 10.0):
        wild = copy.deepcopy(model)
        wild.shape_functions_ = [
            replace(s, values=s.values + size * rng.normal(size=len(s.values))) for s in model.shape_functions_
        ]
        found = audit(wild, X, y)
        assert found.bound <= best * (1 + 1e-9)
        assert not found.holds


def test_known_solution_of_one_step():
    """Half the squared error of two groups, shrunk by the penalty: each mean moves by alpha / its share."""
    X = np.repeat([0.0, 1.0], [3, 5])[:, None]
    model = AdditiveRegressor(alpha=0.1, tol=1e-12).fit(X, X[:, 0])
    assert np.allclose(model.predict([[0.0], [1.0]]), [0.1 / (3 / 8), 1 - 0.1 / (5 / 8)])
    flat = AdditiveRegressor(alpha=1.0).fit(X, X[:, 0])
    assert np.ptp(flat.predict(X)) == 0
    assert flat.intercept_ == pytest.approx(5 / 8)


# ------------------------------------------------------------------------------------------------------ odd tables
def test_missing_values_are_a_level_of_their_own():
    rng = np.random.default_rng(0)
    X, y = wavy(300)
    gone = rng.random(300) < 0.3
    X[gone, 0], y[gone] = np.nan, y[gone] + 3
    model = AdditiveRegressor(alpha=0.01).fit(X, y)
    assert model.certificate_.holds
    assert audit(model, X, y).holds
    shape = model.shape_functions_[0]
    assert shape.missing_count == gone.sum()
    assert shape.missing - shape.values.mean() > 2
    never = model.predict([[0.0, np.nan, 0.0]]) - model.predict([[0.0, X[0, 1], 0.0]])
    assert never == pytest.approx(-model.shape_functions_[1](X[:1, 1]))


def test_offsets_and_scales_do_no_harm():
    X, y = wavy(150)
    near = AdditiveRegressor(alpha=0.02).fit(X, y)
    far = AdditiveRegressor(alpha=0.02).fit(X * 1e6 - 1e9, y + 1e9)
    assert np.allclose(far.predict(X * 1e6 - 1e9) - 1e9, near.predict(X), atol=1e-5)
    assert far.certificate_.holds
    assert audit(far, X * 1e6 - 1e9, y + 1e9).holds
    tiny = AdditiveRegressor(alpha=0.02e-12).fit(X, y * 1e-12)
    assert np.allclose(tiny.predict(X) * 1e12, near.predict(X), atol=1e-3)


def test_directions_without_curvature_take_no_step():
    """The shortest least-squares solution of x + y = 1e10 / 2, whatever is asked for across it."""
    np.testing.assert_allclose(shortest_solution(np.ones((2, 2)), np.array([1e10, 0.0])), [2.5e9, 2.5e9])


def test_constant_columns_constant_targets_and_one_row():
    X = np.ones((6, 2))
    assert AdditiveRegressor(alpha=0.1).fit(X, np.arange(6.0)).predict(X[:1]).tolist() == [2.5]
    same = AdditiveRegressor(alpha=0.1).fit(wavy(20)[0], np.full(20, 7.0))
    assert same.certificate_.holds
    assert same.predict(X[:1, [0, 0, 0]]) == pytest.approx(7.0, rel=1e-15)
    assert AdditiveRegressor().fit([[1.0]], [3.0]).predict([[5.0]]).tolist() == [3.0]
    gone = AdditiveRegressor(alpha=0.1).fit(np.column_stack([np.full(4, np.nan), np.arange(4)]), np.arange(4.0))
    assert gone.certificate_.holds


def test_a_function_that_does_nothing_is_zero():
    """Rounding that is left about the mean of a constant function would be all there is, and so count for 100 %."""
    rng = np.random.default_rng(1202)
    X, y = rng.normal(size=(5, 5)), 37868.6714 + 1e-9 * rng.normal(size=5)
    model = AdditiveRegressor(alpha=0.1, max_bins=4).fit(X, y)
    assert all((shape.values == 0).all() for shape in model.shape_functions_)
    assert (model.feature_importances_ == 0).all()


def test_what_cannot_be_is_said():
    X, y = wavy(60)
    with pytest.raises(DataError, match="monotonic_cst with 3 classes"):
        AdditiveClassifier(monotonic_cst=[1, 0, 0]).fit(X, np.arange(60) % 3)
    with pytest.raises(DataError, match="counts of at least 0"):
        AdditiveRegressor(loss="poisson").fit(X, y - 5)
    with pytest.raises(DataError, match="-1, 0 or 1 for each of the 3 columns"):
        AdditiveRegressor(monotonic_cst=[1]).fit(X, y)
    with pytest.raises(DataError, match="alpha=0"):
        AdditiveRegressor(alpha=0).fit(X, y)


def three_kinds(n=150):
    rng = np.random.default_rng(4)
    X = rng.integers(0, 12, size=(n, 3)).astype(float)
    X[::11, 1] = np.nan
    score = np.nan_to_num(X[:, :2]).sum(axis=1) + 2 * rng.normal(size=n)
    return X, np.array(["low", "middle", "high"])[np.digitize(score, [8.0, 13.0])]


def test_several_classes_are_each_told_from_the_others():
    """The sum of convex problems of two classes: functions, objective and bound are those of each."""
    X, y = three_kinds()
    model = AdditiveClassifier(alpha=0.02, class_weight="balanced").fit(X, y)
    weight = len(y) / 3 / np.array([(y == label).sum() for label in y])
    ones = [AdditiveClassifier(alpha=0.02).fit(X, y == label, weight) for label in model.classes_]
    np.testing.assert_allclose(
        model.decision_function(X), np.stack([one.decision_function(X) for one in ones], axis=1), atol=1e-6
    )
    assert model.certificate_.objective == pytest.approx(sum(one.certificate_.objective for one in ones))
    assert (model.certificate_.kind, model.certificate_.holds) == ("optimal", True)
    assert model.objective(X, y).total == pytest.approx(model.certificate_.objective)
    assert audit(model, X, y).holds
    share = model.predict_proba(X)
    np.testing.assert_allclose(share.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), share)
    np.testing.assert_array_equal(model.classes_[share.argmax(axis=1)], model.predict(X))
    assert model.score(X, y) > 0.6
    assert model.feature_importances_[2] < 0.2
    assert model.intercept_.shape == model.alpha_.shape == (3,)
    with pytest.raises(DataError, match="3 classes"):
        model.worst_case(X, y, 0.1)


def test_several_classes_are_saved_drawn_and_asked(tmp_path):
    X, y = three_kinds(80)
    model = AdditiveClassifier().fit(X, y)
    certifit.save(model, tmp_path / "model.certifit")
    again = certifit.load(tmp_path / "model.certifit")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert audit(again, X, y).holds
    assert len(certifit.plots.plot_shape_functions(model, most=2, label="low")) == 2
    with pytest.raises(DataError, match="label=None for a model of 3 classes"):
        certifit.plots.plot_shape_functions(model)
    low, high = certifit.score_range(model, X[:4], 0.5).low, certifit.score_range(model, X[:4], 0.5).high
    assert (low <= model.decision_function(X[:4]) + 1e-12).all()
    assert (model.decision_function(X[:4]) <= high + 1e-12).all()


@pytest.mark.parametrize("kind", ["a function", "an intercept", "a strength", "two classes swapped"])
def test_several_classes_that_are_not_the_best_do_not_hold(kind):
    X, y = three_kinds()
    model = AdditiveClassifier(alpha=0.02).fit(X, y)
    shapes = model.shape_functions_
    if kind == "a function":
        shapes[1][0] = replace(shapes[1][0], values=1.1 * shapes[1][0].values)
    elif kind == "an intercept":
        model.intercept_ = model.intercept_ + np.array([0.0, 0.0, 0.05])
    elif kind == "a strength":
        model.alpha_ = model.alpha_ * np.array([1.0, 2.0, 1.0])
    else:
        model.shape_functions_ = [shapes[1], shapes[0], shapes[2]]
    assert not audit(model, X, y).holds


def test_bins_of_a_column_with_many_values():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    y = (X[:, 0] > 0.5) + 0.1 * rng.normal(size=3000)
    model = AdditiveRegressor(alpha=0.003, max_bins=32).fit(X, y)
    assert [len(s.values) for s in model.shape_functions_] == [32, 32]
    assert model.score(X, y) > 0.9
    assert audit(model, X, y).holds


# ---------------------------------------------------------------------------------------------- strength, worst case
def test_the_strength_chosen_keeps_signal_and_drops_noise():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1500, 6))
    y = np.sin(2 * X[:, 0]) + rng.normal(size=1500)
    model = AdditiveRegressor().fit(X, y)
    held = rng.normal(size=(2000, 6))
    error = ((model.predict(held) - np.sin(2 * held[:, 0])) ** 2).mean()
    assert error < 0.05
    assert model.feature_importances_[0] > 0.7
    weaker, stronger = (AdditiveRegressor(alpha=model.alpha_ * f).fit(X, y) for f in (0.1, 10))
    assert error < min(((m.predict(held) - np.sin(2 * held[:, 0])) ** 2).mean() for m in (weaker, stronger))


def test_rows_are_held_out_by_what_they_say():
    X = np.random.default_rng(0).normal(size=(4000, 2))
    out = held_out_rows(X)
    assert 0.22 < out.mean() < 0.28
    assert np.array_equal(held_out_rows(np.repeat(X, 2, axis=0)), np.repeat(out, 2))
    assert np.array_equal(held_out_rows(-0.0 * X), held_out_rows(0.0 * X))


@pytest.mark.parametrize("kind", ["squared", "classes"])
def test_the_worst_case_is_reached_and_never_exceeded(kind):
    X, y = wavy(40, 2, kind=kind)
    cls = AdditiveClassifier if kind == "classes" else AdditiveRegressor
    model = cls(alpha=0.02).fit(X, y)
    epsilon = 0.35
    worst = model.worst_case(X, y, epsilon)

    def loss(Z):
        score = model.decision_function(Z) if kind == "classes" else model.predict(Z)
        return np.logaddexp(0, np.where(y > 0, -score, score)) if kind == "classes" else (y - score) ** 2 / 2

    # Every level within reach, column by column: the ends and just above each threshold between them.
    reached = loss(X)
    grid = np.linspace(-epsilon, epsilon, 71)
    for a, b in itertools.product(grid, grid):
        reached = np.maximum(reached, loss(X + np.array([a, b])))
    assert (reached <= worst + 1e-12).all()
    assert np.allclose(reached, worst, atol=1e-12)
    assert np.allclose(model.worst_case(X, y, 0.0), loss(X))


# ------------------------------------------------------------------------------------------------------------ proofs
def test_a_saved_model_is_the_same(tmp_path):
    X, y = load_breast_cancer(return_X_y=True)
    model = AdditiveClassifier(alpha=0.02).fit(X[:, :5], y)
    certifit.save(model, tmp_path / "additive.certifit")
    again = certifit.load(tmp_path / "additive.certifit")
    assert np.array_equal(again.predict_proba(X[:, :5]), model.predict_proba(X[:, :5]))
    assert audit(again, X[:, :5], y).holds


def test_wrong_models_do_not_hold():
    X, y = load_diabetes(return_X_y=True)
    model = AdditiveRegressor(alpha=0.5).fit(X, y)
    assert audit(model, X, y).holds
    shape = model.shape_functions_[2]
    wrongs = {
        "values": shape.values * 1.1,
        "counts": shape.counts[::-1].copy(),
    }
    for name, value in wrongs.items():
        hurt = copy.deepcopy(model)
        hurt.shape_functions_[2] = replace(shape, **{name: value})
        assert not audit(hurt, X, y).holds, name
    hurt = copy.deepcopy(model)
    hurt.shape_functions_[2] = replace(shape, thresholds=shape.thresholds[::-1].copy())
    with pytest.raises(DataError, match="shape function"):
        audit(hurt, X, y)


@pytest.mark.parametrize("n", [25, 40])
def test_functions_that_interpolate_are_proved_best(n):
    """With hardly any penalty functions interpolate, and along jumps that no score needs only the penalty falls."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 3)).round(2)
    y = X[:, 0] ** 2 + X[:, 1] + 0.1 * rng.normal(size=n)
    model = AdditiveRegressor(alpha=1e-4).fit(X, y)
    assert model.certificate_.holds
    assert audit(model, X, y).holds
    assert model.n_iter_ < 60


@pytest.mark.parametrize("seed", [0, 3])
def test_one_row_of_nearly_all_weight_is_proved_and_excuses_nothing(seed):
    """The objective is 1e-12 where the scores are 30: rounding of the losses is far less than that of such scores."""
    rng = np.random.default_rng(seed)
    X, w = rng.normal(size=(60, 3)), np.ones(60)
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
    w[rng.integers(60)] = 1e12
    model = AdditiveClassifier().fit(X, y, w)
    found = audit(model, X, y, w)
    assert model.certificate_.holds
    assert found.holds
    assert found.limit < 1e-5 * found.objective
    hurt = copy.deepcopy(model)
    hurt.intercept_ += 0.1
    assert not audit(hurt, X, y, w).holds


@pytest.mark.parametrize("counts", [1e3, 1e9, 1e12])
def test_counts_of_any_size_are_proved(counts):
    """Half the deviance of Poisson noise is about ½ a row, whatever the counts: no digits cancel."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, size=(80, 2)).astype(float)
    y = rng.poisson(counts * np.exp(0.2 * X[:, 0])).astype(float)
    model = AdditiveRegressor(loss="poisson", alpha=1e-3 * counts**0.5).fit(X, y)
    found = audit(model, X, y)
    assert model.certificate_.holds
    assert found.holds
    assert found.limit < 1.1e-6 * found.objective
    hurt = copy.deepcopy(model)
    hurt.intercept_ += 1e-2 * counts**-0.5
    assert not audit(hurt, X, y).holds
