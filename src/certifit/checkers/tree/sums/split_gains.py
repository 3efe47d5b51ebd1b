"""What the splits of a boosting gave away against the best threshold of any column.

The gain of a split is G²/(H + λ) of its children less that of the node, by slopes and curvatures of its stage. Binned
libraries look at a few hundred thresholds a column: what that cost is a fact, and no fault.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit.checkers.tree.sums.boosting_claim import BoostingSettings
from certifit.checkers.tree.sums.tree_sum import SummedTree, TreeSum
from certifit.rows import Array


@dataclass(frozen=True)
class SplitTuning:
    """How many entries (rows times columns) of nodes are scored again."""

    entries: int = 2_000_000


def missed_gains(
    model: TreeSum, said: BoostingSettings, X: Array, G: Array, H: Array, tuning: SplitTuning
) -> dict[str, float | str]:
    """Score the splits of the first stage, whose slopes (n, k) are known to all digits, against every threshold."""
    if model.categorical.any() or np.isfinite(said.longest):
        return {}  # such splits are scored by other rules
    beaten, looked_at, worst, work = 0, 0, 0.0, 0
    for tree in model.trees[: said.scores]:
        for k, rows in _rows_of_nodes(tree, X):
            work += X[rows].size
            if work > tuning.entries and looked_at:
                break
            g, h = G[rows, tree.score], H[rows, tree.score]
            left = tree.tree.goes_left(np.full(len(rows), k), X[rows, tree.tree.column[k]])
            made, best = _gain(said, g, h, left), _best_gain(said, X[rows].astype(tree.tree.dtype), g, h)
            share = max(0.0, 1 - made / best) if best > 0 else 0.0
            looked_at, beaten, worst = looked_at + 1, beaten + (share > 1e-4), max(worst, share)
    if not looked_at:
        return {}
    words = f"{beaten} of {looked_at} in the first stage, by {100 * worst:.2g} % of the gain at most"
    return {"splits that another threshold beats": words}


def _rows_of_nodes(tree: SummedTree, X: Array) -> list[tuple[int, Array]]:
    """The nodes that are split, with the rows that reach them."""
    found, at = [], [(0, np.arange(len(X)))]
    while at:
        k, rows = at.pop()
        if tree.tree.left[k] < 0 or not len(rows):
            continue
        found.append((k, rows))
        left = tree.tree.goes_left(np.full(len(rows), k), X[rows, tree.tree.column[k]])
        at += [(int(tree.tree.right[k]), rows[~left]), (int(tree.tree.left[k]), rows[left])]
    return found


def _gain(said: BoostingSettings, g: Array, h: Array, left: Array) -> float:
    sides = [said.gains(g[side].sum(), h[side].sum()) for side in (left, ~left)]
    return float(sum(sides) - said.gains(g.sum(), h.sum()))


def _best_gain(said: BoostingSettings, X: Array, g: Array, h: Array) -> float:
    """The largest gain of any threshold that the rules allow, missing values on either side."""
    best, all_g, all_h = 0.0, g.sum(), h.sum()
    for x in X.T:
        order = np.argsort(x, kind="stable")
        known = len(x) - int(np.isnan(x).sum())
        ends = np.flatnonzero(x[order[1:known]] > x[order[: max(0, known - 1)]])
        if known and known < len(x):
            ends = np.append(ends, known - 1)
        if not len(ends):
            continue
        sums_g, sums_h = np.cumsum(g[order])[ends], np.cumsum(h[order])[ends]
        lost_g, lost_h = g[order[known:]].sum(), h[order[known:]].sum()
        for also, lost in ((0.0, 0), (1.0, len(x) - known)):
            G, H, rows = sums_g + also * lost_g, sums_h + also * lost_h, ends + 1 + lost
            allowed = (rows >= said.leaf_rows) & (len(x) - rows >= max(1, said.leaf_rows))
            allowed &= said.factor * np.minimum(H, all_h - H) >= said.leaf_mass
            gain = said.gains(G, H) + said.gains(all_g - G, all_h - H) - said.gains(all_g, all_h)
            best = max(best, float(gain[allowed].max(initial=0.0)))
    return best
