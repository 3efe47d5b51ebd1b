"""Batch normalisation: its definition, slopes against central differences, moments of all rows, and the checker."""

import copy

import dask.array as da
import numpy as np
import pytest
from sklearn.datasets import load_digits

from certifit import ConvNetClassifier, DataError, audit
from certifit.neural_network.layers.batch_norm import BatchNorm, UnitMoments, with_moments
from certifit.neural_network.layers.image_layers import Conv2D, Flatten, Images
from certifit.neural_network.layers.row_layers import Dense, LayerWeights, ReLU, Tanh
from certifit.neural_network.layers.workspace import Workspace
from certifit.neural_network.network import Network
from certifit.neural_network.output_losses import OUTPUT_LOSSES
from certifit.neural_network.training.network_rows import NetworkRows
from certifit.neural_network.training.slopes import MinibatchSlopes

DIGITS = load_digits()
IMAGES, LABELS = (DIGITS.images[:300] / 16).astype(np.float32), DIGITS.target[:300]
NET = {
    "layers": [("conv", 4, 3), "batch_norm", "relu", ("max_pool", 2), ("dense", 12), "batch_norm", "tanh"],
    "max_iter": 3,
    "batch_size": 16,
    "learning_rate_init": 0.01,
    "random_state": 0,
}
STACKS = {
    "units": (Dense(5), BatchNorm(), Tanh(), Dense(3)),
    "rows first": (BatchNorm(), Dense(3)),
    "images": (Images((4, 3, 1)), Conv2D(2, 2), BatchNorm(), ReLU(), Flatten(), BatchNorm(), Dense(3)),
}


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("stack", STACKS)
def test_slopes_are_central_differences(stack, fixed):
    """Also through mean and variance, which move with every row; rows have weights."""
    rng = np.random.default_rng(0)
    network = Network(STACKS[stack], (12,))
    if fixed:
        sizes = [one.weights for layer, one in zip(network.layers, network.shapes, strict=True) if _norm(layer)]
        network = with_moments(network, [rng.uniform(0.5, 2, (2, *size)) for size in sizes])
    rows = NetworkRows(rng.normal(size=(9, 12)), np.eye(3)[rng.integers(0, 3, 9)], rng.exponential(size=9))
    params, loss = rng.normal(size=network.n_parameters), OUTPUT_LOSSES["softmax"]
    with MinibatchSlopes(network, loss, params) as slopes:

        def f(p):
            params[:] = p
            return slopes.at(rows, np.arange(9), 1.0, (0,))[0]

        at = params.copy()
        found = slopes.at(rows, np.arange(9), 1.0, (0,))[1].copy()
        steps = 1e-6 * np.eye(len(at))
        wanted = np.array([(f(at + e) - f(at - e)) / 2e-6 for e in steps])
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-7)


def _norm(layer):
    return isinstance(layer, BatchNorm)


@pytest.mark.parametrize("shape", [(40, 3), (3, 4, 5, 40)])
def test_what_leaves_has_the_mean_and_deviation_asked_for(shape):
    rng = np.random.default_rng(0)
    x, W, b = 7 + 3 * rng.normal(size=shape), rng.normal(size=3), rng.normal(size=3)
    y, _ = BatchNorm().forward(x, LayerWeights(W, b), Workspace())
    others = (0,) if len(shape) == 2 else (1, 2, 3)
    np.testing.assert_allclose(y.mean(axis=others), b, atol=1e-12)
    np.testing.assert_allclose(y.std(axis=others), np.abs(W), rtol=1e-5)


def test_a_weight_counts_rows():
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(6, 2)), np.array([1, 2, 1, 3, 1, 1])
    work = Workspace().begin()
    work.w = w
    one, _ = BatchNorm().forward(x, LayerWeights(np.ones(2), np.zeros(2)), work)
    twice, _ = BatchNorm().forward(np.repeat(x, w, axis=0), LayerWeights(np.ones(2), np.zeros(2)), Workspace())
    np.testing.assert_allclose(np.repeat(one, w, axis=0), twice, atol=1e-12)


def test_moments_of_two_sets_of_rows_are_those_of_all():
    x = 1e6 + np.random.default_rng(0).normal(size=(50, 2))
    parts = [UnitMoments(len(p), p.mean(axis=0), p.var(axis=0)) for p in (x[:13], x[13:])]
    np.testing.assert_allclose((parts[0] + parts[1]).variance, x.var(axis=0), rtol=1e-9)
    np.testing.assert_allclose((parts[0] + parts[1]).mean, x.mean(axis=0), rtol=1e-15)
    none = UnitMoments(0.0, np.zeros(2), np.zeros(2))
    assert (parts[0] + none) is parts[0] is (none + parts[0])


def test_a_fitted_network_has_the_moments_of_all_its_rows(threads):
    seen = []
    for n in (1, 2):
        threads(n)
        seen.append(ConvNetClassifier(**NET).fit(IMAGES, LABELS))
    model = seen[0]
    assert all((a == b).all() for a, b in zip(model.moments_, seen[1].moments_, strict=True))
    assert [m.shape for m in model.moments_] == [(2, 4), (2, 12)]
    # What enters the first: the convolution of all images, by its definition.
    windows = np.lib.stride_tricks.sliding_window_view(IMAGES.astype(float), (3, 3), axis=(1, 2))
    before = np.einsum("nijab,cab->cnij", windows, model.coefs_[0][:, 0].astype(float))
    before += model.intercepts_[0][:, None, None, None]
    np.testing.assert_allclose(model.moments_[0][0], before.mean(axis=(1, 2, 3)), atol=1e-9)
    np.testing.assert_allclose(model.moments_[0][1], before.var(axis=(1, 2, 3)), rtol=1e-9)
    assert audit(model, IMAGES, LABELS).holds
    assert model.score(IMAGES, LABELS) > 0.8


def test_wrong_moments_are_noticed():
    model = ConvNetClassifier(**NET).fit(IMAGES, LABELS)
    for k, place in ((0, 1), (1, 3), (1, 15)):
        hurt = copy.deepcopy(model)
        hurt.moments_[k].flat[place] *= 1 + 1e-6
        found = audit(hurt, IMAGES, LABELS)
        assert not found.holds
        assert f"moments_ of normalisation {k + 1}" in str(found.failures())
    hurt.moments_ = model.moments_[:1]
    with pytest.raises(DataError, match="a 'batch_norm' with weights of shape"):
        audit(hurt, IMAGES, LABELS)
    hurt.moments_ = [*model.moments_, model.moments_[0]]
    with pytest.raises(DataError, match="3 moments_"):
        audit(hurt, IMAGES, LABELS)


def test_early_stopping_and_dask():
    stop = {**NET, "early_stopping": True, "validation_fraction": 0.2}
    model = ConvNetClassifier(**stop).fit(IMAGES, LABELS)
    lazy = ConvNetClassifier(**stop).fit(da.from_array(IMAGES.reshape(300, -1), chunks=(128, 64)), LABELS)
    assert model.validation_scores_ == lazy.validation_scores_
    assert all((a == b).all() for a, b in zip(model.coefs_, lazy.coefs_, strict=True))
    np.testing.assert_allclose(model.moments_[1], lazy.moments_[1], rtol=1e-9)
