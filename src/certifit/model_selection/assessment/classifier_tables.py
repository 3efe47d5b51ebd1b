"""What a classifier's answers on tested rows say, class by class and threshold by threshold, with intervals.

Intervals are exact for independent rows (Clopper & Pearson). Bands of curves hold everywhere at once: the share of
positives, or negatives, above every threshold is within √(log(2/δ) / 2n) of the truth with chance 1 - δ (Dvoretzky,
Kiefer & Wolfowitz 1956; Massart 1990). Rows that were tested in several folds depend on each other: they count as
`worth` times as many.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from certifit.core import Setting
from certifit.exceptions import DataError
from certifit.model_selection.assessment.intervals import clopper_pearson
from certifit.model_selection.bootstrap.bootstrap_bands import precision_percentiles, roc_percentiles
from certifit.model_selection.result_table import ResultTable, TabledResult
from certifit.rows import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class TestedScores:
    """Targets and answers of tested rows."""

    __test__ = False  # no test of pytest's

    y: Array  # (m,)
    classes: Array  # (k,)
    answers: Mapping[str, Array]
    confidence: float
    worth: float  # independent rows that a row counts for
    doubt: str = ""  # of their independence, in words
    refused: bool = False  # whether there are to be no intervals

    @property
    def tails(self) -> tuple[float, float]:
        """Return the percentiles that an interval lies between."""
        return (1 - self.confidence) / 2, (1 + self.confidence) / 2

    def interval(self, right: Any, of: Any, level: float | None = None) -> tuple[Array, Array]:
        """Return an interval for a share, from counts: all of [0, 1] where nothing was counted."""
        if self.refused:
            return (none := np.full(np.shape(of), np.nan)), none
        counts = np.asarray(right) * self.worth, np.asarray(of) * self.worth
        low, high = clopper_pearson(*counts, self.confidence if level is None else level)
        return np.where(counts[1] > 0, low, 0.0), np.where(counts[1] > 0, high, 1.0)

    def notes(self, *own: str) -> tuple[str, ...]:
        """Return what is said below a table: what is its own, what its intervals rest on, and whether rows are so."""
        if self.refused:
            return (self.doubt,)
        return (*own, self.doubt) if self.doubt else own

    def band(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Return the ends of a band; of none where there are to be no intervals."""
        none = np.full(len(low), np.nan)
        return (none, none) if self.refused else (low, high)

    @property
    def note(self) -> str:
        kind = f"intervals of {100 * self.confidence:g} %, each for itself"
        if self.worth == 1:
            return f"{kind}: exact, where tested rows are independent draws"
        return f"{kind}; rows of several folds depend on each other, and count as {self.worth:.2f} rows each"

    def positive(self, wanted: Any) -> Any:
        """Return the class that a question of two sides is about: the larger of two, unless it is named."""
        if wanted is None:
            if len(self.classes) != 2:
                raise DataError(
                    got=f"{len(self.classes)} classes and no positive one",
                    wanted="the class that is to be told from all others",
                    fix=f"positive={self.classes[-1:].tolist()[0]!r}, say.",
                )
            return self.classes[1]
        if wanted not in self.classes:
            raise DataError(got=f"positive={wanted!r}", wanted=f"one of {', '.join(map(str, self.classes[:10]))}")
        return wanted

    def scores(self, positive: Any) -> Array:
        """Return a score for each row that grows with the chance of the positive class (m,)."""
        column = int(np.flatnonzero(self.classes == positive)[0])
        for method in ("predict_proba", "decision_function"):
            if method in self.answers:
                values = self.answers[method]
                if values.ndim == 1 or values.shape[1] == 1:
                    return np.ravel(values) if column == 1 else -np.ravel(values)
                return values[:, column]
        raise DataError(
            got="a classifier without predict_proba and decision_function",
            wanted="one with scores, to move a threshold",
        )


@dataclass(frozen=True, repr=False)
class ClassifierTable(ResultTable):
    """A table of what a classifier answers, with its picture: a function of `model_selection.plots`."""

    picture: str = ""

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the shares with their intervals; returns the axes.

        Parameters
        ----------
        ax : axes of matplotlib's to draw on, or None for new ones
        """
        from certifit.model_selection import plots

        return getattr(plots, self.picture)(self, ax)


def class_table(found: TestedScores) -> ClassifierTable:
    """Return precision and recall of every class."""
    said = found.answers["predict"]
    rows = np.array([np.count_nonzero(found.y == kind) for kind in found.classes])
    named = np.array([np.count_nonzero(said == kind) for kind in found.classes])
    right = np.array([np.count_nonzero((found.y == kind) & (said == kind)) for kind in found.classes])
    columns: dict[str, Any] = {"class": [*map(str, found.classes)], "rows": rows.tolist()}
    for name, of in (("precision", named), ("recall", rows)):
        low, high = found.interval(right, of)
        columns[name] = _share(right, of).tolist()
        columns[f"{name} from"], columns[f"{name} to"] = low.tolist(), high.tolist()
    columns["F1"] = _share(2 * right, rows + named).tolist()
    return ClassifierTable("Classes", columns, found.notes(found.note), "plot_classes")


def confusion_table(found: TestedScores) -> ClassifierTable:
    """Return a line for every pair of a true class and an answer that was met."""
    said = found.answers["predict"]
    columns: dict[str, list[Any]] = {name: [] for name in ("true class", "answer", "rows", "share", "from", "to")}
    for kind in found.classes:
        of = int(np.count_nonzero(found.y == kind))
        for answer in found.classes:
            count = int(np.count_nonzero((found.y == kind) & (said == answer)))
            low, high = found.interval(count, of)
            line = (str(kind), str(answer), count, count / of if of else np.nan, float(low), float(high))
            for name, value in zip(columns, line, strict=True):
                columns[name].append(value)
    return ClassifierTable("Confusion: shares of each true class", columns, found.notes(found.note), "plot_confusion")


def threshold_table(found: TestedScores, positive: Any, at: Any) -> ClassifierTable:
    """Return a line for each threshold: rows above it are called positive."""
    positive = found.positive(positive)
    scores, is_positive = found.scores(positive), found.y == positive
    if at is None:
        at = np.unique(np.quantile(scores, np.linspace(0.05, 0.95, 10)))
    at = np.atleast_1d(np.asarray(at, dtype=np.float64))
    above = scores[:, None] >= at
    named, right = above.sum(axis=0), (above & is_positive[:, None]).sum(axis=0)
    positives, negatives = int(is_positive.sum()), int((~is_positive).sum())
    columns: dict[str, Any] = {"threshold": at.tolist(), "called positive": named.tolist()}
    for name, count, of in (
        ("precision", right, named),
        ("recall", right, np.full(len(at), positives)),
        ("specificity", negatives - (named - right), np.full(len(at), negatives)),
    ):
        low, high = found.interval(count, of)
        columns[name] = _share(count, of).tolist()
        columns[f"{name} from"], columns[f"{name} to"] = low.tolist(), high.tolist()
    columns["F1"] = _share(2 * right, named + positives).tolist()
    return ClassifierTable(f"Thresholds for {positive}", columns, found.notes(found.note), "plot_thresholds")


def _share(part: Array, whole: Array) -> Array:
    """Return part / whole, NaN where there is nothing."""
    return np.where(whole > 0, part / np.maximum(whole, 1), np.nan)


# Curves -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class CurveBand(TabledResult):
    """A curve, and a band that holds the true one with the confidence that was asked for, as its notes say where."""

    picture = "plot_band"

    title: str
    axes: tuple[str, str]
    x: Array  # (p,)
    y: Array  # (p,)
    low: Array  # (p,) of the band at x
    high: Array  # (p,)
    threshold: Array  # (p,)
    notes: tuple[str, ...] = ()

    @property
    def area(self) -> float:
        """Return the area below the curve, by trapezoids."""
        return float(np.sum(np.diff(self.x) * (self.y[1:] + self.y[:-1]) / 2))

    def table(self, most: int = 12) -> ResultTable:
        """Return some points of the curve."""
        at = np.unique(np.linspace(0, len(self.x) - 1, most).astype(int))
        return ResultTable(self.title, {name: values[at].tolist() for name, values in self._columns()}, self.notes)

    def _columns(self) -> list[tuple[str, Array]]:
        names = (*self.axes, "from", "to", "threshold")
        return [*zip(names, (self.x, self.y, self.low, self.high, self.threshold), strict=True)]

    def to_frame(self) -> Any:
        """Return every point of the curve as a pandas data frame."""
        return ResultTable(self.title, {name: values.tolist() for name, values in self._columns()}).to_frame()


def _rates(found: TestedScores, positive: Any) -> tuple[Array, Array, Array, int, int]:
    """Return thresholds, descending, the shares of positives and of negatives at or above each, and their numbers."""
    scores, is_positive = found.scores(positive), found.y == positive
    counts = int(is_positive.sum()), int((~is_positive).sum())
    if not all(counts):
        raise DataError(
            got="tested rows of one side only", wanted="positive and negative rows", fix="Test more rows."
        )
    at = np.concatenate([[np.inf], np.unique(scores)[::-1]])
    order = {side: np.sort(scores[is_positive == side]) for side in (True, False)}
    hits, alarms = (1 - np.searchsorted(order[side], at) / len(order[side]) for side in (True, False))
    return at, hits, alarms, *counts


def _reach(n: float, chance: float) -> float:
    """Return how far a distribution function of n rows may be off, but with this chance."""
    return float(np.sqrt(np.log(2 / chance) / (2 * n)))


BANDS = Setting(choices=("DKW", "bootstrap"))
_POINTWISE = (
    "at each point for itself, the true curve is in the band with confidence {:g} %: percentiles of the bootstrap"
)


def roc_band(found: TestedScores, positive: Any, band: str = "DKW") -> CurveBand:
    """Return the curve of true positives over false positives with its band."""
    BANDS.check("band", band)
    positive = found.positive(positive)
    at, hits, alarms, n_positive, n_negative = _rates(found, positive)
    names = f"ROC for {positive}", ("false positives", "true positives")
    if band == "bootstrap":
        scores, is_positive = found.scores(positive), found.y == positive
        parts = scores[is_positive], scores[~is_positive]
        ends = _around(hits, roc_percentiles(parts, alarms, found.tails, found.worth))
        notes = found.notes(_POINTWISE.format(100 * found.confidence))
        return CurveBand(*names, alarms, hits, *found.band(*ends), at, notes)
    chance = (1 - found.confidence) / 2
    up, right = _reach(n_positive * found.worth, chance), _reach(n_negative * found.worth, chance)
    # The true curve passes within `right` and `up` of each point: at x it lies between points that are so far away.
    before = np.searchsorted(alarms, alarms - right, side="left")
    after = np.searchsorted(alarms, alarms + right, side="right") - 1
    low = np.where(alarms - right > 0, np.clip(hits[np.maximum(before - 1, 0)] - up, 0, 1), 0.0)
    high = np.where(alarms + right < 1, np.clip(hits[np.minimum(after + 1, len(hits) - 1)] + up, 0, 1), 1.0)
    words = f"the true curve is in the band everywhere with confidence {100 * found.confidence:g} %"
    return CurveBand(*names, alarms, hits, *found.band(low, high), at, found.notes(words, found.note))


def _around(y: Array, ends: Array) -> tuple[Array, Array]:
    """Return ends (2, p) that hold the curve of the tested rows themselves."""
    return np.minimum(ends[0], y), np.maximum(ends[1], y)


def precision_recall_band(found: TestedScores, positive: Any, band: str = "DKW") -> CurveBand:
    """Return precision over recall; each precision's range follows from the ranges of both rates and of the share."""
    BANDS.check("band", band)
    positive = found.positive(positive)
    at, hits, alarms, n_positive, n_negative = _rates(found, positive)
    chance = (1 - found.confidence) / 3
    share = n_positive / (n_positive + n_negative)
    least, most = found.interval(n_positive, n_positive + n_negative, 1 - chance)
    up, right = _reach(n_positive * found.worth, chance), _reach(n_negative * found.worth, chance)
    names, keep = (f"Precision and recall for {positive}", ("recall", "precision")), hits > 0
    if band == "bootstrap":
        x, y, at = hits[keep], _precision(share, hits, alarms)[keep], at[keep]
        ends = precision_percentiles(found.scores(positive), found.y == positive, at, found.tails, found.worth)
        notes = found.notes(_POINTWISE.format(100 * found.confidence))
        return CurveBand(*names, x, y, *found.band(*_around(y, ends)), at, notes)
    low = _precision(float(least), np.clip(hits - up, 0, 1), np.clip(alarms + right, 0, 1))
    high = _precision(float(most), np.clip(hits + up, 0, 1), np.clip(alarms - right, 0, 1))
    words = f"the precision at every threshold is in the band with confidence {100 * found.confidence:g} %"
    x, y, low, high, at = (values[keep] for values in (hits, _precision(share, hits, alarms), low, high, at))
    return CurveBand(*names, x, y, *found.band(low, high), at, found.notes(words, found.note))


def _precision(share: float, hits: Array, alarms: Array) -> Array:
    true, false = share * hits, (1 - share) * alarms
    with np.errstate(invalid="ignore"):
        return np.where(true + false > 0, true / (true + false), 0.0 if not np.all(hits) else 1.0)


@dataclass(frozen=True, repr=False)
class Calibration(ClassifierTable):
    """Bins of probabilities with how often they came true, all intervals at once, and the calibration error."""

    picture: str = "plot_calibration"
    error: float = field(default=np.nan)  # mean distance of probability and share over the bins
    error_low: float = field(default=np.nan)
    error_high: float = field(default=np.nan)


def calibration_table(found: TestedScores, positive: Any, n_bins: int) -> Calibration:
    """Return bins of about equally many rows, by their probability."""
    Setting(int, least=1).check("n_bins", n_bins)
    positive = found.positive(positive)
    if "predict_proba" not in found.answers:
        raise DataError(got="a classifier without predict_proba", wanted="one with probabilities")
    p, came_true = found.scores(positive), found.y == positive
    edges = np.unique(np.quantile(p, np.linspace(0, 1, n_bins + 1)[1:-1]))
    bins = np.searchsorted(edges, p, side="right")
    kinds, bins = np.unique(bins, return_inverse=True)
    rows = np.bincount(bins)
    mean, right = np.bincount(bins, p) / rows, np.bincount(bins, came_true)
    low, high = found.interval(right, rows, 1 - (1 - found.confidence) / len(kinds))
    share = right / rows
    weight = rows / rows.sum()
    error = float(weight @ np.abs(mean - share))
    least = float(weight @ np.maximum(0, np.maximum(low - mean, mean - high)))
    most = float(weight @ np.maximum(np.abs(mean - low), np.abs(mean - high)))
    columns = {
        "probability": mean.tolist(), "rows": rows.tolist(), "share": share.tolist(), "from": low.tolist(),
        "to": high.tolist(),
    }  # fmt: skip
    size = f"calibration error over these bins {error:.4g}"
    words = f"{size}, between {least:.4g} and {most:.4g}; all intervals hold at once with confidence"
    notes = found.notes(f"{words} {100 * found.confidence:g} %")
    notes = (size, *notes) if found.refused else notes
    return Calibration(
        f"Calibration for {positive}", columns, notes, error=error, error_low=least, error_high=most
    )  # fmt: skip
