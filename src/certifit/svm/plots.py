"""Pictures of support vector machines: the region of each class, the margins, the support vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from sklearn.base import is_regressor

from certifit.exceptions import DataError
from certifit.plots.boundary import DrawnPlane, draw_regions, draw_surface, frame_plane, make_plane
from certifit.plots.fitted_models import ask, check_drawable, last_step
from certifit.plots.points import colour_values, predicts_numbers
from certifit.plots.style import GREY, ink, legend_above, legend_beside, new_axes
from certifit.plots.tables import view_table
from certifit.rows import Array


def plot_machine(model: Any, X: Any, y: Any, features: Sequence[int | str] = (0, 1), ax: Axes | None = None) -> Axes:
    """Draw the region of each class in the plane of two columns; with two classes also its margins, f = ±1.

    Rows are drawn in the colour of their class y. Support vectors are marked by their kind: on the margin (0 < α < C)
    with a ring, inside it (α = C) with a dotted one, misclassified (α = C too) with a square. Where there are several
    machines, a row counts as beyond the margin if it is for any of them, and as misclassified if all of them together
    are wrong. A regression has rows on the edge of its tube and outside it. scikit-learn's machines do not tell kinds
    apart.

    Parameters
    ----------
    model : fitted machine, or any model with `predict`
        Of any library, or a pipeline; `plot_boundary` draws the same without margins.
    X : table
        The rows that it was fitted to.
    y : (n,) labels or numbers, or the name of a column of X
    features : two columns, by number or name
        Others are held at their median.
    ax : Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from certifit import SVC
    >>> X, y = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [3.0, 3.0], [4.0, 3.0]], [0, 0, 0, 1, 1]
    >>> ax = plot_machine(SVC(kernel="linear").fit(X, y), X, y)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['0', '1', 'on the margin (3)']
    """
    check_drawable(model, "a fitted model with predict", "predict")
    table, y = view_table(X, y)
    y = colour_values(y, table.n_rows)
    marked = support_vector_kinds(last_step(model), table.n_rows)
    if "beyond the margin" in marked and hasattr(model, "classes_"):
        marked = _split_by_prediction(marked, ask(model, "predict", table.source), y)
    plane = make_plane(table, features)
    predicted = plane.ask(model, "predict")
    numbers = predicts_numbers(model, predicted.ravel())
    ax = new_axes(ax, 6.4, 4.6)
    if numbers:
        draw_surface(ax, plane, predicted, y)
    else:
        draw_regions(ax, plane, model, predicted, y)
        _draw_margins(ax, plane, model)
    for words, rows in marked.items():
        ax.scatter(
            plane.Z[rows, 0],
            plane.Z[rows, 1],
            s=90,
            marker="s" if words == "misclassified" else "o",
            facecolors="none",
            edgecolors=ink(),
            linewidths=1.1,
            linestyles=":" if words in ("inside the margin", "beyond the margin", "outside the tube") else "-",
            label=f"{words} ({len(rows)})",
            zorder=4,
        )
    if marked:
        (legend_above if numbers else legend_beside)(ax)
    frame_plane(ax, plane)
    return ax


def support_vector_kinds(model: Any, n: int) -> dict[str, Array]:
    """Return the rows of the support vectors by the words for their kind; none for a model that does not say."""
    found = getattr(model, "support_kinds_", None)
    if found is None:
        support = np.asarray(getattr(model, "support_", []))
        if not hasattr(model, "support_vectors_") or not len(support):
            return {}
        _check_rows(n, int(np.ravel(getattr(model, "shape_fit_", [n]))[0]))
        return {"support vectors": support}
    _check_rows(n, len(found))
    words = np.reshape(found, (n, -1))
    beyond, on = (words == "non-margin").any(axis=1), (words == "margin").any(axis=1)
    names = (
        ("on the edge of the tube", "outside the tube")
        if is_regressor(model)
        else ("on the margin", "beyond the margin")
    )
    kinds = zip(names, (np.flatnonzero(on & ~beyond), np.flatnonzero(beyond)), strict=True)
    return {kind: rows for kind, rows in kinds if len(rows)}


def _split_by_prediction(marked: dict[str, Array], predicted: Array, y: Array) -> dict[str, Array]:
    """Return the kinds with rows beyond the margin split into those inside it and those that are misclassified."""
    beyond = marked["beyond the margin"]
    wrong = predicted.astype(object)[beyond] != np.asarray(y).astype(object)[beyond]
    split = {"inside the margin": beyond[~wrong], "misclassified": beyond[wrong]}
    kinds = {kind: rows for kind, rows in marked.items() if kind != "beyond the margin"} | split
    return {kind: rows for kind, rows in kinds.items() if len(rows)}


def _check_rows(n: int, fitted: int) -> None:
    if n != fitted:
        raise DataError(
            got=f"{n} rows",
            wanted=f"the {fitted} rows that the model was fitted on",
            fix="plot_boundary draws other rows, without support vectors.",
        )


def _draw_margins(ax: Axes, plane: DrawnPlane, model: Any) -> None:
    """Draw the lines f = ±1 of a machine for two classes."""
    if not hasattr(model, "decision_function"):
        return
    f = plane.ask(model, "decision_function")
    for level in (-1.0, 1.0) if f.ndim == 2 else ():
        if f.min() < level < f.max():
            ax.contour(plane.U, plane.V, f, levels=[level], colors=GREY, linestyles="--", linewidths=1.0, zorder=2)
