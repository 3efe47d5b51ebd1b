"""Lower bounds of units behind convolutions, from the window of each layer that a unit sees, its receptive field.

A unit of an image depends on a window of the layer before, that on a wider one, and so on back to the image. Weights
are kept on those windows alone, so that what a unit costs does not grow with the image.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from certifit.checkers.neural_network.plain_layers import (
    PlainActivation,
    PlainConvolution,
    PlainImages,
    PlainLayer,
    PlainNormalisation,
    PlainPool,
)
from certifit.rows import Array


class UnitLines(NamedTuple):
    """Lines below and above each unit of a layer, for every row (n, *units)."""

    below: Array  # slope of the line below, through 0
    above: Array  # slope of the line above
    offset: Array  # and its height at 0


class PoolLines(NamedTuple):
    """Lines below and above the largest value of each window, for every row (n, *outputs)."""

    place: Array  # of the window, whose value is below: the one with the highest lower bound
    sure: Array  # whether that is the largest, so that it is above too
    most: Array  # a height that no value of the window exceeds


class BoundedLayer(NamedTuple):
    """A layer, the shape of its rows, and lines where it is not linear."""

    layer: PlainLayer
    shape: tuple[int, ...]
    lines: UnitLines | PoolLines | None
    terms: Array | None  # of a linear one: sizes of the terms that each output adds up, for every row (n, *outputs)


class SeenWindows(NamedTuple):
    """Windows of images, one for each pair of a row and a unit: the row, and where the window begins (p,)."""

    row: Array
    top: Array
    left: Array

    def of(self, values: Array, height: int, width: int) -> Array:
        """The windows (p, channels, height, width) of images (n, channels, …), 0 outside."""
        above, before = max(0, -int(self.top.min())), max(0, -int(self.left.min()))
        below = max(0, int(self.top.max()) + height - values.shape[2])
        behind = max(0, int(self.left.max()) + width - values.shape[3])
        wide = np.pad(values, ((0, 0), (0, 0), (above, below), (before, behind)))
        seen = np.lib.stride_tricks.sliding_window_view(wide, (height, width), axis=(2, 3))
        row = self.row if len(values) > 1 else np.zeros_like(self.row)
        return seen[row, :, self.top + above, self.left + before]

    def grown(self, factor: int, padding: int = 0) -> SeenWindows:
        """The windows of the layer before, whose strides are `factor`."""
        return SeenWindows(self.row, self.top * factor - padding, self.left * factor - padding)


def see_windows(layers: list[BoundedLayer]) -> bool:
    """Whether units behind these layers see windows of an image, and of each layer between."""
    kinds = (PlainConvolution, PlainPool, PlainNormalisation, PlainActivation)
    return bool(layers) and isinstance(layers[0].layer, PlainImages) and all(
        isinstance(one.layer, kinds) and (not isinstance(one.layer, PlainPool) or len(set(one.layer.size)) == 1)
        for one in layers[1:]
    )  # fmt: skip


def numbers_of_window(layers: list[BoundedLayer], channels: int) -> int:
    """How many numbers the widest step of one unit's way back takes."""
    side, most = 1, channels
    for layer, shape, _, _ in reversed(layers[1:]):
        if isinstance(layer, PlainConvolution):
            most = max(most, layer.W[0].size * side * side)
            side = (side - 1) * layer.stride + max(layer.W.shape[2:])
        elif isinstance(layer, PlainPool):
            side *= layer.size[0]
        most = max(most, shape[0] * side * side)
    return most


def least_of_units(
    layers: list[BoundedLayer], units: tuple[SeenWindows, Array], X: Array, eps: Array, rounding: float
) -> Array:
    """Lower bounds (p,) of weighted sums over the channels of places behind these layers, over rows within eps.

    `units` are the places, as windows of one number, and the weights of their channels (p, channels).
    """
    seen, weights = units
    A = weights[:, :, None, None]
    c = size = np.zeros(len(A))
    for layer, shape, lines, terms in reversed(layers[1:]):
        height, width = A.shape[2:]
        added = np.zeros_like(A)
        if terms is not None:
            size = size + (np.abs(A) * seen.of(terms, height, width)).sum(axis=(1, 2, 3))
        if isinstance(lines, UnitLines):
            below, above, offset = (seen.of(values, height, width) for values in lines)
            down = np.minimum(A, 0.0)
            added, A = down * offset, (A - down) * below + down * above
        elif isinstance(layer, PlainPool):
            place = None
            if isinstance(lines, PoolLines):
                loose = np.minimum(A, 0.0) * ~seen.of(lines.sure, height, width)
                added, A = loose * seen.of(lines.most, height, width), A - loose
                place = seen.of(lines.place, height, width)
            side = layer.size[0]
            A = layer.backward(A, ((len(A), A.shape[1], height * side, width * side), place))
            seen = seen.grown(side)
        elif isinstance(layer, PlainConvolution):
            added = A * layer.b[:, None, None]
            high, wide = ((k - 1) * layer.stride + m for k, m in zip(A.shape[2:], layer.W.shape[2:], strict=True))
            memory = np.broadcast_to(0.0, (len(A), layer.W.shape[1], high, wide))
            A = layer._replace(padding=0).backward(A, memory)
            seen = seen.grown(layer.stride, layer.padding)
            A = A * seen.of(np.ones((1, 1, *shape[1:])), high, wide)
        elif isinstance(layer, PlainNormalisation):
            added = A * layer.forward(np.zeros((1, A.shape[1], 1, 1)))[0]
            A = layer.backward(A, None)
        c = c + added.sum(axis=(1, 2, 3))
        if lines is not None:
            size = size + np.abs(added).sum(axis=(1, 2, 3))
    images = seen.of(layers[0].layer.forward(X)[0], *A.shape[2:])
    spread = np.abs(A).sum(axis=(1, 2, 3)) * eps[seen.row]
    size = size + (np.abs(A) * np.abs(images)).sum(axis=(1, 2, 3)) + spread
    return (A * images).sum(axis=(1, 2, 3)) - spread + c - rounding * size
