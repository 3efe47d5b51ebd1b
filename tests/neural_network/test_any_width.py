"""The bound over networks of any width: never above what a network reaches, exact where the best one is constant."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn import neural_network as theirs
from sklearn.datasets import load_iris, make_friedman1

from certifit import DataError, MLPClassifier, MLPRegressor, any_width_bound
from certifit.checkers.neural_network.adapter import read_perceptron
from certifit.checkers.neural_network.any_width import _conjugate_sum, _dual_value, unit_gain
from certifit.checkers.neural_network.unit_search import UnitSearchTuning, searched_gain

X, Y = load_iris(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
# Of all rows at once: a minibatch of fewer would have a heavier penalty for each of them than the objective has.
LEARNT = {
    "batch_size": 150,
    "learning_rate": "cosine",
    "learning_rate_init": 0.03,
    "max_iter": 300,
    "random_state": 0,
}


@pytest.mark.parametrize("k", [1, 3])
def test_no_unit_gains_more_than_is_proved(k):
    """Random units, most of which switch somewhere among the rows; the best of them gains a good part of it."""
    rng = np.random.default_rng(0)
    rows, v = rng.normal(size=(60, 2)) + 5.0, rng.normal(size=(60, k))
    v -= v.mean(axis=0)
    angle = rng.uniform(0, 2 * np.pi, 4000)
    w = np.array([np.cos(angle), np.sin(angle)])
    z = rows @ w
    b = -z[rng.integers(0, 60, 4000), np.arange(4000)]  # each unit switches at a row
    gains = np.linalg.norm(v.T @ np.maximum(z + b, 0), axis=0)
    assert gains.max() <= unit_gain(rows, v) <= 5 * gains.max()


@pytest.mark.parametrize(("alpha", "most"), [(1.0, 4.0), (10.0, 2.0)])
def test_wide_networks_stay_above_the_bound(alpha, most):
    """The proof of a narrow network holds for wide ones, and is not idle: it is closer the heavier the penalty is."""
    narrow = MLPClassifier((3,), alpha=alpha, **LEARNT).fit(X, Y)
    found = any_width_bound(narrow, X, Y)
    assert found.kind == "bounded"
    assert found.holds
    assert found.objective == pytest.approx(narrow.loss_, rel=1e-12)
    wide = MLPClassifier((40,), alpha=alpha, **LEARNT).fit(X, Y)
    assert found.bound <= wide.loss_
    assert any_width_bound(wide, X, Y).ratio < most


def test_a_heavy_penalty_leaves_the_shares_of_classes():
    """Then the best network is constant: its objective is the entropy of the shares, and the bound is the same."""
    y = np.minimum(Y, 1)
    model = MLPClassifier((2,), alpha=1e4, solver="lbfgs", max_iter=1000, random_state=0).fit(X, y)
    entropy = -(np.log(1 / 3) / 3 + np.log(2 / 3) * 2 / 3)
    assert any_width_bound(model, X, y).bound == pytest.approx(entropy, rel=1e-6)
    assert model.loss_ == pytest.approx(entropy, rel=1e-6)


def test_amounts_and_weights():
    """Twice a row is a row of weight 2; and scikit-learn's networks are read too."""
    table, y = make_friedman1(60, random_state=0)
    y = (y - y.mean()) / y.std()
    w = np.where(np.arange(60) < 20, 2.0, 1.0)
    model = MLPRegressor(hidden_layer_sizes=(10,), alpha=10.0, **{**LEARNT, "batch_size": 60}).fit(
        table, y, sample_weight=w
    )
    twice = np.repeat(np.arange(60), w.astype(int))
    one, two = any_width_bound(model, table, y, w), any_width_bound(model, table[twice], y[twice])
    assert one.bound == pytest.approx(two.bound, rel=1e-6)
    assert 0 < one.bound <= one.objective
    peer = theirs.MLPRegressor(hidden_layer_sizes=(10,), solver="lbfgs", alpha=10.0, tol=1.0, random_state=0).fit(
        table, y
    )
    assert any_width_bound(peer, table, y).holds


def test_damaged_weights_raise_the_objective_and_not_the_bound():
    model = MLPClassifier((3,), alpha=3.0, **LEARNT).fit(X, Y)
    best = model.loss_
    model.coefs_[0][0, 0] += 5.0
    found = any_width_bound(model, X, Y)
    assert found.objective > best
    assert found.bound <= best


def test_slopes_that_do_not_balance_prove_nothing():
    """With all answers next to 0 or 1 nothing is left to balance them by; a free bias would then gain without end."""
    claim = read_perceptron(MLPClassifier((3,), alpha=3.0, max_iter=2, random_state=0).fit(X, Y))
    w, table = np.ones(len(Y)), np.eye(3)[Y]
    balanced = table.mean(axis=0) - table
    assert _dual_value(claim, X, table, w, balanced) > 0
    tilted = balanced + 1e-6 * np.array([1.0, -1.0, 0.0])
    assert _dual_value(claim, X, table, w, tilted) == 0
    assert _conjugate_sum("softmax", balanced + 1e-6, table, w) == -np.inf  # no probabilities


@pytest.mark.parametrize(
    "setting", [{"hidden_layer_sizes": (2, 2)}, {"activation": "tanh"}, {"alpha": 0.0}, {"solver": "adamw"}]
)
def test_what_it_does_not_speak_of_is_refused(setting):
    model = MLPClassifier(**{"hidden_layer_sizes": (2,), "max_iter": 2, "random_state": 0, **setting}).fit(X, Y)
    with pytest.raises(DataError, match="one hidden layer of ReLUs"):
        any_width_bound(model, X, Y)


@pytest.mark.parametrize(("d", "k"), [(1, 1), (2, 1), (3, 2)])
def test_the_search_ends_between_the_best_unit_and_the_plain_bound(d, k):
    """The best of many random units, refined by a local search that knows nothing of boxes, gains no more."""
    rng = np.random.default_rng(d)
    rows, v = rng.normal(size=(25, d)), rng.normal(size=(25, k))
    v -= v.mean(axis=0)
    found = searched_gain(rows, v, 0.0)

    def gain(w):
        z = rows @ (w / np.linalg.norm(w))
        return max(np.linalg.norm(v.T @ np.maximum(z + b, 0)) for b in (*-z, 1e3))

    starts = sorted(rng.normal(size=(60, d)), key=gain)[-3:]
    best = max(-minimize(lambda w: -gain(w), w, method="Nelder-Mead").fun for w in starts)
    assert best <= found <= 1.101 * best
    assert found <= unit_gain(rows, v) * 1.0001
    # Work that runs out leaves a bound too, only a looser one.
    assert best <= searched_gain(rows, v, 0.0, UnitSearchTuning(entries=1.0)) >= found


@pytest.mark.parametrize("alpha", [0.3, 3.0])
def test_the_bound_is_close_where_the_network_is_wide_enough(alpha):
    """Of two columns the bound is within a quarter of a good fit, also at a weak penalty: the search is sharp."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 2))
    y = (rows[:, 0] * rows[:, 1] > 0).astype(int)
    model = MLPClassifier((20,), alpha=alpha, solver="lbfgs", max_iter=1500, tol=0.01, random_state=0).fit(rows, y)
    found = any_width_bound(model, rows, y)
    assert found.holds
    assert 1 <= found.ratio < 1.25
