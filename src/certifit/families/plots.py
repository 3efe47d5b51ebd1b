"""The picture of a log-normaliser A(η): its slope at a member is the member's mean, its curvature the variance."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from certifit.exceptions import DataError
from certifit.families.family import Family
from certifit.plots.style import BLUE, RED, legend_beside, new_axes, tidy
from certifit.rows import Array


def plot_log_normaliser(member: Family, ax: Axes | None = None) -> Axes:
    """Draw A(η) of a family with one natural parameter, its tangent at a member, and the parabola that bends as it.

    The tangent has the slope E T, and the parabola the second derivative Var T: both are the member's own moments,
    and they touch the curve.

    Parameters
    ----------
    member : member of a family with one natural parameter, such as Poisson(3.0); or what `fit` returns
    ax : Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from certifit.families import Poisson
    >>> ax = plot_log_normaliser(Poisson(3.0))
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['A(η)', 'slope E T = 3', 'second derivative Var T = 3', 'Poisson: rate 3']
    """
    member = getattr(member, "member", member)
    if not isinstance(member, Family) or member.natural.shape != (1,):
        raise DataError(
            got=f"a {type(member).__name__}",
            wanted="a member of a family with one natural parameter, such as Poisson, Bernoulli or Exponential",
        )
    at, value = float(member.natural[0]), member.log_normaliser()
    slope, second = float(member.mean_parameters[0]), float(member.T_covariance()[0, 0])
    eta = at + np.linspace(-2.0, 2.0, 161) / np.sqrt(second)
    A = np.array([_log_normaliser_at(member, e) for e in eta])
    eta, A = eta[np.isfinite(A)], A[np.isfinite(A)]
    step = eta - at
    inside = ", ".join(f"{name} {number:.4g}" for name, number in member.parameters.items())
    words = f"{type(member).__name__}: {inside}"
    ax = new_axes(ax, 6.4, 3.8)
    ax.plot(eta, A, color=BLUE, linewidth=2.4, label="A(η)")
    ax.plot(eta, value + slope * step, color=RED, linewidth=1.4, label=f"slope E T = {slope:.4g}")
    ax.plot(
        eta,
        value + slope * step + second * step**2 / 2,
        color=RED,
        linewidth=1.2,
        linestyle="--",
        label=f"second derivative Var T = {second:.4g}",
    )
    ax.plot([at], [value], "o", color=BLUE, markersize=7, label=words)
    ax.set_xlabel("natural parameter η")
    ax.set_ylabel("log-normaliser A")
    legend_beside(ax, loc="upper left", bbox_to_anchor=(0.02, 0.98), fontsize=9)
    tidy(ax)
    return ax


def _log_normaliser_at(member: Family, eta: float) -> float:
    """Return A at another natural parameter, NaN where the family has no member."""
    values: dict[str, Any] = member.known_values
    try:
        found: Array = np.asarray(type(member).from_natural([eta], **values).log_normaliser())
    except DataError:
        return np.nan
    return float(found)
