"""Training by minibatches: each is cut into a fixed number of chunks, whose gradients are added in a fixed order.

How a minibatch is cut depends on its rows alone, and each chunk is worked on by one thread, so that a fit has the
same bits for any number of threads. Rows are shuffled in windows that fit in memory: all together where they do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse

from certifit.exceptions import NotANumberError
from certifit.neural_network.layers import PassKind
from certifit.neural_network.network import Network
from certifit.neural_network.output_losses import OutputLoss
from certifit.numerics.compiled.workers import Workers
from certifit.rows import Array, Block, Matrix, Rows, thread_count


@dataclass(frozen=True)
class TrainingTuning:
    """How work is cut."""

    chunk_rows: int = 64  # fewest rows of a chunk
    most_chunks: int = 8  # of a minibatch
    window_bytes: int = 2**28  # of the rows that are shuffled together


class TrainingRows(NamedTuple):
    """Rows in memory."""

    X: Matrix  # (n, d), or CSR
    targets: Array  # codes (n,), or amounts (n, k)
    w: Array  # (n,)


@dataclass
class GradientSums:
    """The loss and gradient of a network on some rows, as sums over chunks."""

    network: Network
    loss: OutputLoss
    dtype: np.dtype
    tuning: TrainingTuning = field(default_factory=TrainingTuning)

    def __post_init__(self) -> None:
        self.workers = Workers(thread_count())
        self._gradients: list[Array] = []  # of chunks, (size,) each
        self._views: list[list[tuple[Array, ...]]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.workers.close()

    def chunk_borders(self, n: int) -> Array:
        """Return where the chunks of n rows begin and end."""
        count = int(min(max(1, n // self.tuning.chunk_rows), self.tuning.most_chunks))
        while len(self._gradients) < count:
            self._gradients.append(np.empty(self.network.size, self.dtype))
            self._views.append(self.network.views(self._gradients[-1]))
        return np.linspace(0, n, count + 1).astype(int)

    def __call__(
        self, theta: Array, rows: TrainingRows, index: Array | slice, seed: int
    ) -> tuple[float, float, Array]:
        """Return Σ w, Σ w φ and the gradient (size,) of the latter, on the rows with these numbers."""
        tensors = self.network.views(theta)
        w = rows.w[index]
        borders = self.chunk_borders(len(w))
        count = len(borders) - 1
        values = np.zeros(count)

        def work(worker: int) -> None:
            for c in range(worker, count, self.workers.count):
                values[c] = self._chunk(tensors, rows, index, (borders[c], borders[c + 1], seed), self._views[c])

        if count == 1:
            work(0)
        else:
            self.workers.run(work)
        return float(w.sum()), float(values.sum()), self._added(count)

    def _chunk(self, tensors: Any, rows: TrainingRows, index: Any, place: tuple[int, int, int], views: Any) -> float:
        start, stop, seed = place
        here = index[start:stop] if isinstance(index, np.ndarray) else slice(index.start + start, index.start + stop)
        a = input_activations(self.network, rows.X[here], self.dtype)
        # What overflows makes a loss that is no number, of which `check_finite` tells.
        with np.errstate(over="ignore", invalid="ignore"):
            z, kept = self.network.forward(tensors, a, PassKind(True, seed, start))
            value, slope = self.loss.value_and_slope(z, rows.targets[here].T, rows.w[here])
            self.network.backward(tensors, kept, slope, views)
        return value

    def _added(self, count: int) -> Array:
        """Add the gradients of chunks in a tree whose shape depends on their number alone."""
        step = 1
        while step < count:
            for c in range(0, count - step, 2 * step):
                self._gradients[c] += self._gradients[c + step]
            step *= 2
        return self._gradients[0]


def _joined(parts: list[TrainingRows]) -> TrainingRows:
    if len(parts) == 1:
        return parts[0]
    Xs = [part.X for part in parts]
    X = sparse.vstack(Xs, format="csr") if sparse.issparse(Xs[0]) else np.concatenate(Xs)
    return TrainingRows(
        X, np.concatenate([part.targets for part in parts]), np.concatenate([part.w for part in parts])
    )


def input_activations(network: Network, X: Matrix, dtype: Any) -> Array:
    """Return rows as the first layer takes them, a column each."""
    a = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype).T
    return a if len(network.shapes[0]) == 1 else a.reshape(*network.shapes[0], a.shape[-1])


def check_finite(network: Network, theta: Array, value: float, epoch: int, step: int) -> None:
    """Stop at once where the loss is no number, and say which layer and what to try."""
    if np.isfinite(value):
        return
    broken = [
        str(layer)
        for layer, tensors in zip(network.layers, network.views(theta), strict=True)
        if not all(np.isfinite(tensor).all() for tensor in tensors)
    ]
    where = f", and parameters of {broken[0]} that are not finite" if broken else ""
    raise NotANumberError(
        got=f"a loss of {value} at step {step} of epoch {epoch}{where}",
        wanted="a finite loss",
        fix="Scale the columns to unit variance, or try a tenth of learning_rate_init, or clip_norm=1.",
    )


@dataclass(frozen=True)
class TrainingTask:
    """A network, its loss, and the rows it learns from: those of `mask`."""

    network: Network
    loss: OutputLoss
    rows: Rows  # with codes of classes or amounts as y
    mask: Array  # (n,) bool
    seed: int

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self.rows.dtype)

    @property
    def n(self) -> int:
        """How many rows are trained on."""
        return int(self.mask.sum())

    def windows(self, tuning: TrainingTuning) -> Callable[[], Iterable[TrainingRows]]:
        """Return what gives the rows of one epoch; where all fit in a window, they are held from the first on."""
        held = list(islice(self._windows(tuning), 2))
        return (lambda: held) if len(held) == 1 else (lambda: self._windows(tuning))

    def _windows(self, tuning: TrainingTuning) -> Iterator[TrainingRows]:
        most = max(1, tuning.window_bytes // (self.dtype.itemsize * max(1, self.rows.n_features)))
        parts: list[TrainingRows] = []
        held = 0
        for block in self.rows:
            part = self._part(block, self.mask)
            if parts and held + len(part.w) > most:
                yield _joined(parts)
                parts, held = [], 0
            parts.append(part)
            held += len(part.w)
        yield _joined(parts)

    def _part(self, block: Block, mask: Array) -> TrainingRows:
        here = mask[block.start : block.start + len(block.w)]
        y = np.asarray(block.y)
        targets = y if y.dtype.kind in "iu" else y.astype(self.dtype).reshape(len(y), -1)
        return TrainingRows(*(part if here.all() else part[here] for part in (block.X, targets, block.w)))

    def held_out(self) -> TrainingRows:
        """Return the rows of positive weight that are not trained on."""
        rest = (self.rows.map(lambda block: block.w) > 0) & ~self.mask
        return _joined([self._part(block, rest) for block in self.rows])
