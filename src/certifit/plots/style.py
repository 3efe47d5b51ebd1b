"""What all pictures share: new figures of pyplot's, colours, legends, short names, and figures as SVG text."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
from matplotlib import rc_context, rcParams
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from certifit.exceptions import DataError
from certifit.rows import Array

BLUE, RED, GREY = "#2b6cb0", "#c2410c", "#6b7280"
# Okabe & Ito (2008): eight colours that colour-blind readers can tell apart; markers tell apart what they repeat
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#f0e442")
MARKERS = "o^sDvP*X"

_of_pyplot: ContextVar[bool] = ContextVar("_of_pyplot", default=True)


@contextmanager
def figures_apart() -> Iterator[None]:
    """Make new figures outside pyplot for a while: they open no window, are not shown, and need not be closed."""
    token = _of_pyplot.set(False)
    try:
        yield
    finally:
        _of_pyplot.reset(token)


def _new_figure(width: float, height: float) -> Figure:
    """Return a figure that pyplot shows, as notebooks and `plt.show()` expect."""
    if not _of_pyplot.get():
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)
        return figure
    # pyplot chooses a backend when it is imported, and takes its time: it is loaded with the first picture.
    import matplotlib.pyplot as plt

    return plt.figure(figsize=(width, height), layout="constrained")


def new_axes(ax: Axes | None, width: float, height: float) -> Axes:
    """Return `ax` itself, or the axes of a new figure of this size in inches."""
    if ax is None:
        return _new_figure(width, height).add_subplot()
    if not isinstance(ax, Axes):
        raise DataError(
            got=f"a {type(ax).__name__} as ax",
            wanted="the Axes to draw on, or None for a new figure",
            fix="fig, ax = plt.subplots() makes one.",
        )
    return ax


def new_grid(axes: Any, shape: tuple[int, int], size: tuple[float, float], count: int | None = None) -> Array:
    """Return `count` axes (m,): those given, or those of a new figure of this size, with (lines, columns) of them."""
    count = shape[0] * shape[1] if count is None else count
    if axes is None:
        figure = _new_figure(*size)
        return np.array([figure.add_subplot(*shape, i + 1) for i in range(count)], dtype=object)
    found = np.ravel(np.asarray(axes, dtype=object))
    if len(found) != count or not all(isinstance(ax, Axes) for ax in found):
        kinds = ", ".join(dict.fromkeys(type(ax).__name__ for ax in found))
        raise DataError(
            got=f"axes of {len(found)} ({kinds})",
            wanted=f"{count} Axes to draw on, or None for a new figure",
            fix=f"fig, axes = plt.subplots({shape[0]}, {shape[1]}) makes them.",
        )
    return found


def ink() -> str:
    """Return the colour of text, which is seen on any background that a style has chosen."""
    return str(rcParams["text.color"])


def plain(*texts: Any) -> None:
    """Show data's own words as they are: a `$` in a column name is not mathematics."""
    for text in texts:
        text.set_parse_math(False)


def tidy(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)


def shorten(text: Any, length: int = 32) -> str:
    """Return words that fit beside an axis; the end of a long name is left out."""
    words = " ".join(str(text).split())
    return words if len(words) <= length else words[: length - 1] + "…"


def label_axes(ax: Axes, x: Any, y: Any) -> None:
    """Name both axes by data's own words."""
    plain(ax.set_xlabel(shorten(x, 40)), ax.set_ylabel(shorten(y, 40)))


def legend_above(ax: Axes) -> None:
    """Draw the legend above the axes on the right, where there is a colour bar beside them."""
    legend = ax.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3, frameon=False, fontsize=9)
    plain(*legend.get_texts())


def legend_beside(ax: Axes, **settings: Any) -> Any:
    """Draw the legend beside the axes where the figure makes room for it, else where it covers least."""
    figure = ax.get_figure(root=True)
    if figure is not None and figure.get_layout_engine() is not None:
        columns = -(-len(ax.get_legend_handles_labels()[0]) // 20)
        place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0.0}
        place |= {"frameon": False, "ncols": columns}
    else:
        place = {"loc": "best", "framealpha": 0.9, "edgecolor": "none"}
    legend = ax.legend(**place | settings)
    plain(*legend.get_texts())
    return legend


def svg(ax: Axes) -> str:
    """Return the figure of `ax` as SVG; the same figure always gives the same text.

    Parameters
    ----------
    ax : Axes
        What a plot function returned; of several axes, any.

    Returns
    -------
    str
        The whole figure, with its words as text.

    Examples
    --------
    >>> from certifit.plots import plot_losses
    >>> svg(plot_losses()).lstrip().startswith("<?xml")
    True
    """
    if not isinstance(ax, Axes):
        raise DataError(got=f"a {type(ax).__name__}", wanted="Axes, as plot functions return them")
    buffer = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "certifit"}), warnings.catch_warnings():
        # text stays text: the reader's browser has the glyphs that matplotlib's own font lacks
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = ax.get_figure(root=True)
        assert figure is not None
        figure.savefig(buffer, format="svg", bbox_inches="tight", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


def images_side_by_side(images: Array, columns: int, space: int) -> Array:
    """One picture of images (n, height, width) in so many columns, with so much space (NaN) between them."""
    n, height, width = images.shape
    sheet = np.full((-(-n // columns) * (height + space), columns * (width + space)), np.nan)
    for k, image in enumerate(images):
        top, left = k // columns * (height + space), k % columns * (width + space)
        sheet[top : top + height, left : left + width] = image
    return sheet[: len(sheet) - space, : columns * (width + space) - space]
