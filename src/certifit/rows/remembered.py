"""What a process remembers of the rows of a block from one pass to the next, for as long as they stay there.

A worker of a cluster holds blocks of rows. What a pass found of each row (its cluster, bounds on its distances) need
not travel: it stays beside the rows, and goes with them. Nothing rests on it being there. Where a block was moved, or
its worker was lost, a pass finds nothing and works everything out.
"""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

from certifit.rows.block import Array


class PassMark(NamedTuple):
    """A pass among those of one fit."""

    fit: str  # a name that no other fit has
    number: int


class _Memory(NamedTuple):
    rows: weakref.ref[Array]
    mark: PassMark
    value: Any


_memories: dict[int, _Memory] = {}  # by the address of the rows


def take_memory(rows: Array, mark: PassMark) -> Any:
    """Return what the pass before this one kept of these rows, and forget it; None where it is not here."""
    found = _memories.pop(id(rows), None)
    if found is None or found.rows() is not rows or found.mark != mark._replace(number=mark.number - 1):
        return None
    return found.value


def keep_memory(rows: Array, mark: PassMark, value: Any) -> None:
    """Remember `value`, until the next pass takes it or the rows are let go."""
    key = id(rows)
    _memories[key] = _Memory(weakref.ref(rows, lambda _: _memories.pop(key, None)), mark, value)
