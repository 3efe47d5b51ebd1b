"""The checker of networks: its own forward pass, loss and gradient, in float64.

What is proved: the stored loss is the loss of these weights on these rows; the gradient, found by the chain rule and
held against central differences in every tensor, has this largest entry. Where a fit claims to be stationary, that
entry must be at most the tolerance. Nothing is said of other minima.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_expit

from certifit.checkers.neural_network.plain_columns import PlainRobustColumns
from certifit.checkers.neural_network.plain_layers import PlainConvolution, PlainLayer, WeightedLayer
from certifit.checkers.plain.blocks import dense_rows
from certifit.core import Certificate, Check
from certifit.rows import Array, Block, Largest, Rows, Sums, tree_sum


@dataclass(frozen=True)
class NetworkCheckTuning:
    """How differences are taken, and what rounding may do."""

    rows: int = 64  # of which central differences are taken
    step: float = 1e-5  # of a difference, relative to the tensor's largest entry
    differences: float = 1e-5  # relative error of a difference where the loss is smooth
    rounding: float = 1e-11  # of the loss, relative to the size of its terms
    scores: float = 1e-14  # rounding of a score, relative to its size
    decades: float = 4.0  # of weights whose rows are looked at together: one heavy row would hide all others
    seed: int = 17  # of the directions of differences


class NetworkClaim(NamedTuple):
    """A network as its fitted attributes and settings describe it."""

    layers: tuple[PlainLayer, ...]
    output: str  # 'softmax', 'logistic', 'squared_error', 'huber' or 'poisson'
    outputs: int  # scores of a row
    alpha: float  # strength of the penalty
    loss: float | None  # as stored; None where the model stores something else
    stationary: bool  # whether the fit went on until its gradient was small
    smoothing: float = 0.0  # share of each target that is spread over all classes

    @property
    def columns(self) -> int:
        """Numbers of a row that the first dense layer, or the scaling before it, was made for."""
        first = self.layers[0]
        return len(first.centre) if isinstance(first, PlainRobustColumns) else len(self.weighted_layer(0).W)

    @property
    def weighted(self) -> list[int]:
        """The numbers of layers with weights."""
        return [k for k, layer in enumerate(self.layers) if isinstance(layer, WeightedLayer)]

    def weighted_layer(self, k: int) -> WeightedLayer:
        """A layer with weights, by its number."""
        layer = self.layers[k]
        assert isinstance(layer, WeightedLayer)
        return layer


@dataclass(frozen=True)
class NetworkSums(Sums):
    """Sums over rows."""

    weight: float
    loss: float
    size: float  # of the terms of the loss
    gradient: tuple[Array, ...]  # of the summed loss, in every tensor: weights first, then biases
    largest: Largest  # an entry of a slope times an entry of what it multiplies

    def __add__(self, other: NetworkSums) -> NetworkSums:
        return NetworkSums(
            self.weight + other.weight,
            self.loss + other.loss,
            self.size + other.size,
            tuple(a + b for a, b in zip(self.gradient, other.gradient, strict=True)),
            self.largest + other.largest,
        )


def certify_network(
    claim: NetworkClaim, rows: Rows, tol: float, tuning: NetworkCheckTuning = NetworkCheckTuning()
) -> Certificate:
    """Check a network on rows whose y are class numbers (n,), labels 0 and 1 (n, k), or amounts."""
    with np.errstate(all="ignore"):
        found = rows.sum(partial(_measure, claim))
        differs = _difference_error(claim, rows, tuning)
    weights = [layer.W for layer in map(claim.weighted_layer, claim.weighted)]
    penalty = 0.5 * claim.alpha * sum(float((W * W).sum()) for W in weights)
    objective = (found.loss + penalty) / found.weight
    count = len(weights)
    gradient = [
        *((slope + claim.alpha * W) / found.weight for slope, W in zip(found.gradient[:count], weights, strict=True)),
        *(slope / found.weight for slope in found.gradient[count:]),
    ]
    steepest = max(float(np.abs(g).max(initial=0.0)) for g in gradient)
    steepest = steepest if all(np.isfinite(g).all() for g in gradient) else np.inf
    scale = (found.size + penalty) / found.weight
    checks = [Check("gradient and central differences disagree by", differs, 1.0)]
    if claim.loss is not None:
        rounding = tuning.rounding * scale
        checks.insert(0, Check("loss_ is off by", abs(claim.loss - objective), rounding))
    facts: dict[str, float | str] = {"parameters": float(sum(np.size(g) for g in gradient))}
    if claim.stationary:
        slack = 64 * np.finfo(np.float64).eps * float(found.largest.value)
        checks.append(Check("largest entry of the gradient", steepest, tol + slack))
        words = "loss_ is the loss of these weights, and its gradient is at most tol: says nothing of other minima"
        return Certificate("stationary", words, objective, 0.0, tol, checks=tuple(checks), facts=facts, scale=scale)
    facts["largest entry of the gradient"] = steepest
    words = "loss_ is the loss of these weights on these rows; how far they are from a minimum is not said"
    return Certificate("exact", words, objective, 0.0, tol, checks=tuple(checks), facts=facts, scale=scale)


def layer_slopes(claim: NetworkClaim, rows: Rows) -> tuple[Array, ...]:
    """The gradient of the mean loss, without penalty, in the weights of every layer that has some."""
    found = rows.sum(partial(_measure, claim))
    return tuple(slope / found.weight for slope in found.gradient[: len(claim.weighted)])


# Forward ---------------------------------------------------------------------------------------------------------


def network_scores(claim: NetworkClaim, X: Array) -> Array:
    """Scores (n, k) of rows."""
    for layer in claim.layers:
        X = layer.forward(X)[0]
    return X


def _remembered(claim: NetworkClaim, X: Array) -> tuple[Array, list[Any]]:
    """Scores (n, k), and what every layer remembers."""
    memories = []
    for layer in claim.layers:
        X, memory = layer.forward(X)
        memories.append(memory)
    return X, memories


def target_table(claim: NetworkClaim, y: Array) -> Array:
    """Targets as wide as the scores: an indicator of each class, labels, or amounts."""
    if claim.output == "softmax":
        Y = np.eye(claim.outputs)[np.asarray(y, dtype=int)]
    else:
        Y = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
    classes = claim.outputs if claim.output == "softmax" else 2  # a label is there or not
    return Y + claim.smoothing * (1.0 / classes - Y) if claim.smoothing else Y


def row_losses(output: str, z: Array, Y: Array) -> tuple[Array, Array]:
    """The loss of each row (n,), and its slopes in the scores (n, k).

    Of a probability p next to 1, the logarithm and 1 - p come from the others: to take p from 1 would leave no digit.
    """
    if output == "softmax":
        best = z.argmax(axis=1)[:, None]
        lead = z - np.take_along_axis(z, best, axis=1)
        share = np.exp(lead)
        np.put_along_axis(share, best, 0.0, axis=1)
        others = share.sum(axis=1, keepdims=True)
        log_p = lead - np.log1p(others)
        np.put_along_axis(share, best, 1.0, axis=1)
        p, rest = share / (1.0 + others), share @ (1.0 - np.eye(z.shape[1])) / (1.0 + others)
        return -np.where(Y > 0, Y * log_p, 0.0).sum(axis=1), p * (1.0 - Y) - rest * Y
    if output == "logistic":
        log_p, log_q = log_expit(z), log_expit(-z)
        return -(Y * log_p + (1 - Y) * log_q).sum(axis=1), np.exp(log_p) * (1.0 - Y) - np.exp(log_q) * Y
    if output == "poisson":
        above = Y > 0
        away = z - np.log(np.where(above, Y, 1.0))
        gain = np.expm1(away)
        return (np.where(above, Y * (gain - away), np.exp(z))).sum(axis=1), np.where(above, Y * gain, np.exp(z))
    residual = z - Y
    if output == "huber":
        far = np.abs(residual) > 1
        return np.where(far, np.abs(residual) - 0.5, 0.5 * residual**2).sum(axis=1), np.clip(residual, -1.0, 1.0)
    return 0.5 * (residual**2).sum(axis=1), residual


# Backward --------------------------------------------------------------------------------------------------------


def _measure(claim: NetworkClaim, block: Block, most: int = 16) -> NetworkSums:
    """Loss and gradient of a block; images a few at a time, because windows side by side take much memory."""
    if not any(isinstance(layer, PlainConvolution) for layer in claim.layers):
        return _measure_rows(claim, block)
    assert block.y is not None
    cuts = [slice(start, start + most) for start in range(0, len(block.w), most)]
    return tree_sum(_measure_rows(claim, Block(block.X[k], block.y[k], block.w[k], 0)) for k in cuts)


def _measure_rows(claim: NetworkClaim, block: Block) -> NetworkSums:
    """Loss and gradient of a block's rows with a positive weight."""
    used = block.w > 0
    assert block.y is not None
    X, w = dense_rows(block.X, used), block.w[used]
    z, memories = _remembered(claim, X)
    loss, delta = row_losses(claim.output, z, target_table(claim, block.y[used]))
    delta = delta * w[:, None]
    weights: list[Array] = []
    biases: list[Array] = []
    largest, heaviest = 0.0, max(float(w.max(initial=0.0)), 1e-300)
    first = claim.weighted[0]  # nothing before it needs slopes
    for k in range(len(claim.layers) - 1, first - 1, -1):
        layer, memory = claim.layers[k], memories[k]
        if isinstance(layer, WeightedLayer):
            slope, own = layer.slopes(delta, memory)
            weights.insert(0, slope)
            biases.insert(0, own)
            steep = float(np.abs(delta).max(initial=0.0))
            largest = max(largest, steep * max(1.0, float(np.abs(memory).max(initial=0.0))) / heaviest)
        if k > first:
            delta = layer.backward(delta, memory)
    size = float(w @ (np.abs(loss) + np.abs(z).sum(axis=1)))
    return NetworkSums(float(w.sum()), float(w @ loss), size, (*weights, *biases), Largest(largest))


def _difference_error(claim: NetworkClaim, rows: Rows, tuning: NetworkCheckTuning) -> float:
    """By how many times what is allowed central differences and the gradient disagree, in the worst tensor."""
    few = rows.thin(max(1, rows.n_rows // tuning.rows))
    some = few.take(np.flatnonzero(few.w > 0)[: tuning.rows])
    if not len(some.w):
        return 0.0
    X, y, draw = dense_rows(some.X, some.w > 0), np.asarray(some.y), np.random.default_rng(tuning.seed)
    magnitude = np.floor(np.log10(some.w) / tuning.decades)
    alike = [magnitude == one for one in np.unique(magnitude)]
    blocks = [Block(X[rows], y[rows], some.w[rows], 0) for rows in alike]
    errors = []
    for kind in ("W", "b"):
        for k in claim.weighted:
            u = draw.choice([-1.0, 1.0], getattr(claim.weighted_layer(k), kind).shape)
            errors += [_tensor_error(claim, block, (kind, k), u, tuning) for block in blocks]
    return max(errors)


def _tensor_error(
    claim: NetworkClaim, block: Block, place: tuple[str, int], u: Array, tuning: NetworkCheckTuning
) -> float:
    """The same for one tensor, moved both ways along u, a little: no score moves by more than about one step.

    Rows of which a unit is switched on or off on the way are left out, because their loss has a kink there.
    """
    kind, k = place
    reach = claim.weighted_layer(k).reach(_remembered(claim, block.X)[1][k]) if kind == "W" else 1.0
    h = tuning.step / max(1.0, reach)
    ahead, behind = (_moved(claim, place, sign * h * u) for sign in (1.0, -1.0))
    smooth = (_switches(ahead, block) == _switches(behind, block)).all(axis=1)
    if not smooth.any():
        return 0.0
    assert block.y is not None
    part = Block(block.X[smooth], block.y[smooth], block.w[smooth], 0)
    y = target_table(claim, np.asarray(part.y))
    scores = [network_scores(one, part.X) for one in (ahead, behind)]
    (up, steep_up), (down, steep_down) = (row_losses(claim.output, z, y) for z in scores)
    slope = _measure(claim, part).gradient[claim.weighted.index(k) + (kind == "b") * len(claim.weighted)]
    found, expected = float(part.w @ (up - down)) / (2 * h), float((slope * u).sum())
    rounding = 1e-13 * float(part.w @ (np.abs(up) + np.abs(down))) / h
    # Where a row's slope is next to 0, what is left are the rounding of scores, and how they and the loss bend.
    middle = network_scores(claim, part.X)
    steep = row_losses(claim.output, middle, y)[1]
    bend = np.abs(scores[0] + scores[1] - 2 * middle) * np.abs(steep_up - steep_down)
    bend += np.abs(scores[0] - scores[1]) * np.abs(steep_up + steep_down - 2 * steep)
    sizes = tuning.scores * (np.abs(steep_up * scores[0]) + np.abs(steep_down * scores[1])) + bend
    rounding += float(part.w @ sizes.sum(axis=1)) / h
    error, allowed = abs(found - expected), tuning.differences * float(np.abs(slope).sum()) + rounding
    return error / allowed if error > 0 else float(np.nan_to_num(error, nan=np.inf))


def _moved(claim: NetworkClaim, place: tuple[str, int], change: Array) -> NetworkClaim:
    """The network with one of its tensors changed."""
    kind, k = place
    layers, layer = [*claim.layers], claim.weighted_layer(k)
    layers[k] = layer._replace(W=layer.W + change) if kind == "W" else layer._replace(b=layer.b + change)
    return claim._replace(layers=tuple(layers))


def _switches(claim: NetworkClaim, block: Block) -> Array:
    """On which side of a kink of layers and loss each row is, (n, kinks)."""
    z, memories = _remembered(claim, block.X)
    pairs = zip(claim.layers, memories, strict=True)
    sides = [layer.switches(memory, len(z)) for layer, memory in pairs]
    if claim.output == "huber":
        assert block.y is not None
        sides.append((np.abs(z - target_table(claim, block.y)) > 1).astype(np.int64))
    return np.hstack(sides)
