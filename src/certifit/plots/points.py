"""Points in a plane, coloured by y: a colour and a marker for each class, or a colour bar for numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from sklearn.base import is_regressor

from certifit.exceptions import DataError
from certifit.plots.style import COLOURS, GREY, MARKERS, legend_above, legend_beside, plain, shorten
from certifit.plots.tables import target_values
from certifit.rows import Array


def distinct_labels(*arrays: Array) -> list[Any]:
    """Return the labels that occur, sorted; labels of several types by type and words. Missing ones do not count.

    >>> distinct_labels(np.array(["b", "a", None], dtype=object)), distinct_labels(np.array([2.0, 1.0, np.nan]))
    (['a', 'b'], [1.0, 2.0])
    """
    found = {label for values in arrays for label in values.tolist() if label is not None and label == label}
    try:
        return sorted(found)
    except TypeError:
        return sorted(found, key=lambda label: (type(label).__name__, str(label)))


def label_codes(values: Array, labels: list[Any]) -> Array:
    """Return the place of each value among the labels (n,), -1 for one that is missing or unknown."""
    place = {label: i for i, label in enumerate(labels)}
    return np.array([place.get(value, -1) if value == value else -1 for value in values.tolist()], dtype=int)


def label_words(label: Any, length: int = 32) -> str:
    """Return a label as a legend shows it: whole numbers without a point, long names shortened."""
    whole = isinstance(label, float) and label.is_integer()
    return shorten(str(int(label)) if whole else str(label), length)


def is_continuous(y: Array, most_classes: int = 20) -> bool:
    """Say whether y are numbers to be shown by a colour bar: not whole, or of more values than a legend has lines.

    >>> is_continuous(np.array([0, 1, 1])), is_continuous(np.array([0.5, 1.0])), is_continuous(np.arange(100))
    (False, True, True)
    """
    if y.dtype.kind not in "iuf":
        return False
    known = y[np.isfinite(y)]
    return bool((known != np.rint(known)).any()) or len(np.unique(known)) > most_classes


def predicts_numbers(model: Any, predicted: Array) -> bool:
    """Say whether a model is a regressor; what is no estimator of scikit-learn's is known by its predictions."""
    try:
        if is_regressor(model):
            return True
    except (AttributeError, TypeError):
        pass
    return not hasattr(model, "classes_") and is_continuous(predicted)


def colour_values(y: Any, n_rows: int) -> Array | None:
    """Return y as an array (n,) that can be shown by colours; refuse more classes than can be told apart."""
    values = target_values(y, n_rows)
    most = len(COLOURS) * len(MARKERS)
    if values is not None and not is_continuous(values) and len(distinct_labels(values)) > most:
        raise DataError(
            got=f"y with {len(distinct_labels(values))} classes",
            wanted=f"at most {most} classes, or numbers",
            fix="Draw fewer classes, or give y as numbers to be shown by a colour bar.",
        )
    return values


def class_style(c: int) -> dict[str, Any]:
    """Return colour and marker of class c; no two of 64 classes look alike."""
    return {
        "color": COLOURS[c % len(COLOURS)],
        "marker": MARKERS[(c + c // len(COLOURS)) % len(MARKERS)],
    }


def point_style(n: int) -> dict[str, Any]:
    """Return size and transparency of n points: many points are small and transparent."""
    size = float(np.clip(20_000 / max(1, n), 3, 30))
    return {"s": size, "alpha": 0.35 if n > 5000 else 0.75, "linewidths": 0}


def scatter_values(ax: Axes, Z: Array, y: Array | None, labels: list[Any] | None = None, **style: Any) -> None:
    """Draw points (n, 2): in one colour without y, by a colour bar if y are numbers, else by classes with a legend.

    `labels` are the classes in the order of their colours, where others than those of y count.
    """
    style = point_style(len(Z)) | style
    if y is None:
        ax.scatter(Z[:, 0], Z[:, 1], color=COLOURS[0] if labels is None else GREY, **style)
    elif labels is None and is_continuous(y):
        _scatter_numbers(ax, Z, np.asarray(y, dtype=np.float64), style)
    else:
        _scatter_classes(ax, Z, y, distinct_labels(y) if labels is None else labels, style)


def _scatter_numbers(ax: Axes, Z: Array, y: Array, style: dict[str, Any]) -> None:
    unknown = ~np.isfinite(y)
    if unknown.any():
        ax.scatter(Z[unknown, 0], Z[unknown, 1], color=GREY, label="no value", **style)
        legend_above(ax)
    # Colours of viridis are told apart by everybody, and in grey; its brightest end needs opaque points.
    drawn = ax.scatter(
        Z[~unknown, 0], Z[~unknown, 1], c=y[~unknown], cmap="viridis", **style | {"alpha": max(0.6, style["alpha"])}
    )
    figure = ax.get_figure()
    assert figure is not None
    bar = figure.colorbar(drawn, ax=ax, pad=0.02, label="y")
    bar.outline.set_visible(False)
    bar.solids.set_alpha(1.0)  # type: ignore[union-attr]


def _scatter_classes(ax: Axes, Z: Array, y: Array, labels: list[Any], style: dict[str, Any]) -> None:
    codes = label_codes(y, labels)
    if (codes < 0).any():
        ax.scatter(Z[codes < 0, 0], Z[codes < 0, 1], color=GREY, label="no label", **style)
    for c in np.unique(codes[codes >= 0]):
        ax.scatter(Z[codes == c, 0], Z[codes == c, 1], label=label_words(labels[c]), **class_style(c), **style)
    legend = legend_beside(ax, markerscale=float(np.sqrt(30 / style["s"])))
    for handle in filter(None, legend.legend_handles):
        handle.set_alpha(1.0)
    plain(*legend.get_texts())
