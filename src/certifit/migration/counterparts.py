"""The public names that certifit shares with scikit-learn: same room, same name."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

from certifit.registry import PUBLIC


@dataclass(frozen=True)
class Counterpart:
    """A class or function of scikit-learn, and certifit's that takes its place."""

    name: str
    room: str  # the module of both libraries, such as `cluster`
    ours: Any
    theirs: Any

    @property
    def is_class(self) -> bool:
        return isinstance(self.theirs, type)

    @property
    def ignored(self) -> tuple[str, ...]:
        """Parameters that are accepted so that scikit-learn's calls run, and not used."""
        return getattr(self.ours, "ignored", ()) if self.is_class else ()

    @property
    def reasons(self) -> dict[str, str]:
        """Why a name is missing or different here, one sentence each."""
        return self.ours.differences if self.is_class else FUNCTION_REASONS.get(self.name, {})


# Functions have no class to say it in.
FUNCTION_REASONS: dict[str, dict[str, str]] = {}


@cache
def sklearn_room(room: str) -> ModuleType | None:
    """scikit-learn's module of this name, where it has one."""
    try:
        return import_module(f"sklearn.{room}")
    except ModuleNotFoundError:
        return None


def counterpart(room: str, name: str) -> Counterpart | None:
    """Both libraries' class or function of this name in this room, where both have one."""
    entry, theirs = PUBLIC.get(name), sklearn_room(room)
    if entry is None or entry.room != room or name not in getattr(theirs, "__all__", dir(theirs)):
        return None
    return Counterpart(name, room, entry.load(), getattr(theirs, name))


@cache
def counterparts() -> tuple[Counterpart, ...]:
    """Every name that both libraries have, room by room."""
    found = (counterpart(PUBLIC[name].room, name) for name in PUBLIC)
    return tuple(sorted((pair for pair in found if pair is not None), key=lambda pair: (pair.room, pair.name)))
