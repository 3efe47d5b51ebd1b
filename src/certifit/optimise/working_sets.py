"""The loop of solvers that change one working set of variables at a time, until their duality gap is small.

The dual of a kernel machine has a variable for every row, and its kernel matrix is too large to keep. Decomposition
methods (Osuna, Freund & Girosi 1997) therefore repeat a round of four steps:

| step | who | what |
|---|---|---|
| measure | the caller's `measure` | primal and dual objective of the present point, hence its duality gap |
| stop? | `WorkingSetSolver.update`, `StallWatcher` | the gap is small enough, or further rounds do not help |
| choose and solve | the subclass's `next_point` | a working set of variables is solved for, all others stand still |
| update | `KernelRows.add` | the values of all rows follow the change |

The dual objective only rises, but the primal may rise as well: the point with the smallest gap seen is returned.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from certifit.core import ResumableUpdate, Solution, Step, fixed_point
from certifit.core.loop import Watcher
from certifit.rows import Array
from certifit.rows.threads import R, T, parallel_map

P = TypeVar("P")
M = TypeVar("M", bound="PrimalAndDual")


@dataclass(frozen=True)
class RoundTuning:
    """When rounds end before or after the tolerance that was asked for.

    Where all variables are one working set, rounds cost little: they go on to `sharp_gap`, which makes the answer
    the same for rows in any order, or repeated instead of weighted, but not for more than `sharp_rounds`. Who asks
    for less than is usual wants to wait less.
    """

    sharp_gap: float = 1e-13  # relative duality gap,
    sharp_tol: float = 1e-3  # for tolerances up to the usual one
    sharp_rounds: int = 30  # rounds beyond the tolerance
    patience: int = 300  # rounds in which the dual may rise by less than
    progress: float = 0.01  # this share of the gap, before the loop gives up


class KernelRows(Protocol):
    """A kernel matrix K (n, n) that is never in memory as a whole."""

    n: int
    memory: Any  # values that are kept, and since when: a solver that goes on in another program needs the same

    @property
    def most(self) -> int:
        """The largest number of rows that a working set may have."""

    def square(self, rows: Array) -> Array:
        """K[rows][:, rows] as float64."""

    def add(self, f: Array, rows: Array, change: Array) -> Array:
        """f + K[:, rows] @ change, a new array (n,) or (n, k)."""

    def at_hand(self) -> Array:
        """(n,) whether the values of a row need not be computed again."""


class RoundLimits(NamedTuple):
    """When a loop has to end."""

    tol: float  # relative duality gap
    max_iter: int  # rounds; below 0 for no limit
    max_time: float | None  # seconds

    @property
    def most_rounds(self) -> int:
        """The limit on rounds as a number that no fit reaches where there is none."""
        return self.max_iter if self.max_iter >= 0 else 1_000_000_000


class PrimalAndDual(Protocol):
    """The two objectives of a point, among other things that a solver measures there."""

    @property
    def primal(self) -> float: ...

    @property
    def dual(self) -> float: ...


class WorkingSetSolver(ABC, Generic[P, M]):
    """Rounds from one point to the next; a subclass chooses the working set and solves for it."""

    def __init__(
        self, gram: KernelRows, limits: RoundLimits, variables: int, largest: int, tuning: RoundTuning
    ) -> None:
        """`largest` is the number of rows that a working set has where not all rows are one."""
        self.gram, self.limits, self.tol, self.tuning = gram, limits, limits.tol, tuning
        most = min(largest, gram.most)
        self.whole = gram.n <= most  # all variables are one working set
        self.size = variables if self.whole else most
        sharp = self.whole and self.tol <= tuning.sharp_tol
        self.target = min(self.tol, tuning.sharp_gap) if sharp else self.tol
        self.latest = np.empty(0, np.int64)  # variables that entered the working set last
        self.closest: P | None = None  # the point with the smallest gap
        self.gap = self.objective = np.inf  # there: the gap relative to the objective, and the objective
        self.n_iter = 0  # rounds that it took to get there
        self.measured = 0  # points measured so far
        self.last_progress = -np.inf  # the dual objective when it last rose enough
        self.idle = self.extra = 0  # rounds without progress; rounds beyond the tolerance
        self.without_gain = 0  # rounds over all rows that gained nothing, where a subclass counts them

    def run(self, measure: Callable[[P], M], start: P, watcher: Watcher) -> Solution[P]:
        """Repeat rounds from `start` and return the point with the smallest gap."""
        found = fixed_point(
            measure,
            ResumableUpdate(self.update, self),
            start,
            tol=self.target,
            max_iter=self.limits.most_rounds,
            max_time=self.limits.max_time,
            watcher=StallWatcher(self, watcher),
        )
        assert self.closest is not None
        return replace(found, params=self.closest, objective=self.objective, gain=self.gap, n_iter=self.n_iter)

    def update(self, at: P, found: M) -> Step[P]:
        """Note how good the point `at` is and go one round on, unless it is good enough."""
        gap, size = found.primal - found.dual, abs(found.primal)
        # a gap that is rounding of the primal objective counts as none
        relative = gap / max(size, 1e-300) if gap > 8 * float(np.finfo(float).eps) * size else 0.0
        if relative <= self.tol:  # where rounding leaves no smaller gap, two more rounds show it
            self.extra += 1 if relative < 0.5 * self.gap else max(1, self.tuning.sharp_rounds // 2)
        if found.dual - self.last_progress > self.tuning.progress * gap:
            self.last_progress, self.idle = found.dual, 0
        else:
            self.idle += 1
        if relative < self.gap or relative <= self.target:
            self.closest, self.gap, self.objective, self.n_iter = at, relative, found.primal, self.measured
        self.measured += 1
        return Step(at if relative <= self.target else self.next_point(at, found), found.primal, relative)

    @property
    def memory(self) -> tuple[Any, ...]:
        """What is remembered from round to round, kernel values among it: the choice of rows depends on them."""
        best = self.closest, self.gap, self.objective, self.n_iter
        rounds = self.measured, self.last_progress, self.idle, self.extra, self.without_gain
        return *best, self.latest, *rounds, self.gram.memory

    @memory.setter
    def memory(self, found: tuple[Any, ...]) -> None:
        self.closest, self.gap, self.objective, self.n_iter, self.latest, *rounds, self.gram.memory = found
        self.measured, self.last_progress, self.idle, self.extra, self.without_gain = rounds

    @property
    def stalled(self) -> bool:
        """Whether more rounds are pointless."""
        return self.idle >= self.tuning.patience or self.extra > self.tuning.sharp_rounds

    @abstractmethod
    def next_point(self, at: P, found: M) -> P:
        """The point after one more round."""


class MayStall(Protocol):
    """A solver that knows when it gets no further."""

    @property
    def stalled(self) -> bool:
        """Whether more rounds are pointless."""


class StallWatcher:
    """Ends a loop whose solver has stalled, and passes every round on to another watcher."""

    def __init__(self, solver: MayStall, watcher: Watcher | None) -> None:
        self.solver, self.watcher = solver, watcher

    def begin(self) -> None:
        if self.watcher is not None:
            self.watcher.begin()

    def end(self, params: Any, step: Step[Any], tol: float) -> bool:
        stop = self.watcher is not None and self.watcher.end(params, step, tol)
        return stop or self.solver.stalled


def over_blocks(f: Callable[[T], R], blocks: Sequence[T]) -> list[R]:
    """Apply f to every block, on threads if there are several.

    A small machine has too many rounds to start threads in each.
    """
    return parallel_map(f, blocks) if len(blocks) > 1 else [f(block) for block in blocks]
