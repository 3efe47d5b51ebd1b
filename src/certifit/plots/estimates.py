"""Estimates from many samples beside the truth: their spread is the variance, the distance of their mean the bias."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from certifit.exceptions import DataError
from certifit.plots.style import BLUE, GREY, RED, new_axes, plain, shorten, tidy
from certifit.rows import Array


def plot_estimates(estimates: Mapping[Any, Any], truth: float, ax: Axes | None = None) -> Axes:
    """Draw estimates of one number from many samples, a box for each way or size, with their mean and the truth.

    Boxes hold the middle half of the estimates, whiskers all but the outer twentieths. The dot is their mean: its
    distance from the line of the truth is the bias.

    Parameters
    ----------
    estimates : mapping from a name to (m,) estimates, one for each sample
    truth : float
        What they estimate.
    ax : Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    Axes

    Examples
    --------
    >>> draws = np.random.default_rng(0).normal(size=(1000, 4))
    >>> ax = plot_estimates({"ML": draws.var(axis=1), "unbiased": draws.var(axis=1, ddof=1)}, 1.0)
    >>> [text.get_text() for text in ax.get_xticklabels()]
    ['ML', 'unbiased']
    """
    if not isinstance(estimates, Mapping) or not estimates:
        raise DataError(got=f"estimates of type {type(estimates).__name__}", wanted="estimates by name, not empty")
    found: list[Array] = [np.asarray(values, dtype=np.float64).ravel() for values in estimates.values()]
    if not np.isfinite(truth) or not all(len(values) and np.isfinite(values).all() for values in found):
        raise DataError(got="estimates that are empty or not finite", wanted="numbers, and a truth to compare with")
    names = [shorten(name, 20) for name in estimates]
    ax = new_axes(ax, min(10.0, 2.6 + 1.0 * len(names)), 3.8)
    for i, values in enumerate(found):
        low, first, third, high = np.quantile(values, [0.05, 0.25, 0.75, 0.95])
        ax.plot([i, i], [low, high], color=GREY, linewidth=1.2)
        ax.bar(i, third - first, bottom=first, width=0.5, color=GREY, alpha=0.4)
    label = "mean of the estimates"
    ax.plot(range(len(found)), [values.mean() for values in found], "o", color=BLUE, markersize=7, label=label)
    ax.axhline(truth, color=RED, linestyle="--", linewidth=1.4, label=f"truth, {truth:.4g}")
    ax.set_xticks(range(len(names)), names)
    plain(*ax.get_xticklabels())
    ax.set_xlim(-0.6, len(names) - 0.4)
    ax.set_ylabel("estimate")
    ax.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, frameon=False, fontsize=9)
    tidy(ax)
    return ax
