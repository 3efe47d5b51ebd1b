"""What duals solved a batch at a time share: their loop, the point with the smallest gap, and when to give up."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from certifit.core import Solution, Step, fixed_point
from certifit.core.loop import Watcher
from certifit.rows import Array
from certifit.rows.threads import R, T, parallel_map

# Where all variables are one batch, digits are cheap: aim at a gap that makes the answer the same for rows in any
# order, or repeated instead of weighted, but spend no more rounds than this on it.
SHARP, EXTRA = 1e-13, 30
PATIENCE = 300  # rounds in which the dual may rise by less than
PROGRESS = 0.01  # of what is missing, before the loop gives up
ROUNDING = 8 * float(np.finfo(float).eps)
FOREVER = 1_000_000_000

P = TypeVar("P")
M = TypeVar("M", bound="Gap")


class KernelRows(Protocol):
    """A kernel matrix K (n, n) that is never there as a whole."""

    n: int

    @property
    def most(self) -> int:
        """Rows that a batch may have."""

    def square(self, rows: Array) -> Array:
        """K[rows][:, rows] as float64."""

    def add(self, f: Array, rows: Array, change: Array) -> Array:
        """f + K[:, rows] @ change, a new array (n,) or (n, k)."""

    def at_hand(self) -> Array:
        """(n,) whether a row's values cost little."""


class Limits(NamedTuple):
    """When a loop has to end."""

    tol: float  # relative duality gap
    max_iter: int  # below 0: no limit
    max_time: float | None


class Gap(Protocol):
    """What a dual measures at a point, among other things."""

    @property
    def primal(self) -> float: ...

    @property
    def dual(self) -> float: ...


class Rounds(ABC, Generic[P, M]):
    """Batches, one after another, from a point to the next."""

    largest: ClassVar[int]  # rows of a batch

    def __init__(self, gram: KernelRows, limits: Limits, variables: int) -> None:
        self.gram, self.limits, self.tol = gram, limits, limits.tol
        most = min(self.largest, gram.most)
        self.whole = gram.n <= most  # all variables are one batch
        self.size = variables if self.whole else most
        self.target = min(self.tol, SHARP) if self.whole else self.tol
        self.latest = np.empty(0, np.int64)  # variables that came in last
        self.closest: P | None = None  # the point with the smallest gap
        self.gap = self.objective = np.inf  # there: the gap, relative to the objective,
        self.n_iter = 0  # and how many rounds it took
        self.passes = 0
        self.mark = -np.inf  # the dual when the loop last made progress
        self.idle = self.extra = 0

    def run(self, measure: Callable[[P], M], start: P, watcher: Watcher) -> Solution[P]:
        found = fixed_point(
            measure,
            self.update,
            start,
            tol=self.target,
            max_iter=FOREVER if self.limits.max_iter < 0 else self.limits.max_iter,
            max_time=self.limits.max_time,
            watcher=Patience(self, watcher),
        )
        assert self.closest is not None
        return replace(found, params=self.closest, objective=self.objective, gain=self.gap, n_iter=self.n_iter)

    def update(self, at: P, found: M) -> Step[P]:
        gap = found.primal - found.dual
        relative = gap / found.primal if gap > ROUNDING * found.primal else 0.0
        self.extra += relative <= self.tol
        if found.dual - self.mark > PROGRESS * gap:
            self.mark, self.idle = found.dual, 0
        else:
            self.idle += 1
        if relative < self.gap or relative <= self.target:
            self.closest, self.gap, self.objective, self.n_iter = at, relative, found.primal, self.passes
        self.passes += 1
        return Step(at if relative <= self.target else self.next(at, found), found.primal, relative)

    @property
    def tired(self) -> bool:
        """More rounds are pointless."""
        return self.idle >= PATIENCE or self.extra > EXTRA

    @abstractmethod
    def next(self, at: P, found: M) -> P:
        """The point after one more round."""


class Tiring(Protocol):
    @property
    def tired(self) -> bool:
        """More rounds are pointless."""


class Patience:
    """Ends a loop that is not getting anywhere. Tells another watcher of every round."""

    def __init__(self, rounds: Tiring, watcher: Watcher | None) -> None:
        self.rounds, self.watcher = rounds, watcher

    def begin(self) -> None:
        if self.watcher is not None:
            self.watcher.begin()

    def end(self, params: Any, step: Step[Any], tol: float) -> bool:
        told = self.watcher is not None and self.watcher.end(params, step, tol)
        return told or self.rounds.tired


def over_blocks(f: Callable[[T], R], blocks: Sequence[T]) -> list[R]:
    """f of every block, on threads unless there is one only: a small machine has too many rounds to start any."""
    return parallel_map(f, blocks) if len(blocks) > 1 else [f(block) for block in blocks]
