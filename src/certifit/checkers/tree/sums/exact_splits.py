"""Whether the trees of scikit-learn's gradient boosting are the greedy least-squares trees of the slopes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from certifit.checkers.tree.adapter import share_of_rows
from certifit.checkers.tree.greedy import NEVER_PARTED, GreedyTuning, GrowthClaim, check_greedy
from certifit.checkers.tree.sums.boosting_claim import BoostingSettings
from certifit.checkers.tree.sums.certify_sum import FittedTable, weighted_slopes
from certifit.checkers.tree.sums.tree_sum import TreeSum
from certifit.core import Check
from certifit.rows import Array


@dataclass(frozen=True)
class ExactSplitTuning:
    """How many entries (rows times columns) of all trees are scored again, and how well their slopes are known."""

    entries: int = 2_000_000
    slope_digits: float = 1e-12  # share of the largest slope by which slopes that are taken anew may be off


def check_exact_splits(
    model: Any,
    plain: TreeSum,
    said: BoostingSettings,
    rows: FittedTable,
    tuning: ExactSplitTuning = ExactSplitTuning(),
) -> tuple[list[Check], dict[str, float | str]]:
    """Score the splits of the first trees against every threshold of every column, as many as the work allows."""
    claim = _growth(model, rows)
    X = rows.X.astype(np.float32).astype(np.float64)
    most = max(1, tuning.entries // max(1, X.size * 4))
    F = np.tile(plain.baseline, (len(X), 1))
    worst: dict[str, Check] = {}
    looked_at = 0
    for stage in range(0, len(plain.trees), said.scores):
        slope: Array = weighted_slopes(said, rows, F)[0] / rows.w[:, None]
        for tree in plain.trees[stage : stage + said.scores]:
            if looked_at < most:
                noise = tuning.slope_digits * float(np.abs(slope[:, tree.score]).max())
                effort = GreedyTuning(tuning.entries // most, noise=noise)
                checks, _ = check_greedy(tree.tree, claim, X, -slope[:, tree.score], rows.w, effort)
                for check in checks:
                    if check.name not in worst or check.residual > worst[check.name].residual:
                        worst[check.name] = check
                looked_at += 1
            F[:, tree.score] += tree(rows.X)
        if looked_at >= most:
            break
    # Slopes of stages before have their own rounding, which decides between splits that are equal but for it.
    limits = {"best split of a node missed by, of its impurity": 1e-7}
    sure = [Check(c.name, c.residual, limits.get(c.name, c.limit)) for c in worst.values() if _is_sure(c)]
    return sure, {"trees scored again": f"{looked_at} of {len(plain.trees)}"}


def _is_sure(check: Check) -> bool:
    """A node whose slopes are all equal but for rounding may be a leaf or not."""
    return check.name != "leaves that should have been split"


def _growth(model: Any, rows: FittedTable) -> GrowthClaim:
    n = len(rows.y)
    every = int(getattr(model, "max_features_", None) or rows.X.shape[1]) >= rows.X.shape[1]
    return GrowthClaim(
        "squared_error", (), max(2, share_of_rows(model.min_samples_split, n)),
        share_of_rows(model.min_samples_leaf, n), float(model.min_weight_fraction_leaf) * float(rows.w.sum()),
        math.inf if model.max_depth is None else model.max_depth, float(model.min_impurity_decrease), every,
        complete=False, apart=NEVER_PARTED,
    )  # fmt: skip
