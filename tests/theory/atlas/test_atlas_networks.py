"""The statements of docs/atlas/08_networks on data; each with a broken variant that must fail."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit, logsumexp, softmax
from sklearn.datasets import load_digits, load_iris

from certifit import ConvNetClassifier, MLPClassifier
from certifit.neural_network.layers.image_layers import Conv2D
from certifit.neural_network.layers.row_layers import ACTIVATIONS, Dense, Layer, LayerWeights
from certifit.neural_network.layers.workspace import Workspace
from certifit.neural_network.network import Network
from certifit.neural_network.output_losses import OUTPUT_LOSSES
from certifit.neural_network.training.network_rows import NetworkRows
from certifit.neural_network.training.slopes import full_slopes
from certifit.plots import plot_active_units, plot_slope_sizes

DIGITS, CLASSES = load_digits(return_X_y=True)
DIGITS, CLASSES = DIGITS[:100] / 16, CLASSES[:100]
UNITS = {"relu": lambda v: np.maximum(v, 0), "logistic": expit}
SLOPES = {"relu": lambda v: (v > 0) * 1.0, "logistic": lambda v: expit(v) * (1 - expit(v))}


# ReLU and sigmoid. ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def deep():
    """Networks of eight hidden layers, nearly as they were drawn."""
    return {a: MLPClassifier((16,) * 8, a, max_iter=1, random_state=0).fit(DIGITS, CLASSES) for a in UNITS}


def both_ways(model):
    """Values that enter each layer, and slopes of the rows' losses in its sums, last layer last: NumPy by hand."""
    name, values, sums = model.activation, [DIGITS], []
    for W, b in zip(model.coefs_, model.intercepts_, strict=True):
        sums.append(values[-1] @ W + b)
        values.append(UNITS[name](sums[-1]))
    deltas = [softmax(sums[-1], axis=1) - np.eye(10)[CLASSES]]
    for W, entered in zip(model.coefs_[:0:-1], sums[-2::-1], strict=True):
        deltas.insert(0, deltas[0] @ W.T * SLOPES[name](entered))
    return values, deltas


def shrinks_by_a_quarter(model):
    """Whether every row's slopes are at most |W| / 4 as long one layer further back."""
    lengths = [np.linalg.norm(delta, axis=1) for delta in both_ways(model)[1]]
    norms = [np.linalg.norm(W, 2) for W in model.coefs_[1:]]
    return all(np.all(a <= W / 4 * b + 1e-15) for a, b, W in zip(lengths[:-1], lengths[1:], norms, strict=True))


def test_slopes_shrink_behind_sigmoids(deep):
    assert shrinks_by_a_quarter(deep["logistic"])


def test_control_slopes_pass_relus(deep):
    assert not shrinks_by_a_quarter(deep["relu"])


def slope_sizes(model):
    """The root mean square of the mean loss's slopes in each layer's weights, by hand; the library draws the same."""
    values, deltas = both_ways(model)
    slopes = [value.T @ delta / len(DIGITS) for value, delta in zip(values[:-1], deltas, strict=True)]
    sizes = np.array([np.sqrt(np.mean(slope**2)) for slope in slopes])
    drawn = plot_slope_sizes(model, DIGITS, CLASSES).lines[0].get_ydata()
    np.testing.assert_allclose(drawn, sizes, rtol=1e-6)
    return sizes


def vanishes(model):
    """Whether slopes in the first weights are less than a thousandth of those in the last."""
    sizes = slope_sizes(model)
    return sizes[0] < 1e-3 * sizes[-1]


def test_slopes_vanish_behind_sigmoids(deep):
    assert vanishes(deep["logistic"])


def test_control_slopes_do_not_vanish_behind_relus(deep):
    assert not vanishes(deep["relu"])


def is_sparse(model):
    """Whether at least a third of the hidden layers' values is exactly zero; the library draws the others."""
    zeros = np.array([(value == 0).mean() for value in both_ways(model)[0][1:-1]])
    drawn = plot_active_units(model, DIGITS).lines[0].get_ydata()
    np.testing.assert_allclose(drawn, 1 - zeros[: len(drawn)], rtol=1e-12)
    return zeros.mean() > 1 / 3


def test_relu_codes_are_sparse(deep):
    assert is_sparse(deep["relu"])


def test_control_sigmoid_codes_are_not_sparse(deep):
    assert not is_sparse(deep["logistic"])


# Back-propagation. ----------------------------------------------------------------------------------------------

IRIS, KINDS = load_iris(return_X_y=True)
TARGETS = np.eye(3)[KINDS]


def loss_of(params):
    """The mean loss of a network of 4, 3 and 3 units with tanh, written out; weights first, then biases."""
    W, V, b, c = params[:12].reshape(4, 3), params[12:21].reshape(3, 3), params[21:24], params[24:]
    scores = np.tanh(IRIS @ W + b) @ V + c
    return (logsumexp(scores, axis=1) - (scores * TARGETS).sum(axis=1)).mean()


def is_gradient(activation):
    """Whether slopes by a network's own pass back are central differences of the loss."""
    params = np.random.default_rng(0).normal(size=27) / 2
    network = Network((Dense(3), activation, Dense(3)), (4,))
    found = full_slopes(network, OUTPUT_LOSSES["softmax"], params, NetworkRows(IRIS, TARGETS, np.ones(150)))
    differences = [(loss_of(params + e) - loss_of(params - e)) / 2e-6 for e in 1e-6 * np.eye(27)]
    return np.allclose(found.slopes / 150, differences, rtol=1e-5, atol=1e-8)


@dataclass(frozen=True)
class TanhWithoutSlope(Layer):
    """Forward as tanh; back, its slope is left out."""

    def shapes(self, rows):
        return ACTIVATIONS["tanh"].shapes(rows)

    def forward(self, x, weights, work):
        return ACTIVATIONS["tanh"].forward(x, weights, work)

    def backward(self, delta, memory, weights, slopes, further=True):
        return delta


def test_back_propagation_is_the_derivative():
    assert is_gradient(ACTIVATIONS["tanh"])


def test_control_a_dropped_activation_slope():
    assert not is_gradient(TanhWithoutSlope())


# Convolution and subsampling. -----------------------------------------------------------------------------------

IMAGES = DIGITS.reshape(-1, 8, 8)


@pytest.fixture(scope="module")
def convolutional():
    layers = [("conv", 4, 3), "relu", ("max_pool", 2), ("dense", 6), "relu"]
    return ConvNetClassifier(layers, max_iter=1, random_state=0).fit(IMAGES, CLASSES)


def place_weights(windows, own=None):
    """The matrix (channels 36, 64) of a convolution of 8 x 8 pixels: the window's weights, at every place of it."""
    entries = []
    for channel, row, column, i, j in np.ndindex(len(windows), 6, 6, 3, 3):
        weight = windows[channel, 0, i, j] if own is None else own[channel, row, column, i, j]
        entries.append((channel * 36 + row * 6 + column, (row + i) * 8 + column + j, weight))
    lines, columns, weights = zip(*entries, strict=True)
    return sparse.csr_array((weights, (lines, columns)), shape=(len(windows) * 36, 64))


def convolve(windows, biases, images):
    """What the library's layer makes of images (n, channels, 6, 6)."""
    layer = Conv2D(len(windows), 3)
    found, _ = layer.forward(images.transpose(1, 2, 0)[None].copy(), LayerWeights(windows, biases), Workspace())
    return found.transpose(3, 0, 1, 2)


def is_sparse_product(found, windows, biases):
    """Whether outputs (n, channels, 6, 6) are those of a sparse matrix that repeats the windows' weights."""
    matrix = place_weights(windows)
    assert matrix.nnz == 36 * windows.size
    return np.allclose(found.reshape(len(found), -1), DIGITS @ matrix.T + np.repeat(biases, 36), atol=1e-12)


def test_a_convolution_is_a_sparse_product(convolutional):
    windows, biases = convolutional.coefs_[0], convolutional.intercepts_[0]
    assert is_sparse_product(convolve(windows, biases, IMAGES), windows, biases)


def test_control_a_window_turned_round(convolutional):
    windows, biases = convolutional.coefs_[0], convolutional.intercepts_[0]
    assert not is_sparse_product(convolve(windows[:, :, ::-1, ::-1].copy(), biases, IMAGES), windows, biases)


def moves_with_the_image(outputs):
    """Whether what is found in images moved to the right by a pixel is what was found, moved as far."""
    before, after = outputs(IMAGES), outputs(np.roll(IMAGES, 1, axis=2))
    return np.allclose(after[:, :, :, 1:], before[:, :, :, :-1], atol=1e-12)


def test_a_convolution_moves_with_the_image(convolutional):
    windows, biases = convolutional.coefs_[0], convolutional.intercepts_[0]
    assert moves_with_the_image(lambda images: convolve(windows, biases, images))


def test_control_weights_of_their_own_do_not_move_with_the_image(convolutional):
    own = np.random.default_rng(0).normal(size=(4, 6, 6, 3, 3))
    matrix = place_weights(convolutional.coefs_[0], own)
    assert not moves_with_the_image(lambda images: (images.reshape(-1, 64) @ matrix.T).reshape(-1, 4, 6, 6))


def network_of(model, step):
    """Probabilities by convolution, ReLU, maxima of 2 x 2 windows every so many pixels and dense layers, by hand."""
    (windows, W, V), (biases, b, c) = model.coefs_, model.intercepts_
    found = np.maximum(DIGITS @ place_weights(windows).T + np.repeat(biases, 36), 0).reshape(-1, 4, 6, 6)
    corners = [found[:, :, i : 5 + i : step, j : 5 + j : step] for i in (0, 1) for j in (0, 1)]
    pooled = np.max(corners, axis=0).reshape(len(DIGITS), -1)
    return pooled, (lambda code: softmax(np.maximum(code @ W + b, 0) @ V + c, axis=1))


def pooling_shrinks(model, step):
    """Whether maxima of windows are a quarter of the values, and what the dense layers were fitted to."""
    pooled, rest = network_of(model, step)
    if pooled.shape[1] != 4 * 36 / 4:
        return False
    return np.allclose(rest(pooled), model.predict_proba(IMAGES), atol=1e-9)


def test_pooling_shrinks(convolutional):
    assert pooling_shrinks(convolutional, step=2)


def test_control_neighbouring_maxima_do_not_shrink(convolutional):
    assert not pooling_shrinks(convolutional, step=1)


def shares_weights(layer):
    """Whether a layer from 8 x 8 pixels to 4 x 6 x 6 values has the weights of four windows of 3 x 3 alone."""
    shapes = layer[-1].shapes(layer[0])
    assert np.prod(shapes.output) == 144
    return int(np.prod(shapes.weights)) == 4 * 9


def test_weights_are_counted(convolutional):
    assert shares_weights(((1, 8, 8), Conv2D(4, 3)))
    assert [W.size for W in convolutional.coefs_] == [4 * 9, 4 * 9 * 6, 6 * 10]


def test_control_a_dense_layer_has_more_weights():
    assert not shares_weights(((64,), Dense(144)))
    assert np.prod(Dense(144).shapes((64,)).weights) == 64 * 144
