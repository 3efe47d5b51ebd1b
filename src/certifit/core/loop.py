"""The loop that every iterative fit runs: measure the rows at the current parameters, update, repeat.

Each update reports a gain, a bound on the gap to the optimum or the decrease by one more step; the loop ends when it
is small.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar

import numpy as np

from certifit.exceptions import NotANumberError
from certifit.rows.kept_passes import LoopKeeper, kept_loop

P = TypeVar("P")  # a model's parameters (a NamedTuple of arrays)
M = TypeVar("M")  # what one pass over the data measures

Status = Literal["converged", "max_iter", "max_time", "stopped"]


class Step(NamedTuple, Generic[P]):
    """The result of one pass over the rows."""

    params: P  # the next parameters
    objective: float  # at the present parameters; smaller is better
    gain: float  # gap to the optimum, or decrease by one more step; inf where not known yet


class Mark(NamedTuple):
    """One line of a fit's history."""

    objective: float
    gain: float
    seconds: float  # since the loop began


@dataclass(frozen=True)
class Solution(Generic[P]):
    """Where the loop ended, and why."""

    params: P  # the parameters whose objective and gain are reported
    objective: float
    gain: float
    n_iter: int  # updates taken
    status: Status
    history: tuple[Mark, ...]


class Remembers(Protocol):
    """A solver that can say, and be told, what it remembers beside the parameters."""

    memory: Any


@dataclass(frozen=True)
class ResumableUpdate(Generic[P, M]):
    """An update that depends on parameters, on what was measured there and on the memory of a solver alone.

    A loop of such updates goes on in another program where it stood in one that was killed (`fit(checkpoint=...)`);
    others make their passes again, or find them kept.
    """

    update: Callable[[P, M], Step[P]]
    solver: Remembers | None = None  # None where nothing is remembered

    def __call__(self, params: P, found: M) -> Step[P]:
        return self.update(params, found)

    @property
    def memory(self) -> Any:
        return None if self.solver is None else self.solver.memory

    def recall(self, memory: Any) -> None:
        """Take over the memory of a loop that was killed."""
        if self.solver is not None:
            self.solver.memory = memory


class LoopState(NamedTuple, Generic[P]):
    """Where a loop stands between two passes."""

    params: P  # of the next pass
    n_iter: int  # its number
    best: tuple[P, Step[P], int] | None  # parameters, step and number of the pass with the smallest objective
    history: tuple[Mark, ...]
    memory: Any  # of the solver


class Watcher(Protocol):
    """An observer that is told of every pass, and ends the loop where `end` returns True."""

    def begin(self) -> None: ...

    def end(self, params: Any, step: Step[Any], tol: float) -> bool: ...


def fixed_point(
    measure: Callable[[P], M],
    update: Callable[[P, M], Step[P]],
    params: P,
    *,
    tol: float,
    max_iter: int,
    max_time: float | None = None,
    watcher: Watcher | None = None,
) -> Solution[P]:
    """Repeat params <- update(params, measure(params)) until the gain is at most `tol`.

    The parameters returned are those that the last pass measured, or where iterations or time ran out, those with the
    smallest objective of all passes. A pass that measures NaN is an error. An update that is a `ResumableUpdate` goes
    on from where a killed program stood.

    >>> halve = lambda x: Step(x / 2, objective=x, gain=x / 2)
    >>> found = fixed_point(lambda x: None, lambda x, _: halve(x), 8.0, tol=0.5, max_iter=50)
    >>> found.params, found.n_iter, found.status
    (1.0, 3, 'converged')
    """
    start = time.perf_counter()
    keeper = kept_loop(params) if isinstance(update, ResumableUpdate) else None
    at = _taken_up(update, keeper, LoopState(params, 0, None, (), None))
    params, best, history, earlier = at.params, at.best, [*at.history], at.history[-1].seconds if at.history else 0.0
    status: Status = "max_iter"
    for n_iter in range(at.n_iter, max_iter + 1):
        if watcher is not None:
            watcher.begin()
        step = update(params, measure(params))
        if np.isnan(step.objective) or np.isnan(step.gain):
            raise NotANumberError(
                got=f"an objective that is not a number after {n_iter} iterations (objective {step.objective}, gain "
                f"{step.gain})",
                wanted="numbers whose squares neither overflow nor vanish",
                fix="Columns are too large or too small: rescale the columns, for instance to unit variance.",
            )
        seconds = time.perf_counter() - start
        history.append(Mark(float(step.objective), float(step.gain), earlier + seconds))
        if best is None or step.objective <= best[1].objective:
            best = params, step, n_iter
        stop = watcher is not None and watcher.end(params, step, tol)
        if step.gain <= tol:
            best, status = (params, step, n_iter), "converged"
            break
        if stop:
            status = "stopped"
            break
        if max_time is not None and seconds >= max_time:
            status = "max_time"
            break
        params = step.params
        if keeper is not None:
            keeper.note(partial(_loop_state, update, LoopState(params, n_iter + 1, best, (), None), history))
    assert best is not None
    return Solution(best[0], float(best[1].objective), float(best[1].gain), best[2], status, tuple(history))


def _taken_up(update: Any, keeper: LoopKeeper | None, start: LoopState[P]) -> LoopState[P]:
    """Return where a killed program stood, or else the start."""
    stood = None if keeper is None else keeper.stood()
    if stood is None:
        return start
    update.recall(stood.memory)
    return stood


def _loop_state(update: Any, here: LoopState[P], history: list[Mark]) -> LoopState[P]:
    return here._replace(history=tuple(history), memory=update.memory)
