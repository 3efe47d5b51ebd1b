"""Whether the stages of a boosting are what they claim: every leaf's value, and a training loss that never rose.

Rows are sent through the trees stage by stage, block by block: slopes and curvatures at the scores so far add up to
what each leaf's value should be. Of long tables the first stages are looked at, as many as the work allows, and the
claim says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import logit

from certifit.checkers.ensemble.forest.plain_bootstrap import GOLDEN, finished
from certifit.checkers.ensemble.score_losses import PlainQuantile, PlainScoreLoss, plain_score_loss
from certifit.checkers.ensemble.stump_gap import StumpGap, stump_gap
from certifit.checkers.plain.best_intercepts import middle_of_quantile
from certifit.checkers.plain.blocks import dense
from certifit.checkers.plain.dual_points import EPS
from certifit.core import Certificate, Check
from certifit.rows import Array, Block, Rows, Sums


@dataclass(frozen=True)
class StageTuning:
    """How much is checked: rows times trees, and entries of the table for the gap of stumps."""

    visits: int = 3_000_000
    gap_entries: int = 5_000_000


@dataclass(frozen=True)
class StageClaim:
    """What a boosting says it has done."""

    loss: str
    parameter: float | None
    learning_rate: float
    l2: float
    leaf_rows: int
    depth: float
    leaves: float
    monotone: Array | None  # (d,) -1, 0 or 1
    scores: int = 1  # trees of a stage

    @property
    def plain(self) -> PlainScoreLoss:
        return plain_score_loss(self.loss, self.parameter)


@dataclass(frozen=True)
class PlainTrees:
    """Trees of all stages, as `BoostedTrees` has them."""

    first: Array
    left: Array
    right: Array
    column: Array
    threshold: Array
    missing_left: Array
    kinds: Array
    count: Array
    value: Array
    low: Array
    high: Array
    sides: Array
    categories: tuple[Array, ...]
    baseline: Array

    def coded(self, X: Array) -> Array:
        """Rows (n, d) with categories replaced by their places, and by NaN where they have none."""
        X = X.astype(np.float64)
        for j, kinds in enumerate(self.categories):
            if len(kinds):
                same = X[:, j][:, None] == np.asarray(kinds)
                X[:, j] = np.where(same.any(axis=1), same.argmax(axis=1), np.nan)
        return X

    def leaves(self, t: int, X: Array) -> Array:
        """The leaf of tree t that each coded row reaches."""
        at = np.full(len(X), self.first[t])
        rows = np.arange(len(X))
        while len(rows):
            rows = rows[self.left[at[rows]] >= 0]
            k = at[rows]
            x = X[rows, self.column[k]]
            goes_left = x <= self.threshold[k]
            asks = self.kinds[k] >= 0
            known = ~np.isnan(x)
            both = asks & known
            goes_left[both] = self.sides[self.kinds[k[both]], x[both].astype(np.int64)] != 0
            goes_left[~known] = self.missing_left[k[~known]] != 0
            at[rows] = np.where(goes_left, self.left[k], self.right[k])
        return at


def plain_trees(trees: Any) -> PlainTrees:
    """The arrays of fitted trees; anything but whole trees is found by `is_whole`."""
    arrays = {
        name: np.asarray(getattr(trees, name)) for name in PlainTrees.__dataclass_fields__ if name != "categories"
    }
    return PlainTrees(**arrays, categories=tuple(np.asarray(c) for c in trees.categories))


def is_whole(trees: PlainTrees, d: int, scores: int) -> bool:
    """Whether every tree has one root, every other node one parent before it, and columns that are there."""
    m = len(trees.left)
    if trees.baseline.shape != (scores,) or (len(trees.first) - 1) % scores or len(trees.categories) != d:
        return False
    if trees.first.ndim != 1 or not len(trees.first) or trees.sides.ndim != 2 or trees.sides.shape[1] != 256:
        return False
    names = ("right", "column", "threshold", "missing_left", "kinds", "count", "value", "low", "high")
    by_node = [getattr(trees, name) for name in names]
    if any(a.shape != (m,) for a in by_node) or trees.first[0] != 0 or trees.first[-1] != m:
        return False
    inner = np.flatnonzero(trees.left >= 0)
    children = np.sort(np.concatenate([trees.left[inner], trees.right[inner], trees.first[:-1]]))
    after = (trees.left[inner] > inner) & (trees.right[inner] > inner)
    column = (trees.column[inner] >= 0) & (trees.column[inner] < d)
    kinds = (trees.kinds < len(trees.sides)).all() and (trees.right[trees.left < 0] == -1).all()
    stop = trees.first[np.searchsorted(trees.first, inner, side="right")]
    within = (trees.left[inner] < stop) & (trees.right[inner] < stop)
    return bool(np.array_equal(children, np.arange(m)) and (after & column & within).all() and kinds)


@dataclass(frozen=True)
class StageSums(Sums):
    """Sums over rows by node, and the loss before the first stage and after each."""

    G: Array  # (m,) Σ w φ'; of quantiles, the weight of residuals below the leaf's full step
    H: Array  # (m,) Σ w φ"; of quantiles, the weight of those at it
    size: Array  # (m,) Σ w |φ'|
    count: Array  # (m,)
    loss: Array  # (stages + 1,) Σ w φ
    scale: Array  # (stages + 1,) Σ w |φ|
    slope: Array  # (k, 2) Σ w φ' at the baseline, and Σ w |φ'|
    floor: float  # Σ w min φ, below which no scores can come
    weight: float


def stage_sums(trees: PlainTrees, claim: StageClaim, stages: int, held_out: Array | None, block: Block) -> StageSums:
    """What a block's rows add to all leaves of the first stages."""
    loss, k, m = claim.plain, len(trees.baseline), int(trees.first[stages * len(trees.baseline)])
    w = block.w if held_out is None else np.where(held_out[block.start : block.start + len(block.w)], 0.0, block.w)
    kept = w > 0
    X, y, w = trees.coded(dense(block.X[kept])), np.asarray(block.y, np.float64)[kept], w[kept]
    F = np.tile(trees.baseline, (len(w), 1))
    G, H, size, count = np.zeros(m), np.zeros(m), np.zeros(m), np.zeros(m)
    shaped = (lambda F: F) if loss.several else (lambda F: F[:, 0])
    values = loss.value(y, shaped(F))
    first = loss.slope(y, shaped(F)).reshape(len(w), k)
    losses, scales = [w @ values], [w @ np.abs(values)]
    for stage in range(stages):
        slope, curve = loss.slope(y, shaped(F)).reshape(len(w), k), loss.curvature(y, shaped(F)).reshape(len(w), k)
        before = F.copy()
        for c in range(k):
            t = stage * k + c
            a, b = int(trees.first[t]), int(trees.first[t + 1])
            at = trees.leaves(t, X) - a
            if isinstance(loss, PlainQuantile):
                rest = y - before[:, 0]
                step = trees.value[a:b][at] / claim.learning_rate
                near = 64 * EPS * (np.abs(rest) + np.abs(step) + np.abs(y) + np.abs(before[:, 0]))
                parts = (w * (rest < step - near), w * (np.abs(rest - step) <= near), w)
            else:
                parts = (w * slope[:, c], w * curve[:, c], w * np.abs(slope[:, c]))
            for total, part in zip((G, H, size), parts, strict=True):
                total[a:b] += np.bincount(at, part, b - a)
            count[a:b] += np.bincount(at, minlength=b - a)
            F[:, c] += trees.value[a:b][at]
        values = loss.value(y, shaped(F))
        losses.append(w @ values)
        scales.append(w @ np.abs(values))
    steep = np.stack([w @ first, w @ np.abs(first)], axis=1)
    floor = float(w @ loss.gain(y, np.zeros(F.shape if loss.several else len(w))))
    return StageSums(G, H, size, count, np.array(losses), np.array(scales), steep, floor, float(w.sum()))


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
    stages = min(all_stages, max(1, tuning.visits // max(1, rows.n_rows * k)))
    with np.errstate(over="ignore", invalid="ignore"):
        found = rows.sum(partial(stage_sums, trees, claim, stages, held_out))
    checks = (
        *_check_shape(trees, claim),
        _check_baseline(trees, claim, found, rows, held_out),
        *_check_leaves(trees, claim, found),
        _check_descent(found),
    )
    objective = float(found.loss[-1] / found.weight)
    facts: dict[str, float | str] = {"stages": float(all_stages)}
    words = CLAIM if stages == all_stages else f"of the first {stages} stages, {CLAIM}"
    if (
        stages == all_stages
        and all(check.passed for check in checks)
        and (np.diff(trees.first) <= 3).all()
        and rows.n_rows * rows.n_features <= tuning.gap_entries
    ):
        gap = _gap(trees, claim, rows, held_out)
        facts["size of the additive model"] = gap.size
        bound = gap.bound / found.weight
        facts["gap to the best additive model of this size"] = max(0.0, objective - bound)
        return Certificate("bounded", f"{words}; no additive model of the same size has a loss below the bound",
                           objective, bound, tol, checks=checks, facts=facts)  # fmt: skip
    return Certificate("greedy", words, objective, found.floor / found.weight, tol, checks=checks, facts=facts)


CLAIM = "every leaf has the value that lowers its stage's quadratic most, and no stage raised the training loss"


def _check_shape(trees: PlainTrees, claim: StageClaim) -> tuple[Check, ...]:
    """Whether depth, leaves and rows keep to the rules, and leaves are in the order of monotone columns."""
    m = len(trees.left)
    depth, low, high = np.zeros(m, np.int64), trees.value.copy(), trees.value.copy()
    inner = np.flatnonzero(trees.left >= 0)
    for i in inner:
        depth[trees.left[i]] = depth[trees.right[i]] = depth[i] + 1
    wrong = int((trees.low[trees.first[:-1]] > -np.inf).sum() + (trees.high[trees.first[:-1]] < np.inf).sum())
    for i in inner[::-1]:
        a, b = trees.left[i], trees.right[i]
        direction = 0 if claim.monotone is None else int(claim.monotone[trees.column[i]])
        wrong += (direction > 0 and high[a] > low[b]) or (direction < 0 and low[a] < high[b])
        wrong += not _limits_follow(trees, i, direction)
        low[i], high[i] = min(low[a], low[b]), max(high[a], high[b])
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


def _limits_follow(trees: PlainTrees, i: int, direction: int) -> bool:
    """Whether a node's children have its limits, with one value between them where the column is monotone."""
    a, b = (trees.left[i], trees.right[i]) if direction >= 0 else (trees.right[i], trees.left[i])
    low, high = trees.low[i], trees.high[i]
    if direction == 0:
        return bool(trees.low[a] == trees.low[b] == low and trees.high[a] == trees.high[b] == high)
    middle = trees.high[a]
    return bool(trees.low[a] == low and trees.high[b] == high and trees.low[b] == middle and low <= middle <= high)


def _check_baseline(
    trees: PlainTrees, claim: StageClaim, found: StageSums, rows: Rows, held_out: Array | None
) -> Check:
    """Whether stages begin at the best constant."""
    name = "baseline off by, of what rounding allows"
    if isinstance(claim.plain, PlainQuantile):
        y, w = _targets(rows, held_out)
        want = best_constant(y, w, claim.plain, 1)
        size = 16 * EPS * (np.abs(want) + float(np.abs(y).max()))
        return Check(name, float((np.abs(want - trees.baseline) / np.where(size > 0, size, 1.0)).max()), 1.0)
    rounding = 64 * np.log2(2 + rows.n_rows) * EPS
    allowed = rounding * np.where(found.slope[:, 1] > 0, found.slope[:, 1], 1.0)
    # Far from 0, the best constant has the digits of a score, and its slope those of all weights.
    allowed += 8 * EPS * np.abs(trees.baseline) * found.weight
    centred = (
        abs(float(trees.baseline.sum())) > 1e-9 * (1 + np.abs(trees.baseline).max()) if len(trees.baseline) > 1 else 0
    )
    return Check(name, float((np.abs(found.slope[:, 0]) / allowed).max()) + 2.0 * centred, 1.0)


def _check_leaves(trees: PlainTrees, claim: StageClaim, found: StageSums) -> tuple[Check, ...]:
    """Whether counts and values of the leaves are those of their rows."""
    m = len(found.G)
    leaf = trees.left[:m] < 0
    count = found.count.copy()
    for i in np.flatnonzero(~leaf)[::-1]:
        count[i] = count[trees.left[i]] + count[trees.right[i]]
    value = trees.value[:m]
    full = float(np.abs(count - trees.count[:m]).max(initial=0.0))
    rounding = 32 * np.log2(2 + count.max(initial=0.0)) * EPS
    if isinstance(claim.plain, PlainQuantile):
        below, at, total = found.G, found.H, found.size
        want = claim.plain.alpha * total
        # The weight below a quantile is at most α of all, that up to it at least.
        off = np.maximum(below - want, want - below - at) / np.where(total > 0, total, 1.0)
        off = np.where(leaf & (claim.monotone is None or not np.any(claim.monotone)), off, 0.0)
        return _leaf_checks(full, float(off.max(initial=0.0) / rounding))
    H = found.H + claim.l2
    newton = np.where(H > 0, -found.G / np.where(H > 0, H, 1.0), 0.0)
    longest = longest_step(claim.loss, claim.learning_rate)
    newton = np.clip(claim.learning_rate * np.clip(newton, trees.low[:m], trees.high[:m]), -longest, longest)
    allowed = rounding * (claim.learning_rate * found.size / np.where(H > 0, H, 1.0) + np.abs(newton)) + EPS**2
    return _leaf_checks(full, float(np.where(leaf, np.abs(value - newton) / allowed, 0.0).max(initial=0.0)))


def _leaf_checks(counts: float, values: float) -> tuple[Check, ...]:
    return (
        Check("row counts of nodes off by", counts, 0.0),
        Check("values of leaves off by, of what rounding allows", values, 1.0),
    )


def _check_descent(found: StageSums) -> Check:
    """Whether no stage raised the training loss."""
    rose = np.diff(found.loss)
    scale = np.maximum(found.scale[:-1], found.scale[1:]) + np.finfo(float).tiny
    return Check("rise of the training loss in a stage, relative", float((rose / scale).max(initial=0.0)), 1e-12)


def _targets(rows: Rows, held_out: Array | None) -> tuple[Array, Array]:
    """Targets and weights of the training rows."""
    y = rows.map(lambda block: np.asarray(block.y, np.float64))
    w = rows.map(lambda block: block.w)
    kept = w > 0 if held_out is None else (w > 0) & ~held_out
    return y[kept], w[kept]


def _gap(trees: PlainTrees, claim: StageClaim, rows: Rows, held_out: Array | None) -> StumpGap:
    """The duality gap of an ensemble of stumps."""
    data = rows.load()
    w = data.w if held_out is None else np.where(held_out, 0.0, data.w)
    kept = w > 0
    X, y = dense(data.X[kept]), np.asarray(data.y, np.float64)[kept]
    k = len(trees.baseline)
    F = np.tile(trees.baseline, (len(y), 1))
    coded = trees.coded(X)
    for t in range(len(trees.first) - 1):
        F[:, t % k] += trees.value[trees.leaves(t, coded)]
    categorical = np.array([len(c) > 0 for c in trees.categories])
    return stump_gap(
        coded, y, w[kept], F if claim.plain.several else F[:, 0], stump_size(trees), claim.plain, categorical
    )


def stump_size(trees: PlainTrees) -> float:
    """Σ |β| of all stumps, those that ask the same taken together."""
    jumps: dict[tuple[Any, ...], float] = {}
    k = len(trees.baseline)
    for t, root in enumerate(trees.first[:-1]):
        if trees.left[root] >= 0:
            sides = bytes(trees.sides[trees.kinds[root]]) if trees.kinds[root] >= 0 else b""
            asked = (t % k, int(trees.column[root]), float(np.nan_to_num(trees.threshold[root])), sides,
                     int(trees.missing_left[root]))  # fmt: skip
            jump = float(trees.value[trees.right[root]] - trees.value[trees.left[root]])
            jumps[asked] = jumps.get(asked, 0.0) + jump
    return float(sum(map(abs, jumps.values())))


# What fits and checks agree on ----------------------------------------------------------------------------------


def weighted_quantile(x: Array, w: Array, alpha: float) -> float:
    """The middle of the α-quantiles of x with weights w."""
    return middle_of_quantile(x, w, alpha * float(w.sum()))


def best_constant(y: Array, w: Array, loss: PlainScoreLoss, scores: int) -> Array:
    """The one score for all rows with the least loss (scores,); several scores sum up to 0."""
    name = type(loss).__name__
    if isinstance(loss, PlainQuantile):
        return np.array([weighted_quantile(y, w, loss.alpha)])
    if loss.several:
        log_share = np.log(np.bincount(y.astype(np.int64), w, scores) / w.sum())
        return log_share - log_share.mean()
    mean = float(y[0] + w @ (y - y[0]) / w.sum())
    if name == "PlainSquaredError":
        return np.array([mean])
    if name in ("PlainPoisson", "PlainGamma"):
        return np.array([np.log(mean)])
    share = float(w[y > 0.5].sum() / w.sum())
    return np.array([logit(share) * (0.5 if name == "PlainExponential" else 1.0)])


def longest_step(loss: str, learning_rate: float) -> float:
    """The longest step of a score that surely lowers the loss, given that it is at most a share of Newton's.

    Where |φ"'| <= φ", a step δ raises the loss by at most g δ + h δ² ψ(|δ|) / 2 with ψ(t) = 2 (exp t - 1 - t) / t².
    It is at most `learning_rate` times -g / h, so the loss falls while learning_rate ψ <= 2. Of several classes, the
    curvature is at most twice its diagonal, and scores may move apart by twice a step.
    """
    if loss in ("squared_error", "absolute_error", "quantile", "huber"):
        return np.inf
    times, most = (2.0, 1.0 / learning_rate) if loss == "multinomial" else (1.0, 2.0 / learning_rate)
    if most <= 1:
        return np.inf
    with np.errstate(over="ignore"):
        return float(brentq(lambda t: 2 * (np.expm1(t) - t) / t**2 - most, 1e-6, 700.0)) / times


def held_out_rows(y: Array | None, w: Array, share: float, seed: int) -> Array:
    """Which rows are kept for validation (n,): of each class (all rows if y is None) those with the smallest hash."""
    z = finished(np.arange(len(w), dtype=np.uint64) * GOLDEN + np.uint64(seed))
    out = np.zeros(len(w), bool)
    for c in [None] if y is None else np.unique(y):
        here = np.flatnonzero((w > 0) & (True if c is None else y == c))
        count = int(share) if share >= 1 else round(share * len(here))
        out[here[np.argsort(z[here], kind="stable")[:count]]] = True
    return out
