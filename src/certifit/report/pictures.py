"""Pictures that only the report draws."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from certifit.plots.style import BLUE, GREY, new_axes, tidy
from certifit.rows import Array


def plot_held_out(truth: Array, predicted: Array, most: int = 2000) -> Axes:
    """Draw what a regression says of rows it was not fitted to against what is true; the line is a perfect one."""
    ax = new_axes(None, 5.0, 4.2)
    step = -(-len(truth) // most)  # a page with a hundred thousand points would be slow to open
    ax.scatter(truth[::step], predicted[::step], s=14, color=BLUE, alpha=0.5, linewidths=0, zorder=3)
    ends = [min(truth.min(), predicted.min()), max(truth.max(), predicted.max())]
    ax.plot(ends, ends, color=GREY, linewidth=1, linestyle="--", zorder=2)
    ax.set_xlabel("true")
    ax.set_ylabel("predicted from the other folds")
    if np.isfinite(ends).all() and ends[1] > ends[0]:
        room = 0.04 * (ends[1] - ends[0])
        ax.set_xlim(ends[0] - room, ends[1] + room)
        ax.set_ylim(ends[0] - room, ends[1] + room)
    tidy(ax)
    return ax
