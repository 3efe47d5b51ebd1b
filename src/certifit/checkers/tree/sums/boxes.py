"""Sets of rows that trees cannot tell apart: an interval of every column, or a set of categories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from certifit.checkers.tree.plain_tree import PlainTree
from certifit.rows import Array


@dataclass(frozen=True)
class Interval:
    """The numbers above `low` and up to `high`, and missing entries where `missing` says so."""

    low: float = -np.inf
    high: float = np.inf
    missing: bool = True

    def meets(self, other: Interval) -> Interval:
        return Interval(max(self.low, other.low), min(self.high, other.high), self.missing and other.missing)

    def number(self, dtype: Any) -> float | None:
        """A number inside, near 0 or near the middle; None where there is none of this type."""
        if not self.low < self.high:
            return None
        tries = [0.0, self.low / 2 + self.high / 2, self.low + 1.0, self.high - 1.0, self.high]
        tries += [float(np.nextafter(dtype(self.low), dtype(np.inf)))]
        with np.errstate(over="ignore", invalid="ignore"):
            tries += [float(dtype(self.high)), float(np.nextafter(dtype(self.high), dtype(-np.inf)))]
            inside = [float(dtype(x)) for x in tries if np.isfinite(x)]
        return next((x for x in inside if self.low < x <= self.high), None)


OTHERS = -1.0  # stands for all categories that no split names, and for missing ones
Part = Interval | frozenset[float]
Box = dict[int, Part]  # by column; those that are not there are free


class BoxSpace:
    """All rows as trees see them: which numbers exist, and which categories."""

    def __init__(self, trees: list[PlainTree], missing: bool = True) -> None:
        self.missing = missing  # whether the model takes missing entries
        self.dtype = np.float32 if any(np.dtype(tree.dtype) == np.float32 for tree in trees) else np.float64
        self.kinds: dict[int, frozenset[float]] = {}
        for tree in trees:
            if tree.categories is None:
                continue
            for j in np.flatnonzero(np.diff(tree.categories.first)):
                known = frozenset(map(float, tree.categories.of_column(int(j))))
                self.kinds[int(j)] = self.kinds.get(int(j), frozenset([OTHERS])) | known

    def side(self, tree: PlainTree, node: int, left: bool) -> Part:
        """What a question asks of its column on one side."""
        j, goes = int(tree.column[node]), bool(tree.missing_left[node])
        if tree.categories is not None and tree.categories.chosen[node] >= 0:
            known = tree.categories.of_column(j)
            chosen = known[tree.categories.left[tree.categories.chosen[node]][: len(known)]]
            other = self.kinds[j] - set(map(float, known)) if goes else frozenset()
            inside = frozenset(map(float, chosen)) | other
            return inside if left else self.kinds[j] - inside
        t = float(tree.threshold[node])
        if left:
            return Interval(-np.inf, t, goes and self.missing)
        return Interval(t, np.inf, not goes and self.missing)

    def meet(self, one: Part | None, other: Part) -> Part | None:
        """What is in both; None where that is nothing."""
        if one is None:
            found = other
        elif isinstance(one, frozenset) and isinstance(other, frozenset):
            found = one & other
        elif isinstance(one, Interval) and isinstance(other, Interval):
            found = one.meets(other)
        else:
            raise TypeError("a column of numbers and of categories")
        if isinstance(found, frozenset):
            return found or None
        return found if found.missing or found.number(self.dtype) is not None else None

    def narrowed(self, box: Box, column: int, part: Part) -> Box | None:
        """The rows of a box that lie in a part of one column; None where there are none."""
        found = self.meet(box.get(column), part)
        return None if found is None else {**box, column: found}

    def meet_boxes(self, one: Box, other: Box) -> Box | None:
        """The rows in both boxes."""
        found = dict(one)
        for column, part in other.items():
            both = self.meet(found.get(column), part)
            if both is None:
                return None
            found[column] = both
        return found

    def row(self, box: Box, columns: int) -> Array:
        """One row inside a box (d,)."""
        found = np.zeros(columns)
        for j, part in box.items():
            if isinstance(part, frozenset):
                named = sorted(part - {OTHERS})
                found[j] = named[0] if named else max(self.kinds[j]) + 1
            else:
                number = part.number(self.dtype)
                found[j] = np.nan if number is None else number
        return found
