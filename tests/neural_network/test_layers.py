"""Layers: back-propagation against central differences, and against definitions written out."""

import numpy as np
import pytest
from scipy.stats import norm

from certifit import MLPClassifier
from certifit.checkers.neural_network.adapter import read_perceptron
from certifit.exceptions import DataError
from certifit.neural_network.layers.even_units import with_even_units
from certifit.neural_network.layers.row_layers import ACTIVATIONS, Dense, Dropout
from certifit.neural_network.layers.workspace import Workspace
from certifit.neural_network.network import Network, perceptron
from certifit.neural_network.output_losses import OUTPUT_LOSSES
from certifit.neural_network.plots import numbers_both_ways, plot_backpropagation
from certifit.neural_network.training.chunks import TrainingTuning
from certifit.neural_network.training.network_rows import NetworkRows
from certifit.neural_network.training.optimisers import Optimiser, OptimiserRules
from certifit.neural_network.training.slopes import MinibatchSlopes, full_slopes
from certifit.rows import ArrayRows


def problem(network, loss, seed=0):
    """Random rows, targets that the loss can have, weights and parameters."""
    rng = np.random.default_rng(seed)
    X, params = rng.normal(size=(30, *network.rows)), rng.normal(size=network.n_parameters)
    k = network.shapes[-1].output[0]
    Y = np.eye(k)[rng.integers(0, k, 30)] if loss == "softmax" else rng.integers(0, 2, (30, k)).astype(float)
    return NetworkRows(X, Y, rng.exponential(size=30)), params


def differences(f, params, step=1e-6):
    """Central differences of f in every parameter."""
    return np.array([(f(params + e) - f(params - e)) / (2 * step) for e in step * np.eye(len(params))])


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_slopes_of_every_activation_are_central_differences(activation):
    network = perceptron(3, (4, 2), 2, activation)
    rows, params = problem(network, "softmax")

    def f(p):
        return full_slopes(network, OUTPUT_LOSSES["softmax"], p, rows).loss

    found = full_slopes(network, OUTPUT_LOSSES["softmax"], params, rows).slopes
    np.testing.assert_allclose(found, differences(f, params), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("loss", OUTPUT_LOSSES)
def test_slopes_of_every_loss_are_central_differences(loss):
    network = perceptron(3, (4,), 2, "tanh")
    rows, params = problem(network, loss)

    def f(p):
        return full_slopes(network, OUTPUT_LOSSES[loss], 0.3 * p, rows).loss

    found = 0.3 * full_slopes(network, OUTPUT_LOSSES[loss], 0.3 * params, rows).slopes
    np.testing.assert_allclose(found, differences(f, params), rtol=1e-6, atol=1e-7)


def test_activations_are_what_they_are_called():
    x = np.linspace(-3, 3, 13)
    wanted = {
        "identity": x, "logistic": 1 / (1 + np.exp(-x)), "tanh": np.tanh(x), "relu": x * (x > 0),
        "leaky_relu": np.where(x > 0, x, x / 100), "gelu": x * norm.cdf(x),
    }  # fmt: skip
    for name, layer in ACTIVATIONS.items():
        np.testing.assert_allclose(layer.forward(x, None, Workspace())[0], wanted[name], atol=1e-15)


def test_dropout_keeps_the_mean_and_is_absent_without_training():
    x = np.ones((2000, 5))
    layer, work = Dropout(0.25), Workspace().begin(np.random.default_rng(0))
    y, factor = layer.forward(x, None, work)
    assert set(np.unique(y)) == {0.0, 1 / 0.75}
    assert y.mean() == pytest.approx(1.0, abs=0.02)
    np.testing.assert_array_equal(layer.backward(x, factor, None, None), factor)
    assert layer.forward(x, None, Workspace())[0] is x


def test_a_network_prints_its_shapes_and_counts():
    text = str(Network((Dense(300), ACTIVATIONS["relu"], Dense(10)), (28, 28)))
    assert text.splitlines()[1].split() == ["Dense", "300", str(784 * 300 + 300)]
    assert text.splitlines()[-1].split() == ["all", str(784 * 300 + 300 + 300 * 10 + 10)]


def test_a_deep_linear_network_is_one_linear_map():
    network = perceptron(3, (5, 4), 2, "identity")
    rows, params = problem(network, "squared_error")
    parts = network.parts(params)
    W = parts[0].W @ parts[2].W @ parts[4].W
    b = (parts[0].b @ parts[2].W + parts[2].b) @ parts[4].W + parts[4].b
    np.testing.assert_allclose(network.scores(parts, rows.X), rows.X @ W + b, atol=1e-12)


# ------------------------------------------------------------------------------------------------- minibatches
def test_chunks_of_a_minibatch_depend_on_no_thread(threads):
    """Wide enough that a minibatch is cut: the same bits from 1, 2 and 4 threads, and the full pass's slopes."""
    network = perceptron(80, (60,), 3, "relu")
    rng = np.random.default_rng(0)
    rows = NetworkRows(rng.normal(size=(300, 80)), np.eye(3)[rng.integers(0, 3, 300)], rng.exponential(size=300))
    params, index, loss = rng.normal(size=network.n_parameters) / 9, np.arange(300), OUTPUT_LOSSES["softmax"]
    seen = []
    for n in (1, 2, 4):
        threads(n)
        with MinibatchSlopes(network, loss, params) as slopes:
            assert slopes.chunks_of(300) == 4
            value, found = slopes.at(rows, index, float(rows.w.sum()), (0,))
            seen.append((value, found.copy()))
    assert all(value == seen[0][0] for value, _ in seen)
    assert all((found == seen[0][1]).all() for _, found in seen)
    whole = full_slopes(network, loss, params, rows)
    np.testing.assert_allclose(seen[0][1], whole.slopes / rows.w.sum(), rtol=1e-9, atol=1e-12)
    assert seen[0][0] == pytest.approx(whole.loss / rows.w.sum(), rel=1e-12)


def test_portions_of_a_chunk_add_up_to_its_slopes():
    """Chunks of 75 rows as one portion, and in portions of 10 to 19 rows."""
    network = perceptron(80, (60,), 3, "relu")
    rng = np.random.default_rng(0)
    rows = NetworkRows(rng.normal(size=(300, 80)), np.eye(3)[rng.integers(0, 3, 300)], rng.exponential(size=300))
    params, loss, seen = rng.normal(size=network.n_parameters) / 9, OUTPUT_LOSSES["softmax"], []
    for tuning in (TrainingTuning(most_chunks=4), TrainingTuning(most_chunks=4, least_rows=10, portion_entries=1)):
        with MinibatchSlopes(network, loss, params, tuning) as slopes:
            assert slopes.chunks_of(300) == 4
            value, found = slopes.at(rows, np.arange(300), float(rows.w.sum()), (0,))
            seen.append((value, found.copy()))
    assert seen[0][0] == pytest.approx(seen[1][0], rel=1e-12)
    np.testing.assert_allclose(seen[0][1], seen[1][1], rtol=1e-9, atol=1e-12)


def plain_adam(params, slopes, rules, n_weights, steps):
    """Kingma & Ba's algorithm 1, with the penalty's slope in the weights; AdamW takes decay off instead."""
    m, v, x = np.zeros_like(params), np.zeros_like(params), params.copy()
    penalised = np.arange(len(x)) < n_weights
    for t in range(1, steps + 1):
        g = slopes + (rules.alpha / 7.0) * x * penalised * (rules.solver == "adam")
        m, v = rules.beta_1 * m + (1 - rules.beta_1) * g, rules.beta_2 * v + (1 - rules.beta_2) * g**2
        rate = rules.rate * np.sqrt(1 - rules.beta_2**t) / (1 - rules.beta_1**t)
        x = (
            x
            - rate * m / (np.sqrt(v) + rules.epsilon)
            - rules.rate * rules.alpha * x * penalised * (rules.solver == "adamw")
        )
    return x


@pytest.mark.compiled
@pytest.mark.parametrize("solver", ["adam", "adamw", "sgd"])
def test_steps_are_the_published_ones(solver):
    rng = np.random.default_rng(0)
    params, slopes = rng.normal(size=9), rng.normal(size=9)
    rules = OptimiserRules(solver, 0.1, "constant", 0.9, True, 0.5, 0.9, 0.99, 1e-8, 0.3)
    optimiser = Optimiser.begin(rules, params.copy(), 6, seed=0)
    for _ in range(3):
        optimiser.step(slopes, 7.0, 1.0)
    if solver != "sgd":
        np.testing.assert_allclose(optimiser.params, plain_adam(params, slopes, rules, 6, 3), rtol=1e-12)
        return
    x, v = params.copy(), np.zeros(9)
    for _ in range(3):  # Nesterov's momentum as Sutskever et al. (2013) write it
        g = slopes + 0.3 / 7 * x * (np.arange(9) < 6)
        v = 0.9 * v - 0.1 * g
        x = x + 0.9 * v - 0.1 * g
    np.testing.assert_allclose(optimiser.params, x, rtol=1e-12)


def test_layers_that_do_not_fit_are_named_with_their_shapes():
    class Odd(Dense):
        def shapes(self, rows):
            raise DataError(got="", wanted="rows of an even number of values")

    with pytest.raises(DataError, match=r"after Dense\(units=3\) of shape \(3,\); wanted rows of an even number"):
        _ = Network((Dense(3), Odd(2)), (4,)).shapes


def test_long_slopes_are_shortened_to_the_norm_asked_for():
    """Pascanu et al. (2013): g clip / |g| where |g| is longer; gradient descent without momentum shows it."""
    rules = OptimiserRules("sgd", 1.0, "constant", 0.0, False, 0.5, 0.9, 0.99, 1e-8, 0.0, clip=2.0)
    for slopes, wanted in (([3.0, 0.0, 4.0], [-1.2, 0.0, -1.6]), ([0.3, 0.0, 0.4], [-0.3, 0.0, -0.4])):
        optimiser = Optimiser.begin(rules, np.zeros(3), 3, seed=0)
        optimiser.step(np.array(slopes), 1.0, 1.0)
        np.testing.assert_allclose(optimiser.params, wanted, rtol=1e-12)


def test_the_picture_of_back_propagation_shows_the_slopes():
    """Slopes in the row are central differences of the loss, and all numbers are in the picture."""
    X, y = np.random.default_rng(0).normal(size=(30, 3)), np.arange(30) % 2
    model = MLPClassifier((4, 2), "tanh", max_iter=3, random_state=0).fit(X, y)
    claim = read_perceptron(model)
    values, slopes, loss = numbers_both_ways(claim, ArrayRows(X[:1], np.array([1])))

    def f(row):
        return -np.log(model.predict_proba(row[None])[0, 1])

    assert loss == pytest.approx(f(X[0]))
    np.testing.assert_allclose(slopes[0], differences(f, X[0]), rtol=1e-6, atol=1e-9)
    ax = plot_backpropagation(model, X[0], 1)
    shown = [text.get_text() for text in ax.texts]
    for numbers in (*values, *slopes):
        assert {f"{number:.2g}" for number in numbers} <= {*shown}
    assert f"{values[0][1] * slopes[1][2] + 0.0:.2g}" in shown
    with pytest.raises(DataError, match="the class 7; wanted one of"):
        plot_backpropagation(model, X[0], 7)
    with pytest.raises(DataError, match="at most 8 of each"):
        plot_backpropagation(MLPClassifier((9,), max_iter=1).fit(X, y), X[0], 1)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_units_that_fill_registers_change_no_answer(activation):
    """Layers of 30 and 45 units answer as 32 and 48, the layer of 10 as it is."""
    network = perceptron(3, (30, 45, 10), 15, activation).clipped
    rows, params = problem(network, "softmax")
    parts = network.parts(params)
    layers, more = with_even_units(network.layers, parts)
    assert [layer.units for layer in layers if isinstance(layer, Dense)] == [32, 48, 10, 15]
    plain = network.forward(parts, rows.X)[0]
    np.testing.assert_allclose(Network(layers, (3,)).forward(more, rows.X)[0], plain, rtol=1e-12)
    np.testing.assert_allclose(network.scores(parts, rows.X), plain, rtol=1e-12)
