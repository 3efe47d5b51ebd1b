"""What a model answers for rows, beside the truth: curves, thresholds, residuals and the worst mistakes of a page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from markupsafe import Markup

from certifit.model_selection.assessment.classifier_tables import (
    CurveBand,
    TestedScores,
    calibration_table,
    precision_recall_band,
    roc_band,
    threshold_table,
)
from certifit.report.charts import ChartAxis, ChartLayer, axis_around, draw_chart, thinned
from certifit.report.words import shortened
from certifit.rows import Array


@dataclass(frozen=True)
class ModelAnswers:
    """Truth and answers of some rows, in the same order."""

    y: Array  # (n,) labels, or numbers
    said: Array  # (n, k) probabilities of the classes, or (n,) numbers
    classes: Array | None  # (k,) of a classifier
    folds: int = 0  # rows were held out in so many folds; 0: the model was fitted to them, or nobody knows
    confidence: float = 0.95
    labels_alone: bool = False  # whether `said` are zeros and ones, made from labels: there are no probabilities

    @classmethod
    def of_labels(cls, y: Array, labels: Array, classes: Array, folds: int = 0) -> ModelAnswers:
        """Answers of a classifier without probabilities."""
        return cls(y, (labels[:, None] == classes).astype(np.float64), classes, folds, labels_alone=True)

    @property
    def tested(self) -> TestedScores:
        """The same as tables of two classes read them."""
        assert self.classes is not None
        # Rows of several folds depend on each other, and count for fewer (Nadeau & Bengio 2003).
        worth = 1 / (1 + self.folds / (self.folds - 1)) if self.folds > 1 else 1.0
        found = {"predict_proba": self.said, "predict": self.classes[self.said.argmax(axis=1)]}
        return TestedScores(self.y, self.classes, found, self.confidence, worth)

    @property
    def loss(self) -> Array:
        """How wrong each answer is (n,): minus the logarithm of the true class's probability, or the distance.

        Of labels alone it is 1 where they are wrong.
        """
        if self.classes is None:
            return np.abs(self.y - self.said)
        if self.labels_alone:
            return (self.classes[self.said.argmax(axis=1)] != self.y).astype(np.float64)
        code = np.searchsorted(self.classes, self.y)
        return -np.log(np.maximum(self.said[np.arange(len(code)), code], 1e-300))


def model_answers(model: Any, X: Any, y: Array, classes: Array | None, folds: int = 0) -> ModelAnswers:
    """What a fitted model says of rows X: probabilities where it has them, else labels, or numbers."""
    if classes is None:
        return ModelAnswers(y, np.asarray(model.predict(X), dtype=np.float64), None, folds)
    if hasattr(model, "predict_proba"):
        return ModelAnswers(y, np.asarray(model.predict_proba(X)), classes, folds)
    return ModelAnswers.of_labels(y, np.asarray(model.predict(X)), classes, folds)


def loss_words(model: Any, classes: Array | None) -> str:
    """The name of the loss of such answers."""
    if classes is None:
        return "mean absolute error"
    return "log loss" if hasattr(model, "predict_proba") else "share of wrong answers"


@dataclass(frozen=True)
class ChartsTuning:
    """What pictures and tables of two classes show."""

    rare: float = 0.2  # a class of a smaller share is the one in question
    very_rare: float = 0.1  # of so small a share probabilities hardly reach the usual thresholds
    called: tuple[float, ...] = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)  # shares of rows, for thresholds


def _thresholds(probability: Array, share: float, tuning: ChartsTuning) -> Array:
    """Where to draw the line (t,): in equal steps, or where given shares of all rows are called the rare class."""
    if share >= tuning.very_rare:
        return np.linspace(0.1, 0.9, 9)
    ordered = np.sort(probability)[::-1]
    places = [max(1, round(called * len(ordered))) - 1 for called in tuning.called]
    return np.unique([*ordered[places], 0.5])


def class_charts(answers: ModelAnswers, tuning: ChartsTuning = ChartsTuning()) -> dict[str, Any]:
    """ROC, precision and recall, calibration and thresholds of two classes; of more, the calibration alone."""
    if answers.labels_alone:
        return {}
    classes, tested = answers.classes, answers.tested
    assert classes is not None
    if len(classes) > 2:
        right = answers.y == classes[answers.said.argmax(axis=1)]
        surest = answers.said.max(axis=1)
        both = np.column_stack([1 - surest, surest])
        tested = TestedScores(
            right, np.array([False, True]), {"predict_proba": both}, answers.confidence, tested.worth
        )
        return {"calibration": _calibration(tested, "probability of the answer", "answers that were right")}
    if len(np.unique(answers.y)) < 2:
        return {}
    share = float(np.mean(answers.y == classes[1]))
    # The rarer class is what is looked for, where one is rare; else the second one, which is usually "yes".
    place = 0 if share > 1 - tuning.rare else 1
    wanted = classes[place]
    roc, recall = roc_band(tested, wanted), precision_recall_band(tested, wanted)
    table = threshold_table(tested, wanted, _thresholds(answers.said[:, place], min(share, 1 - share), tuning))
    names = ("threshold", "called positive", "precision", "recall", "specificity", "F1")
    lines = zip(*(table.columns[name] for name in names), strict=True)
    positive = shortened(str(wanted), 24)
    return {
        "roc": _curve(roc, f"area {roc.area:.3f}"),
        "roc_area": roc.area,
        "precision_recall": _curve(recall, "precision against recall"),
        "calibration": _calibration(tested, f"probability of {positive}", f"rows that are {positive}", wanted),
        "thresholds": [(f"{t:.3g}", f"{n:,}", *(_percent(share) for share in shares)) for t, n, *shares in lines],
        "positive": wanted,
        "note": tested.note,
    }


def _percent(share: float) -> str:
    return "–" if not np.isfinite(share) else f"{100 * share:.1f} %"


def _curve(band: CurveBand, words: str) -> Markup:
    at = thinned(len(band.x), 200)
    across, up = (ChartAxis(name, 0.0, 1.0) for name in band.axes)
    x, y, low, high = (values[at] for values in (band.x, band.y, band.low, band.high))
    layers = [ChartLayer("band", x, low, high), ChartLayer("line", x, y)]
    if band.axes[0] == "false positives":
        layers.insert(1, ChartLayer("guide", np.array([0.0, 1.0]), np.array([0.0, 1.0])))
    shown = thinned(len(x), 12)[1:-1]
    said = [
        f"threshold {band.threshold[at[i]]:.3g}: {band.axes[0]} {x[i]:.3f}, {band.axes[1]} {y[i]:.3f}" for i in shown
    ]
    layers.append(ChartLayer("dots", x[shown], y[shown], words=said))
    return draw_chart(layers, across, up, f"{band.title}: {words}")


def _calibration(tested: TestedScores, across: str, up: str, positive: Any = True) -> Markup:
    columns = calibration_table(tested, positive, 10).columns
    p, share, low, high, rows = (np.array(columns[name]) for name in ("probability", "share", "from", "to", "rows"))
    said = [f"{n:,} rows: probability {a:.3f}, share {b:.3f}" for n, a, b in zip(rows, p, share, strict=True)]
    most = float(max(p.max(), high.max()))
    top = 1.0 if most > 0.5 else ChartAxis("", 0.0, most).ticks()[-1] + ChartAxis("", 0.0, most).ticks()[1]
    layers = [
        ChartLayer("guide", np.array([0.0, top]), np.array([0.0, top])),
        ChartLayer("whiskers", p, low, high),
        ChartLayer("dots", p, share, words=said),
    ]
    words = "Calibration: how often what was given a probability came true; the dashed line is right"
    return draw_chart(layers, ChartAxis(across, 0.0, top), ChartAxis(up, 0.0, top), words)


def number_charts(answers: ModelAnswers) -> dict[str, Any]:
    """Predicted against true values, residuals against predictions, and how residuals are spread."""
    y, said = np.asarray(answers.y, float), answers.said
    left = y - said
    at = thinned(len(y), 800)
    words = (
        [f"true {a:.6g}, predicted {b:.6g}" for a, b in zip(y[at], said[at], strict=True)] if len(at) <= 300 else []
    )
    both = axis_around("predicted", y, said)
    ends = np.array([both.low, both.high])
    counts, edges = np.histogram(left, bins=min(30, max(5, int(np.sqrt(len(left))))))
    middle = (edges[1:] + edges[:-1]) / 2
    spread = [f"{n:,} rows from {a:.4g} to {b:.4g}" for n, a, b in zip(counts, edges[:-1], edges[1:], strict=True)]
    zero = ChartLayer("guide", np.array([both.low, both.high]), np.zeros(2))
    return {
        "predicted": draw_chart(
            [ChartLayer("guide", ends, ends), ChartLayer("dots", said[at], y[at], words=words, kind="faint")],
            both,
            both._replace(label="true"),
            "True against predicted values; on the dashed line they are the same",
        ),
        "residuals": draw_chart(
            [zero, ChartLayer("dots", said[at], left[at], words=words, kind="faint")],
            both,
            axis_around("true less predicted", left),
            "What is left of the true value, against the prediction; a pattern here is something not learnt",
        ),
        "spread": draw_chart(
            [ChartLayer("bars", middle, counts.astype(float), words=spread)],
            axis_around("true less predicted", edges),
            axis_around("rows", np.array([0.0]), counts.astype(float), room=0.0),
            "How many rows are off by how much",
        ),
    }


def worst_rows(
    answers: ModelAnswers, table: pa.Table, columns: list[str], numbers: Array | None = None, most: int = 15
) -> dict[str, Any]:
    """The rows whose answers are the worst, with some of their columns; `numbers` (n,) are theirs in the table."""
    order = np.argsort(-answers.loss, kind="stable")[:most]
    if answers.classes is not None:
        said = answers.classes[answers.said.argmax(axis=1)]
        order = order[said[order] != answers.y[order]]
    shown = [name for name in columns if name in table.column_names]
    cells = table.select(shown).take(pa.array(order)).to_pydict()
    rows = []
    for place, i in enumerate(order):
        if answers.classes is None:
            judged = [f"{answers.y[i]:.6g}", f"{answers.said[i]:.6g}", f"{answers.y[i] - answers.said[i]:+.6g}"]
        else:
            best = int(answers.said[i].argmax())
            sure = "–" if answers.labels_alone else f"{100 * answers.said[i, best]:.1f} %"
            judged = [shortened(str(answers.y[i])), shortened(str(answers.classes[best])), sure]
        number = i if numbers is None else numbers[i]
        rows.append([f"{number + 1:,}", *judged, *(_cell(cells[name][place]) for name in shown)])
    last = "off by" if answers.classes is None else "sure by"
    header = ["row", "true", "predicted", last, *(shortened(name, 30) for name in shown)]
    return {"header": header, "rows": rows, "numbers": 1 if answers.classes is not None else 4}


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.6g}" if isinstance(value, float) else shortened(str(value), 40)
