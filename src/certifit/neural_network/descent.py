"""Descent by minibatches: epochs, early stopping with the best weights restored, and what each epoch reports."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from certifit.core import Step
from certifit.core.loop import Watcher
from certifit.neural_network.optimisers import Optimiser, Schedule
from certifit.neural_network.training import GradientSums, TrainingRows, check_finite
from certifit.rows import Array


@dataclass(frozen=True)
class DescentSettings:
    """What steers a descent."""

    epochs: int
    batch: int  # rows of a minibatch
    rate: float  # of the first step
    schedule: Schedule
    adaptive: bool = False  # whether the rate is divided by 5 where an epoch gains nothing
    alpha: float = 0.0  # penalty α |W|² / 2, divided by the weight of the minibatch
    clip_norm: float | None = None  # longest gradient
    shuffle: bool = True
    tol: float = 1e-4  # an epoch that gains less than this counts as none
    patience: int = 10  # epochs without a gain after which it ends
    seed: int = 0


@dataclass
class DescentState:
    """Where a descent stands: the weights, the best so far, and what its epochs have said."""

    theta: Array  # (p,)
    best_theta: Array | None = None  # with early stopping
    losses: list[float] = field(default_factory=list)  # of each epoch: the mean over its minibatches
    scores: list[float] = field(default_factory=list)  # of the rows held out after each epoch
    idle: int = 0  # epochs since the last gain
    rows_seen: int = 0
    interrupted: bool = False


@dataclass
class Descent:
    """Passes over the rows, a step for each minibatch."""

    sums: GradientSums
    optimiser: Optimiser
    settings: DescentSettings
    score: Callable[[Array], float] | None = None  # of the rows held out; with it, the best weights are kept
    factor: float = 1.0  # of the learning rate, where it is adaptive

    def run(self, state: DescentState, windows: Callable[[], Iterable[TrainingRows]], watch: Watcher) -> DescentState:
        """Descend until nothing is gained for long, epochs run out, a callback says stop, or an interrupt comes."""
        best = math.inf
        for _ in range(self.settings.epochs):
            watch.begin()
            try:
                with np.errstate(over="ignore", invalid="ignore"):  # `check_finite` tells of it
                    loss = self._epoch(state, windows(), len(state.losses))
            except KeyboardInterrupt:
                # What was learnt so far is kept: it is worth hours, and says what it is.
                state.interrupted = True
                return state
            state.losses.append(loss)
            gain = best - loss
            if self.score is not None:
                state.scores.append(self.score(state.theta))
                gain = state.scores[-1] - max(state.scores[:-1], default=-math.inf)
                if gain > 0:
                    state.best_theta = state.theta.copy()
            state.idle = 0 if gain > self.settings.tol else state.idle + 1
            best = min(best, loss)
            stop = watch.end(state.theta, Step(None, loss, abs(gain)), self.settings.tol)
            if stop or (state.idle > self.settings.patience and not self._slowed(state)):
                break
        return state

    def _slowed(self, state: DescentState) -> bool:
        """Divide an adaptive rate by 5, down to 1e-6, and go on."""
        if not self.settings.adaptive or self.settings.rate * self.factor <= 1e-6:
            return False
        self.factor /= 5
        state.idle = 0
        return True

    def _epoch(self, state: DescentState, windows: Iterable[TrainingRows], epoch: int) -> float:
        """Take a step for each minibatch; return the mean of their losses."""
        total = weight = 0.0
        for number, rows in enumerate(windows):
            n = len(rows.w)
            order = self._order(n, epoch, number)
            for start in range(0, n, self.settings.batch):
                stop = min(start + self.settings.batch, n)
                index = order[start:stop] if order is not None else slice(start, stop)
                loss = self._step(state, rows, index, epoch)
                total += loss * (stop - start)
                weight += stop - start
            state.rows_seen += n
        return total / weight

    def _order(self, n: int, epoch: int, window: int) -> Array | None:
        if not self.settings.shuffle:
            return None
        return np.random.default_rng([self.settings.seed, epoch, window]).permutation(n)

    def _step(self, state: DescentState, rows: TrainingRows, index: Array | slice, epoch: int) -> float:
        """Move by the gradient of one minibatch; return its mean loss with the penalty."""
        settings, theta = self.settings, state.theta
        weight, loss, gradient = self.sums(theta, rows, index, self.optimiser.steps)
        W = theta[: self.sums.network.n_weights]
        gradient *= theta.dtype.type(1 / weight)
        if settings.alpha:
            gradient[: len(W)] += theta.dtype.type(settings.alpha / weight) * W
        loss = (loss + 0.5 * settings.alpha * float(np.dot(W, W))) / weight
        check_finite(self.sums.network, theta, loss, epoch + 1, self.optimiser.steps + 1)
        if settings.clip_norm is not None:
            norm = float(np.linalg.norm(gradient))
            if norm > settings.clip_norm:
                gradient *= theta.dtype.type(settings.clip_norm / norm)
        rate = settings.rate * self.factor * settings.schedule.share(self.optimiser.steps, state.rows_seen)
        self.optimiser.move(theta, gradient, rate)
        return loss
