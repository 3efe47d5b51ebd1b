"""A picture of how many units of a network are at work for a row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, PercentFormatter

from certifit.checkers.neural_network.adapter import read_perceptron
from certifit.checkers.neural_network.convolutional_adapter import read_convolutional
from certifit.checkers.neural_network.network_loss import NetworkClaim
from certifit.checkers.neural_network.plain_layers import PlainActivation
from certifit.exceptions import DataError
from certifit.plots.fitted_models import check_drawable
from certifit.plots.style import COLOURS, MARKERS, new_axes, shorten, tidy
from certifit.rows import Array


def plot_active_units(models: Mapping[str, Any] | Any, X: Any, ax: Axes | None = None) -> Axes:
    """Draw the share of each layer's units that are not 0, over rows: ReLUs make sparse codes, sigmoids do not.

    Parameters
    ----------
    models : mapping from a name to a fitted network, or one
        Perceptrons of certifit or scikit-learn with hidden layers, or convolutional networks.
    X : rows or images
    ax : Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from certifit import MLPClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> deep = {a: MLPClassifier((8,) * 3, a, max_iter=1, random_state=0).fit(X, y) for a in ("relu", "logistic")}
    >>> ax = plot_active_units(deep, X)
    >>> sparse, full = (line.get_ydata() for line in ax.lines)
    >>> bool((sparse < 0.8).all()), full.tolist()
    (True, [1.0, 1.0, 1.0])
    """
    models = dict(models) if isinstance(models, Mapping) else {"": models}
    ax = new_axes(ax, 5.6, 3.6)
    for k, (name, model) in enumerate(models.items()):
        check_drawable(model, "a fitted network", "coefs_", "intercepts_")
        claim = read_convolutional(model) if hasattr(model, "image_shape_") else read_perceptron(model)
        shares = active_shares(claim, X)
        colour, marker = COLOURS[k % len(COLOURS)], MARKERS[k % len(MARKERS)]
        ax.plot(np.arange(1, len(shares) + 1), shares, color=colour, marker=marker, markersize=5, label=shorten(name))
    ax.set_ylim(0, 1.05)
    ax.yaxis.set_major_formatter(PercentFormatter(1))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlabel("layer of activations, from the input")
    ax.set_ylabel("units that are not 0")
    if len(models) > 1:
        ax.legend(frameon=False)
    tidy(ax)
    return ax


def active_shares(claim: NetworkClaim, X: Any, piece: int = 64) -> Array:
    """The share of values that are not 0 behind each activation, over all rows; some rows at a time."""
    counts = np.zeros(sum(isinstance(layer, PlainActivation) for layer in claim.layers))
    if not len(counts):
        raise DataError(got="a network without hidden layers", wanted="one with activations")
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    for start in range(0, n, piece):
        rows = X.iloc[start : start + piece] if hasattr(X, "iloc") else X[start : start + piece]
        x = np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=np.float64)
        x, passed = x.reshape(len(x), -1), 0
        for layer in claim.layers:
            before, x = len(x), layer.forward(x)[0]
            if isinstance(layer, PlainActivation):
                counts[passed] += before * np.mean(x != 0)
                passed += 1
    return counts / n


__all__ = ["active_shares", "plot_active_units"]
