"""Passes that need not be made again: what they found is looked up by what they were asked.

A fit is a sequence of passes over rows, and little work between them. Where a keeper is at hand, every sum over rows
is told to it; a fit that was killed then repeats the work between passes and takes the sums from the keeper, so that
it ends with the bits that it would have had. A loop whose work is no sum over rows tells it now and then where it
stands, and goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class PassKeeper(Protocol):
    """Remembers what passes found, in the order in which they are made."""

    def found(self, question: Any, make: Callable[[], T]) -> T:
        """Return what `make()` returned when the same question was asked at this place, or what it returns now."""

    def loop(self, start: Any) -> LoopKeeper:
        """Return the keeper of a loop that begins at this place, with these parameters."""


class LoopKeeper(Protocol):
    """Remembers where a loop stands."""

    def stood(self) -> Any:
        """Return what was last noted in a program that was killed; None where there is nothing."""

    def note(self, state: Callable[[], Any]) -> None:
        """Keep `state()` in place of what was noted before, unless that was just now."""


_at_hand: ContextVar[PassKeeper | None] = ContextVar("pass_keeper", default=None)
_of_loops: ContextVar[PassKeeper | None] = ContextVar("loop_keeper", default=None)


def kept(question: Any, make: Callable[[], T]) -> T:
    """Return `make()`, or what it was found to be; it must depend on the rows of the fit and the question alone.

    What `make` itself asks of rows is part of its answer, and not kept once more; where a loop of it stands is.
    """
    keeper = _at_hand.get()
    if keeper is None:
        return make()
    token = _at_hand.set(None)
    try:
        return keeper.found(question, make)
    finally:
        _at_hand.reset(token)


def kept_loop(start: Any) -> LoopKeeper | None:
    """Return who remembers where a loop stands that begins now, with these parameters; None where nobody does."""
    keeper = _of_loops.get()
    return None if keeper is None else keeper.loop(start)


def passes_are_kept() -> bool:
    """Whether a keeper is at hand: work that would be one step is worth cutting into several."""
    return _at_hand.get() is not None


@contextmanager
def keeping(keeper: PassKeeper | None) -> Iterator[None]:
    """Tell passes of this thread to a keeper; to none where it is None."""
    tokens = _at_hand.set(keeper), _of_loops.set(keeper)
    try:
        yield
    finally:
        _at_hand.reset(tokens[0])
        _of_loops.reset(tokens[1])
