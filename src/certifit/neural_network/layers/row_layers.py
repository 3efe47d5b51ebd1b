"""Layers of a network: each computes its output, and passes slopes of the loss back from its output to its input.

`forward` returns the output and whatever `backward` needs to remember. `backward` gets the slopes of the loss in the
output, writes those in the layer's own weights, and returns those in its input. That is all of back-propagation:

    delta = slopes in the scores
    for layer, memory in reversed(layers):
        delta = layer.backward(delta, memory, weights, slopes)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import erf, expit

from certifit.neural_network.layers.dense_loops import add_biases, stop_slopes
from certifit.neural_network.layers.workspace import Workspace
from certifit.rows import Array

Shape = tuple[int, ...]  # of one row's values


class LayerWeights(NamedTuple):
    """The weights and biases of a layer, or the slopes in them; empty where it has none."""

    W: Array
    b: Array


class LayerShapes(NamedTuple):
    """What a layer makes of rows of some shape."""

    output: Shape
    weights: Shape = (0,)
    biases: Shape = (0,)
    fans: tuple[int, int] = (0, 0)  # values that enter each unit, and units that each value enters
    places: int = 1  # of a row at which the weights are used: those of a convolution's window


class Layer(ABC):
    """A step of a network."""

    stands_for: ClassVar[int] = 1  # layers of those that the user wrote
    draws: ClassVar[bool] = False  # whether training draws random numbers in it

    @abstractmethod
    def shapes(self, rows: Shape) -> LayerShapes:
        """The shapes of output and weights for rows of this shape; a DataError where the layer does not fit."""

    @abstractmethod
    def forward(self, x: Array, weights: LayerWeights, work: Workspace) -> tuple[Array, Any]:
        """The output for rows x, and what `backward` needs; large arrays are taken from `work`."""

    @abstractmethod
    def backward(
        self, delta: Array, memory: Any, weights: LayerWeights, slopes: LayerWeights, further: bool = True
    ) -> Array | None:
        """Write slopes in the weights and return those in the input, over `delta` where that fits.

        None where nothing `further` needs them.
        """


@dataclass(frozen=True)
class Dense(Layer):
    """Every unit is a weighted sum of all values, plus its bias: y = x W + b; with `clip` then max(y, 0)."""

    units: int
    clip: bool = field(default=False, repr=False)  # whether a ReLU follows, in the same pass over memory

    @property
    def stands_for(self) -> int:  # type: ignore[override]
        return 2 if self.clip else 1

    def shapes(self, rows: Shape) -> LayerShapes:
        values = int(np.prod(rows))
        return LayerShapes((self.units,), (values, self.units), (self.units,), (values, self.units))

    def forward(self, x: Array, weights: LayerWeights, work: Workspace) -> tuple[Array, Any]:
        y = np.matmul(x, weights.W, out=work.array((len(x), self.units), weights.W.dtype))
        add_biases(y, weights.b, self.clip)
        return y, (x, y)

    def backward(
        self, delta: Array, memory: Any, weights: LayerWeights, slopes: LayerWeights, further: bool = True
    ) -> Array | None:
        x, y = memory
        if self.clip:
            stop_slopes(delta, y)
        np.matmul(x.T, delta, out=slopes.W)
        np.add.reduce(delta, axis=0, out=slopes.b)
        return delta @ weights.W.T if further else None


class Elementwise(Layer):
    """A function of each value by itself, without weights."""

    def shapes(self, rows: Shape) -> LayerShapes:
        return LayerShapes(rows)


@dataclass(frozen=True)
class IdentityLayer(Elementwise):
    """y = x: with it, any depth of layers is one linear map."""

    def forward(self, x: Array, weights: LayerWeights, work: Workspace) -> tuple[Array, Any]:
        return x, None

    def backward(
        self, delta: Array, memory: Any, weights: LayerWeights, slopes: LayerWeights, further: bool = True
    ) -> Array | None:
        return delta


@dataclass(frozen=True)
class ReLU(Elementwise):
    """y = max(x, 0)."""

    def forward(self, x: Array, weights: LayerWeights, work: Workspace) -> tuple[Array, Any]:
        y = np.maximum(x, work.zeros(x.shape, x.dtype), out=work.array(x.shape, x.dtype))
        return y, y

    def backward(
        self, delta: Array, memory: Any, weights: LayerWeights, slopes: LayerWeights, further: bool = True
    ) -> Array | None:
        delta *= memory > 0
        return delta


@dataclass(frozen=True)
class LeakyReLU(Elementwise):
    """y = x, or a hundredth of it where it is negative: no unit stops learning."""

    leak: float = 0.01

    def forward(self, x: Array, weights: LayerWeights, work: Workspace) -> tuple[Array, Any]:
        factor = np.where(x > 0, x.dtype.type(1), x.dtype.type(self.leak))
        return x * factor, factor

    def backward(
        self, delta: Array, memory: Any, weights: LayerWeights, slopes: LayerWeights, further: bool = True
    ) -> Array | None:
        delta *= memory
        return delta


@dataclass(frozen=True)
class SigmoidLayer(Elementwise):
    """y = 1 / (1 + exp(-x)); its slope y (1 - y) is at most 1/4, so that slopes vanish with depth."""

    def forward(self, x: Array, weights: LayerWeights, work: Workspace) -> tuple[Array, Any]:
        y = expit(x)
        return y, y

    def backward(
        self, delta: Array, memory: Any, weights: LayerWeights, slopes: LayerWeights, further: bool = True
    ) -> Array | None:
        return delta * (memory * (1 - memory))


@dataclass(frozen=True)
class Tanh(Elementwise):
    """y = tanh(x), with slope 1 - y²."""

    def forward(self, x: Array, weights: LayerWeights, work: Workspace) -> tuple[Array, Any]:
        y = np.tanh(x)
        return y, y

    def backward(
        self, delta: Array, memory: Any, weights: LayerWeights, slopes: LayerWeights, further: bool = True
    ) -> Array | None:
        return delta * (1 - memory * memory)


@dataclass(frozen=True)
class GELU(Elementwise):
    """y = x Φ(x), Φ the normal distribution function (Hendrycks & Gimpel 2016)."""

    def forward(self, x: Array, weights: LayerWeights, work: Workspace) -> tuple[Array, Any]:
        share = 0.5 * (1 + erf(x * x.dtype.type(np.sqrt(0.5))))
        return x * share, (x, share)

    def backward(
        self, delta: Array, memory: Any, weights: LayerWeights, slopes: LayerWeights, further: bool = True
    ) -> Array | None:
        x, share = memory
        density = np.exp(-0.5 * x * x) * x.dtype.type(1 / np.sqrt(2 * np.pi))
        return delta * (share + x * density)


@dataclass(frozen=True)
class Dropout(Elementwise):
    """While training, every value is 0 with probability `share`, and the others are 1 / (1 - share) times larger."""

    share: float

    draws: ClassVar[bool] = True

    def forward(self, x: Array, weights: LayerWeights, work: Workspace) -> tuple[Array, Any]:
        if work.draw is None or self.share == 0:
            return x, None
        factor = (work.draw.random(x.shape, np.float32) >= self.share) * x.dtype.type(1 / (1 - self.share))
        return x * factor, factor

    def backward(
        self, delta: Array, memory: Any, weights: LayerWeights, slopes: LayerWeights, further: bool = True
    ) -> Array | None:
        if memory is not None:
            delta *= memory
        return delta


ACTIVATIONS: dict[str, Layer] = {
    "identity": IdentityLayer(),
    "logistic": SigmoidLayer(),
    "tanh": Tanh(),
    "relu": ReLU(),
    "leaky_relu": LeakyReLU(),
    "gelu": GELU(),
}


def clip_dense_layers(layers: Sequence[Layer]) -> tuple[Layer, ...]:
    """The same network with dense layers and the ReLUs after them as one layer each: no number changes."""
    found: list[Layer] = []
    for layer in layers:
        last = found[-1] if found else None
        if isinstance(layer, ReLU) and isinstance(last, Dense) and not last.clip:
            found[-1] = Dense(last.units, clip=True)
        else:
            found.append(layer)
    return tuple(found)
