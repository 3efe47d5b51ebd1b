"""Layers as the checker computes them: plain NumPy in float64, rows first, images as (n, channels, height, width).

`forward` gives the output and what `backward` needs; `backward` gives the slopes in the input, in the weights and in
the biases. `switches` says on which side of a kink each row is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import erf, log_expit

from certifit.rows import Array

Passed = tuple[Array, Array | None, Array | None]  # slopes in the input, the weights and the biases


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

    def backward(self, delta: Array, memory: Any) -> Passed:
        return delta @ self.W.T, memory.T @ delta, delta.sum(axis=0)

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

    def backward(self, delta: Array, memory: Any) -> Passed:
        return delta * memory, None, None

    def switches(self, memory: Any, rows: int) -> Array:
        kinked = self.name in ("relu", "leaky_relu")
        return (memory == 1.0).reshape(rows, -1).astype(np.int64) if kinked else _no_switches(rows)


class PlainImages(NamedTuple):
    """Flat rows as images."""

    shape: tuple[int, int, int]  # height, width, channels

    def forward(self, x: Array) -> tuple[Array, Any]:
        return np.moveaxis(x.reshape(len(x), *self.shape), 3, 1), None

    def backward(self, delta: Array, memory: Any) -> Passed:
        return np.moveaxis(delta, 1, 3).reshape(len(delta), -1), None, None

    def switches(self, memory: Any, rows: int) -> Array:
        return _no_switches(rows)


class PlainConvolution(NamedTuple):
    """Every output is a weighted sum over a window of all channels."""

    W: Array  # (outputs, channels, height, width)
    b: Array  # (outputs,)
    stride: int
    padding: int

    def _windows(self, x: Array) -> Array:
        """(n, channels, rows, columns, height, width)."""
        p, s = self.padding, self.stride
        wide = np.pad(x, ((0, 0), (0, 0), (p, p), (p, p)))
        seen = np.lib.stride_tricks.sliding_window_view(wide, self.W.shape[2:], axis=(2, 3))
        return seen[:, :, ::s, ::s]

    def forward(self, x: Array) -> tuple[Array, Any]:
        out = np.tensordot(self._windows(x), self.W, axes=((1, 4, 5), (1, 2, 3)))
        return np.moveaxis(out + self.b, 3, 1), x

    def backward(self, delta: Array, memory: Any) -> Passed:
        slopes = np.tensordot(delta, self._windows(memory), axes=((0, 2, 3), (0, 2, 3)))
        n, channels, height, width = memory.shape
        p, s = self.padding, self.stride
        wide = np.zeros((n, channels, height + 2 * p, width + 2 * p))
        rows, columns = delta.shape[2:]
        for i in range(self.W.shape[2]):
            for j in range(self.W.shape[3]):
                part = np.tensordot(delta, self.W[:, :, i, j], axes=(1, 0))  # (n, rows, columns, channels)
                wide[:, :, i : i + s * rows : s, j : j + s * columns : s] += np.moveaxis(part, 3, 1)
        return wide[:, :, p : p + height, p : p + width], slopes, delta.sum(axis=(0, 2, 3))

    def reach(self, memory: Any) -> float:
        return float(np.abs(self._windows(memory)).sum(axis=(1, 4, 5)).max(initial=0.0))

    def switches(self, memory: Any, rows: int) -> Array:
        return _no_switches(rows)


class PlainPool(NamedTuple):
    """The largest value of each window, or their mean; windows do not overlap."""

    size: tuple[int, int]
    largest: bool

    def _windows(self, x: Array) -> Array:
        """(n, channels, rows, columns, height * width)."""
        a, b = self.size
        n, channels, height, width = x.shape
        cut = x[:, :, : height // a * a, : width // b * b].reshape(n, channels, height // a, a, width // b, b)
        return cut.transpose(0, 1, 2, 4, 3, 5).reshape(n, channels, height // a, width // b, a * b)

    def forward(self, x: Array) -> tuple[Array, Any]:
        seen = self._windows(x)
        place = seen.argmax(axis=4) if self.largest else None
        return seen.max(axis=4) if self.largest else seen.mean(axis=4), (x.shape, place)

    def backward(self, delta: Array, memory: Any) -> Passed:
        shape, place = memory
        a, b = self.size
        back = np.zeros(shape)
        for k in range(a * b):
            part = delta * (place == k) if self.largest else delta / (a * b)
            i, j = divmod(k, b)
            back[:, :, i : i + a * delta.shape[2] : a, j : j + b * delta.shape[3] : b] = part
        return back, None, None

    def switches(self, memory: Any, rows: int) -> Array:
        return memory[1].reshape(rows, -1) if self.largest else _no_switches(rows)


class PlainFlatten(NamedTuple):
    """Images as rows: channel by channel, row by row."""

    def forward(self, x: Array) -> tuple[Array, Any]:
        return x.reshape(len(x), -1), x.shape

    def backward(self, delta: Array, memory: Any) -> Passed:
        return delta.reshape(memory), None, None

    def switches(self, memory: Any, rows: int) -> Array:
        return _no_switches(rows)


PlainLayer = (
    PlainDense | PlainActivation | PlainImages | PlainConvolution | PlainPool | PlainFlatten
)  # what a network is made of
