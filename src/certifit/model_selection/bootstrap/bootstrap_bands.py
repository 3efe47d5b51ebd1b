"""Bands of curves from tested rows drawn with replacement: narrower than those that hold for any law of the scores.

Positives and negatives are drawn apart for true over false positives, all rows together for precision and recall.
Rows that were tested in several folds depend on each other: fewer of them are drawn, so that bands are wider.

Reference: Fawcett, An introduction to ROC analysis (2006), vertical averaging.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit.rows import Array


@dataclass(frozen=True)
class BandTuning:
    """How much is drawn."""

    n_draws: int = 500
    seed: int = 0


def roc_percentiles(
    scores: tuple[Array, Array], alarms: Array, chances: tuple[float, float], worth: float,
    tuning: BandTuning = BandTuning(),
) -> Array:  # fmt: skip
    """Return percentiles (2, p) of the share of true positives where the share of false ones is `alarms` (p,).

    `scores` are those of positives and of negatives, each of which counts for `worth` independent rows.
    """
    rng, drawn = np.random.default_rng(tuning.seed), np.empty((tuning.n_draws, len(alarms)))
    sizes = [max(1, round(worth * len(part))) for part in scores]
    for row in drawn:
        positives, negatives = (rng.choice(part, size) for part, size in zip(scores, sizes, strict=True))
        row[:] = true_positives(positives, negatives, alarms)
    return np.quantile(drawn, chances, axis=0)


def true_positives(positives: Array, negatives: Array, alarms: Array) -> Array:
    """Return the largest share of positives above a threshold with at most so many false positives (p,).

    >>> true_positives(np.array([0.4, 0.8, 0.9]), np.array([0.1, 0.5, 0.6]), np.array([0.0, 0.4, 1.0])).round(2)
    array([0.67, 0.67, 1.  ])
    """
    falling, rising = np.sort(negatives)[::-1], np.sort(positives)
    allowed = np.floor(alarms * len(falling) + 1e-9).astype(int)
    above = 1 - np.searchsorted(rising, falling[np.minimum(allowed, len(falling) - 1)], side="right") / len(rising)
    return np.where(allowed < len(falling), above, 1.0)


def precision_percentiles(
    scores: Array, is_positive: Array, at: Array, chances: tuple[float, float], worth: float,
    tuning: BandTuning = BandTuning(),
) -> Array:  # fmt: skip
    """Return percentiles (2, p) of the precision at thresholds (p,), 0 and 1 where too few draws have a row above."""
    rng, drawn = np.random.default_rng(tuning.seed), np.empty((tuning.n_draws, len(at)))
    size = max(1, round(worth * len(scores)))
    for row in drawn:
        rows = rng.integers(len(scores), size=size)
        order = np.argsort(scores[rows])
        rising, hits = scores[rows][order], np.append(np.cumsum(is_positive[rows][order][::-1])[::-1], 0)
        below = np.searchsorted(rising, at)
        with np.errstate(invalid="ignore"):
            row[:] = hits[below] / (size - below)
    known = np.isfinite(drawn).mean(axis=0) >= 1 - min(chances)
    ends = np.tile([[0.0], [1.0]], len(at))
    ends[:, known] = np.nanquantile(drawn[:, known], chances, axis=0)
    return ends
