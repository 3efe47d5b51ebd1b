"""Pictures of a classifier: its coefficients and where it errs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from certifit.plots.style import BLUE, RED, new_axes, plain, shorten, tidy
from certifit.rows import Array

MOST_NAMES = 50  # classes whose names fit on an axis


def plot_coefficients(
    coef: Array, features: Sequence[str], classes: Sequence[str], ax: Axes | None = None, most: int = 20
) -> Axes:
    """Coefficients (k, d) of the features that matter most: bars for two classes, a coloured table for more.

    With two classes `coef` has one row, which speaks for the second class.

    >>> ax = plot_coefficients(np.array([[1.0, -2.0]]), ["height", "age"], ["no", "yes"])
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['age', 'height']
    """
    order = np.argsort(-np.abs(coef).max(axis=0), kind="stable")[:most]
    k, place = len(coef), np.arange(len(order))
    ax = new_axes(ax, 6.4 if k == 1 else float(np.clip(3.0 + 0.8 * k, 4.5, 12.0)), 1.2 + 0.26 * len(order))
    if k == 1:
        ax.barh(place, coef[0, order], color=np.where(coef[0, order] < 0, RED, BLUE), height=0.7)
        ax.axvline(0, color="black", linewidth=0.8)
        plain(ax.set_xlabel(f"← {shorten(classes[0])}      coefficient      {shorten(classes[1])} →"))
        ax.invert_yaxis()
        tidy(ax)
    else:
        shown = coef[:, order].T  # (features, k)
        largest = max(float(np.abs(shown).max()), 1e-300)
        ax.imshow(shown, cmap="RdBu", vmin=-largest, vmax=largest, aspect="auto")
        if k <= 10:
            for i, j in np.ndindex(*shown.shape):
                colour = "white" if abs(shown[i, j]) > 0.6 * largest else "black"
                ax.text(j, i, f"{shown[i, j]:.2f}", ha="center", va="center", color=colour, fontsize=8)
        _name_columns(ax, classes)
    ax.set_yticks(place, [shorten(features[j]) for j in order], fontsize=8)
    plain(*ax.get_yticklabels())
    return ax


def _name_columns(ax: Axes, classes: Sequence[str]) -> None:
    """Class names below the columns: upright while there are few, none where they would not be readable."""
    slant: dict[str, Any] = {"rotation": 45, "ha": "right"} if len(classes) > 4 else {}
    names = [shorten(name, 16) for name in classes] if len(classes) <= MOST_NAMES else []
    ax.set_xticks(range(len(names)), names, fontsize=8, **slant)
    plain(*ax.get_xticklabels())


def plot_confusion(counts: Array, classes: Sequence[str], ax: Axes | None = None) -> Axes:
    """Counts (k, k) of true class (rows) by predicted class (columns); shading is the share of the true class.

    >>> ax = plot_confusion(np.array([[9, 1], [2, 8]]), ["no", "yes"])
    >>> [text.get_text() for text in ax.texts]
    ['9', '1', '2', '8']
    """
    k = len(classes)
    size = float(np.clip(1.8 + 0.55 * k, 3.0, 12.0))
    ax = new_axes(ax, size + 0.8, size)
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    ax.imshow(share, cmap="Blues", vmin=0, vmax=1)
    if k <= 20:
        for i, j in np.ndindex(k, k):
            colour = "white" if share[i, j] > 0.5 else "black"
            ax.text(j, i, f"{counts[i, j]:g}", ha="center", va="center", color=colour, fontsize=9)
    _name_columns(ax, classes)
    names = [shorten(name, 16) for name in classes] if k <= MOST_NAMES else []
    ax.set_yticks(range(len(names)), names, fontsize=8)
    plain(*ax.get_yticklabels())
    ax.set_xlabel("predicted")
    ax.set_ylabel("true")
    return ax
