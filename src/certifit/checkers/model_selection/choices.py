"""Whether a choice among settings follows from their scores, and what its score is worth.

The best of many settings looks better than it is. Bootstrap bias-corrected cross-validation (Tsamardinos, Greasidou &
Borboudakis, Bootstrapping the out-of-sample predictions for efficient and accurate cross-validation, 2018) draws rows
with replacement, chooses by the rows drawn and scores the choice on the rows that were not: the mean over draws is
the score of choosing, not of the lucky one. It needs the scores of rows left out, and not one more fit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit.core import Certificate, Check
from certifit.rows import Array


@dataclass(frozen=True)
class ChoiceClaim:
    """A choice among m settings, in order from the simplest, by scores of n rows that were left out."""

    scores: Array  # (n, m) of every row by the fold that left it out
    chosen: int
    tolerated: float  # standard errors below the best that a simpler setting may be; 0 for the best itself
    inflation: float  # standard errors of rows of several folds, in those of independent rows
    seed: int
    values: Array  # (draws,) scores of the choice on rows not drawn
    corrected: float  # their mean
    low: float
    high: float
    confidence: float
    metric: str


def certify_choice(claim: ChoiceClaim, splits: Certificate) -> Certificate:
    """Prove the choice and its corrected score: rows are drawn again, and every draw's choice is made again."""
    n, draws = len(claim.scores), len(claim.values)
    if not np.isfinite(claim.scores).all():
        return Certificate("statistical", "nothing", checks=(Check("scores that are no numbers (1: yes)", 1.0, 0.0),))
    again = np.empty(draws)
    rng = np.random.default_rng(claim.seed)
    for b in range(draws):
        counts = np.bincount(rng.integers(n, size=n), minlength=n).astype(np.float64)
        best = plain_choice(claim, counts)
        left = counts == 0
        again[b] = claim.scores[left, best].mean() if left.any() else np.nan
    known = ~np.isnan(again)
    low, high = np.quantile(again[known], [(1 - claim.confidence) / 2, (1 + claim.confidence) / 2])
    size = max(1.0, float(np.abs(claim.scores).max()))
    wrong = plain_choice(claim, np.ones(n)) != claim.chosen
    checks = [
        Check("faults of the splits", float(len(splits.failures())), 0.0),
        Check("whether another setting was to be chosen (1: yes)", float(wrong), 0.0),
        Check("scores of draws off by", float(np.abs(again - claim.values)[known].max()), 1e-9 * size),
        Check("corrected score off by", abs(claim.corrected - float(again[known].mean())), 1e-9 * size),
        Check("ends of its interval off by", max(abs(claim.low - low), abs(claim.high - high)), 1e-9 * size),
    ]
    words = (
        f"{claim.metric} of the chosen setting on new rows is {claim.corrected:.4g}, corrected for a choice among "
        f"{claim.scores.shape[1]}, and between {claim.low:.4g} and {claim.high:.4g} with confidence "
        f"{100 * claim.confidence:g} %"
    )
    facts: dict[str, float | str] = {
        "optimism of the uncorrected score": float(claim.scores[:, claim.chosen].mean()) - claim.corrected,
        "assumed": "rows are independent draws, and many; percentiles of the bootstrap",
    }
    return Certificate("statistical", words, checks=tuple(checks), facts=facts)


def plain_choice(claim: ChoiceClaim, counts: Array) -> int:
    """Return the setting that rows, each counted so often (n,), choose: the first that is near enough to the best."""
    total = counts.sum()
    means = counts @ claim.scores / total
    best = int(np.argmax(means))
    spread = float(counts @ (claim.scores[:, best] - means[best]) ** 2) / total
    least = means[best] - claim.tolerated * claim.inflation * np.sqrt(spread / total)
    return int(np.flatnonzero(means >= least - 1e-12 * max(1.0, abs(least)))[0])
