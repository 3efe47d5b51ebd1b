"""New axes without pyplot, and figures as SVG text."""

from __future__ import annotations

import io
import warnings
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from certifit.exceptions import DataError

BLUE, RED, GREY = "#2b6cb0", "#c2410c", "#6b7280"
# Okabe & Ito (2008): eight colours that colour-blind readers can tell apart; markers tell apart what they repeat
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#f0e442")
MARKERS = "o^sDvP*X"


def new_axes(ax: Axes | None, width: float, height: float) -> Axes:
    """`ax` itself, or axes of a new figure of this size in inches."""
    if ax is not None:
        return ax
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure.add_subplot()


def check_drawable(model: Any, wanted: str, *attributes: str) -> None:
    """Refuse a model without the fitted attributes that a picture shows."""
    missing = [name for name in attributes if not hasattr(model, name)]
    if missing:
        raise DataError(got=f"a {type(model).__name__} without {', '.join(missing)}", wanted=wanted)


def plain(*texts: Any) -> None:
    """Show data's own words as they are: a `$` in a column name is not mathematics."""
    for text in texts:
        text.set_parse_math(False)


def tidy(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)


def shorten(text: str, length: int = 32) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def svg(ax: Axes) -> str:
    """The figure of `ax` as SVG; the same figure always gives the same text."""
    buffer = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "certifit"}), warnings.catch_warnings():
        # text stays text: the reader's browser has the glyphs that matplotlib's own font lacks
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = ax.get_figure(root=True)
        assert figure is not None
        figure.savefig(buffer, format="svg", bbox_inches="tight", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()
