"""Optimisers of minibatch training: gradient descent with momentum, Adam and AdamW, and schedules of their rate.

References: Kingma & Ba, Adam (2015); Loshchilov & Hutter, Decoupled weight decay regularization (2019).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple
from zlib import crc32

import numpy as np

from certifit.neural_network.training.optimiser_loops import AdamRates, MomentumRates, adam_step, momentum_step
from certifit.rows import Array


@dataclass(frozen=True)
class OptimiserState:
    """Where minibatch training stands: what `partial_fit` goes on from."""

    mean: Array  # (p,) running mean of slopes, or the velocity
    square: Array  # (p,) running mean of their squares; empty without Adam
    steps: int  # minibatches
    rows: int  # seen in all epochs
    epochs: int
    rate: float  # before any schedule
    seed: int  # of the order of rows
    checksum: int  # of all of these and of the parameters

    def sum_of(self, params: Array) -> int:
        """The checksum of this state with these parameters."""
        numbers = (self.steps, self.rows, self.epochs, self.rate, self.seed)
        found = crc32(repr(numbers).encode())
        for part in (params, self.mean, self.square):
            found = crc32(np.ascontiguousarray(part).tobytes(), found)
        return found


class OptimiserRules(NamedTuple):
    """The settings of an optimiser."""

    solver: str  # 'sgd', 'adam' or 'adamw'
    rate: float
    schedule: str
    momentum: float
    nesterov: bool
    power: float  # of the rows seen, by which 'invscaling' divides
    beta_1: float
    beta_2: float
    epsilon: float
    alpha: float  # strength of the penalty
    clip: float = math.inf  # largest norm of a minibatch's slopes


class ParameterGroup(NamedTuple):
    """Parameters that lie side by side and are treated alike."""

    start: int
    end: int
    penalised: bool
    factor: float = 1.0  # of the rate


@dataclass(frozen=True)
class ScheduleTuning:
    """The shapes of schedules, as shares of all epochs."""

    warm_up: float = 0.1  # 'warm_up' rises linearly until here, then falls as a cosine
    flat: float = 0.5  # 'flat_cosine' is constant until here
    drops: tuple[float, ...] = (0.5, 0.75)  # 'step' divides the rate by ten here
    smallest: float = 1e-6  # at which 'adaptive' ends
    adaptive: float = 5.0  # by which 'adaptive' divides when nothing improves


def add_chunks(slopes: Array, left: int) -> Array:
    """Add the slopes of chunks (chunks, p) pairwise until so many are left: in an order that no thread changes."""
    while len(slopes) > left:
        width = len(slopes) // 2
        np.add(slopes[:width], slopes[width:], out=slopes[:width])
        slopes = slopes[:width]
    return slopes


SCHEDULES = ("constant", "invscaling", "adaptive", "cosine", "step", "warm_up", "flat_cosine")


def scheduled(schedule: str, share: float, tuning: ScheduleTuning = ScheduleTuning()) -> float:
    """The factor of the rate after this share of all epochs.

    >>> [round(scheduled("cosine", share), 3) for share in (0, 0.5, 1)]
    [1.0, 0.5, 0.0]
    >>> [round(scheduled("warm_up", share), 3) for share in (0.05, 0.1, 1)]
    [0.5, 1.0, 0.0]
    >>> [round(scheduled("flat_cosine", share), 3) for share in (0.25, 0.5, 0.75)]
    [1.0, 1.0, 0.5]
    >>> [round(scheduled("step", share), 3) for share in (0.25, 0.6, 0.9)]
    [1.0, 0.1, 0.01]
    """
    if schedule == "step":
        return 0.1 ** sum(share >= drop for drop in tuning.drops)
    begin = {"cosine": 0.0, "warm_up": tuning.warm_up, "flat_cosine": tuning.flat}.get(schedule)
    if begin is None:
        return 1.0
    if share < begin:
        return share / begin if schedule == "warm_up" else 1.0
    return 0.5 * (1 + math.cos(math.pi * (share - begin) / (1 - begin)))


class PlannedStep(NamedTuple):
    """A step of an optimiser that is known but not taken yet."""

    slopes: Array  # (chunks, p), of one or two chunks, still to be added
    number: int  # of the step, from 1
    weight: float  # of the minibatch
    rate: float  # with the schedule's factor


class Optimiser:
    """Parameters and the state of an optimiser, changed in place by every step."""

    def __init__(self, rules: OptimiserRules, params: Array, n_weights: int, state: OptimiserState) -> None:
        self.rules, self.params, self.n_weights = rules, params, n_weights
        self.groups: tuple[ParameterGroup, ...] = (
            ParameterGroup(0, n_weights, True),
            ParameterGroup(n_weights, len(params), False),
        )
        self.mean, self.square = state.mean.copy(), state.square.copy()
        self.steps, self.rows, self.epochs, self.rate, self.seed = (
            state.steps, state.rows, state.epochs, state.rate, state.seed,
        )  # fmt: skip

    @classmethod
    def begin(cls, rules: OptimiserRules, params: Array, n_weights: int, seed: int) -> Optimiser:
        """An optimiser that has seen nothing."""
        empty = np.zeros(0, params.dtype)
        square = empty if rules.solver == "sgd" else np.zeros_like(params)
        state = OptimiserState(np.zeros_like(params), square, 0, 0, 0, rules.rate, seed, 0)
        return cls(rules, params, n_weights, state)

    def state(self) -> OptimiserState:
        """A copy of where it stands."""
        found = OptimiserState(
            self.mean.copy(), self.square.copy(), self.steps, self.rows, self.epochs, float(self.rate), self.seed, 0
        )
        return OptimiserState(**{**vars(found), "checksum": found.sum_of(self.params)})

    def step(self, slopes: Array, weight: float, factor: float) -> None:
        """Move by the slopes of a minibatch of this weight, at `factor` times the rate; long slopes are shortened."""
        self.move(self.plan(np.atleast_2d(slopes), weight, factor))

    def plan(self, slopes: Array, weight: float, factor: float) -> PlannedStep:
        """The next step, by slopes of one or two chunks (chunks, p), as `move` takes it."""
        self.steps += 1
        clip = self.rules.clip
        if clip < math.inf:
            slopes = add_chunks(slopes, 1)
            norm = float(np.linalg.norm(slopes))
            slopes *= slopes.dtype.type(min(1.0, clip / norm) if norm > 0 else 1.0)
        return PlannedStep(slopes, self.steps, weight, factor * self.rate)

    def move(self, step: PlannedStep) -> None:
        """Take a step, which may be that of another optimiser whose parameters are the same."""
        rules = self.rules
        for group in self.groups:
            place, alpha = slice(group.start, group.end), rules.alpha if group.penalised else 0.0
            rate = step.rate * group.factor
            params, mean = self.params[place], self.mean[place]
            slopes, second = step.slopes[0, place], step.slopes[-1, place if len(step.slopes) > 1 else slice(0)]
            if rules.solver == "sgd":
                rates = MomentumRates(rate, rules.momentum, bool(rules.nesterov), alpha / step.weight)
                momentum_step(params, slopes, second, mean, rates)
                continue
            corrected = rate * math.sqrt(1 - rules.beta_2**step.number) / (1 - rules.beta_1**step.number)
            ridge, decay = (alpha / step.weight, 0.0) if rules.solver == "adam" else (0.0, step.rate * alpha)
            numbers = AdamRates(corrected, rules.beta_1, rules.beta_2, rules.epsilon, ridge, decay)
            adam_step(params, slopes, second, mean, self.square[place], numbers)

    def squared_weights(self) -> float:
        """The sum of squares of all weights, of which a penalty is a multiple."""
        weights = self.params[: self.n_weights]
        with np.errstate(over="ignore", invalid="ignore"):  # training that diverges is told by its loss
            return float(weights @ weights)

    def copy(self) -> Optimiser:
        """Another one that stands where this one stands."""
        found = Optimiser(self.rules, self.params.copy(), self.n_weights, self.state())
        found.groups = self.groups
        return found

    def end_epoch(self, rows: int) -> None:
        """Count an epoch; 'invscaling' then has another rate."""
        self.rows += rows
        self.epochs += 1
        if self.rules.schedule == "invscaling":
            self.rate = self.rules.rate / (self.rows + 1) ** self.rules.power

    def goes_on(self, tuning: ScheduleTuning = ScheduleTuning()) -> bool:
        """Whether training goes on although nothing improves: with 'adaptive', at a smaller rate."""
        if self.rules.schedule != "adaptive" or self.rate <= tuning.smallest:
            return False
        self.rate /= tuning.adaptive
        return True
