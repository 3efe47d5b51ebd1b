"""How far every number of a row may move before a perceptron can choose another class: proved by linear bounds.

Each ReLU lies between two lines on the interval that its input can reach. Put in one after another, backward from the
scores to the row, they bound the lead of a class by a linear function of the row, whose worst case is plain: CROWN.
Reference: Zhang, Weng, Chen, Hsieh & Daniel, "Efficient neural network robustness certification with general
activation functions" (2018).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from certifit.checkers.fitted import fitted_rows
from certifit.checkers.neural_network.adapter import read_perceptron
from certifit.checkers.neural_network.network_loss import NetworkClaim, network_scores
from certifit.checkers.neural_network.plain_layers import PlainActivation, PlainDense
from certifit.checkers.plain.blocks import dense
from certifit.core import Setting
from certifit.exceptions import DataError
from certifit.rows import Array

_LEAKS = {"relu": 0.0, "leaky_relu": 0.01, "identity": 1.0}  # slope below 0


@dataclass(frozen=True)
class RobustnessTuning:
    """How radii are searched, and what rounding may do."""

    halvings: int = 20
    rows: int = 64  # at a time: bounds of a layer take rows * units * units numbers
    rounding: float = 1e-12  # relative to the sizes summed


class UnitBounds(NamedTuple):
    """Lines below and above each unit of a layer, for every row (n, units)."""

    below: Array  # slope of the line below, through 0
    above: Array  # slope of the line above
    offset: Array  # and its height at 0


def robust_radius(model: Any, X: Any, y: Any = None, *, most: float = 1.0) -> Array:
    """The largest proved eps of each row: no change of its numbers by up to eps each changes the predicted class.

    Parameters
    ----------
    model : fitted MLPClassifier of certifit or scikit-learn, with activation 'relu', 'leaky_relu' or 'identity'
    X : rows, in any form that `predict` takes
    y : the right classes, or None; rows that are predicted wrongly have a radius of 0
    most : the largest eps that is looked for

    Returns
    -------
    array (n,) : `(radius >= eps).mean()` is the proved share of rows whose class cannot change within eps
    """
    Setting(float, above=0, below=np.inf).check("most", most)
    claim = read_perceptron(model)
    leak = _leak(claim)
    if claim.output not in ("softmax", "logistic") or (claim.output == "logistic" and claim.outputs > 1):
        raise DataError(got=f"a {type(model).__name__}", wanted="a perceptron of classes, one for each row")
    data = fitted_rows(model, len(model.coefs_[0]), X, None, None, "none").load()
    table, right = dense(data.X), None if y is None else np.asarray(y)
    tuning = RobustnessTuning()
    radius = np.zeros(len(table))
    for start in range(0, len(table), tuning.rows):
        rows = slice(start, start + tuning.rows)
        lead, chosen = _leads(claim, table[rows])
        sure = np.ones(len(chosen), bool)
        if right is not None:
            sure = np.asarray(model.classes_)[chosen] == right[rows]
        radius[rows] = np.where(sure, _search(claim, leak, table[rows], lead, (float(most), tuning)), 0.0)
    return radius


def _leak(claim: NetworkClaim) -> float:
    names = {layer.name for layer in claim.layers if isinstance(layer, PlainActivation)} or {"identity"}
    name = names.pop()
    if name not in _LEAKS:
        raise DataError(
            got=f"activation={name!r}", wanted="'relu', 'leaky_relu' or 'identity', which lines can bound"
        )
    return _LEAKS[name]


def _leads(claim: NetworkClaim, X: Array) -> tuple[tuple[Array, Array], Array]:
    """Weights (n, q, units) and biases (n, q) of the leads of the predicted class over all others, and its number."""
    scores, last = network_scores(claim, X), claim.layers[-1]
    assert isinstance(last, PlainDense)
    if scores.shape[1] == 1:
        chosen = (scores[:, 0] > 0).astype(int)
        sign = np.where(chosen == 1, 1.0, -1.0)[:, None]
        return (sign[:, :, None] * last.W.T[None], sign * last.b), chosen
    chosen = scores.argmax(axis=1)
    others = np.array([[j for j in range(scores.shape[1]) if j != c] for c in chosen])
    W, b = last.W.T, last.b
    return (W[chosen][:, None] - W[others], b[chosen][:, None] - b[others]), chosen


def _search(
    claim: NetworkClaim, leak: float, X: Array, lead: tuple[Array, Array], how: tuple[float, RobustnessTuning]
) -> Array:
    """The largest eps for which every lead is proved positive, by halving; each value was proved by itself."""
    most, tuning = how
    low, high = np.zeros(len(X)), np.full(len(X), most)
    eps = high.copy()
    for _ in range(tuning.halvings):
        proved = _least(claim, leak, X, lead, (eps, tuning.rounding)).min(axis=1) > 0
        low, high = np.where(proved, eps, low), np.where(proved, high, eps)
        eps = 0.5 * (low + high)
    return low


def _least(
    claim: NetworkClaim, leak: float, X: Array, wanted: tuple[Array, Array], how: tuple[Array, float]
) -> Array:
    """Lower bounds (n, q) of linear functions of the last hidden layer, over all rows within eps."""
    dense_layers = [layer for layer in claim.layers if isinstance(layer, PlainDense)]
    units: list[UnitBounds] = []
    for k, layer in enumerate(dense_layers[:-1]):
        n = len(X)
        W = np.broadcast_to(layer.W.T, (n, *layer.W.T.shape))
        b = np.broadcast_to(layer.b, (n, len(layer.b)))
        low = _back(dense_layers[:k], units, X, (W, b), how)
        high = -_back(dense_layers[:k], units, X, (-W, -b), how)
        units.append(_lines(low, high, leak))
    return _back(dense_layers[:-1], units, X, wanted, how)


def _lines(low: Array, high: Array, leak: float) -> UnitBounds:
    """Lines below and above max(z, leak z) for low <= z <= high."""
    width = np.where(high > low, high - low, 1.0)
    crosses = (low < 0) & (high > 0)
    chord = np.where(crosses, (high - leak * low) / width, np.where(low >= 0, 1.0, leak))
    below = np.where(crosses, np.where(high > -low, 1.0, leak), chord)
    return UnitBounds(below, chord, np.where(crosses, high - chord * high, 0.0))


def _back(
    layers: list[PlainDense], units: list[UnitBounds], X: Array, wanted: tuple[Array, Array], how: tuple[Array, float]
) -> Array:
    """Lower bounds (n, q) of A·(output of these layers) + c: lines are put in from the last layer to the first."""
    (A, c), (eps, rounding) = wanted, how
    size = np.abs(c)
    for layer, lines in zip(reversed(layers), reversed(units[: len(layers)]), strict=True):
        up, down = np.maximum(A, 0.0), np.minimum(A, 0.0)
        added = np.einsum("nqm,nm->nq", down, lines.offset)
        A = up * lines.below[:, None, :] + down * lines.above[:, None, :]
        shift = A @ layer.b
        size = size + np.abs(added) + np.abs(A) @ np.abs(layer.b)
        A, c = A @ layer.W.T, c + added + shift
    middle, spread = np.einsum("nqd,nd->nq", A, X), np.abs(A).sum(axis=2) * eps[:, None]
    size = size + np.einsum("nqd,nd->nq", np.abs(A), np.abs(X)) + spread
    return middle - spread + c - rounding * size
