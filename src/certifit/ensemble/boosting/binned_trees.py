"""The learner of boosting on binned columns: trees from histograms of slopes and curvatures, in whole numbers."""

from __future__ import annotations

from functools import partial

import numpy as np

from certifit.ensemble.boosting.boosted_trees import FinishedTree
from certifit.ensemble.boosting.stagewise import GrownTree, TreeRequest
from certifit.rows import Array
from certifit.tree.binned.bins import ColumnBins
from certifit.tree.binned.growth import BinnedGrower, BinnedLimits, BinnedTuning, packed_scale
from certifit.tree.binned.growth_loops import GrowingTree


class BinnedTrees:
    """Grows trees on codes (n, d) of binned columns."""

    by_slopes = False

    def __init__(
        self, codes: Array, bins: ColumnBins, limits: BinnedLimits, tuning: BinnedTuning = BinnedTuning()
    ) -> None:
        self.bins, self.categories = bins, bins.categories
        self.grower = BinnedGrower(codes, bins, limits, tuning)
        self.workers = self.grower.workers

    def close(self) -> None:
        """Let the threads end."""
        self.grower.close()

    def grow(self, wanted: TreeRequest) -> GrownTree:
        """The best tree that histograms find; the next one overwrites its rows."""
        (g, h), sizes, seed = wanted.pairs, wanted.sizes, wanted.seed
        scale = packed_scale(len(g), sizes.slope, sizes.curvature, sizes.constant)
        self.grower.pack(g, h, scale, seed)
        tree = self.grower.grow(scale, seed, sizes.largest)
        nodes = np.asarray(tree.nodes)[: tree.free[-2]]
        leaves = np.flatnonzero(nodes["left"] < 0)
        finish = partial(finished_tree, tree, self.bins, leaves)
        return GrownTree(tree.rows, tree.runs, leaves, nodes["low"][leaves], nodes["high"][leaves], finish)


def finished_tree(tree: GrowingTree, bins: ColumnBins, leaves: Array, values: Array) -> FinishedTree:
    """A tree as it has grown, with the values of its leaves."""
    nodes = np.asarray(tree.nodes)[: tree.free[-2]]
    inner = nodes["left"] >= 0
    column = np.where(inner, nodes["column"], -1)
    categorical = inner & bins.is_categorical[column]
    # Past the last border there are no numbers: only missing values go right, and the key there is infinite.
    border = np.where(inner & ~categorical, nodes["border"], 0)
    threshold = np.where(inner & ~categorical, bins.tables.keys[column, border], 0.0)
    kinds = np.where(categorical, np.cumsum(categorical) - 1, -1)
    value = np.zeros(len(nodes))
    value[leaves] = values
    return FinishedTree(
        nodes["left"].copy(), nodes["right"].copy(), column, threshold,
        np.where(inner, nodes["missing_left"], 0).astype(np.uint8), tree.goes_left[: len(nodes)][categorical].copy(),
        kinds, nodes["count"].copy(), value, nodes["low"].copy(), nodes["high"].copy(),
        goes_left=tree.goes_left[: len(nodes)].copy(),
    )  # fmt: skip
