"""Minibatch training, epoch by epoch, until nothing improves."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from certifit.core.loop import Step
from certifit.core.watch import Watch
from certifit.neural_network.network import Network
from certifit.neural_network.output_losses import OutputLoss
from certifit.neural_network.training.optimisers import Optimiser, OptimiserState, scheduled
from certifit.neural_network.training.rows_on_workers import slopes_of
from certifit.neural_network.training.slopes import MinibatchSlopes, TrainingRows
from certifit.rows import Array


class EpochRules(NamedTuple):
    """How epochs are run, and when they end."""

    batch: int  # rows of a minibatch
    shuffle: bool
    max_iter: int  # epochs
    tol: float  # an improvement by less is none
    patience: int  # epochs without improvement
    incremental: bool = False  # one epoch, whatever max_iter is


class EpochEnd(NamedTuple):
    """Where training ended."""

    params: Array  # (p,)
    state: OptimiserState
    losses: list[float]  # mean loss of every epoch's minibatches
    scores: list[float]  # of the validation rows, where there are any
    best_score: float


@dataclass(frozen=True)
class OrderTuning:
    """How rows are put in order. That depends on the shape of the table alone, never on where it is."""

    window_entries: int = 1 << 26  # numbers in rows that are shuffled with each other: all of a smaller table
    run_entries: int = 1 << 17  # numbers in consecutive rows that stay in one window: what a disk reads at a time


def epoch_order(n: int, columns: int, seed: tuple[int, ...], tuning: OrderTuning = OrderTuning()) -> Array:
    """The numbers of n rows in a random order that a large table can be read in.

    A small table is shuffled. Of a large one, runs of consecutive rows are shuffled and dealt out to windows, and the
    rows of each window are shuffled: a minibatch then comes from one window, which fits in memory.
    """
    random = np.random.default_rng(seed)
    if n * columns <= tuning.window_entries:
        return random.permutation(n)
    run = max(1, tuning.run_entries // columns)
    runs = random.permutation(-(-n // run))
    step = max(1, tuning.window_entries // (run * columns))
    windows = []
    for k in range(0, len(runs), step):
        rows = (runs[k : k + step, None] * run + np.arange(run)).ravel()
        windows.append(random.permutation(rows[rows < n]))
    return np.concatenate(windows)


class Progress:
    """How many epochs brought no improvement: of the validation score where there is one, else of the loss."""

    def __init__(self, tol: float) -> None:
        self.tol, self.best_loss, self.best_score = tol, math.inf, -math.inf
        self.best: Array | None = None  # parameters of the best validation score
        self.without = 0

    def note(self, loss: float, score: float | None, params: Array) -> None:
        improved = loss <= self.best_loss - self.tol if score is None else score >= self.best_score + self.tol
        self.without = 0 if improved else self.without + 1
        self.best_loss = min(self.best_loss, loss)
        if score is not None and score > self.best_score:
            self.best_score, self.best = score, params.copy()


def train(
    network: Network,
    loss: OutputLoss,
    rows: TrainingRows,
    optimiser: Optimiser,
    rules: EpochRules,
    watch: Watch,
    validation_score: Callable[[Array], float] | None = None,
) -> EpochEnd:
    """Run epochs; with validation rows the parameters with the best score are returned, else the last ones."""
    params, progress = optimiser.params, Progress(rules.tol)
    losses: list[float] = []
    scores: list[float] = []
    with slopes_of(rows, network, loss, params) as slopes:
        for _ in range(1 if rules.incremental else rules.max_iter):
            watch.begin()
            losses.append(_epoch(slopes, rows, optimiser, rules))
            score = None if validation_score is None else validation_score(params)
            if score is not None:
                scores.append(score)
            progress.note(losses[-1], score, params)
            optimiser.end_epoch(len(rows))
            last = losses[-2] - losses[-1] if len(losses) > 1 else math.inf
            if watch.end(params.copy(), Step(None, losses[-1], abs(last)), rules.tol):
                break
            if progress.without > rules.patience:
                if not optimiser.goes_on():
                    break
                progress.without = 0
    if progress.best is not None:
        params[:] = progress.best
    return EpochEnd(params, optimiser.state(), losses, scores, progress.best_score)


def _epoch(slopes: MinibatchSlopes, rows: TrainingRows, optimiser: Optimiser, rules: EpochRules) -> float:
    """One pass over all rows in minibatches; return the mean of their penalised losses."""
    n, total, params = len(rows), 0.0, optimiser.params
    number = optimiser.epochs
    order = epoch_order(n, rows.columns, (optimiser.seed, number)) if rules.shuffle else np.arange(n)
    slopes.expect(order, rules.batch)
    alpha = optimiser.rules.alpha if optimiser.rules.solver != "adamw" else 0.0
    batches = math.ceil(n / rules.batch)
    for k in range(batches):
        index = order[k * rules.batch : (k + 1) * rules.batch]
        weight = float(rows.w[index].sum())
        with np.errstate(over="ignore", invalid="ignore"):
            mean, found = slopes.at(rows, index, weight, (optimiser.seed, number, k))
            weights = params[: optimiser.n_weights]
            penalised = mean + 0.5 * alpha * float(weights @ weights) / weight
        if not math.isfinite(penalised):
            slopes.refuse_divergence(rows, index, optimiser.steps)
        total += penalised * len(index)
        # Epochs of partial_fit beyond max_iter begin the schedule anew (warm restarts).
        share = (number % max(1, rules.max_iter) + k / batches) / max(1, rules.max_iter)
        optimiser.step(found, weight, scheduled(optimiser.rules.schedule, share))
    return total / n
