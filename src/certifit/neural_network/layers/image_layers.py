"""Layers of images: convolution, pooling, flattening.

Images lie as (channels, height, width, rows), the rows of a chunk innermost: all that a window needs of a chunk is
then one run of memory for each of its places, and copying it costs little. A convolution is one matrix product, of
its weights with the windows side by side; so are its slopes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from certifit.exceptions import DataError
from certifit.neural_network.layers.pool_loops import add_windows
from certifit.neural_network.layers.row_layers import Layer, LayerShapes, LayerWeights, Shape
from certifit.neural_network.layers.workspace import Workspace
from certifit.rows import Array


def _image(rows: Shape, wanted: str) -> tuple[int, int, int]:
    """Channels, height and width."""
    if len(rows) != 3:
        raise DataError(got="", wanted=wanted, fix="Put it before Flatten and Dense.")
    return rows[0], rows[1], rows[2]


def zeros(shape: Shape, dtype: DTypeLike, work: Workspace) -> Array:
    """An array of zeros."""
    found = work.array(shape, dtype)
    found[...] = 0
    return found


def with_zeros_around(x: Array, p: int, work: Workspace) -> Array:
    """Images (channels, height, width, rows) with p zeros on each side."""
    if not p:
        return x
    channels, h, w, n = x.shape
    wide = zeros((channels, h + 2 * p, w + 2 * p, n), x.dtype, work)
    wide[:, p : p + h, p : p + w] = x
    return wide


def windows_of(x: Array, sides: tuple[int, int], steps: tuple[int, int], counts: tuple[int, int]) -> Array:
    """Views of the windows of images (channels, height, width, rows) as (channels, *sides, *counts, rows)."""
    channel, down, right, row = x.strides
    strides = (channel, down, right, down * steps[0], right * steps[1], row)
    return np.lib.stride_tricks.as_strided(x, (len(x), *sides, *counts, x.shape[3]), strides, writeable=False)


def side_by_side(seen: Array, work: Workspace) -> Array:
    """Windows (channels, a, b, height, width, rows) as columns of (channels · a · b, height · width · rows)."""
    columns = work.array(seen.shape, seen.dtype)
    columns[...] = seen
    return columns.reshape(math.prod(seen.shape[:3]), -1)


@dataclass(frozen=True)
class Images(Layer):
    """Flat rows as images of this height, width and number of channels."""

    shape: tuple[int, int, int]

    def shapes(self, rows: Shape) -> LayerShapes:
        if int(np.prod(rows)) != int(np.prod(self.shape)):
            raise DataError(got="", wanted=f"rows of {int(np.prod(self.shape))} values, as many as the image has")
        h, w, channels = self.shape
        return LayerShapes((channels, h, w))

    def forward(self, x: Array, weights: LayerWeights, work: Workspace) -> tuple[Array, Any]:
        seen = x.reshape(-1, *self.shape).transpose(3, 1, 2, 0)
        y = work.array(seen.shape, x.dtype)
        y[...] = seen
        return y, None

    def backward(
        self, delta: Array, memory: Any, weights: LayerWeights, slopes: LayerWeights, further: bool = True
    ) -> Array | None:
        return delta.transpose(3, 1, 2, 0).reshape(delta.shape[3], -1)


@dataclass(frozen=True)
class Conv2D(Layer):
    """Every unit is a weighted sum over a window of all channels, the same for every place of the window."""

    channels: int
    size: tuple[int, int] | int = 5
    stride: int = 1
    padding: int = 0

    @property
    def window(self) -> tuple[int, int]:
        return (self.size, self.size) if isinstance(self.size, int) else self.size

    def shapes(self, rows: Shape) -> LayerShapes:
        c, h, w = _image(rows, "images, of three dimensions")
        a, b = self.window
        height, width = (h + 2 * self.padding - a) // self.stride + 1, (w + 2 * self.padding - b) // self.stride + 1
        if height < 1 or width < 1 or h + 2 * self.padding < a or w + 2 * self.padding < b:
            raise DataError(
                got="",
                wanted=f"images at least as large as the window of {a} x {b}",
                fix="Use a smaller one, or padding.",
            )
        fans, weights = (c * a * b, self.channels * a * b), (self.channels, c, a, b)
        return LayerShapes((self.channels, height, width), weights, (self.channels,), fans, height * width)

    def forward(self, x: Array, weights: LayerWeights, work: Workspace) -> tuple[Array, Any]:
        s = self.stride
        wide = with_zeros_around(x, self.padding, work)
        _, height, width = self.shapes(x.shape[:3]).output
        columns = side_by_side(windows_of(wide, self.window, (s, s), (height, width)), work)
        y = work.array((self.channels, columns.shape[1]), x.dtype)
        np.matmul(weights.W.reshape(self.channels, -1), columns, out=y)
        y += weights.b[:, None]
        return y.reshape(self.channels, height, width, -1), (columns, wide.shape, work)

    def backward(
        self, delta: Array, memory: Any, weights: LayerWeights, slopes: LayerWeights, further: bool = True
    ) -> Array | None:
        columns, shape, work = memory
        flat = delta.reshape(self.channels, -1)
        np.matmul(flat, columns.T, out=slopes.W.reshape(self.channels, -1))
        np.sum(flat, axis=1, out=slopes.b)
        if not further:
            return None
        _, height, width, n = delta.shape
        p, s, (a, b) = self.padding, self.stride, self.window
        back = np.matmul(weights.W.reshape(self.channels, -1).T, flat, out=work.array(columns.shape, delta.dtype))
        wide = work.array(shape, delta.dtype)
        add_windows(back.reshape(shape[0], a, b, height, width, n), s, s, wide)
        return wide[:, p : shape[1] - p, p : shape[2] - p] if p else wide


@dataclass(frozen=True)
class Pool(Layer):
    """One value of each window; windows lie side by side, and what is left over at the edges is not looked at."""

    size: tuple[int, int] | int = 2

    @property
    def window(self) -> tuple[int, int]:
        return (self.size, self.size) if isinstance(self.size, int) else self.size

    def shapes(self, rows: Shape) -> LayerShapes:
        c, h, w = _image(rows, "images, of three dimensions")
        a, b = self.window
        if h < a or w < b:
            raise DataError(got="", wanted=f"images at least as large as the window of {a} x {b}", fix="Pool less.")
        return LayerShapes((c, h // a, w // b))

    def _parts(self, x: Array) -> list[Array]:
        """The values at each place of the windows."""
        a, b = self.window
        h, w = x.shape[1] // a * a, x.shape[2] // b * b
        return [x[:, i:h:a, j:w:b] for i in range(a) for j in range(b)]


@dataclass(frozen=True)
class MaxPool(Pool):
    """The largest value of each window, the first of equal ones."""

    def forward(self, x: Array, weights: LayerWeights, work: Workspace) -> tuple[Array, Any]:
        parts = self._parts(x)
        y = work.array(parts[0].shape, x.dtype)
        y[...] = parts[0]
        for part in parts[1:]:
            np.maximum(y, part, out=y)
        return y, (x, y, work)

    def backward(
        self, delta: Array, memory: Any, weights: LayerWeights, slopes: LayerWeights, further: bool = True
    ) -> Array | None:
        x, y, work = memory
        back = zeros(x.shape, x.dtype, work)
        left = delta.copy()  # slopes that no place has taken yet
        for source, target in zip(self._parts(x), self._parts(back), strict=True):
            np.multiply(left, source == y, out=target)
            left -= target
        return back


@dataclass(frozen=True)
class AveragePool(Pool):
    """The mean of each window (subsampling)."""

    def forward(self, x: Array, weights: LayerWeights, work: Workspace) -> tuple[Array, Any]:
        parts = self._parts(x)
        y = parts[0].copy()
        for part in parts[1:]:
            y += part
        y *= x.dtype.type(1 / len(parts))
        return y, (x.shape, work)

    def backward(
        self, delta: Array, memory: Any, weights: LayerWeights, slopes: LayerWeights, further: bool = True
    ) -> Array | None:
        shape, work = memory
        back = zeros(shape, delta.dtype, work)
        parts = self._parts(back)
        share = delta * delta.dtype.type(1 / len(parts))
        for part in parts:
            part[...] = share
        return back


@dataclass(frozen=True)
class Flatten(Layer):
    """Images as rows, channel by channel and row by row."""

    def shapes(self, rows: Shape) -> LayerShapes:
        if len(rows) != 3:
            raise DataError(got="", wanted="images, of three dimensions", fix="Flatten them once.")
        return LayerShapes((int(np.prod(rows)),))

    def forward(self, x: Array, weights: LayerWeights, work: Workspace) -> tuple[Array, Any]:
        return np.ascontiguousarray(x.reshape(-1, x.shape[3]).T), x.shape

    def backward(
        self, delta: Array, memory: Any, weights: LayerWeights, slopes: LayerWeights, further: bool = True
    ) -> Array | None:
        return np.ascontiguousarray(delta.T).reshape(memory)
