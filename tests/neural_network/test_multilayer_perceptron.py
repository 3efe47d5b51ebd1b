"""Multilayer perceptrons against scikit-learn's, closed forms, and their checker under sabotage."""

import copy
import pickle
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse
from sklearn import neural_network
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

import certifit
from certifit import MLPClassifier, MLPRegressor, audit
from certifit.checkers.neural_network.perceptron import PlainPerceptron
from certifit.checkers.neural_network.robustness import margin_bounds
from certifit.exceptions import CertificateWarning, DataError

IRIS = load_iris(return_X_y=True)


def scaled(load):
    X, y = load(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.mark.parametrize("solver", ["adam", "sgd"])
def test_steps_are_those_of_scikit_learn(solver):
    """From the same weights, with the same order of rows, after three epochs."""
    X, y = IRIS
    settings = {"hidden_layer_sizes": (5, 4), "solver": solver, "max_iter": 3, "shuffle": False, "batch_size": 32}
    theirs = neural_network.MLPClassifier(random_state=0, **settings)
    theirs._validate_params()
    ours = MLPClassifier(random_state=0, warm_start=True, **settings).fit(X, y)
    theirs.partial_fit(X, y, classes=[0, 1, 2])
    theirs.coefs_ = [W.copy() for W in ours.coefs_]
    theirs.intercepts_ = [b.copy() for b in ours.intercepts_]
    del theirs._optimizer
    for _ in range(3):
        theirs.partial_fit(X, y)
    ours.fit(X, y)
    for a, b in zip([*ours.coefs_, *ours.intercepts_], [*theirs.coefs_, *theirs.intercepts_], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9)


def test_a_linear_network_is_ridge_regression():
    """Without a hidden layer the loss is |y - Xw - b|²/2n + α|w|²/2n."""
    X, y = scaled(load_diabetes)
    y = (y - y.mean()) / y.std()
    model = MLPRegressor(hidden_layer_sizes=(), solver="lbfgs", alpha=3.0, tol=1e-6, max_iter=5000, random_state=0)
    model.fit(X, y)
    ridge = Ridge(alpha=3.0).fit(X, y)
    np.testing.assert_allclose(model.coefs_[0][:, 0], ridge.coef_, atol=1e-5)
    assert model.certificate_.kind == "stationary"


def test_the_audit_knows_the_loss_of_scikit_learn():
    """loss_ of its L-BFGS is the objective of the weights it ends with."""
    X, y = IRIS
    theirs = neural_network.MLPClassifier(8, solver="lbfgs", alpha=0.5, max_iter=3000, tol=1e-6, random_state=0)
    found = audit(theirs.fit(X, y), X, y, tol=1e-4)
    assert found.objective == pytest.approx(theirs.loss_, rel=1e-10)
    assert found.kind == "stationary"
    assert found.holds
    theirs.set_params(solver="adam", max_iter=5)
    with pytest.warns(match="Maximum iterations"):
        theirs.fit(X, y)
    assert not audit(theirs, X, y, tol=1e-4).holds


@pytest.mark.parametrize("early_stopping", [False, True])
def test_digits(early_stopping):
    X, y = load_digits(return_X_y=True)
    test = np.arange(len(y)) % 5 == 0
    model = MLPClassifier(64, max_iter=60, early_stopping=early_stopping, random_state=0).fit(X[~test], y[~test])
    assert model.score(X[test], y[test]) > 0.93
    assert model.certificate_.holds
    assert audit(model, X[~test], y[~test]).holds
    np.testing.assert_array_equal(model.predict(X), model.classes_[model.predict_proba(X).argmax(axis=1)])


def test_early_stopping_keeps_the_best_weights():
    X, y = scaled(load_breast_cancer)
    model = MLPClassifier(10, early_stopping=True, max_iter=100, learning_rate_init=0.05, random_state=3).fit(X, y)
    scores = np.array(model.validation_scores_)
    assert model.best_validation_score_ == scores.max()
    shorter = MLPClassifier(
        10, early_stopping=True, max_iter=int(scores.argmax()) + 1, learning_rate_init=0.05, random_state=3
    ).fit(X, y)
    np.testing.assert_array_equal(model.coefs_[0], shorter.coefs_[0])


def test_the_same_bits_for_any_number_of_threads(threads):
    X, y = load_digits(return_X_y=True)
    found = []
    for n in (1, 3):
        threads(n)
        found.append(MLPClassifier(16, batch_size=300, max_iter=2, random_state=0).fit(X, y))
    for a, b in zip(*([*m.coefs_, *m.intercepts_] for m in found), strict=True):
        np.testing.assert_array_equal(a, b)


def test_sparse_rows_float32_and_frames():
    X, y = IRIS
    model = MLPClassifier(6, max_iter=5, random_state=0).fit(X, y)
    same = MLPClassifier(6, max_iter=5, random_state=0).fit(sparse.csr_matrix(X), y)
    np.testing.assert_array_equal(model.coefs_[0], same.coefs_[0])
    single = MLPClassifier(6, max_iter=5, random_state=0).fit(X.astype(np.float32), y)
    assert single.coefs_[0].dtype == np.float32
    np.testing.assert_allclose(single.predict_proba(X), model.predict_proba(X), atol=1e-4)
    assert audit(single, X.astype(np.float32), y).holds


def test_rows_of_weight_zero_are_absent():
    X, y = IRIS
    w = np.ones(150)
    w[::3] = 0
    model = MLPClassifier(6, max_iter=5, random_state=0).fit(X, y, sample_weight=w)
    without = MLPClassifier(6, max_iter=5, random_state=0).fit(X[w > 0], y[w > 0])
    np.testing.assert_array_equal(model.coefs_[0], without.coefs_[0])


def test_several_targets():
    X, y = scaled(load_diabetes)
    model = MLPRegressor(hidden_layer_sizes=8, solver="lbfgs", max_iter=300, alpha=1.0, random_state=0)
    with_two = model.fit(X, np.column_stack([y, -2 * y]))
    assert with_two.predict(X).shape == (442, 2)
    assert with_two.score(X, np.column_stack([y, -2 * y])) > 0.4
    assert audit(with_two, X, np.column_stack([y, -2 * y])).holds == with_two.certificate_.holds


@pytest.mark.parametrize("loss", ["squared_error", "huber", "poisson"])
def test_losses_of_amounts(loss):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = rng.poisson(np.exp(1 + 0.5 * X[:, 0])).astype(float)
    model = MLPRegressor(loss, 8, "tanh", solver="lbfgs", alpha=0.1, max_iter=2000, random_state=0).fit(X, y)
    assert np.corrcoef(model.predict(X), np.exp(1 + 0.5 * X[:, 0]))[0, 1] > 0.9
    assert model.certificate_.holds
    assert model.objective(X, y).total == pytest.approx(model.final_loss_, rel=1e-10)


def test_partial_fit_goes_on_where_it_ended():
    """Epochs one by one, without shuffling, are the epochs of fit."""
    X, y = IRIS
    settings = {"hidden_layer_sizes": 5, "shuffle": False, "random_state": 0}
    whole = MLPClassifier(max_iter=3, **settings).fit(X, y)
    parts = MLPClassifier(**settings)
    for _ in range(3):
        parts.partial_fit(X, y, classes=[0, 1, 2])
    np.testing.assert_array_equal(parts.coefs_[1], whole.coefs_[1])
    assert audit(parts, X, y).holds
    with pytest.raises(DataError, match="not the same as on last call"):
        parts.partial_fit(X, y, classes=[0, 1])
    assert not hasattr(MLPClassifier(solver="lbfgs"), "partial_fit")


# ------------------------------------------------------------------------------------------ certificates


@pytest.mark.parametrize("damage", ["weights", "swap", "bias", "loss", "slope", "classes"])
def test_sabotage(damage):
    X, y = IRIS
    model = copy.deepcopy(MLPClassifier(6, max_iter=20, random_state=0).fit(X, y))
    if damage == "weights":
        model.coefs_[0][0, 0] += 1e-3
    elif damage == "swap":
        model.coefs_[1][[0, 1]] = model.coefs_[1][[1, 0]]
    elif damage == "bias":
        model.intercepts_[1][0] *= 1.001
    elif damage == "loss":
        model.final_loss_ *= 1.0001
    elif damage == "slope":
        model.largest_slope_ *= 1.001
    else:
        model.coefs_[-1] = np.ascontiguousarray(model.coefs_[-1][:, ::-1])
        model.intercepts_[-1] = model.intercepts_[-1][::-1].copy()
    assert not audit(model, X, y).holds


def test_wrong_back_propagation_is_noticed(monkeypatch):
    from certifit.neural_network.layers import ReLU

    monkeypatch.setattr(ReLU, "backward", lambda self, theta, kept, slope, gradient: slope)
    with pytest.warns(CertificateWarning, match="back-propagated gradients"):
        model = MLPClassifier(6, max_iter=2, random_state=0).fit(*IRIS)
    assert not model.certificate_.holds


def test_tensors_that_do_not_fit_are_refused():
    X, y = IRIS
    model = MLPClassifier(6, max_iter=2, random_state=0).fit(X, y)
    model.coefs_ = model.coefs_[:1]
    with pytest.raises(DataError, match="layers that fit each other"):
        audit(model, X, y)


@pytest.mark.parametrize("activation", ["identity", "relu", "leaky_relu", "logistic", "tanh"])
def test_margins_are_never_below_their_bounds(activation):
    """Against the margins of a thousand rows drawn from each box."""
    rng = np.random.default_rng(1)
    sizes = (3, 6, 5, 3)
    weights = tuple(rng.normal(size=pair) for pair in pairwise(sizes))
    biases = tuple(rng.normal(size=n) for n in sizes[1:])
    net = PlainPerceptron(weights, biases, activation, "softmax", 0.0)
    from certifit.checkers.neural_network.perceptron import activations

    for eps in (0.0, 0.05, 0.5):
        X = rng.normal(size=(4, 3))
        z = activations(net, X)[1][-1]
        classes = z.argmax(axis=1)
        bounds = margin_bounds(net, X, classes, np.full(4, eps))
        for x, c, bound in zip(X, classes, bounds, strict=True):
            near = x + rng.uniform(-eps, eps, size=(1000, 3))
            scores = activations(net, near)[1][-1]
            others = np.delete(scores, c, axis=1).max(axis=1)
            assert (scores[:, c] - others).min() >= bound
        if eps == 0.0:
            ahead = z[np.arange(4), classes] - np.sort(z, axis=1)[:, -2]
            np.testing.assert_allclose(bounds, ahead, rtol=1e-6, atol=1e-9)


def test_the_radius_of_a_linear_network_is_exact():
    """|z_1| / |w|_1 is the distance in the largest-change norm to the boundary of a linear score."""
    X, y = scaled(load_breast_cancer)
    model = MLPClassifier((), solver="lbfgs", alpha=1.0, max_iter=500, random_state=0).fit(X, y)
    W, b = model.coefs_[0][:, 0], model.intercepts_[0]
    exact = np.abs(X @ W + b) / np.abs(W).sum()
    found = model.certified_radius(X)
    assert (found <= exact * (1 + 1e-9)).all()
    np.testing.assert_allclose(found, exact, rtol=1e-3, atol=2e-5)


# ------------------------------------------------------------------------------------------ hostile input


def test_a_loss_that_overflows_is_stopped_at_once():
    X, y = IRIS
    with pytest.raises(DataError, match=r"loss of (nan|inf) at step \d+ of epoch \d+.*learning_rate_init"):
        MLPRegressor(hidden_layer_sizes=5, solver="sgd", learning_rate_init=1e6, random_state=0).fit(X * 1e3, y)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"learning_rate_init": 0.0}, "learning_rate_init=0.0; wanted a finite number above 0"),
        ({"hidden_layer_sizes": (5, 0)}, "hidden_layer_sizes"),
        ({"activation": "rely"}, "Did you mean 'relu'"),
        ({"validation_fraction": 1.5, "early_stopping": True}, "validation_fraction"),
    ],
)
def test_wrong_settings(settings, words):
    with pytest.raises(DataError, match=words):
        MLPClassifier(**settings).fit(*IRIS)


def test_other_layers_than_before():
    X, y = IRIS
    model = MLPClassifier(5, warm_start=True, max_iter=2, random_state=0).fit(X, y)
    with pytest.raises(DataError, match=r"weights of shapes .*hidden_layer_sizes"):
        model.set_params(hidden_layer_sizes=7).fit(X, y)


def test_a_batch_larger_than_the_table_is_clipped():
    with pytest.warns(UserWarning, match="going to be clipped"):
        MLPClassifier(5, batch_size=1000, max_iter=2, random_state=0).fit(*IRIS)


def test_an_interrupt_keeps_what_was_learnt(monkeypatch):
    from certifit.neural_network.optimisers import Adam

    steps, move = 0, Adam.move

    def interrupted(self, *arguments):
        nonlocal steps
        steps += 1
        if steps == 3:
            raise KeyboardInterrupt
        move(self, *arguments)

    monkeypatch.setattr(Adam, "move", interrupted)
    with pytest.warns(UserWarning, match="interrupted"):
        model = MLPClassifier(5, batch_size=30, random_state=0).fit(*IRIS)
    assert model.certificate_.holds
    assert model.predict(IRIS[0]).shape == (150,)


def test_saved_pickled_and_copied():
    X, y = IRIS
    model = MLPClassifier(5, max_iter=3, random_state=0).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert certifit.audit(again, X, y).holds
