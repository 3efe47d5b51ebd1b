"""Whether a boosting whose coefficients were all found together is the best of its size: its gap is closed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit.checkers.ensemble.boosting.box_gap import box_size
from certifit.checkers.ensemble.boosting.plain_trees import PlainTrees, is_whole
from certifit.checkers.ensemble.boosting.stage_rules import best_constant
from certifit.checkers.ensemble.boosting.stages import StageClaim, seen_rows, shallow_gap
from certifit.checkers.plain.blocks import dense
from certifit.checkers.plain.dual_points import EPS
from certifit.core import Certificate, Check
from certifit.rows import Array, Rows


@dataclass(frozen=True)
class CorrectedTuning:
    """How large the gap may be, as a share of the loss of the best constant."""

    tol: float = 1e-4


def certify_corrected(
    trees: PlainTrees, claim: StageClaim, size: float, rows: Rows, held_out: Array | None
) -> Certificate:
    """Prove that no model of the same kind and size Σ |β| has a loss lower by more than the gap."""
    tol = CorrectedTuning().tol
    words = "no model of the same size has a smaller loss, up to the gap"
    if not is_whole(trees, rows.n_features, 1):
        return Certificate("optimal", words, tol=tol, checks=(Check("trees that are no trees (1: yes)", 1.0, 0.0),))
    kept, _ = seen_rows(rows, claim, held_out, 0)
    found, kind = shallow_gap(trees, claim, rows, kept)
    if found is None:
        return Certificate("optimal", words, tol=tol, checks=(Check("trees deeper than 2, or many rows", 1.0, 0.0),))
    data = rows.load()
    X, y, w = trees.coded(dense(data.X[kept])), np.asarray(data.y, np.float64)[kept], data.w[kept]
    count = np.zeros(len(trees.left))
    for t in range(len(trees.first) - 1):
        count += np.bincount(trees.leaves(t, X), minlength=len(count))
    inner = trees.left >= 0
    for i in np.flatnonzero(inner)[::-1]:
        count[i] = count[trees.left[i]] + count[trees.right[i]]
    total = float(w.sum())
    alone = float(w @ claim.plain.value(y, np.full(len(y), best_constant(y, w, claim.plain, 1)[0]))) / total
    least = float(w @ claim.plain.gain(y, np.zeros(len(y)))) / total
    scale = alone - least
    checks = (
        Check("row counts of nodes off by", float(np.abs(count - trees.count).max(initial=0.0)), 0.0),
        Check("values of inner nodes", float(np.abs(trees.value[inner]).max(initial=0.0)), 0.0),
        Check("size off by, relative", abs(box_size(trees) - size) / (size or 1.0), 64 * len(trees.left) * EPS),
    )
    return Certificate(
        "optimal", f"no {kind} of the same size has a smaller loss, up to the gap", found.objective / total,
        max(found.bound / total, least), tol, tol * scale, checks, {"size of the model": size}, scale=scale,
    )  # fmt: skip
