"""Layers that look at each column of a table by itself: robust scaling, and embeddings of numbers.

A number becomes a few: itself, and sums of cosines of it whose frequencies and phases are learnt, so that the dense
layers behind need not build every bend of a column from ReLUs. Values between lie as (columns, rows, numbers).
References: Gorishniy, Rubachev & Babenko, "On embeddings for numerical features in tabular deep learning" (2022);
Holzmüller, Grinsztajn & Steinwart, "Better by default" (2024), whose embedding this is at the start of training.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from certifit.neural_network.layers.row_layers import Layer, LayerShapes, LayerWeights, Shape
from certifit.neural_network.layers.workspace import Workspace
from certifit.rows import Array


@dataclass(frozen=True, eq=False)
class RobustColumns(Layer):
    """z = (x - centre) / scale, smoothly held between -clip and clip: z / sqrt(1 + (z / clip)²)."""

    centre: Array  # (columns,)
    scale: Array  # (columns,); a column of scale 0 is 0
    clip: float = 3.0

    def shapes(self, rows: Shape) -> LayerShapes:
        return LayerShapes(rows)

    def forward(self, x: Array, weights: LayerWeights, work: Workspace) -> tuple[Array, Any]:
        factor = np.divide(1.0, self.scale, where=self.scale > 0, out=np.zeros(len(self.scale)))
        z = (x - self.centre.astype(x.dtype)) * factor.astype(x.dtype)
        shrunk = 1 / np.sqrt(1 + (z / x.dtype.type(self.clip)) ** 2)
        return z * shrunk, shrunk**3 * factor.astype(x.dtype)

    def backward(
        self, delta: Array, memory: Any, weights: LayerWeights, slopes: LayerWeights, further: bool = True
    ) -> Array | None:
        return delta * memory if further else None


@dataclass(frozen=True)
class Periodic(Layer):
    """Each number x as (x, cos(x W₁ + b₁), …, cos(x Wₘ + bₘ)), W and b for each column."""

    frequencies: int

    def shapes(self, rows: Shape) -> LayerShapes:
        each = (rows[0], self.frequencies)
        return LayerShapes((rows[0], self.frequencies + 1), each, each, (1, self.frequencies))

    def forward(self, x: Array, weights: LayerWeights, work: Workspace) -> tuple[Array, Any]:
        columns = x.T[:, :, None]
        phase = columns * weights.W[:, None]
        phase += weights.b[:, None]
        y = np.empty((*phase.shape[:2], self.frequencies + 1), x.dtype)
        y[:, :, :1] = columns
        np.cos(phase, out=y[:, :, 1:])
        return y, (columns, np.sin(phase, out=phase))

    def backward(
        self, delta: Array, memory: Any, weights: LayerWeights, slopes: LayerWeights, further: bool = True
    ) -> Array | None:
        columns, sine = memory
        sine *= -delta[:, :, 1:]
        np.sum(sine * columns, axis=1, out=slopes.W)
        np.sum(sine, axis=1, out=slopes.b)
        return (delta[:, :, 0] + (sine * weights.W[:, None]).sum(axis=2)).T if further else None


@dataclass(frozen=True)
class ColumnDense(Layer):
    """A dense layer for each column by itself; its units then lie side by side, column by column."""

    units: int

    def shapes(self, rows: Shape) -> LayerShapes:
        columns, numbers = rows
        return LayerShapes(
            (columns * self.units,), (columns, numbers, self.units), (columns, self.units), (numbers, self.units)
        )

    def forward(self, x: Array, weights: LayerWeights, work: Workspace) -> tuple[Array, Any]:
        y = x @ weights.W
        y += weights.b[:, None]
        return np.ascontiguousarray(y.transpose(1, 0, 2)).reshape(x.shape[1], -1), x

    def backward(
        self, delta: Array, memory: Any, weights: LayerWeights, slopes: LayerWeights, further: bool = True
    ) -> Array | None:
        by_column = np.ascontiguousarray(delta.reshape(len(delta), -1, self.units).transpose(1, 0, 2))
        np.matmul(memory.transpose(0, 2, 1), by_column, out=slopes.W)
        np.sum(by_column, axis=1, out=slopes.b)
        return by_column @ weights.W.transpose(0, 2, 1) if further else None
