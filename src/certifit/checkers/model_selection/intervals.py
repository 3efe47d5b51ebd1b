"""Whether an interval for a score follows from what was measured on rows that the model did not see.

Each way to an interval has its defining inequality, which is put to the test at both ends:

- binomial: the chance of as many right rows, or more, at the lower end is α/2, and of as few, or fewer, at the upper
  (Clopper & Pearson, The use of confidence or fiducial limits illustrated in the case of the binomial, 1934); rows
  of several splits count for fewer, so many as have the variance that the corrected t gives their mean;
- betting: somebody who bets that the mean is larger than the lower end multiplies the stake by 2/α, which happens
  with a chance of at most α/2 where the bet is fair (Waudby-Smith & Ramdas, Estimating means of bounded random
  variables by betting, 2024);
- corrected t: J scores of overlapping training sets have a mean of variance (1/J + tested/fitted) S² (Nadeau &
  Bengio, Inference for the generalization error, 2003), with no more degrees of freedom than there are tests that
  share no row, fitted/tested, and at least 4: more splits of the same rows tell no more of the variance;
- normal: the central limit theorem for the mean over rows, `inflation` times its standard error;
- log scale: the same for the logarithm of 1 less the score, a ratio of two means over rows;
- percentiles: of the scores of test sets drawn anew from the tested rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.stats import beta
from scipy.stats import t as student

from certifit.checkers.model_selection.splits import SplitSizes
from certifit.core import Certificate, Check
from certifit.rows import Array

Way = Literal["binomial", "betting", "corrected t", "normal", "log scale", "percentiles", "none"]
# How often an interval holds the truth, in its confidence; "perhaps less" where rows are too few for any theorem.
Coverage = Literal["at least", "about", "perhaps less", ""]


@dataclass(frozen=True)
class IntervalClaim:
    """A score on new rows with its interval, and what both follow from."""

    metric: str
    estimate: float
    low: float  # NaN where no honest interval exists
    high: float
    confidence: float
    way: Way
    assumption: str  # what the interval rests on, in words
    values: Array  # (m,) scores of rows, of splits, or of test sets drawn anew
    ratio: float = np.nan  # corrected t: rows tested over rows fitted
    worth: float = 1.0  # binomial: independent rows that a row counts for, less where splits have rows in common
    inflation: float = 1.0  # normal: standard errors of dependent rows, in those of independent ones
    span: tuple[float, float] = (-np.inf, np.inf)  # betting: the values that a row's score may have
    shift: float = 0.0  # normal: what was added to the mean of the values, a correction of bias
    scale: float = 1.0  # normal: what the mean and its error were multiplied by
    covers: Coverage = "about"


def certify_intervals(
    claims: Sequence[IntervalClaim], splits: Certificate | None, sizes: SplitSizes | None = None
) -> Certificate:
    """Prove that every interval follows from the scores kept with it, and that no tested row was fitted.

    Out of bag the estimator itself leaves rows out: there are no `splits` then, and nothing is said of them. `sizes`
    say how many scores there may be, and how much splits have in common: no interval may count on less.
    """
    checks = [] if splits is None else [Check("faults of the splits", float(len(splits.failures())), 0.0)]
    for claim in claims:
        found = [*_ends(claim), *_terms(claim, sizes)]
        checks += [Check(f"{claim.metric}: {name}", residual, limit) for name, residual, limit in found]
    first = claims[0]
    words = (
        f"{first.metric} on new rows is between {first.low:.4g} and {first.high:.4g} "
        f"with confidence {100 * first.confidence:g} %"
        if first.way != "none"
        else f"{first.metric} on rows left out is {first.estimate:.4g}; no interval is claimed"
    )
    facts = {f"{claim.metric} rests on": claim.assumption for claim in claims}
    facts["fingerprint of the splits"] = (
        "none: as the estimator says" if splits is None else str(splits.facts["fingerprint"])
    )
    return Certificate("statistical", words, checks=tuple(checks), facts=facts)


def _ends(claim: IntervalClaim) -> list[tuple[str, float, float]]:
    """Return (name, residual, limit) of the inequalities that a claim must meet."""
    if not 0 < claim.confidence < 1 or not len(claim.values) or not np.isfinite(claim.values).all():
        return [("confidence within (0, 1) and finite scores (1: no)", 1.0, 0.0)]
    ways = {
        "binomial": _binomial, "betting": _betting, "log scale": _log_scale, "percentiles": _percentiles,
        "none": _estimate_alone,
    }  # fmt: skip
    return ways.get(claim.way, _symmetric)(claim)


def _terms(claim: IntervalClaim, sizes: SplitSizes | None) -> list[tuple[str, float, float]]:
    """Return (name, residual, limit) of what a claim may assume: never less error than its splits have in common."""
    found = []
    if claim.covers == "at least":
        # One test of many rows is about normal; wider intervals are allowed for where rows depend on each other.
        plain = claim.way in ("percentiles", "none", "log scale") or (claim.way == "normal" and claim.inflation == 1)
        plain = plain or (claim.way in ("normal", "corrected t") and has_no_width(claim))
        found.append(("at least as often as it says, without a reason (1: yes)", float(plain), 0.0))
    if claim.way == "normal":
        # Errors of dependent rows are no smaller than those of independent ones; .632 is the smallest share of them.
        found.append(("standard errors that are left out", 1 - claim.inflation * claim.scale / 0.632, 0.0))
        found.append(("standard errors of dependent rows, below", 1 - claim.inflation, 0.0))
    if claim.covers == "at least" and claim.way in ("normal", "corrected t") and sizes is not None:
        # Scores of rows say how many of them a limit theorem needs; scores of splits do not.
        of_rows = claim.way == "normal" or len(claim.values) == sizes.tested
        missing = rows_for_normal(claim.values) - len(claim.values) if of_rows else 0.0
        found.append(("rows that are missing for a limit theorem", max(0.0, missing), 0.0))
    if claim.way == "corrected t":
        least = 0.0 if sizes is None else sizes.ratio
        missing = 1.0 if not claim.ratio > 0 else max(0.0, least - claim.ratio)
        found.append(("share of rows in common that is left out", missing, 1e-9))
    if claim.way == "binomial":
        most = 1.0 if sizes is None or sizes.splits == 1 else worth_of_rows(len(claim.values), sizes)
        found.append(("independent rows beyond those there are, of a row", max(0.0, claim.worth - most), 1e-9))
    if sizes is not None and claim.way != "percentiles":
        most = sizes.splits if claim.way == "corrected t" and sizes.splits > 1 else sizes.tested
        found.append(("scores beyond those that were measured", float(max(0, len(claim.values) - most)), 0.0))
    return found


def worth_of_rows(n: int, sizes: SplitSizes) -> float:
    """Return how many independent rows each of n rows is worth that were tested in several splits.

    The mean of J tests of m rows each has the variance (1/J + tested/fitted) / m of that of a row.

    >>> round(worth_of_rows(100, SplitSizes(10, 100, 1 / 9)), 4)
    0.4737
    """
    return sizes.tested / sizes.splits / (n * (1 / sizes.splits + sizes.ratio))


def rows_for_normal(scores: Array, least: int = 0) -> float:
    """Return how many rows a mean of scores like these (n,) needs to be about normal, at least so many.

    Means of n > 25 g² rows of skewness g are about normal (Cochran, Sampling techniques, 1977, section 2.15).

    >>> rows_for_normal(np.repeat([0.0, 1.0], [5, 5])), round(rows_for_normal(np.repeat([0.0, 1.0], [2, 98])))
    (0.0, 1176)
    """
    apart = scores - scores.mean()
    size = float(np.abs(apart).max(initial=0.0))
    if size == 0:
        return float(least)
    apart /= size
    squares = apart * apart
    skewness = float(squares @ apart) / len(apart) / (float(squares.sum()) / len(apart)) ** 1.5
    return max(float(least), 25 * skewness**2)


def has_no_width(claim: IntervalClaim) -> bool:
    """Say whether all scores are alike, so that their spread says nothing of the error of their mean."""
    return bool(claim.high - claim.low <= 1e-12 * max(abs(claim.estimate), float(np.abs(claim.values).max())))


def _estimate_alone(claim: IntervalClaim) -> list[tuple[str, float, float]]:
    wanted = claim.scale * float(np.mean(claim.values)) + claim.shift
    size = max(abs(wanted), float(np.abs(claim.values).max()))
    return [("distance of the estimate from the mean", abs(claim.estimate - wanted), 1e-9 * size)]


def _binomial(claim: IntervalClaim) -> list[tuple[str, float, float]]:
    alpha, values = 1 - claim.confidence, claim.values
    n, right = len(values) * claim.worth, float(values.sum()) * claim.worth
    # A row that was tested several times has a share of right answers.
    strange = ((values != 0) & (values != 1)) if claim.worth == 1 else (values < 0) | (values > 1)
    above = beta.cdf(claim.low, right, n - right + 1) if right else 0.0
    below = beta.sf(claim.high, right + 1, n - right) if right < n else 0.0
    ends = abs(claim.low) if not right else 0.0, abs(claim.high - 1) if right == n else 0.0
    return [
        *_estimate_alone(claim),
        ("scores that are neither 0 nor 1", float(np.count_nonzero(strange)), 0.0),
        ("chance of so many at the lower end", float(above), alpha / 2 * (1 + 1e-6)),
        ("chance of so few at the upper end", float(below), alpha / 2 * (1 + 1e-6)),
        ("ends where all rows are alike", max(ends), 0.0),
    ]


def _betting(claim: IntervalClaim) -> list[tuple[str, float, float]]:
    alpha, (floor, ceiling) = 1 - claim.confidence, claim.span
    width = ceiling - floor
    x = (claim.values - floor) / width
    if not np.isfinite(width) or x.min() < 0 or x.max() > 1:
        return [("scores outside their span (1: yes)", 1.0, 0.0)]
    needed = float(np.log(2 / alpha)) - 1e-6
    found = _estimate_alone(claim)
    low, high = (claim.low - floor) / width, (claim.high - floor) / width
    # Ends are rounded outwards by less than this; the span's own ends need no proof.
    step = 1e-9
    if low > step:
        found.append(("missing gain of a bet on more", needed - log_capital(x, low - step, alpha), 0.0))
    if high < 1 - step:
        found.append(("missing gain of a bet on less", needed - log_capital(1 - x, 1 - high - step, alpha), 0.0))
    return found


def log_capital(x: Array, m: float, alpha: float) -> float:
    """Return the logarithm of what bets on a mean above m make of 1, for scores x (n,) in [0, 1] in random order.

    Each bet depends on the scores before it alone, so that where the mean is at most m the expected capital never
    grows. It falls as m rises, so that one end proves everything beyond it.
    """
    n = len(x)
    t = np.arange(1, n + 1)
    means = (0.5 + np.cumsum(x)) / (t + 1)
    spread = (0.25 + np.cumsum((x - means) ** 2)) / (t + 1)
    before = np.concatenate([[0.25], spread[:-1]])
    stake = np.minimum(np.sqrt(2 * np.log(2 / alpha) / (n * before)), 0.5 / max(m, 1e-300))
    return float(np.log1p(stake * (x - m)).sum())


def _symmetric(claim: IntervalClaim) -> list[tuple[str, float, float]]:
    """Return the checks of an interval of the same reach to both sides, cut where scores end."""
    reach = symmetric_reach(claim)
    low, high = claim.estimate - reach, claim.estimate + reach
    low, high = max(low, claim.span[0]), min(high, claim.span[1])
    size = max(abs(claim.estimate), reach)
    return [
        *_estimate_alone(claim),
        ("distance of the lower end", abs(claim.low - low), 1e-9 * size),
        ("distance of the upper end", abs(claim.high - high), 1e-9 * size),
    ]


def symmetric_reach(claim: IntervalClaim) -> float:
    """Return how far the interval of a mean reaches to either side, by its way."""
    tail = (1 + claim.confidence) / 2
    m = len(claim.values)
    if m < 2:
        return np.inf
    # A power of two takes their unit away, and no digit: squares of 1e200 or 1e-200 are no numbers.
    unit = 2.0 ** np.frexp(np.abs(claim.values).max())[1]
    spread = float(np.std(claim.values / unit, ddof=1)) * unit * abs(claim.scale)
    if claim.way == "corrected t":
        return float(student.ppf(tail, separate_tests(m, claim.ratio))) * np.sqrt(1 / m + claim.ratio) * spread
    return float(student.ppf(tail, m - 1)) * claim.inflation * spread / np.sqrt(m)


def separate_tests(splits: int, ratio: float) -> float:
    """Return the degrees of freedom of the variance of so many scores: no more than tests that share no row.

    >>> separate_tests(50, 1 / 9), separate_tests(5, 1 / 9), separate_tests(10, 1.0)
    (9.0, 4.0, 4.0)
    """
    return float(min(splits - 1, max(4.0, 1 / ratio))) if ratio > 0 else 1.0


def _log_scale(claim: IntervalClaim) -> list[tuple[str, float, float]]:
    """Return the checks of a score 1 - exp(u), where u is the mean of the values."""
    u, reach = float(np.mean(claim.values)), symmetric_reach(claim)
    wanted = {"estimate": -np.expm1(u), "lower end": -np.expm1(u + reach), "upper end": -np.expm1(u - reach)}
    found = {"estimate": claim.estimate, "lower end": claim.low, "upper end": claim.high}
    return [
        (f"distance of the {name}", abs(found[name] - value), 1e-9 * max(1.0, abs(value)))
        for name, value in wanted.items()
    ]


def _percentiles(claim: IntervalClaim) -> list[tuple[str, float, float]]:
    low, high = np.quantile(claim.values, [(1 - claim.confidence) / 2, (1 + claim.confidence) / 2])
    limit = 1e-9 * max(abs(float(low)), abs(float(high)))
    return [
        ("distance of the lower end", abs(claim.low - float(low)), limit),
        ("distance of the upper end", abs(claim.high - float(high)), limit),
        ("whether the estimate is far outside (1: yes)", float(not _near(claim, low, high)), 0.0),
    ]


def _near(claim: IntervalClaim, low: float, high: float) -> bool:
    """Say whether an estimate is where its drawn scores are."""
    return bool(low - (high - low) <= claim.estimate <= high + (high - low))
