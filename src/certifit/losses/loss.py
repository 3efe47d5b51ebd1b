"""The interface of every loss φ of one real number, which is a margin m = y f or a residual r = y - f.

conjugate  φ*(u) = sup over x of u x - φ(x),    so that φ(x) + φ*(u) >= x u, with equality at u = φ'(x)
prox       argmin over x of φ(x) + (x - v)² / (2 t)
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from certifit.exceptions import DataError
from certifit.rows import Array


class Loss(ABC):
    """A loss φ, element by element over arrays of any shape.

    float32 stays float32, all else is computed in float64. Infinite arguments have their limits, and what is too
    large to be a number is infinite.

    Attributes
    ----------
    name : in words
    convex : whether φ is convex
    kinks : where φ has no derivative
    domain : (low, high), the u with φ*(u) < ∞; its end farther from 0 is the Lipschitz constant of φ
    smoothness : Lipschitz constant of φ', infinite where there is none

    >>> from certifit.losses import Hinge
    >>> loss = Hinge()
    >>> loss.name, loss.convex, loss.kinks, loss.domain
    ('hinge', True, (1.0,), (-1.0, 0.0))
    >>> loss.value([-1.0, 0.0, 2.0]).tolist()
    [2.0, 1.0, 0.0]
    """

    convex = True

    @property
    def kinks(self) -> tuple[float, ...]:
        return ()

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    @abstractmethod
    def domain(self) -> tuple[float, float]: ...

    @property
    @abstractmethod
    def smoothness(self) -> float: ...

    def value(self, x: Any) -> Array:
        """φ(x)."""
        return evaluate(self._value, real(x))

    def derivative(self, x: Any) -> Array:
        """φ'(x); at a kink the subgradient nearest to 0."""
        return evaluate(self._derivative, real(x))

    def second_derivative(self, x: Any) -> Array:
        """φ"(x); 0 at a kink, and the larger of the two sides where φ" jumps."""
        return evaluate(self._second_derivative, real(x))

    def conjugate(self, u: Any) -> Array:
        """φ*(u), infinite outside `domain`."""
        u, (low, high) = real(u), self.domain
        inside = (low <= u) & (u <= high)
        return evaluate(lambda u: np.where(inside, self._conjugate(np.clip(u, low, high)), np.inf), u)

    def prox(self, v: Any, t: Any = 1.0) -> Array:
        """The x with the least φ(x) + (x - v)² / (2 t), for steps t > 0: one for all, or an array that fits v."""
        v = real(v)
        t = np.asarray(t, dtype=v.dtype)
        if not np.all((t > 0) & np.isfinite(t)):
            raise DataError(got="a step t that is not positive and finite", wanted="t > 0")
        return evaluate(lambda v: self._prox(v, t), v)

    @abstractmethod
    def _value(self, x: Array) -> Array: ...

    @abstractmethod
    def _derivative(self, x: Array) -> Array: ...

    @abstractmethod
    def _second_derivative(self, x: Array) -> Array: ...

    @abstractmethod
    def _conjugate(self, u: Array) -> Array: ...

    @abstractmethod
    def _prox(self, v: Array, t: Array) -> Array: ...


def real(x: Any) -> Array:
    """Return x in float32 if it is, else in float64; NaN is refused, since no comparison with it is true."""
    x = np.asarray(x)
    if x.dtype.kind not in "fiub" or (x.dtype.kind == "f" and np.isnan(x).any()):
        words = "NaN" if x.dtype.kind == "f" else f"values of type {x.dtype}"
        raise DataError(got=words, wanted="real numbers", fix="Remove or fill the rows they come from.")
    return x if x.dtype == np.float32 else x.astype(np.float64, copy=False)


def within(x: Any, low: float, high: float, words: str) -> Array:
    """Return `real(x)`, refused where an entry is not between `low` and `high`."""
    x = real(x)
    if not np.all((x >= low) & (x <= high)):
        raise DataError(got=f"{words} from {x.min():g} to {x.max():g}", wanted=f"{words} from {low:g} to {high:g}")
    return x


def setting(name: str, value: Any, low: float, high: float, *, closed: bool) -> float:
    """Return a parameter as a Python float, refused unless above `low` (or equal, if `closed`) and at most `high`.

    A Python float leaves arrays of float32 in their type.
    """
    number = float(value)
    if not ((number > low or (closed and number == low)) and number <= high and math.isfinite(number)):
        above = "at least" if closed else "above"
        below = f" and at most {high:g}" if math.isfinite(high) else ""
        raise DataError(got=f"{name}={value!r}", wanted=f"a finite number {above} {low:g}{below}")
    return number


def evaluate(formula: Callable[[Array], Any], x: Array) -> Array:
    """Apply a formula to an array: in the type of x, infinite where it overflows, and never -0."""
    with np.errstate(over="ignore"):
        return np.asarray(formula(x), dtype=x.dtype) + 0.0  # adding 0 turns -0 into 0 and a 0-d array into a number
