"""Pictures of projections: the path of a descent, and the forward beside the reverse projection."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from certifit.divergence import Mixture, Projection, minimise_kl
from certifit.exceptions import DataError
from certifit.families import Family
from certifit.plots.style import BLUE, GREY, RED, new_axes, shorten, tidy
from certifit.rows import Array


def plot_projection_path(projection: Projection, ax: Axes | None = None) -> Axes:
    """Draw the steps of a gradient descent, over level lines if there are two parameters, else the fall of the value.

    >>> from certifit.families import Binomial, Gaussian
    >>> ax = plot_projection_path(minimise_kl(Binomial(0.3, 20), Gaussian, method="gradient"))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('mean', 'variance')
    """
    path = projection.path
    if path is None:
        raise DataError(
            got="a projection in closed form",
            wanted="one with a path",
            fix='Use minimise_kl(..., method="gradient").',
        )
    ax = new_axes(ax, 6.4, 4.4)
    if path.ordinary.shape[1] == 2:
        _draw_level_lines(projection, path.ordinary, ax)
    else:
        fall = np.maximum(path.objective - path.objective[-1], np.finfo(float).eps)
        ax.semilogy(np.arange(len(fall)), fall, "o-", color=BLUE, markersize=4)
        ax.set_xlabel("step")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set_ylabel("divergence above its last value")
        tidy(ax)
    return ax


def _draw_level_lines(projection: Projection, steps: Array, ax: Axes) -> None:
    """Draw level lines of the divergence in the two ordinary parameters, and the steps (n, 2) on them."""
    member = projection.member
    names = [name for name in member.parameters if name not in member.known]
    low, high = steps.min(axis=0), steps.max(axis=0)
    pad = 0.35 * np.maximum(high - low, 1e-3 * np.abs(high) + 1e-9)
    low = np.where(low > 0, np.maximum(low - pad, 0.3 * low), low - pad)  # parameters that must be positive stay so
    first, second = (np.linspace(low[i], high[i] + pad[i], 24) for i in (0, 1))
    level = np.array([[_value_at(projection, dict(zip(names, (a, b), strict=True))) for a in first] for b in second])
    above = level - np.nanmin(level)
    ax.contour(first, second, np.sqrt(above), levels=12, colors=GREY, linewidths=0.6, alpha=0.7)
    ax.plot(*steps.T, "o-", color=BLUE, markersize=4, linewidth=1.2, label=f"{len(steps) - 1} steps")
    ax.plot(*steps[0], "s", color=GREY, markersize=7, label="start")
    ax.plot(*steps[-1], "*", color=RED, markersize=13, label="nearest member")
    ax.set_xlabel(names[0])
    ax.set_ylabel(names[1])
    ax.set_title(f"steps over level lines of {_divergence_words(projection)}", fontsize=10)
    ax.legend(frameon=True, framealpha=0.9, edgecolor="none", fontsize=9)
    tidy(ax)


def _value_at(projection: Projection, parameters: dict[str, float]) -> float:
    member = projection.member
    try:
        return projection.objective.at(type(member)(**parameters, **member.known_values)).value
    except DataError:  # no such member
        return np.nan


def _divergence_words(projection: Projection) -> str:
    return "KL(p, q)" if projection.direction == "forward" else "KL(q, p)"


def plot_directions(p: Family | Mixture, family: type[Family], ax: Axes | None = None, **known: Any) -> Axes:
    """Draw the density of p and of its two projections: forward covers the mass, reverse seeks a mode.

    >>> from certifit.families import Gaussian
    >>> p = Mixture([0.4, 0.6], [Gaussian(-3.0, 1.0), Gaussian(3.0, 1.0)])
    >>> ax = plot_directions(p, Gaussian)
    >>> [text.get_text().split(":")[0] for text in ax.get_legend().get_texts()]
    ['p', 'forward, covers the mass', 'reverse, seeks a mode']
    """
    ax = new_axes(ax, 6.8, 4.0)
    forward = minimise_kl(p, family, "forward", **known)
    reverse = minimise_kl(p, family, "reverse", **known)
    sd = float(np.sqrt(p.variance))
    x = np.linspace(float(p.mean) - 3.5 * sd, float(p.mean) + 3.5 * sd, 801)
    density = np.exp(p.log_density(x))
    ax.fill_between(x, density, color=GREY, alpha=0.3, linewidth=0, label="p")
    for found, colour, words in (
        (forward, BLUE, "forward, covers the mass"),
        (reverse, RED, "reverse, seeks a mode"),
    ):
        label = f"{words}: {_divergence_words(found)} = {found.kl:.3g}\n{shorten(_member_words(found.member), 44)}"
        ax.plot(x, np.exp(found.member.log_density(x)), color=colour, linewidth=1.8, label=label)
    ax.set_xlabel("x")
    ax.set_ylabel("density")
    ax.set_ylim(0, 1.5 * ax.get_ylim()[1])  # room for the legend
    ax.legend(frameon=False, fontsize=9, loc="upper left")
    tidy(ax)
    return ax


def _member_words(member: Family) -> str:
    inside = ", ".join(f"{name} {value:.3g}" for name, value in member.parameters.items())
    return f"{type(member).__name__}: {inside}"
