"""Columns chosen by a score of their own, re-checked: the scores recomputed from the data, and the best of them kept.

The columns kept leave out the smallest possible sum of scores. Among equal scores we keep the first; other libraries
need not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit.checkers.feature_selection.scores import pvalues, recompute
from certifit.core import Certificate, Check
from certifit.rows import Array, Block, Rows

FILTER = "every score is what the data say, and the columns kept are those that score best"
EPS = float(np.finfo(np.float64).eps)
PVALUES = 1e-6  # relative; two libraries' tails of F and χ² agree to fewer digits than sums do


@dataclass(frozen=True)
class Claim:
    """What a filter says of its columns."""

    name: str  # of the score
    scores: Array  # (d,)
    pvalues: Array | None  # (d,)
    support: Array  # (d,) bool
    wanted: int | None  # how many columns should have been kept; None: another library's, which need not say


def certify(claim: Claim, k: int, tol: float, rows: Rows) -> Certificate:
    """Check scores, p-values and choice from the data; y are class numbers 0 … k-1, or numbers."""
    return assemble(claim, recompute(claim.name, rows, k), float(rows.sum(_weight)), tol)


def _weight(block: Block) -> float:
    return float(block.w.sum())


def from_sums(claim: Claim, n: float, k: int, tol: float) -> Certificate:
    """The certificate of scores that were just summed: p-values by other code, and the choice."""
    known = pvalues(claim.name, claim.scores, n, k)
    return assemble(claim, (claim.scores, claim.pvalues if known is None else known), n, tol)


def assemble(claim: Claim, true: tuple[Array, Array | None], n: float, tol: float) -> Certificate:
    """From scores and p-values that are known to be true, on rows of total weight n."""
    scores, support, (expected, expected_p) = claim.scores, claim.support, true
    unit = 0.0 if claim.name == "variance" else 1e-3 / n  # what chance makes of a score without a unit
    slack = 64 * EPS * expected**2 / n if claim.name == "correlation" else 0.0  # r² near 1: 1 - r² loses digits
    checks = [Check("scores differ by (relative)", _apart(scores, expected, unit, slack), tol)]
    if claim.pvalues is not None and expected_p is not None:
        apart = _apart(claim.pvalues, expected_p, 1e-250)
        checks.append(Check("p-values differ by (relative)", apart, max(tol, PVALUES)))
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
    return Certificate("exact", FILTER, objective, min(objective, bound), tol, checks=tuple(checks))


def _apart(a: Array, b: Array, unit: float, slack: Array | float = 0.0) -> float:
    """Largest difference relative to b; 0 where both are infinite."""
    with np.errstate(invalid="ignore", divide="ignore"):
        away = np.maximum(np.abs(a - b) - slack, 0.0) / (np.abs(b) + unit)
    away = np.where(a == b, 0.0, np.where(np.isfinite(b), away, np.inf))
    return float(away.max(initial=0.0))
