"""The learner of boosting on binned columns: trees from histograms of slopes and curvatures, in whole numbers."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from certifit.ensemble.boosting.boosted_trees import FinishedTree
from certifit.ensemble.boosting.stagewise import GrownTree, TreeRequest
from certifit.rows import Array
from certifit.rows.kept_passes import kept, passes_are_kept
from certifit.tree.binned.bins import ColumnBins
from certifit.tree.binned.growth import BinnedGrower, BinnedLimits, BinnedTuning, packed_scale


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
        if passes_are_kept():
            found = kept(("tree", wanted.seed), partial(self._grown, wanted))
            rows, runs = self._rows_of(found)
        else:
            found = self._grown(wanted)
            rows, runs = self.grower.tree.rows, self.grower.tree.runs
        leaves = np.flatnonzero(found.nodes["left"] < 0)
        finish = partial(finished_tree, found, self.bins, leaves)
        low, high = (found.nodes[end][leaves] for end in ("low", "high"))
        return GrownTree(rows, runs, leaves, low, high, finish)

    def _grown(self, wanted: TreeRequest) -> BinnedNodes:
        (g, h), sizes, seed = wanted.pairs, wanted.sizes, wanted.seed
        scale = packed_scale(len(g), sizes.slope, sizes.curvature, sizes.constant)
        self.grower.pack(g, h, scale, seed)
        tree = self.grower.grow(scale, seed, sizes.largest)
        return BinnedNodes(np.asarray(tree.nodes)[: tree.free[-2]], tree.goes_left[: tree.free[-2]])

    def _rows_of(self, tree: BinnedNodes) -> tuple[Array, Array]:
        """Row numbers (n,) in the order of their leaves, and where each node's are, of a tree that may be kept."""
        codes = self.grower.tree.codes.reshape(self.grower.n, -1)
        left, right, column = (tree.nodes[name].astype(np.int64) for name in ("left", "right", "column"))
        at, rows = np.zeros(len(codes), np.int64), np.arange(len(codes))
        while len(rows := rows[left[at[rows]] >= 0]):
            node = at[rows]
            at[rows] = np.where(tree.goes_left[node, codes[rows, column[node]]], left[node], right[node])
        ends = np.cumsum(np.bincount(at, minlength=len(left)))
        runs = np.zeros((len(left), self.workers.count, 2), np.int64)  # the first thread has all
        runs[:, 0] = np.stack([np.append(0, ends[:-1]), ends], axis=1)
        return np.argsort(at, kind="stable").astype(np.int32), runs


class BinnedNodes(NamedTuple):
    """The nodes of a tree, and where each code goes."""

    nodes: Array  # (m,) NODE
    goes_left: Array  # (m, 256) uint8


def finished_tree(tree: BinnedNodes, bins: ColumnBins, leaves: Array, values: Array) -> FinishedTree:
    """A tree as it has grown, with the values of its leaves."""
    nodes = tree.nodes
    left, column = nodes["left"].copy(), nodes["column"].copy()
    inner = left >= 0
    column[leaves] = -1
    asks_number, sides, kinds = inner, np.empty((0, 256), np.uint8), np.full(len(nodes), -1)
    if any(map(len, bins.categories)):
        categorical = inner & bins.is_categorical[column]
        asks_number = inner & ~categorical
        sides, kinds = tree.goes_left[categorical], np.where(categorical, np.cumsum(categorical) - 1, -1)
    # Past the last border there are no numbers: only missing values go right, and the key there is infinite.
    threshold, value, asking = np.zeros(len(nodes)), np.zeros(len(nodes)), np.flatnonzero(asks_number)
    threshold[asking] = bins.tables.keys[column[asking], nodes["border"][asking]]
    value[leaves] = values
    return FinishedTree(
        left, nodes["right"].copy(), column, threshold,
        (inner & (nodes["missing_left"] != 0)).astype(np.uint8), sides,
        kinds, nodes["count"].copy(), value, nodes["low"].copy(), nodes["high"].copy(),
        goes_left=tree.goes_left.copy(),
    )  # fmt: skip
