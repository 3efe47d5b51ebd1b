"""Images moved a little while a network is trained, so that it learns what a shift or a turn does not change."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np

from certifit.neural_network.layers.row_layers import Layer, LayerShapes, LayerWeights, Shape
from certifit.neural_network.layers.workspace import Workspace
from certifit.rows import Array


@dataclass(frozen=True)
class MovedImages(Layer):
    """Flat rows of images, each turned, shifted and distorted by random amounts; zeros come in at the edges.

    An elastic distortion moves every pixel by random amounts that neighbours nearly share: uniform noise, made smooth
    by a Gaussian window (Simard, Steinkraus & Platt 2003, whose window is a seventh of the image wide, as here).

    Between pixels values are interpolated linearly in both directions. Without training, rows pass as they are.
    """

    shape: tuple[int, int, int]  # height, width, channels
    shift: int  # most pixels in each direction, whole ones
    degrees: float  # most of a turn
    elastic: float = 0.0  # standard deviation, in pixels, of an elastic distortion in each direction

    stands_for: ClassVar[int] = 0
    draws: ClassVar[bool] = True

    def shapes(self, rows: Shape) -> LayerShapes:
        return LayerShapes(rows)

    def forward(self, x: Array, weights: LayerWeights, work: Workspace) -> tuple[Array, Any]:
        if work.draw is None:
            return x, None
        n, (h, w, channels) = len(x), self.shape
        down, right = work.draw.integers(-self.shift, self.shift + 1, (2, n, 1))
        turn = np.deg2rad(self.degrees) * work.draw.uniform(-1, 1, (n, 1))
        wide = np.zeros((n, h + 2, w + 2, channels), x.dtype)
        wide[:, 1:-1, 1:-1] = x.reshape(n, h, w, channels)
        pixels = wide.reshape(n, -1, channels)
        i, j = (place.ravel() for place in np.mgrid[:h, :w])
        if not self.degrees and not self.elastic:
            return self._at(pixels, i - down, j - right).reshape(n, -1), None
        # Where each pixel of the moved image was before.
        y, z = i - down - (h - 1) / 2, j - right - (w - 1) / 2
        top, across = np.cos(turn) * y - np.sin(turn) * z, np.sin(turn) * y + np.cos(turn) * z
        top, across = top + (h - 1) / 2, across + (w - 1) / 2
        if self.elastic:
            noise = work.draw.uniform(-1, 1, (2, n, h, w))
            moved = self.elastic * (smoothing(h) @ noise @ smoothing(w).T).reshape(2, n, -1)
            top, across = top + np.sqrt(3) * moved[0], across + np.sqrt(3) * moved[1]
        i, j = np.floor(top).astype(int), np.floor(across).astype(int)
        low, far = ((place - floor)[:, :, None].astype(x.dtype) for place, floor in ((top, i), (across, j)))
        upper = (1 - far) * self._at(pixels, i, j) + far * self._at(pixels, i, j + 1)
        lower = (1 - far) * self._at(pixels, i + 1, j) + far * self._at(pixels, i + 1, j + 1)
        return ((1 - low) * upper + low * lower).reshape(n, -1), None

    def backward(
        self, delta: Array, memory: Any, weights: LayerWeights, slopes: LayerWeights, further: bool = True
    ) -> Array | None:
        return None  # no layer before it has weights

    def _at(self, pixels: Array, i: Array, j: Array) -> Array:
        """Pixels (n, places, channels) of row i and column j; zeros outside of the image, where the border is."""
        h, w, _ = self.shape
        index = (np.clip(i, -1, h) + 1) * (w + 2) + np.clip(j, -1, w) + 1
        return np.take_along_axis(pixels, index[:, :, None], axis=1)


@cache
def smoothing(size: int, window: float = 1 / 7) -> Array:
    """A matrix that makes noise along one side smooth by a Gaussian window, and keeps its variance at every place."""
    place = np.arange(size)
    near = np.exp(-0.5 * ((place[:, None] - place) / max(window * size, 1e-9)) ** 2)
    return near / np.linalg.norm(near, axis=1, keepdims=True)
