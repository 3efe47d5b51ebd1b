"""Margin losses in one picture, over the 0-1 loss that most of them bound."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from certifit.exceptions import DataError
from certifit.losses import Exponential, Hinge, HuberisedHinge, Logistic, MarginLoss, Quadratic, SquaredHinge, ZeroOne
from certifit.plots.style import COLOURS, GREY, new_axes, tidy


def plot_losses(losses: Sequence[MarginLoss] | MarginLoss | None = None, ax: Axes | None = None) -> Axes:
    """Draw losses against the margin, over the step of the 0-1 loss; dashed where they do not bound it from above.

    Every second line is thin, so that both are seen where it runs over the one before.

    Parameters
    ----------
    losses : losses of the margin, optional
        Those of `certifit.losses`; the best-known ones unless given.
    ax : Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from certifit.losses import Hinge, Logistic
    >>> ax = plot_losses([Hinge(), Logistic()])
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['0-1', 'hinge', 'logistic (not a bound)']
    """
    if losses is None:
        losses = (Hinge(), HuberisedHinge(), SquaredHinge(), Quadratic(), Logistic(base=2), Logistic(), Exponential())
    losses = [losses] if isinstance(losses, MarginLoss) else losses
    drawn = [loss for loss in losses if not isinstance(loss, ZeroOne)]
    for loss in drawn:
        if not isinstance(loss, MarginLoss):
            raise DataError(
                got=f"{loss!r}", wanted="losses of the margin", fix="A residual has no 0-1 loss to bound."
            )
    ax = new_axes(ax, 7.0, 4.6)
    left, right = -2.0, 3.0
    ax.fill_between([left, 0], 1, color=GREY, alpha=0.2, linewidth=0)
    ax.plot([left, 0, 0, right], [1, 1, 0, 0], color=GREY, linewidth=3, label=ZeroOne.name)
    m = np.linspace(left, right, 1001)
    for i, loss in enumerate(drawn):
        words, style = ("", "-") if loss.bounds_zero_one else (" (not a bound)", "--")
        colour, width = COLOURS[i % len(COLOURS)], (3.4, 1.4)[i % 2]
        ax.plot(
            m,
            loss.value(m),
            linestyle=style,
            color=colour,
            linewidth=width,
            zorder=2 + i % 2,
            label=loss.name + words,
        )
    ax.set_xlim(left, right)
    ax.set_ylim(-0.05, 4.0)
    ax.set_xlabel("margin y f   (an error up to 0)")
    ax.set_ylabel("loss")
    ax.legend(frameon=False)
    tidy(ax)
    return ax
