"""The network of preset='tabular', made for tables of numbers whose columns have any scale and any shape.

Columns are scaled by their quartiles and smoothly clipped, then embedded; dense layers follow, with dropout between.
Weights start and move as in the neural tangent parametrisation: a unit of f inputs starts with weights of variance
1/f, and its rate is 1/sqrt(f) of the whole; Adam's steps, whose size no scale of the slopes changes, make the two
the same. Amounts need no scaling: the last layer starts at their mean, and moves in units of their deviation.
Reference: Holzmüller, Grinsztajn & Steinwart, "Better by default: strong pre-tuned MLPs and boosted trees on tabular
data" (2024).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from certifit.neural_network.layers.column_layers import ColumnDense, Periodic, RobustColumns
from certifit.neural_network.layers.row_layers import ACTIVATIONS, Dense, Dropout, Layer, LayerWeights
from certifit.neural_network.network import Network
from certifit.neural_network.training.optimisers import ParameterGroup
from certifit.rows import Array


@dataclass(frozen=True)
class TabularTuning:
    """The numbers of the preset that are no settings of an estimator."""

    frequencies: int = 16  # of each column
    spread: float = 0.2 * math.pi  # standard deviation of the first frequencies, radians for each scale of a column
    units: int = 4  # numbers that each becomes
    dropout: float = 0.15
    embedding_rate: float = 0.1  # of the whole rate
    bias_rate: float = 0.1


def tabular_network(
    scaling: tuple[Array, Array], hidden: tuple[int, ...], outputs: int, activation: str,
    tuning: TabularTuning = TabularTuning(),
) -> Network:  # fmt: skip
    """The network for columns of these medians and scales."""
    layers: list[Layer] = [RobustColumns(*scaling), Periodic(tuning.frequencies), ColumnDense(tuning.units)]
    for units in hidden:
        layers += [Dense(units), ACTIVATIONS[activation], Dropout(tuning.dropout)]
    return Network((*layers, Dense(outputs)), (len(scaling[0]),))


def draw_tabular(layer: Layer, part: LayerWeights, random: Any, tuning: TabularTuning = TabularTuning()) -> None:
    """Draw a layer's first weights; the first number that a number becomes is itself."""
    if isinstance(layer, Periodic):
        part.W[...] = random.normal(scale=tuning.spread, size=part.W.shape)
        part.b[...] = random.uniform(-math.pi, math.pi, part.b.shape)
        return
    part.W[...] = random.normal(scale=1 / math.sqrt(part.W.shape[-2]), size=part.W.shape)
    part.b[...] = 0.0
    if isinstance(layer, ColumnDense):
        part.W[:, 0] = part.W[:, :, 0] = 0.0
        part.W[:, 0, 0] = 1.0


def start_at_mean(part: LayerWeights, Y: Array, w: Array, output: str, warm: bool) -> float:
    """Let the last layer start at the mean of amounts and in units of their deviation, which is returned.

    A `warm` one starts where it is.
    """
    if output in ("softmax", "logistic"):
        return 1.0
    mean = w @ Y / w.sum()
    if output == "poisson":
        part.b[...] = part.b if warm else np.log(np.maximum(mean, 1e-300)) * (mean > 0)
        return 1.0
    spread = math.sqrt(float(np.mean(w @ (Y - mean) ** 2 / w.sum()))) or 1.0
    if not warm:
        part.W[...] *= spread
        part.b[...] = mean
    return spread


def tabular_groups(
    network: Network, spread: float, tuning: TabularTuning = TabularTuning()
) -> tuple[ParameterGroup, ...]:
    """Weights and biases of every layer with the factor of their rate; the last layer's is in units of `spread`."""
    groups, last = [], len(network.layers) - 1
    for k, (layer, one, (w, w_end, b, b_end)) in enumerate(
        zip(network.layers, network.shapes, network.places, strict=True)
    ):
        if w == w_end:
            continue
        embedding = isinstance(layer, (Periodic, ColumnDense))
        unit = tuning.embedding_rate if embedding else spread if k == last else 1.0
        narrow = 1.0 if isinstance(layer, Periodic) else 1 / math.sqrt(one.fans[0])
        groups.append(ParameterGroup(w, w_end, True, unit * narrow))
        groups.append(ParameterGroup(b, b_end, False, unit * tuning.bias_rate))
    return tuple(groups)
