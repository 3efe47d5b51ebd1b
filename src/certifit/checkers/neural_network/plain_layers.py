"""Layers as the checker computes them: plain NumPy in float64, rows first, images as (n, channels, height, width).

`forward` gives the output and what `backward` needs; `backward` gives the slopes in the input, `slopes` those in the
weights and in the biases of a layer that has any. `switches` says on which side of a kink each row is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import erf, log_expit

from certifit.checkers.neural_network.plain_columns import PlainColumnDense, PlainPeriodic, PlainRobustColumns
from certifit.rows import Array

ACTIVATIONS = ("identity", "logistic", "tanh", "relu", "leaky_relu", "gelu")


def activate(name: str, z: Array) -> tuple[Array, Array]:
    """The values of an activation, and its slopes."""
    if name == "identity":
        return z, np.ones_like(z)
    if name == "logistic":
        value = np.exp(log_expit(z))
        return value, value * np.exp(log_expit(-z))
    if name == "tanh":
        value = np.tanh(z)
        return value, 1.0 - value**2
    if name == "gelu":
        share = 0.5 * (1.0 + erf(z / np.sqrt(2.0)))
        return z * share, share + z * np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi)
    slope = np.where(z > 0, 1.0, 0.01 if name == "leaky_relu" else 0.0)
    return slope * z, slope


def _no_switches(rows: int) -> Array:
    return np.zeros((rows, 1), dtype=np.int64)


class PlainDense(NamedTuple):
    """x W + b."""

    W: Array  # (inputs, outputs)
    b: Array  # (outputs,)

    def forward(self, x: Array) -> tuple[Array, Any]:
        return x @ self.W + self.b, x

    def backward(self, delta: Array, memory: Any) -> Array:
        return delta @ self.W.T

    def slopes(self, delta: Array, memory: Any) -> tuple[Array, Array]:
        return memory.T @ delta, delta.sum(axis=0)

    def reach(self, memory: Any) -> float:
        """The largest sum of sizes that one output adds up."""
        return float(np.abs(memory).sum(axis=1).max(initial=0.0))

    def switches(self, memory: Any, rows: int) -> Array:
        return _no_switches(rows)


class PlainActivation(NamedTuple):
    """A function of each value."""

    name: str

    def forward(self, x: Array) -> tuple[Array, Any]:
        return activate(self.name, x)

    def backward(self, delta: Array, memory: Any) -> Array:
        return delta * memory

    def switches(self, memory: Any, rows: int) -> Array:
        kinked = self.name in ("relu", "leaky_relu")
        return (memory == 1.0).reshape(rows, -1).astype(np.int64) if kinked else _no_switches(rows)


class PlainImages(NamedTuple):
    """Flat rows as images."""

    shape: tuple[int, int, int]  # height, width, channels

    def forward(self, x: Array) -> tuple[Array, Any]:
        return np.moveaxis(x.reshape(len(x), *self.shape), 3, 1), None

    def backward(self, delta: Array, memory: Any) -> Array:
        return np.moveaxis(delta, 1, 3).reshape(len(delta), -1)

    def switches(self, memory: Any, rows: int) -> Array:
        return _no_switches(rows)


class PlainConvolution(NamedTuple):
    """Every output is a weighted sum over a window of all channels."""

    W: Array  # (outputs, channels, height, width)
    b: Array  # (outputs,)
    stride: int
    padding: int

    def _windows(self, x: Array) -> Array:
        """(n, channels, height, width, rows, columns): what each place of the window sees, a copy."""
        p, s = self.padding, self.stride
        wide = np.pad(x, ((0, 0), (0, 0), (p, p), (p, p)))
        seen = np.lib.stride_tricks.sliding_window_view(wide, self.W.shape[2:], axis=(2, 3))[:, :, ::s, ::s]
        return np.ascontiguousarray(seen.transpose(0, 1, 4, 5, 2, 3))

    def forward(self, x: Array) -> tuple[Array, Any]:
        seen = self._windows(x)
        out = self.W.reshape(len(self.W), -1) @ seen.reshape(len(x), self.W[0].size, -1)
        return out.reshape(len(x), len(self.W), *seen.shape[4:]) + self.b[:, None, None], x

    def backward(self, delta: Array, memory: Any) -> Array:
        n, channels, height, width = memory.shape
        p, s = self.padding, self.stride
        wide = np.zeros((n, channels, height + 2 * p, width + 2 * p))
        rows, columns = delta.shape[2:]
        back = self.W.reshape(len(self.W), -1).T @ delta.reshape(n, len(self.W), -1)
        parts = back.reshape(n, *self.W.shape[1:], rows, columns)
        for i in range(self.W.shape[2]):
            for j in range(self.W.shape[3]):
                wide[:, :, i : i + s * rows : s, j : j + s * columns : s] += parts[:, :, i, j]
        return wide[:, :, p : p + height, p : p + width]

    def slopes(self, delta: Array, memory: Any) -> tuple[Array, Array]:
        n, outputs = delta.shape[:2]
        seen = self._windows(memory).reshape(n, self.W[0].size, -1)
        found = (delta.reshape(n, outputs, -1) @ seen.transpose(0, 2, 1)).sum(axis=0)
        return found.reshape(self.W.shape), delta.sum(axis=(0, 2, 3))

    def reach(self, memory: Any) -> float:
        return float(np.abs(self._windows(memory)).sum(axis=(1, 2, 3)).max(initial=0.0))

    def switches(self, memory: Any, rows: int) -> Array:
        return _no_switches(rows)


class PlainNormalisation(NamedTuple):
    """Each unit or channel about its mean and over its deviation, then scaled and moved."""

    W: Array  # (channels,)
    b: Array  # (channels,)
    moments: Array  # (2, channels) mean and variance
    epsilon: float = 1e-5

    def _along(self, values: Array, x: Array) -> Array:
        return values.reshape(1, -1, *(1,) * (x.ndim - 2))

    def _scale(self) -> Array:
        return 1.0 / np.sqrt(self.moments[1] + self.epsilon)

    def forward(self, x: Array) -> tuple[Array, Any]:
        normed = (x - self._along(self.moments[0], x)) * self._along(self._scale(), x)
        return normed * self._along(self.W, x) + self._along(self.b, x), normed

    def backward(self, delta: Array, memory: Any) -> Array:
        return delta * self._along(self.W * self._scale(), delta)

    def slopes(self, delta: Array, memory: Any) -> tuple[Array, Array]:
        others = (0, *range(2, delta.ndim))
        return (delta * memory).sum(axis=others), delta.sum(axis=others)

    def reach(self, memory: Any) -> float:
        return float(np.abs(memory).max(initial=0.0))

    def switches(self, memory: Any, rows: int) -> Array:
        return _no_switches(rows)


class PlainPool(NamedTuple):
    """The largest value of each window, or their mean; windows do not overlap."""

    size: tuple[int, int]
    largest: bool

    def windows(self, x: Array) -> Array:
        """The values at each place of the windows, (height * width, n, channels, rows, columns)."""
        a, b = self.size
        height, width = x.shape[2] // a * a, x.shape[3] // b * b
        return np.stack([x[:, :, i:height:a, j:width:b] for i in range(a) for j in range(b)])

    def forward(self, x: Array) -> tuple[Array, Any]:
        seen = self.windows(x)
        if not self.largest:
            return seen.mean(axis=0), (x.shape, None)
        value, place = seen[0], np.zeros(seen.shape[1:], dtype=np.int64)
        for k in range(1, len(seen)):  # the first of equal ones
            place[seen[k] > value] = k
            value = np.maximum(value, seen[k])
        return value, (x.shape, place)

    def backward(self, delta: Array, memory: Any) -> Array:
        shape, place = memory
        a, b = self.size
        back = np.zeros(shape)
        for k in range(a * b):
            part = delta * (place == k) if self.largest else delta / (a * b)
            i, j = divmod(k, b)
            back[:, :, i : i + a * delta.shape[2] : a, j : j + b * delta.shape[3] : b] = part
        return back

    def switches(self, memory: Any, rows: int) -> Array:
        return memory[1].reshape(rows, -1) if self.largest else _no_switches(rows)


class PlainFlatten(NamedTuple):
    """Images as rows: channel by channel, row by row."""

    def forward(self, x: Array) -> tuple[Array, Any]:
        return x.reshape(len(x), -1), x.shape

    def backward(self, delta: Array, memory: Any) -> Array:
        return delta.reshape(memory)

    def switches(self, memory: Any, rows: int) -> Array:
        return _no_switches(rows)


class PlainReshape(NamedTuple):
    """The numbers of a row, in their order, in another shape."""

    shape: tuple[int, ...]

    def forward(self, x: Array) -> tuple[Array, Any]:
        return x.reshape(len(x), *self.shape), x.shape

    def backward(self, delta: Array, memory: Any) -> Array:
        return delta.reshape(memory)

    def switches(self, memory: Any, rows: int) -> Array:
        return _no_switches(rows)


class PlainTranspose(NamedTuple):
    """The dimensions of a row in another order."""

    order: tuple[int, ...]  # with 0, the rows, first

    def forward(self, x: Array) -> tuple[Array, Any]:
        return x.transpose(self.order), None

    def backward(self, delta: Array, memory: Any) -> Array:
        return delta.transpose(np.argsort(self.order))

    def switches(self, memory: Any, rows: int) -> Array:
        return _no_switches(rows)


WeightedLayer = PlainDense | PlainConvolution | PlainNormalisation | PlainPeriodic | PlainColumnDense
PlainLayer = (
    WeightedLayer
    | PlainActivation
    | PlainImages
    | PlainPool
    | PlainFlatten
    | PlainReshape
    | PlainTranspose
    | PlainRobustColumns
)  # what a network is made of
