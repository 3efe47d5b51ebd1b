"""What can be proved of a sum of trees on the rows it was fitted on, whoever fitted it.

- Stages: rows are sent through the trees one stage after another; slopes and curvatures at the scores so far say what
  every leaf should hold, how many rows and how much curvature it has, and whether the loss fell.
- Splits: of a seeded sample of nodes, the gain of the split made against that of every threshold of every column.
- Additive sums (stumps among them): the duality gap to the best additive model of the same size.

Libraries that work in single precision leave five or six digits; limits say so.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from certifit.checkers.ensemble.score_losses import PlainScoreLoss
from certifit.checkers.ensemble.stump_gap import StumpGap, best_shift, stump_gap
from certifit.checkers.tree.sums.boosting_claim import BoostingSettings
from certifit.checkers.tree.sums.monotone import monotone_checks
from certifit.checkers.tree.sums.split_gains import SplitTuning, missed_gains
from certifit.checkers.tree.sums.tree_sum import TreeSum
from certifit.core import Certificate, Check
from certifit.rows import Array

LEAVES = "every leaf has the value that lowers its stage's quadratic most, and no stage raised the training loss"
SCORES = "the trees add up to the scores that the model gives"
ADDITIVE = "no additive model of the same size has a loss below the bound"


@dataclass(frozen=True)
class TreeSumTuning:
    """How much is looked at: rows times trees of the stages, and entries of the table for the gap."""

    visits: int = 20_000_000
    gap_entries: int = 20_000_000
    splits: SplitTuning = field(default_factory=SplitTuning)


@dataclass(frozen=True)
class FittedTable:
    """The rows that a model was fitted on, those of weight 0 where it counts them."""

    X: Array  # (n, d)
    y: Array  # (n,) amounts, or class numbers
    w: Array  # (n,)


def scores_of(F: Array, loss: PlainScoreLoss) -> Array:
    """Scores (n, k), or (n,) where the loss has one."""
    return F if loss.several else F[:, 0]


def certify_sum(
    model: TreeSum,
    said: BoostingSettings,
    rows: FittedTable,
    told: Array,
    tol: float = 0.0,
    tuning: TreeSumTuning = TreeSumTuning(),
) -> Certificate:
    """Check a boosting by its trees; `told` are the scores that the model itself gives to the rows (n, k)."""
    loss = said.plain
    F = model(rows.X)
    checks = [*scores_check(F, told, model), *monotone_checks(model, said.directions)]
    facts: dict[str, float | str] = {"trees": float(len(model.trees))}
    if said.reason:
        facts["values of leaves not checked"] = said.reason
        words = SCORES
    else:
        stages, more = _check_stages(model, said, rows, tuning)
        checks += more
        words = LEAVES if stages is None else f"of the first {stages} stages, {LEAVES}"
        facts |= missed_gains(model, said, rows.X, *_first_slopes(model, said, rows), tuning.splits)
    if model.in_single:
        facts["rows that float32 sends the other way"] = float(model.astray(rows.X))
    total = float(rows.w.sum())
    objective = float(rows.w @ loss.value(rows.y, scores_of(F, loss))) / total
    floor = float(rows.w @ loss.gain(rows.y, np.zeros(scores_of(F, loss).shape))) / total
    if not model.additive or rows.X.size > tuning.gap_entries or not model.trees:
        return Certificate("greedy", words, objective, floor, tol, checks=tuple(checks), facts=facts)
    gap = additive_gap(model, F, rows, loss)
    facts |= {"size of the additive model": gap.size, "gap to the best of this size": gap.gap / total}
    words = f"{words}; {ADDITIVE}"
    return Certificate("bounded", words, objective, gap.bound / total, tol, checks=tuple(checks), facts=facts)


def additive_gap(model: TreeSum, F: Array, rows: FittedTable, loss: PlainScoreLoss) -> StumpGap:
    """The duality gap of a sum of functions of single columns."""
    seen = rows.X.astype(np.float32).astype(np.float64) if model.in_single else rows.X
    return stump_gap(seen, rows.y, rows.w, scores_of(F, loss), model.size, loss, model.categorical)


def scores_check(F: Array, told: Array, model: TreeSum) -> list[Check]:
    """Whether the scores that were read are those that the model gives."""
    rounding = (6e-8 if model.single_sums else 2.3e-16) * (8 + len(model.trees))
    size = 1 + float(np.abs(F).max(initial=0.0))
    off = np.inf if told.shape != F.shape else float(np.abs(told - F).max(initial=0.0)) / size
    return [Check("scores of the rows off from the model's own, of their size", off, rounding)]


def _stage_bounds(
    model: TreeSum, said: BoostingSettings, rows: FittedTable, tuning: TreeSumTuning
) -> tuple[int, int]:
    """How many stages there are, and how many are looked at."""
    stages = len(model.trees) // said.scores
    return stages, min(stages, max(1, tuning.visits // max(1, len(rows.y) * said.scores)))


def start_of(model: TreeSum, said: BoostingSettings, rows: FittedTable) -> Array:
    """The scores before the first stage (k,); the first trees may hold them in their leaves."""
    if not said.from_average:
        return model.baseline
    if said.plain.several:
        return np.log(np.bincount(rows.y.astype(np.int64), rows.w, said.scores) / rows.w.sum())
    w = rows.w / np.where(rows.y == 1, said.positive_weight, 1.0) if said.positive_weight != 1 else rows.w
    return np.atleast_1d(best_shift(rows.y, w, np.zeros(len(rows.y)), said.plain))


def _first_slopes(model: TreeSum, said: BoostingSettings, rows: FittedTable) -> tuple[Array, Array]:
    """Slopes and curvatures (n, k), times weights, before the first stage."""
    F = np.tile(start_of(model, said, rows), (len(rows.y), 1))
    return weighted_slopes(said, rows, F)


def weighted_slopes(said: BoostingSettings, rows: FittedTable, F: Array) -> tuple[Array, Array]:
    """Slopes and curvatures (n, k) at scores F (n, k), times weights."""
    loss = said.plain
    now = scores_of(F, loss)
    slope, curve = (part(rows.y, now).reshape(F.shape) for part in (loss.slope, loss.curvature))
    return rows.w[:, None] * slope, rows.w[:, None] * curve


def _check_stages(
    model: TreeSum, said: BoostingSettings, rows: FittedTable, tuning: TreeSumTuning
) -> tuple[int | None, list[Check]]:
    """Leaves, counts and the fall of the loss; the number of stages where not all were looked at."""
    loss, k = said.plain, said.scores
    all_stages, stages = _stage_bounds(model, said, rows, tuning)
    if [tree.score for tree in model.trees] != [t % k for t in range(all_stages * k)]:
        return None, [Check("trees that are not in the order of stages (1: yes)", 1.0, 0.0)]
    F = np.tile(start_of(model, said, rows), (len(rows.y), 1))
    before = float(rows.w @ loss.value(rows.y, scores_of(F, loss)))
    worst = {"values": 0.0, "rise": 0.0}
    for stage in range(stages):
        slope, curve = weighted_slopes(said, rows, F)
        for c in range(k):
            tree = model.trees[stage * k + c]
            leaf, m = tree.leaves(rows.X), len(tree.value)
            # Slopes are as exact as the numbers that they are differences of.
            size = np.abs(slope) + curve * (np.abs(rows.y)[:, None] + np.abs(F))
            G, H, scale = (np.bincount(leaf, part[:, c], m) for part in (slope, curve, size))
            at_leaf = tree.tree.left < 0
            start = F[0, c] if stage == 0 and said.from_average else 0.0
            held = np.where(at_leaf, tree.value - start, 0.0)
            # A later tree of one leaf that adds nothing: the library found no split, and says so.
            idle = stage > 0 and at_leaf[0] and held[0] == 0
            reach = said.learning_rate * scale / np.where(said.factor * H + said.l2 > 0, said.factor * H + said.l2, 1)
            off = np.abs(held - said.steps(G, H)) / np.where(reach > 0, reach, 1.0)
            off = np.where(at_leaf & ~idle, off, 0.0)
            worst["values"] = max(worst["values"], float(off.max()))
            _compare_nodes(worst, tree.count, np.bincount(leaf, minlength=m), at_leaf & ~at_leaf[0], "rows")
            _compare_nodes(worst, tree.mass, said.factor * H, at_leaf & ~at_leaf[0], "masses")
            F[:, c] = F[:, c] + tree(rows.X) if stage or not said.from_average else tree(rows.X)
        now = float(rows.w @ loss.value(rows.y, scores_of(F, loss)))
        worst["rise"] = max(worst["rise"], (now - before) / (abs(before) + abs(now) or 1.0))
        before = now
    limits = {
        "values": ("values of leaves off by, of their slopes", said.digits),
        "rise": ("rise of the training loss in a stage, relative", 1e-7),
        "rows": ("row counts of leaves off by", 0.0),
        "masses": ("curvatures of leaves off by, relative", 10 * said.digits),
    }
    checks = [Check(words, worst[name], limit) for name, (words, limit) in limits.items() if name in worst]
    return None if stages == all_stages else stages, checks


def _compare_nodes(worst: dict[str, float], said: Array | None, found: Array, at: Array, name: str) -> None:
    """Raise what is worst by what a tree says of some of its nodes."""
    if said is None or np.isnan(said[at]).any():
        return
    off = np.abs(said - found)[at]
    off = off if name == "rows" else off / np.maximum(found[at], 1e-6)
    worst[name] = max(worst.get(name, 0.0), float(off.max(initial=0.0)))
