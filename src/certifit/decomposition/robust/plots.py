"""Plots of the effect of outliers on principal axes, and of the two parts of a robust PCA."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from certifit.decomposition.pca.pca import PCA
from certifit.exceptions import DataError
from certifit.plots.fitted_models import check_drawable
from certifit.plots.style import BLUE, COLOURS, GREY, RED, legend_beside, new_axes, shorten, tidy
from certifit.plots.tables import table_numbers, target_values
from certifit.rows import Array


def plot_first_axes(models: Mapping[str, Any], X: Any, wrong: Any, ax: Axes | None = None) -> Axes:
    """Draw the first axes of several fitted models in the plane of the two main axes of rows that are not `wrong`.

    `models` are fitted models by name; the legend says by how many degrees each axis is off. Wrong rows more than
    three times as far away as all others are not shown.

    Parameters
    ----------
    models : mapping from a name to a fitted model with `components_`
        Of any library.
    X : table of numbers
    wrong : (n,) of bool, which rows are wrong
    ax : Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import certifit
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 3)) * [5.0, 1.0, 0.5]
    >>> X[:6] = [0.0, 40.0, 0.0]
    >>> ax = plot_first_axes({"PCA": certifit.PCA(1).fit(X)}, X, np.arange(60) < 6)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['rows', '6 wrong rows', 'PCA: 89° off']
    """
    X = table_numbers(X)
    found = target_values(wrong, len(X))
    if not isinstance(models, Mapping) or not models or found is None or found.dtype.kind not in "biu":
        raise DataError(
            got=f"a {type(models).__name__} of models, and wrong of {getattr(found, 'dtype', None)}",
            wanted="models by name, and for each row whether it is wrong",
            fix='Pass {"PCA": model} and a mask of True and False.',
        )
    wrong = found.astype(bool)
    for model in models.values():
        check_drawable(model, "fitted models with components_", "components_")
    truth = PCA(2).fit(X[~wrong])
    codes = truth.transform(X)
    ax = new_axes(ax, 7.4, 4.6)
    looks = [(RED, "-"), (BLUE, "--"), (COLOURS[2], ":"), (COLOURS[3], "-.")]
    # Half the width and height of the plot.
    reach = np.minimum(np.abs(codes).max(axis=0), 3 * np.abs(codes[~wrong]).max(axis=0))
    ax.plot(*codes[~wrong].T, "o", color=GREY, markersize=3, alpha=0.6, label="rows")
    ax.plot(*codes[wrong].T, "x", color=RED, markersize=5, alpha=0.8, label=f"{wrong.sum()} wrong rows")
    for i, (name, model) in enumerate(models.items()):
        axis = np.asarray(model.components_)[0]
        off = np.degrees(np.arccos(min(1.0, abs(float(axis @ truth.components_[0])))))
        middle, direction = (
            truth.transform(np.atleast_2d(getattr(model, "mean_", np.zeros(len(axis)))))[0],
            truth.components_ @ axis,
        )
        ends = middle + np.outer([-1.0, 1.0], direction / np.linalg.norm(direction)) * 4 * reach.max()
        words = f"{shorten(name, 20)}: {off:.0f}° off"
        colour, line = looks[i % len(looks)]
        ax.plot(*ends.T, color=colour, linestyle=line, linewidth=2, label=words)
    ax.set_xlim(-1.1 * reach[0], 1.1 * reach[0])
    ax.set_ylim(-1.1 * reach[1], 1.1 * reach[1])
    ax.set_xlabel("first axis of the right rows")
    ax.set_ylabel("second axis")
    legend_beside(ax, fontsize=9)
    tidy(ax)
    return ax


def plot_split(
    model: Any, X: Any, shape: tuple[int, int], rows: Sequence[int] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw images (rows of X), their low-rank parts and their sparse parts, one below the other.

    The sparse part is red where the image is brighter than its low-rank part, and blue where it is darker.

    Parameters
    ----------
    model : fitted RobustPCA
    X : table of images, one a row
        The rows that it was fitted to.
    shape : (height, width)
    rows : numbers of the rows to show, optional
        The first eight unless given.
    ax : Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from certifit import RobustPCA
    >>> X = np.outer(np.arange(1.0, 9.0), [1.0, 2.0, 3.0, 4.0])
    >>> X[2, 3] = 99.0
    >>> ax = plot_split(RobustPCA(center=False).fit(X), X, (2, 2), range(4))
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['X', 'low rank', 'sparse']
    """
    check_drawable(model, "a fitted RobustPCA", "low_rank_", "sparse_")
    X, (height, width), rows = (
        table_numbers(X),
        shape,
        list(range(min(8, len(model.low_rank_))) if rows is None else rows),
    )
    if X.shape != np.shape(model.low_rank_) or not all(0 <= i < len(X) for i in rows):
        raise DataError(
            got=f"X of shape {X.shape}, rows={rows}",
            wanted=f"the {len(model.low_rank_)} rows that the model was fitted on, and numbers among these",
        )
    if height * width != X.shape[1]:
        raise DataError(got=f"shape={shape}", wanted=f"a height times a width of {X.shape[1]}, the columns of X")
    ax = new_axes(ax, 0.9 * len(rows) + 0.9, 3.2)
    bands = {"X": X, "low rank": model.low_rank_, "sparse": model.sparse_}
    bands = {name: values[rows] for name, values in bands.items()}
    # Gross errors must not set the scale of grey levels.
    low, high = np.percentile(bands["low rank"], [0.5, 99.5])
    largest = float(np.abs(bands["sparse"]).max()) or 1.0
    for i, (name, values) in enumerate(bands.items()):
        scale = ("RdBu_r", -largest, largest) if name == "sparse" else ("gray", low, high)
        cmap, smallest, top = scale
        extent = (0.0, float(len(rows)), -i - 1.0, -float(i))
        ax.imshow(_join(values, height, width), cmap=cmap, vmin=smallest, vmax=top, extent=extent, aspect="auto")
    ax.set_xlim(0, len(rows))
    ax.set_ylim(-3, 0)
    ax.set_yticks([-0.5, -1.5, -2.5], list(bands))
    ax.set_xticks(np.arange(len(rows)) + 0.5, [f"row {i}" for i in rows], fontsize=8)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return ax


def _join(images: Array, height: int, width: int) -> Array:
    """Return images (m, height * width) side by side, with gaps of NaN, which are not drawn."""
    framed = np.full((len(images), height + 1, width + 1), np.nan)
    framed[:, :height, :width] = images.reshape(-1, height, width)
    return framed.transpose(1, 0, 2).reshape(height + 1, -1)
