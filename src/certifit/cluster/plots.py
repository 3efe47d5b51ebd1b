"""A picture of how many clusters there are: the certified objective and the criteria of `choose_k` side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

from certifit.plots.fitted_models import check_drawable
from certifit.plots.style import BLUE, GREY, RED, new_grid, tidy
from certifit.rows import Array


def plot_cluster_choice(choice: Any, axes: Any = None) -> Array:
    """Draw the objective with its lower bound, the silhouette and the gap statistic by number of clusters.

    The optimum lies in the grey band. A ring, a dashed line and the title name the number that each criterion prefers
    (in the first picture, the one with the largest fall that is proved).

    Parameters
    ----------
    choice : what `choose_clusters` returns
    axes : three Axes, optional
        Where to draw; those of a new figure unless given.

    Returns
    -------
    array (3,) of Axes

    Examples
    --------
    >>> from certifit.cluster.choose_k import choose_clusters
    >>> X = [[0.0], [0.1], [0.3], [5.0], [5.2], [9.0]]
    >>> choice = choose_clusters(X, range(1, 5), references=2, random_state=0)
    >>> axes = plot_cluster_choice(choice)
    >>> [ax.get_ylabel() for ax in axes]
    ['objective', 'silhouette', 'gap statistic']
    """
    check_drawable(choice, "what choose_clusters returns", "objective", "bound", "silhouette", "gap", "choices")
    curve, silhouette, gap = new_grid(axes, (1, 3), (9.6, 2.8))
    k = choice.n_clusters
    reached = np.where(choice.objective > 0, choice.objective, np.nan)
    bound = np.maximum(choice.bound, np.nanmin(reached) / 10)  # a bound of 0 leaves the axes
    curve.fill_between(k, bound, reached, color=GREY, alpha=0.25, linewidth=0)
    curve.plot(k, reached, "o-", color=BLUE, markersize=4, label="reached")
    curve.plot(k, bound, "-", color=GREY, linewidth=1, label="proved lower bound")
    curve.set_yscale("log")
    curve.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    curve.yaxis.set_major_formatter("{x:g}")
    curve.yaxis.set_minor_formatter(NullFormatter())
    silhouette.plot(k, choice.silhouette, "o-", color=BLUE, markersize=4)
    gap.errorbar(k, choice.gap, choice.gap_error, color=BLUE, marker="o", markersize=4, capsize=3)
    _finish(curve, "objective", "largest fall", (k, reached, choice.choices.get("fall")))
    _finish(silhouette, "silhouette", "largest silhouette", (k, choice.silhouette, choice.choices.get("silhouette")))
    _finish(gap, "gap statistic", "gap rule", (k, choice.gap, choice.choices.get("gap")))
    curve.legend(frameon=False, fontsize=8)
    return np.array([curve, silhouette, gap])


def _finish(ax: Axes, word: str, criterion: str, found: tuple[Array, Array, int | None]) -> None:
    """Label the axes and mark the number of clusters that was chosen; `found` are numbers, values and choice."""
    k, values, chosen = found
    if chosen is not None:
        at = values[np.asarray(k) == chosen]
        ax.axvline(chosen, color=RED, linestyle="--", linewidth=1, zorder=1)
        ax.plot([chosen], at, "o", color="none", markeredgecolor=RED, markersize=10, markeredgewidth=1.8, zorder=3)
        ax.set_title(f"{criterion}: {chosen}", loc="left", fontsize=9, color=RED)
    ax.set_ylabel(word)
    ax.set_xlabel("clusters")
    # All numbers in every picture: a criterion that begins at 2 would have its mark on the axis.
    ax.set_xlim(np.min(k) - 0.4, np.max(k) + 0.4)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    tidy(ax)
