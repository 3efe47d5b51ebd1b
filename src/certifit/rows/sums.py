"""Statistics that are sums over rows, and the one order in which they are added."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, Protocol, Self, TypeVar

import numpy as np


class Addable(Protocol):
    """Anything with `+`: partial results of two runs of rows combine into one."""

    def __add__(self, other: Self, /) -> Self: ...


S = TypeVar("S", bound=Addable)


@dataclass(frozen=True)
class Sums:
    """Named numbers and arrays, each a sum over rows; `a + b` adds field by field."""

    def __add__(self, other: Self) -> Self:
        return type(self)(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


@dataclass(frozen=True)
class Largest:
    """Numbers whose `+` is the maximum."""

    value: Any

    def __add__(self, other: Self) -> Self:
        return type(self)(np.maximum(self.value, other.value))


def tree_sum(parts: Iterable[S]) -> S:
    """Add pairwise, holding O(log n) partial sums; the tree's shape depends on the number of parts only.

    An aligned run of 2^k parts is always one subtree, so summing such runs first (a Dask partition, say)
    and then their totals gives the same bits.

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
