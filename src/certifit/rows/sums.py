"""Statistics that are sums over rows, and the order in which they are added, which fixes every bit of the result."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, Protocol, Self, TypeVar

import numpy as np


class Addable(Protocol):
    """Anything with `+`, which merges the results of two runs of rows."""

    def __add__(self, other: Self, /) -> Self: ...


S = TypeVar("S", bound=Addable)


@dataclass(frozen=True)
class Sums:
    """A record whose fields are sums over rows; `a + b` adds field by field."""

    def __add__(self, other: Self) -> Self:
        return type(self)(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


@dataclass(frozen=True)
class Largest:
    """Numbers of which `+` keeps the larger ones."""

    value: Any

    def __add__(self, other: Self) -> Self:
        return type(self)(np.maximum(self.value, other.value))


def tree_sum(parts: Iterable[S]) -> S:
    """Add parts pairwise, in a binary tree that depends on their number alone; log₂ n partial sums are held.

    Every aligned run of 2^k parts is a subtree, so that summing each Dask partition first gives the same bits.

    >>> tree_sum(iter([1.0, 2.0, 3.0]))
    6.0
    """
    stack: list[tuple[int, S]] = []
    for part in parts:
        rank, total = 0, part
        while stack and stack[-1][0] == rank:
            total, rank = stack.pop()[1] + total, rank + 1
        stack.append((rank, total))
    if not stack:
        raise ValueError("tree_sum of no parts: got an empty sequence, wanted at least one block of rows")
    total = stack.pop()[1]
    while stack:
        total = stack.pop()[1] + total
    return total
