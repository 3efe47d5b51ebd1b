"""Pictures of support vector machines: the region of each class, the margins, the support vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from certifit.exceptions import DataError
from certifit.plots.boundary import DrawnPlane, draw_regions, draw_surface, frame_plane, make_plane
from certifit.plots.fitted_models import check_drawable, last_step
from certifit.plots.points import colour_values, predicts_numbers
from certifit.plots.style import GREY, ink, legend_above, legend_beside, new_axes
from certifit.plots.tables import view_table
from certifit.rows import Array


def plot_machine(model: Any, X: Any, y: Any, features: Sequence[int | str] = (0, 1), ax: Axes | None = None) -> Axes:
    """Draw the region of each class in the plane of two columns; with two classes also its margins, f = ±1.

    Rows are drawn in the colour of their class y. Support vectors are circled: those on the margin with a solid line,
    those beyond it with a dotted one. Where there are several machines, a row counts as beyond the margin if it is
    for any of them, else as on the margin if it is for any. scikit-learn's machines do not tell the two kinds apart.

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
    circled = support_vector_kinds(last_step(model), table.n_rows)
    plane = make_plane(table, features)
    predicted = plane.ask(model, "predict")
    numbers = predicts_numbers(model, predicted.ravel())
    ax = new_axes(ax, 6.4, 4.6)
    if numbers:
        draw_surface(ax, plane, predicted, y)
    else:
        draw_regions(ax, plane, model, predicted, y)
        _draw_margins(ax, plane, model)
    for words, rows in circled.items():
        ax.scatter(
            plane.Z[rows, 0],
            plane.Z[rows, 1],
            s=90,
            facecolors="none",
            edgecolors=ink(),
            linewidths=1.1,
            linestyles=":" if words.startswith("beyond") else "-",
            label=f"{words} ({len(rows)})",
            zorder=4,
        )
    if circled:
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
    kinds = {"on the margin": np.flatnonzero(on & ~beyond), "beyond the margin": np.flatnonzero(beyond)}
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
