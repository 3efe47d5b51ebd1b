"""Proved radii: never beyond what an attack reaches, exact for linear scores, and larger than intervals prove."""

from fractions import Fraction
from operator import mul

import numpy as np
import pytest
from sklearn import neural_network as theirs
from sklearn.datasets import load_digits, load_iris, make_moons

from certifit import ConvNetClassifier, DataError, MLPClassifier, MLPRegressor, robust_radius
from certifit.checkers.neural_network.plain_layers import (
    PlainActivation,
    PlainConvolution,
    PlainImages,
    PlainNormalisation,
    PlainPool,
)
from certifit.checkers.neural_network.receptive_fields import BoundedLayer, SeenWindows, least_of_units
from certifit.checkers.neural_network.robustness import (
    LINEAR,
    _back,
    _interval,
    _pool_lines,
    _term_sizes,
    _unit_lines,
)

X, Y = make_moons(120, noise=0.1, random_state=0)
NET = {"hidden_layer_sizes": (12, 8), "alpha": 0.5, "learning_rate_init": 0.02, "max_iter": 100, "random_state": 0}


@pytest.fixture(scope="module")
def model():
    return MLPClassifier(**NET).fit(X, Y)


def test_no_attack_changes_a_class_inside_its_radius(model):
    """Corners and random points of each row's box; a radius is below the distance at which some attack works."""
    radius = robust_radius(model, X, most=2.0)
    rng, chosen = np.random.default_rng(0), model.predict(X)
    assert (radius > 0).mean() > 0.9
    for _ in range(200):
        move = np.clip(rng.normal(scale=1.5, size=X.shape), -1, 1) * radius[:, None]
        np.testing.assert_array_equal(model.predict(X + move), chosen)


def test_radii_are_not_idle(model):
    """Rows whose class an attack changes within 1.3 times the radius, among corners of that box: many of them."""
    radius, chosen = robust_radius(model, X, most=2.0), model.predict(X)
    corners = [np.array([a, b]) for a in (-1.0, 0.0, 1.0) for b in (-1.0, 0.0, 1.0)]
    changed = np.zeros(len(X), bool)
    for corner in corners:
        changed |= model.predict(X + 1.3 * radius[:, None] * corner) != chosen
    assert changed.mean() > 0.3


def test_linear_scores_have_their_exact_radius():
    """The lead over a class is w·x + b: it vanishes at eps = lead / |w|₁."""
    table, y = load_iris(return_X_y=True)
    model = MLPClassifier((), solver="lbfgs", alpha=1.0, max_iter=3000, random_state=0).fit(table, y)
    W, b = model.coefs_[0], model.intercepts_[0]
    scores = table @ W + b
    c = scores.argmax(axis=1)
    exact = [
        min((scores[i, c[i]] - scores[i, j]) / np.abs(W[:, c[i]] - W[:, j]).sum() for j in range(3) if j != c[i])
        for i in range(len(table))
    ]
    np.testing.assert_allclose(robust_radius(model, table, most=10.0), exact, atol=10 / 2**19)


@pytest.mark.parametrize("seed", [0, 2, 3])
def test_terms_that_cancel_prove_nothing(seed):
    """Slopes of 1e8 that add up to about 1e-8, in fractions: in floats their sum is 0, or any number of that size."""
    rng = np.random.default_rng(seed)
    first, last = rng.normal(size=50) * 1e8, rng.normal(size=50)
    last[-1] = -sum(map(mul, map(Fraction, first[:-1]), map(Fraction, last[:-1]))) / Fraction(first[-1])
    slope = abs(sum(map(mul, map(Fraction, first), map(Fraction, last))))
    model = MLPClassifier((50,), "identity", max_iter=1, random_state=0).fit([[0.0], [1.0]], [0, 1])
    model.coefs_, model.intercepts_ = [first[None], last[:, None]], [np.zeros(50), np.array([0.1 * float(slope)])]
    assert robust_radius(model, [[0.0]], most=4.0)[0] <= 0.1


def test_rows_predicted_wrongly_have_none(model):
    wrong = 1 - model.predict(X)
    assert not robust_radius(model, X, wrong).any()


def test_scikit_learns_networks_are_read_too():
    peer = theirs.MLPClassifier((5,), solver="lbfgs", alpha=1.0, max_iter=2000, random_state=0).fit(X, Y)
    radius = robust_radius(peer, X)
    np.testing.assert_array_equal(peer.predict(X + 0.99 * radius[:, None]), peer.predict(X))


def test_what_it_cannot_bound_is_refused(model):
    with pytest.raises(DataError, match="activation='tanh'"):
        robust_radius(MLPClassifier((2,), "tanh", max_iter=1).fit(X, Y), X)
    with pytest.raises(DataError, match="network of classes"):
        robust_radius(MLPRegressor(hidden_layer_sizes=(2,), max_iter=1).fit(X, Y), X)
    with pytest.raises(DataError, match="most=0"):
        robust_radius(model, X, most=0)


# ----------------------------------------------------------------------------------------------- convolutions
def test_no_attack_changes_the_class_of_an_image_inside_its_radius():
    """Convolutions, normalisation and both kinds of pools; corners and random points of each image's box."""
    digits = load_digits()
    images, y = digits.images[:200] / 16, digits.target[:200]
    layers = [
        ("conv", 3, 3), "batch_norm", "relu", ("max_pool", 2), ("conv", 4, 2), "leaky_relu", ("average_pool", 2),
        ("dense", 8), "relu",
    ]  # fmt: skip
    model = ConvNetClassifier(layers, batch_size=16, learning_rate_init=0.01, max_iter=6, random_state=0)
    model.fit(images, y)
    few = images[:5]
    radius, chosen = robust_radius(model, few, most=0.5), model.predict(few)
    assert (radius > 0.002).mean() > 0.7
    rng = np.random.default_rng(0)
    for k in range(60):
        move = rng.uniform(-1, 1, few.shape) if k % 2 else rng.choice([-1.0, 1.0], few.shape)
        np.testing.assert_array_equal(model.predict(few + radius[:, None, None] * move), chosen)


def test_bounds_of_a_pool_hold_for_every_value_between():
    """The largest of a window against its lines, at random values between the bounds of each."""
    rng = np.random.default_rng(0)
    low = rng.normal(size=(1, 2, 4, 4))
    high = low + rng.exponential(0.7, size=low.shape)
    pool = PlainPool((2, 2), True)
    lines = _pool_lines(pool, low, high)
    assert 0 < lines.sure.mean() < 1
    for _ in range(50):
        value = rng.uniform(low, high)
        below = np.take_along_axis(pool.windows(value), lines.place[None], axis=0)[0]
        largest = pool.forward(value)[0]
        assert (below <= largest).all()
        assert (largest <= np.where(lines.sure, below, lines.most)).all()


def test_windows_give_the_bounds_of_whole_images():
    """Strides, padding, both pools and normalisation: a unit's window against weights of all pixels."""
    rng = np.random.default_rng(0)
    layers, X = [], rng.normal(size=(2, 7 * 6 * 2))
    box = X - 0.1, X + 0.1
    for layer in (
        PlainImages((7, 6, 2)),
        PlainConvolution(rng.normal(size=(3, 2, 3, 2)), rng.normal(size=3), 1, 1),
        PlainNormalisation(rng.normal(size=3), rng.normal(size=3), rng.uniform(0.5, 2, size=(2, 3))),
        PlainPool((2, 2), True),
        PlainActivation("leaky_relu"),
        PlainConvolution(rng.normal(size=(2, 3, 2, 2)), rng.normal(size=2), 2, 1),
        PlainActivation("relu"),
        PlainPool((1, 1), False),
        PlainConvolution(rng.normal(size=(2, 2, 2, 2)), rng.normal(size=2), 1, 1),
    ):
        lines = None
        if isinstance(layer, PlainActivation):
            lines = _unit_lines(*box, 0.01 if layer.name == "leaky_relu" else 0.0)
        elif isinstance(layer, PlainPool) and layer.largest:
            lines = _pool_lines(layer, *box)
        terms = _term_sizes(layer, *box) if isinstance(layer, LINEAR) else None
        layers.append(BoundedLayer(layer, box[0].shape[1:], lines, terms))
        box = _interval(layer, *box, 0.0)
    channels, height, width = box[0].shape[1:]
    eps = np.array([0.1, 0.05])
    for sign in (1.0, -1.0):
        ones = sign * np.eye(channels * height * width).reshape(1, -1, channels, height, width)
        whole = _back(layers, X, ones, eps, 1.0).reshape(2, channels, height, width)
        for channel in range(channels):
            row, top, left = np.unravel_index(np.arange(2 * height * width), (2, height, width))
            weights = np.zeros((len(row), channels))
            weights[:, channel] = sign
            found = least_of_units(layers, (SeenWindows(row, top, left), weights), X, eps, 1.0)
            np.testing.assert_allclose(found, whole[:, channel].ravel(), rtol=1e-12)


def test_intervals_of_layers_hold_their_values():
    rng = np.random.default_rng(1)
    low = rng.normal(size=(3, 2, 4, 4))
    high = low + rng.exponential(size=low.shape)
    for layer in (
        PlainConvolution(rng.normal(size=(3, 2, 3, 3)), rng.normal(size=3), 1, 1),
        PlainNormalisation(rng.normal(size=2), rng.normal(size=2), rng.uniform(0.5, 2, size=(2, 2))),
        PlainPool((2, 2), False),
    ):
        least, most = _interval(layer, low, high, 1e-12)
        ends = [layer.forward(np.where(rng.random(low.shape) < 0.5, low, high))[0] for _ in range(200)]
        assert (least <= np.min(ends, axis=0)).all()
        assert (np.max(ends, axis=0) <= most).all()
        # A box that loses a tenth at each side would be left by its corners.
        slack = 0.1 * (most - least)
        if isinstance(layer, PlainNormalisation):
            assert (np.min(ends, axis=0) < least + slack).all()
            assert (np.max(ends, axis=0) > most - slack).all()
