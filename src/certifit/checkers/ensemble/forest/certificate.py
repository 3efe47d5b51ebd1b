"""The certificate of a forest: bootstrap, nodes, splits and out-of-bag answers, recomputed from rows and seeds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from certifit.checkers.ensemble.forest.drawn_splits import SplitClaim, check_splits
from certifit.checkers.ensemble.forest.out_of_bag import OutOfBag, summarise_targets
from certifit.checkers.ensemble.forest.plain_nodes import ClaimedTree, check_nodes, leaf_numbers, node_checks
from certifit.checkers.plain.blocks import dense
from certifit.checkers.plain.dual_points import EPS
from certifit.checkers.tree.midpoints import STRANGE, strange_thresholds
from certifit.core import Certificate, Check
from certifit.core.certificate import Kind
from certifit.rows import Array, Rows

GROWN = "every node says what its tree's rows say, and every split is the best that its node was shown"
NODES = "every node says what its tree's rows say"
UNSEEN = "the out-of-bag score, with an interval for new rows of the same kind"


@dataclass(frozen=True)
class ForestCheckTuning:
    """How much is looked at: for nodes, rows times trees; for splits, rows times columns of nodes, and nodes; of how
    many rows the out-of-bag answers are given again, and on how many the order of draws and the bins are checked."""

    tree_rows: int = 20_000_000
    trees: int = 10_000
    entries: int = 2_000_000
    nodes: int = 1000
    unseen_rows: int = 100_000_000
    shared_rows: int = 100_000_000
    seed: int = 0


@dataclass(frozen=True)
class FittedForest:
    """A forest as it was fitted, on rows whose y are class numbers or amounts."""

    trees: int
    tree: Callable[[int], ClaimedTree]
    seed: Callable[[int], int]
    weights: Callable[[int], Array]  # (n,) how much each row counts in a tree
    objective: float
    splits: SplitClaim | None = None  # None where the draws of columns cannot be recomputed
    borders: tuple[Array, ...] = ()
    midpoints: bool = False  # whether thresholds lie in the middle between the nearest rows of their node


@dataclass(frozen=True)
class UnseenClaim:
    """What a forest says of its out-of-bag answers, and the weights by which they are averaged."""

    answers: Array  # (n, t, k)
    score: float
    interval: tuple[float, float] | None
    weight: Array  # (n,)
    measure: Callable[[Array, Array], float] | None = None  # the user's own score of answers and targets
    blank: float = np.nan  # what it says of rows that every tree has drawn; a number counts in the score


def certify_forest(
    forest: FittedForest, rows: Rows, beside: tuple[Check, ...], unseen: UnseenClaim | None = None,
    tuning: ForestCheckTuning = ForestCheckTuning(),
) -> Certificate:  # fmt: skip
    """Check a forest; `beside` are checks of what its trees share."""
    y = rows.map(lambda block: np.asarray(block.y)).reshape(rows.n_rows, -1)
    X = _matrix(rows) if rows.in_memory else None
    looked = _chosen(forest.trees, rows.n_rows, tuning)
    nodes, splits, scored, strange = [], np.zeros(3), 0, 0
    for t in looked:
        claimed, w = forest.tree(t), forest.weights(t)
        at = leaf_numbers(claimed.tree, rows)
        nodes.append(check_nodes(claimed, at, y, w))
        if forest.midpoints and X is not None:
            strange += strange_thresholds(claimed.tree, X[w > 0])
        if forest.splits is not None and X is not None:
            effort = (max(1, tuning.entries // len(looked)), max(2, tuning.nodes // len(looked)))
            *found, count = check_splits(
                claimed, forest.splits, forest.borders, at, (X, y, w), forest.seed(t), effort
            )
            splits, scored = np.maximum(splits, found), scored + count
    checks = (*beside, *node_checks(nodes))
    checks += (Check(STRANGE, float(strange), 0.0),) if forest.midpoints and X is not None else ()
    facts: dict[str, Any] = {"trees looked at": f"{len(looked)} of {forest.trees}"}
    if forest.splits is not None and X is not None:
        checks += (
            Check("best split of a node missed by, of its impurity", float(splits[0]), 1e-9),
            Check("nodes of a tree that break the rules of growth", float(splits[1]), 0.0),
            Check("thresholds of a tree that are no border of a bin", float(splits[2]), 0.0),
        )
        facts["splits scored again"] = str(scored)
    kind: Kind = "greedy"
    claim = GROWN if forest.splits is not None else NODES
    if unseen is not None:
        more, told = _check_unseen(forest, unseen, rows, y, tuning)
        checks, facts, kind, claim = (*checks, *more), {**facts, **told}, "statistical", f"{UNSEEN}; {claim}"
    return Certificate(kind, claim, forest.objective, 0.0, 1e-4, checks=checks, facts=facts)


def _matrix(rows: Rows) -> Array:
    return np.asarray(dense(rows.load().X))


def _chosen(trees: int, n: int, tuning: ForestCheckTuning) -> list[int]:
    """The trees to look at: all, or as many of a seeded order as the budget of rows allows."""
    order = np.random.default_rng(tuning.seed).permutation(trees)
    return [int(t) for t in order[: max(1, min(tuning.trees, tuning.tree_rows // max(n, 1)))]]


def _check_unseen(
    forest: FittedForest, claim: UnseenClaim, rows: Rows, y: Array, tuning: ForestCheckTuning
) -> tuple[tuple[Check, ...], dict[str, Any]]:
    """Compare out-of-bag answers, their score and its interval with what they should be."""
    index = np.random.default_rng(tuning.seed).permutation(rows.n_rows)[: tuning.unseen_rows]
    index.sort()
    part = rows if len(index) == rows.n_rows else rows.take(index)
    total, members = np.zeros((len(index), *claim.answers.shape[1:])), np.zeros(len(index))
    classes: tuple[int, ...] = ()
    for t in range(forest.trees):
        claimed = forest.tree(t)
        classes = claimed.classes
        out = ((forest.weights(t) == 0) & (claim.weight > 0))[index]
        total[out] += claimed.value[leaf_numbers(claimed.tree, part)[out]]
        members += out
    several = members[:, None, None]
    answers = np.where(several > 0, total / np.maximum(several, 1), claim.blank)
    known, told = ~np.isnan(answers), claim.answers[index]
    same = bool(np.array_equal(known, ~np.isnan(told)))
    size = float(np.abs(answers[known]).max(initial=1.0))
    off = float(np.abs(answers - told)[known].max(initial=0.0)) / size if same else float("inf")
    score = summarise_targets(claim.answers, y, claim.weight, classes).score
    score = score if claim.measure is None else claim.measure(claim.answers, y)
    unanswered = np.asarray(np.isnan(claim.answers).any(axis=(1, 2)))
    unanswered[index] |= members == 0
    found = summarise_targets(np.where(unanswered[:, None, None], np.nan, claim.answers), y, claim.weight, classes)
    checks: tuple[Check, ...] = (
        Check("out-of-bag answers off by, relative", off, 1e3 * EPS),
        # R² of few members may be far below 0.
        Check("out-of-bag score off by", abs(score - claim.score) / max(1.0, abs(claim.score)), 1e-9),
    )
    if claim.interval is not None:
        apart = float(np.abs(np.array([found.low, found.high]) - claim.interval).max())
        checks += (Check("ends of its interval off by", apart, 1e-9),)
    seen = int((unanswered & (claim.weight > 0)).sum())
    return checks, {**_facts(found, bool(classes)), "rows that every tree has drawn": str(seen)}


def _facts(found: OutOfBag, classes: bool) -> dict[str, Any]:
    name = "accuracy" if classes else "R²"
    return {
        f"out-of-bag {name}": found.score,
        "with 95 % confidence": f"between {found.low:.4g} and {found.high:.4g}",
        "assumed": "rows are independent draws",
    }


def quick(tuning: ForestCheckTuning = ForestCheckTuning()) -> ForestCheckTuning:
    """What a fit looks at: enough for one tree of a long table."""
    return replace(tuning, tree_rows=100_000, trees=3, entries=50_000, nodes=40, unseen_rows=300, shared_rows=3000)
