"""Columns chosen by a score of their own, re-checked: the scores recomputed from the data, and the best of them kept.

The columns kept leave out the smallest possible sum of scores: that sum is the objective, and the bound is the sum of
as many smallest scores. Among equal scores ours keeps the first column; other libraries need not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit.checkers.feature_selection.scores import pvalues, recompute
from certifit.core import Certificate, Check
from certifit.rows import Array, Block, Rows


@dataclass(frozen=True)
class FilterClaim:
    """What a filter says of its columns."""

    name: str  # of the score
    scores: Array  # (d,)
    pvalues: Array | None  # (d,)
    support: Array  # (d,) bool
    wanted: int | None  # how many columns should have been kept; None for another library's, which need not tell


def certify_filter(claim: FilterClaim, k: int, tol: float, rows: Rows) -> Certificate:
    """Check scores, p-values and choice from the data; y are class numbers 0 … k-1, or numbers."""
    return _assemble(claim, recompute(claim.name, rows, k), float(rows.sum(_weight)), tol)


def _weight(block: Block) -> float:
    return float(block.w.sum())


def certify_sums(claim: FilterClaim, n: float, k: int, tol: float) -> Certificate:
    """Check scores that were just summed, without another pass: p-values by other code, and the choice."""
    known = pvalues(claim.name, claim.scores, n, k)
    return _assemble(claim, (claim.scores, claim.pvalues if known is None else known), n, tol)


def _assemble(claim: FilterClaim, true: tuple[Array, Array | None], n: float, tol: float) -> Certificate:
    """From scores and p-values that are known to be true, on rows of total weight n."""
    scores, support, (expected, expected_p) = claim.scores, claim.support, true
    eps = float(np.finfo(np.float64).eps)
    unit = 0.0 if claim.name == "variance" else 1e-3 / n  # far below the size that chance gives such a score
    slack = 64 * eps * expected**2 / n if claim.name == "correlation" else 0.0  # r² near 1: 1 - r² loses digits
    checks = [Check("scores differ by (relative)", _relative_difference(scores, expected, unit, slack), tol)]
    if claim.pvalues is not None and expected_p is not None:
        apart = _relative_difference(claim.pvalues, expected_p, 1e-250)
        # The tails of F and χ² in two libraries agree to fewer digits than sums do.
        checks.append(Check("p-values differ by (relative)", apart, max(tol, 1e-6)))
    left, kept = scores[~support], scores[support]
    worse = float(left.max(initial=-np.inf) > kept.min(initial=np.inf))
    checks.append(Check("columns left out that score better (1: yes)", worse, 0.0))
    if claim.wanted is not None:
        ties = kept.min(initial=np.inf) == scores
        late = bool(support[ties].any() and not np.all(np.diff(support[ties].astype(int)) <= 0))
        checks.append(Check("columns kept that are not the first of equals (1: yes)", float(late), 0.0))
        checks.append(Check("columns kept too many or too few", abs(float(support.sum()) - claim.wanted), 0.0))
    order = np.sort(expected)
    objective, bound = float(expected[~support].sum()), float(order[: int((~support).sum())].sum())
    words = "every score is what the data say, and the columns kept are those that score best"
    return Certificate("exact", words, objective, min(objective, bound), tol, checks=tuple(checks))


def _relative_difference(a: Array, b: Array, unit: float, slack: Array | float = 0.0) -> float:
    """Largest difference relative to b; 0 where both are infinite."""
    with np.errstate(invalid="ignore", divide="ignore"):
        away = np.maximum(np.abs(a - b) - slack, 0.0) / (np.abs(b) + unit)
    away = np.where(a == b, 0.0, np.where(np.isfinite(b), away, np.inf))
    return float(away.max(initial=0.0))
