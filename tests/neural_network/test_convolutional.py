"""Convolutional networks: layers against differences and plain windows, quality, corners, and the checker."""

import copy

import numpy as np
import pytest
from scipy.ndimage import rotate
from scipy.signal import correlate, correlate2d
from sklearn.datasets import load_digits

from certifit import ConvNetClassifier, DataError, audit
from certifit.checkers.neural_network.convolutional_adapter import read_convolutional
from certifit.neural_network.layers.image_layers import AveragePool, Conv2D, Flatten, Images, MaxPool
from certifit.neural_network.layers.layer_words import image_layers, layer_words, lenet
from certifit.neural_network.layers.moved_images import MovedImages
from certifit.neural_network.layers.pooled_convolution import FusionTuning, PooledConvolution, fuse_pools
from certifit.neural_network.layers.row_layers import Dense, LayerWeights, ReLU
from certifit.neural_network.layers.workspace import Workspace
from certifit.neural_network.network import Network
from certifit.neural_network.output_losses import OUTPUT_LOSSES
from certifit.neural_network.plots import feature_maps, plot_feature_maps
from certifit.neural_network.training.network_rows import NetworkRows
from certifit.neural_network.training.slopes import MinibatchSlopes, full_slopes

DIGITS = load_digits()
IMAGES, LABELS = (DIGITS.images / 16).astype(np.float32), DIGITS.target
SMALL = {"layers": [("conv", 4, 3), "relu", ("max_pool", 2), ("dense", 8), "tanh"], "max_iter": 2, "random_state": 0}
STACKS = {
    "padded": (Conv2D(3, 3, padding=1), MaxPool(2)),
    "strided": (Conv2D(2, (3, 2), stride=2), AveragePool((1, 2))),
    "left over": (MaxPool((2, 3)), Conv2D(2, 2)),
    "deep": (Conv2D(2, 3, padding=2), AveragePool(2), Conv2D(3, 2)),
}


@pytest.mark.parametrize("stack", STACKS)
def test_slopes_are_central_differences(stack):
    network = Network((Images((6, 7, 2)), *STACKS[stack], Flatten(), Dense(3)), (84,))
    rng = np.random.default_rng(0)
    rows = NetworkRows(rng.normal(size=(5, 84)), np.eye(3)[rng.integers(0, 3, 5)], rng.exponential(size=5))
    params, loss = rng.normal(size=network.n_parameters) / 3, OUTPUT_LOSSES["softmax"]
    found = full_slopes(network, loss, params, rows).slopes

    def f(p):
        return full_slopes(network, loss, p, rows).loss

    some = rng.choice(len(params), min(60, len(params)), replace=False)
    for k in some:
        e = 1e-6 * (np.arange(len(params)) == k)
        assert found[k] == pytest.approx((f(params + e) - f(params - e)) / 2e-6, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize(
    "stack",
    [
        (Conv2D(3, 3, padding=1), ReLU(), MaxPool(2)), (Conv2D(2, (3, 2), stride=2), AveragePool((1, 2)), ReLU()),
        (Conv2D(2, 2, padding=1), MaxPool((2, 3)), Conv2D(2, (1, 2)), MaxPool((2, 1))),
    ],
)  # fmt: skip
def test_a_pooled_convolution_is_its_two_layers(stack):
    """With edges left over, ReLU on either side of the pool, strides; and a second time, in memory used before."""
    rng = np.random.default_rng(1)
    layers = (Images((7, 8, 2)), Conv2D(2, 2), *stack, Flatten(), Dense(3))
    apart, joint = Network(layers, (112,)), Network(fuse_pools(layers, FusionTuning(products=-1)), (112,))
    assert any(isinstance(layer, PooledConvolution) for layer in joint.layers)
    params, loss = rng.normal(size=apart.n_parameters), OUTPUT_LOSSES["softmax"]
    rows = NetworkRows(rng.normal(size=(9, 112)), np.eye(3)[rng.integers(0, 3, 9)], np.ones(9))
    wanted = full_slopes(apart, loss, params, rows)
    assert joint.scores(joint.parts(params), rows.X) == pytest.approx(apart.scores(apart.parts(params), rows.X))
    with MinibatchSlopes(joint, loss, params) as slopes:
        for _ in range(2):
            _, found = slopes.at(rows, np.arange(9), 1.0, (0,))
            np.testing.assert_allclose(found, wanted.slopes, atol=1e-10)


def test_pools_are_joined_where_products_are_few():
    """LeNet's small windows and few channels; not 3 x 3 of many channels, where the products with zeros cost more."""
    kinds = [type(one).__name__ for one in fuse_pools(image_layers(lenet(28, 28), (28, 28, 1), 10))]
    assert kinds[:4] == ["Images", "PooledConvolution", "PooledConvolution", "Flatten"]
    assert len(fuse_pools((Conv2D(64, 3), ReLU(), MaxPool(2)))) == 3


def test_a_convolution_is_scipys_correlation():
    rng = np.random.default_rng(0)
    x, W, b = rng.normal(size=(2, 8, 9, 3)), rng.normal(size=(4, 2, 3, 3)), rng.normal(size=4)
    y, _ = Conv2D(4, 3).forward(x, LayerWeights(W, b), Workspace())
    for o in range(4):
        for n in range(3):
            wanted = sum(correlate(x[c, :, :, n], W[o, c], mode="valid") for c in range(2)) + b[o]
            np.testing.assert_allclose(y[o, :, :, n], wanted, atol=1e-12)


def test_lenet_has_its_published_size():
    """LeCun et al. (1998): 60,000 free parameters or so; with ReLU, full second convolution and 28 x 28 padded."""
    network = Network(image_layers(lenet(28, 28), (28, 28, 1), 10), (784,))
    assert network.n_parameters == 61_706
    assert network.shapes[4].output == (16, 10, 10)


def test_digits_are_learnt():
    order = np.random.default_rng(0).permutation(len(LABELS))
    learnt, held = order[:1400], order[1400:]
    layers = [
        ("conv", 16, 3, 1, 1), "relu", ("conv", 32, 3, 1, 1), ("max_pool", 2), "relu", ("dropout", 0.4),
        ("dense", 64), "relu",
    ]  # fmt: skip
    model = ConvNetClassifier(layers, batch_size=32, max_iter=9, random_state=0).fit(IMAGES[learnt], LABELS[learnt])
    assert model.score(IMAGES[held], LABELS[held]) >= 0.985
    assert model.coefs_[0].dtype == np.float32
    assert audit(model, IMAGES[learnt], LABELS[learnt]).holds


def test_flat_rows_and_images_are_the_same(threads):
    seen = []
    for n, X in ((1, IMAGES), (2, IMAGES[..., None]), (4, IMAGES.reshape(-1, 64))):
        threads(n)
        seen.append(ConvNetClassifier(**SMALL).fit(X[:300], LABELS[:300]))
    for model in seen[1:]:
        assert all((a == b).all() for a, b in zip(model.coefs_, seen[0].coefs_, strict=True))
        assert model.image_shape_ == (8, 8, 1)
    np.testing.assert_array_equal(seen[0].predict(IMAGES), seen[2].predict(IMAGES.reshape(-1, 64)))


def test_every_damage_is_noticed():
    model = ConvNetClassifier(**SMALL).fit(IMAGES[:200], LABELS[:200])
    assert audit(model, IMAGES[:200], LABELS[:200]).holds
    for k in range(len(model.coefs_)):
        hurt = copy.deepcopy(model)
        hurt.coefs_[k].flat[0] += 0.01
        assert not audit(hurt, IMAGES[:200], LABELS[:200]).holds
    other = copy.deepcopy(model)
    other.layers_ = (*model.layers_[:2], ("average_pool", 2, 2), *model.layers_[3:])
    assert not audit(other, IMAGES[:200], LABELS[:200]).holds
    other.layers_ = (("conv", 4, 2, 2, 1, 0), *model.layers_[1:])
    with pytest.raises(DataError, match="weights of shape"):
        audit(other, IMAGES[:200], LABELS[:200])


def test_partial_fit_goes_on():
    steps = ConvNetClassifier(**SMALL, tol=0.0)
    for _ in range(2):
        steps.partial_fit(IMAGES[:200], LABELS[:200], classes=np.arange(10))
    assert audit(steps, IMAGES[:200], LABELS[:200]).holds
    assert steps.t_ == 400


# --------------------------------------------------------------------------------------------------- moved images
def test_shifted_images_are_whole_images_elsewhere():
    """Every image is the one that np.roll gives for some shift of at most 2, zeros where it came in."""
    images = np.pad(IMAGES[:40], ((0, 0), (2, 2), (2, 2)))
    work = Workspace().begin(np.random.default_rng(0))
    moved, _ = MovedImages((12, 12, 1), 2, 0.0).forward(images.reshape(40, -1), None, work)
    seen = set()
    for one, before in zip(moved.reshape(40, 12, 12), images, strict=True):
        found = [
            (i, j)
            for i in range(-2, 3)
            for j in range(-2, 3)
            if np.array_equal(one, np.roll(before, (i, j), axis=(0, 1)))
        ]
        assert found
        seen.add(found[0])
    assert len(seen) > 10
    assert MovedImages((12, 12, 1), 2, 5.0).forward(images, None, Workspace())[0] is images


def test_turned_images_are_scipys():
    """scipy.ndimage.rotate with linear interpolation, by the angle that is drawn."""
    x = IMAGES[:5].astype(float)
    moved, _ = MovedImages((8, 8, 1), 0, 30.0).forward(
        x.reshape(5, -1), None, Workspace().begin(np.random.default_rng(3))
    )
    draw = np.random.default_rng(3)
    draw.integers(0, 1, (2, 5, 1))
    for one, before, angle in zip(moved.reshape(5, 8, 8), x, 30 * draw.uniform(-1, 1, 5), strict=True):
        wanted = rotate(np.pad(before, 1), -angle, reshape=False, order=1)[1:-1, 1:-1]
        np.testing.assert_allclose(one, wanted, atol=1e-9)


def test_an_elastic_distortion_moves_neighbours_alike():
    """Of an image whose value is the number of its row, what changes is the displacement, of the size asked for."""
    ramp = np.tile(np.arange(40.0)[:, None, None], (1, 40, 2)).ravel()
    work = Workspace().begin(np.random.default_rng(0))
    moved, _ = MovedImages((40, 40, 2), 0, 0.0, 1.5).forward(np.tile(ramp, (200, 1)), None, work)
    move = (moved - ramp).reshape(200, 40, 40, 2)[:, 8:-8, 8:-8]
    np.testing.assert_array_equal(move[..., 0], move[..., 1])
    assert move.std() == pytest.approx(1.5, rel=0.05)
    assert abs(move.mean()) < 0.3  # some three standard errors, of 200 images with one or two windows in each
    neighbours = np.corrcoef(move[:, :-1].ravel(), move[:, 1:].ravel())[0, 1]
    assert neighbours == pytest.approx(np.exp(-0.25 * (7 / 40) ** 2), abs=0.01)  # of Gaussian windows, one apart
    distant = np.corrcoef(move[:, 0].ravel(), move[:, 20].ravel())[0, 1]
    assert distant < 0.2


def test_moved_images_are_drawn_by_the_seed_alone(threads):
    """A network wide enough that its minibatches are cut into chunks."""
    wide = {**SMALL, "layers": [("conv", 4, 3), "relu", ("max_pool", 2), ("dense", 150)], "batch_size": 256}
    X, y, seen = IMAGES[:300], LABELS[:300], []
    for n in (1, 4):
        threads(n)
        seen.append(ConvNetClassifier(**wide, shifts=1, rotations=10.0, distortions=0.5).fit(X, y))
    assert all((a == b).all() for a, b in zip(seen[0].coefs_, seen[1].coefs_, strict=True))
    assert (ConvNetClassifier(**wide).fit(X, y).coefs_[0] != seen[0].coefs_[0]).any()
    assert audit(seen[0], X, y).holds


def test_feature_maps_are_what_the_next_layer_sees():
    """By SciPy's correlation, a pool that is written out, and ReLUs."""
    model = ConvNetClassifier(
        [("conv", 3, 3), "relu", ("max_pool", 2), ("conv", 2, 2), ("dense", 4)], max_iter=1, random_state=0
    ).fit(IMAGES[:60], LABELS[:60])
    (W, V, *_), (b, c, *_) = model.coefs_, model.intercepts_
    sums = np.stack([correlate2d(IMAGES[7].astype(float), W[k, 0], "valid") + b[k] for k in range(3)])
    first = np.maximum(sums, 0).reshape(3, 3, 2, 3, 2).max(axis=(2, 4))
    second = np.stack([sum(correlate2d(first[j], V[k, j], "valid") for j in range(3)) + c[k] for k in range(2)])
    claim = read_convolutional(model)
    for layer, maps in enumerate((first, second)):
        np.testing.assert_allclose(feature_maps(claim, IMAGES[7].reshape(1, -1), layer), maps, rtol=1e-5, atol=1e-6)
    with pytest.raises(DataError, match="layer=2 of 2 convolutions"):
        feature_maps(claim, IMAGES[7].reshape(1, -1), 2)
    with pytest.raises(DataError, match=r"an image of shape \(7, 8\); wanted one of shape \(8, 8, 1\)"):
        plot_feature_maps(model, IMAGES[0, 1:])


# -------------------------------------------------------------------------------------------------- what is refused
def test_layers_that_do_not_fit_are_named_with_their_shapes():
    with pytest.raises(
        DataError, match=r"Conv2D\(.*\) after .*MaxPool.* of shape \(4, 1, 1\); wanted images at least"
    ):
        ConvNetClassifier([("conv", 4, 5), ("max_pool", 4), ("conv", 4, 3)]).fit(IMAGES[:50], LABELS[:50])
    with pytest.raises(DataError, match="images, of three dimensions"):
        ConvNetClassifier([("dense", 4), ("conv", 4, 3)]).fit(IMAGES[:50], LABELS[:50])


@pytest.mark.parametrize(
    "layer",
    [
        "convolution", ("conv", 4), ("dense", 0), ("dense", 2.5), ("dropout", 1.0), ("relu", 2), 5, (),
        ("conv", True, 3), ("dropout", "half"), ("dropout", np.nan), (("conv",), 3),
    ],
)  # fmt: skip
def test_wrong_words_are_refused(layer):
    with pytest.raises(DataError, match="the layer"):
        ConvNetClassifier([layer]).fit(IMAGES[:50], LABELS[:50])


def test_wrong_images_are_refused():
    model = ConvNetClassifier(**SMALL).fit(IMAGES[:200], LABELS[:200])
    with pytest.raises(DataError, match=r"images of shape \(4, 8, 1\); wanted \(8, 8, 1\)"):
        model.predict(IMAGES[:5, :4])
    with pytest.raises(DataError, match=r"image_shape=\(5, 5\) for rows of 64"):
        ConvNetClassifier(image_shape=(5, 5)).fit(IMAGES.reshape(-1, 64), LABELS)
    with pytest.raises(DataError, match="not fitted on"):
        model.partial_fit(IMAGES[:20], LABELS[:20] + 100)
    with pytest.raises(DataError, match=r"one image, of shape \(8, 8\).*X\[None\]"):
        model.predict(IMAGES[0])
    with pytest.raises(DataError, match=r"an array of shape \(1, 20, 8, 8, 1\)"):
        model.fit(IMAGES[None, :20, ..., None], LABELS[:20])
    with pytest.raises(ValueError, match="0 sample"):
        model.predict(IMAGES[:0])
    with pytest.raises(DataError, match=r"Flatten\(\) after Flatten\(\) of shape \(64,\)"):
        ConvNetClassifier(["flatten", "flatten"]).fit(IMAGES[:20], LABELS[:20])


def test_a_fitted_network_lists_the_layers_that_were_asked_for():
    """Pools and ReLUs by themselves, although answers take them with the layer before."""
    model = ConvNetClassifier([("conv", 2, 3), ("max_pool", 2), "relu"], max_iter=0).fit(IMAGES[:20], LABELS[:20])
    lines = [line.split() for line in str(model.summary()).splitlines()[1:]]
    assert [line[0] for line in lines] == ["Images", "Conv2D", "MaxPool", "ReLU", "Flatten", "Dense", "all"]
    assert lines[1][1:] == ["2", "x", "6", "x", "6", "20"]


def test_images_that_look_wrong_are_named():
    """Numbers up to 255, and channels that come first, as in PyTorch: both are legal, and hardly ever meant."""
    with pytest.warns(UserWarning, match=r"up to 240, where .* Divide them by 255"):
        ConvNetClassifier(max_iter=0).fit((IMAGES[:20] * 240).astype(np.uint8), LABELS[:20])
    with pytest.warns(UserWarning, match=r"1 high and 8 wide with 8 channels.*np\.moveaxis"):
        ConvNetClassifier(max_iter=0).fit(IMAGES[:20, None], LABELS[:20])


def test_images_in_lists_are_images():
    model = ConvNetClassifier(**SMALL).fit(IMAGES[:100].tolist(), LABELS[:100].tolist())
    assert model.image_shape_ == (8, 8, 1)
    np.testing.assert_array_equal(model.predict(IMAGES[:9].tolist()), model.predict(IMAGES[:9].astype(float)))


def test_constant_images_teach_the_shares_of_classes():
    X, y = np.ones((90, 4, 4), np.float32), np.arange(90) % 3 // 2
    model = ConvNetClassifier(max_iter=60, learning_rate_init=0.01, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X[:1])[0], [2 / 3, 1 / 3], atol=0.02)
    assert model.certificate_.holds


def test_words_have_all_their_numbers():
    assert layer_words([("conv", 6, 5, 2, 1), "gelu"]) == (("conv", 6, 5, 5, 2, 1), ("gelu",), ("flatten",))
    whole = layer_words([("conv", np.int64(4), 3), ("max_pool", 2), ("dense", 3), ("dropout", 0.5)])
    assert layer_words(whole) == whole
    assert all(type(number) is int for words in whole[:-1] for number in words[1:])
