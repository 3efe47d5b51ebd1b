"""Bounds that close in on the best tree: bins give one from above and one from below, and get finer."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

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
    root, cost = _planned(upper, exact, coded), upper.cost
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


@dataclass(frozen=True)
class CodedQuestion:
    """A question in the codes of a column: those below `low` go to the left."""

    column: int
    low: int
    missing_left: bool

    def sides(self, coded: CodedColumns, rows: slice) -> tuple[Array, Array]:
        """Which of some rows go to the left, and which lack the value."""
        codes = coded.codes[self.column][rows]
        lost = codes == coded.bins(self.column)
        return np.where(lost, self.missing_left, codes < self.low), lost


Path: TypeAlias = tuple[tuple[CodedQuestion, bool], ...]  # the questions from the root down, and whether to the left


def _side_counts(question: CodedQuestion, coded: CodedColumns, path: Path, step: int = 65_536) -> tuple[int, ...]:
    """Of the rows that a path leads to, how many a question sends left and right, and how many lack the value."""
    counts = np.zeros(3, np.int64)
    for start in range(0, coded.codes.shape[1], step):
        rows = slice(start, start + step)
        inside = np.ones(len(coded.codes[0][rows]), bool)
        for above, goes_left in path:
            inside &= above.sides(coded, rows)[0] == goes_left
        left, lost = question.sides(coded, rows)
        lost &= inside
        counts += [(inside & left & ~lost).sum(), (inside & ~left & ~lost).sum(), lost.sum()]
    return tuple(counts.tolist())


def _planned(node: BestNode, candidates: SplitCandidates, coded: CodedColumns, path: Path = ()) -> PlannedNode:
    """A node with its question in the values of the columns; `path` leads to the rows that reach it.

    Where sums are rounded, a question that sends all rows to one side may seem to gain: it is left out.
    """
    c = node.candidate
    if c < 0:
        return PlannedNode()
    j, missing_left = int(candidates.column[c]), bool(candidates.missing_left[c])
    question = CodedQuestion(j, int(candidates.low[c]), missing_left)
    left, right, lost = _side_counts(question, coded, path)
    if not lost:  # to the side with more rows, as in other trees
        question = replace(question, missing_left=left > right)
    left, right = (left + lost, right) if question.missing_left else (left, right + lost)
    children = node.children or (BestNode(-1, math.nan), BestNode(-1, math.nan))
    if not (left and right):
        return _planned(children[0] if left else children[1], candidates, coded, path)
    at = math.inf if question.low == coded.bins(j) else coded.threshold(j, int(candidates.bin[c]))
    below = [
        _planned(child, candidates, coded, (*path, (question, side)))
        for child, side in zip(children, (True, False), strict=True)
    ]
    return PlannedNode(j, at, question.missing_left, tuple(below))


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
