"""The loop that every iterative fit runs: measure the rows at the current parameters, update, repeat.

Each update reports a gain, a bound on the gap to the optimum or the decrease by one more step; the loop ends when it
is small.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar

import numpy as np

from certifit.exceptions import NotANumberError

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
    smallest objective of all passes. A pass that measures NaN is an error.

    >>> halve = lambda x: Step(x / 2, objective=x, gain=x / 2)
    >>> found = fixed_point(lambda x: None, lambda x, _: halve(x), 8.0, tol=0.5, max_iter=50)
    >>> found.params, found.n_iter, found.status
    (1.0, 3, 'converged')
    """
    start = time.perf_counter()
    history: list[Mark] = []
    best: tuple[P, Step[P], int] | None = None
    status: Status = "max_iter"
    for n_iter in range(max_iter + 1):
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
        history.append(Mark(float(step.objective), float(step.gain), seconds))
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
    assert best is not None
    return Solution(best[0], float(best[1].objective), float(best[1].gain), best[2], status, tuple(history))
