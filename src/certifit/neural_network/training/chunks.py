"""Chunks of minibatches, each measured by one thread: what their losses and slopes are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from certifit.core.interrupts import HeldInterrupt
from certifit.neural_network.layers.row_layers import LayerWeights
from certifit.neural_network.layers.workspace import Workspace
from certifit.neural_network.network import Network
from certifit.neural_network.output_losses import OutputLoss
from certifit.neural_network.training.network_rows import NetworkRows, dense_as


@dataclass(frozen=True)
class TrainingTuning:
    """How rows are shared out."""

    least_rows: int = 64  # of a chunk of a minibatch
    most_chunks: int = 8
    portion_entries: int = 1 << 22  # numbers in the largest array of a portion of a chunk
    portion_products: float = 1e9  # multiplications of its way forward: a tenth of a second or so
    least_work: float = 4e6  # multiplications of a minibatch below which one chunk is faster
    block_entries: int = 1 << 18  # numbers in the widest layer for a chunk of a full pass
    diverged: float = 1e10  # growth of both loss and squared weights since the first minibatch that is a divergence


class ChunkMeasure:
    """Loss and slopes of chunks of one network, as one thread measures them.

    A chunk of many rows is taken in portions, one after the other, whose slopes are added in their order: so it needs
    little memory, and Ctrl-C need not wait for all of it. Their number depends on its rows and on the network alone.
    """

    def __init__(
        self, network: Network, loss: OutputLoss, tuning: TrainingTuning, interrupt: HeldInterrupt | None = None
    ) -> None:
        self.network, self.loss, self.interrupt = network, loss, interrupt
        by_memory = tuning.portion_entries / network.row_entries
        by_time = tuning.portion_products / max(1, network.row_products)
        self.rows = max(tuning.least_rows, int(min(by_memory, by_time)))  # of a portion, or up to twice as many
        self.space = Workspace(reuse=True)
        self._further: list[LayerWeights] = []  # the slopes of a portion that is not the first

    def measure(
        self,
        parts: list[LayerWeights],
        slopes: list[LayerWeights],
        chunk: tuple[Callable[[slice], NetworkRows], int],
        weight: float,
        draw: np.random.Generator | None,
    ) -> float:
        """The summed loss of a chunk's rows; slopes, over the weight of the whole minibatch, go to `slopes`.

        `chunk` gives some of its rows when asked, and their number. After an interrupt nothing is worth reading.
        """
        take, n = chunk
        portions = max(1, n // self.rows)
        edges = [n * k // portions for k in range(portions + 1)]
        total = 0.0
        for k in range(portions):
            if self.interrupt is not None and self.interrupt.noted:
                break
            target = slopes if k == 0 else self._spare_slopes(parts)
            rows = take(slice(edges[k], edges[k + 1]))
            total += measure_rows(self.network, self.loss, parts, target, rows, weight, self.space.begin(draw))
            if k:
                for own, more in zip(slopes, target, strict=True):
                    np.add(own.W, more.W, out=own.W)
                    np.add(own.b, more.b, out=own.b)
        return total

    def _spare_slopes(self, parts: list[LayerWeights]) -> list[LayerWeights]:
        self._further = self._further or self.network.parts(np.zeros(self.network.n_parameters, parts[0].W.dtype))
        return self._further


def measure_rows(
    network: Network,
    loss: OutputLoss,
    parts: list[LayerWeights],
    slopes: list[LayerWeights],
    rows: NetworkRows,
    weight: float,
    work: Workspace,
) -> float:
    """The summed loss of some rows; their slopes, over the weight of the whole minibatch, go to `slopes`."""
    dtype, work.w = parts[0].W.dtype, rows.w
    scores, memories = network.forward(parts, dense_as(rows.X, dtype), work)
    values, delta = loss.values_and_slopes(scores, rows.Y, (rows.w / weight).astype(dtype))
    network.backward(delta, memories, parts, slopes)
    return float(rows.w @ values)
