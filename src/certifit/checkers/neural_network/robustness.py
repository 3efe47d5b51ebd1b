"""How far every number of a row may move before a network can choose another class: proved by linear bounds.

Each ReLU lies between two lines on the interval that its input can reach, and so does the largest value of a pool.
Put in one after another, backward from the scores to the row, they bound the lead of a class by a linear function of
the row, whose worst case is plain: CROWN. Linear layers, convolutions among them, are put in by their transpose.
Reference: Zhang, Weng, Chen, Hsieh & Daniel, "Efficient neural network robustness certification with general
activation functions" (2018).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from certifit.checkers.fitted import fitted_rows
from certifit.checkers.neural_network.adapter import read_perceptron
from certifit.checkers.neural_network.convolutional_adapter import read_convolutional
from certifit.checkers.neural_network.network_loss import NetworkClaim, network_scores
from certifit.checkers.neural_network.plain_columns import PlainRobustColumns
from certifit.checkers.neural_network.plain_layers import (
    PlainActivation,
    PlainConvolution,
    PlainDense,
    PlainFlatten,
    PlainLayer,
    PlainNormalisation,
    PlainPool,
    PlainReshape,
)
from certifit.checkers.neural_network.receptive_fields import (
    BoundedLayer,
    PoolLines,
    SeenWindows,
    UnitLines,
    least_of_units,
    numbers_of_window,
    see_windows,
)
from certifit.checkers.plain.blocks import dense
from certifit.core import Setting
from certifit.exceptions import DataError
from certifit.rows import Array

LINEAR = PlainDense, PlainConvolution, PlainNormalisation
_LEAKS = {"relu": 0.0, "leaky_relu": 0.01, "identity": 1.0}  # slope below 0


@dataclass(frozen=True)
class RobustnessTuning:
    """How radii are searched, and what rounding may do."""

    resolution: float = 2.0**-20  # of a radius, in the largest that is looked for
    most_trials: int = 60  # values of eps for a row
    rows: int = 16  # at a time
    entries: int = 1 << 19  # numbers at a time, which the cache holds
    rounding: float = 1e-12  # relative to the sizes of all terms that are added up


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
    """The largest eps for which every lead is proved positive; each value was proved by itself.

    Between the last that was proved and the first that was not, the next is where a line through their leads
    vanishes (the Illinois method); rows whose interval is short enough are left alone.
    """
    most, tuning = how
    short = tuning.resolution * most
    at_low, high = _changes(claim, X, lead, most)
    low, at_high = np.zeros(len(X)), -at_low
    whole = np.flatnonzero(high == np.inf)
    if len(whole):
        high[whole] = most
        at_high[whole] = _least(claim, X[whole], lead[whole], high[whole], tuning).min(axis=1)
        low[whole] = np.where(at_high[whole] > 0, most, 0.0)
    below = np.zeros(len(X), bool)  # whether the last trial was proved
    for _ in range(tuning.most_trials):
        rows = np.flatnonzero(high - low > short)
        if not len(rows):
            break
        a, b, before = at_low[rows], at_high[rows], below[rows]
        eps = low[rows] + np.clip(a / (a - b), 0.05, 0.95) * (high - low)[rows]
        # A little to the other side of where the line vanishes: if that is right, both ends are near.
        eps = np.clip(eps + np.where(before, 0.4, -0.4) * short, low[rows] + 0.25 * short, high[rows] - 0.25 * short)
        found = _least(claim, X[rows], lead[rows], eps, tuning).min(axis=1)
        proved = found > 0
        # An end that stays twice has its lead halved, so that the other comes nearer next time.
        at_low[rows] = np.where(proved, found, np.where(before, a, 0.5 * a))
        at_high[rows] = np.where(proved, np.where(before, 0.5 * b, b), found)
        low[rows], high[rows] = np.where(proved, eps, low[rows]), np.where(proved, high[rows], eps)
        below[rows] = proved
    return low


def _changes(claim: NetworkClaim, X: Array, lead: Array, most: float) -> tuple[Array, Array]:
    """The smallest lead of each row, and an eps at which a move along its slope loses it, or infinity.

    Nothing is proved by that: it tells where no proof can be found, so that none is looked for.
    """
    x, memories = X, []
    for layer in claim.layers:
        x, memory = layer.forward(x)
        memories.append(memory)
    leads = (lead * x[:, None]).sum(axis=2)
    at = np.arange(len(X))
    delta = lead[at, leads.argmin(axis=1)]
    for layer, memory in zip(reversed(claim.layers), reversed(memories), strict=True):
        delta = layer.backward(delta, memory)
    eps, changed = most, np.full(len(X), np.inf)
    while eps > 1e-3 * most:
        scores = network_scores(claim, X - eps * np.sign(delta))
        changed[(lead * scores[:, None]).sum(axis=2).min(axis=1) < 0] = eps
        eps *= 0.5
    return leads.min(axis=1), changed


def _least(claim: NetworkClaim, X: Array, lead: Array, eps: Array, tuning: RobustnessTuning) -> Array:
    """Lower bounds (n, q) of linear functions of the scores, over all rows within eps."""
    layers: list[BoundedLayer] = []
    box = X - eps[:, None], X + eps[:, None]
    # Intervals are as good as lines behind one layer that mixes numbers which move by themselves.
    mixed = 0
    for number, layer in enumerate(claim.layers):
        lines: UnitLines | PoolLines | None = None
        shape = box[0].shape[1:]
        pool = isinstance(layer, PlainPool) and layer.largest
        if pool or (isinstance(layer, PlainActivation) and layer.name != "identity"):
            if mixed > 1:
                box = _narrow(layers, box, _open_units(claim.layers[number:], *box), (X, eps, tuning))
            if isinstance(layer, PlainPool):
                lines = _pool_lines(layer, *box)
            elif isinstance(layer, PlainActivation):
                lines = _unit_lines(*box, _LEAKS[layer.name])
            mixed = 1  # of numbers that depend on each other from here on
        mixed += isinstance(layer, (PlainDense, PlainConvolution)) or (isinstance(layer, PlainPool) and not pool)
        terms = _term_sizes(layer, *box) if isinstance(layer, LINEAR) else None
        layers.append(BoundedLayer(layer, shape, lines, terms))
        box = _interval(layer, *box, tuning.rounding)
    return _back(layers, X, lead, eps, tuning.rounding)


def _interval(layer: PlainLayer, low: Array, high: Array, rounding: float) -> tuple[Array, Array]:
    """What a layer makes of numbers between low and high, number by number."""
    if not isinstance(layer, LINEAR):
        low, high = layer.forward(low)[0], layer.forward(high)[0]
        return low - rounding * np.abs(low), high + rounding * np.abs(high)
    middle = 0.5 * (low + high)
    half = np.maximum(high - middle, middle - low)
    linear = layer._replace(W=np.abs(layer.W), b=np.zeros_like(layer.b))
    if isinstance(linear, PlainNormalisation):
        linear = linear._replace(moments=np.stack([np.zeros_like(layer.b), linear.moments[1]]))
    centre = layer.forward(middle)[0]
    spread = linear.forward(half)[0] + rounding * _term_sizes(layer, low, high)
    return centre - spread, centre + spread


def _term_sizes(layer: PlainDense | PlainConvolution | PlainNormalisation, low: Array, high: Array) -> Array:
    """The sizes of the terms that each output of a linear layer adds up, for inputs between low and high.

    Where terms cancel, the sum may be smaller than what rounding did to them.
    """
    sizes = layer._replace(W=np.abs(layer.W), b=np.abs(layer.b))
    if isinstance(sizes, PlainNormalisation):
        sizes = sizes._replace(moments=np.stack([-np.abs(sizes.moments[0]), sizes.moments[1]]))
    return sizes.forward(np.maximum(np.abs(low), np.abs(high)))[0]


def _open_units(layers: Sequence[PlainLayer], low: Array, high: Array) -> Array:
    """Whether lines of the first of these layers could be closer if a unit's bounds were (n, *units)."""
    if isinstance(layers[0], PlainActivation):
        return (low < 0) & (high > 0)
    pool = layers[0]
    assert isinstance(pool, PlainPool)
    lines, best = _pool_lines(pool, low, high), pool.forward(low)[0]
    settled = lines.sure
    if len(layers) > 1 and isinstance(layers[1], PlainActivation) and layers[1].name == "relu":
        settled = (settled & (best >= 0)) | (lines.most <= 0)
    rivals = pool.windows(high) > best
    rivals |= np.arange(len(rivals)).reshape(-1, *(1,) * best.ndim) == lines.place
    found = np.zeros(low.shape, bool)
    a, b = pool.size
    for k, part in enumerate(rivals & ~settled):
        i, j = divmod(k, b)
        found[:, :, i : i + a * part.shape[2] : a, j : j + b * part.shape[3] : b] = part
    return found


def _narrow(
    layers: list[BoundedLayer], box: tuple[Array, Array], wanted: Array, how: tuple[Array, Array, RobustnessTuning]
) -> tuple[Array, Array]:
    """Bounds of the units that are wanted, by lines where these are closer than intervals."""
    X, eps, tuning = how
    low, high = (side.reshape(len(X), -1).copy() for side in box)
    row, unit = np.nonzero(wanted.reshape(len(X), -1))
    shape = box[0].shape[1:]
    if see_windows(layers):
        step = max(1, tuning.entries // numbers_of_window(layers, shape[0]))
        for start in range(0, len(row), step):
            r, u = row[start : start + step], unit[start : start + step]
            place = u % (shape[1] * shape[2])
            seen = SeenWindows(r, place // shape[2], place % shape[2])
            one = (u // (shape[1] * shape[2]))[:, None] == np.arange(shape[0])
            for side, sign in ((low, 1.0), (high, -1.0)):
                found = sign * least_of_units(layers, (seen, sign * one), X, eps, tuning.rounding)
                side[r, u] = np.maximum(side[r, u], found) if sign > 0 else np.minimum(side[r, u], found)
        return low.reshape(box[0].shape), high.reshape(box[0].shape)
    widest = max([low.shape[1], *(_numbers(one) for one in layers)])
    # Every row has as many places as the one with the most; a row with fewer asks about its first unit again.
    counts = np.bincount(row, minlength=len(X))
    every = np.zeros((len(X), int(counts.max(initial=0))), dtype=np.intp)
    every[row, np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)] = unit
    at, step = np.arange(len(X))[:, None], max(1, tuning.entries // (len(X) * widest))
    for start in range(0, every.shape[1], step):
        here = every[:, start : start + step]
        some = (here[:, :, None] == np.arange(low.shape[1])).astype(float).reshape(*here.shape, *shape)
        low[at, here] = np.maximum(low[at, here], _back(layers, X, some, eps, tuning.rounding))
        high[at, here] = np.minimum(high[at, here], -_back(layers, X, -some, eps, tuning.rounding))
    return low.reshape(box[0].shape), high.reshape(box[0].shape)


def _numbers(one: BoundedLayer) -> int:
    """How many numbers one question takes on its way back through a layer."""
    size, layer = int(np.prod(one.shape)), one.layer
    return size * layer.W[0, 0].size // layer.stride**2 if isinstance(layer, PlainConvolution) else size


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
    for layer, shape, lines, terms in reversed(layers):
        others = tuple(range(2, A.ndim))
        if isinstance(lines, UnitLines):
            up, down = np.maximum(A, 0.0), np.minimum(A, 0.0)
            added = (down * lines.offset[:, None]).sum(axis=others)
            A = up * lines.below[:, None] + down * lines.above[:, None]
            c, size = c + added, size + np.abs(added)
        elif isinstance(lines, PoolLines):
            loose = np.minimum(A, 0.0) * ~lines.sure[:, None]
            added = loose * lines.most[:, None]
            A = A - loose
            place = np.broadcast_to(lines.place[:, None], A.shape).reshape(-1, *A.shape[2:])
            A = _transposed(layer, A, shape, place)
            c, size = c + added.sum(axis=others), size + np.abs(added).sum(axis=others)
        else:
            if terms is not None:
                constant = layer.forward(np.zeros((1, *shape)))[0][0]
                c, size = c + (A * constant).sum(axis=others), size + (np.abs(A) * terms[:, None]).sum(axis=others)
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
