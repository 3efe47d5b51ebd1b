"""Layers: forward against the formula, backward against central differences."""

import math

import numpy as np
import pytest

from certifit.exceptions import DataError
from certifit.neural_network.layers import GELU, Dense, Dropout, Flatten, PassKind, ReLU, Sigmoid, Tanh
from certifit.neural_network.network import Network
from certifit.neural_network.output_losses import (
    HuberLoss,
    LogisticCrossEntropy,
    PoissonLoss,
    SoftmaxCrossEntropy,
    SquaredLoss,
)

ACTIVATIONS = {
    Sigmoid(): lambda z: 1 / (1 + math.exp(-z)),
    Tanh(): math.tanh,
    ReLU(): lambda z: max(z, 0.0),
    ReLU(leak=0.1): lambda z: z if z > 0 else 0.1 * z,
    GELU(): lambda z: 0.5 * z * (1 + math.erf(z / math.sqrt(2))),
}


@pytest.mark.parametrize("layer", ACTIVATIONS, ids=str)
def test_activations_and_their_slopes(layer):
    z = np.array([[-3.0, -0.7, 0.2, 1.9]])
    out, kept = layer.forward((), z, PassKind())
    np.testing.assert_allclose(out[0], [ACTIVATIONS[layer](v) for v in z[0]], rtol=1e-14)
    step = 1e-6
    ends = [layer.forward((), z + s * step, PassKind())[0] for s in (1, -1)]
    slope = layer.backward((), kept, np.ones_like(z), ())
    np.testing.assert_allclose(slope, (ends[0] - ends[1]) / (2 * step), rtol=1e-8)


LOSSES = [
    SoftmaxCrossEntropy(),
    SoftmaxCrossEntropy(0.1),
    LogisticCrossEntropy(0.1),
    SquaredLoss(),
    HuberLoss(),
    PoissonLoss(),
]


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_back_propagation_is_the_gradient(loss):
    """In a random direction of all parameters, and of the input."""
    rng = np.random.default_rng(0)
    outputs = loss.outputs(3)
    network = Network([Flatten(), Dense(5), Tanh(), Dense(4, "glorot"), GELU(), Dense(outputs)], (2, 1, 2))
    theta = network.initial(rng, np.float64) + 0.1 * rng.normal(size=network.size)
    a = rng.normal(size=(2, 1, 2, 7))
    w = rng.uniform(0.5, 2, size=7)
    classes = isinstance(loss, SoftmaxCrossEntropy | LogisticCrossEntropy)
    y = rng.integers(0, max(2, outputs), size=7) if classes else rng.poisson(2, size=(outputs, 7)).astype(float)

    def value(theta, a):
        return loss.value_and_slope(network.forward(network.views(theta), a)[0], y, w)[0]

    tensors = network.views(theta)
    z, kept = network.forward(tensors, a)
    gradient = np.empty(network.size)
    slope = network.backward(tensors, kept, loss.value_and_slope(z, y, w)[1], network.views(gradient))
    d, e, step = rng.normal(size=network.size), rng.normal(size=a.shape), 1e-6
    by_difference = (value(theta + step * d, a) - value(theta - step * d, a)) / (2 * step)
    assert gradient @ d == pytest.approx(by_difference, rel=1e-7)
    by_difference = (value(theta, a + step * e) - value(theta, a - step * e)) / (2 * step)
    assert (slope * e).sum() == pytest.approx(by_difference, rel=1e-7)


def test_weights_stand_before_biases():
    network = Network([Dense(3), ReLU(), Dense(2)], (4,))
    assert (network.size, network.n_weights) == (3 * 4 + 3 + 2 * 3 + 2, 3 * 4 + 2 * 3)
    theta = np.arange(network.size, dtype=float)
    (W1, b1), _, (W2, b2) = network.views(theta)
    assert sorted([*W1.ravel(), *W2.ravel()]) == list(range(18))
    assert sorted([*b1, *b2]) == list(range(18, 23))
    np.testing.assert_array_equal(network.flat(network.views(theta), float), theta)


def test_a_network_is_printed_with_shapes_and_counts():
    lines = repr(Network([Dense(3), ReLU(), Dense(2)], (4,))).splitlines()
    assert lines[3].split() == ["Dense(3)", "(3,)", "15"]
    assert lines[-1].split() == ["all", "23"]


def test_layers_that_do_not_fit_are_named():
    with pytest.raises(DataError, match=r"images of shape \(1, 8, 8\) before Dense\(3\).*Flatten"):
        Network([Dense(3)], (1, 8, 8))


def test_dropout_keeps_the_mean_and_does_not_depend_on_chunks():
    layer, a = Dropout(0.3), np.ones((50, 400))
    whole, _ = layer.forward((), a, PassKind(True, 5, 0))
    assert set(np.unique(whole)) == {0.0, 1 / 0.7}
    assert (whole == 0).mean() == pytest.approx(0.3, abs=4 * math.sqrt(0.21 / a.size))
    parts = [layer.forward((), a[:, i : i + 100], PassKind(True, 5, i))[0] for i in range(0, 400, 100)]
    np.testing.assert_array_equal(np.concatenate(parts, axis=1), whole)
    np.testing.assert_array_equal(layer.forward((), a, PassKind())[0], a)
    assert (layer.forward((), a, PassKind(True, 6, 0))[0] != whole).any()
