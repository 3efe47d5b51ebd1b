"""Proofs about AdaBoost: its stages replayed from the answers of its learners alone.

SAMME (Zhu, Zou, Rosset & Hastie 2009) with k classes: rows have weights w that add up to 1, a learner that errs on
weight e gets the strength α = ν (log((1 - e)/e) + log(k - 1)), and rows that it told wrong are multiplied by exp(α)
against the others. With margins m_i = Σ α ((k-1)/k where a learner is right, -1/k where it is wrong), for any α,

    Σ s exp(-m) / Σ s = Π Z,      Z = (1 - e) exp(-α (k-1)/k) + e exp(α/k)            (identity, telescoping)

and for two classes, where m = y f, f = ½ Σ α h with h = ±1, the training error is at most Π Z = Π 2 √(e (1 - e)) at
ν = 1 (Freund & Schapire 1997). Two bounds come from convexity alone:

- *duality gap of stumps*: for every distribution D of the rows with Σ D y = 0 (and Σ s = 1), by Jensen's inequality,
  log Σ s exp(-y g) >= -KL(D, s) - Σ D y g >= -KL(D, s) - Λ max_h |Σ D y h|  for all additive models g of stumps
  h = 1[x > t] whose jumps add up to Λ at most; equality at the minimiser, where D ∝ s exp(-y g);
- *margins*: no combination of stumps has a larger least margin than the largest edge under any such D, which is
  2 max_h |Σ D y h| (the minimax theorem).

Every stage has such a D, balanced by the weights of the two classes; so have the weights at the end and the average.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.special import xlogy

from certifit.checkers.ensemble.stump_scan import StumpScan
from certifit.checkers.plain.dual_points import EPS, summation_error
from certifit.core import Certificate, Check
from certifit.rows import Array

FOLLOWS = "weights, errors and strengths of all stages follow from the learners' answers"
BOUNDED = f"{FOLLOWS}; exponential loss against the best additive model of stumps of the same size"


@dataclass(frozen=True)
class ScanTuning:
    """How many entries (rows times columns) the scans of single stages look at, and the seed that draws stages."""

    entries: int = 10_000_000
    seed: int = 0


@dataclass(frozen=True)
class PlainStumps:
    """The stumps of an ensemble, whichever library fitted them; a row goes left where x <= threshold."""

    column: Array  # (m,) -1 for a tree that is one leaf, the left
    threshold: Array  # (m,)
    missing_left: Array  # (m,) bool
    answers: Array  # (m, 2) class of each leaf
    leaf_weight: Array | None = None  # (m, 2, k) what ours say of their leaves
    leaf_rows: Array | None = None  # (m, 2)
    every_threshold: bool = True  # whether each is the best of all thresholds; False with bins

    def left(self, m: int, X: Array) -> Array:
        """Which rows go left at stump m (n,) bool."""
        if self.column[m] < 0:
            return np.ones(len(X), bool)
        x = X[:, self.column[m]]
        left = x <= self.threshold[m]
        return left | np.isnan(x) if self.missing_left[m] else left


@dataclass(frozen=True)
class BoostingClaim:
    """What a fitted AdaBoost classifier says of its stages."""

    answers: Callable[[int], Array]  # the classes (n,) that the learner of a stage tells rows, as numbers
    stages: int
    errors: Array  # (stages,)
    strengths: Array  # (stages,)
    classes: int
    learning_rate: float
    stumps: PlainStumps | None = None
    stopped: bool = False  # whether fewer stages than asked for have no reason that can be checked
    asked: int = 0  # stages
    least_weight: float = 0.0  # weights are raised to this before every stage, if learners are handed them
    # How far what the learner of a stage says of its nodes is off with weights (n,), of what rounding allows.
    nodes: Callable[[int, Array], float] | None = None


@dataclass(frozen=True)
class BoostedRows:
    """Rows of positive weight."""

    X: Array  # (n, d)
    labels: Array  # (n,) class numbers
    s: Array  # (n,) weights that add up to 1


class ReplayedStage(NamedTuple):
    """A stage as it is replayed."""

    m: int
    w: Array  # (n,) weights that its learner saw
    right: Array  # (n,) bool
    error: float
    left: Array | None = None  # (n,) bool: rows on the left of its stump, if it is one
    raised: float = 0.0  # log of what the sum of weights grew by when small ones were raised


@dataclass
class Replay:
    """What the stages of an ensemble add up to."""

    margins: Array  # (n,)
    average: Array  # (n,) mean of the distributions
    log_product: float = 0.0  # Σ log Z
    raised: float = 0.0  # of which so much is of weights that were raised
    off: dict[str, float] = field(default_factory=dict)

    def worse(self, name: str, residual: float) -> None:
        self.off[name] = max(self.off.get(name, 0.0), residual if residual == residual else np.inf)


def stages_of(claim: BoostingClaim, rows: BoostedRows) -> Iterator[ReplayedStage]:
    """Every stage with the weights that the strengths before it lead to; one more, with no answers, at the end."""
    w, stumps = rows.s.copy(), claim.stumps
    of_class = [rows.labels == c for c in range(claim.classes)] if stumps is not None else []
    for m in range(claim.stages):
        left, raised = None, 0.0
        if (w < claim.least_weight).any():
            sum_before, w = w.sum(), np.maximum(w, claim.least_weight)
            raised = float(np.log(w.sum() / sum_before))
        if stumps is None:
            right = claim.answers(m) == rows.labels
        else:
            left = stumps.left(m, rows.X)
            one, two = (of_class[answer] for answer in stumps.answers[m])
            right = (left & one) | (~left & two)
        yield ReplayedStage(m, w, right, float(np.where(right, 0.0, w).sum() / w.sum()), left, raised)
        w = w * np.where(right, 1.0, np.exp(claim.strengths[m]))
        w /= w.sum()
    yield ReplayedStage(claim.stages, w, np.zeros(len(w), bool), np.nan)


def certify_boosting(claim: BoostingClaim, rows: BoostedRows, tol: float, tuning: ScanTuning) -> Certificate:
    """Replay the stages on the rows they were fitted to."""
    n, k = len(rows.s), claim.classes
    scan = None if claim.stumps is None else StumpScan(rows.X)
    looked_at = _stages_to_scan(claim.stages, rows.X.size, tuning)
    replay = Replay(np.zeros(n), np.zeros(n))
    bounds = StumpBounds(_total_jump(claim), rows, scan) if scan is not None and k == 2 else None
    for stage in stages_of(claim, rows):
        if bounds is not None and (stage.m in looked_at or stage.m == claim.stages):
            bounds.look_at(stage.w)
        if stage.m == claim.stages:
            _check_end(replay, claim, bounds)
            break
        _check_stage(replay, claim, stage, n)
        if claim.nodes is not None:
            replay.worse("nodes of learners off by, of what rounding allows", claim.nodes(stage.m, stage.w))
        if claim.stumps is not None and scan is not None:
            _check_leaves(replay, claim.stumps, rows, stage, k)
            if stage.m in looked_at and claim.stumps.every_threshold:
                _check_greedy(replay, claim.stumps, rows, scan, stage, k)
        replay.margins += claim.strengths[stage.m] * np.where(stage.right, (k - 1) / k, -1 / k)
        replay.average += stage.w / (claim.stages * stage.w.sum())
        replay.log_product += _log_normaliser(stage.error, float(claim.strengths[stage.m]), k) + stage.raised
        replay.raised += stage.raised
    loss = float(rows.s @ np.exp(-replay.margins))
    budget = (summation_error(n) + 64 * EPS * claim.stages) * (1 + np.abs(replay.margins).max())
    # Weights that were raised are above those that the margins lead to: the product is then no less than the mean.
    apart = abs(np.log(loss) - replay.log_product)
    beyond = apart if not replay.raised else max(0.0, np.log(loss) - replay.log_product)
    replay.worse("mean exp(-margin) against the product of Z, logarithm", beyond)
    facts = _facts(claim, rows, replay, loss)
    checks = tuple(
        Check(name, off, budget if "against the product" in name else _limit(name))
        for name, off in replay.off.items()
    )
    if bounds is None:
        return Certificate("exact", FOLLOWS, loss, 0.0, tol, checks=checks, facts=facts)
    bounds.look_at(replay.average)
    facts |= {"size of the additive model": bounds.size, "no margin is larger than": bounds.margin}
    return Certificate("bounded", BOUNDED, loss, min(loss, bounds.loss), tol, checks=checks, facts=facts)


class StumpBounds:
    """The best of the bounds that distributions of the rows prove for all ensembles of stumps of two classes."""

    def __init__(self, size: float, rows: BoostedRows, scan: StumpScan) -> None:
        self.size, self.rows, self.scan = size, rows, scan
        self.loss = 0.0  # no additive model of this size has a smaller mean exponential loss
        self.margin = 1.0  # none of any size has a larger least margin
        self.last = np.inf  # what the last distribution said of margins, before rounding

    def look_at(self, w: Array) -> None:
        """Learn from one more distribution (n,), balanced here."""
        sign, s = 2.0 * self.rows.labels - 1, self.rows.s
        plus, minus = float(w[sign > 0].sum()), float(w[sign < 0].sum())
        if not (plus > 0 and minus > 0):
            return
        D = w / np.where(sign > 0, 2 * plus, 2 * minus)
        largest = self.scan.largest_sum(D * sign)
        share = 4 * summation_error(len(D))
        self.last = 2 * largest
        self.margin = min(self.margin, 2 * largest + share)
        terms = xlogy(D, D / s)
        divergence = float(terms.sum()) + share * float(np.abs(terms).sum())
        log_loss = -divergence - self.size * (largest + share)
        self.loss = max(self.loss, float(np.exp(log_loss)) * (1 - share))


def _total_jump(claim: BoostingClaim) -> float:
    """Λ, the sum of the sizes of the jumps of f = ½ Σ α h."""
    if claim.stumps is None:
        return 0.0
    differ = (claim.stumps.answers[:, 0] != claim.stumps.answers[:, 1]) & (claim.stumps.column >= 0)
    return float(np.abs(claim.strengths[differ]).sum())


def _limit(name: str) -> float:
    return 1.0 if name.endswith("rounding allows") else 0.0


def _stages_to_scan(stages: int, entries: int, tuning: ScanTuning) -> set[int]:
    """All stages where that is quick, else a seeded sample with the first and the last."""
    most = max(2, tuning.entries // max(1, entries))
    if stages <= most:
        return set(range(stages))
    drawn = np.random.default_rng(tuning.seed).choice(stages, most - 2, replace=False)
    return {0, stages - 1, *map(int, drawn)}


def _log_normaliser(error: float, strength: float, k: int) -> float:
    return float(np.logaddexp(np.log1p(-error) - strength * (k - 1) / k, np.log(error) + strength / k)
                 if error > 0 else np.log1p(-error) - strength * (k - 1) / k)  # fmt: skip


def _check_stage(replay: Replay, claim: BoostingClaim, stage: ReplayedStage, n: int) -> None:
    """Whether a stage's error and strength are what its answers say."""
    told, strength, k = float(claim.errors[stage.m]), float(claim.strengths[stage.m]), claim.classes
    share = summation_error(n) + 8 * EPS * (stage.m + 1)
    # Weights that are raised to a least one may differ by as much where another rounding raises them or not.
    allowed = share * max(stage.error, told) + claim.least_weight * n + np.finfo(float).tiny
    replay.worse("errors off by, of what rounding allows", abs(stage.error - told) / allowed)
    if told <= 0:
        wanted = 1.0
        replay.worse("stages after one without errors", float(claim.stages - 1 - stage.m))
    else:
        wanted = claim.learning_rate * (np.log((1 - told) / told) + np.log(k - 1)) if k > 1 else np.nan
        replay.worse("stages no better than guessing", float(not told < 1 - 1 / k))
    slack = 64 * EPS * (1 + abs(wanted)) * max(1.0, claim.learning_rate)
    replay.worse("strengths off by, of what rounding allows", abs(strength - wanted) / slack)


def _check_leaves(replay: Replay, stumps: PlainStumps, rows: BoostedRows, stage: ReplayedStage, k: int) -> None:
    """Whether leaves have the weights that a stump says, and answer their heaviest class."""
    if stumps.leaf_weight is None or stumps.leaf_rows is None:
        return
    assert stage.left is not None
    found = np.bincount(np.where(stage.left, rows.labels, rows.labels + k), stage.w, 2 * k).reshape(2, k)
    found, on_left = found / stage.w.sum(), np.count_nonzero(stage.left)
    count = np.array([on_left, len(stage.left) - on_left])
    allowed = summation_error(len(stage.w)) + 8 * EPS * (stage.m + 1)
    off = float(np.abs(found - stumps.leaf_weight[stage.m]).max())
    replay.worse("weights of leaves off by, of what rounding allows", off / allowed)
    replay.worse("rows of leaves off by", float(np.abs(count - stumps.leaf_rows[stage.m]).max()))
    replay.worse("leaf weights below 0", float((stumps.leaf_weight[stage.m] < 0).sum()))


def _check_greedy(
    replay: Replay, stumps: PlainStumps, rows: BoostedRows, scan: StumpScan, stage: ReplayedStage, k: int
) -> None:
    """How much purer the purest of all stumps is than the one taken, as a share of all weight."""
    left = stumps.left(stage.m, rows.X) if stage.left is None else stage.left
    made = 0.0
    w = stage.w / stage.w.sum()
    for side in (left, ~left):
        sums = np.bincount(rows.labels[side], w[side], k)
        made += float((sums**2).sum() / sums.sum()) if sums.sum() > 0 else 0.0
    missed = max(0.0, scan.largest_purity(rows.labels, k, w) - made)
    allowed = 4 * summation_error(len(w)) + 64 * EPS * (stage.m + 1)
    replay.worse("purest stump missed by, of what rounding allows", missed / allowed)


def _check_end(replay: Replay, claim: BoostingClaim, bounds: StumpBounds | None) -> None:
    """Whether boosting went on as long as it was asked to, or could."""
    perfect = claim.stages > 0 and claim.errors[claim.stages - 1] <= 0
    if claim.stages >= claim.asked or perfect or claim.stopped:
        replay.worse("stages beyond those asked for", float(max(0, claim.stages - claim.asked)))
    elif bounds is not None and claim.stumps is not None and claim.stumps.every_threshold:
        slack = 8 * summation_error(len(replay.margins)) + 64 * EPS * (claim.stages + 1)
        replay.worse("boosting ended though a stump has an edge, of what rounding allows", bounds.last / slack)


def _facts(claim: BoostingClaim, rows: BoostedRows, replay: Replay, loss: float) -> dict[str, float | str]:
    """Numbers that people ask for: the product of Z, and for two classes error and margins."""
    found: dict[str, float | str] = {"stages": float(claim.stages), "product of Z": float(np.exp(replay.log_product))}
    if claim.classes != 2:
        return found
    size = float(np.abs(claim.strengths[: claim.stages]).sum()) / 2
    margin = replay.margins / size if size > 0 else replay.margins
    wrong = float(rows.s[replay.margins <= 0].sum())
    replay.worse("training error beyond the product of Z", max(0.0, wrong - loss * (1 + 64 * EPS * claim.stages)))
    return {**found, "training error": wrong, "least margin": float(margin.min())}
