"""Bounds that close in on the best tree: bins give one from above and one from below, and get finer."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import partial

import numpy as np

from certifit.checkers.plain.blocks import dense
from certifit.rows import Array, Rows
from certifit.rows.kept_passes import kept
from certifit.tree.fitted_tree import Tree
from certifit.tree.optimal.bins import (
    CodedColumns,
    SplitCandidates,
    code_rows,
    finer_borders,
    first_borders,
    split_candidates,
)
from certifit.tree.optimal.search import BestNode, OutOfTimeError, TargetStatistics, TreeSearch


@dataclass(frozen=True)
class BoundedSearchTuning:
    """How bins begin and how they are refined."""

    bins: tuple[int, int, int] = (255, 32, 16)  # at first, for trees of depth 1, 2 and 3
    parts: int = 4  # into which a bin that matters is cut
    sample_rows: int = 100_000  # by which bins are cut
    close: float = 1e-12  # bounds that differ by less than this share of the cost of a leaf are equal


@dataclass(frozen=True)
class AskedTree:
    """The tree that is looked for."""

    depth: int
    bins: int | None = None  # of each column at first
    seconds: float | None = None
    least: float = 0.0  # weight of a leaf


@dataclass(frozen=True)
class PlannedNode:
    """A node of the best tree: a question, or none for a leaf."""

    column: int = -1
    threshold: float = math.nan
    missing_left: bool = False
    children: tuple[PlannedNode, ...] = ()


@dataclass(frozen=True)
class BoundedTree:
    """The best tree found, what it costs, what no tree costs less than, and the bins that prove it."""

    root: PlannedNode
    cost: float
    bound: float
    borders: list[Array]
    rounds: int
    leaf: float  # what a tree without any question costs


def bounded_search(
    rows: Rows, target: TargetStatistics, asked: AskedTree, tuning: BoundedSearchTuning = BoundedSearchTuning()
) -> BoundedTree:
    """Refine bins until the bounds meet, or the time is over; the first round is always done."""
    stop = math.inf if asked.seconds is None else time.monotonic() + asked.seconds
    sample = rows.thin(max(1, rows.n_rows // tuning.sample_rows))
    values, w = dense(sample.X[sample.w > 0]).astype(np.float64), sample.w[sample.w > 0]
    borders = first_borders(values, w, asked.bins or tuning.bins[asked.depth - 1])
    found: BoundedTree | None = None
    while True:
        coded = code_rows(rows, borders)
        try:
            search = partial(_one_round, coded, target, asked, math.inf if found is None else stop, found)
            found, marked = kept(("bounds", 0 if found is None else found.rounds), search)
        except OutOfTimeError:
            break
        near = found.cost - found.bound <= tuning.close * max(found.leaf, found.cost)
        if near or not any(map(len, marked)) or time.monotonic() > stop:
            break
        borders = finer_borders(coded, values, w, marked, tuning.parts)
    assert found is not None
    return found


def _one_round(
    coded: CodedColumns, target: TargetStatistics, asked: AskedTree, stop: float, before: BoundedTree | None
) -> tuple[BoundedTree, list[Array]]:
    """Both bounds for some bins, and the bins of each column to refine."""
    exact, relaxed = split_candidates(coded, relaxed=False), split_candidates(coded, relaxed=True)
    closed = not relaxed.opened.any()
    sets = [exact] if closed else [exact, relaxed]
    costs = TreeSearch(coded, target, stop).costs(sets, asked.depth, asked.least)
    upper = costs[0].root()
    everywhere = np.ones(coded.codes.shape[1], bool)
    root, cost = _planned(upper, exact, coded, everywhere), upper.cost
    if before is not None and before.cost <= cost:
        root, cost = before.root, before.cost
    rounds = 1 if before is None else before.rounds + 1
    bound, bins = cost, []
    if not closed:
        bound = min(costs[1].root().cost, cost)
        marked = costs[1].below(cost)
        marked = marked[relaxed.opened[marked]]
        bins = [np.unique(relaxed.bin[marked[relaxed.column[marked] == j]]) for j in range(len(coded.codes))]
    return BoundedTree(root, cost, bound, coded.borders, rounds, costs[0].leaf), bins


def _planned(node: BestNode, candidates: SplitCandidates, coded: CodedColumns, inside: Array) -> PlannedNode:
    """A node with its question in the values of the columns; `inside` (n,) are the rows that reach it.

    Where sums are rounded, a question that sends all rows to one side may seem to gain: it is left out.
    """
    c = node.candidate
    if c < 0:
        return PlannedNode()
    j = int(candidates.column[c])
    codes, lost = coded.codes[j], inside & (coded.codes[j] == coded.bins(j))
    left = inside & (codes < candidates.low[c]) & ~lost
    right = inside & ~left & ~lost
    # Where no value is missing, to the side with more rows, as in other trees.
    missing_left = bool(candidates.missing_left[c]) if lost.any() else bool(2 * left.sum() > inside.sum())
    left, right = (left | lost, right) if missing_left else (left, right | lost)
    children = node.children or (BestNode(-1, math.nan), BestNode(-1, math.nan))
    if not (left.any() and right.any()):
        return _planned(children[0] if left.any() else children[1], candidates, coded, inside)
    at = math.inf if candidates.low[c] == coded.bins(j) else coded.threshold(j, int(candidates.bin[c]))
    below = [_planned(child, candidates, coded, side) for child, side in zip(children, (left, right), strict=True)]
    return PlannedNode(j, at, missing_left, tuple(below))


def empty_tree(root: PlannedNode, d: int, classes: int) -> Tree:
    """The nodes in preorder, with their questions and nothing measured yet."""
    nodes: list[tuple[int, int, int, float, bool]] = []

    def add(node: PlannedNode) -> int:
        k = len(nodes)
        nodes.append((-1, -1, -2, -2.0, False))
        if node.children:
            left, right = add(node.children[0]), add(node.children[1])
            nodes[k] = (left, right, node.column, node.threshold, node.missing_left)
        return k

    add(root)
    left, right, column, threshold, missing = (np.array(part) for part in zip(*nodes, strict=True))
    m = len(nodes)
    zero, count = np.zeros(m), np.zeros(m, np.int64)
    return Tree(
        left, right, column, threshold.astype(np.float64), missing.astype(np.uint8), zero, count, zero,
        np.zeros((m, 1, classes)), d, np.array([classes]),
    )  # fmt: skip
