"""Convolutional networks for images, certified."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import numpy as np

from certifit.checkers.neural_network.convolutional_adapter import certify_convolutional, read_convolutional
from certifit.checkers.neural_network.network_loss import NetworkClaim
from certifit.core import Attributes, Certificate, Setting
from certifit.core.estimator import with_callbacks
from certifit.core.settings import Settings
from certifit.exceptions import DataError, warn_caller
from certifit.neural_network.layers.batch_norm import moment_rows, population_moments, with_moments
from certifit.neural_network.layers.layer_words import Words, image_layers, layer_words, lenet
from certifit.neural_network.layers.moved_images import MovedImages
from certifit.neural_network.layers.pooled_convolution import fuse_pools
from certifit.neural_network.layers.row_layers import Layer, LayerWeights
from certifit.neural_network.multilayer_perceptron import PerceptronTargets, target_width
from certifit.neural_network.network import Network
from certifit.neural_network.network_classifier import NetworkClassifier
from certifit.rows import Array, ArrayRows, Rows


def _is_shape(value: Any) -> bool:
    sizes = np.asarray(value)
    return sizes.ndim == 1 and len(sizes) in (2, 3) and sizes.dtype.kind in "iu" and bool((sizes > 0).all())


class ConvNetClassifier(NetworkClassifier):
    """A convolutional network for classes of images.

    Images are arrays (n, height, width) or (n, height, width, channels), or flat rows. Numbers should lie between 0
    and 1 or so; float32 halves the time. Reference: LeCun, Bottou, Bengio & Haffner, "Gradient-based learning applied
    to document recognition" (1998).

    Parameters
    ----------
    layers : 'lenet' or a list, default='lenet'
        Words for layers, such as ("conv", 8, 3), "batch_norm", "relu", ("max_pool", 2), ("dense", 32),
        ("dropout", 0.5): a convolution has its channels and the side of its window, then stride and padding. The last
        dense layer, of a score for each class, is added. 'lenet' is two convolutions and two dense layers.
    image_shape : (height, width) or (height, width, channels), or None
        Of flat rows; None: a square if that is possible, else one line.
    solver : 'adam', 'adamw' or 'sgd'
    alpha, learning_rate, learning_rate_init, power_t, shuffle, random_state, tol, verbose, warm_start, momentum,
    nesterovs_momentum, early_stopping, validation_fraction, beta_1, beta_2, epsilon, n_iter_no_change, class_weight,
    clip_norm, label_smoothing, checkpoint :
        as in MLPClassifier
    batch_size : int or 'auto'
        Rows of a minibatch; 'auto': 128, or all.
    max_iter : int, default=30
        Epochs.
    shifts : int, default=0
        Most pixels by which an image is moved up or down and to a side, at random in every epoch; zeros come in.
    rotations : float, default=0.0
        Most degrees by which it is turned, likewise.
    distortions : float, default=0.0
        Pixels (a standard deviation) by which an elastic distortion moves each pixel, nearly as its neighbours,
        likewise. `loss_` is that of the images as they were given.

    Attributes
    ----------
    classes_ : (k,)
    layers_ : the layers with all their numbers
    image_shape_ : (height, width, channels)
    coefs_ : list of weights, (channels, channels before, height, width) of a convolution, (inputs, outputs) else
    intercepts_ : list of biases
    moments_ : list of (2, channels), mean and variance, over all rows, of what enters each "batch_norm"
    loss_, certificate_, multilabel_, training_state_ : as in MLPClassifier
    n_layers_, n_outputs_, out_activation_, t_ : as in MLPClassifier
    n_iter_, loss_curve_, best_loss_, validation_scores_, best_validation_score_ : how it went (diagnostic)

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from certifit import ConvNetClassifier
    >>> digits = load_digits()
    >>> images = (digits.images / 16).astype("float32")
    >>> model = ConvNetClassifier(max_iter=3, random_state=0).fit(images[:600], digits.target[:600])
    >>> model.layers_[0], model.image_shape_, model.certificate_.holds
    (('conv', 16, 3, 3, 1, 1), (8, 8, 1), True)
    """

    settings: ClassVar[Settings] = {
        **{k: v for k, v in NetworkClassifier.settings.items()
           if k not in ("hidden_layer_sizes", "activation", "max_fun")},
        "solver": Setting(choices=("adam", "adamw", "sgd")),
        "layers": Setting(choices=("lenet",), other=lambda v: isinstance(v, (list, tuple)), other_words="a list"),
        "image_shape": Setting(none=True, other=_is_shape, other_words="(height, width[, channels])"),
        "shifts": Setting(int, least=0),
        "rotations": Setting(float, least=0, most=180),
        "distortions": Setting(float, least=0, below=math.inf),
    }  # fmt: skip
    _usual_batch: ClassVar[int] = 128

    layers_: tuple[Words, ...]
    image_shape_: tuple[int, int, int]
    moments_: list[Array]

    def __init__(
        self, layers="lenet", image_shape=None, *, solver="adam", alpha=0.0001, batch_size="auto",
        learning_rate="cosine", learning_rate_init=0.002, power_t=0.5, max_iter=30, shuffle=True, random_state=None,
        tol=1e-4, verbose=False, warm_start=False, momentum=0.9, nesterovs_momentum=True, early_stopping=False,
        validation_fraction=0.1, beta_1=0.9, beta_2=0.999, epsilon=1e-8, n_iter_no_change=10, class_weight=None,
        clip_norm=None, label_smoothing=0.0, checkpoint=None, shifts=0, rotations=0.0, distortions=0.0,
    ):  # fmt: skip
        self.layers = layers
        self.image_shape = image_shape
        self.solver = solver
        self.alpha = alpha
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.learning_rate_init = learning_rate_init
        self.power_t = power_t
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state
        self.tol = tol
        self.verbose = verbose
        self.warm_start = warm_start
        self.momentum = momentum
        self.nesterovs_momentum = nesterovs_momentum
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.n_iter_no_change = n_iter_no_change
        self.class_weight = class_weight
        self.clip_norm = clip_norm
        self.label_smoothing = label_smoothing
        self.checkpoint = checkpoint
        self.shifts = shifts
        self.rotations = rotations
        self.distortions = distortions

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to images and their classes.

        Parameters
        ----------
        X : array (n, height, width) or (n, height, width, channels), or flat rows in any form that certifit takes
        y, sample_weight : as in every `fit` of certifit
        """
        X, several = _images_or_rows(X), target_width(y)
        _warn_of_odd_images(X)
        with self._noting_shape(X):
            return self._fit_rows(X, y, sample_weight, targets=several, several=several)

    def _go_on(self, X: Any, y: Any, sample_weight: Any, several: int, known: Attributes) -> Any:
        X = _images_or_rows(X)
        with self._noting_shape(X):
            return super()._go_on(X, y, sample_weight, several, known)

    @contextmanager
    def _noting_shape(self, X: Any) -> Iterator[None]:
        """Remember, while fitting, the shape that images have before they are made flat."""
        self._seen_shape = _whole_shape(X.shape[1:]) if isinstance(X, np.ndarray) and X.ndim in (3, 4) else None
        try:
            yield
        finally:
            del self._seen_shape

    def _as_rows(self, X: Any, *arguments: Any, **keywords: Any) -> Rows:
        return super()._as_rows(self._flat(X), *arguments, **keywords)

    def _flat(self, X: Any) -> Any:
        """Images as rows; of a fitted model refused in another shape."""
        X, known = _images_or_rows(X), getattr(self, "image_shape_", None) or self._asked_shape()
        if not isinstance(X, np.ndarray):
            return X
        if known is not None and X.shape in (known[:2], known) and X[:1].size != math.prod(known):
            raise DataError(
                got=f"one image, of shape {X.shape}", wanted="an array of images",
                fix="Write X[None] for a single one.",
            )  # fmt: skip
        if X.ndim <= 2:
            return X
        shape = _whole_shape(X.shape[1:])
        if known is not None and tuple(known) != shape:
            raise DataError(
                got=f"images of shape {shape}", wanted=f"{tuple(known)}: height, width and channels",
                fix="Give the images that the network was made for.",
            )  # fmt: skip
        return X.reshape(len(X), math.prod(shape)).astype(X.dtype if X.dtype.kind == "f" else np.float32)

    def _structure(self, rows: Rows) -> dict[str, Any]:
        columns = rows.n_features
        shape = self._asked_shape() or self._seen_shape
        side = math.isqrt(columns)
        shape = shape or ((side, side, 1) if side * side == columns else (1, columns, 1))
        if math.prod(shape) != columns:
            raise DataError(
                got=f"image_shape={self.image_shape!r} for rows of {columns} numbers",
                wanted=f"a shape of {columns} numbers",
                fix="Height times width times channels is the number of columns.",
            )
        words = lenet(shape[0], shape[1]) if isinstance(self.layers, str) else layer_words(self.layers)
        return {"layers_": words, "image_shape_": shape}

    def _build(self, targets: PerceptronTargets) -> Network:
        found, columns = targets.attributes, targets.rows.n_features
        layers = image_layers(found["layers_"], found["image_shape_"], targets.outputs)
        _ = Network(layers, (columns,)).shapes  # what does not fit is told in the user's layers
        moved = (MovedImages(found["image_shape_"], self.shifts, float(self.rotations), float(self.distortions)),)
        still = not (self.shifts or self.rotations or self.distortions)
        return Network((*(() if still else moved), *fuse_pools(layers)), (columns,)).clipped

    def _draw(self, layer: Layer, part: LayerWeights, fans: tuple[int, int], random: Any) -> None:
        """Draw a layer's first weights so that ReLUs keep the size of what passes (He et al. 2015)."""
        bound = math.sqrt(6.0 / fans[0])
        # A normalisation starts without scaling.
        part.W[...] = random.uniform(-bound, bound, part.W.shape) if part.W.ndim > 1 else 1.0
        part.b[...] = 0.0

    def _settle(self, network: Network, flat: Array, rows: Rows) -> tuple[Network, Attributes]:
        parts = network.parts(flat.astype(np.float64))
        moments = population_moments(network, parts, rows)
        return with_moments(network, moments), {"moments_": moments}

    def _settle_at_once(self, network: Network, flat: Array, table: Any) -> Attributes:
        n, most = len(table), moment_rows(network)
        if not most:
            return {"moments_": []}
        few = table.take(np.arange(n) if n <= most else np.linspace(0, n - 1, most).astype(np.int64))
        found = self._settle(network, flat, ArrayRows(few.X, None, few.w))[1]
        return {**found, "sampled": len(few)} if len(few) < n else found

    def _listed_network(self) -> Network:
        layers = image_layers(self.layers_, self.image_shape_, len(self.intercepts_[-1]))
        return Network(layers, (math.prod(self.image_shape_),))

    def _fitted_network(self) -> Network:
        listed = self._listed_network()
        network = Network(fuse_pools(listed.layers), listed.rows).clipped
        return with_moments(network, getattr(self, "moments_", []))

    def _claim(self) -> NetworkClaim:
        return read_convolutional(self)

    def _certify(self, claim: NetworkClaim, rows: Rows, tol: float) -> Certificate:
        return certify_convolutional(claim, rows, tol)

    def _asked_shape(self) -> tuple[int, int, int] | None:
        return None if self.image_shape is None else _whole_shape(self.image_shape)


def _images_or_rows(X: Any) -> Any:
    """Images in nested lists as an array; arrays of more dimensions than images have are refused."""
    if isinstance(X, (list, tuple)) and len(X) and np.ndim(X[0]) > 1:
        X = np.asarray(X)
    if isinstance(X, np.ndarray) and X.ndim > 4:
        raise DataError(
            got=f"an array of shape {X.shape}",
            wanted="images (n, height, width) or (n, height, width, channels), or flat rows",
        )
    return X


def _warn_of_odd_images(X: Any, most: float = 200.0) -> None:
    """Warn of images whose numbers are far above those that first weights suit, and of channels that come first."""
    if not isinstance(X, np.ndarray) or X.dtype.kind not in "uif" or not X.size:
        return
    largest = max(float(X.max()), -float(X.min()))
    if most < largest < math.inf:
        warn_caller(
            f"Got images with numbers up to {largest:g}, where numbers between 0 and 1 or so are wanted: a network "
            "learns slowly from large ones. Divide them by 255, say, in fit and predict alike."
        )
    if X.ndim == 4 and X.shape[1] in (1, 3) and X.shape[2] == X.shape[3] > 4:
        warn_caller(
            f"Got images {X.shape[1]} high and {X.shape[2]} wide with {X.shape[3]} channels. If their channels come "
            "first, write np.moveaxis(X, 1, 3): here they come last."
        )


def _whole_shape(shape: Any) -> tuple[int, int, int]:
    """Height, width and channels."""
    h, w, *channels = (int(size) for size in shape)
    return h, w, channels[0] if channels else 1


__all__ = ["ConvNetClassifier"]
