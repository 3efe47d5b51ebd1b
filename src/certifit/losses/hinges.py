"""Piecewise quadratic losses of the margin: hinge, squared hinge, Huberised hinge, quadratic.

Hinges also say what linear support vector machines need to know of them (`HingeShape`): a loss in `HINGES` is a loss
of LinearSVC, and one in `RESIDUAL_HINGES` a loss of LinearSVR.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from certifit.losses.loss import setting
from certifit.losses.margin import MarginLoss
from certifit.rows import Array


class HingeShape(NamedTuple):
    """A hinge as a function of the slack z = 1 - m, written as a maximum over dual variables a.

        φ(z) = max over 0 <= a <= top of a (z + e) - a² / (2κ)

    The maximiser a = clip(κ (z + e), 0, top) is the slope of φ.
    """

    kappa: float  # κ, the curvature between the straight parts; ∞ for a kink at z = -e
    e: float = 0.0  # the slack -e is where the loss begins
    top: float = 1.0  # the largest slope; ∞ where the loss never becomes straight

    def value(self, z: Array) -> Array:
        """φ of each slack z (n,)."""
        z = z + self.e
        a = np.where(z > 0, np.minimum(self.kappa * np.maximum(z, 1e-300), self.top), 0.0)
        return a * z - a**2 / (2 * self.kappa)

    def bends_near(self, z: Array, radius: float) -> Array:
        """Whether φ is not straight within this radius of each slack z (n,)."""
        return (z >= -self.e - radius) & (z <= self.top / self.kappa - self.e + radius)


def rounded_hinge(h: float) -> HingeShape:
    """The hinge with its kink rounded over z = ±h: nowhere below it, nowhere more than h/4 above it."""
    return HingeShape(0.5 / h, h)


class HingeLoss(MarginLoss):
    """A margin loss that linear support vector machines can minimise: 0 first, then curved or straight."""

    @property
    @abstractmethod
    def shape(self) -> HingeShape: ...


@dataclass(frozen=True)
class Hinge(HingeLoss):
    """φ(m) = max(0, 1 - m): the soft margin of support vector machines. The best f is the more probable class.

    At the kink m = 1 the subgradients are [-1, 0]; `derivative` gives 0.

    >>> Hinge().derivative([0.0, 1.0]).tolist(), Hinge().conjugate([-1.0, 0.5]).tolist()
    ([-1.0, 0.0], [-1.0, inf])
    """

    name = "hinge"
    shape = HingeShape(np.inf)
    kinks = (1.0,)
    domain = (-1.0, 0.0)
    smoothness = np.inf

    def _value(self, x: Array) -> Array:
        return np.maximum(0, 1 - x)

    def _derivative(self, x: Array) -> Array:
        return np.where(x < 1, -1, 0)

    def _second_derivative(self, x: Array) -> Array:
        return np.zeros_like(x)

    def _conjugate(self, u: Array) -> Array:
        return u

    def _prox(self, v: Array, t: Array) -> Array:
        return np.clip(1.0, v, v + t)

    def _risk_minimiser(self, p: Array) -> Array:
        return np.sign(p - 0.5)

    def _psi(self, theta: Array) -> Array:
        return theta


@dataclass(frozen=True)
class Quadratic(MarginLoss):
    """φ(m) = (1 - m)², least squares on ±1: it also punishes margins above 1. The best f is 2p - 1.

    >>> Quadratic().value([0.0, 3.0]).tolist()
    [1.0, 4.0]
    """

    name = "quadratic"
    domain = (-np.inf, np.inf)
    smoothness = 2.0

    def _value(self, x: Array) -> Array:
        return (1 - x) ** 2

    def _derivative(self, x: Array) -> Array:
        return 2 * (x - 1)

    def _second_derivative(self, x: Array) -> Array:
        return np.full_like(x, 2)

    def _conjugate(self, u: Array) -> Array:
        return u * (1 + u / 4)

    def _prox(self, v: Array, t: Array) -> Array:
        return (v / 2 + t) / (0.5 + t)  # 2 t may be too large a number

    def _risk_minimiser(self, p: Array) -> Array:
        return 2 * p - 1

    def _psi(self, theta: Array) -> Array:
        return theta**2


@dataclass(frozen=True)
class SquaredHinge(Quadratic, HingeLoss):
    """φ(m) = max(0, 1 - m)²: quadratic for margins below 1, nothing above. The best f is 2p - 1.

    >>> SquaredHinge().value([0.0, 3.0]).tolist()
    [1.0, 0.0]
    """

    name = "squared hinge"
    shape = HingeShape(2.0, 0.0, np.inf)
    domain = (-np.inf, 0.0)

    def _value(self, x: Array) -> Array:
        return super()._value(np.minimum(x, 1))

    def _derivative(self, x: Array) -> Array:
        return super()._derivative(np.minimum(x, 1))

    def _second_derivative(self, x: Array) -> Array:
        return np.where(x <= 1, 2, 0)

    def _prox(self, v: Array, t: Array) -> Array:
        return np.where(v < 1, super()._prox(v, t), v)


@dataclass(frozen=True)
class HuberisedHinge(HingeLoss):
    """The hinge with its kink rounded over 1 ± h: Chapelle, "Training a support vector machine in the primal" (2007).

        φ(m) = 0 for m > 1 + h,    (1 + h - m)² / (4h) for |1 - m| <= h,    1 - m for m < 1 - h

    Nowhere below the hinge and nowhere more than h/4 above it.

    Parameters
    ----------
    width : h, above 0 and at most 1, so that every error is on the straight part

    >>> HuberisedHinge(width=0.5).value([0.0, 1.0, 1.5]).tolist()
    [1.0, 0.125, 0.0]
    """

    width: float = 0.5

    name = "Huberised hinge"
    domain = (-1.0, 0.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", setting("width", self.width, 0, 1, closed=False))

    @property
    def shape(self) -> HingeShape:
        return rounded_hinge(self.width)

    @property
    def smoothness(self) -> float:
        return 0.5 / self.width

    def _value(self, x: Array) -> Array:
        h = self.width
        z = np.clip(1 + h - x, 0, 2 * h)
        return z * (z / (4 * h)) + np.maximum(0, 1 - h - x)

    def _derivative(self, x: Array) -> Array:
        return np.clip((x - 1 - self.width) / (2 * self.width), -1, 0)

    def _second_derivative(self, x: Array) -> Array:
        return np.where(np.abs(1 - x) <= self.width, self.smoothness, 0)

    def _conjugate(self, u: Array) -> Array:
        return u * (1 + self.width * (1 + u))

    def _prox(self, v: Array, t: Array) -> Array:
        h = self.width
        return np.clip((h * v + t / 2 * (1 + h)) / (h + t / 2), v, v + t)

    def _risk_minimiser(self, p: Array) -> Array:
        odds = np.minimum(p, 1 - p) / np.maximum(p, 1 - p)
        return np.sign(p - 0.5) * (1 + self.width * (1 - 2 * odds))

    def _psi(self, theta: Array) -> Array:
        return theta * (1 - self.width * (1 - theta) / (1 + theta))


HINGES: dict[str, HingeLoss] = {
    "hinge": Hinge(),
    "squared_hinge": SquaredHinge(),
    "huberised_hinge": HuberisedHinge(),
}
# (|r| - ε)₊ and its square are these, of the slacks r - ε and -r - ε
RESIDUAL_HINGES: dict[str, HingeLoss] = {
    "epsilon_insensitive": Hinge(),
    "squared_epsilon_insensitive": SquaredHinge(),
}
