"""A network: a list of layers whose weights all lie in one flat vector, weights first and biases after them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from math import prod
from typing import Any

import numpy as np

from certifit.core.text_table import text_table
from certifit.exceptions import DataError
from certifit.neural_network.layers.even_units import with_even_units
from certifit.neural_network.layers.row_layers import (
    ACTIVATIONS,
    Dense,
    Layer,
    LayerShapes,
    LayerWeights,
    Shape,
    clip_dense_layers,
)
from certifit.neural_network.layers.workspace import Workspace
from certifit.rows import Array


@dataclass(frozen=True)
class Network:
    """Layers in the order of a row's way through them.

    >>> print(perceptron(4, (3,), 2, "relu"))
    layer  output  parameters
    Dense       3          15
    ReLU        3           0
    Dense       2           8
    all                    23
    """

    layers: tuple[Layer, ...]
    rows: Shape  # of one row

    @cached_property
    def shapes(self) -> tuple[LayerShapes, ...]:
        """The shapes of every layer's output and weights."""
        found, shape, before = [], self.rows, "rows"
        for layer in self.layers:
            try:
                one = layer.shapes(shape)
            except DataError as error:
                raise DataError(
                    got=f"{layer} after {before} of shape {shape}", wanted=error.wanted, fix=error.fix
                ) from error
            found.append(one)
            shape, before = one.output, str(layer)
        return tuple(found)

    @cached_property
    def n_weights(self) -> int:
        """Weights, which come first in the flat vector; a penalty is on them alone."""
        return sum(prod(one.weights) for one in self.shapes)

    @cached_property
    def n_parameters(self) -> int:
        return self.n_weights + sum(prod(one.biases) for one in self.shapes)

    @cached_property
    def row_entries(self) -> int:
        """Numbers of the largest array that a row becomes on its way, windows side by side among them."""
        return max([prod(self.rows), *(max(prod(one.output), one.fans[0] * one.places) for one in self.shapes)])

    @cached_property
    def images_at_once(self) -> int:
        """Images whose windows stay in the cache, or at least do not fill the memory."""
        return max(16, min(128, (1 << 22) // self.row_entries))

    @cached_property
    def row_products(self) -> int:
        """Multiplications of a row's way forward."""
        return sum(prod(one.weights) * one.places for one in self.shapes)

    @cached_property
    def draws(self) -> bool:
        """Whether training draws random numbers on the way."""
        return any(layer.draws for layer in self.layers)

    @cached_property
    def places(self) -> tuple[tuple[int, int, int, int], ...]:
        """Where each layer's weights and biases begin and end in the flat vector."""
        found, w, b = [], 0, self.n_weights
        for one in self.shapes:
            w_end, b_end = w + prod(one.weights), b + prod(one.biases)
            found.append((w, w_end, b, b_end))
            w, b = w_end, b_end
        return tuple(found)

    @cached_property
    def _first(self) -> int:
        """The number of the first layer with weights: nothing before it needs slopes."""
        return next((k for k, one in enumerate(self.shapes) if prod(one.weights) > 0), 0)

    def parts(self, flat: Array) -> list[LayerWeights]:
        """Views of the flat vector: weights and biases of each layer."""
        return [
            LayerWeights(flat[w:w_end].reshape(one.weights), flat[b:b_end].reshape(one.biases))
            for one, (w, w_end, b, b_end) in zip(self.shapes, self.places, strict=True)
        ]

    def forward(self, parts: list[LayerWeights], x: Array, work: Workspace | None = None) -> tuple[Array, list[Any]]:
        """Scores of rows x, and what every layer remembers for `backward`."""
        memories, work = [], work or Workspace()
        for layer, weights in zip(self.layers, parts, strict=True):
            x, memory = layer.forward(x, weights, work)
            memories.append(memory)
        return x, memories

    def tensors(self, coefs: Sequence[Array], intercepts: Sequence[Array]) -> list[LayerWeights]:
        """Weights and biases of each layer, from those of the layers that have some."""
        kind = np.result_type(*coefs, *intercepts)
        own, none = iter(zip(coefs, intercepts, strict=True)), np.empty(0, kind)
        found = []
        for one in self.shapes:
            W, b = next(own) if prod(one.weights) else (none, none)
            found.append(LayerWeights(W.reshape(one.weights).astype(kind, copy=False), b.astype(kind, copy=False)))
        return found

    def scores(self, parts: list[LayerWeights], x: Array, entries: int = 3 << 14) -> Array:
        """Scores of rows x: so many at a time that what passes stays in the cache; images and embeddings fewer."""
        images = any(len(one.output) > 1 for one in self.shapes)
        widest = max(one.output[0] for one in self.shapes)
        step, work = self.images_at_once if images else max(512, entries // widest), Workspace(reuse=True)
        layers, parts = with_even_units(self.layers, parts)
        found = np.empty((len(x), *self.shapes[-1].output), x.dtype)
        for k in range(0, len(x), step):
            passed = x[k : k + step]
            work.begin()
            for layer, weights in zip(layers, parts, strict=True):
                passed, _ = layer.forward(passed, weights, work)
            found[k : k + step] = passed
        return found

    def backward(
        self, delta: Array, memories: list[Any], parts: list[LayerWeights], slopes: list[LayerWeights]
    ) -> None:
        """Write the slopes of the loss in all weights, from those in the scores (back-propagation)."""
        passed: Array | None = delta
        for k in range(len(self.layers) - 1, self._first - 1, -1):
            assert passed is not None
            passed = self.layers[k].backward(passed, memories[k], parts[k], slopes[k], further=k > self._first)

    def first_overflow(self, parts: list[LayerWeights], x: Array) -> str:
        """The first layer whose output is not finite, in words."""
        number, work = 0, Workspace()
        for layer, weights in zip(self.layers, parts, strict=True):
            x, _ = layer.forward(x, weights, work)
            number += layer.stands_for
            if not np.isfinite(x).all():
                return f"layer {number} ({type(layer).__name__})"
        return "the loss of the scores"

    def __str__(self) -> str:
        rows = [
            (type(layer).__name__, " x ".join(map(str, one.output)), str(prod(one.weights) + prod(one.biases)))
            for layer, one in zip(self.layers, self.shapes, strict=True)
        ]
        return text_table([("layer", "output", "parameters"), *rows, ("all", "", str(self.n_parameters))], "lr")

    @cached_property
    def clipped(self) -> Network:
        """The same network in fewer passes over memory, for training and for answers."""
        return Network(clip_dense_layers(self.layers), self.rows)


@cache
def perceptron(columns: int, hidden: tuple[int, ...], outputs: int, activation: str) -> Network:
    """The network of a multi-layer perceptron: dense layers with an activation between each two."""
    layers: list[Layer] = []
    for units in hidden:
        layers += [Dense(units), ACTIVATIONS[activation]]
    return Network((*layers, Dense(outputs)), (columns,))
