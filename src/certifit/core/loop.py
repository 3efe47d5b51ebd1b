"""The one loop: measure the data at the current parameters, update, until the promised gain is small."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar

import numpy as np

P = TypeVar("P")  # a model's parameters (a NamedTuple of arrays)
M = TypeVar("M")  # what one pass over the data measures

Status = Literal["converged", "max_iter", "max_time", "stopped"]


class Step(NamedTuple, Generic[P]):
    """What one pass over the data taught us."""

    params: P  # where to go next
    objective: float  # value here; smaller is better
    gain: float  # decrease still promised; inf = no promise yet


class Mark(NamedTuple):
    """One line of a fit's history."""

    objective: float
    gain: float
    seconds: float  # since the loop began


@dataclass(frozen=True)
class Solution(Generic[P]):
    params: P  # the parameters whose objective and gain are reported
    objective: float
    gain: float
    n_iter: int  # updates taken
    status: Status
    history: tuple[Mark, ...]


class Watcher(Protocol):
    """Is told of every pass; may end the loop by answering True."""

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
    """params <- update(params, measure(params)) until the promised gain is at most `tol`.

    Returns the parameters it measured, not one update later: on running out of iterations or time, those with
    the smallest objective seen. A pass that measures NaN is an error, never a result.

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
            raise FloatingPointError(
                f"the objective is not a number after {n_iter} iterations (objective {step.objective}, gain "
                f"{step.gain}): values this large overflow; rescale the columns, for instance to unit variance"
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
