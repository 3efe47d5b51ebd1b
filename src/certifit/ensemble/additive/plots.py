"""Pictures of additive models: the function of each column, with the numbers of rows below, and maps of pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh

from certifit.ensemble.additive.pair_terms import PairTerm
from certifit.ensemble.additive.shape_functions import ShapeFunction
from certifit.exceptions import DataError
from certifit.plots.fitted_models import check_drawable, last_step, seen_names
from certifit.plots.style import BLUE, GREY, RED, ink, label_axes, new_grid, plain, shorten, tidy
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
            ax.set_ylabel(_unit(model), fontsize=9)
        tidy(ax)
    return grid


def plot_pair_functions(model: Any, axes: Any = None, *, most: int = 6, label: Any = None) -> Array:
    """Draw the terms of the `most` pairs of columns that matter most as maps, with larger dots for more rows.

    Blue adds, red takes off, on one scale for all, which stands beside them. Missing entries are the lowest row or
    column of a map.

    Parameters
    ----------
    model : fitted AdditiveClassifier or AdditiveRegressor with interactions
    axes : array of Axes, optional
        Where to draw, one for each pair; a new figure unless given.
    most : int, default=6
    label : one of the model's classes, where there are more than two

    Returns
    -------
    array of Axes

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import AdditiveRegressor
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> axes = plot_pair_functions(AdditiveRegressor(alpha=0.01, interactions=1).fit(X, X[:, 0] * X[:, 2]))
    >>> axes[0].get_title()
    'x0 and x2'
    """
    wanted = "a fitted AdditiveClassifier or AdditiveRegressor with terms of pairs (interactions=1, say)"
    check_drawable(model, wanted)
    whole, model = model, last_step(model)
    check_drawable(model, wanted, "pair_functions_")
    terms = _functions_of(model, label, "pair_functions_")
    if not terms:
        raise DataError(got="a model without any term of a pair", wanted=wanted)
    size = [float(term.counts.ravel() @ np.abs(term.values).ravel()) for term in terms]
    shown = [terms[i] for i in np.argsort(-np.array(size), kind="stable")[:most]]
    names = seen_names(whole, model.n_features_in_)
    wide = min(3, len(shown))
    high = -(-len(shown) // wide)
    grid = new_grid(axes, (high, wide), (3.4 * wide + 0.6, 3.1 * high), len(shown))
    top = max(float(np.abs(term.values).max()) for term in shown) or 1.0
    for ax, term in zip(grid, shown, strict=True):
        first, second = (shorten(names[j], 20) for j in term.columns)
        drawn = _draw_map(ax, term, top)
        plain(ax.set_title(f"{first} and {second}", fontsize=9))
        label_axes(ax, first, second)
    beside = [*grid] if axes is None else grid[-1]
    bar = grid[-1].figure.colorbar(drawn, ax=beside, pad=0.02, label=_unit(model))
    bar.outline.set_visible(False)
    return grid


def _draw_map(ax: Axes, term: PairTerm, top: float) -> QuadMesh:
    """Levels have equal widths; thresholds are written at some of the borders between them."""
    k, m = term.counts.shape
    drawn = ax.pcolormesh(np.arange(k + 1), np.arange(m + 1), term.values.T, cmap="RdBu", vmin=-top, vmax=top)
    a, b = np.nonzero(term.counts)
    ax.scatter(a + 0.5, b + 0.5, s=30.0 * term.counts[a, b] / term.counts.max(), color=ink(), alpha=0.5, linewidth=0)
    for axis, cuts, lost in (
        (ax.xaxis, term.first_thresholds, term.missing[0]),
        (ax.yaxis, term.second_thresholds, term.missing[1]),
    ):
        low = int(lost)  # the first threshold leaves its place to the word for missing entries
        some = np.unique(np.linspace(min(low, len(cuts) - 1), len(cuts) - 1, min(4, len(cuts))).round().astype(int))
        places, words = [i + 1 + low for i in some], [f"{cuts[i]:.3g}" for i in some]
        axis.set_ticks([0.5] * low + places, ["missing"] * low + words)
    ax.tick_params(labelsize=8)
    return drawn


def _functions_of(model: Any, label: Any, name: str = "shape_functions_") -> list[Any]:
    """The functions of a model, or of one of its several classes."""
    if np.ndim(model.intercept_) == 0:
        return getattr(model, name)
    known = model.classes_.tolist()
    if label not in known:
        raise DataError(
            got=f"label={label!r} for a model of {len(known)} classes", wanted=f"one of {known}",
            fix=f"label={known[0]!r}",
        )  # fmt: skip
    return getattr(model, name)[known.index(label)]


def _unit(model: Any) -> str:
    if hasattr(model, "classes_"):
        return "log-odds"
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
