"""Pictures of support vector machines of two columns: the region of each class, the margins, the support vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from matplotlib.axes import Axes
from scipy import sparse

from certifit.exceptions import DataError
from certifit.plots.style import COLOURS, GREY, MARKERS, check_drawable, new_axes, plain, shorten, tidy
from certifit.rows import Array


def plot_machine(model: Any, X: Any, y: Any, ax: Axes | None = None, features: tuple[str, str] | None = None) -> Axes:
    """Draw the region of each class of a classifier of two columns; with two classes also its margins, f = ±1.

    Rows are drawn in the colour of their class y. Support vectors are circled: those on the margin with a solid line,
    those beyond it with a dotted one. Where there are several machines, a row counts as beyond the margin if it is
    for any of them, else as on the margin if it is for any.

    >>> from certifit import SVC
    >>> X, y = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [3.0, 3.0], [4.0, 3.0]], [0, 0, 0, 1, 1]
    >>> ax = plot_machine(SVC(kernel="linear").fit(X, y), X, y)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['0', '1', 'on the margin (3)']
    """
    check_drawable(model, "a fitted classifier", "classes_", "decision_function", "predict")
    Z, y = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64), np.asarray(y)
    if Z.ndim != 2 or Z.shape[1] != 2 or len(y) != len(Z):
        raise DataError(
            got=f"rows of shape {Z.shape} and {len(y)} labels", wanted="two columns, a label for each row"
        )
    classes = model.classes_
    ax = new_axes(ax, 6.2, 5.0)
    _draw_regions(model, Z, ax)
    for c, name in enumerate(classes):
        mine = Z[y == name]
        ax.scatter(
            mine[:, 0],
            mine[:, 1],
            s=26,
            color=COLOURS[c % len(COLOURS)],
            marker=MARKERS[(c + c // len(COLOURS)) % len(MARKERS)],
            linewidths=0,
            label=shorten(str(name)),
            zorder=3,
        )
    for kind, rows in support_vector_kinds(model, len(Z)).items():
        if len(rows):
            words = "on the margin" if kind == "margin" else "beyond the margin"
            ax.scatter(
                Z[rows, 0],
                Z[rows, 1],
                s=90,
                facecolors="none",
                edgecolors="black",
                linewidths=1.1,
                linestyles="-" if kind == "margin" else ":",
                label=f"{words} ({len(rows)})",
                zorder=4,
            )
    names = getattr(model, "feature_names_in_", ("column 0", "column 1")) if features is None else features
    for axis, name in enumerate(names):
        plain((ax.set_xlabel, ax.set_ylabel)[axis](shorten(str(name))))
    legend = ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False)
    plain(*legend.get_texts())
    tidy(ax)
    return ax


def support_vector_kinds(model: Any, n: int) -> dict[str, Array]:
    """Row numbers of the support vectors of each kind; none for a model that does not say."""
    found = getattr(model, "support_kinds_", None)
    if found is None:
        return {}
    if len(found) != n:
        raise DataError(got=f"{n} rows", wanted=f"the {len(found)} rows that the model was fitted on")
    words = np.reshape(found, (n, -1))
    beyond, on = (words == "non-margin").any(axis=1), (words == "margin").any(axis=1)
    return {"margin": np.flatnonzero(on & ~beyond), "non-margin": np.flatnonzero(beyond)}


def _draw_regions(model: Any, Z: Array, ax: Axes, points_a_side: int = 300) -> None:
    """Draw the classes' regions, and for two classes the lines f = -1, 0, 1."""
    low, high = Z.min(axis=0), Z.max(axis=0)
    room = 0.08 * np.where(high > low, high - low, 1.0)
    sides = [np.linspace(a - r, b + r, points_a_side) for a, b, r in zip(low, high, room, strict=True)]
    U, V = np.meshgrid(*sides)
    points = np.column_stack([U.ravel(), V.ravel()])
    if hasattr(model, "feature_names_in_"):
        points = pa.table(dict(zip(model.feature_names_in_, points.T, strict=True)))
    k = len(model.classes_)
    if k == 2:
        f = model.decision_function(points).reshape(U.shape)
        code = (f > 0).astype(float)
        for level, style, width in ((-1.0, "--", 1.0), (0.0, "-", 1.6), (1.0, "--", 1.0)):
            if f.min() < level < f.max():
                ax.contour(U, V, f, levels=[level], colors=GREY, linestyles=style, linewidths=width, zorder=2)
    else:
        code = np.searchsorted(model.classes_, model.predict(points)).astype(float).reshape(U.shape)
        for c in range(k):
            mine = (code == c).astype(float)
            if 0.0 < mine.mean() < 1.0:
                ax.contour(U, V, mine, levels=[0.5], colors=GREY, linewidths=1.2, zorder=2)
    colours = [COLOURS[c % len(COLOURS)] for c in range(k)]
    ax.contourf(U, V, code, levels=np.arange(k + 1) - 0.5, colors=colours, alpha=0.13, zorder=1)
    ax.set_xlim(sides[0][0], sides[0][-1])
    ax.set_ylim(sides[1][0], sides[1][-1])
