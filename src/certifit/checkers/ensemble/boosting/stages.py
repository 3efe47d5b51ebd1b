"""Whether the stages of a boosting are what they claim: every leaf's value, and a training loss that never rose.

Rows are sent through the trees stage by stage, block by block: slopes and curvatures at the scores so far add up to
what each leaf's value should be. Of long tables the first stages are looked at, as many as the work allows, and the
claim says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from certifit.checkers.ensemble.boosting.box_gap import (
    BoxTuning,
    asked_borders,
    border_grid,
    box_gap,
    box_size,
    is_quick,
    is_shallow,
)
from certifit.checkers.ensemble.boosting.plain_trees import PlainTrees, final_scores, is_whole, stump_size
from certifit.checkers.ensemble.boosting.stage_rules import bag_rows, best_constant, longest_step
from certifit.checkers.ensemble.score_losses import (
    PlainGamma,
    PlainHuber,
    PlainLogLoss,
    PlainMultinomial,
    PlainQuantile,
    PlainQuantiles,
    PlainScoreLoss,
    plain_score_loss,
)
from certifit.checkers.ensemble.stump_gap import StumpGap, stump_gap
from certifit.checkers.plain.blocks import dense
from certifit.checkers.plain.dual_points import EPS
from certifit.core import Certificate, Check
from certifit.rows import Array, Block, Rows, Sums


@dataclass(frozen=True)
class StageTuning:
    """How much is checked: rows times trees."""

    visits: int = 3_000_000
    entries: int = 20_000  # stages are looked at together that have so many of these


@dataclass(frozen=True)
class StageClaim:
    """What a boosting says it has done."""

    loss: str
    parameter: float | tuple[float, ...] | None
    learning_rate: float
    l2: float
    leaf_rows: int
    depth: float
    leaves: float
    monotone: Array | None  # (d,) -1, 0 or 1
    scores: int = 1  # trees of a stage
    newton_share: float = 1.0  # of each Newton step, before the learning rate
    subsample: float = 1.0  # share of the rows that a stage sees
    seed: int = 0  # by which these are drawn
    levels: Array | None = None  # (stages,) δ of Huber's loss, a quantile of the sizes of residuals
    share: float = 0.9  # the level of that quantile
    start: Array | None = None  # (n, k) first scores that are no constant

    @property
    def plain(self) -> PlainScoreLoss:
        return plain_score_loss(self.loss, self.parameter)

    def of_stage(self, stage: int) -> PlainScoreLoss:
        """The loss that a stage lowers; Huber's has a δ of its own at each."""
        return self.plain if self.levels is None else PlainHuber(float(self.levels[stage]))


@dataclass(frozen=True)
class StageSums(Sums):
    """Sums over rows by node, and of the losses before and after each stage."""

    G: Array  # (m,) Σ w φ'; of quantiles, the weight of residuals below the leaf's full step
    H: Array  # (m,) Σ w φ"; of quantiles, the weight of those at it
    size: Array  # (m,) Σ w |φ'|; what rounding is relative to
    count: Array  # (m,)
    before: Array  # (stages,) Σ w φ of the rows that a stage sees
    after: Array  # (stages,)
    scale: Array  # (stages,) Σ w |φ| before and after
    level: Array  # (stages, 2) of Huber's loss, the weight of residuals smaller than δ, and of those of this size
    slope: Array  # (k, 2) Σ w φ' at the baseline, and Σ w |φ'|
    loss: float  # Σ w φ of all rows after the last stage
    floor: float  # Σ w min φ, below which no scores can come
    weight: float


@dataclass(frozen=True)
class StageRows:
    """The rows of a block that boosting learnt from."""

    X: Array  # (n, d) coded
    y: Array
    w: Array
    F: Array  # (n, k) first scores
    bags: Array  # (stages, n) bool, which rows each stage saw


def rows_of(trees: PlainTrees, claim: StageClaim, kept: Array, bags: Array, block: Block) -> StageRows:
    """Those of a block, with the rows of the table that are kept (N,) and those that stages saw (stages, N)."""
    here = slice(block.start, block.start + len(block.w))
    chosen = kept[here]
    X, y = trees.coded(dense(block.X[chosen])), np.asarray(block.y, np.float64)[chosen]
    F = np.tile(trees.baseline, (len(y), 1)) if claim.start is None else np.array(claim.start[here][chosen])
    return StageRows(X, y, block.w[chosen], F, bags[:, here][:, chosen])


def stage_sums(trees: PlainTrees, claim: StageClaim, kept: Array, bags: Array, block: Block) -> StageSums:
    """What a block's rows add to all leaves of the first stages, of which there are as many as bags."""
    rows = rows_of(trees, claim, kept, bags, block)
    y, w, F, k, stages = rows.y, rows.w, rows.F, len(trees.baseline), len(bags)
    nodes, losses, level = np.zeros((4, int(trees.first[stages * k]))), np.zeros((3, stages)), np.zeros((stages, 2))
    loss = claim.of_stage(0) if stages else claim.plain
    steep = loss.slope(y, _shaped(loss, F)).reshape(len(w), k)
    steep = np.stack([w @ steep, w @ np.abs(steep)], axis=1)
    # Huber's loss has a δ of its own at each stage.
    together = 1 if isinstance(loss, PlainHuber) else max(1, StageTuning().entries // max(1, len(w) * k))
    for start in range(0, stages, together):
        stop = min(start + together, stages)
        loss = claim.of_stage(start)
        if isinstance(loss, PlainHuber):
            level[start] = _level_sums(loss.delta, y, F[:, 0], w)
        F = _add_stages(trees, claim, rows, F, (start, stop), (nodes, losses))
    floor = float(w @ loss.gain(y, np.zeros(_shaped(loss, F).shape)))
    final = float(w @ loss.value(y, _shaped(loss, F)))
    (G, H, size, count), (before, after, scale) = nodes, losses
    return StageSums(G, H, size, count, before, after, scale, level, steep, final, floor, float(w.sum()))


def _add_stages(
    trees: PlainTrees, claim: StageClaim, rows: StageRows, F: Array, span: tuple[int, int], sums: tuple[Array, Array]
) -> Array:
    """Add what some stages make of the rows, all at once, to the sums of nodes and stages; return the scores then."""
    (start, stop), (n, k), (of_nodes, of_stages) = span, F.shape, sums
    stages, loss = stop - start, claim.of_stage(start)
    seen = np.where(rows.bags[start:stop], rows.w, 0.0)
    at = trees.leaf_table(start * k, stop * k, rows.X)
    steps = trees.value.take(at).reshape(stages, k, n).transpose(0, 2, 1)
    path = np.concatenate([F[None], steps])
    np.cumsum(path, axis=0, out=path)
    scores, y = path.reshape(-1, k), np.tile(rows.y, stages + 1)
    old, full = scores[: stages * n], steps.reshape(-1, k) / claim.learning_rate
    first, last = int(trees.first[start * k]), int(trees.first[stop * k])
    leaf = at.ravel() - first
    for total, part in zip(of_nodes, _row_parts(loss, y[: stages * n], old, full), strict=False):
        weighted = seen[:, None] * part.reshape(stages, n, k).transpose(0, 2, 1)
        total[first:last] += np.bincount(leaf, weighted.ravel(), last - first)
    of_nodes[3, first:last] += np.bincount(leaf, np.repeat(seen > 0, k, axis=0).ravel(), last - first)
    value = loss.value(y, _shaped(loss, scores)).reshape(stages + 1, n)
    for total, part in zip(of_stages, (value[:-1], value[1:]), strict=False):
        total[start:stop] += np.einsum("sn,sn->s", seen, part)
    size = np.abs(value)
    ends = (np.einsum("sn,sn->s", seen, part) for part in (size[:-1], size[1:]))
    of_stages[2, start:stop] += np.maximum(*ends)
    return path[-1]


def _shaped(loss: PlainScoreLoss, F: Array) -> Array:
    return F if loss.several else F[:, 0]


def _level_sums(delta: float, y: Array, F: Array, w: Array) -> tuple[float, float]:
    """The weight of residuals smaller than δ, and of those as large."""
    away = np.abs(y - F)
    near = 64 * EPS * (away + np.abs(y) + np.abs(F))
    return float(w @ (away < delta - near)), float(w @ (np.abs(away - delta) <= near))


def _row_parts(loss: PlainScoreLoss, y: Array, F: Array, step: Array) -> tuple[Array, Array, Array]:
    """What each row adds to the sums of its leaves, for every score, whose full steps are `step` (n, k)."""
    if isinstance(loss, PlainQuantile | PlainQuantiles | PlainHuber):
        rest = y[:, None] - F
        sizes = np.abs(rest) + np.abs(step) + np.abs(y)[:, None] + np.abs(F)
        near = 64 * EPS * (sizes + EPS * np.abs(y).max(initial=0.0))  # values of 0 have the rounding of rounding
        if isinstance(loss, PlainHuber) and loss.delta > 0:
            away = loss.slope(rest, step)
            return away, np.ones(F.shape), np.abs(away) + near / EPS
        return rest < step - near, np.abs(rest - step) <= near, np.ones(F.shape)
    slope, curve = (
        part.reshape(F.shape) for part in (loss.slope(y, _shaped(loss, F)), loss.curvature(y, _shaped(loss, F)))
    )
    return slope, curve, np.abs(slope) + _slope_noise(loss, F, slope, curve)


def _slope_noise(loss: PlainScoreLoss, F: Array, slope: Array, curve: Array) -> Array:
    """What rounding of a slope is relative to besides its size, as a share of the allowance of sums.

    Slopes are differences: of a mean exp t and y, of a probability and 0 or 1, which have the digits of their parts,
    and a score has its own. Late stages have leaves where the differences are all but 0.
    """
    apart = 1.0 if isinstance(loss, PlainLogLoss | PlainMultinomial | PlainGamma) else 0.0
    terms = np.abs(F) if loss.translates else 1.0 + np.abs(F)
    return (apart + np.abs(slope) + np.abs(curve) * terms) / 16.0


def certify_stages(
    trees: PlainTrees,
    claim: StageClaim,
    rows: Rows,
    held_out: Array | None,
    tol: float = 0.0,
    tuning: StageTuning = StageTuning(),
) -> Certificate:
    """Check a boosting on rows whose y are amounts, or class numbers."""
    if not is_whole(trees, rows.n_features, claim.scores):
        return Certificate("greedy", CLAIM, tol=tol, checks=(Check("trees that are no trees (1: yes)", 1.0, 0.0),))
    k = len(trees.baseline)
    all_stages = (len(trees.first) - 1) // k
    if claim.levels is not None and claim.levels.shape != (all_stages,):
        return Certificate("greedy", CLAIM, tol=tol, checks=(Check("stages without a level", 1.0, 0.0),))
    stages = min(all_stages, max(1, tuning.visits // max(1, rows.n_rows * k)))
    kept, bags = seen_rows(rows, claim, held_out, stages)
    with np.errstate(over="ignore", invalid="ignore"):
        found = rows.sum(partial(stage_sums, trees, claim, kept, bags))
    checks = (
        *_check_shape(trees, claim),
        *_check_baseline(trees, claim, found, rows, kept),
        *_check_leaves(trees, claim, found),
        _check_descent(trees, found),
    )
    objective = float(found.loss / found.weight)
    facts: dict[str, float | str] = {"stages": float(all_stages)}
    words = CLAIM if stages == all_stages else f"of the first {stages} stages, {CLAIM}"
    if stages == all_stages and all(check.passed for check in checks) and claim.start is None:
        gap, words_of_gap = shallow_gap(trees, claim, rows, kept)
        if gap is not None:
            bound = max(gap.bound, found.floor) / found.weight
            facts["size of the model"] = gap.size
            facts["gap to the best model of this size"] = max(0.0, objective - bound)
            words = f"{words}; no {words_of_gap} of the same size has a loss below the bound"
            return Certificate("bounded", words, objective, bound, tol, checks=checks, facts=facts)
    return Certificate("greedy", words, objective, found.floor / found.weight, tol, checks=checks, facts=facts)


CLAIM = "every leaf has the value that lowers its stage's quadratic most, and no stage raised the training loss"


def _check_shape(trees: PlainTrees, claim: StageClaim) -> tuple[Check, ...]:
    """Whether depth, leaves and rows keep to the rules, and leaves are in the order of monotone columns."""
    m = len(trees.left)
    depth, low, high, wrong = np.zeros(m, np.int64), trees.value.copy(), trees.value.copy(), 0
    levels, level = [], trees.first[:-1][trees.left[trees.first[:-1]] >= 0]
    while len(level):
        levels.append(level)
        children = np.concatenate([trees.left[level], trees.right[level]])
        depth[children] = len(levels)
        level = children[trees.left[children] >= 0]
    wrong += int((trees.low[trees.first[:-1]] > -np.inf).sum() + (trees.high[trees.first[:-1]] < np.inf).sum())
    for level in reversed(levels):
        a, b = trees.left[level], trees.right[level]
        direction = np.zeros(len(level)) if claim.monotone is None else claim.monotone[trees.column[level]]
        wrong += int((((direction > 0) & (high[a] > low[b])) | ((direction < 0) & (low[a] < high[b]))).sum())
        wrong += int((~_limits_follow(trees, level, direction)).sum())
        low[level], high[level] = np.minimum(low[a], low[b]), np.maximum(high[a], high[b])
    tree = np.searchsorted(trees.first, np.arange(m), side="right") - 1
    leaf = trees.left < 0
    n_leaves = np.bincount(tree[leaf], minlength=len(trees.first) - 1)
    few = leaf & (trees.count < claim.leaf_rows) & (depth > 0)
    unused = np.abs(np.where(leaf | (trees.kinds >= 0), trees.threshold, 0.0)).max(initial=0.0)
    inside = float(np.abs(trees.value[~leaf]).max(initial=0.0)) + float(unused)
    return (
        Check("levels beyond the deepest allowed", max(0.0, float(depth.max(initial=0)) - claim.depth), 0.0),
        Check("leaves beyond the number allowed", max(0.0, float(n_leaves.max(initial=0)) - claim.leaves), 0.0),
        Check("leaves with too few rows", float(few.sum()), 0.0),
        Check("values of inner nodes, and thresholds of leaves", inside, 0.0),
        Check("branches in the wrong order for a monotone column", float(wrong), 0.0),
    )


def _limits_follow(trees: PlainTrees, nodes: Array, direction: Array) -> Array:
    """Whether the children of nodes (r,) have their limits, with a value between them where a column is monotone."""
    falls = direction < 0
    a = np.where(falls, trees.right[nodes], trees.left[nodes])
    b = np.where(falls, trees.left[nodes], trees.right[nodes])
    low, high, middle = trees.low[nodes], trees.high[nodes], trees.high[a]
    outside = (trees.low[a] == low) & (trees.high[b] == high)
    free = outside & (trees.low[b] == low) & (trees.high[a] == high)
    return np.where(direction == 0, free, outside & (trees.low[b] == middle) & (low <= middle) & (middle <= high))


def seen_rows(rows: Rows, claim: StageClaim, held_out: Array | None, stages: int) -> tuple[Array, Array]:
    """Which rows the boosting learnt from (n,), and which of them each of the first stages saw (stages, n)."""
    kept = rows.map(lambda block: block.w) > 0
    if held_out is not None:
        kept = kept & ~held_out
    if claim.subsample >= 1:
        return kept, np.broadcast_to(kept, (stages, len(kept)))
    return kept, np.array([bag_rows(kept, claim.subsample, claim.seed, s) for s in range(stages)]).reshape(
        stages, len(kept)
    )


def _check_baseline(
    trees: PlainTrees, claim: StageClaim, found: StageSums, rows: Rows, kept: Array
) -> tuple[Check, ...]:
    """Whether stages begin at the best constant, or at 0 and the first scores that were given."""
    name = "baseline off by, of what rounding allows"
    if claim.start is not None:
        return (Check(name, float(np.abs(trees.baseline).max()), 0.0),)
    if isinstance(claim.plain, PlainQuantile | PlainQuantiles | PlainHuber):
        y = rows.map(lambda block: np.asarray(block.y, np.float64))[kept]
        w = rows.map(lambda block: block.w)[kept]
        want = best_constant(y, w, claim.plain, len(trees.baseline))
        size = 16 * EPS * (np.abs(want) + float(np.abs(y).max()))
        return (Check(name, float((np.abs(want - trees.baseline) / np.where(size > 0, size, 1.0)).max()), 1.0),)
    rounding = 64 * np.log2(2 + rows.n_rows) * EPS
    allowed = rounding * np.where(found.slope[:, 1] > 0, found.slope[:, 1], 1.0)
    # Far from 0, the best constant has the digits of a score, and its slope those of all weights.
    allowed += 8 * EPS * np.abs(trees.baseline) * found.weight
    centred = (
        abs(float(trees.baseline.sum())) > 1e-9 * (1 + np.abs(trees.baseline).max()) if len(trees.baseline) > 1 else 0
    )
    return (Check(name, float((np.abs(found.slope[:, 0]) / allowed).max()) + 2.0 * centred, 1.0),)


def _check_leaves(trees: PlainTrees, claim: StageClaim, found: StageSums) -> tuple[Check, ...]:
    """Whether counts and values of the leaves are those of their rows."""
    m = len(found.G)
    leaf = trees.left[:m] < 0
    count, inner = trees.count[:m], np.flatnonzero(~leaf)
    children = count[trees.left[inner]] + count[trees.right[inner]]
    full = float(np.abs((found.count - count)[leaf]).max(initial=0.0))
    full = max(full, float(np.abs(children - count[inner]).max(initial=0)))
    value = trees.value[:m]
    rounding = 32 * np.log2(2 + count.max(initial=0.0)) * EPS
    free = leaf & (claim.monotone is None or not np.any(claim.monotone))
    loss, total = claim.plain, np.where(found.size > 0, found.size, 1.0)
    tree = np.searchsorted(trees.first, np.arange(m), side="right") - 1
    if isinstance(loss, PlainHuber):
        levels = np.full(len(found.before), loss.delta) if claim.levels is None else claim.levels
        far = np.where(levels[tree] <= 0, _beyond_quantile(found, 0.5), np.abs(found.G) / total / 4)
        off = float(np.where(free, far, 0.0).max(initial=0.0) / rounding)
        return (*_leaf_checks(full, off), _check_levels(claim, found, rounding))
    if isinstance(loss, PlainQuantile | PlainQuantiles):
        alphas = np.array(loss.alphas if isinstance(loss, PlainQuantiles) else (loss.alpha,))
        far = _beyond_quantile(found, alphas[tree % len(alphas)])
        return _leaf_checks(full, float(np.where(free, far, 0.0).max(initial=0.0) / rounding))
    H = found.H + claim.l2
    newton = claim.newton_share * np.where(H > 0, -found.G / np.where(H > 0, H, 1.0), 0.0)
    longest = longest_step(claim.loss, claim.learning_rate)
    newton = np.clip(claim.learning_rate * np.clip(newton, trees.low[:m], trees.high[:m]), -longest, longest)
    allowed = rounding * (claim.learning_rate * found.size / np.where(H > 0, H, 1.0) + np.abs(newton)) + EPS**2
    return _leaf_checks(full, float(np.where(leaf, np.abs(value - newton) / allowed, 0.0).max(initial=0.0)))


def _beyond_quantile(found: StageSums, alpha: Array | float) -> Array:
    """By which share of a node's weight (m,) its full step misses the α-quantile of the residuals.

    The weight below a quantile is at most α of all, that up to it at least. Where Huber's δ is 0 its leaves take the
    median, which is what the least loss tends to as δ does.
    """
    want = alpha * found.size
    far = np.maximum(found.G - want, want - found.G - found.H)
    return np.asarray(far / np.where(found.size > 0, found.size, 1.0))


def _check_levels(claim: StageClaim, found: StageSums, rounding: float) -> Check:
    """Whether the δ of each stage is the quantile of the residuals' sizes that was asked for."""
    want = claim.share * found.weight
    off = np.maximum(found.level[:, 0] - want, want - found.level.sum(axis=1)) / found.weight
    return Check("share of residuals below δ off by", float(off.max(initial=0.0)), rounding)


def _leaf_checks(counts: float, values: float) -> tuple[Check, ...]:
    return (
        Check("row counts of nodes off by", counts, 0.0),
        Check("values of leaves off by, of what rounding allows", values, 1.0),
    )


def _check_descent(trees: PlainTrees, found: StageSums) -> Check:
    """Whether no stage raised the loss of the rows that it saw.

    Slopes are differences of probabilities, known to EPS: at the minimum of a row of weight 1e12 steps are rounding.
    """
    longest = np.maximum.reduceat(np.abs(trees.value), trees.first[:-1])
    steps = longest.reshape(-1, len(trees.baseline)).sum(axis=1)[: len(found.before)]
    rise = found.after - found.before - 4 * EPS * found.weight * steps
    rose = rise / (found.scale + np.finfo(float).tiny)
    return Check("rise of the training loss in a stage, relative", float(rose.max(initial=0.0)), 1e-12)


def shallow_gap(trees: PlainTrees, claim: StageClaim, rows: Rows, kept: Array) -> tuple[StumpGap | None, str]:
    """The duality gap of an ensemble of stumps or of trees of depth 2, and of what; None where it takes too long."""
    stumps = bool((np.diff(trees.first) <= 3).all())
    if not (stumps or is_shallow(trees)) or not is_quick(rows.n_rows, rows.n_features, trees):
        return None, ""
    data, stages = rows.load(), (len(trees.first) - 1) // len(trees.baseline)
    X, y, w = trees.coded(dense(data.X[kept])), np.asarray(data.y, np.float64)[kept], data.w[kept]
    loss = claim.of_stage(stages - 1) if stages else claim.plain
    F = _shaped(loss, final_scores(trees, X))
    if stumps:
        categorical = np.array([len(c) > 0 for c in trees.categories])
        return stump_gap(X, y, w, F, stump_size(trees), loss, categorical), "additive model"
    grid = border_grid(X, asked_borders(trees, rows.n_features), BoxTuning().borders)
    words = f"sum of boxes with two conditions, on {sum(map(len, grid))} borders,"
    return box_gap(X, y, w, F, box_size(trees), loss, grid), words
