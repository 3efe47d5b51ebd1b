"""The result of an assessment: scores with intervals, and what more can be said of a classifier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from certifit.checkers.model_selection.intervals import IntervalClaim
from certifit.core import Certificate
from certifit.exceptions import DataError
from certifit.model_selection.assessment.cautions import IntervalDoubt, is_refuted, less_often, why_none
from certifit.model_selection.assessment.classifier_tables import (
    Calibration,
    ClassifierTable,
    CurveBand,
    TestedScores,
    calibration_table,
    class_table,
    confusion_table,
    precision_recall_band,
    roc_band,
    threshold_table,
)
from certifit.model_selection.assessment.held_out import AssessedProblem, UnseenAnswers
from certifit.model_selection.assessment.plans import AssessmentPlan
from certifit.model_selection.result_table import ResultTable, TabledResult


@dataclass(frozen=True, repr=False)
class Assessment(TabledResult):
    """Scores of a model on new rows, each with an interval and the assumption that it rests on."""

    picture = "plot_intervals"

    model: str  # name of its class
    plan: AssessmentPlan
    claims: tuple[IntervalClaim, ...]
    certificate: Certificate
    problem: AssessedProblem
    tested: UnseenAnswers  # every tested row once, and what the first model that left it out answers
    n_fits: int
    doubts: tuple[IntervalDoubt, ...] = ()  # why rows are no independent draws

    def __getitem__(self, metric: str) -> IntervalClaim:
        """Return what is claimed of a metric: `estimate`, `low`, `high` and more."""
        for claim in self.claims:
            if claim.metric == metric:
                return claim
        raise KeyError(f"{metric!r}; there are {', '.join(claim.metric for claim in self.claims)}")

    def table(self) -> ResultTable:
        """Return a line for each metric: score, interval, and how the interval was found."""
        columns: dict[str, list[Any]] = {
            "metric": [claim.metric for claim in self.claims],
            "score": [claim.estimate for claim in self.claims],
            "from": [claim.low for claim in self.claims],
            "to": [claim.high for claim in self.claims],
            "by": [claim.way for claim in self.claims],
            "covers": [_covered(claim) for claim in self.claims],
        }
        notes = (*_grounds(self.claims), *self.plan.notes)
        return ResultTable(f"{self.model}, {self.plan.method}: {self.plan.why}", columns, notes)

    # Classifiers ----------------------------------------------------------------------------------------------

    def per_class(self) -> ClassifierTable:
        """Return precision and recall of every class with intervals, and F1."""
        return class_table(self._scores())

    def confusion(self) -> ClassifierTable:
        """Return, for every true class, how its rows were classified, as shares with intervals."""
        return confusion_table(self._scores())

    def roc(self, positive: Any = None, band: str = "DKW") -> CurveBand:
        """Return true positives against false positives, in a band.

        Parameters
        ----------
        positive : the class that is to be told from all others; of two, the larger
        band : 'DKW' holds the whole true curve, for any number of rows; 'bootstrap' is narrower: it holds each point
            for itself, where rows are many
        """
        return roc_band(self._scores(), positive, band)

    def precision_recall(self, positive: Any = None, band: str = "DKW") -> CurveBand:
        """Return precision against recall, in a band.

        Parameters
        ----------
        positive, band : as for `roc`
        """
        return precision_recall_band(self._scores(), positive, band)

    def calibration(self, positive: Any = None, n_bins: int = 10) -> Calibration:
        """Return how often what was given a probability came true, bin by bin, and the calibration error."""
        return calibration_table(self._scores(), positive, n_bins)

    def thresholds(self, positive: Any = None, at: Any = None) -> ClassifierTable:
        """Return precision, recall and more for several thresholds of the score, with intervals."""
        return threshold_table(self._scores(), positive, at)

    def _scores(self) -> TestedScores:
        classes = self.problem.classes
        if classes is None:
            raise DataError(got="an assessment of a regressor", wanted="one of a classifier for this table")
        if self.problem.weights is not None:
            raise DataError(
                got="an assessment with sample_weight", wanted="rows that count alike, for tables of counts",
                fix="Assess without weights for this table.",
            )  # fmt: skip
        # One test is independent of its model; rows of several folds are not, and count for fewer (Nadeau & Bengio).
        several = len(self.plan.splits) != 1
        fitted = self.tested.n_fitted
        worth = 1 / (1 + len(self.problem.y) / fitted) if several else 1.0
        confidence, doubt = self.claims[0].confidence, ""
        if self.doubts:
            refused = is_refuted(self.doubts)
            doubt = f"no intervals: {why_none(self.doubts)}" if refused else f"intervals {less_often(self.doubts)}"
        y = np.asarray(self.problem.y)[self.tested.test]
        return TestedScores(y, classes, self.tested.answers, confidence, worth, doubt, is_refuted(self.doubts))


def _covered(claim: IntervalClaim) -> str:
    """Return how often an interval holds the truth, in words."""
    share = f"{100 * claim.confidence:g} %"
    return f"less than {share}?" if claim.covers == "perhaps less" else f"{claim.covers} {share}" * bool(claim.covers)


def _grounds(claims: tuple[IntervalClaim, ...]) -> list[str]:
    """Return what intervals rest on: first what all have in common, then what is to be said of some."""
    clauses = [claim.assumption.split("; ") for claim in claims]
    common = [clause for clause in clauses[0] if all(clause in others for others in clauses[1:])]
    notes = [f"{_listed(claims)} on: {'; '.join(common)}"] if common else []
    own: dict[str, list[IntervalClaim]] = {}
    for claim, said in zip(claims, clauses, strict=True):
        own.setdefault("; ".join(clause for clause in said if clause not in common), []).append(claim)
    for words, some in own.items():
        if words:
            more = f"{', '.join(claim.metric for claim in some)}:" if common else f"{_listed(some)} on:"
            notes.append(f"{more} {words}")
    return notes


def _listed(claims: Sequence[IntervalClaim]) -> str:
    return f"{', '.join(claim.metric for claim in claims)} {'rests' if len(claims) == 1 else 'rest'}"
