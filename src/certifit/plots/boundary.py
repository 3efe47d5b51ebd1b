"""Where a model decides: what it predicts in the plane of two columns, with the rows on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.ticker import MaxNLocator

from certifit.exceptions import DataError
from certifit.plots.fitted_models import ask, check_drawable, last_step
from certifit.plots.points import (
    colour_values,
    distinct_labels,
    label_codes,
    point_style,
    predicts_numbers,
    scatter_values,
)
from certifit.plots.style import COLOURS, GREY, label_axes, new_axes, tidy
from certifit.plots.tables import TableView, view_table
from certifit.rows import Array


@dataclass(frozen=True)
class DrawnPlane:
    """Points (g, g) in the plane of two columns of a table; other columns are held at their usual values."""

    table: TableView
    columns: tuple[int, int]
    Z: Array  # (n, 2) the rows in this plane
    U: Array  # (g, g)
    V: Array  # (g, g)
    most_entries: int = 4_000_000  # of the tables that a model is asked about

    def ask(self, model: Any, method: str) -> Array:
        """Return what the model says of every point: (g, g), or (g, g, k) of k classes."""
        usual = self.table.usual_values(self.columns)
        u, v = self.U.ravel(), self.V.ravel()
        step = max(1, self.most_entries // self.table.n_columns)
        said = []
        for i in range(0, len(u), step):
            moved = {self.columns[0]: u[i : i + step], self.columns[1]: v[i : i + step]}
            said.append(ask(model, method, self.table.rows_at(moved, usual)))
        values = np.concatenate(said)
        return values.reshape(*self.U.shape, *values.shape[1:])


def make_plane(table: TableView, features: Any, points_a_side: int = 200) -> DrawnPlane:
    """Return the plane of two columns, a little larger than the rows need."""
    if table.n_columns < 2:
        raise DataError(got=f"a table of {table.n_columns} column", wanted="two columns or more to draw a plane")
    columns = table.pair(features)
    Z = np.column_stack([table.numbers(j) for j in columns])
    known = Z[np.isfinite(Z).all(axis=1)]
    if not len(known):
        raise DataError(got=f"{len(Z)} rows without numbers in both columns", wanted="at least one row to draw")
    low, high = known.min(axis=0), known.max(axis=0)
    room = 0.08 * np.where(high > low, high - low, 1.0)
    sides = [np.linspace(a - r, b + r, points_a_side) for a, b, r in zip(low, high, room, strict=True)]
    U, V = np.meshgrid(*sides)
    return DrawnPlane(table, columns, Z, U, V)


def plot_boundary(
    model: Any, X: Any, y: Any = None, features: Sequence[int | str] = (0, 1), ax: Axes | None = None
) -> Axes:
    """Draw what a model predicts in the plane of two columns, and the rows in the colours of y.

    Classes and clusters have regions, numbers have level surfaces with a colour bar. Where the table has more
    columns, these are held at their median (words at the most frequent one), so that rows may lie in a region of
    another class though they are classified rightly.

    Parameters
    ----------
    model : fitted model with `predict`
        A classifier, a regressor or a clustering of any library, or a pipeline.
    X : table
        Rows as the model takes them: an array, lists, a data frame, an Arrow table, a sparse matrix. A sparse table's
        other columns are held at 0.
    y : (n,) labels or numbers, or the name of a column of X, optional
        The colours of the rows; without y they are grey.
    features : two columns, by number or name
    ax : Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> ax = plot_boundary(DecisionTreeClassifier(max_depth=3).fit(X, y), X, y, features=(2, 3))
    >>> ax.get_xlabel(), ax.get_title(loc="left")
    ('petal length (cm)', '2 other columns held at their median')
    """
    check_drawable(model, "a fitted model with predict", "predict")
    table, y = view_table(X, y)
    y = colour_values(y, table.n_rows)
    plane = make_plane(table, features)
    predicted = plane.ask(model, "predict")
    if predicted.ndim == 3 and predicted.shape[2] == 1:
        predicted = predicted[:, :, 0]
    if predicted.ndim != 2:
        raise DataError(
            got=f"predictions of {predicted.shape[-1]} numbers for each row", wanted="a label or number for each row"
        )
    numbers = predicts_numbers(model, predicted.ravel())
    ax = new_axes(ax, 6.4, 4.6)
    if numbers:
        draw_surface(ax, plane, predicted, y)
    else:
        draw_regions(ax, plane, model, predicted, y)
    frame_plane(ax, plane)
    return ax


def frame_plane(ax: Axes, plane: DrawnPlane) -> None:
    """Fit the axes to the plane, and name its columns."""
    ax.set_xlim(plane.U[0, 0], plane.U[0, -1])
    ax.set_ylim(plane.V[0, 0], plane.V[-1, 0])
    label_axes(ax, *(plane.table.label(j) for j in plane.columns))
    others = plane.table.n_columns - 2
    if others:
        held = "held at 0" if plane.table.usual_values(plane.columns) == [] else "held at their median"
        words = f"{others} other columns {held}" if others > 1 else f"the other column {held}"
        ax.set_title(words.replace("column held at their", "column held at its"), loc="left", fontsize=9)
    tidy(ax)


def draw_surface(ax: Axes, plane: DrawnPlane, predicted: Array, y: Array | None) -> None:
    """Draw predicted numbers as levels, and the rows in the same colours."""
    values = predicted.astype(np.float64)
    seen = values if y is None else np.concatenate([values.ravel(), np.asarray(y, dtype=np.float64)])
    norm = Normalize(float(np.nanmin(seen)), float(np.nanmax(seen)))
    low, high = norm.vmin or 0.0, norm.vmax or 0.0
    # At round numbers, as the bar shows them. A constant has no levels: one step about it is drawn in one colour.
    levels = np.array([low - 0.5, low + 0.5] if low == high else MaxNLocator(14).tick_values(low, high))
    drawn = ax.contourf(plane.U, plane.V, values, levels=levels, cmap="viridis", norm=norm, alpha=0.75, zorder=1)
    style = point_style(len(plane.Z)) | {"alpha": 1.0, "zorder": 3, "linewidths": 0.6}
    if y is None:
        ax.scatter(plane.Z[:, 0], plane.Z[:, 1], color=GREY, edgecolors="white", **style)
    else:
        ax.scatter(plane.Z[:, 0], plane.Z[:, 1], c=y, cmap="viridis", norm=norm, edgecolors="white", **style)
    figure = ax.get_figure()
    assert figure is not None
    bar = figure.colorbar(drawn, ax=ax, pad=0.02, label="prediction" if y is None else "prediction, and y of rows")
    bar.outline.set_visible(False)


def draw_regions(ax: Axes, plane: DrawnPlane, model: Any, predicted: Array, y: Array | None) -> None:
    """Draw the region of each class, the lines between them, and the rows in the colours of their classes."""
    own = getattr(model, "classes_", None)
    labels = distinct_labels(predicted.ravel()) if own is None else np.asarray(own).tolist()
    codes = label_codes(predicted.ravel(), labels).reshape(predicted.shape)
    other = [] if y is None else [label for label in distinct_labels(y) if label not in set(labels)]
    # Clusters have numbers and rows may have names: then colours speak of the rows alone.
    same = len(other) < len(labels) or y is None
    ahead = _class_leads(plane, model, codes, len(labels))
    for c in range(len(labels)):
        lead = ahead[..., c]
        colour = COLOURS[c % len(COLOURS)] if same else GREY
        if lead.max() >= 0:
            shade = 0.16 if same else 0.05 * (c % 3)
            levels = [0.0, max(float(lead.max()), 1e-300) * 1.01]
            ax.contourf(plane.U, plane.V, lead, levels=levels, colors=[colour], alpha=shade, zorder=1)
        if lead.min() < 0 < lead.max() and (len(labels) > 2 or c == 1):
            ax.contour(plane.U, plane.V, lead, levels=[0.0], colors=GREY, linewidths=1.4, zorder=2)
    style: dict[str, Any] = {"zorder": 3, "alpha": 0.9 if len(plane.Z) <= 5000 else 0.5}
    scatter_values(ax, plane.Z, y, [*labels, *other] if same else other, **style)


def _class_leads(plane: DrawnPlane, model: Any, codes: Array, k: int) -> Array:
    """Return by how much each class leads the best other one (g, g, k): positive where it is predicted.

    Scores give smooth lines, and so do squared distances from the centres of clusters. They are used where they say
    what `predict` says, which a model with a threshold or with votes need not do; elsewhere a class leads by one
    where it is predicted.
    """
    centred = hasattr(last_step(model), "cluster_centers_")
    for method in ("transform",) if centred else ("decision_function", "predict_proba"):
        if k < 2 or not hasattr(model, method):
            continue
        scores = plane.ask(model, method).astype(np.float64)
        scores = -(scores**2) if centred else scores
        if scores.ndim == 2:
            scores = np.stack([-scores, scores], axis=-1)
        if scores.shape[-1] != k:
            continue
        largest = np.sort(scores, axis=-1)[..., -2:]
        leads = scores - np.where(scores == largest[..., 1:], largest[..., :1], largest[..., 1:])
        # A few points may lie on a line; votes of trees tie in whole regions, of which scores then say nothing.
        ahead = np.take_along_axis(leads, codes[..., None], axis=-1) > 0
        if ahead.mean() >= 1 - 1e-3:
            return leads
    return np.where(codes[..., None] == np.arange(k), 1.0, -1.0)
