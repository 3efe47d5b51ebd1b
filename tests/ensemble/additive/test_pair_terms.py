"""Terms of pairs of columns: the same problem solved by scikit-learn, pairs that are found, and wrong models."""

import copy
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Lasso, LogisticRegression

import certifit
from certifit import AdditiveClassifier, AdditiveRegressor, DataError, audit
from certifit.ensemble.additive.pair_terms import box_cells, box_sums, box_values, coarse_levels
from certifit.plots import plot_pair_functions


def crossed(n=200, seed=0, d=3):
    """Few values of each column, and a target that the first two make together."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, (n, d)).astype(float)
    score = 1.5 * (X[:, 0] > 2) * (X[:, 1] <= 3) + 0.3 * X[:, 2]
    return X, score + 0.3 * rng.normal(size=n), rng.random(n) < 1 / (1 + np.exp(1 - score))


def atoms(X, pairs):
    """The indicators of all steps and of all boxes of some pairs (n, m)."""
    sides = {j: [X[:, j] > t for t in np.unique(X[:, j])[:-1]] for j in range(X.shape[1])}
    found = [side for j in sides for side in sides[j]]
    for j, k in pairs:
        for a in sides[j]:
            for b in sides[k]:
                found += [~a & ~b, ~a & b, a & ~b, a & b]
    return np.column_stack(found).astype(float)


def test_sums_over_boxes_and_values_of_boxes_are_transposes():
    rng = np.random.default_rng(0)
    cells, boxes = rng.normal(size=(4, 5)), rng.normal(size=(4, 3, 4))
    assert (box_sums(cells) * boxes).sum() == pytest.approx((box_values(boxes) * cells).sum())
    every = box_cells(np.arange(boxes.size), (4, 5))
    np.testing.assert_allclose(every @ boxes.ravel(), box_values(boxes).ravel())
    np.testing.assert_allclose(every.T @ cells.ravel(), box_sums(cells).ravel())


def test_coarse_levels_are_runs_of_about_equal_mass():
    found = coarse_levels(np.ones(100), False, 16)
    assert found[0] == 0
    assert np.isin(np.diff(found), (0, 1)).all()
    assert np.bincount(found).min() >= 5
    assert coarse_levels(np.append(3.0, np.ones(20)), True, 16)[:3].tolist() == [0, 1, 1]
    assert coarse_levels(np.ones(7), True, 16).tolist() == [*range(7)]


@pytest.mark.parametrize("alpha", [0.1, 0.02])
def test_the_lasso_on_all_steps_and_boxes_is_the_same_problem(alpha):
    X, y, _ = crossed(120)
    pairs = [(0, 1), (1, 2)]
    model = AdditiveRegressor(alpha, interactions=pairs, tol=1e-9).fit(X, y)
    A = atoms(X, pairs)
    lasso = Lasso(alpha=alpha, tol=1e-9, max_iter=20_000).fit(A, y)
    reached = ((y - lasso.predict(A)) ** 2).mean() / 2 + alpha * np.abs(lasso.coef_).sum()
    assert model.certificate_.objective == pytest.approx(reached, rel=1e-6)
    assert model.certificate_.bound <= reached
    assert model.objective(X, y).total == pytest.approx(model.certificate_.objective)


def test_l1_logistic_regression_on_all_steps_and_boxes_is_the_same_problem():
    X, _, y = crossed(120)
    alpha = 0.02
    model = AdditiveClassifier(alpha, interactions=[(0, 1)], tol=1e-9).fit(X, y)
    A = atoms(X, [(0, 1)])
    other = LogisticRegression(l1_ratio=1.0, solver="saga", C=1 / (120 * alpha), tol=1e-7, max_iter=5000).fit(A, y)
    score = other.decision_function(A)
    reached = (np.logaddexp(0, score) - y * score).mean() + alpha * np.abs(other.coef_).sum()
    assert model.certificate_.objective == pytest.approx(reached, rel=1e-5)
    assert model.certificate_.bound <= reached


def test_the_pair_that_matters_is_found_and_saved(tmp_path):
    X, y, _ = crossed()
    X[::9, 0] = np.nan
    model = AdditiveRegressor(0.02, interactions=1).fit(X, y)
    assert [term.columns.tolist() for term in model.pair_functions_] == [[0, 1]]
    alone = AdditiveRegressor(0.02).fit(X, y)
    assert model.certificate_.objective < alone.certificate_.objective - 0.01
    assert audit(model, X, y).holds
    term = model.pair_functions_[0]
    assert term.counts.sum() == len(X)
    assert (term.counts.ravel() @ term.values.ravel()) == pytest.approx(0, abs=1e-9)
    certifit.save(model, tmp_path / "pairs.certifit")
    again = certifit.load(tmp_path / "pairs.certifit")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_pairs_are_named_and_several_classes_have_their_own():
    X, y, _ = crossed(150)
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    kinds = np.digitize(y, [0.5, 1.5])
    model = AdditiveClassifier(0.02, interactions=[("b", "a")]).fit(table, kinds)
    assert [[term.columns.tolist() for term in terms] for terms in model.pair_functions_] == [[[0, 1]]] * 3
    assert audit(model, table, kinds).holds
    assert model.predict_proba(table).sum(axis=1) == pytest.approx(1)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"interactions": [(0, 0)]}, "pairs of two of the 3 columns"),
        ({"interactions": [(0, 3)]}, "pairs of two of the 3 columns"),
        ({"interactions": [("a", 1)]}, "pairs of two of the 3 columns"),
        ({"interactions": -1}, "interactions"),
        ({"interactions": [(0, 1)], "monotonic_cst": [1, 0, 0]}, "pairs of columns without one"),
    ],
)
def test_what_cannot_be_is_said(settings, words):
    X, y, _ = crossed(40)
    with pytest.raises(DataError, match=words):
        AdditiveRegressor(0.1, **settings).fit(X, y)


def test_columns_with_a_direction_are_in_no_pair_and_pairs_have_no_worst_case():
    X, y, _ = crossed(120)
    model = AdditiveRegressor(0.02, interactions=3, monotonic_cst=[0, 0, 1]).fit(X, y)
    assert model.certificate_.holds
    assert [term.columns.tolist() for term in model.pair_functions_] == [[0, 1]]
    for question in (lambda: model.worst_case(X, y, 0.1), lambda: certifit.score_range(model, X, 0.1)):
        with pytest.raises(DataError, match="interactions=0"):
            question()


def test_pairs_that_add_nothing_and_constant_columns():
    X, y, _ = crossed(60)
    X[:, 2] = 1.0
    model = AdditiveRegressor(0.5, interactions=[(0, 1), (1, 2)]).fit(X, y)
    assert audit(model, X, y).holds
    assert [term.size for term in model.pair_functions_] == [0.0, 0.0]
    assert AdditiveRegressor(0.5, interactions=2).fit(X, y).pair_functions_ == []


def test_wrong_models_do_not_hold():
    X, y, _ = crossed(120)
    model = AdditiveRegressor(0.02, interactions=1).fit(X, y)
    term = model.pair_functions_[0]
    wrongs = {
        "coefficients": term.coefficients * 1.1,
        "centre": term.centre + 0.1,
        "counts": term.counts[::-1].copy(),
        "first_thresholds": term.first_thresholds + 1.0,
        "columns": np.array([0, 2]),
    }
    for name, value in wrongs.items():
        hurt = copy.deepcopy(model)
        hurt.pair_functions_[0] = replace(term, **{name: value})
        assert not audit(hurt, X, y).holds, name
    for others in ([], [term, term]):
        hurt = copy.deepcopy(model)
        hurt.pair_functions_ = others
        assert not audit(hurt, X, y).holds
    hurt = copy.deepcopy(model)
    hurt.pair_functions_[0] = replace(term, coefficients=term.coefficients[:, :-1])
    with pytest.raises(DataError, match="do not fit together"):
        audit(hurt, X, y)


def test_a_model_of_too_few_pairs_is_not_the_best():
    """The bound of a model with the pair lies below what one without it reaches: it may not claim to have it."""
    X, y, _ = crossed(120)
    model = AdditiveRegressor(0.02, interactions=[(0, 1)]).fit(X, y)
    alone = AdditiveRegressor(0.02).fit(X, y)
    model.shape_functions_, model.intercept_ = alone.shape_functions_, alone.intercept_
    model.pair_functions_ = [replace(model.pair_functions_[0], coefficients=np.zeros((4, 5, 5)), centre=0.0)]
    found = audit(model, X, y)
    assert not found.holds
    assert found.objective == pytest.approx(alone.certificate_.objective)


@pytest.mark.parametrize("values", [2, 3, 40])
def test_pictures_of_pairs_name_the_level_of_missing_entries(values):
    rng = np.random.default_rng(0)
    X = rng.integers(0, values, size=(200, 2)).astype(float)
    X[rng.random(200) < 0.2, 0] = np.nan
    model = AdditiveRegressor(interactions=[(0, 1)]).fit(X, np.nan_to_num(X[:, 0]) * X[:, 1])
    (ax,) = plot_pair_functions(model)
    words = [[tick.get_text() for tick in axis.get_ticklabels()] for axis in (ax.xaxis, ax.yaxis)]
    plt.close(ax.figure)
    assert words[0][0] == "missing"
    assert "missing" not in words[1]
    assert [float(word) for word in words[0][1:]] == sorted(float(word) for word in words[0][1:])
