"""Pictures of networks: what their filters look for, where slopes vanish, and the mistakes they are surest of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from certifit.checkers.neural_network.adapter import perceptron_rows, read_perceptron
from certifit.checkers.neural_network.convolutional_adapter import image_rows, read_convolutional
from certifit.checkers.neural_network.network_loss import layer_slopes
from certifit.exceptions import DataError
from certifit.plots.fitted_models import ask, check_drawable
from certifit.plots.style import COLOURS, MARKERS, images_side_by_side, new_axes, shorten, tidy
from certifit.rows import Array


def plot_filters(model: Any, layer: int = 0, ax: Axes | None = None) -> Axes:
    """Draw the windows of a convolution's weights, one for each of its channels: dark where they look for much.

    Weights of several channels before it are averaged. Zero is the same grey in all of them.

    Parameters
    ----------
    model : fitted ConvNetClassifier
    layer : int, default=0
        Which of its convolutions.
    ax : Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from certifit import ConvNetClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> ax = plot_filters(ConvNetClassifier(max_iter=1, random_state=0).fit(X[:100] / 16, y[:100]))
    >>> ax.get_title("left")
    '16 filters of 3 x 3'
    """
    check_drawable(model, "a fitted ConvNetClassifier", "layers_", "coefs_")
    filters = [W for W in model.coefs_ if W.ndim == 4]
    if not 0 <= layer < len(filters):
        raise DataError(got=f"layer={layer!r} of {len(filters)} convolutions", wanted=f"0 to {len(filters) - 1}")
    windows = filters[layer].mean(axis=1)
    count, height, width = windows.shape
    columns = int(np.ceil(np.sqrt(2 * count)))
    ax = new_axes(ax, 0.55 * columns + 0.3, 0.55 * -(-count // columns) + 0.5)
    most = float(np.abs(windows).max()) or 1.0
    ax.imshow(images_side_by_side(windows, columns, 1), cmap="gray_r", vmin=-most, vmax=most, interpolation="nearest")
    ax.set_title(f"{count} filters of {height} x {width}", loc="left", fontsize=9)
    ax.set_axis_off()
    return ax


def plot_mistakes(model: Any, images: Any, y: Any, count: int = 12, ax: Axes | None = None) -> Axes:
    """Draw the images of whose wrong class a model is surest, with the class it chose and the true one.

    Parameters
    ----------
    model : fitted classifier of flat rows or images, of any library, with `predict_proba`
    images : (n, height, width[, channels]), or flat rows of square images
    y : (n,) true classes
    count : int, default=12
        At most so many.
    ax : Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from certifit import GaussianNB
    >>> X, y = load_digits(return_X_y=True)
    >>> ax = plot_mistakes(GaussianNB().fit(X, y), X, y)
    >>> len(ax.texts)
    12
    """
    check_drawable(model, "a fitted model with predict_proba", "predict_proba", "classes_")
    table, truth = np.asarray(images), np.asarray(y)
    if len(truth) != len(table):
        raise DataError(got=f"{len(table)} images and {len(truth)} classes", wanted="a class for each image")
    side = int(np.sqrt(table.shape[1]))
    pictures = table.reshape(len(table), side, -1) if table.ndim == 2 else table
    pictures = pictures.mean(axis=3) if pictures.ndim == 4 else pictures
    probability = ask(model, "predict_proba", images)
    chosen = np.asarray(model.classes_)[probability.argmax(axis=1)]
    wrong = np.flatnonzero(chosen != truth)
    wrong = wrong[np.argsort(-probability.max(axis=1)[wrong], kind="stable")][:count]
    columns = max(1, min(6, len(wrong)))
    ax = new_axes(ax, 1.1 * columns + 0.2, 1.35 * max(1, -(-len(wrong) // columns)) + 0.4)
    ax.set_title(f"{(chosen != truth).sum()} of {len(truth)} wrong, the surest first", loc="left", fontsize=9)
    ax.set_axis_off()
    if not len(wrong):
        return ax
    height, width = pictures.shape[1:]
    space = max(2, int(0.3 * height))
    sheet = images_side_by_side(pictures[wrong].astype(float), columns, space)
    ax.imshow(sheet, cmap="gray_r", interpolation="nearest")
    ax.set_ylim(len(sheet) + space, -0.5)  # room for the words below the last line
    for k, row in enumerate(wrong):
        left, top = k % columns * (width + space), k // columns * (height + space)
        words = f"{shorten(chosen[row], 8)} ({probability[row].max():.0%}), is {shorten(truth[row], 8)}"
        ax.text(left + width / 2, top + height + 0.4 * space, words, ha="center", va="center", fontsize=7)
    return ax


def plot_slope_sizes(models: Mapping[str, Any] | Any, X: Any, y: Any, ax: Axes | None = None) -> Axes:
    """Draw how large the slopes of the loss are in the weights of every layer: with sigmoids they vanish with depth.

    Parameters
    ----------
    models : mapping from a name to a fitted network, or one
        Perceptrons of certifit or scikit-learn, or convolutional networks. Few epochs show what training starts from.
    X, y : rows and their targets
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
    >>> deep = {a: MLPClassifier((8,) * 6, a, max_iter=1, random_state=0).fit(X, y) for a in ("relu", "logistic")}
    >>> ax = plot_slope_sizes(deep, X, y)
    >>> first, last = ax.lines[1].get_ydata()[[0, -1]]
    >>> bool(first < 1e-3 * last)
    True
    """
    models = dict(models) if isinstance(models, Mapping) else {"": models}
    ax = new_axes(ax, 5.6, 3.6)
    for k, (name, model) in enumerate(models.items()):
        check_drawable(model, "a fitted network", "coefs_", "intercepts_")
        sizes = _slope_sizes(model, X, y)
        colour, marker = COLOURS[k % len(COLOURS)], MARKERS[k % len(MARKERS)]
        ax.plot(np.arange(1, len(sizes) + 1), sizes, color=colour, marker=marker, markersize=5, label=shorten(name))
    ax.set_yscale("log")
    ax.set_xlabel("layer with weights, from the input")
    ax.set_ylabel("slope of the loss, root mean square")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    if len(models) > 1:
        ax.legend(frameon=False)
    tidy(ax)
    return ax


def _slope_sizes(model: Any, X: Any, y: Any) -> Array:
    """The root mean square of the mean loss's slopes in the weights of every layer."""
    if hasattr(model, "image_shape_"):
        claim = read_convolutional(model)
        rows = image_rows(model, claim, X, y, None)
    else:
        claim = read_perceptron(model)
        rows = perceptron_rows(model, claim, X, y, None)
    return np.array([np.sqrt(np.mean(slope**2)) for slope in layer_slopes(claim, rows)])
