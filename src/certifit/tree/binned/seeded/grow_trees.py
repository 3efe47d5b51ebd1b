"""From rows and an estimator's settings to trees: codes of one byte, the rules of growth, one tree per thread."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from certifit.checkers.tree.adapter import share_of_rows
from certifit.exceptions import DataError
from certifit.rows import Array, Rows
from certifit.rows.kept_passes import kept, passes_are_kept
from certifit.rows.threads import parallel_map
from certifit.tree.binned.bins import learn_bins
from certifit.tree.binned.seeded.growing import PLAIN_FIRST, GrowthPlan, grown_tree
from certifit.tree.binned.seeded.growth_loops import CodedTable, CodeRules
from certifit.tree.binned.seeded.plain_growth import GrowTuning, can_grow_together, grow_together
from certifit.tree.exact.grown_tree import number_of_columns
from certifit.tree.fitted_tree import Tree


def target_count(rows: Rows) -> int:
    """How many columns y has."""
    shape = np.asarray(next(iter(rows)).y).shape
    return 1 if len(shape) == 1 else shape[1]


def coded_table(rows: Rows, monotonic_cst: Any, most_bins: int = 255) -> tuple[CodedTable, Array]:
    """The table of codes that trees grow from, and the weights of its rows (n,); read twice from any source."""
    bins, targets = learn_bins(rows, most_bins), target_count(rows)
    coded = bins.coded_rows(rows, by_column=True, targets=targets)
    y = np.ascontiguousarray(coded.y.reshape(rows.n_rows, targets).T)
    first, borders = np.cumsum([0, *map(len, bins.borders)]), np.concatenate([*bins.borders, [0.0]])
    directions = monotone_directions(monotonic_cst, rows.n_features, targets)
    return CodedTable(coded.codes.T, y, first, borders, directions), coded.w


def table_borders(table: CodedTable) -> tuple[Array, ...]:
    """The borders between the bins of each column."""
    return tuple(table.borders[start:stop].copy() for start, stop in pairwise(table.first))


def growth_plan(model: Any, table: CodedTable, classes: tuple[int, ...], n: int, drawn: bool) -> GrowthPlan:
    """What a model's settings ask for on a table with n rows of positive weight; `drawn`: borders are drawn."""
    depth = np.iinfo(np.int64).max if model.max_depth is None else int(model.max_depth)
    columns = number_of_columns(model.max_features, len(table.codes))
    rules = CodeRules(columns, share_of_rows(model.min_samples_split, n), depth, 0.0, drawn)
    return GrowthPlan(
        table, model.criterion, classes, rules, share_of_rows(model.min_samples_leaf, n),
        float(model.min_weight_fraction_leaf), float(model.min_impurity_decrease), model.max_leaf_nodes,
    )  # fmt: skip


def grow_trees(plan: GrowthPlan, weight_of: Callable[[int], Array], seeds: Array) -> list[Tree]:
    """A tree for each seed, on rows that count as `weight_of(seed)` says (n,).

    The first of a small table are grown together, as many as are done before the loops have to be compiled. Where a
    checkpoint keeps them, some are grown at a time.
    """
    parts = np.array_split(seeds, -(-len(seeds) // GrowTuning().kept)) if passes_are_kept() else [seeds]
    return [tree for part in parts for tree in kept(part, partial(_grow_some, plan, weight_of, part))]


def _grow_some(plan: GrowthPlan, weight_of: Callable[[int], Array], seeds: Array) -> list[Tree]:
    trees: list[Tree] = []
    entries = plan.table.codes.size
    while len(trees) < len(seeds) and PLAIN_FIRST.suffices(entries):
        some = seeds[len(trees) : len(trees) + max(1, GrowTuning().entries // entries)]
        with PLAIN_FIRST.timed():
            weights = [weight_of(seed) for seed in some]
            if not can_grow_together(plan, weights):
                break
            trees += grow_together(plan, weights, some)
    return trees + parallel_map(partial(_grown, plan, weight_of), seeds[len(trees) :])


def _grown(plan: GrowthPlan, weight_of: Callable[[int], Array], seed: int) -> Tree:
    return grown_tree(plan, weight_of(seed), int(seed))


def monotone_directions(monotonic_cst: Any, d: int, targets: int) -> Array:
    """-1, 0 or 1 for each column (d,)."""
    if monotonic_cst is None:
        return np.zeros(d, np.int8)
    found = np.asarray(monotonic_cst)
    if found.shape != (d,) or not np.isin(found, (-1, 0, 1)).all():
        raise DataError(
            got=f"monotonic_cst={monotonic_cst!r}", wanted=f"-1, 0 or 1 for each of the {d} columns",
            fix="1: predictions rise with the column, -1: they fall, 0: anything."
            + (f" monotonic_cst has shape {len(found)} but the input data X has {d} features." if found.ndim else ""),
        )  # fmt: skip
    if found.any() and targets > 1:
        raise DataError(
            got=f"monotonic_cst with {targets} targets", wanted="one target",
            fix="Monotonicity constraints are not supported with multiple outputs: fit one model for each.",
        )  # fmt: skip
    return found.astype(np.int8)
