"""The scores by which models of tables are compared: means over rows, shown in the unit that readers know."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy

from certifit.exceptions import DataError
from certifit.rows import Array
from certifit.table.labelled_table import LabelledTable


@dataclass(frozen=True)
class TableMetric:
    """A mean over rows, and how it is shown: shift + scale × mean."""

    name: str
    of_rows: str  # a key of `model_selection.assessment.metrics.ROW_METRICS`; larger is better
    larger_is_better: bool
    shift: float = 0.0
    scale: float = 1.0
    ratio: bool = False  # whether it is 1 less the mean loss over that of the baseline, as R² and D² are

    def shown(self, mean: float) -> float:
        """The mean in the metric's own unit."""
        return self.shift + self.scale * mean

    def ends(self, low: float, high: float) -> tuple[float, float]:
        """An interval in the metric's own unit, the smaller end first."""
        first, second = sorted((self.shown(low), self.shown(high)))
        return first, min(second, 1.0) if self.ratio else second

    def steadied(self, scores: Array, baseline: Array, left: float | None = None) -> Array:
        """Scores of rows (n,) with the same mean, whose spread is that of the metric as it is shown.

        A row far out adds to both means of a ratio, so that its luck cancels in the share `left` that the model
        leaves open (the error of a ratio, linearised); by default that share is the one of these scores.
        """
        mean = float(baseline.mean())
        if not self.ratio or mean == 0:
            return scores
        left = float(scores.mean()) / mean if left is None else left
        return scores - left * (baseline - mean)


COMMON_CLASS = 0.9  # a share of rows of one class from which on accuracy says little
METRICS = ("auto", "accuracy", "log_loss", "brier", "r2", "mae", "deviance")
_OF_CLASSES = {
    "accuracy": TableMetric("accuracy", "accuracy", True),
    "log_loss": TableMetric("log loss", "neg_log_loss", False, scale=-1.0),
    "brier": TableMetric("Brier score", "neg_brier_score", False, scale=-1.0),
}


def find_metric(word: str, data: LabelledTable, family: str = "auto") -> TableMetric:
    """The metric that a word stands for.

    auto is accuracy, or the log loss where nearly all rows are of one class; the deviance of counts; R² of any other
    quantity.
    """
    if data.choice.task == "classification":
        counts = np.unique(data.y, return_counts=True)[1]
        known, usual = _OF_CLASSES, "log_loss" if counts.max() >= COMMON_CLASS * len(data.y) else "accuracy"
    else:
        mean = np.average(data.y, weights=data.w)
        spread = float(np.average((data.y - mean) ** 2, weights=data.w))
        known = {
            "r2": TableMetric("R²", "neg_mean_squared_error", True, 1.0, 1 / spread if spread > 0 else 1.0, True),
            "mae": TableMetric("mean absolute error", "neg_mean_absolute_error", False, scale=-1.0),
        }
        if data.y.min() >= 0 and mean > 0:
            apart = 2 * float(np.average(xlogy(data.y, data.y / mean), weights=data.w))  # the deviance of the mean
            scale = 1 / apart if apart > 0 else 1.0
            known["deviance"] = TableMetric("D²", "neg_mean_poisson_deviance", True, 1.0, scale, True)
        counted = family in ("poisson", "negative_binomial") or (
            family == "auto" and data.choose_family().family == "poisson"
        )
        usual = "deviance" if counted and "deviance" in known else "r2"
    word = usual if word == "auto" else word
    if word not in known:
        raise DataError(got=f"the metric {word!r} for {data.choice.task}", wanted=f"one of auto, {', '.join(known)}")
    return known[word]
