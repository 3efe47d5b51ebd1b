"""How the fit's proven gap fell with time."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from certifit.core import Mark
from certifit.exceptions import DataError
from certifit.plots.style import BLUE, GREY, check_drawable, new_axes, tidy


def plot_convergence(model: Any, ax: Axes | None = None) -> Axes:
    """Gain still promised after each pass of a fit, against seconds, on a logarithmic scale.

    The dashed line is the tolerance at which the fit stops. A model made of several machines, fitted one after the
    other, has a line for each, from its own start.

    >>> import certifit
    >>> model = certifit.KMeans(2, random_state=0).fit([[0.0], [1.0], [10.0], [11.5]])
    >>> plot_convergence(model).get_yscale()
    'log'
    """
    check_drawable(model, "a certifit model fitted by iteration", "history_", "certificate_")
    loops = model.history_ if model.history_ and not isinstance(model.history_[0], Mark) else (model.history_,)
    if not any(loops):
        raise DataError(got=f"a {type(model).__name__} solved in closed form", wanted="one fitted by iteration")
    ax = new_axes(ax, 6.4, 3.2)
    tol = model.certificate_.tol
    marks = [mark for loop in loops for mark in loop]
    unit, scale = ("milliseconds", 1e3) if max(mark.seconds for mark in marks) < 1.0 else ("seconds", 1.0)
    floor = min([g for g in (*(mark.gain for mark in marks), tol) if 0 < g < np.inf], default=1.0) / 10
    for i, loop in enumerate(loops):
        known = [mark for mark in loop if np.isfinite(mark.gain)]  # the first passes may promise nothing yet
        ax.plot(
            [scale * mark.seconds for mark in known],
            [max(mark.gain, floor) for mark in known],
            "o-",
            color=BLUE,
            alpha=1.0 if len(loops) == 1 else 0.5,
            markersize=4,
            label="_" if i else "after each pass" if len(loops) == 1 else f"after each pass, {len(loops)} machines",
        )
    if tol > 0:
        ax.axhline(tol, color=GREY, linestyle="--", linewidth=1, label="asked for")
    ax.set_yscale("log")
    ax.set_xlim(left=0)
    ax.set_xlabel(f"{unit} since the start of the fit")
    proved = model.certificate_.kind == "optimal"
    ax.set_ylabel("gap / objective" if proved else "gain still promised")
    ax.legend(frameon=False)
    tidy(ax)
    return ax
