"""The stagewise engine: at every stage a tree for each score, grown on the loss's slopes and curvatures.

With g = Σ w φ' and h = Σ w φ" over the rows of a leaf, its value is the Newton step -g / (h + λ), times the learning
rate; of absolute errors and quantiles it is the quantile of the leaf's residuals. No step is longer than the longest
that surely lowers the loss (`longest_step`). Reference: Friedman, Hastie & Tibshirani, Additive logistic regression
(2000); Friedman, Greedy function approximation (2001).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from certifit.checkers.ensemble.score_losses import PlainScoreLoss, plain_score_loss
from certifit.checkers.ensemble.stages import best_constant, longest_step, weighted_quantile
from certifit.ensemble.boosting.boosted_trees import BoostedTrees, FinishedTree, finished_tree, split_trees
from certifit.ensemble.boosting.gradient_loops import (
    GAMMA,
    LOGISTIC,
    POISSON,
    SIGNS,
    SQUARES,
    add_leaf_sums,
    find_class_gradients,
    find_gradients,
    move_scores,
)
from certifit.rows import Array
from certifit.tree.binned.bins import ColumnBins
from certifit.tree.binned.growth import BinnedGrower, BinnedLimits, BinnedTuning, packed_scale
from certifit.tree.binned.growth_loops import GrowingTree

KINDS = {
    "squared_error": SQUARES, "absolute_error": SIGNS, "quantile": SIGNS, "poisson": POISSON, "gamma": GAMMA,
    "log_loss": LOGISTIC,
}  # fmt: skip


@dataclass(frozen=True)
class BoostingLoss:
    """A loss by its name, with the α of a quantile."""

    name: str
    parameter: float | None = None

    @property
    def plain(self) -> PlainScoreLoss:
        return plain_score_loss(self.name, self.parameter)

    @property
    def alpha(self) -> float:
        return 0.5 if self.parameter is None else self.parameter

    @property
    def slopes(self) -> Array:
        """Of a quantile, below and above the target."""
        return np.array([-1.0, 1.0] if self.name == "absolute_error" else [-self.alpha, 1 - self.alpha])


@dataclass(frozen=True)
class BoostingRows:
    """The rows that trees grow on."""

    codes: Array  # (n, d) uint8
    y: Array  # (n,) float64; class numbers where there are several scores
    w: Array  # (n,) > 0
    bins: ColumnBins


@dataclass
class Boosting:
    """A boosting that goes on stage by stage."""

    rows: BoostingRows
    loss: BoostingLoss
    limits: BinnedLimits
    learning_rate: float
    seed: int
    scores: int = 1  # trees of a stage
    tuning: BinnedTuning = field(default_factory=BinnedTuning)

    def __post_init__(self) -> None:
        n = len(self.rows.y)
        self.grower = BinnedGrower(self.rows.codes, self.rows.bins, self.limits, self.tuning)
        self.baseline = best_constant(self.rows.y, self.rows.w, self.loss.plain, self.scores)
        self.F = np.tile(self.baseline, (n, 1))
        self.pairs = np.empty((self.scores, 2, n))
        self.trees: list[FinishedTree] = []
        self.longest = longest_step(self.loss.name, self.learning_rate)
        self.constant = self._constant_hessian()
        self.gradient_size = np.inf  # mean |g|, which progress shows

    def _constant_hessian(self) -> float | None:
        """The one Hessian of all rows, where the loss and the weights have such a one."""
        w = self.rows.w
        flat = self.loss.name in ("squared_error", "absolute_error", "quantile") and (w == w[0]).all()
        return float(w[0]) if flat else None

    def close(self) -> None:
        """Let the threads end."""
        self.grower.close()

    def resume(self, trees: BoostedTrees, F: Array) -> None:
        """Go on from fitted trees, whose scores of the rows are F (n, k)."""
        self.baseline, self.trees = trees.baseline, split_trees(trees)
        self.F = np.array(F)

    def stage(self) -> None:
        """Grow the trees of one more stage and move the scores."""
        sums = self._gradients()
        self.gradient_size = float(sums[:, 0].sum() / self.rows.w.sum())
        for k in range(self.scores):
            size, total, largest = sums[k]
            scale = packed_scale(len(self.rows.y), size, total, self.constant)
            seed = self.seed + len(self.trees)
            g, h = self.pairs[k]
            self.grower.pack(g, h, scale, seed)
            tree = self.grower.grow(scale, seed, largest)
            self._finish(tree, k, (size, total))

    def _gradients(self) -> Array:
        """Slopes and curvatures at all rows; of each score Σ |g|, Σ h and the largest h (scores, 3)."""
        y, w, F = self.rows.y, self.rows.w, self.F
        block = self.tuning.block_rows
        starts = range(0, len(y), block)
        found = np.empty((len(starts), 3))
        workers, slopes = self.grower.workers, self.loss.slopes

        def work(chunk: int) -> None:
            for b in range(chunk, len(starts), workers.count):
                stop = min(starts[b] + block, len(y))
                if self.scores > 1:
                    find_class_gradients(F, y, w, starts[b], stop, self.pairs[:, 0], self.pairs[:, 1])
                else:
                    g, h = self.pairs[0]
                    kind = KINDS[self.loss.name]
                    find_gradients((kind, slopes), (F[:, 0], y, w), (starts[b], stop), (g, h), found[b])

        workers.run(work)
        if self.scores > 1:
            return np.array([[np.abs(g).sum(), h.sum(), h.max()] for g, h in self.pairs])
        # Sums of blocks, whose borders do not depend on the number of threads.
        return np.array([[found[:, 0].sum(), found[:, 1].sum(), found[:, 2].max()]])

    def _finish(self, tree: GrowingTree, k: int, sizes: tuple[float, float]) -> None:
        """Find the values of a tree's leaves and add them to the scores."""
        nodes = np.asarray(tree.nodes[: tree.free[-2]])
        leaves = np.flatnonzero(nodes["left"] < 0)
        if self.loss.plain.smooth:
            values = self._newton_steps(tree, leaves, k, sizes)
        else:
            values = self._quantile_steps(tree, leaves)
        values = np.clip(values, nodes["low"][leaves], nodes["high"][leaves]) * self.learning_rate
        values = np.clip(values, -self.longest, self.longest)
        F = self.F[:, k]
        self.grower.workers.run(lambda chunk: move_scores(tree.rows, tree.runs[:, chunk], leaves, values, F))
        self.trees.append(finished_tree(tree, self.rows.bins, leaves, values))

    def _newton_steps(self, tree: GrowingTree, leaves: Array, k: int, sizes: tuple[float, float]) -> Array:
        """-g / (h + λ) of each leaf, from sums in units of 2⁻⁶¹ of all."""
        scales = np.array([2.0 ** (61 - math.frexp(size or 1.0)[1]) for size in sizes])
        sums = np.zeros((self.grower.workers.count, len(leaves), 2), np.int64)
        pairs = self.pairs[k]
        self.grower.workers.run(
            lambda chunk: add_leaf_sums(tree.rows, tree.runs[:, chunk], leaves, pairs, scales, sums[chunk])
        )
        G, H = (sums.sum(axis=0) / scales).T
        H = H + self.limits.l2_regularization
        return np.where(H > 0, -G / np.where(H > 0, H, 1.0), 0.0)

    def _quantile_steps(self, tree: GrowingTree, leaves: Array) -> Array:
        """The quantile of each leaf's residuals."""
        values = np.empty(len(leaves))
        rest = self.rows.y - self.F[:, 0]
        for i, leaf in enumerate(leaves):
            rows = np.concatenate([tree.rows[a:b] for a, b in tree.runs[leaf]])
            values[i] = weighted_quantile(rest[rows], self.rows.w[rows], self.loss.alpha)
        return values
