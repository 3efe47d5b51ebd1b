"""Whether a comparison of models follows from their scores: each p-value by another road than the one it came.

Student's t is found again as the root of an F, the F of 5 x 2 folds as an incomplete beta function, McNemar's test as
a sum of binomial chances, and Holm's correction as what it stands for: the largest of all Bonferroni tests of sets of
comparisons that contain the one in question (closed testing).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import betainc
from scipy.stats import binom
from scipy.stats import f as fisher

from certifit.checkers.model_selection.intervals import separate_tests
from certifit.core import Certificate, Check
from certifit.rows import Array

PairedTest = Literal["corrected t", "5x2cv F", "McNemar"]


@dataclass(frozen=True)
class PairClaim:
    """What is said of two models: by how much the first scores higher, and whether that may be chance."""

    first: str
    second: str
    differences: Array  # (J,) of scores by split; of McNemar's test by row: 1, 0 or -1
    difference: float  # mean
    p_value: float
    corrected: float  # p-value, corrected for all pairs
    test: PairedTest
    ratio: float = np.nan  # rows tested over rows fitted


def certify_comparison(
    pairs: Sequence[PairClaim], splits: Certificate, alpha: float, refuted: str = ""
) -> Certificate:
    """Prove that differences, p-values and their correction follow from the scores.

    Where what a test rests on is `refuted`, which is why in words, p-values prove nothing of the models.
    """
    checks = [Check("faults of the splits", float(len(splits.failures())), 0.0)]
    raw = np.array([pair.p_value for pair in pairs])
    closed = closed_p_values(raw)
    for pair, corrected in zip(pairs, closed, strict=True):
        name = f"{pair.first} against {pair.second}"
        mean = float(np.mean(pair.differences))
        size = float(np.abs(pair.differences).max())
        checks.append(Check(f"{name}: difference off by", abs(pair.difference - mean), 1e-9 * size))
        checks.append(Check(f"{name}: p-value off by", abs(pair.p_value - plain_p_value(pair)), 1e-9))
        checks.append(Check(f"{name}: correction off by", abs(pair.corrected - float(corrected)), 1e-9))
    apart = sum(pair.corrected <= alpha for pair in pairs)
    claim = (
        f"{apart} of {len(pairs)} pairs of models can be told apart; where all are alike and what the test rests on "
        f"is true, the chance that any is said to differ is at most {100 * alpha:g} %"
    )
    if refuted:
        claim = f"differences are those of the scores; nothing is said of which model is better: {refuted}"
    facts: dict[str, float | str] = {"assumed": assumption(pairs[0].test)}
    facts["fingerprint of the splits"] = str(splits.facts["fingerprint"])
    return Certificate("statistical", claim, checks=tuple(checks), facts=facts)


def assumption(test: PairedTest) -> str:
    """Return what a test rests on, in words."""
    return {
        "corrected t": "differences of splits are about normal, and correlated as the share of rows that tests take "
        "(Nadeau & Bengio)",
        "5x2cv F": "differences of halves are about normal, and those of different halvings independent (Alpaydin); "
        "all halvings have the same rows, so that models that are alike are told apart more often than it says",
        "McNemar": "tested rows are independent draws; exact for these two fitted models, and silent on others that "
        "the same learners would give",
    }[test]


def plain_p_value(pair: PairClaim) -> float:
    """Return the two-sided p-value of no difference, from the differences alone."""
    d = np.asarray(pair.differences, dtype=np.float64)
    if pair.test == "McNemar":
        wins, losses = int(np.count_nonzero(d > 0)), int(np.count_nonzero(d < 0))
        chances = binom.pmf(np.arange(wins + losses + 1), wins + losses, 0.5)
        return float(min(1.0, 2 * chances[: min(wins, losses) + 1].sum())) if wins + losses else 1.0
    if pair.test == "5x2cv F":
        halves = d.reshape(5, 2)
        spread = float(((halves[:, 0] - halves[:, 1]) ** 2).sum()) / 2
        top = float((halves**2).sum())
        if top == 0:
            return 1.0
        # P(F(10, 5) > x) as a function of 1 / (1 + 2x).
        return float(betainc(2.5, 5.0, 1 / (1 + 2 * (top / (2 * spread))))) if spread else 0.0
    variance = (1 / len(d) + pair.ratio) * float(d.var(ddof=1))
    mean = float(d.mean())
    if mean == 0:
        return 1.0
    return float(fisher.sf(mean**2 / variance, 1, separate_tests(len(d), pair.ratio))) if variance else 0.0


def closed_p_values(p: Array) -> Array:
    """Return p-values (m,) corrected for m tests: the largest |S| min p over sets S of tests that contain each.

    >>> closed_p_values(np.array([0.01, 0.04, 0.03]))
    array([0.03, 0.06, 0.06])
    """
    out = np.empty(len(p))
    for i in range(len(p)):
        others = np.sort(np.delete(p, i))[::-1]
        # Of all sets of one size, that of the largest others has the largest minimum.
        smallest = np.minimum(p[i], np.concatenate([[p[i]], others]))
        out[i] = min(1.0, float(np.max(np.arange(1, len(p) + 1) * smallest)))
    return out
