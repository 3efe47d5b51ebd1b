"""Layers in words: how a list of layers is written in a setting, kept in a model file and read by a checker.

    ["relu"]                                an activation
    [("conv", 6, 5)]                        channels and the window's side; then stride and padding, 1 and 0
    [("max_pool", 2), ("average_pool", 2)]  the window's side
    ["flatten", ("dense", 120), "batch_norm", ("dropout", 0.5)]

Each layer is kept with all its numbers: ("conv", channels, height, width, stride, padding), ("max_pool", height,
width).
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

from certifit.core.settings import did_you_mean
from certifit.exceptions import DataError
from certifit.neural_network.layers.batch_norm import BatchNorm
from certifit.neural_network.layers.image_layers import AveragePool, Conv2D, Flatten, Images, MaxPool
from certifit.neural_network.layers.row_layers import ACTIVATIONS, Dense, Dropout, Layer

Words = tuple[Any, ...]  # a layer's word and its numbers
_NUMBERS = {
    "conv": (2, 5),
    "max_pool": (1, 2),
    "average_pool": (1, 2),
    "flatten": (0, 0),
    "dense": (1, 1),
    "batch_norm": (0, 0),
    "dropout": (1, 1),
}


def layer_words(layers: Sequence[Any]) -> tuple[Words, ...]:
    """A list of layers with all their numbers; a Flatten before the first dense layer, where it was left out.

    >>> layer_words([("conv", 6, 5), "relu", ("max_pool", 2), ("dense", 10)])
    (('conv', 6, 5, 5, 1, 0), ('relu',), ('max_pool', 2, 2), ('flatten',), ('dense', 10))
    """
    found: list[Words] = []
    for one in layers:
        words = tuple(one) if isinstance(one, (list, tuple)) else (one,)
        if words and words[0] == "dense" and ("flatten",) not in found:
            found.append(("flatten",))
        found.append(_whole(words))
    return tuple(found) if ("flatten",) in found else (*found, ("flatten",))


def _whole(words: Words) -> Words:
    """A layer's word with all its numbers."""
    name, numbers = (words[0], words[1:]) if words and isinstance(words[0], str) else ("", ())
    known = (*_NUMBERS, *ACTIVATIONS)
    least, most = _NUMBERS.get(name, (0, 0))
    if name not in known or not least <= len(numbers) <= most:
        raise DataError(
            got=f"the layer {words!r}",
            wanted=f"one of {', '.join(known)}, with its numbers",
            fix=did_you_mean(name, known) if name not in known else '("conv", 6, 5) or ("dense", 120), say.',
        )
    if name == "dropout":
        share = numbers[0]
        if not isinstance(share, Real) or isinstance(share, bool) or not 0 <= float(share) < 1:
            raise DataError(got=f"the layer {words!r}", wanted="a share of at least 0 and below 1")
        return (name, float(share))
    free = 1 if len(numbers) >= 4 else 0  # the padding may be 0
    for k, n in enumerate(numbers):
        if not isinstance(n, Integral) or isinstance(n, bool) or n < (0 if k >= len(numbers) - free else 1):
            raise DataError(got=f"the layer {words!r}", wanted="whole numbers of at least 1")
    numbers = tuple(map(int, numbers))
    if name == "conv" and len(numbers) < 5:
        channels, side, *rest = numbers
        return ("conv", channels, side, side, rest[0] if rest else 1, rest[1] if len(rest) > 1 else 0)
    return (name, numbers[0], numbers[-1]) if name.endswith("pool") else (name, *numbers)


def lenet(h: int, w: int) -> tuple[Words, ...]:
    """Two convolutions with pooling and two dense layers, after LeCun et al. (1998); smaller for small images.

    Images of at least 16 x 16 have LeNet-5's windows of 5 x 5 and its 6 and 16 channels. Smaller ones have windows of
    3 x 3, at most as large as the image, and more channels.
    """
    large = min(h, w) >= 16
    layers: list[Words] = []
    for channels, padding in ((6, 2), (16, 0)) if large else ((16, 1), (32, 1)):
        side = 5 if large else 3
        a, b = (min(side, s) - 1 + min(side, s) % 2 for s in (h, w))
        same = padding if (a, b) == (side, side) else 0
        layers.append(("conv", channels, a, b, 1, same))
        h, w = h + 2 * same - a + 1, w + 2 * same - b + 1
        pool = (2 if h >= 4 else 1, 2 if w >= 4 else 1)
        if pool != (1, 1):
            layers.append(("max_pool", *pool))
            h, w = h // pool[0], w // pool[1]
        layers.append(("relu",))
    return (*layers, ("flatten",), ("dense", 120), ("relu",), ("dense", 84), ("relu",))


def image_layers(words: Sequence[Words], shape: tuple[int, int, int], outputs: int) -> tuple[Layer, ...]:
    """The layers that words stand for, from images of this shape to so many scores."""
    layers: list[Layer] = [Images(shape)]
    for name, *numbers in words:
        if name == "conv":
            channels, a, b, stride, padding = numbers
            layers.append(Conv2D(channels, (a, b), stride, padding))
        elif name in ("max_pool", "average_pool"):
            layers.append((MaxPool if name == "max_pool" else AveragePool)((numbers[0], numbers[1])))
        elif name in ACTIVATIONS:
            layers.append(ACTIVATIONS[name])
        else:
            kinds = {"flatten": Flatten, "dense": Dense, "dropout": Dropout, "batch_norm": BatchNorm}
            layers.append(kinds[name](*numbers))
    return (*layers, Dense(outputs))
