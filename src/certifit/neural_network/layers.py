"""Layers of a network: a forward and a backward each, in the textbook's symbols.

A column of an array is a row of the table: a layer takes activations a (in, n) and gives (out, n); images are
(channels, height, width, n). With L the loss, `forward` returns the output and what `backward` will need; `backward`
takes ∂L/∂output, fills the gradient of the layer's own parameters and returns ∂L/∂input, by the chain rule:

    z = W a + b        ∂L/∂W = ∂L/∂z aᵀ        ∂L/∂b = Σ ∂L/∂z        ∂L/∂a = Wᵀ ∂L/∂z
    a = φ(z)           ∂L/∂z = φ'(z) ∂L/∂a

A network is a list of layers. Reference: Rumelhart, Hinton & Williams, Learning representations by back-propagating
errors (1986).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.special import erf, expit

from certifit.exceptions import DataError
from certifit.numerics.compiled.random_bits import random_bits_of
from certifit.rows import Array

Shape: TypeAlias = tuple[int, ...]  # of one row's activations: (units,) or (channels, height, width)
Tensors: TypeAlias = tuple[Array, ...]  # a layer's parameters, or their gradient


class PassKind(NamedTuple):
    """How rows go through a network: while it is trained, or to be predicted."""

    training: bool = False
    seed: int = 0  # of what training draws at random at this step
    first: int = 0  # the place of the first of these rows among those of the step


PREDICTION = PassKind()


@dataclass(frozen=True)
class Layer:
    """A layer without parameters that leaves activations as they are."""

    def __str__(self) -> str:
        """The name, with the settings that are not the usual ones."""
        shown = [f"{getattr(self, f.name)}" for f in fields(self) if getattr(self, f.name) != f.default]
        return f"{type(self).__name__}({', '.join(shown)})"

    def output_shape(self, shape: Shape) -> Shape:
        """Return the shape of one row's output, of an input of this shape."""
        return shape

    def tensor_shapes(self, shape: Shape) -> tuple[Shape, ...]:
        """Return the shapes of the parameters: weights, which a penalty shrinks, before biases, which it does not."""
        return ()

    def initial(self, shape: Shape, rng: np.random.Generator) -> Tensors:
        """Return parameters to start from."""
        return ()

    def forward(self, theta: Tensors, a: Array, how: PassKind) -> tuple[Array, Any]:
        """Return the output, and what `backward` needs."""
        return a, None

    def backward(self, theta: Tensors, kept: Any, slope: Array, gradient: Tensors) -> Array:
        """Fill the gradient of the parameters and return ∂L/∂input; `slope` is ∂L/∂output, and may be overwritten."""
        return slope


@dataclass(frozen=True)
class Dense(Layer):
    """z = W a + b: every unit sees all activations."""

    units: int
    start: str = "he"  # spread of the first weights: 'he' for ReLU and its kin, 'glorot' for S-shaped activations

    def output_shape(self, shape: Shape) -> Shape:
        if len(shape) != 1:
            raise DataError(
                got=f"images of shape {shape} before {self}",
                wanted="one number for each unit",
                fix="Put Flatten between.",
            )
        return (self.units,)

    def tensor_shapes(self, shape: Shape) -> tuple[Shape, ...]:
        return (self.units, *shape), (self.units,)

    def initial(self, shape: Shape, rng: np.random.Generator) -> Tensors:
        (fan_in,) = shape
        # Uniform on ±√(6 / fan in), or ±√(6 / (fan in + fan out)): activations keep their size through the layers.
        reach = math.sqrt(6 / (fan_in if self.start == "he" else fan_in + self.units))
        return rng.uniform(-reach, reach, (self.units, fan_in)), np.zeros(self.units)

    def forward(self, theta: Tensors, a: Array, how: PassKind) -> tuple[Array, Any]:
        W, b = theta
        z = W @ a
        z += b[:, None]
        return z, a

    def backward(self, theta: Tensors, kept: Any, slope: Array, gradient: Tensors) -> Array:
        W, _ = theta
        np.matmul(slope, kept.T, out=gradient[0])
        np.sum(slope, axis=1, out=gradient[1])
        return W.T @ slope


@dataclass(frozen=True)
class Sigmoid(Layer):
    """φ(z) = 1 / (1 + e⁻ᶻ), whose slope φ (1 - φ) is at most 1/4: gradients vanish through many of them."""

    def forward(self, theta: Tensors, a: Array, how: PassKind) -> tuple[Array, Any]:
        out = expit(a)
        return out, out

    def backward(self, theta: Tensors, kept: Any, slope: Array, gradient: Tensors) -> Array:
        slope *= kept
        slope *= 1 - kept
        return slope


@dataclass(frozen=True)
class Tanh(Layer):
    """φ(z) = tanh z."""

    def forward(self, theta: Tensors, a: Array, how: PassKind) -> tuple[Array, Any]:
        out = np.tanh(a)
        return out, out

    def backward(self, theta: Tensors, kept: Any, slope: Array, gradient: Tensors) -> Array:
        slope *= 1 - kept * kept
        return slope


@dataclass(frozen=True)
class ReLU(Layer):
    """φ(z) = max(z, 0), whose slope is 1 where the unit is active and 0 elsewhere; `leak` times z below 0."""

    leak: float = 0.0

    def forward(self, theta: Tensors, a: Array, how: PassKind) -> tuple[Array, Any]:
        out = np.maximum(a, self.leak * a) if self.leak else np.maximum(a, 0)
        return out, out

    def backward(self, theta: Tensors, kept: Any, slope: Array, gradient: Tensors) -> Array:
        active = kept > 0
        slope *= np.where(active, 1, kept.dtype.type(self.leak)) if self.leak else active
        return slope


@dataclass(frozen=True)
class GELU(Layer):
    """φ(z) = z Φ(z), with Φ the Gaussian distribution function (Hendrycks & Gimpel 2016)."""

    def forward(self, theta: Tensors, a: Array, how: PassKind) -> tuple[Array, Any]:
        return a * _gaussian_cdf(a), a

    def backward(self, theta: Tensors, kept: Any, slope: Array, gradient: Tensors) -> Array:
        density = np.exp(-0.5 * kept * kept) * kept.dtype.type(1 / math.sqrt(2 * math.pi))
        slope *= _gaussian_cdf(kept) + kept * density
        return slope


def _gaussian_cdf(z: Array) -> Array:
    return z.dtype.type(0.5) * (1 + erf(z * z.dtype.type(math.sqrt(0.5))))


@dataclass(frozen=True)
class Flatten(Layer):
    """Images (channels, height, width, n) as columns (channels · height · width, n)."""

    def output_shape(self, shape: Shape) -> Shape:
        return (math.prod(shape),)

    def forward(self, theta: Tensors, a: Array, how: PassKind) -> tuple[Array, Any]:
        return a.reshape(-1, a.shape[-1]), a.shape

    def backward(self, theta: Tensors, kept: Any, slope: Array, gradient: Tensors) -> Array:
        return slope.reshape(kept)


@dataclass(frozen=True)
class Dropout(Layer):
    """Sets each activation to 0 with probability `rate` in training, and divides the others by 1 - rate.

    Whether one is dropped follows from the step, its unit and its row alone, so that chunks may be worked on by any
    thread. Reference: Srivastava et al., Dropout (2014).
    """

    rate: float

    def forward(self, theta: Tensors, a: Array, how: PassKind) -> tuple[Array, Any]:
        if not how.training or self.rate == 0:
            return a, None
        units, n = math.prod(a.shape[:-1]), a.shape[-1]
        place = np.arange(units)[:, None] + units * (how.first + np.arange(n))
        bits = random_bits_of(place + (how.seed << 32))
        kept = (bits >= np.uint64(int(self.rate * 2**64))).reshape(a.shape) * a.dtype.type(1 / (1 - self.rate))
        return a * kept, kept

    def backward(self, theta: Tensors, kept: Any, slope: Array, gradient: Tensors) -> Array:
        return slope if kept is None else slope * kept
