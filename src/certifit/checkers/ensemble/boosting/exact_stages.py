"""Whether the trees of a boosting with exact trees are the greedy least-squares trees of their stage's slopes.

Slopes are taken anew, stage by stage: weights, means and variances of all nodes are those of their rows. At some
stages every split is held against all thresholds of all columns, as one of a decision tree.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from certifit.checkers.ensemble.boosting.plain_trees import PlainTrees
from certifit.checkers.ensemble.boosting.stages import StageClaim, rows_of, seen_rows
from certifit.checkers.plain.blocks import dense
from certifit.checkers.tree.greedy import GreedyTuning, GrowthClaim, check_greedy
from certifit.checkers.tree.midpoints import STRANGE, strange_thresholds
from certifit.checkers.tree.node_sums import NodeClaims, check_nodes
from certifit.checkers.tree.plain_tree import PlainTree
from certifit.core import Check
from certifit.rows import Array, ArrayRows, Block, Rows


@dataclass(frozen=True)
class SlopeTuning:
    """How much is checked: stages whose splits are scored again, rows times trees visited, entries of a tree."""

    scored_stages: int = 3
    visits: int = 1_000_000
    entries: int = 200_000
    measured_stages: int = 10_000  # whose nodes are measured again
    slope_digits: float = 1e-12  # share of the largest slope by which slopes that are taken anew may be off


def quick(tuning: SlopeTuning = SlopeTuning()) -> SlopeTuning:
    """What a fit looks at: enough to see stages that go wrong."""
    return replace(tuning, measured_stages=10)


@dataclass(frozen=True)
class SlopeMeasures:
    """What the trees say of the slopes in their nodes, (m,) each."""

    weight: Array
    mean: Array
    impurity: Array


def check_slope_trees(
    trees: PlainTrees,
    measures: SlopeMeasures,
    claim: StageClaim,
    growth: GrowthClaim,
    rows: Rows,
    held_out: Array | None,
    tuning: SlopeTuning = SlopeTuning(),
) -> tuple[tuple[Check, ...], dict[str, str]]:
    """The checks of the stages that were looked at, each with the largest residual that was met."""
    k, m = len(trees.baseline), len(trees.left)
    if any(part.shape != (m,) for part in (measures.weight, measures.mean, measures.impurity)):
        return (Check("nodes without weight, mean and impurity", 1.0, 0.0),), {}
    stages = min((len(trees.first) - 1) // k, max(1, tuning.visits // max(1, rows.n_rows * k)))
    scored, measured = (_spread(stages, most) for most in (tuning.scored_stages, tuning.measured_stages))
    kept, bags = seen_rows(rows, claim, held_out, stages)
    data = rows.load()
    block = Block(dense(data.X), np.asarray(data.y, np.float64), data.w, 0)
    here = rows_of(trees, claim, kept, bags, block)
    F, nodes, splits = here.F, [], []
    leaves = trees.each_tree_leaves(stages * k, here.X)
    for stage in range(stages):
        at = [next(leaves) for _ in range(k)]
        if stage not in measured | scored:
            F += np.stack([trees.value[own] for own in at], axis=1)
            continue
        loss, bag = claim.of_stage(stage), here.bags[stage]
        slopes = -loss.slope(here.y, F if loss.several else F[:, 0]).reshape(F.shape)
        for t in range(stage * k, (stage + 1) * k):
            seen = ArrayRows(here.X[bag], slopes[bag, t % k], here.w[bag])
            plain, claims = _node_claims(trees, measures, t)
            strange = Check(STRANGE, float(strange_thresholds(plain, np.asarray(seen.X))), 0.0)
            nodes.append((*check_nodes(plain, claims, "squared_error", (), seen), strange))
            if stage in scored:
                rules = replace(growth, leaf_weight=growth.leaf_weight * float(seen.w.sum()))
                effort = GreedyTuning(tuning.entries, noise=tuning.slope_digits * float(np.abs(slopes).max()))
                splits.append(check_greedy(plain, rules, np.asarray(seen.X), np.asarray(seen.y), seen.w, effort)[0])
            F[:, t % k] += trees.value[at[t % k]]
    checks = [_worst(same) for several in (nodes, splits) for same in zip(*several, strict=True)]
    facts = {
        "stages whose nodes were measured again": str(len(measured | scored)),
        "whose splits were scored again": str(len(scored)),
    }
    return tuple(checks), facts


def _spread(stages: int, most: int) -> set[int]:
    """So many stages, the first and the last among them, at about equal distances."""
    return {round(x) for x in np.linspace(0, stages - 1, min(stages, most))} if stages else set()


def _worst(checks: tuple[Check, ...]) -> Check:
    return max(checks, key=lambda check: (not check.passed, check.residual - check.limit))


def _node_claims(trees: PlainTrees, measures: SlopeMeasures, t: int) -> tuple[PlainTree, NodeClaims]:
    """Tree t by itself, and what it says of its nodes."""
    part = slice(int(trees.first[t]), int(trees.first[t + 1]))
    inner = trees.left[part] >= 0
    left, right = (np.where(inner, child[part] - part.start, -1) for child in (trees.left, trees.right))
    depth = np.zeros(len(inner), np.int64)
    for i in np.flatnonzero(inner):
        depth[[left[i], right[i]]] = depth[i] + 1
    plain = PlainTree(left, right, trees.column[part], trees.threshold[part], trees.missing_left[part] != 0, depth)
    value = measures.mean[part][:, None, None]
    return plain, NodeClaims(trees.count[part], measures.weight[part], value, measures.impurity[part])
