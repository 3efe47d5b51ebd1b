"""Intervals for a score on new rows; the checker's module of the same name says what each rests on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.stats import beta

from certifit.checkers.model_selection.intervals import (
    IntervalClaim,
    has_no_width,
    log_capital,
    rows_for_normal,
    symmetric_reach,
)
from certifit.rows import Array


def clopper_pearson(right: Any, n: Any, confidence: float) -> tuple[Array, Array]:
    """Return the ends of the exact interval for a share of which `right` of n rows were seen; also arrays of them.

    >>> low, high = clopper_pearson(7, 10, 0.9)
    >>> round(float(low), 4), round(float(high), 4)
    (0.3934, 0.9127)
    """
    right, n, tail = np.asarray(right, float), np.asarray(n, float), (1 - confidence) / 2
    with np.errstate(invalid="ignore"):
        low = np.where(right > 0, beta.ppf(tail, right, n - right + 1), 0.0)
        high = np.where(right < n, beta.ppf(1 - tail, right + 1, n - right), 1.0)
    return low, high


def betting_interval(x: Array, confidence: float) -> tuple[float, float]:
    """Return an interval for the mean of numbers in [0, 1] in random order (n,), valid for any n.

    >>> low, high = betting_interval(np.tile([0.2, 0.3], 100), 0.9)
    >>> bool(0.2 < low < 0.25 < high < 0.3)
    True
    """
    alpha = 1 - confidence
    needed = float(np.log(2 / alpha))
    low = _largest_ruled_out(lambda m: log_capital(x, m, alpha) >= needed)
    high = 1 - _largest_ruled_out(lambda m: log_capital(1 - x, m, alpha) >= needed)
    return low, high


def _largest_ruled_out(is_ruled_out: Callable[[float], bool]) -> float:
    """Return the largest m in [0, 1] known to be ruled out, by bisection; 0 where none is."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if is_ruled_out(middle) else (low, middle)
    return low


def binomial_claim(metric: str, rows: Array, confidence: float) -> IntervalClaim:
    """Return the claim for a share of right rows (n,), each 0 or 1."""
    low, high = clopper_pearson(rows.sum(), len(rows), confidence)
    words = "tested rows are independent draws of what new rows are drawn from; exact for any number of rows"
    return IntervalClaim(
        metric, float(rows.mean()), float(low), float(high), confidence, "binomial", words, rows, covers="at least"
    )  # fmt: skip


def counted_claim(metric: str, rows: Array, confidence: float, worth: float) -> IntervalClaim:
    """Return the claim for the share of right answers of rows (n,), each tested in one split or in several.

    Where nearly all rows are right the scores of splits are far from normal, and counts are not.
    """
    low, high = clopper_pearson(rows.sum() * worth, len(rows) * worth, confidence)
    words = (
        "tested rows are independent draws of what new rows are drawn from; rows of several splits depend on each "
        "other, and count for fewer, by the variance of their mean (Nadeau & Bengio); for models fitted to as many "
        "rows as a split fits, which is a little fewer than all"
    )
    return IntervalClaim(
        metric, float(rows.mean()), float(low), float(high), confidence, "binomial", words, rows, worth=worth,
        covers="at least",
    )  # fmt: skip


def betting_claim(metric: str, rows: Array, confidence: float, span: tuple[float, float]) -> IntervalClaim:
    """Return the claim for the mean of scores of rows (n,) in a bounded span."""
    floor, width = span[0], span[1] - span[0]
    low, high = betting_interval(np.clip((rows - floor) / width, 0, 1), confidence)
    words = "tested rows are independent draws of what new rows are drawn from; holds for any number of rows"
    ends = floor + width * low, floor + width * high
    mean = float(rows.mean())
    return IntervalClaim(
        metric, mean, *ends, confidence, "betting", words, rows, span=span, covers="at least"
    )  # fmt: skip


def symmetric_claim(claim: IntervalClaim) -> IntervalClaim:
    """Return a claim with its ends, `reach` to both sides of the estimate, cut where scores end."""
    reach = symmetric_reach(claim)
    low, high = max(claim.estimate - reach, claim.span[0]), min(claim.estimate + reach, claim.span[1])
    return cautioned_if_alike(replace(claim, low=float(low), high=float(high)))


def cautioned_if_alike(claim: IntervalClaim) -> IntervalClaim:
    """Return a claim that says so where all scores are alike, as those of tests without an error."""
    if not has_no_width(claim):
        return claim
    words = "; covers less often than it says: all scores are alike, and tell nothing of their error"
    return replace(claim, assumption=claim.assumption + words, covers="perhaps less")


def normal_claim(
    metric: str, rows: Array, confidence: float, words: str, inflation: float = 1.0, **more: Any
) -> IntervalClaim:
    """Return the claim for the mean of scores of rows (n,) by the central limit theorem."""
    mean = more.get("scale", 1.0) * float(rows.mean()) + more.get("shift", 0.0)
    claim = IntervalClaim(
        metric, mean, np.nan, np.nan, confidence, "normal", words, rows, inflation=inflation, **more
    )  # fmt: skip
    return symmetric_claim(claim)


def corrected_claim(
    metric: str, scores: Array, confidence: float, ratio: float, span: tuple[float, float] = (-np.inf, np.inf)
) -> IntervalClaim:
    """Return the claim for scores of J splits (J,) by the corrected resampled t."""
    words = (
        "scores of splits are about normal, and correlated as the share of rows that their tests take (Nadeau & "
        "Bengio); conservative: splits of the same rows count as one test of each row; for models fitted to as many "
        "rows as a split fits, which is a little fewer than all"
    )
    claim = IntervalClaim(
        metric, float(np.mean(scores)), np.nan, np.nan, confidence, "corrected t", words, scores,
        ratio=ratio, span=span, covers="at least",
    )  # fmt: skip
    return symmetric_claim(claim)


def log_scale_claim(metric: str, logs: Array, confidence: float) -> IntervalClaim:
    """Return the claim for a score 1 - exp(u) from numbers of rows (n,) whose mean is u."""
    words = (
        "tested rows are independent draws and many: the logarithm of 1 less the score, a ratio of means over rows, "
        "is about normal (its error by the jackknife)"
    )
    claim = IntervalClaim(metric, float(np.mean(logs)), np.nan, np.nan, confidence, "log scale", words, logs)
    reach = symmetric_reach(claim)
    score, low, high = (float(-np.expm1(claim.estimate + by)) for by in (0.0, reach, -reach))
    return cautioned(replace(claim, estimate=score, low=low, high=high), logs)


def cautioned(claim: IntervalClaim, rows: Array) -> IntervalClaim:
    """Return a claim of one test (n,) that says so where the rows are too few for how skewed they are.

    Fewer than 100 rows do not tell their skewness.
    """
    if len(rows) >= rows_for_normal(rows, 100):
        return claim
    words = f"; may cover less often than it says: {len(rows)} tested rows are few for a limit theorem"
    return replace(claim, assumption=claim.assumption + words, covers="perhaps less")


def percentile_claim(metric: str, estimate: float, drawn: Array, confidence: float) -> IntervalClaim:
    """Return the claim for a score of a whole test set, from scores of test sets drawn anew from its rows (m,)."""
    low, high = np.quantile(drawn, [(1 - confidence) / 2, (1 + confidence) / 2])
    words = (
        "tested rows are many, and independent draws of what new rows are drawn from; percentiles of the bootstrap"
    )
    claim = IntervalClaim(metric, estimate, float(low), float(high), confidence, "percentiles", words, drawn)
    return cautioned_if_alike(claim)


def no_claim(metric: str, values: Array, confidence: float, why: str, estimate: float | None = None) -> IntervalClaim:
    """Return an estimate without an interval, and why there is none."""
    mean = float(np.mean(values)) if estimate is None else estimate
    words = f"no interval: {why}"
    return IntervalClaim(metric, mean, np.nan, np.nan, confidence, "none", words, values, covers="")
