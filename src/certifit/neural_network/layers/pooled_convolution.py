"""A convolution and the pooling after it as one layer, which does less copying.

The window of a pool takes u x v neighbouring places of the convolution. Together they look at one larger window of
the image: of 5 x 5 places for each of 2 x 2, one of 6 x 6. Only these larger windows are copied side by side, a
quarter as many. One matrix product with the weights at each of the u x v shifts, zeros around them, gives all places;
those of one pool lie in u x v slabs of memory, so that the largest or the mean is taken slab by slab.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from certifit.neural_network.layers.image_layers import (
    Conv2D,
    MaxPool,
    Pool,
    side_by_side,
    windows_of,
    with_zeros_around,
)
from certifit.neural_network.layers.pool_loops import add_windows, keep_largest, spread_slopes
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
    clip: bool = False  # whether a ReLU follows, which the largest values alone can have

    @property
    def stands_for(self) -> int:  # type: ignore[override]
        return 3 if self.clip else 2

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
        columns = side_by_side(windows_of(wide, self.tile, (u * s, v * s), (height, width)), work)
        matrix = self._shifted(weights.W)
        places = np.matmul(matrix, columns, out=work.array((len(matrix), columns.shape[1]), x.dtype))
        slabs = places.reshape(u * v, channels, -1)
        y = work.array(slabs.shape[1:], x.dtype)
        where = None
        if isinstance(self.pool, MaxPool):
            where = work.array(y.shape, np.uint8)
            keep_largest(slabs, weights.b, self.clip, y, where)
        else:
            np.add.reduce(slabs, axis=0, out=y)
            y *= x.dtype.type(1 / len(slabs))
            y += weights.b[:, None]
        return y.reshape(channels, height, width, -1), (columns, matrix, wide.shape, slabs, where, work)

    def backward(
        self, delta: Array, memory: Any, weights: LayerWeights, slopes: LayerWeights, further: bool = True
    ) -> Array | None:
        columns, matrix, shape, slabs, where, work = memory
        flat = delta.reshape(len(delta), -1)
        # What the slabs held is not needed any more: slopes take their place.
        if where is not None:
            spread_slopes(flat, where, slabs)
        else:
            slabs[...] = flat * flat.dtype.type(1 / len(slabs))
        np.sum(flat, axis=1, out=slopes.b)
        every = slabs.reshape(len(matrix), -1)
        self._unshift(every @ columns.T, slopes.W)
        if not further:
            return None
        back = np.matmul(matrix.T, every, out=work.array(columns.shape, delta.dtype))
        s, p, (u, v) = self.convolution.stride, self.convolution.padding, self.pool.window
        wide = work.array(shape, delta.dtype)
        add_windows(back.reshape(shape[0], *self.tile, *delta.shape[1:]), u * s, v * s, wide)
        return wide[:, p : shape[1] - p, p : shape[2] - p]

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
            clip = isinstance(second, MaxPool) and isinstance(third, ReLU)
            found.append(PooledConvolution(first, second, clip))
            k += 3 if clip else 2
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
