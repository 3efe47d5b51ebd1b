"""Whether a choice among settings follows from their scores, and what its score is worth.

The best of many settings looks better than it is. Bootstrap bias-corrected cross-validation (Tsamardinos, Greasidou &
Borboudakis, Bootstrapping the out-of-sample predictions for efficient and accurate cross-validation, 2018) draws rows
with replacement, chooses by the rows drawn and scores the choice on the rows that were not: the mean over draws is
the score of choosing, not of the lucky one. It needs the scores of rows left out, and not one more fit.

A draw leaves a share 1/e of the rows, so that such means deviate by √(e - 1) = 1.31 errors of independent rows. Rows
of several folds depend on each other and their mean deviates by more, `inflation` such errors (Nadeau & Bengio): ends
of the interval are percentiles, moved away from the mean accordingly.

With successive halving, settings are dropped by the scores of some rows. A draw cannot take these decisions anew, for
want of scores on more rows: its choice is scored on rows that no rung before the last has seen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from certifit.core import Certificate, Check
from certifit.rows import Array


@dataclass(frozen=True)
class HalvingRung:
    """Settings that were scored on some of the rows, of which the best went on."""

    rows: Array  # (r,) their numbers
    settings: tuple[int, ...]  # (m) their numbers
    scores: Array  # (r, m) of every row by the fold that left it out


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
    settings: tuple[int, ...]  # (m) their numbers among all that were given
    rungs: tuple[HalvingRung, ...] = ()  # that dropped settings before
    paired: bool = False  # whether also the error of the difference from the best, row by row, is not exceeded
    refused: str = ""  # why there is no interval, in words


def certify_choice(claim: ChoiceClaim, splits: Certificate) -> Certificate:
    """Prove the choice and its corrected score: rows are drawn again, and every draw's choice is made again."""
    n, draws = len(claim.scores), len(claim.values)
    if not all(np.isfinite(scores).all() for scores in (claim.scores, *(rung.scores for rung in claim.rungs))):
        return Certificate("statistical", "nothing", checks=(Check("scores that are no numbers (1: yes)", 1.0, 0.0),))
    again = np.empty(draws)
    faults, unseen = rung_faults(claim), unseen_rows(n, claim.rungs)
    if faults or not unseen.any():
        faulty = Check("settings that went on wrongly, or rungs of wrong rows", float(max(faults, 1)), 0.0)
        return Certificate("statistical", "nothing", checks=(faulty,))
    rng = np.random.default_rng(claim.seed)
    for b in range(draws):
        counts = np.bincount(rng.integers(n, size=n), minlength=n).astype(np.float64)
        best = plain_choice(claim, counts)
        left = (counts == 0) & unseen
        again[b] = claim.scores[left, best].mean() if left.any() else np.nan
    known = ~np.isnan(again)
    low, high = widened_ends(claim, again[known])
    size = float(np.abs(claim.scores).max())
    wrong = plain_choice(claim, np.ones(n)) != claim.chosen
    checks = [
        Check("faults of the splits", float(len(splits.failures())), 0.0),
        Check("whether another setting was to be chosen (1: yes)", float(wrong), 0.0),
        Check("scores of draws off by", float(np.abs(again - claim.values)[known].max()), 1e-9 * size),
        Check("corrected score off by", abs(claim.corrected - float(again[known].mean())), 1e-9 * size),
        _ends_check(claim, low, high, 1e-9 * size),
        Check("errors of dependent rows that are left out", missing_inflation(claim, splits), 1e-9),
    ]
    tried = len(claim.rungs[0].settings if claim.rungs else claim.settings)
    words = (
        f"{claim.metric} of the chosen setting on new rows is {claim.corrected:.4g}, corrected for a choice among "
        f"{tried}"
    )
    if claim.refused:
        words += f"; no interval: {claim.refused}"
    else:
        words += f", and between {claim.low:.4g} and {claim.high:.4g} with confidence {100 * claim.confidence:g} %"
    facts: dict[str, float | str] = {
        "optimism of the uncorrected score": float(claim.scores[:, claim.chosen].mean()) - claim.corrected,
        "assumed": "rows are independent draws, and many: conservative, but for models fitted to the rows that a "
        "fold leaves, so rather too low a score where more rows help",
    }
    if claim.rungs:
        checks.append(Check("settings that went on wrongly, or rungs of wrong rows", 0.0, 0.0))
        facts["settings by rows"] = ", ".join(f"{len(r.settings)} on {len(r.rows)}" for r in claim.rungs)
        facts["rows that score the choice, at most"] = float(np.count_nonzero(unseen))
    return Certificate("statistical", words, checks=tuple(checks), facts=facts)


def _ends_check(claim: ChoiceClaim, low: float, high: float, limit: float) -> Check:
    """Return how far the ends are from where they are to be; of a refused interval there are none."""
    if claim.refused:
        given = np.count_nonzero(~np.isnan([claim.low, claim.high]))
        return Check("ends of an interval that is refused", float(given), 0.0)
    return Check("ends of its interval off by", max(abs(claim.low - low), abs(claim.high - high)), limit)


def widened_ends(claim: ChoiceClaim, values: Array) -> tuple[float, float]:
    """Return the percentiles of scores of draws, as far from their mean as dependent rows ask for."""
    wider = max(1.0, claim.inflation / math.sqrt(math.e - 1))
    ends = np.quantile(values, [(1 - claim.confidence) / 2, (1 + claim.confidence) / 2])
    low, high = values.mean() + wider * (ends - values.mean())
    return max(float(low), float(claim.scores.min())), min(float(high), float(claim.scores.max()))


def missing_inflation(claim: ChoiceClaim, splits: Certificate) -> float:
    """Return what is missing of √(1 + K / (K - 1)), by which K folds are said to depend on each other."""
    folds = float(splits.facts["splits"])
    return max(0.0, float(np.sqrt(1 + folds / max(folds - 1, 1))) - claim.inflation)


def unseen_rows(n: int, rungs: tuple[HalvingRung, ...]) -> Array:
    """Return which rows no rung has seen (n,)."""
    unseen = np.ones(n, dtype=bool)
    for rung in rungs:
        unseen[rung.rows] = False
    return unseen


def rung_faults(claim: ChoiceClaim) -> int:
    """Count rows of rungs that are not in the next, and settings that went on though a better one did not."""
    n, faults = len(claim.scores), 0
    later = [*((rung.rows, rung.settings) for rung in claim.rungs), (np.arange(n), claim.settings)][1:]
    for rung, (rows, settings) in zip(claim.rungs, later, strict=True):
        if rung.scores.shape != (len(rung.rows), len(rung.settings)) or len(np.unique(rung.rows)) < len(rung.rows):
            return faults + 1
        faults += int(np.count_nonzero(~np.isin(rung.rows, rows)))
        going = np.isin(rung.settings, settings)
        faults += len(settings) - int(np.count_nonzero(going))
        means = rung.scores.mean(axis=0)
        if going.any() and not going.all():
            faults += int(means[~going].max() > means[going].min())
    return faults


def plain_choice(claim: ChoiceClaim, counts: Array) -> int:
    """Return the setting that rows, each counted so often (n,), choose: the first that is near enough to the best."""
    total = counts.sum()
    means = counts @ claim.scores / total
    best = int(np.argmax(means))
    spread = counts @ (claim.scores[:, best] - means[best]) ** 2 / total
    if claim.paired:
        away = claim.scores[:, [best]] - claim.scores
        spread = np.minimum(spread, counts @ (away - (means[best] - means)) ** 2 / total)
    least = means[best] - claim.tolerated * claim.inflation * np.sqrt(spread / total)
    return int(np.flatnonzero(means >= least - 1e-12 * np.maximum(1.0, np.abs(least)))[0])
