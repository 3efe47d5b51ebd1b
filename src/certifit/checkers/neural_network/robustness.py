"""How far every number of a row may move before a network can choose another class: proved by linear bounds.

Each ReLU lies between two lines on the interval that its input can reach, and so does the largest value of a pool.
Put in one after another, backward from the scores to the row, they bound the lead of a class by a linear function of
the row, whose worst case is plain: CROWN. Linear layers, convolutions among them, are put in by their transpose.
Reference: Zhang, Weng, Chen, Hsieh & Daniel, "Efficient neural network robustness certification with general
activation functions" (2018).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from certifit.checkers.fitted import fitted_rows
from certifit.checkers.neural_network.adapter import read_perceptron
from certifit.checkers.neural_network.convolutional_adapter import read_convolutional
from certifit.checkers.neural_network.network_loss import NetworkClaim, network_scores
from certifit.checkers.neural_network.plain_columns import PlainRobustColumns
from certifit.checkers.neural_network.plain_layers import (
    PlainActivation,
    PlainConvolution,
    PlainFlatten,
    PlainLayer,
    PlainPool,
    PlainReshape,
)
from certifit.checkers.plain.blocks import dense
from certifit.core import Setting
from certifit.exceptions import DataError
from certifit.rows import Array

_LEAKS = {"relu": 0.0, "leaky_relu": 0.01, "identity": 1.0}  # slope below 0


@dataclass(frozen=True)
class RobustnessTuning:
    """How radii are searched, and what rounding may do."""

    halvings: int = 20
    rows: int = 64  # at a time
    entries: int = 1 << 22  # of bounds at a time: those of a layer take rows * units * units numbers
    rounding: float = 1e-12  # relative to the sizes summed


class UnitLines(NamedTuple):
    """Lines below and above each unit of a layer, for every row (n, *units)."""

    below: Array  # slope of the line below, through 0
    above: Array  # slope of the line above
    offset: Array  # and its height at 0


class PoolLines(NamedTuple):
    """Lines below and above the largest value of each window, for every row (n, *outputs)."""

    place: Array  # of the window, whose value is below: the one with the highest lower bound
    sure: Array  # whether that is the largest, so that it is above too
    most: Array  # a height that no value of the window exceeds


class BoundedLayer(NamedTuple):
    """A layer, the shape of its rows, and lines where it is not linear."""

    layer: PlainLayer
    shape: tuple[int, ...]
    lines: UnitLines | PoolLines | None


def read_network(model: Any) -> NetworkClaim:
    """The network of a fitted model: a perceptron, a convolutional network, or one that was read from a file."""
    if hasattr(model, "network_claim"):
        return model.network_claim()
    return read_convolutional(model) if hasattr(model, "image_shape_") else read_perceptron(model)


def robust_radius(model: Any, X: Any, y: Any = None, *, most: float = 1.0) -> Array:
    """The largest proved eps of each row: no change of its numbers by up to eps each changes the predicted class.

    Parameters
    ----------
    model : fitted MLPClassifier of certifit or scikit-learn, ConvNetClassifier, or network read by `load_onnx`, whose
        activations are 'relu', 'leaky_relu' or 'identity'; the time grows with the square of its units
    X : rows, in any form that `predict` takes
    y : the right classes, or None; rows that are predicted wrongly have a radius of 0
    most : the largest eps that is looked for

    Returns
    -------
    array (n,) : `(radius >= eps).mean()` is the proved share of rows whose class cannot change within eps

    >>> from certifit import MLPClassifier
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    >>> network = MLPClassifier((2,), solver="lbfgs", alpha=0.1, random_state=0).fit(X, y)
    >>> (robust_radius(network, [[0.0], [3.0], [1.5]]) >= 0.9).tolist()  # 1.5 lies where the class changes
    [True, True, False]
    """
    Setting(float, above=0, below=np.inf).check("most", most)
    claim = read_network(model)
    _refuse_curved(claim)
    if claim.output not in ("softmax", "logistic") or (claim.output == "logistic" and claim.outputs > 1):
        raise DataError(got=f"a {type(model).__name__}", wanted="a network of classes, one for each row")
    X = X.reshape(len(X), -1) if isinstance(X, np.ndarray) and X.ndim > 2 else X
    table = dense(fitted_rows(model, int(model.n_features_in_), X, None, None, "none").load().X)
    right, tuning = None if y is None else np.asarray(y), RobustnessTuning()
    radius = np.zeros(len(table))
    for start in range(0, len(table), tuning.rows):
        rows = slice(start, start + tuning.rows)
        lead, chosen = _leads(claim, table[rows])
        sure = np.ones(len(chosen), bool)
        if right is not None:
            sure = np.asarray(model.classes_)[chosen] == right[rows]
        radius[rows] = np.where(sure, _search(claim, table[rows], lead, (float(most), tuning)), 0.0)
    return radius


def _refuse_curved(claim: NetworkClaim) -> None:
    """Refuse activations that no two lines of this proof bound."""
    for layer in claim.layers:
        if isinstance(layer, PlainRobustColumns):
            raise DataError(
                got="preset='tabular'", wanted="a network without embeddings: no two lines bound a cosine"
            )
        if isinstance(layer, PlainActivation) and layer.name not in _LEAKS:
            raise DataError(
                got=f"activation={layer.name!r}", wanted="'relu', 'leaky_relu' or 'identity', which lines can bound"
            )


def _leads(claim: NetworkClaim, X: Array) -> tuple[Array, Array]:
    """Leads of the predicted class over all others as weights of the scores (n, q, k), and its number."""
    scores = network_scores(claim, X)
    if scores.shape[1] == 1:
        chosen = (scores[:, 0] > 0).astype(int)
        return np.where(chosen == 1, 1.0, -1.0)[:, None, None], chosen
    chosen = scores.argmax(axis=1)
    every = np.eye(scores.shape[1])
    others = np.array([[j for j in range(scores.shape[1]) if j != c] for c in chosen])
    return every[chosen][:, None] - every[others], chosen


def _search(claim: NetworkClaim, X: Array, lead: Array, how: tuple[float, RobustnessTuning]) -> Array:
    """The largest eps for which every lead is proved positive, by halving; each value was proved by itself."""
    most, tuning = how
    low, high = np.zeros(len(X)), np.full(len(X), most)
    eps = high.copy()
    for _ in range(tuning.halvings):
        proved = _least(claim, X, lead, eps, tuning).min(axis=1) > 0
        low, high = np.where(proved, eps, low), np.where(proved, high, eps)
        eps = 0.5 * (low + high)
    return low


def _least(claim: NetworkClaim, X: Array, lead: Array, eps: Array, tuning: RobustnessTuning) -> Array:
    """Lower bounds (n, q) of linear functions of the scores, over all rows within eps."""
    layers: list[BoundedLayer] = []
    x = np.zeros((1, X.shape[1]))  # goes along for its shape
    for layer in claim.layers:
        lines: UnitLines | PoolLines | None = None
        pool = isinstance(layer, PlainPool) and layer.largest
        if pool or (isinstance(layer, PlainActivation) and layer.name != "identity"):
            low, high = _unit_bounds(layers, x.shape[1:], X, eps, tuning)
            if isinstance(layer, PlainPool):
                lines = _pool_lines(layer, low, high)
            elif isinstance(layer, PlainActivation):
                lines = _unit_lines(low, high, _LEAKS[layer.name])
        layers.append(BoundedLayer(layer, x.shape[1:], lines))
        x = layer.forward(x)[0]
    return _back(layers, X, lead, eps, tuning.rounding)


def _unit_bounds(
    layers: list[BoundedLayer], shape: tuple[int, ...], X: Array, eps: Array, tuning: RobustnessTuning
) -> tuple[Array, Array]:
    """The least and the largest that each unit behind these layers can be, (n, *shape)."""
    units = int(np.prod(shape))
    widest = max([units, *(int(np.prod(one.shape)) for one in layers)])
    step = max(1, tuning.entries // (len(X) * widest))
    low, high = np.empty((len(X), units)), np.empty((len(X), units))
    for start in range(0, units, step):
        some = np.eye(min(step, units - start), units, start).reshape(1, -1, *shape)
        here = slice(start, start + step)
        low[:, here] = _back(layers, X, some, eps, tuning.rounding)
        high[:, here] = -_back(layers, X, -some, eps, tuning.rounding)
    return low.reshape(-1, *shape), high.reshape(-1, *shape)


def _unit_lines(low: Array, high: Array, leak: float) -> UnitLines:
    """Lines below and above max(z, leak z) for low <= z <= high."""
    width = np.where(high > low, high - low, 1.0)
    crosses = (low < 0) & (high > 0)
    chord = np.where(crosses, (high - leak * low) / width, np.where(low >= 0, 1.0, leak))
    below = np.where(crosses, np.where(high > -low, 1.0, leak), chord)
    return UnitLines(below, chord, np.where(crosses, high - chord * high, 0.0))


def _pool_lines(pool: PlainPool, low: Array, high: Array) -> PoolLines:
    """Lines below and above the largest value of each window whose values lie between low and high."""
    best, (_, place) = pool.forward(low)
    others = pool.windows(high)
    mine = np.arange(len(others)).reshape(-1, *(1,) * place.ndim) == place
    return PoolLines(place, best >= np.where(mine, -np.inf, others).max(axis=0), others.max(axis=0))


def _back(layers: list[BoundedLayer], X: Array, A: Array, eps: Array, rounding: float) -> Array:
    """Lower bounds (n, q) of A·(output of these layers): lines are put in from the last layer to the first."""
    c = size = np.zeros(A.shape[:2])
    for layer, shape, lines in reversed(layers):
        others = tuple(range(2, A.ndim))
        if isinstance(lines, UnitLines):
            up, down = np.maximum(A, 0.0), np.minimum(A, 0.0)
            added = (down * lines.offset[:, None]).sum(axis=others)
            A = up * lines.below[:, None] + down * lines.above[:, None]
            c, size = c + added, size + np.abs(added)
        elif isinstance(lines, PoolLines):
            loose = np.minimum(A, 0.0) * ~lines.sure[:, None]
            added = (loose * lines.most[:, None]).sum(axis=others)
            A = A - loose
            place = np.broadcast_to(lines.place[:, None], A.shape).reshape(-1, *A.shape[2:])
            A = _transposed(layer, A, shape, place)
            c, size = c + added, size + np.abs(added)
        else:
            constant = layer.forward(np.zeros((1, *shape)))[0][0]
            c, size = c + (A * constant).sum(axis=others), size + np.abs(A * constant).sum(axis=others)
            A = _transposed(layer, A, shape)
    spread = np.abs(A).sum(axis=2) * eps[:, None]
    middle = (A * X[:, None]).sum(axis=2)
    size = size + (np.abs(A) * np.abs(X[:, None])).sum(axis=2) + spread
    return middle - spread + c - rounding * size


def _transposed(layer: PlainLayer, A: Array, shape: tuple[int, ...], place: Array | None = None) -> Array:
    """Weights of a layer's input (n, q, *shape) from those of its output: its chain rule without its biases."""
    rows = A.shape[0] * A.shape[1]
    memory: Any = None
    if isinstance(layer, PlainConvolution):
        memory = np.broadcast_to(0.0, (rows, *shape))
    elif isinstance(layer, PlainPool):
        memory = ((rows, *shape), place)
    elif isinstance(layer, (PlainFlatten, PlainReshape)):
        memory = (rows, *shape)
    elif isinstance(layer, PlainActivation):
        memory = 1.0
    return layer.backward(A.reshape(rows, *A.shape[2:]), memory).reshape(*A.shape[:2], *shape)
