"""What a process remembers of the rows of a block from one pass to the next, for as long as they stay there.

A worker of a cluster holds blocks of rows. What a pass found of each row (its cluster, bounds on its distances) need
not travel: it stays beside the rows, and goes with them; so do targets and weights as a fit wants them. Nothing rests
on it being there. Where a block was moved, or its worker was lost, a pass finds nothing and works everything out.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from certifit.rows.block import Array, Block


class PassMark(NamedTuple):
    """A pass among those of one fit."""

    fit: str  # a name that no other fit has
    number: int

    def before(self) -> PassMark:
        return self._replace(number=self.number - 1)

    def after(self) -> PassMark:
        return self._replace(number=self.number + 1)


class _Memory(NamedTuple):
    rows: weakref.ref[Array]
    mark: PassMark
    value: Any


_memories: dict[int, _Memory] = {}  # by the address of the rows


def take_memory(rows: Array, mark: PassMark) -> Any:
    """Return what this pass kept of these rows, and forget it; None where it is not here."""
    found = _memories.pop(id(rows), None)
    return found.value if found is not None and found.rows() is rows and found.mark == mark else None


def keep_memory(rows: Array, mark: PassMark, value: Any) -> None:
    """Remember `value` as what this pass found, until it is taken or the rows are let go."""
    key = id(rows)
    _memories[key] = _Memory(weakref.ref(rows, lambda _: _memories.pop(key, None)), mark, value)


class _Targets(NamedTuple):
    rows: weakref.ref[Array]
    name: str
    y: Array | None
    w: Array


_targets: dict[int, _Targets] = {}  # by the address of the rows


def remember_targets(block: Block, name: str, relabel: Callable[[Block], Block]) -> Block:
    """Return `relabel(block)`, which changes targets and weights, worked out once while its name stays the same."""
    key = id(block.X)
    found = _targets.get(key)
    if found is None or found.rows() is not block.X or found.name != name:
        changed = relabel(block)
        rows = weakref.ref(block.X, lambda _: _targets.pop(key, None))
        found = _targets[key] = _Targets(rows, name, changed.y, changed.w)
    return block._replace(y=found.y, w=found.w)
