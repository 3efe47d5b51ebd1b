"""The checker of columns chosen by their own scores, which are recomputed from the data; the best must be kept.

The objective is the sum of the scores of the columns left out, and the bound is the sum of that many smallest scores.
Among equal scores ours keeps the first column; other libraries need not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit.checkers.feature_selection.scores import chi2_rounding, pvalues, recompute
from certifit.core import Certificate, Check
from certifit.rows import Array, Block, Rows


@dataclass(frozen=True)
class FilterClaim:
    """The scores and the choice that a filter claims."""

    name: str  # of the score
    scores: Array  # (d,)
    pvalues: Array | None  # (d,)
    support: Array  # (d,) bool
    wanted: int | None  # how many columns should have been kept; None where a model of another library does not tell
    first_of_equals: bool = True  # whether the first of columns with equal scores must be kept
    by_score: bool = True  # whether the largest scores must be kept; else p-values decide, or the caller checks


def certify_filter(claim: FilterClaim, k: int, tol: float, rows: Rows) -> Certificate:
    """Check scores, p-values and choice from the data; y are class numbers 0 … k-1, or numbers."""
    n = float(rows.sum(_block_weight))
    scores, p = recompute(claim.name, rows, k)
    # Where r² is next to 1, rounding of scores moves p-values: those claimed must belong to the scores claimed.
    known = pvalues(claim.name, claim.scores, n, k)
    rounding = chi2_rounding(scores, rows) if claim.name == "chi2" else 0.0
    return _filter_certificate(claim, (scores, p if known is None else known), n, tol, rounding)


def _block_weight(block: Block) -> float:
    return float(block.w.sum())


def certify_sums(claim: FilterClaim, n: float, k: int, tol: float) -> Certificate:
    """Check the p-values and the choice of a fit, taking its scores as given to save a pass over the rows."""
    known = pvalues(claim.name, claim.scores, n, k)
    return _filter_certificate(claim, (claim.scores, claim.pvalues if known is None else known), n, tol)


def _filter_certificate(
    claim: FilterClaim, true: tuple[Array, Array | None], n: float, tol: float, slack: Array | float = 0.0
) -> Certificate:
    """Compare the claim with scores, known up to `slack`, and p-values, on rows of total weight n."""
    scores, stated, support, (expected, expected_p) = claim.scores, claim.scores, claim.support, true
    eps = float(np.finfo(np.float64).eps)
    # Far below the score of a column that has no effect; of a variance, where numbers have fewer digits than `tol`.
    tiny = float(np.finfo(np.float64).tiny)
    unit = tiny / max(tol, eps) if claim.name == "variance" else 1e-3 / n
    if claim.name in ("correlation", "f_regression"):
        # 1 - r² loses digits near r² = 1, and of some eps nothing is left.
        exact = max(0.0, n - 2) / (64 * eps)
        stated, expected = (np.where(exact < F, np.inf, F) for F in (stated, expected))
        with np.errstate(over="ignore"):
            slack = 64 * eps * expected**2 / n
    elif claim.name == "r_regression":
        slack = 64 * eps  # of a sum of products of both signs
    checks = [Check("scores differ by (relative)", _relative_difference(stated, expected, unit, slack), tol)]
    if claim.pvalues is not None and expected_p is not None:
        apart = _relative_difference(claim.pvalues, expected_p, 1e-250)
        # Two implementations of the tails of F and χ² agree to fewer digits than two sums do.
        checks.append(Check("p-values differ by (relative)", apart, max(tol, 1e-6)))
    left, kept = scores[~support], scores[support]
    if claim.by_score:
        worse = float(left.max(initial=-np.inf) > kept.min(initial=np.inf))
        checks.append(Check("columns left out that score better (1: yes)", worse, 0.0))
    if claim.first_of_equals:
        ties = kept.min(initial=np.inf) == scores
        late = bool(support[ties].any() and not np.all(np.diff(support[ties].astype(int)) <= 0))
        checks.append(Check("columns kept that are not the first of equals (1: yes)", float(late), 0.0))
    if claim.wanted is not None:
        checks.append(Check("columns kept too many or too few", abs(float(support.sum()) - claim.wanted), 0.0))
    # An infinite score (of a column that separates classes) can only be left out for others: sums are of finite ones.
    finite = np.abs(expected) < np.finfo(np.float64).max
    lost = expected[~support & finite]
    objective, bound = float(lost.sum()), float(np.sort(expected)[: len(lost)].sum())
    words = "every score is what the data say, and the columns kept are those that score best"
    # Scores of columns without any effect are rounding, also as a sum: it is measured by all scores and their units.
    scale = float(np.abs(expected[finite]).sum()) + unit * len(expected)
    return Certificate("exact", words, objective, min(objective, bound), tol, checks=tuple(checks), scale=scale)


def _relative_difference(a: Array, b: Array, unit: float, slack: Array | float = 0.0) -> float:
    """Return the largest difference relative to b, 0 where both are infinite."""
    with np.errstate(invalid="ignore", divide="ignore"):
        difference = np.maximum(np.abs(a - b) - slack, 0.0) / (np.abs(b) + unit)
    difference = np.where(a == b, 0.0, np.where(np.isfinite(b), difference, np.inf))
    return float(difference.max(initial=0.0))


def certify_function(
    scores: Array, pvalues: Array | None, support: Array, tol: float, again: tuple[Array, Array | None] | None = None
) -> Certificate:
    """Check scores by a function of the user's, which is called `again` by an audit; it is taken as it is."""
    checks: list[Check] = []
    for word, stated, found in zip(("scores", "p-values"), (scores, pvalues), again or (), strict=False):
        if (stated is None) != (found is None):
            checks.append(Check(f"{word} that are there, or missing, when computed again (1: yes)", 1.0, 0.0))
        elif stated is not None and found is not None:
            apart = _function_difference(np.asarray(stated, float), np.asarray(found, float))
            checks.append(Check(f"{word} differ when computed again by (relative)", apart, tol))
    words = "every score is what the function that was passed returns, and the columns kept follow from these"
    left = np.asarray(scores, float)[~support]
    objective = float(left[np.abs(left) < np.finfo(np.float64).max].sum())
    return Certificate("exact", words, objective, objective, tol, checks=tuple(checks))


def _function_difference(a: Array, b: Array) -> float:
    """Return the largest difference relative to the largest number of b; NaN must meet NaN, infinity infinity."""
    finite = np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return float("inf")
    size = max(float(np.abs(b[finite]).max(initial=0.0)), np.finfo(np.float64).tiny)
    return float(np.nan_to_num(np.abs(a - b)[finite], nan=np.inf).max(initial=0.0)) / size


def certify_variances(
    stated: Array, variances: Array, threshold: float, tol: float, rounding: Array | float = 0.0
) -> Certificate:
    """Check the variances of columns, some of which may be missing throughout, and that a threshold splits them.

    `rounding` is what a variance may be off by: that of a constant column is the square of its mean's last digit.
    """
    missing, slack = np.isnan(variances), np.broadcast_to(rounding, variances.shape)
    tiny = np.finfo(np.float64).tiny
    apart = _relative_difference(stated[~missing], variances[~missing], tiny / max(tol, tiny), slack[~missing])
    strange = float((np.isnan(stated) != missing).sum())
    # A variance is known to its rounding: one next to the threshold may be on either side of it.
    off = (stated > threshold) != (variances > threshold)
    near = np.abs(variances - threshold) <= tol * np.abs(variances) + slack
    checks = (
        Check("variances differ by (relative)", apart, tol),
        Check("columns called missing that are not, or the reverse", strange, 0.0),
        Check("columns kept that vary too little, or the reverse", float((off & ~near).sum()), 0.0),
    )
    known = np.where(np.isfinite(variances), variances, 0.0)
    total, best = (float(known[~(values > threshold)].sum()) for values in (stated, variances))
    words = "every variance is what the data say, and the columns kept are those above the threshold"
    return Certificate("exact", words, total, min(total, best), tol, checks=checks)
