"""How the fit's proven gap fell with time."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from certifit.core import Mark
from certifit.exceptions import DataError
from certifit.plots.fitted_models import check_drawable, last_step
from certifit.plots.style import BLUE, GREY, new_axes, tidy


def plot_convergence(model: Any, ax: Axes | None = None) -> Axes:
    """Draw the gain still promised after each pass of a fit, against seconds, on a logarithmic scale.

    Time begins with the end of the first pass, which may have waited for loops to be compiled. The dashed line is the
    tolerance at which the fit stops. A model made of several machines, fitted one after the
    other, has a line for each, from its own start.

    Parameters
    ----------
    model : model fitted by certifit
        One that was fitted by iteration; of a pipeline, its last step.
    ax : Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import certifit
    >>> model = certifit.KMeans(2, random_state=0).fit([[0.0], [1.0], [10.0], [11.5]])
    >>> ax = plot_convergence(model)
    >>> ax.get_yscale()
    'log'
    """
    wanted = "a model fitted by certifit, by iteration: only these keep a history of their gap"
    check_drawable(model, wanted)
    model = last_step(model)
    name = type(model).__name__
    if not hasattr(model, "history_") and hasattr(model, "certificate_"):
        raise DataError(
            got=f"a {name}, which is solved without iteration",
            wanted="a model fitted by iteration",
            fix="There is no convergence to draw: print(model.certificate_) shows what is proved.",
        )
    check_drawable(model, wanted, "history_", "certificate_")
    loops = model.history_ if model.history_ and not isinstance(model.history_[0], Mark) else (model.history_,)
    if not any(loops):
        raise DataError(
            got=f"a {name} solved in closed form",
            wanted="one fitted by iteration",
            fix="There is no convergence to draw: print(model.certificate_) shows what is proved.",
        )
    ax = new_axes(ax, 6.4, 3.2)
    tol = model.certificate_.tol
    marks = [mark for loop in loops for mark in loop]
    longest = max(loop[-1].seconds - loop[0].seconds for loop in loops if len(loop))
    unit, scale = ("milliseconds", 1e3) if longest < 1.0 else ("seconds", 1.0)
    floor = min([g for g in (*(mark.gain for mark in marks), tol) if 0 < g < np.inf], default=1.0) / 10
    _draw_loops(ax, loops, scale, floor)
    if tol > 0:
        ax.axhline(tol, color=GREY, linestyle="--", linewidth=1, label="asked for")
    ax.set_yscale("log")
    ax.margins(x=0.03)
    ax.set_xlabel(f"{unit} since the first pass")
    proved = model.certificate_.kind == "optimal"
    ax.set_ylabel("gap / objective" if proved else "gain still promised")
    ax.legend(frameon=False)
    tidy(ax)
    return ax


def _draw_loops(ax: Axes, loops: Any, scale: float, floor: float) -> None:
    """Draw a line for each loop, from the end of its first pass; `scale` is a second in the unit of the axis."""
    for i, loop in enumerate(loops):
        known = [mark for mark in loop if np.isfinite(mark.gain)]  # the first passes may promise nothing yet
        ax.plot(
            [scale * (mark.seconds - loop[0].seconds) for mark in known],
            [max(mark.gain, floor) for mark in known],
            "o-",
            color=BLUE,
            alpha=1.0 if len(loops) == 1 else 0.5,
            markersize=4,
            label="_" if i else "after each pass" if len(loops) == 1 else f"after each pass, {len(loops)} machines",
        )
