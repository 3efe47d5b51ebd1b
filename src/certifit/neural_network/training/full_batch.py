"""L-BFGS on all rows at once: the loss falls at every step, and its gradient says when nothing is left to gain."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from certifit.core.loop import Mark, Step
from certifit.core.watch import Watch
from certifit.exceptions import NotANumberError
from certifit.files.checkpoint import Checkpoint
from certifit.neural_network.network import Network
from certifit.neural_network.output_losses import OutputLoss
from certifit.neural_network.training.network_rows import NetworkRows
from certifit.neural_network.training.slopes import full_slopes
from certifit.rows import Array


class FullBatchLimits(NamedTuple):
    """When L-BFGS ends."""

    tol: float  # largest entry of the gradient
    max_iter: int
    max_fun: int  # evaluations of the loss


class FullBatchEnd(NamedTuple):
    """Where it ended."""

    params: Array  # (p,)
    n_iter: int
    history: tuple[Mark, ...]
    interrupted: bool = False  # by Ctrl-C


class PenalisedLoss:
    """The mean loss of all rows plus alpha |W|² / 2 over their weight, and its gradient."""

    def __init__(self, network: Network, loss: OutputLoss, rows: NetworkRows, alpha: float) -> None:
        self.network, self.loss, self.rows, self.alpha = network, loss, rows, alpha
        self.weight = float(rows.w.sum())
        self.last: tuple[Array, float, Array] | None = None  # the point that was measured last, loss and gradient

    def __call__(self, params: Array) -> tuple[float, Array]:
        with np.errstate(over="ignore", invalid="ignore"):
            found = full_slopes(self.network, self.loss, params, self.rows)
        weights = params[: self.network.n_weights]
        value = (found.loss + 0.5 * self.alpha * float(weights @ weights)) / self.weight
        gradient = found.slopes / self.weight
        gradient[: len(weights)] += (self.alpha / self.weight) * weights
        self.last = params.copy(), value, gradient.copy()
        return value, gradient


class RecordedLoss(PenalisedLoss):
    """The same, with every answer in a checkpoint: after the program was killed they are given again from there.

    L-BFGS keeps its steps to itself, but they follow from the answers it gets, to the last bit. Should it ask for
    another point than on record (another SciPy, say), the rest of the record is dropped.
    """

    def __init__(self, measure: PenalisedLoss, checkpoint: Checkpoint, start: Array) -> None:
        super().__init__(measure.network, measure.loss, measure.rows, measure.alpha)
        self.checkpoint, self.start, self.asked = checkpoint, start, 0
        self.marks: list[int] = []  # checksums of the points that were asked for
        self.values: list[float] = []
        self.gradients: list[Array] = []
        found = checkpoint.read()
        if found is not None:
            with checkpoint.refusing_damage():
                self._go_on(found.arrays)

    def _go_on(self, kept: Mapping[str, Array]) -> None:
        if kept["start"].shape != self.start.shape or kept["gradients"].shape != (
            len(kept["marks"]),
            len(self.start),
        ):
            raise ValueError("gradients of other shapes")
        self.start = kept["start"]
        self.marks, self.values = kept["marks"].tolist(), kept["values"].tolist()
        self.gradients = [*kept["gradients"]]

    def __call__(self, params: Array) -> tuple[float, Array]:
        k, mark = self.asked, crc32(params.tobytes())
        self.asked += 1
        if k < len(self.marks) and self.marks[k] == mark:
            self.last = params.copy(), self.values[k], self.gradients[k].copy()
            return self.values[k], self.gradients[k].copy()
        del self.marks[k:], self.values[k:], self.gradients[k:]
        value, gradient = super().__call__(params)
        self.marks.append(mark)
        self.values.append(value)
        self.gradients.append(gradient.copy())
        if self.checkpoint.due:
            self.write()
        return value, gradient

    def write(self) -> None:
        gradients = np.array(self.gradients).reshape(len(self.marks), len(self.start))
        arrays = {"start": self.start, "marks": np.array(self.marks, np.int64), "values": np.array(self.values)}
        self.checkpoint.write({}, {**arrays, "gradients": gradients})


def minimise(measure: PenalisedLoss, start: Array, limits: FullBatchLimits, watch: Watch) -> FullBatchEnd:
    """Minimise from `start` until the gradient is small; the parameters returned are those of the last pass."""
    start = measure.start if isinstance(measure, RecordedLoss) else start
    passes = LBFGSPasses(measure, start, limits.tol, watch)
    value, _ = passes.measured(start)
    if not np.isfinite(value):
        raise NotANumberError(
            got=f"a loss of {value} before the first step",
            wanted="finite numbers",
            fix="Scale the columns, for instance to unit variance.",
        )
    stop, interrupted = passes.end(start, value), False
    if not stop and limits.max_iter > 0 and passes.history[-1].gain > limits.tol:
        options: dict[str, Any] = {
            "maxiter": limits.max_iter, "maxfun": limits.max_fun, "gtol": limits.tol, "ftol": 0.0,
            "maxcor": 20, "maxls": 50,
        }  # fmt: skip
        try:
            minimize(passes.measured, start, jac=True, method="L-BFGS-B", callback=passes.accept, options=options)
        except KeyboardInterrupt:
            if len(passes.history) == 1:
                raise  # no step was taken
            interrupted = True
        if passes.begun and not interrupted:  # a line search that found nothing better
            passes.end(passes.now, passes.history[-1].objective)
    if isinstance(measure, RecordedLoss):
        measure.write()  # proving what was reached takes a while too
    return FullBatchEnd(passes.now, len(passes.history) - 1, tuple(passes.history), interrupted)


class LBFGSPasses:
    """The passes of L-BFGS, each from its first measurement to the point that is accepted."""

    def __init__(self, measure: PenalisedLoss, start: Array, tol: float, watch: Watch) -> None:
        self.measure, self.now, self.tol, self.watch = measure, start, tol, watch
        self.history: list[Mark] = []
        self.begun = False
        self.start = time.perf_counter()

    def measured(self, params: Array) -> tuple[float, Array]:
        if not self.begun:
            self.watch.begin()
            self.begun = True
        return self.measure(params)

    def end(self, params: Array, value: float) -> bool:
        """Report a pass that ended at these parameters; whether a callback stops the fit."""
        last = self.measure.last
        known = last is not None and np.array_equal(last[0], params)
        gradient = last[2] if known and last is not None else self.measure(params)[1]
        size = float(np.abs(gradient).max(initial=0.0))
        self.now, self.begun = params.copy(), False
        self.history.append(Mark(value, size, time.perf_counter() - self.start))
        return self.watch.end(self.now, Step(self.now, value, size), self.tol)

    def accept(self, intermediate_result: OptimizeResult) -> None:
        if self.end(intermediate_result.x, float(intermediate_result.fun)):
            raise StopIteration
