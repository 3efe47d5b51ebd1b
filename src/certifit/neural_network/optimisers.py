"""Optimisers: how parameters move when the gradient of a minibatch is known.

References: Polyak (1964) and Nesterov (1983) on momentum; Kingma & Ba, Adam (2015); Loshchilov & Hutter, Decoupled
weight decay (2019).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np

from certifit.neural_network.optimiser_loops import step_adam, step_momentum
from certifit.rows import Array


class Optimiser(ABC):
    """Moves a parameter vector in place; what it remembers are arrays of the same length."""

    steps: int  # taken so far

    @abstractmethod
    def move(self, theta: Array, gradient: Array, rate: float) -> None:
        """Take one step of length `rate`."""

    @abstractmethod
    def memory(self) -> dict[str, Array]:
        """Return the arrays it remembers, which a checkpoint keeps."""


@dataclass
class Momentum(Optimiser):
    """Gradient descent with momentum, by default Nesterov's."""

    size: int
    dtype: np.dtype
    momentum: float = 0.9
    nesterov: bool = True
    steps: int = 0
    velocity: Array = field(init=False)

    def __post_init__(self) -> None:
        self.velocity = np.zeros(self.size, self.dtype)

    def move(self, theta: Array, gradient: Array, rate: float) -> None:
        self.steps += 1
        kind = theta.dtype.type
        numbers = kind(rate), kind(self.momentum), kind(1.0 if self.nesterov else 0.0)
        step_momentum(theta, gradient, self.velocity, numbers)

    def memory(self) -> dict[str, Array]:
        return {"velocity": self.velocity}


@dataclass
class Adam(Optimiser):
    """Steps by the mean of the gradients, divided by the root of the mean of their squares."""

    size: int
    dtype: np.dtype
    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-8
    n_decayed: int = 0  # how many parameters shrink by themselves, those that come first
    decay: float = 0.0  # AdamW: by this share of the rate at every step
    steps: int = 0
    first: Array = field(init=False)
    second: Array = field(init=False)

    def __post_init__(self) -> None:
        self.first, self.second = np.zeros((2, self.size), self.dtype)

    def move(self, theta: Array, gradient: Array, rate: float) -> None:
        self.steps += 1
        if self.decay:
            theta[: self.n_decayed] *= 1 - rate * self.decay
        # Both means start at 0: early ones are too small by known factors.
        corrected = rate * math.sqrt(1 - self.beta_2**self.steps) / (1 - self.beta_1**self.steps)
        kind = theta.dtype.type
        numbers = kind(corrected), kind(self.beta_1), kind(self.beta_2), kind(self.epsilon)
        step_adam(theta, gradient, self.first, self.second, numbers)

    def memory(self) -> dict[str, Array]:
        return {"first": self.first, "second": self.second}


@dataclass(frozen=True)
class Schedule:
    """The learning rate of each step, as a share of the first; all but 'invscaling' know how many steps there are."""

    name: str  # 'constant', 'adaptive', 'invscaling', 'cosine', 'step', 'warm_up' or 'flat_cosine'
    steps: int  # of the whole training
    power: float = 0.5  # of 'invscaling'

    def share(self, step: int, rows_seen: int) -> float:
        """Return the share at this step, counted from 0, after so many rows."""
        done = min(1.0, step / max(1, self.steps))
        if self.name == "invscaling":
            return 1 / (rows_seen + 1) ** self.power
        if self.name == "cosine":
            return 0.5 * (1 + math.cos(math.pi * done))
        if self.name == "step":
            return 0.1 ** int(3 * done)  # a tenth after each third
        if self.name == "warm_up":
            return min(1.0, (step + 1) / max(1.0, 0.05 * self.steps)) * 0.5 * (1 + math.cos(math.pi * done))
        if self.name == "flat_cosine":
            return 1.0 if done < 0.5 else 0.5 * (1 + math.cos(math.pi * (2 * done - 1)))
        return 1.0
