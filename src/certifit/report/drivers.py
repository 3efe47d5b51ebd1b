"""What drives a model: permutation importance (Breiman 2001) with intervals, and coefficients with proved digits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup

from certifit.core import Certificate
from certifit.core.text_table import proved_digits
from certifit.report.charts import ChartLayer, axis_around, draw_chart
from certifit.report.words import shortened
from certifit.rows import Array


@dataclass(frozen=True)
class ImportanceTuning:
    """How many rows are asked how often."""

    most_rows: int = 1000
    repeats: int = 5
    most_columns: int = 60  # that are shuffled, those first in the list first
    errors: float = 1.96  # standard errors on each side of an interval


class ColumnImportance(NamedTuple):
    """By how much the mean loss grows when a column is shuffled, with an interval of 95 %."""

    name: str
    growth: float
    low: float
    high: float

    @property
    def matters(self) -> bool:
        return self.low > 0


def shuffled_importance(
    losses: Callable[[Any], Array],
    X: Any,
    columns: Sequence[tuple[str, Any]],
    tuning: ImportanceTuning = ImportanceTuning(),
) -> list[ColumnImportance]:
    """The importance of some columns, the largest first.

    `losses(X)` gives the loss of every row (n,) of X, an array (n, d) or a data frame; `columns` are names and the
    places of what belongs to each. The interval is over rows: each row's mean growth over the repeats.
    """
    rng, n = np.random.default_rng(0), len(X)
    usual, found = losses(X), []
    for name, place in columns[: tuning.most_columns]:
        growth = np.zeros(n)
        for _ in range(tuning.repeats):
            growth += losses(_shuffled(X, place, rng.permutation(n))) - usual
        growth /= tuning.repeats
        reach = tuning.errors * float(growth.std(ddof=1)) / np.sqrt(n) if n > 1 else np.inf
        mean = float(growth.mean())
        found.append(ColumnImportance(name, mean, mean - reach, mean + reach))
    return sorted(found, key=lambda column: -column.growth)


def _shuffled(X: Any, place: Any, order: Array) -> Any:
    """X with the rows of some columns in another order."""
    if isinstance(X, np.ndarray):
        moved = X.copy()
        moved[:, place] = X[order][:, place]
        return moved
    moved = X.copy()
    moved[place] = X[place].to_numpy()[order] if not hasattr(X[place], "array") else X[place].array.take(order)
    return moved


def importance_table(
    importance: list[ColumnImportance], loss: str, rows: str = "the rows that the model was fitted to"
) -> dict[str, Any]:
    """What the page shows of importance."""
    return {
        "importance": importance,
        "importance_rows": rows,
        "most": max((column.high for column in importance), default=1.0),
        "loss": loss,
    }


@dataclass(frozen=True)
class FittedCoefficients:
    """The coefficients of a linear model, the names of its columns and classes, and what is proved of each number."""

    coef: Array  # (k, d)
    intercept: Array  # (k,)
    features: Sequence[str]  # (d,)
    classes: Array | None
    errors: Array  # (k, d + 1), or empty where nothing is proved

    @classmethod
    def of(
        cls, model: Any, features: Sequence[str], classes: Array | None, certificate: Certificate | None
    ) -> FittedCoefficients | None:
        """Those of a fitted model; None where it has none."""
        try:
            coef = np.atleast_2d(np.asarray(model.coef_, dtype=np.float64))
            intercept = np.array(np.broadcast_to(np.ravel(model.intercept_), len(coef)), dtype=np.float64)
        except (AttributeError, TypeError, ValueError):
            return None
        if coef.shape[1] != len(features) or (classes is not None and len(coef) not in (1, len(classes))):
            return None
        errors = np.array(() if certificate is None else certificate.parameter_error)
        return cls(
            coef,
            intercept,
            features,
            classes,
            errors if errors.shape == (len(coef), coef.shape[1] + 1) else np.zeros(0),
        )

    def printed(self) -> list[list[str]]:
        """Every number with the digits that are proved; with four decimals where nothing is proved about any."""
        values = np.column_stack([self.coef, self.intercept])
        if not self.errors.size:
            return [[f"{value:.4f}" for value in row] for row in values.tolist()]
        pairs = zip(values.tolist(), self.errors.tolist(), strict=True)
        return [[proved_digits(value, error) for value, error in zip(*pair, strict=True)] for pair in pairs]


def coefficient_table(found: FittedCoefficients | None, most_features: int, most_classes: int) -> dict[str, Any]:
    """The table of coefficients: the features with the largest ones first, as many as fit on a page."""
    if found is None:
        return {"coefficients": [], "complete": True, "proved": False, "coefficient_classes": [], "intercept": []}
    coef, printed = found.coef, found.printed()
    classes = ["", "coefficient"] if found.classes is None else [str(c) for c in found.classes]
    order = np.argsort(-np.abs(coef).max(axis=0), kind="stable")
    listed = order[:most_features]
    single = len(coef) == 1
    return {
        "coefficient_classes": (classes[1:] if single else classes)[:most_classes],
        "coefficients": [
            (found.features[j], [row[j] for row in printed[:most_classes]], float(coef[0, j]) if single else None)
            for j in listed
        ],
        "largest": float(np.abs(coef).max(initial=0.0)),
        "complete": len(coef) <= most_classes and len(listed) == len(order),
        "counts": f"{coef.shape[1]:,} columns" + ("" if found.classes is None else f" and {len(classes):,} classes"),
        "intercept": [row[-1] for row in printed[:most_classes]],
        "proved": bool(found.errors.size),
    }


def shape_charts(
    model: Any, features: Sequence[str], units: dict[str, tuple[float, float]], most: int = 8
) -> list[tuple[str, Markup]]:
    """The functions of an additive model's columns that matter most: names and charts; none of several classes.

    `units` are the centre and scale by which columns of numbers were standardised, by feature.
    """
    functions = getattr(model, "shape_functions_", None)
    if functions is None or np.ndim(model.intercept_) or len(functions) != len(features):
        return []
    order = np.argsort(-np.asarray(model.feature_importances_), kind="stable")[:most]
    up = axis_around("adds", *(functions[j].values for j in order), np.zeros(1))
    found = []
    for j in order:
        centre, scale = units.get(features[j], (0.0, 1.0))
        cuts = np.asarray(functions[j].thresholds) * scale + centre
        if not len(cuts) or not functions[j].values.any():  # the column is not used
            continue
        room = 0.05 * float(cuts[-1] - cuts[0]) or 0.5
        edges = np.concatenate([[cuts[0] - room], np.repeat(cuts, 2), [cuts[-1] + room]])
        name = shortened(features[j], 40)
        across = axis_around(name, edges, room=0.0)
        zero = ChartLayer("guide", np.array([across.low, across.high]), np.zeros(2))
        layers = [zero, ChartLayer("line", edges, np.repeat(functions[j].values, 2))]
        found.append((name, draw_chart(layers, across, up, f"What {name} adds to the score")))
    return found
