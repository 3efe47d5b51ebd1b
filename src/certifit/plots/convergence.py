"""How the fit's proven gap fell with time."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from certifit.core import DataError
from certifit.plots.figures import BLUE, GREY, check_drawable, new_axes, tidy


def plot_convergence(model: Any, ax: Axes | None = None) -> Axes:
    """Gain still promised after each pass of a fit, against seconds, on a logarithmic scale.

    The dashed line is the tolerance at which the fit stops.

    >>> import certifit
    >>> model = certifit.KMeans(2, random_state=0).fit([[0.0], [1.0], [10.0], [11.5]])
    >>> plot_convergence(model).get_yscale()
    'log'
    """
    check_drawable(model, "a certifit model fitted by iteration", "history_", "certificate_")
    if not model.history_:
        raise DataError(got=f"a {type(model).__name__} solved in closed form", wanted="one fitted by iteration")
    ax = new_axes(ax, 6.4, 3.2)
    seconds = np.array([mark.seconds for mark in model.history_])
    gain = np.array([mark.gain for mark in model.history_])
    tol = model.certificate_.tol
    unit, scale = ("milliseconds", 1e3) if seconds.max() < 1.0 else ("seconds", 1.0)
    floor = min([g for g in (*gain, tol) if 0 < g < np.inf], default=1.0) / 10
    known = np.isfinite(gain)  # the first passes may promise nothing yet
    ax.plot(
        scale * seconds[known],
        np.maximum(gain[known], floor),
        "o-",
        color=BLUE,
        markersize=4,
        label="after each pass",
    )
    if tol > 0:
        ax.axhline(tol, color=GREY, linestyle="--", linewidth=1, label="asked for")
    ax.set_yscale("log")
    ax.set_xlabel(f"{unit} since the start of the fit")
    proved = model.certificate_.kind == "optimal"
    ax.set_ylabel("gap / objective" if proved else "gain still promised")
    ax.legend(frameon=False)
    tidy(ax)
    return ax
