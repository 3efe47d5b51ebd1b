"""A convolution and the pooling after it as one layer, which does less copying.

The window of a pool takes u x v neighbouring places of the convolution. Together they look at one larger window of
the image: of 5 x 5 places for each of 2 x 2, one of 6 x 6. Only these larger windows are copied side by side, a
quarter as many. One matrix product with the weights at each of the u x v shifts, zeros around them, gives all places;
those of one pool lie in u x v slabs of memory, so that the largest or the mean is taken slab by slab.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from certifit.neural_network.layers.image_layers import Conv2D, MaxPool, Pool, side_by_side, with_zeros_around, zeros
from certifit.neural_network.layers.row_layers import Layer, LayerShapes, LayerWeights, ReLU, Shape
from certifit.neural_network.layers.workspace import Workspace
from certifit.rows import Array


@dataclass(frozen=True)
class FusionTuning:
    """When one larger window is faster than several small ones, by measured times."""

    products: float = 0.07  # time of three matrix products for each weight and output, relative to the next two
    copied: float = 1.5  # of copying a window's place, and of adding its slopes back


@dataclass(frozen=True)
class PooledConvolution(Layer):
    """A convolution whose places are pooled at once."""

    convolution: Conv2D
    pool: Pool

    stands_for: ClassVar[int] = 2

    @property
    def tile(self) -> tuple[int, int]:
        """The sides of the window that all places of one pool look at."""
        (a, b), (u, v), s = self.convolution.window, self.pool.window, self.convolution.stride
        return a + (u - 1) * s, b + (v - 1) * s

    def shapes(self, rows: Shape) -> LayerShapes:
        found = self.convolution.shapes(rows)
        return found._replace(output=self.pool.shapes(found.output).output)

    def forward(self, x: Array, weights: LayerWeights, work: Workspace) -> tuple[Array, Any]:
        s, (u, v) = self.convolution.stride, self.pool.window
        channels, height, width = self.shapes(x.shape[:3]).output
        wide = with_zeros_around(x, self.convolution.padding, work)
        seen = np.lib.stride_tricks.sliding_window_view(wide, self.tile, axis=(1, 2))
        columns = side_by_side(seen[:, :: u * s, :: v * s][:, :height, :width], work)
        matrix = self._shifted(weights.W)
        places = np.matmul(matrix, columns, out=work.array((len(matrix), columns.shape[1]), x.dtype))
        places = places.reshape(u * v, channels, -1)
        pooled = np.maximum if isinstance(self.pool, MaxPool) else np.add
        y = work.array(places.shape[1:], x.dtype)
        y[...] = places[0]
        for one in places[1:]:
            pooled(y, one, out=y)
        if pooled is np.add:
            y *= x.dtype.type(1 / len(places))
        answer = np.add(y, weights.b[:, None], out=work.array(y.shape, x.dtype))
        return answer.reshape(channels, height, width, -1), (columns, matrix, wide.shape, places, y, work)

    def backward(
        self, delta: Array, memory: Any, weights: LayerWeights, slopes: LayerWeights, further: bool = True
    ) -> Array | None:
        columns, matrix, shape, places, y, work = memory
        flat = delta.reshape(len(delta), -1)
        np.sum(flat, axis=1, out=slopes.b)
        every = work.array(places.shape, delta.dtype)
        if isinstance(self.pool, MaxPool):
            left = every[-1]  # slopes that no place has taken yet: what the others leave is the last one's
            left[...] = flat
            for one, target in zip(places[:-1], every[:-1], strict=True):
                np.multiply(left, one == y, out=target)
                left -= target
        else:
            every[...] = flat * flat.dtype.type(1 / len(places))
        every = every.reshape(len(matrix), -1)
        self._unshift(every @ columns.T, slopes.W)
        if not further:
            return None
        back = np.matmul(matrix.T, every, out=work.array(columns.shape, delta.dtype))
        return self._add_windows(back.reshape(shape[0], *self.tile, *delta.shape[1:]), shape, work)

    def _shifts(self) -> Iterator[tuple[int, slice, slice]]:
        """The place of each of a pool's windows in the larger one."""
        (a, b), (u, v), s = self.convolution.window, self.pool.window, self.convolution.stride
        for k in range(u * v):
            i, j = s * (k // v), s * (k % v)
            yield k, slice(i, i + a), slice(j, j + b)

    def _shifted(self, W: Array) -> Array:
        """The weights at every shift, zeros around them: (u · v · channels, places of the larger window)."""
        u, v = self.pool.window
        found = np.zeros((u * v, *W.shape[:2], *self.tile), W.dtype)
        for k, rows, columns in self._shifts():
            found[k, :, :, rows, columns] = W
        return found.reshape(u * v * len(W), -1)

    def _unshift(self, found: Array, slopes: Array) -> None:
        """Add the slopes in all copies of the weights."""
        u, v = self.pool.window
        every = found.reshape(u * v, *slopes.shape[:2], *self.tile)
        slopes[...] = 0
        for k, rows, columns in self._shifts():
            slopes += every[k, :, :, rows, columns]

    def _add_windows(self, back: Array, shape: Shape, work: Workspace) -> Array:
        """Add slopes in overlapping windows where they lie in the image, without its padding.

        Windows begin every `down` rows and `right` columns: their first `down` x `right` places are added for all
        windows at once, then the next.
        """
        p, s, (u, v) = self.convolution.padding, self.convolution.stride, self.pool.window
        down, right = u * s, v * s
        channels, A, B, height, width, n = back.shape
        tall = max(height + (A - 1) // down, -(-shape[1] // down))
        broad = max(width + (B - 1) // right, -(-shape[2] // right))
        wide = zeros((channels, down * tall, right * broad, n), back.dtype, work)
        target = wide.reshape(channels, tall, down, broad, right, n).transpose(0, 2, 4, 1, 3, 5)
        for i in range(0, A, down):
            for j in range(0, B, right):
                part = back[:, i : i + down, j : j + right]
                y, x = i // down, j // right
                target[:, : part.shape[1], : part.shape[2], y : y + height, x : x + width] += part
        return wide[:, p : shape[1] - p, p : shape[2] - p]


def fuse_pools(layers: Sequence[Layer], tuning: FusionTuning = FusionTuning()) -> tuple[Layer, ...]:
    """The same network with convolutions and the pooling after them as one layer, where that is faster.

    ReLU and the largest value may change places: nothing else does, and every number stays what it is.
    """
    found: list[Layer] = []
    k = 0
    while k < len(layers):
        ahead = [*layers[k : k + 3], None, None]
        first, second, third = ahead[:3]
        if isinstance(second, ReLU) and isinstance(third, MaxPool):
            second, third = third, second
        if isinstance(first, Conv2D) and isinstance(second, Pool) and _pays(first, second, tuning):
            found.append(PooledConvolution(first, second))
            if second is not layers[k + 1]:
                found.append(ReLU())
            k += 2 if second is layers[k + 1] else 3
        else:
            found.append(layers[k])
            k += 1
    return tuple(found)


def _pays(convolution: Conv2D, pool: Pool, tuning: FusionTuning) -> bool:
    """Whether less copying is worth the products with zeros."""
    joint = PooledConvolution(convolution, pool)
    (a, b), (u, v), (A, B) = convolution.window, pool.window, joint.tile
    grown = A * B / (a * b)
    return tuning.products * convolution.channels * (grown - 1) < tuning.copied * (1 - grown / (u * v))
