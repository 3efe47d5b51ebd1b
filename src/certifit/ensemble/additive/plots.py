"""Pictures of additive models: the function of each column, with the numbers of rows below."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from certifit.ensemble.additive.shape_functions import ShapeFunction
from certifit.exceptions import DataError
from certifit.plots.fitted_models import check_drawable, last_step, seen_names
from certifit.plots.style import BLUE, GREY, RED, ink, new_grid, plain, shorten, tidy
from certifit.rows import Array


def plot_shape_functions(model: Any, axes: Any = None, *, most: int = 12, label: Any = None) -> Array:
    """Draw the functions of the `most` columns that matter most, with the numbers of rows as bars below.

    All functions have the same scale, so that they can be compared. A red line is the value of missing entries.

    Parameters
    ----------
    model : fitted AdditiveClassifier or AdditiveRegressor
    axes : array of Axes, optional
        Where to draw, one for each function; a new figure unless given.
    most : int, default=12
    label : one of the model's classes, where there are more than two
        The class whose functions are drawn.

    Returns
    -------
    array of Axes

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import AdditiveRegressor
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> axes = plot_shape_functions(AdditiveRegressor(alpha=0.01).fit(X, X[:, 1] ** 2))
    >>> axes[0].get_title()
    'x1'
    """
    wanted = "a fitted AdditiveClassifier or AdditiveRegressor"
    check_drawable(model, wanted)
    whole, model = model, last_step(model)
    check_drawable(model, wanted, "shape_functions_", "feature_importances_")
    order = np.argsort(-model.feature_importances_, kind="stable")[:most]
    functions = _functions_of(model, label)
    names = seen_names(whole, len(functions))
    wide = min(4, len(order))
    high = -(-len(order) // wide)
    grid = new_grid(axes, (high, wide), (3.0 * wide + 0.4, 2.5 * high), len(order))
    shapes = [functions[j] for j in order]
    levels = np.concatenate([_shown_values(shape) for shape in shapes])
    low, top = float(levels.min()), float(levels.max())
    room = (top - low) or 1.0
    for i, (ax, j, shape) in enumerate(zip(grid, order, shapes, strict=True)):
        _draw(ax, shape)
        # The lowest quarter is left to the bars.
        ax.set_ylim(low - 0.4 * room, top + 0.08 * room)
        plain(ax.set_title(shorten(names[j], 28), fontsize=10))
        if i % wide:
            ax.tick_params(labelleft=False)
        else:
            ax.set_ylabel("log-odds" if hasattr(model, "classes_") else _unit(model), fontsize=9)
        tidy(ax)
    return grid


def _functions_of(model: Any, label: Any) -> list[ShapeFunction]:
    """The functions of a model, or of one of its several classes."""
    if np.ndim(model.intercept_) == 0:
        return model.shape_functions_
    known = model.classes_.tolist()
    if label not in known:
        raise DataError(
            got=f"label={label!r} for a model of {len(known)} classes", wanted=f"one of {known}",
            fix=f"plot_shape_functions(model, label={known[0]!r})",
        )  # fmt: skip
    return model.shape_functions_[known.index(label)]


def _unit(model: Any) -> str:
    return "log of the mean" if getattr(model, "loss", "") == "poisson" else "added to the mean"


def _shown_values(shape: ShapeFunction) -> Array:
    return np.append(shape.values, shape.missing) if shape.missing_count else shape.values


def _draw(ax: Axes, shape: ShapeFunction) -> None:
    edges = _edges(shape.thresholds)
    ax.axhline(0.0, color=GREY, linewidth=0.6)
    density = shape.counts / np.diff(edges) if len(shape.counts) > 1 else np.ones(1)
    bars = 0.18 * density / density.max() if density.max() > 0 else density
    # A few far-off rows must not be lost to the eye: heights are roots of the numbers of rows per unit.
    bars = 0.18 * np.sqrt(bars / 0.18)
    ax.stairs(bars, edges, fill=True, color=GREY, alpha=0.4, transform=ax.get_xaxis_transform(), linewidth=0)
    ax.stairs(shape.values, edges, baseline=None, color=BLUE, linewidth=1.8)
    if shape.missing_count:
        ax.axhline(shape.missing, color=RED, linewidth=1.2, linestyle="--")
        ax.annotate(
            f"missing ({shape.missing_count})", (1.0, shape.missing), xycoords=("axes fraction", "data"),
            ha="right", va="bottom", fontsize=7, color=ink(),
        )  # fmt: skip
    ax.set_xlim(edges[0], edges[-1])
    ax.tick_params(labelsize=8)


def _edges(thresholds: Array) -> Array:
    """The thresholds, and an end on either side as far off as the nearest tenth of them is wide."""
    if not len(thresholds):
        return np.array([-0.5, 0.5])
    tenth = max(1, len(thresholds) // 10)
    last = len(thresholds) - 1
    ends = thresholds[min(tenth, last)] - thresholds[0], thresholds[last] - thresholds[max(0, last - tenth)]
    whole = float(thresholds[-1] - thresholds[0]) or 1.0
    left, right = (float(end) / 2 if end > 0 else 0.2 * whole for end in ends)
    return np.concatenate([[thresholds[0] - left], thresholds, [thresholds[-1] + right]])
