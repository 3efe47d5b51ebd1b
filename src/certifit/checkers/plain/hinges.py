"""Hinge losses for the checkers, in plain NumPy: of one slack, and of the slacks of several classes at once.

A hinge of one slack z is φ(z) = max over 0 <= a <= top of a (z + e) - a² / (2κ), with slope a = clip(κ (z + e), 0,
top). Every a within the limits hence gives φ(z) >= a (z + e) - a² / (2κ), which is what lower bounds are made of. A
multiclass hinge of z (n, k) is a maximum of q·z over a set of q >= 0 in the same way.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from certifit.rows import Array


class PlainHinge(NamedTuple):
    """φ above; κ = ∞ has a kink at z = -e."""

    kappa: float
    e: float = 0.0
    top: float = 1.0

    def slope(self, z: Array) -> Array:
        """The maximising a of each slack; 0 at a kink."""
        if np.isinf(self.kappa):
            return np.where(z + self.e > 0, self.top, 0.0)
        return np.clip(self.kappa * (z + self.e), 0.0, self.top)

    def value(self, z: Array) -> Array:
        a = self.slope(z)
        return a * (z + self.e) - a * a / (2 * self.kappa)

    def largest_dual(self, u: Array) -> Array:
        """The upper limits of u a, for weights u (n,): 0 for rows without weight, whatever the loss."""
        return self.top * u if np.isfinite(self.top) else np.where(u > 0, np.inf, 0.0)


def plain_rounded_hinge(h: float) -> PlainHinge:
    """The hinge with its kink rounded over z = ±h; its slopes are dual points for the hinge itself."""
    return PlainHinge(0.5 / h, h)


PLAIN_HINGES = {
    "hinge": PlainHinge(np.inf),
    "squared_hinge": PlainHinge(2.0, 0.0, np.inf),
    "huberised_hinge": plain_rounded_hinge(0.5),
    "epsilon_insensitive": PlainHinge(np.inf),
    "squared_epsilon_insensitive": PlainHinge(2.0, 0.0, np.inf),
}


class PlainMulticlassHinge(Protocol):
    """A loss of z (n, k), z_k = margin [k ≠ y] + f_k - f_y, the set of its q (n, k), and the projection onto that."""

    margin: ClassVar[float]

    def value(self, z: Array) -> Array:
        """The loss of each row (n,)."""

    def project(self, q: Array, y: Array, u: Array) -> Array:
        """The nearest point of the set, for rows of classes y (n,) and weights u (n,)."""

    def shrink(self, a: Array, u: Array) -> Array:
        """The rivals' a >= 0 (n, k) made smaller where they exceed their limits; a is 0 for the own class."""

    def ties(self, q: Array, y: Array, u: Array, j: int, k: int) -> Array:
        """Minus the derivative of the projection of class j in class k (n,), from the projection q itself."""


class WestonWatkins:
    """The sum of the positive slacks, with margin 2: 0 <= q <= u for each rival, 0 for the own class."""

    margin: ClassVar[float] = 2.0

    def value(self, z: Array) -> Array:
        return np.maximum(z, 0.0).sum(axis=1)

    def project(self, q: Array, y: Array, u: Array) -> Array:
        q = np.clip(q, 0.0, u[:, None])
        q[np.arange(len(y)), y] = 0.0
        return q

    def shrink(self, a: Array, u: Array) -> Array:
        return np.minimum(a, u[:, None])

    def ties(self, q: Array, y: Array, u: Array, j: int, k: int) -> Array:
        rival = np.where(y == j, q[:, k], np.where(y == k, q[:, j], 0.0))
        return ((rival > 0) & (rival < u)).astype(np.float64)


class CrammerSinger:
    """The largest slack, with margin 1: q >= 0 and Σ q = u, own class included."""

    margin: ClassVar[float] = 1.0

    def value(self, z: Array) -> Array:
        return np.max(z, axis=1)

    def project(self, q: Array, y: Array, u: Array) -> Array:
        """Onto the simplex: the part of q above the level at which these parts sum to u (Held et al. 1974)."""
        falling = -np.sort(-q, axis=1)
        levels = (np.cumsum(falling, axis=1) - u[:, None]) / np.arange(1, q.shape[1] + 1)
        last = q.shape[1] - 1 - np.argmax((falling >= levels)[:, ::-1], axis=1)
        return np.maximum(q - levels[np.arange(len(q)), last][:, None], 0.0)

    def shrink(self, a: Array, u: Array) -> Array:
        total = a.sum(axis=1)
        return a * np.divide(u, total, out=np.ones_like(u), where=total > u)[:, None]

    def ties(self, q: Array, y: Array, u: Array, j: int, k: int) -> Array:
        return ((q[:, j] > 0) & (q[:, k] > 0)) / np.maximum((q > 0).sum(axis=1), 1)


PLAIN_MULTICLASS_HINGES: dict[str, PlainMulticlassHinge] = {
    "weston-watkins": WestonWatkins(),
    "crammer-singer": CrammerSinger(),
}
