"""The stagewise engine: at every stage a tree for each score, grown on the loss's slopes and curvatures.

Any loss of additive scores, any learner of trees. With g = Σ w φ' and h = Σ w φ" over the rows of a leaf, its value
is the Newton step -g / (h + λ), times the learning rate; of absolute errors and quantiles it is the quantile of the
leaf's residuals, and of Huber's loss the best constant for them. No step is longer than the longest that surely
lowers the loss (`longest_step`). Reference: Friedman, Hastie & Tibshirani, Additive logistic regression (2000);
Friedman, Greedy function approximation (2001), and Stochastic gradient boosting (2002) for stages that see a part of
the rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

import numpy as np

from certifit.checkers.ensemble.boosting.stage_rules import (
    bag_rows,
    best_constant,
    huber_centre,
    longest_step,
    weighted_quantile,
)
from certifit.ensemble.boosting.boosted_trees import BoostedTrees, FinishedTree, joined_trees, split_trees
from certifit.ensemble.boosting.leaf_loops import add_leaf_sums, move_scores
from certifit.losses.scores.score_losses import FLAT, ScoreLoss
from certifit.losses.scores.score_slope_loops import find_class_gradients, find_gradients
from certifit.numerics.compiled.workers import Workers
from certifit.rows import Array


class SlopeSizes(NamedTuple):
    """How large the slopes and curvatures of one score are, over all rows."""

    slope: float  # Σ |g|
    curvature: float  # Σ h
    largest: float  # the largest h
    constant: float | None  # the one h of all rows, where there is such a one


class TreeRequest(NamedTuple):
    """What a tree is to be grown on."""

    pairs: Array  # (2, n) slopes and curvatures of all rows, times their weights
    sizes: SlopeSizes
    slopes: Array | None  # (n,) φ' itself, for learners that look at it
    seed: int
    bag: Array | None  # (n,) the rows that the stage sees; None for all


@dataclass(frozen=True)
class GrownTree:
    """A tree whose leaves have no values yet."""

    rows: Array  # (n,) row numbers
    runs: Array  # (m, chunks, 2) where each node's rows lie in `rows`
    leaves: Array  # (l,) numbers of the leaves
    low: Array  # (l,) the least value that monotone columns allow
    high: Array  # (l,)
    finish: Callable[[Array], FinishedTree]  # the tree with values (l,) in its leaves
    answers: Array | None = None  # (l,) of classifiers: leaves get the best multiple of these
    others: tuple[Array, Array] | None = None  # rows that it has not seen, and the places of their leaves in `leaves`


class TreeLearner(Protocol):
    """What the engine asks of a learner."""

    workers: Workers
    categories: tuple[Array, ...]  # of each column; empty for numbers
    by_slopes: bool  # whether it looks at slopes without weights

    def grow(self, wanted: TreeRequest) -> GrownTree: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class StageRules:
    """How stages are added."""

    learning_rate: float
    seed: int
    l2_regularization: float = 0.0
    scores: int = 1  # trees of a stage
    newton_share: float = 1.0  # of each Newton step, before the learning rate
    subsample: float = 1.0  # share of the rows that a stage sees
    huber_share: float = 0.9  # share of the residuals that Huber's loss squares
    block_rows: int = 4096  # slopes are found and added up in blocks of so many rows


@dataclass
class Stagewise:
    """An additive model that grows stage by stage."""

    y: Array  # (n,) float64; class numbers where there are several classes
    w: Array  # (n,) > 0
    loss: ScoreLoss
    learner: TreeLearner
    rules: StageRules
    start: Array | None = None  # (n, k) scores to begin at; None for the best constant
    trees: list[FinishedTree] = field(default_factory=list)

    def __post_init__(self) -> None:
        n, k = len(self.y), self.rules.scores
        self.baseline = np.zeros(k) if self.start is not None else best_constant(self.y, self.w, self.loss.plain, k)
        self.F = np.tile(self.baseline, (n, 1)) if self.start is None else np.array(self.start, np.float64)
        self.pairs = np.empty((k, 2, n))
        self.longest = longest_step(self.loss.name, self.rules.learning_rate)
        flat = self.loss.name in FLAT and bool((self.w == self.w[0]).all())
        self.constant = float(self.w[0]) if flat else None
        self.weight = float(self.w.sum())
        self.gradient_size = np.inf  # mean |g|, which progress shows
        self.levels: list[float] = []  # δ of each stage, of Huber's loss
        self.bag: Array | None = None  # the rows that the last stage saw

    @property
    def n_stages(self) -> int:
        return len(self.trees) // self.rules.scores

    def close(self) -> None:
        """Let the threads end, and forget slopes and curvatures."""
        self.learner.close()
        self.pairs = self.pairs[..., :0].copy()

    def fitted(self, last: int | None = None) -> BoostedTrees:
        """The trees of all stages, or of the last ones alone."""
        trees = self.trees if last is None else self.trees[len(self.trees) - last * self.rules.scores :]
        return joined_trees(trees, self.learner.categories, self.baseline)

    def resume(self, trees: BoostedTrees, F: Array) -> None:
        """Go on from fitted trees, whose scores of the rows are F (n, k)."""
        self.baseline, self.trees = trees.baseline, split_trees(trees)
        self.F = np.array(F)

    def stage(self) -> None:
        """Grow the trees of one more stage and move the scores."""
        rules = self.rules
        if rules.subsample < 1:
            self.bag = bag_rows(np.ones(len(self.y), bool), rules.subsample, rules.seed, self.n_stages)
        if self.loss.name == "huber":
            self._set_level()
        sizes = self._slopes()
        self.gradient_size = sum(size.slope for size in sizes) / self.weight
        slopes = self._plain_slopes() if self.learner.by_slopes else None
        for k, size in enumerate(sizes):
            of_score = None if slopes is None else slopes[:, k]
            tree = self.learner.grow(
                TreeRequest(self.pairs[k], size, of_score, rules.seed + len(self.trees), self.bag)
            )
            values = np.minimum(np.maximum(self._steps(tree, k, size), tree.low), tree.high) * rules.learning_rate
            if tree.answers is None:
                values = np.minimum(np.maximum(values, -self.longest), self.longest)
            self._move(tree, values, k)
            self.trees.append(tree.finish(values))

    def _set_level(self) -> None:
        """Let the δ of Huber's loss be the quantile of the sizes of all residuals."""
        level = self._level()
        self.loss = replace(self.loss, parameter=level)
        self.levels.append(level)

    def _level(self) -> float:
        return weighted_quantile(np.abs(self.y - self.F[:, 0]), self.w, self.rules.huber_share)

    def first_loss(self) -> ScoreLoss:
        """The loss by which stages can be compared: of Huber's, whose δ follows the residuals, that of the first."""
        if self.loss.name != "huber":
            return self.loss
        return replace(self.loss, parameter=self.levels[0] if self.levels else self._level())

    def _slopes(self) -> list[SlopeSizes]:
        """Find slopes and curvatures at all rows; return how large those of each score are."""
        if self.loss.name != "multinomial":
            return [self._slopes_of(k) for k in range(self.rules.scores)]
        self._in_blocks(lambda b, start, stop: find_class_gradients(
            self.F, self.y, self.w, start, stop, self.pairs[:, 0], self.pairs[:, 1]
        ))  # fmt: skip
        return [SlopeSizes(float(np.abs(g).sum()), float(h.sum()), float(h.max()), None) for g, h in self.pairs]

    def _plain_slopes(self) -> Array:
        """φ' of every row and score (n, k), as the checker has it."""
        plain = self.loss.plain
        return plain.slope(self.y, self.F if plain.several else self.F[:, 0]).reshape(self.F.shape)

    def _slopes_of(self, k: int) -> SlopeSizes:
        F = np.ascontiguousarray(self.F[:, k])
        g, h = self.pairs[k]
        kernel = self.loss.kernel(k)
        found = np.empty((-(-len(self.y) // self.rules.block_rows), 3))
        self._in_blocks(
            lambda b, start, stop: find_gradients(kernel, (F, self.y, self.w), (start, stop), (g, h), found[b])
        )
        if len(found) == 1:
            slope, curvature, largest = found[0].tolist()
            return SlopeSizes(slope, curvature, largest, self.constant)
        # Sums of blocks, whose borders do not depend on the number of threads.
        return SlopeSizes(float(found[:, 0].sum()), float(found[:, 1].sum()), float(found[:, 2].max()), self.constant)

    def _in_blocks(self, work: Callable[[int, int, int], object]) -> None:
        """Call work(block, start, stop) for all blocks of rows, on the learner's threads."""
        n, block, workers = len(self.y), self.rules.block_rows, self.learner.workers
        starts = range(0, n, block)

        def share(chunk: int) -> None:
            for b in range(chunk, len(starts), workers.count):
                work(b, starts[b], min(starts[b] + block, n))

        workers.run(share)

    def _move(self, tree: GrownTree, values: Array, k: int) -> None:
        """Add the values of the leaves to the scores of all rows."""
        F = self.F[:, k]
        self.learner.workers.run(lambda chunk: move_scores(tree.rows, tree.runs[:, chunk], tree.leaves, values, F))
        if tree.others is not None:
            rows, places = tree.others
            F[rows] += values[places]

    def _steps(self, tree: GrownTree, k: int, sizes: SlopeSizes) -> Array:
        """The full step of each leaf."""
        if tree.answers is not None:
            return self._line_search(tree, k) * tree.answers
        if self.loss.plain.smooth:
            return self.rules.newton_share * self._newton_steps(tree, k, sizes)
        values = np.empty(len(tree.leaves))
        rest = self.y - self.F[:, k]
        for i, leaf in enumerate(tree.leaves):
            rows = np.concatenate([tree.rows[a:b] for a, b in tree.runs[leaf]])
            if self.loss.name == "huber":
                values[i] = huber_centre(rest[rows], self.w[rows], self.loss.alpha())
            else:
                values[i] = weighted_quantile(rest[rows], self.w[rows], self.loss.alpha(k))
        return values

    def _line_search(self, tree: GrownTree, k: int) -> float:
        """The multiple of the leaves' answers that lowers a smooth loss most: of the exponential one, AdaBoost's."""
        plain, answers = self.loss.plain, np.zeros(len(self.y))
        assert tree.answers is not None
        for leaf, answer in zip(tree.leaves, tree.answers, strict=True):
            for a, b in tree.runs[leaf]:
                answers[tree.rows[a:b]] = answer
        F, step = self.F[:, k], 0.0
        for _ in range(50):
            moved = F + step * answers
            slope = float(self.w @ (answers * plain.slope(self.y, moved)))
            curve = float(self.w @ (answers**2 * plain.curvature(self.y, moved)))
            # No more than 1 at once: so long is a step of losses with |φ"'| <= φ" within reach of Newton's method.
            more = float(np.clip(-slope / curve, -1.0, 1.0)) if curve > 0 else 0.0
            step += more
            if abs(more) <= 1e-15 * abs(step):
                break
        return step

    def _newton_steps(self, tree: GrownTree, k: int, sizes: SlopeSizes) -> Array:
        """-g / (h + λ) of each leaf, from sums in units of 2⁻⁶¹ of all."""
        scales = np.array([2.0 ** min(61 - math.frexp(size or 1.0)[1], 1023) for size in sizes[:2]])
        workers, pairs = self.learner.workers, self.pairs[k]
        sums = np.zeros((workers.count, 2, len(tree.leaves), 2), np.int64)
        workers.run(
            lambda chunk: add_leaf_sums(tree.rows, tree.runs[:, chunk], tree.leaves, pairs, scales, sums[chunk])
        )
        units, parts = sums.sum(axis=0) if len(sums) > 1 else sums[0]
        G, H = ((units + parts / 2.0**31) / scales).T
        H = H + self.rules.l2_regularization
        return -G / H if H.min(initial=1.0) > 0 else np.where(H > 0, -G / np.where(H > 0, H, 1.0), 0.0)
