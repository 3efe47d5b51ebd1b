"""Dense layers with as many units as fill registers: products 45 wide take longer than those 48 wide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from certifit.neural_network.layers.row_layers import Dense, Elementwise, Layer, LayerWeights


@dataclass(frozen=True)
class UnitTuning:
    """When more units take less time, by measured times."""

    multiple: int = 16
    most_growth: float = 1.1


def with_even_units(
    layers: Sequence[Layer], parts: Sequence[LayerWeights], tuning: UnitTuning = UnitTuning()
) -> tuple[tuple[Layer, ...], list[LayerWeights]]:
    """Layers of a perceptron with some more hidden units, whose weights are 0: they have the same answers."""
    if not all(isinstance(layer, (Dense, Elementwise)) for layer in layers):
        return tuple(layers), [*parts]
    found: list[tuple[Layer, LayerWeights]] = []
    added = 0  # units, to the dense layer before
    for k, (layer, part) in enumerate(zip(layers, parts, strict=True)):
        if isinstance(layer, Dense):
            units = -(-layer.units // tuning.multiple) * tuning.multiple
            is_hidden = k < len(layers) - 1
            more = units - layer.units if is_hidden and units <= tuning.most_growth * layer.units else 0
            found.append((replace(layer, units=layer.units + more), _with_zeros(part, added, more)))
            added = more
        else:
            found.append((layer, part))
    return tuple(layer for layer, _ in found), [part for _, part in found]


def _with_zeros(part: LayerWeights, rows: int, columns: int) -> LayerWeights:
    """Weights with so many rows and columns of zeros more, and biases likewise."""
    if not rows and not columns:
        return part
    (n, k), kind = part.W.shape, part.W.dtype
    W, b = np.zeros((n + rows, k + columns), kind), np.zeros(k + columns, kind)
    W[:n, :k], b[:k] = part.W, part.b
    return LayerWeights(W, b)


__all__ = ["UnitTuning", "with_even_units"]
