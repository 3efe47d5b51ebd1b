"""The slopes of a network's loss over rows: chunks of fixed size, summed in a fixed order.

A minibatch is cut into a number of chunks that depends on its size and on the network alone; threads share them, and
their sums are added pairwise in one order. A chunk of many rows is taken in portions, one after the other, so that it
needs little memory and Ctrl-C need not wait for it. So any number of threads gives the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from certifit.core.interrupts import HeldInterrupt
from certifit.exceptions import NotANumberError
from certifit.neural_network.network import Network
from certifit.neural_network.output_losses import OutputLoss
from certifit.neural_network.training.chunks import ChunkMeasure, TrainingTuning
from certifit.neural_network.training.network_rows import MinibatchRows, NetworkRows, dense_as
from certifit.neural_network.training.optimisers import add_chunks
from certifit.numerics.compiled.workers import Workers
from certifit.rows import Array, Sums, thread_count
from certifit.rows.threads import parallel_sum


def _rows_of(rows: MinibatchRows, index: Array, some: slice) -> NetworkRows:
    return rows.take(index[some])


class LossAndWeights(NamedTuple):
    """The penalised loss of a minibatch, and the sum of squares of the weights it was measured at."""

    loss: float
    squares: float


class MinibatchSlopes:
    """Loss and slopes of minibatches of one network, on threads that stay."""

    def __init__(
        self, network: Network, loss: OutputLoss, params: Array, tuning: TrainingTuning = TrainingTuning()
    ) -> None:
        self.network, self.loss, self.tuning = network, loss, tuning
        self.params, self.parts = params, [network.parts(params)]  # of each thread
        shape = (tuning.most_chunks, network.n_parameters)
        # Two sets: while one thread still adds up the slopes of a minibatch, another may write those of the next.
        self.slopes = [np.zeros(shape, params.dtype) for _ in range(2)]
        self.slope_parts = [[network.parts(one) for one in some] for some in self.slopes]
        self.losses = np.zeros(tuning.most_chunks)
        self.workers = Workers(1)
        self.interrupt = HeldInterrupt()
        self.measures = [ChunkMeasure(network, loss, tuning, self.interrupt) for _ in range(tuning.most_chunks)]

    def __enter__(self) -> MinibatchSlopes:
        self.interrupt.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.workers.close()
        self.interrupt.__exit__(*error)

    def chunks_of(self, rows: int) -> int:
        """The number of chunks of a minibatch: a power of two that no number of threads changes."""
        if 3.0 * rows * self.network.n_weights < self.tuning.least_work:
            return 1
        most = min(self.tuning.most_chunks, rows // self.tuning.least_rows)
        return 1 << max(0, most.bit_length() - 1)

    def expect(self, order: Array, batch: int) -> None:
        """Be told, before an epoch, in which order its rows come: rows that are elsewhere are fetched by it."""
        self._use_threads(min(thread_count(), self.chunks_of(min(batch, len(order)))))

    def follow(self, copies: list[Array]) -> None:
        """Read the parameters of each thread from its own copy (p,), or those of all from one."""
        self.parts = [self.network.parts(one) for one in copies]

    def at(self, rows: MinibatchRows, index: Array, weight: float, seed: tuple[int, ...]) -> tuple[float, Array]:
        """The mean loss of a minibatch of this weight, and its slopes (p,), which a later call overwrites."""
        self._use_threads(min(thread_count(), self.chunks_of(len(index))))
        loss, slopes = self.pair_at(rows, index, weight, seed)
        return loss, add_chunks(slopes, 1)[0]

    def pair_at(
        self,
        rows: MinibatchRows,
        index: Array,
        weight: float,
        seed: tuple[int, ...],
        before: Callable[[int], None] = lambda thread: None,
    ) -> tuple[float, Array]:
        """The same with slopes (1 or 2, p) that are still to be added; every thread calls `before` first."""
        chunks, threads = self.chunks_of(len(index)), self.workers.count
        edges = [len(index) * k // chunks for k in range(chunks + 1)]
        self.slopes.reverse()
        self.slope_parts.reverse()

        def work(thread: int) -> None:
            before(thread)
            for chunk in range(thread, chunks, threads):
                draw = np.random.default_rng((*seed, chunk)) if self.network.draws else None
                here = index[edges[chunk] : edges[chunk + 1]]
                parts, slopes = self.parts[thread % len(self.parts)], self.slope_parts[0][chunk]
                its_rows = (partial(_rows_of, rows, here), len(here))
                self.losses[chunk] = self.measures[thread].measure(parts, slopes, its_rows, weight, draw)

        self.workers.run(work)
        self.interrupt.answer()
        return float(self.losses[:chunks].sum()) / weight, add_chunks(self.slopes[0][:chunks], 2)

    def _use_threads(self, threads: int) -> None:
        if self.workers.count != threads:
            self.workers.close()
            self.workers = Workers(threads)

    def is_divergent(self, now: LossAndWeights, first: LossAndWeights) -> bool:
        """Whether training diverged since the first minibatch.

        A loss alone may be large because of the rows of a minibatch, weights alone because amounts are large.
        """
        grown = all(a > self.tuning.diverged * b > 0 for a, b in zip(now, first, strict=True))
        return grown or not math.isfinite(now.loss)

    def refuse_divergence(self, rows: MinibatchRows, index: Array, step: int, loss: float) -> None:
        """Say where numbers overflowed, and what to try: before the first step no rate has done that."""
        if math.isfinite(loss):
            got = f"a loss of {loss:.3g} at step {step}, more than {self.tuning.diverged:.0e} times the first one, "
            got += "and weights that grew as much"
        else:
            with np.errstate(all="ignore"):
                where = self.network.first_overflow(self.parts[0], dense_as(rows.take(index).X, self.params.dtype))
            got = f"a loss that is not finite at step {step}; the first number that is not was in {where}"
        if not step:
            raise NotANumberError(
                got=got,
                wanted="finite numbers before training begins",
                fix=f"Scale columns and amounts (StandardScaler): {self.params.dtype} cannot hold this loss.",
            )
        raise NotANumberError(
            got=got,
            wanted="numbers that stay small: training diverged"
            if math.isfinite(loss)
            else "finite numbers: training diverged",
            fix="Try a smaller learning_rate_init (a tenth), scaled columns (StandardScaler), or a larger alpha.",
        )


@dataclass(frozen=True)
class LossSlopes(Sums):
    """The sum of losses over rows, and its slopes."""

    loss: float
    slopes: Array  # (p,)


def full_slopes(
    network: Network, loss: OutputLoss, params: Array, rows: NetworkRows, tuning: TrainingTuning = TrainingTuning()
) -> LossSlopes:
    """Loss and slopes (p,) over all rows, each row with its weight."""
    parts = network.parts(params)
    widest = max([int(np.prod(one.output)) for one in network.shapes] + [int(np.prod(network.rows))])
    size = max(256, tuning.block_entries // widest)

    def chunk(start: int) -> LossSlopes:
        here = rows.take(slice(start, start + size))
        scores, memories = network.forward(parts, dense_as(here.X, params.dtype))
        slopes = np.zeros_like(params)
        values, delta = loss.values_and_slopes(scores, here.Y, here.w.astype(params.dtype))
        network.backward(delta, memories, parts, network.parts(slopes))
        return LossSlopes(float(here.w @ values), slopes)

    return parallel_sum(chunk, range(0, len(rows), size))
