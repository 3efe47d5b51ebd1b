"""A network: a list of layers over one flat vector of parameters.

The vector holds all weights first and all biases after them, so that a penalty on weights is a penalty on its
beginning, and an optimiser is one loop over numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from certifit.core.text_table import text_table
from certifit.exceptions import DataError
from certifit.neural_network.layers import PREDICTION, Layer, PassKind, Shape, Tensors
from certifit.rows import Array


class Network:
    """Layers, the shapes of what passes between them, and where their parameters stand in the flat vector."""

    def __init__(self, layers: Sequence[Layer], input_shape: Shape) -> None:
        self.layers = tuple(layers)
        self.shapes: list[Shape] = [tuple(input_shape)]  # before each layer, and after the last
        for layer in self.layers:
            self.shapes.append(layer.output_shape(self.shapes[-1]))
        pairs = zip(self.layers, self.shapes, strict=False)
        self.tensors = [layer.tensor_shapes(shape) for layer, shape in pairs]
        # Weights are matrices or more, biases are vectors.
        order = [(k, t) for rank in (True, False) for k, each in enumerate(self.tensors)
                 for t, shape in enumerate(each) if (len(shape) > 1) == rank]  # fmt: skip
        self._place: dict[tuple[int, int], slice] = {}
        self.size = self.n_weights = 0
        for k, t in order:
            shape = self.tensors[k][t]
            self._place[k, t] = slice(self.size, self.size + math.prod(shape))
            self.size += math.prod(shape)
            self.n_weights += math.prod(shape) if len(shape) > 1 else 0

    def views(self, theta: Array) -> list[Tensors]:
        """Return the parameters of every layer as arrays that share their numbers with `theta` (size,)."""
        return [
            tuple(theta[self._place[k, t]].reshape(shape) for t, shape in enumerate(each))
            for k, each in enumerate(self.tensors)
        ]

    def flat(self, tensors: Sequence[Tensors], dtype: Any) -> Array:
        """Return one vector (size,) of the parameters of all layers."""
        theta = np.empty(self.size, dtype)
        for view, given in zip(self.views(theta), tensors, strict=True):
            for place, values in zip(view, given, strict=True):
                place[...] = values
        return theta

    def initial(self, rng: np.random.Generator, dtype: Any) -> Array:
        """Return parameters (size,) to start from."""
        pairs = zip(self.layers, self.shapes, strict=False)
        return self.flat([layer.initial(shape, rng) for layer, shape in pairs], dtype)

    def forward(self, tensors: Sequence[Tensors], a: Array, how: PassKind = PREDICTION) -> tuple[Array, list[Any]]:
        """Return the last layer's output (out, n), and what every layer keeps for `backward`."""
        kept = []
        for layer, theta in zip(self.layers, tensors, strict=True):
            a, memory = layer.forward(theta, a, how)
            kept.append(memory)
        return a, kept

    def backward(
        self, tensors: Sequence[Tensors], kept: Sequence[Any], slope: Array, gradient: Sequence[Tensors]
    ) -> Array:
        """Fill the gradient of all parameters from ∂L/∂output, last layer first, and return ∂L/∂input."""
        for k in reversed(range(len(self.layers))):
            slope = self.layers[k].backward(tensors[k], kept[k], slope, gradient[k])
        return slope

    def check_input(self, shape: Shape) -> None:
        """Refuse rows of another shape than the first layer was made for."""
        if tuple(shape) != self.shapes[0]:
            raise DataError(got=f"rows of shape {tuple(shape)}", wanted=f"the shape {self.shapes[0]} of the network")

    def __repr__(self) -> str:
        lines = [["input", str(self.shapes[0]), "0"]]
        for layer, shape, tensors in zip(self.layers, self.shapes[1:], self.tensors, strict=True):
            lines.append([str(layer), str(shape), f"{sum(map(math.prod, tensors)):,}"])
        return text_table(
            [["layer", "output", "parameters"], *lines, ["all", "", f"{self.size:,}"]], "llr", rule=True
        )
