"""Losses of the residual r = y - f that are 0 up to a size epsilon, as in support vector regression."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit.losses.loss import Loss, setting
from certifit.rows import Array


@dataclass(frozen=True)
class Insensitive(Loss):
    """A loss of the distance by which |r| exceeds epsilon >= 0."""

    epsilon: float = 0.1

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", setting("epsilon", self.epsilon, 0, np.inf, closed=True))

    def _beyond(self, r: Array) -> Array:
        """|r| - epsilon where it is positive, with the sign of r."""
        return np.copysign(np.maximum(0, np.abs(r) - self.epsilon), r)


@dataclass(frozen=True)
class EpsilonInsensitive(Insensitive):
    """φ(r) = max(0, |r| - epsilon); the absolute loss for epsilon = 0. `derivative` gives 0 at the kinks ±epsilon.

    >>> EpsilonInsensitive(0.5).value([-2.0, 0.25, 1.0]).tolist()
    [1.5, 0.0, 0.5]
    """

    name = "epsilon-insensitive"
    domain = (-1.0, 1.0)
    smoothness = np.inf

    @property
    def kinks(self) -> tuple[float, ...]:
        return (-self.epsilon, self.epsilon) if self.epsilon else (0.0,)

    def _value(self, x: Array) -> Array:
        return np.abs(self._beyond(x))

    def _derivative(self, x: Array) -> Array:
        return np.sign(self._beyond(x))

    def _second_derivative(self, x: Array) -> Array:
        return np.zeros_like(x)

    def _conjugate(self, u: Array) -> Array:
        return self.epsilon * np.abs(u)

    def _prox(self, v: Array, t: Array) -> Array:
        size = np.abs(v)
        return np.copysign(np.clip(self.epsilon, size - t, size), v)


@dataclass(frozen=True)
class SquaredEpsilonInsensitive(Insensitive):
    """φ(r) = max(0, |r| - epsilon)²; least squares for epsilon = 0.

    >>> SquaredEpsilonInsensitive(0.5).value([-2.0, 0.25, 1.0]).tolist()
    [2.25, 0.0, 0.25]
    """

    name = "squared epsilon-insensitive"
    domain = (-np.inf, np.inf)
    smoothness = 2.0

    def _value(self, x: Array) -> Array:
        return self._beyond(x) ** 2

    def _derivative(self, x: Array) -> Array:
        return 2 * self._beyond(x)

    def _second_derivative(self, x: Array) -> Array:
        return np.where(np.abs(x) >= self.epsilon, 2, 0)

    def _conjugate(self, u: Array) -> Array:
        return np.abs(u) * (self.epsilon + np.abs(u) / 4)

    def _prox(self, v: Array, t: Array) -> Array:
        beyond = self._beyond(v)
        return np.where(beyond == 0, v, np.copysign(self.epsilon, v) + beyond / 2 / (0.5 + t))
