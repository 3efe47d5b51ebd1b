"""Pictures of networks: filters, vanishing slopes, the surest mistakes, and the numbers of back-propagation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from certifit.checkers.neural_network.adapter import perceptron_rows, read_perceptron
from certifit.checkers.neural_network.convolutional_adapter import image_rows, read_convolutional
from certifit.checkers.neural_network.network_loss import NetworkClaim, layer_slopes, row_losses, target_table
from certifit.checkers.neural_network.plain_layers import (
    PlainActivation,
    PlainConvolution,
    PlainDense,
    PlainFlatten,
)
from certifit.exceptions import DataError
from certifit.plots.fitted_models import ask, check_drawable
from certifit.plots.style import COLOURS, MARKERS, images_side_by_side, new_axes, shorten, tidy
from certifit.rows import Array, ArrayRows


class PictureSheet(NamedTuple):
    """Pictures of one size that are drawn side by side."""

    pictures: Array  # (count, height, width)
    columns: int
    space: int  # pixels between two of them
    inches: tuple[float, float]  # that one takes, in width and in height
    between: str = "white"  # the colour between them


def _broad_columns(count: int) -> int:
    """The columns of a sheet that is twice as broad as tall."""
    return int(np.ceil(np.sqrt(2 * count)))


def _draw_sheet(ax: Axes | None, sheet: PictureSheet, title: str, **scale: Any) -> Axes:
    """Draw pictures side by side in greys, dark where they are large, below a title."""
    lines, (width, height) = max(1, -(-len(sheet.pictures) // sheet.columns)), sheet.inches
    ax = new_axes(ax, max(width * sheet.columns + 0.3, 2.8), height * lines + 0.5)
    ax.set_title(title, loc="left", fontsize=9)
    ax.set_axis_off()
    if len(sheet.pictures):
        grey = colormaps["gray_r"].with_extremes(bad=sheet.between)
        pixels = images_side_by_side(sheet.pictures, sheet.columns, sheet.space)
        ax.imshow(pixels, cmap=grey, interpolation="nearest", **scale)
    return ax


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
    most = float(np.abs(windows).max()) or 1.0
    sheet = PictureSheet(windows, _broad_columns(count), 1, (0.55, 0.55))
    return _draw_sheet(ax, sheet, f"{count} filters of {height} x {width}", vmin=-most, vmax=most)


def plot_feature_maps(model: Any, image: Any, layer: int = 0, ax: Axes | None = None) -> Axes:
    """Draw what a convolution makes of one image: a map for each of its channels, dark where it found its pattern.

    Maps are those that the next convolution or dense layer sees, behind the activation and the pool that follow, on
    one scale. The image itself is the first of the pictures.

    Parameters
    ----------
    model : fitted ConvNetClassifier
    image : (height, width[, channels]), or one flat row
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
    >>> model = ConvNetClassifier(max_iter=1, random_state=0).fit(X[:100] / 16, y[:100])
    >>> ax = plot_feature_maps(model, X[0] / 16)
    >>> ax.get_title("left")
    '16 maps of 4 x 4 behind convolution 1'
    """
    check_drawable(model, "a fitted ConvNetClassifier", "layers_", "coefs_")
    height, width, channels = model.image_shape_
    row = np.asarray(image, dtype=np.float64)
    if row.size != height * width * channels:
        raise DataError(got=f"an image of shape {row.shape}", wanted=f"one of shape {tuple(model.image_shape_)}")
    maps = feature_maps(read_convolutional(model), row.reshape(1, -1), layer)
    count, tall, broad = maps.shape
    # Maps are drawn as large as the image, whose own numbers take their scale.
    place = np.ix_(np.arange(height) * tall // height, np.arange(width) * broad // width)
    least, most = min(0.0, float(maps.min())), float(maps.max())
    own = row.reshape(height, width, channels).mean(axis=2)
    own = least + (own - own.min()) / ((own.max() - own.min()) or 1.0) * (most - least)
    pictures = np.stack([own, *(one[place] for one in maps)])
    sheet = PictureSheet(pictures, _broad_columns(count + 1), max(1, height // 12), (0.6, 0.6), "0.9")
    words = f"{count} maps of {tall} x {broad} behind convolution {layer + 1}"
    return _draw_sheet(ax, sheet, words, vmin=least, vmax=most if most > least else least + 1.0)


def feature_maps(claim: NetworkClaim, row: Array, layer: int) -> Array:
    """The channels (channels, height, width) of one flat row behind a convolution, as the next layer sees them."""
    convolutions = sum(isinstance(one, PlainConvolution) for one in claim.layers)
    if not 0 <= layer < convolutions:
        raise DataError(got=f"layer={layer!r} of {convolutions} convolutions", wanted=f"0 to {convolutions - 1}")
    passed, x = 0, row
    for one in claim.layers:
        passed += isinstance(one, PlainConvolution)
        if isinstance(one, PlainFlatten) or passed > layer + 1:
            break
        x = one.forward(x)[0]
    return np.asarray(x[0])


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
    columns, (height, width) = max(1, min(6, len(wrong))), pictures.shape[1:]
    space = max(2, int(0.3 * height))
    sheet = PictureSheet(pictures[wrong].astype(float), columns, space, (1.1, 1.35))
    ax = _draw_sheet(ax, sheet, f"{(chosen != truth).sum()} of {len(truth)} wrong, the surest first")
    ax.set_ylim(-(-len(wrong) // columns) * (height + space), -0.5)  # room for the words below the last line
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


def plot_backpropagation(model: Any, x: Any, y: Any, ax: Axes | None = None) -> Axes:
    """Draw a small network with the numbers that flow through it, forward for one row and back from its loss.

    A unit has its value above and, in colour, the slope of the loss in it below: by how much the loss grows if the
    value does. A line has its weight, and below it the slope in that weight: the slope of the unit it leads to times
    the value of the unit it comes from. Each slope follows from those to its right: that is back-propagation.

    Parameters
    ----------
    model : fitted perceptron of certifit or scikit-learn, of at most 8 units in a layer and 8 layers
    x : one row (d,)
    y : its class or amount
    ax : Axes, optional
        Where to draw; a new figure unless given.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import MLPRegressor
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> model = MLPRegressor(hidden_layer_sizes=(2,), max_iter=1, random_state=0).fit(X, [0.0, 1.0, 2.0])
    >>> ax = plot_backpropagation(model, X[2], 2.0)
    >>> [text.get_text() for text in ax.texts if text.get_text().isalpha()]
    ['row', 'relu', 'scores']
    """
    check_drawable(model, "a fitted perceptron", "coefs_", "intercepts_")
    if getattr(model, "preset", None) is not None:
        raise DataError(got=f"preset={model.preset!r}", wanted="a perceptron whose columns go straight to units")
    claim = read_perceptron(model)
    widest = max(len(model.coefs_[0]), *(len(b) for b in model.intercepts_))
    if widest > 8 or len(claim.layers) > 8:
        raise DataError(
            got=f"{len(claim.layers)} layers of up to {widest} units", wanted="at most 8 of each",
            fix="Fit a smaller network: the picture shows every number.",
        )  # fmt: skip
    values, slopes, loss = numbers_both_ways(claim, _one_row(model, x, y))
    ax = new_axes(ax, 1.9 * len(values) + 0.6, 1.05 * widest + 1.0)
    places = [(np.arange(len(v))[::-1] - (len(v) - 1) / 2) for v in values]
    for k, layer in enumerate(claim.layers):
        _draw_lines(ax, k, layer, places, (values, slopes))
    names = ["row", *(layer.name if isinstance(layer, PlainActivation) else "x W + b" for layer in claim.layers)]
    names[-1] = "scores"
    for k, (name, column, value, slope) in enumerate(zip(names, places, values, slopes, strict=True)):
        ax.scatter(np.full(len(column), k), column, s=1100, color="white", edgecolor="0.3", zorder=2)
        ax.text(k, widest / 2 + 0.25, name, ha="center", fontsize=8)
        for place, number, steep in zip(column, value, slope, strict=True):
            ax.text(k, place + 0.1, f"{number:.2g}", ha="center", va="center", fontsize=8, zorder=3)
            colour = COLOURS[1]
            ax.text(k, place - 0.12, f"{steep:.2g}", ha="center", va="center", fontsize=7, color=colour, zorder=3)
    ax.set_title(f"loss {loss:.3g}: values forward, its slopes back (in colour)", loc="left", fontsize=9)
    ax.set_xlim(-0.4, len(values) - 0.6)
    ax.set_ylim(-widest / 2 - 0.2, widest / 2 + 0.5)
    ax.set_axis_off()
    return ax


def _one_row(model: Any, x: Any, y: Any) -> ArrayRows:
    """A row and its target as the checker reads them."""
    row, target = np.asarray(x, dtype=np.float64).reshape(1, -1), np.atleast_1d(np.asarray(y))
    if row.shape[1] != len(model.coefs_[0]):
        raise DataError(got=f"a row of {row.shape[1]} numbers", wanted=f"the {len(model.coefs_[0])} of the network")
    if not hasattr(model, "classes_") or len(target) > 1:
        return ArrayRows(row, target[None])
    known = np.flatnonzero(np.asarray(model.classes_) == target[0])
    if not len(known):
        raise DataError(got=f"the class {y!r}", wanted=f"one of {np.asarray(model.classes_).tolist()}")
    return ArrayRows(row, known)


def numbers_both_ways(claim: NetworkClaim, row: ArrayRows) -> tuple[list[Array], list[Array], float]:
    """The values of a row's units, layer by layer, the slopes of its loss in them, and the loss."""
    x = row.X
    values, memories = [x[0]], []
    for layer in claim.layers:
        x, memory = layer.forward(x)
        memories.append(memory)
        values.append(x[0])
    loss, delta = row_losses(claim.output, x, target_table(claim, np.asarray(row.y)))
    slopes = [delta[0]]
    for layer, memory in zip(reversed(claim.layers), reversed(memories), strict=True):
        delta = layer.backward(delta, memory)
        slopes.insert(0, delta[0])
    # Adding 0 makes -0 a plain 0.
    return [value + 0.0 for value in values], [slope + 0.0 for slope in slopes], float(loss[0])


def _draw_lines(ax: Axes, k: int, layer: Any, places: list[Array], numbers: tuple[list[Array], list[Array]]) -> None:
    """The lines from one layer's units to the next one's; with weights, and slopes in them, where there are few."""
    (values, slopes), weighted = numbers, isinstance(layer, PlainDense)
    few = weighted and layer.W.size <= 16
    taken: list[tuple[float, float]] = []
    for i, left in enumerate(places[k]):
        for j, right in enumerate(places[k + 1]):
            if not weighted and i != j:
                continue
            width = 0.4 + 1.6 * min(1.0, abs(float(layer.W[i, j]))) if weighted else 0.8
            ax.plot([k, k + 1], [left, right], color="0.75", linewidth=width, zorder=1)
            if few:
                share, at = _free_place(left, right, taken)
                taken.append((share, at))
                slope = values[k][i] * slopes[k + 1][j] + 0.0
                ax.text(k + share, at + 0.05, f"{layer.W[i, j]:.2g}", ha="center", fontsize=6, color="0.35")
                ax.text(k + share, at - 0.12, f"{slope:.2g}", ha="center", fontsize=6, color=COLOURS[1])


def _free_place(left: float, right: float, taken: list[tuple[float, float]]) -> tuple[float, float]:
    """Where on a line two numbers are furthest from those of other lines: the share of the way, and the height."""
    shares = np.linspace(0.24, 0.76, 14)
    spots = np.column_stack([shares, left + shares * (right - left)])
    size = np.array([0.2, 0.34])  # of the numbers, in units of the picture
    free = [min((np.hypot(*((spot - other) / size)) for other in taken), default=0.0) for spot in spots]
    share, height = spots[int(np.argmax(np.minimum(free, 1.5)))]  # far enough is enough
    return float(share), float(height)


def _slope_sizes(model: Any, X: Any, y: Any) -> Array:
    """The root mean square of the mean loss's slopes in the weights of every layer."""
    if hasattr(model, "image_shape_"):
        claim = read_convolutional(model)
        rows = image_rows(model, claim, X, y, None)
    else:
        claim = read_perceptron(model)
        rows = perceptron_rows(model, claim, X, y, None)
    return np.array([np.sqrt(np.mean(slope**2)) for slope in layer_slopes(claim, rows)])
