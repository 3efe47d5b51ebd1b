"""The problem that a linear support vector machine says it has solved, and a bound on its minimum."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from certifit.checkers.plain.best_intercepts import middle_of_best, middle_without_loss
from certifit.checkers.plain.hinges import PlainHinge
from certifit.rows import Array, Rows

CLAIM = "losses and penalty within gap of their minimum"


class ClaimedLinearSvm(NamedTuple):
    """The problem that a model says it has solved."""

    kappa: float  # of the hinge, as e and top
    e: float
    top: float
    C: float
    rho: float | None  # None: no intercept; 0: a free one
    epsilon: float | None = None  # None: classes, one against the rest
    settled: bool = False  # whether, of several best intercepts, the one in the middle is claimed

    @property
    def hinge(self) -> PlainHinge:
        return PlainHinge(self.kappa, self.e, self.top)

    def settles(self, values: int, most: int = 50_000_000) -> bool:
        """Whether several intercepts may be best: free ones, of machines with so many scores at most.

        More scores than `most` are not kept in memory by a fit.
        """
        return self.rho == 0 and values <= most

    def best_step(self, kink: Array, s: Array, u: Array) -> float:
        """How much to add to an intercept to make it the middle of the best ones; `kink` is where losses begin.

        A smooth loss has but one best intercept, unless some cost nothing.
        """
        if np.isinf(self.kappa):
            return middle_of_best(kink, s, u)
        return middle_without_loss(kink, s, u)


class ProvedBound(NamedTuple):
    """A lower bound, and how much of the dual point's value was given away to rounding in it."""

    value: float
    rounding: float


class FittedMachines(NamedTuple):
    """The machines of a model, about a centre m that a free intercept makes up for, and their rows."""

    claimed: ClaimedLinearSvm
    coef: Array  # (k, d)
    b: Array  # (k,) scores at m
    m: Array  # (d,)
    rows: Rows

    @property
    def slacks(self) -> int:
        """How many slacks each machine has: one of each row, or two."""
        return (1 + (self.claimed.epsilon is not None)) * self.rows.n_rows

    @property
    def settled(self) -> bool:
        """Whether intercepts are claimed to be the middle of the best ones."""
        return self.claimed.settled and self.claimed.settles(len(self.coef) * self.rows.n_rows)
