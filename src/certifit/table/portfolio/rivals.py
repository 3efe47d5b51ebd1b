"""The models among which one is chosen: none that is off by far, with scores row by row that can be compared."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit.rows import Array
from certifit.table.portfolio.contest import Contest, Trial


@dataclass(frozen=True)
class Rivals:
    """Trials that may be chosen, the simplest first, and what they score on every tested row."""

    trials: tuple[Trial, ...]
    scores: Array  # (n, k), without the luck that rows have with the baseline too

    @classmethod
    def of(cls, contest: Contest, worst: float = 2.0) -> Rivals:
        """All that were scored, but for those whose mean loss is more than `worst` times the baseline's.

        A model of logarithms may be off by far in a single row. It is not chosen; but where the correction for the
        choice draws rows without that one, it might be, and the correction would speak of nothing else.
        """
        found = [(trial, contest.row_scores(trial)) for trial in contest.scored]
        baseline = contest.baseline_scores(found[0][0])
        least = worst * float(baseline.mean())
        if least < 0:  # scores are losses with a minus
            found = [(t, scores) for t, scores in found if scores.mean() >= least] or found
        left = max(float(scores.mean()) for _, scores in found) / (float(baseline.mean()) or 1.0)
        columns = [contest.metric.steadied(scores, baseline, left) for _, scores in found]
        return cls(tuple(trial for trial, _ in found), np.column_stack(columns))


def gain_error(contest: Contest, trial: Trial) -> float:
    """The standard error of how much better than the baseline a trial is, row by row, in the metric's unit."""
    ours, baseline, folds = contest.row_scores(trial), contest.baseline_scores(trial), len(contest.splits)
    gained = contest.metric.steadied(ours, baseline) if contest.metric.ratio else ours - baseline
    # Rows of several folds depend on each other (Nadeau & Bengio).
    inflation = np.sqrt((1 + folds / (folds - 1)) / len(gained))
    return float(abs(contest.metric.scale) * gained.std() * inflation)
