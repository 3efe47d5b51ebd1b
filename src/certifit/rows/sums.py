"""Statistics that are sums over rows, and the order in which they are added, which fixes every bit of the result."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np


class Addable(Protocol):
    """Anything with `+`, which merges the results of two runs of rows."""

    def __add__(self, other: Self, /) -> Self: ...


S = TypeVar("S", bound=Addable)
T = TypeVar("T")


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


class Subtree(NamedTuple, Generic[T]):
    """A node of the tree of `tree_sum`: the sum of an aligned run of 2^rank parts."""

    rank: int
    first: int  # number of its first part, a multiple of 2^rank
    total: T


def tree_sum(parts: Iterable[S]) -> S:
    """Add parts pairwise, in a binary tree that depends on their number alone; log₂ n partial sums are held.

    >>> tree_sum(iter([1.0, 2.0, 3.0]))
    6.0
    """
    return whole_sum(subtrees(Subtree(0, number, part) for number, part in enumerate(parts)))


def subtrees(nodes: Iterable[Subtree[S]]) -> list[Subtree[S]]:
    """Add nodes of one tree, which follow each other, as far as their own run of parts goes.

    Whoever has parts 10 to 19 gives 10 and 11, 12 to 15, and 16 to 19. Joined with what others give, in their order,
    these become the sum of all parts with the bits of `tree_sum`, wherever the runs begin and end.

    >>> [(node.first, node.total) for node in subtrees(Subtree(0, number, 1.0) for number in range(10, 20))]
    [(10, 2.0), (12, 4.0), (16, 4.0)]
    """
    stack: list[Subtree[S]] = []
    for node in nodes:
        # the left half of a larger node begins at a multiple of that one's length
        while stack and stack[-1].rank == node.rank and stack[-1].first >> node.rank & 1 == 0:
            if stack[-1].first + (1 << node.rank) != node.first:
                break  # parts in between are elsewhere
            left = stack.pop()
            node = Subtree(node.rank + 1, left.first, left.total + node.total)
        stack.append(node)
    return stack


def whole_sum(nodes: list[Subtree[S]]) -> S:
    """Add what `subtrees` gives of all parts, the shortest runs first."""
    if not nodes:
        raise ValueError("tree_sum of no parts: got an empty sequence, wanted at least one block of rows")
    *before, last = nodes
    total = last.total
    for node in reversed(before):
        total = node.total + total
    return total
