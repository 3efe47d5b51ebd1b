"""Whether two sums of trees keep their order on all rows that there could be: quantiles that do not cross.

The difference is a sum of trees too. Rows about the thresholds are tried first; then its least value is looked for
among the boxes of leaves, as for monotone columns. Functions of single columns are added up column by column before.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from certifit.checkers.tree.sums.boxes import Box, BoxSpace
from certifit.checkers.tree.sums.monotone import (
    BoxStep,
    BudgetSpentError,
    LeastSum,
    MonotoneFinding,
    MonotoneTuning,
)
from certifit.checkers.tree.sums.ranges import one_tree_a_column
from certifit.checkers.tree.sums.tree_sum import SummedTree, TreeSum
from certifit.rows import Array


def find_crossing(lower: TreeSum, upper: TreeSum, tuning: MonotoneTuning = MonotoneTuning()) -> MonotoneFinding:
    """Look for a row where the lower sum is above the upper one; `rises` says whether there is none."""
    taken = tuple(replace(tree, value=-tree.value) for tree in lower.trees)
    single = lower.in_single and upper.in_single
    difference = TreeSum((*upper.trees, *taken), upper.baseline - lower.baseline, upper.columns)
    if difference.additive and not difference.categorical.any() and lower.in_single == upper.in_single:
        difference = one_tree_a_column(difference)
    space = BoxSpace([tree.tree for tree in difference.trees], lower.missing and upper.missing)
    row = _by_rows(difference, single)
    if row is None:
        found = _by_search(difference, space, tuning)
        if found is None:
            return MonotoneFinding(True)
        if isinstance(found, str):
            return MonotoneFinding(None)
        row = space.row(found, upper.columns)[None]
    below, above = float(lower(row)[0, 0]), float(upper(row)[0, 0])
    return MonotoneFinding(False if above < below else None, row, (below, above))


def _by_search(difference: TreeSum, space: BoxSpace, tuning: MonotoneTuning) -> Box | str | None:
    """A box where the difference is below 0, None if there is none, or 'open'."""
    search = LeastSum(space, tuning.boxes)
    constant = [BoxStep({}, 0.0, float(difference.baseline[0]))]
    try:
        return search.least_below_zero([constant, *(_leaf_boxes(search, tree) for tree in difference.trees)])
    except (BudgetSpentError, RecursionError):
        return "open"


def _leaf_boxes(search: LeastSum, one: SummedTree) -> list[BoxStep]:
    """The leaves of a tree as boxes."""
    found: list[BoxStep] = []
    stack: list[tuple[int, Box]] = [(0, {})]
    while stack:
        search.spend()
        k, box = stack.pop()
        if one.tree.left[k] < 0:
            found.append(BoxStep(box, 0.0, float(one.value[k])))
            continue
        for left in (True, False):
            smaller = search.space.narrowed(box, int(one.tree.column[k]), search.space.side(one.tree, k, left))
            if smaller is not None:
                stack.append((int(one.tree.left[k] if left else one.tree.right[k]), smaller))
    return found


def _by_rows(difference: TreeSum, single: bool, tries: int = 20_000, seed: int = 0) -> Array | None:
    """A row about the thresholds where the difference is below 0 (1, d), if one of some thousands is."""
    rng = np.random.default_rng(seed)
    rows = np.zeros((tries, difference.columns))
    for j in range(difference.columns):
        asked = [t.tree.threshold[t.tree.inner[t.tree.column[t.tree.inner] == j]] for t in difference.trees]
        values = np.unique(np.concatenate([np.zeros(0), *asked]))
        values = values[np.isfinite(values)]
        if len(values):
            rows[:, j] = rng.choice(np.append(values, values[-1] + 1), tries)
    rows = rows.astype(np.float32).astype(np.float64) if single else rows
    told = difference(rows)[:, 0]
    least = int(np.argmin(told))
    return rows[least][None] if told[least] < 0 else None
