"""Whether a sum of trees rises with a column, for all rows that there could be: proved, or refuted by two rows.

The sum is constant between thresholds, so it rises if and only if it does not fall where x crosses any threshold t of
the column. There only the trees that ask about t change: each by the difference of the leaves that a row reaches on
either side, which depends on its other columns through boxes. The least sum of these differences over all rows is
found by going through the boxes of one tree after another, leaving out those whose best cannot fall below 0. Every
tree rising is enough, and then there is nothing to go through; else trees that fall may be made up for by others.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from certifit.checkers.tree.plain_tree import PlainTree
from certifit.checkers.tree.sums.boxes import Box, BoxSpace
from certifit.checkers.tree.sums.tree_sum import SummedTree, TreeSum
from certifit.core import Check
from certifit.rows import Array


@dataclass(frozen=True)
class MonotoneTuning:
    """How many boxes are gone through for one column before the question is left open."""

    boxes: int = 200_000


@dataclass(frozen=True)
class BoxStep:
    """By how much one tree changes where rows of a box cross a threshold."""

    box: Box
    before: float
    after: float

    @property
    def change(self) -> float:
        return self.after - self.before


@dataclass(frozen=True)
class MonotoneFinding:
    """What was found of one column: no fall anywhere, two rows where the sum falls, or neither."""

    rises: bool | None  # None where the budget ran out
    rows: Array | None = None  # (2, d) equal but for the column
    scores: tuple[float, float] | None = None  # of these rows
    thresholds: int = 0


class BudgetSpentError(Exception):
    """More boxes than the tuning allows."""


def find_fall(
    model: TreeSum, column: int, direction: int = 1, score: int = 0, tuning: MonotoneTuning = MonotoneTuning()
) -> MonotoneFinding:
    """Look for two rows, equal but for a larger value of one column, between which a score falls (or rises)."""
    trees = [tree for tree in model.trees if tree.score == score]
    plain = [tree.tree for tree in trees]
    space = BoxSpace(plain, model.missing)
    asked = [tree.threshold[tree.inner[tree.column[tree.inner] == column]] for tree in plain]
    values = np.unique(np.concatenate([np.zeros(0), *asked]))
    values = values[np.isfinite(values)]
    search = LeastSum(space, tuning.boxes)
    try:
        for i, t in enumerate(values):
            here = [tree for tree, own in zip(trees, asked, strict=True) if (own == t).any()]
            steps = [_steps(search, tree, column, float(t), direction) for tree in here]
            box = search.least_below_zero(steps)
            if box is not None:
                near = values[i - 1] if i else t - 2.0, values[i + 1] if i + 1 < len(values) else t + 2.0
                rows = np.stack([space.row(box, model.columns)] * 2)
                rows[:, column] = _on_either_side(float(near[0]), float(t), float(near[1]), space.dtype)
                before, after = map(float, model(rows)[:, score])
                # Two thresholds between neighbouring numbers cannot be told apart by any row.
                falls = direction * (after - before) < 0
                return MonotoneFinding(False if falls else None, rows, (before, after), len(values))
    except BudgetSpentError:
        return MonotoneFinding(None, thresholds=len(values))
    return MonotoneFinding(True, thresholds=len(values))


def _on_either_side(low: float, t: float, high: float, dtype: type) -> tuple[float, float]:
    """A number up to a threshold and one above it: the middles of the two cells, where they can be written."""
    left, right = float(dtype(low / 2 + t / 2)), float(dtype(t / 2 + high / 2))
    near = dtype(t)
    if not low < left <= t:
        left = float(near if float(near) <= t else np.nextafter(near, dtype(-np.inf)))
    if not t < right <= high:
        right = float(near if float(near) > t else np.nextafter(near, dtype(np.inf)))
    return left, right


def _steps(search: LeastSum, tree: SummedTree, column: int, t: float, direction: int) -> list[BoxStep]:
    """The changes of a tree where x crosses t, by boxes of the other columns."""
    found: list[BoxStep] = []
    plain, value = tree.tree, direction * tree.value
    stack: list[tuple[int, int, Box]] = [(0, 0, {})]
    while stack:
        search.spend()
        a, b, box = stack.pop()
        a, b = _through(plain, a, column, t, True), _through(plain, b, column, t, False)
        if a == b and not _asks_about(plain, a, column, t):
            found.append(BoxStep(box, 0.0, 0.0))
            continue
        node = a if plain.left[a] >= 0 else b
        if plain.left[node] < 0:
            found.append(BoxStep(box, float(value[a]), float(value[b])))
            continue
        for left in (True, False):
            part = search.space.side(plain, node, left)
            smaller = search.space.narrowed(box, int(plain.column[node]), part)
            if smaller is not None:
                child = int(plain.left[node] if left else plain.right[node])
                stack.append((child if a == node else a, child if b == node else b, smaller))
    return found


def _through(tree: PlainTree, node: int, column: int, t: float, below: bool) -> int:
    """The first node on the way that asks about another column, for a row at t or just above it."""
    while tree.left[node] >= 0 and tree.column[node] == column:
        s = tree.threshold[node]
        node = int(tree.left[node] if (t <= s if below else t < s) else tree.right[node])
    return node


def _asks_about(tree: PlainTree, node: int, column: int, t: float) -> bool:
    """Whether a node, or one below it, asks whether a column is above t."""
    below = [node]
    while below:
        k = below.pop()
        if tree.left[k] >= 0:
            if tree.column[k] == column and tree.threshold[k] == t:
                return True
            below += [int(tree.left[k]), int(tree.right[k])]
    return False


class LeastSum:
    """The least sum of steps, one of each tree, whose boxes have a row in common."""

    def __init__(self, space: BoxSpace, budget: int) -> None:
        self.space, self.budget = space, budget

    def spend(self) -> None:
        self.budget -= 1
        if self.budget < 0:
            raise BudgetSpentError

    def least_below_zero(self, trees: list[list[BoxStep]]) -> Box | None:
        """A box of rows whose steps add up to less than 0; None if there is none."""
        return self._go({}, trees, [])

    def _go(self, box: Box, trees: list[list[BoxStep]], taken: list[BoxStep]) -> Box | None:
        self.spend()
        if not _could_fall([*taken, *(min(steps, key=lambda step: step.change) for steps in trees)]):
            return None
        if not trees:
            return box
        first, *rest = sorted(trees, key=len)
        for step in sorted(first, key=lambda step: step.change):
            smaller = self.space.meet_boxes(box, step.box)
            if smaller is None:
                continue
            near = [self._meeting(smaller, steps) for steps in rest]
            found = self._go(smaller, near, [*taken, step])
            if found is not None:
                return found
        return None

    def _meeting(self, box: Box, steps: list[BoxStep]) -> list[BoxStep]:
        """The steps whose boxes have a row in common with a box."""
        self.budget -= len(steps) // 16
        return [step for step in steps if self.space.meet_boxes(box, step.box) is not None]


def _could_fall(steps: list[BoxStep]) -> bool:
    """Whether steps add up to less than 0, decided exactly."""
    changes = [step.change for step in steps]
    if min(changes, default=0.0) >= 0:
        return False
    total, size = sum(changes), sum(abs(step.before) + abs(step.after) for step in steps)
    if abs(total) > 1e-12 * size:
        return total < 0
    return sum((Fraction(step.after) - Fraction(step.before) for step in steps), Fraction(0)) < 0


def monotone_checks(model: TreeSum, directions: Array | None) -> list[Check]:
    """Whether the columns that a model calls monotone are."""
    if directions is None:
        return []
    asked = [(int(j), int(way)) for j, way in enumerate(directions) if way]
    found = [find_fall(model, j, way, score) for j, way in asked for score in range(len(model.baseline))]
    return [
        Check("monotone columns refuted by two rows", float(sum(one.rises is False for one in found)), 0.0),
        Check("monotone columns not decided", float(sum(one.rises is None for one in found)), 0.0),
    ]
