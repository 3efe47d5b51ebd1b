"""Losses of the margin m = y f, y = ±1, and what a small risk of theirs says about the share of errors.

With p = P(y = 1 | x) and the conditional risk p φ(m) + (1 - p) φ(-m), Bartlett, Jordan & McAuliffe, "Convexity,
classification, and risk bounds" (JASA 101, 2006): a convex φ is classification-calibrated (its best f has the sign
of the more probable class) exactly if φ'(0) < 0, and then for every f, with R its share of errors and R_φ its mean φ,

    ψ(R(f) - best R) <= R_φ(f) - best R_φ,    ψ(θ) = φ(0) - least conditional risk at p = (1 + θ)/2.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from certifit.exceptions import DataError
from certifit.losses.loss import Loss, evaluate, within
from certifit.rows import Array


class MarginLoss(Loss):
    """A loss of the margin: positive margins are right answers, m <= 0 is an error.

    >>> from certifit.losses import Hinge
    >>> hinge = Hinge()
    >>> isinstance(hinge, MarginLoss), hinge.calibrated, hinge.bounds_zero_one
    (True, True, True)
    >>> hinge.risk_minimiser([0.2, 0.8]).tolist()  # the sign of the more probable class
    [-1.0, 1.0]
    """

    @property
    def calibrated(self) -> bool:
        """Whether the least risk has the sign of the more probable class: convex, and φ'(0) < 0 exists."""
        return self.convex and 0.0 not in self.kinks and bool(self.derivative(0.0) < 0)

    @property
    def bounds_zero_one(self) -> bool:
        """Whether φ(m) >= 1[m <= 0] for every m.

        Proved on the whole line by convexity: left of 0, φ(m) >= φ(0) + φ'(0) m >= 1 if φ(0) >= 1 and φ'(0) < 0;
        right of it, φ(m) >= inf φ = -φ*(0) >= 0. For calibrated losses both conditions are also necessary.
        """
        return self.calibrated and bool(self.value(0.0) >= 1) and bool(self.conjugate(0.0) <= 0)

    def risk_minimiser(self, p: Any) -> Array:
        """The m with the least p φ(m) + (1 - p) φ(-m), for p in [0, 1]; 0 where p = ½ leaves a choice."""
        return evaluate(self._risk_minimiser, within(p, 0, 1, "probabilities"))

    def psi(self, theta: Any) -> Array:
        """ψ(θ) for θ in [-1, 1]: excess 0-1 risk of θ costs an excess of at least ψ(θ) in the risk of φ."""
        return evaluate(lambda theta: self._psi(np.abs(theta)), within(theta, -1, 1, "excess risks"))

    @abstractmethod
    def _risk_minimiser(self, p: Array) -> Array: ...

    @abstractmethod
    def _psi(self, theta: Array) -> Array: ...


@dataclass(frozen=True)
class ZeroOne(MarginLoss):
    """The number of errors: φ(m) = 1 for m <= 0, else 0.

    Not convex, and of no use for descent: the derivative is 0 wherever there is one (and is given as 0 at the jump),
    the conjugate is that of the constant 0, and there is no proximal step, as the least is not reached at a jump.

    >>> ZeroOne().value([-0.1, 0.0, 0.1]).tolist()
    [1.0, 1.0, 0.0]
    """

    name = "0-1"
    convex = False
    kinks = (0.0,)
    domain = (0.0, 0.0)
    smoothness = np.inf
    calibrated = True  # by definition
    bounds_zero_one = True

    def _value(self, x: Array) -> Array:
        return x <= 0

    def _derivative(self, x: Array) -> Array:
        return np.zeros_like(x)

    _second_derivative = _derivative

    def _conjugate(self, u: Array) -> Array:
        return u

    def _prox(self, v: Array, t: Array) -> Array:
        raise DataError(
            got="a proximal step of the 0-1 loss",
            wanted="one of a convex loss",
            fix="Use one that bounds it from above, such as Hinge().",
        )

    def _risk_minimiser(self, p: Array) -> Array:
        return np.where(p < 0.5, -1.0, 1.0)  # 0 would be wrong for both classes

    def _psi(self, theta: Array) -> Array:
        return theta
