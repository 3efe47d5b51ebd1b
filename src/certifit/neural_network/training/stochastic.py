"""Minibatch training, epoch by epoch, until nothing improves."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from certifit.core.loop import Step
from certifit.core.watch import Watch
from certifit.files.checkpoint import Checkpoint
from certifit.neural_network.network import Network
from certifit.neural_network.output_losses import OutputLoss
from certifit.neural_network.training.network_rows import MinibatchRows
from certifit.neural_network.training.optimiser_team import OptimiserTeam
from certifit.neural_network.training.optimisers import Optimiser, OptimiserState, scheduled
from certifit.neural_network.training.rows_on_workers import slopes_of
from certifit.neural_network.training.slopes import LossAndWeights, MinibatchSlopes
from certifit.neural_network.training.training_run import TrainingProgress, TrainingRun
from certifit.rows import Array


class EpochRules(NamedTuple):
    """How epochs are run, and when they end."""

    batch: int  # rows of a minibatch
    shuffle: bool
    max_iter: int  # epochs
    tol: float  # an improvement by less is none
    patience: int  # epochs without improvement
    incremental: bool = False  # one epoch, whatever max_iter is
    checkpoint: Checkpoint | None = None  # where training is written down


class EpochEnd(NamedTuple):
    """Where training ended."""

    params: Array  # (p,)
    state: OptimiserState
    losses: list[float]  # mean loss of every epoch's minibatches
    scores: list[float]  # of the validation rows, where there are any
    best_score: float
    interrupted: bool = False  # by Ctrl-C


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


def train(
    network: Network,
    loss: OutputLoss,
    rows: MinibatchRows,
    optimiser: Optimiser,
    rules: EpochRules,
    watch: Watch,
    validation_score: Callable[[Array], float] | None = None,
) -> EpochEnd:
    """Run epochs; with validation rows the parameters with the best score are returned, else the last ones.

    So they are after Ctrl-C, once a minibatch was learnt from.
    """
    params, run = optimiser.params, TrainingRun(optimiser, TrainingProgress(rules.tol))
    progress, checkpoint = run.progress, rules.checkpoint
    if checkpoint is not None:
        run.resume(checkpoint, rules.max_iter)
    begun, interrupted = optimiser.steps, False
    try:
        _run_epochs(network, loss, rows, run, rules, watch, validation_score)
    except KeyboardInterrupt:
        if optimiser.steps == begun or rules.incremental:
            raise  # there is nothing new to keep, or there is an earlier fit
        interrupted = True
    if checkpoint is not None and not interrupted:  # proving what was reached takes as long as some epochs
        run.write(checkpoint, rules.max_iter)
    if progress.best is not None:
        params[:] = progress.best
    return EpochEnd(params, optimiser.state(), run.losses, run.scores, progress.best_score, interrupted)


def _run_epochs(
    network: Network,
    loss: OutputLoss,
    rows: MinibatchRows,
    run: TrainingRun,
    rules: EpochRules,
    watch: Watch,
    validation_score: Callable[[Array], float] | None,
) -> None:
    """Run epochs until nothing improves or there have been enough."""
    optimiser, progress, checkpoint = run.optimiser, run.progress, rules.checkpoint
    params = optimiser.params
    with slopes_of(rows, network, loss, params) as slopes:
        while not run.ended and len(run.losses) < (1 if rules.incremental else rules.max_iter):
            watch.begin()
            mean, score = _epoch(slopes, rows, run, rules), None
            if validation_score is not None:
                with slopes.interrupt.at_once():
                    score = validation_score(params)
                run.scores.append(score)
            run.losses.append(mean)
            progress.note(run.losses[-1], score, params)
            optimiser.end_epoch(len(rows))
            last = run.losses[-2] - run.losses[-1] if len(run.losses) > 1 else math.inf
            run.ended = watch.end(params.copy(), Step(None, run.losses[-1], abs(last)), rules.tol)
            if progress.without > rules.patience and not run.ended:
                run.ended, progress.without = not optimiser.goes_on(), 0
            if checkpoint is not None and checkpoint.due:
                run.write(checkpoint, rules.max_iter)


def _epoch(slopes: MinibatchSlopes, rows: MinibatchRows, run: TrainingRun, rules: EpochRules) -> float:
    """One pass over all rows in minibatches, or what is left of it; return the mean of their penalised losses."""
    optimiser = run.optimiser
    n, number = len(rows), optimiser.epochs
    order = epoch_order(n, rows.columns, (optimiser.seed, number)) if rules.shuffle else np.arange(n)
    slopes.expect(order, rules.batch)
    team = OptimiserTeam(optimiser, slopes.workers.count)
    slopes.follow(team.copies)
    alpha = optimiser.rules.alpha if optimiser.rules.solver != "adamw" else 0.0
    batches = math.ceil(n / rules.batch)
    try:
        while run.batch < batches:
            k = run.batch
            index = order[k * rules.batch : (k + 1) * rules.batch]
            weight = float(rows.w[index].sum())
            with np.errstate(over="ignore", invalid="ignore"):
                mean, found = slopes.pair_at(rows, index, weight, (optimiser.seed, number, k), team.move)
                penalised = mean + 0.5 * alpha * team.squares / weight
            found_at = LossAndWeights(penalised, team.squares)
            run.first = run.first or found_at
            if slopes.is_divergent(found_at, run.first):
                slopes.refuse_divergence(rows, index, optimiser.steps, penalised)
            run.total += penalised * len(index)
            # Epochs of partial_fit beyond max_iter begin the schedule anew (warm restarts).
            share = (number % max(1, rules.max_iter) + k / batches) / max(1, rules.max_iter)
            team.plan(found, weight, scheduled(optimiser.rules.schedule, share))
            run.batch += 1
            if rules.checkpoint is not None and run.batch < batches and rules.checkpoint.due:
                team.settle()
                run.write(rules.checkpoint, rules.max_iter)
    finally:
        team.settle()
    mean, run.batch, run.total = run.total / n, 0, 0.0
    return mean
