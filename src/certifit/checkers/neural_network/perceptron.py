"""Checks a multilayer perceptron: its loss and gradient on the rows, computed anew in float64.

What is claimed depends on what is true. Where no slope of the loss is larger than was asked for, the network is
`stationary`; any other is `exact`: the loss and its largest slope are those that it says, and back-propagated
gradients are those of the loss, by central differences along a random direction of every tensor. Neither says that no
other weights are better.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
from scipy import sparse
from scipy.special import erf, expit, logsumexp, softmax, xlogy

from certifit.core import Certificate, Check
from certifit.rows import Array, Block, Matrix, Rows, Sums

Tensors: TypeAlias = tuple[Array, ...]


@dataclass(frozen=True)
class PlainPerceptron:
    """A network a ← φ(a W + b), whose last layer gives scores, and the loss of these scores."""

    weights: Tensors  # (in, out) of every layer
    biases: Tensors  # (out,) of every layer
    activation: str
    loss: str  # 'softmax', 'logistic', 'squared_error', 'huber' or 'poisson'
    shrinkage: float  # times |W|² / 2, added to the mean loss
    smoothing: float = 0.0  # share of a label that is spread over all classes

    @property
    def tensors(self) -> Tensors:
        return (*self.weights, *self.biases)

    @property
    def penalty(self) -> float:
        return 0.5 * self.shrinkage * sum(float((W * W).sum()) for W in self.weights)

    def moved(self, tensor: int, step: Array) -> PlainPerceptron:
        """Return the network with `step` added to one tensor."""
        tensors = list(self.tensors)
        tensors[tensor] = tensors[tensor] + step
        L = len(self.weights)
        return PlainPerceptron(
            tuple(tensors[:L]), tuple(tensors[L:]), self.activation, self.loss, self.shrinkage, self.smoothing
        )


Activation: TypeAlias = tuple[Callable[[Array], Array], Callable[[Array], Array]]  # φ and φ', both of z

ACTIVATIONS: dict[str, Activation] = {
    "identity": (lambda z: z, np.ones_like),
    "logistic": (expit, lambda z: expit(z) * expit(-z)),
    "tanh": (np.tanh, lambda z: 1 / np.cosh(np.clip(z, -350, 350)) ** 2),
    "relu": (lambda z: np.maximum(z, 0), lambda z: (z > 0).astype(np.float64)),
    "leaky_relu": (lambda z: np.where(z > 0, z, 0.01 * z), lambda z: np.where(z > 0, 1.0, 0.01)),
    "gelu": (
        lambda z: 0.5 * z * (1 + erf(z / np.sqrt(2))),
        lambda z: 0.5 * (1 + erf(z / np.sqrt(2))) + z * np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi),
    ),
}


def activations(net: PlainPerceptron, X: Array) -> tuple[list[Array], list[Array]]:
    """Return what enters every layer, and the scores z of every layer."""
    inputs, scores = [np.asarray(X, np.float64)], []
    for k, (W, b) in enumerate(zip(net.weights, net.biases, strict=True)):
        scores.append(inputs[-1] @ W + b)
        if k + 1 < len(net.weights):
            inputs.append(ACTIVATIONS[net.activation][0](scores[-1]))
    return inputs, scores


def losses(net: PlainPerceptron, z: Array, y: Array) -> tuple[Array, Array]:
    """Return the loss of each row (n,), and its slope in the scores (n, k)."""
    k = z.shape[1]
    if net.loss == "softmax":
        t = np.full(z.shape, net.smoothing / k)
        t[np.arange(len(z)), y.astype(int)] += 1 - net.smoothing
        return logsumexp(z, axis=1) - (t * z).sum(axis=1), softmax(z, axis=1) - t
    if net.loss == "logistic":
        u = (y * (1 - net.smoothing) + net.smoothing / 2)[:, None]
        return (np.logaddexp(0, z) - u * z)[:, 0], expit(z) - u
    y = np.asarray(y, np.float64).reshape(z.shape)
    if net.loss == "poisson":
        each, slope = xlogy(y, y) - y * z - y + np.exp(z), np.exp(z) - y
    elif net.loss == "huber":
        r = z - y
        each, slope = np.where(np.abs(r) <= 1, 0.5 * r * r, np.abs(r) - 0.5), np.clip(r, -1, 1)
    else:
        each, slope = 0.5 * (z - y) ** 2, z - y
    return each.mean(axis=1), slope / k


@dataclass(frozen=True)
class PerceptronSums(Sums):
    """What a block adds to the loss and to its gradient."""

    weight: float  # Σ w
    loss: float  # Σ w φ
    gradient: Array  # (p,) of Σ w φ: all weights, then all biases, row by row


def measure(net: PlainPerceptron, block: Block) -> PerceptronSums:
    """Return the sums of one block, the gradient by the chain rule from the last layer to the first."""
    assert block.y is not None
    inputs, scores = activations(net, _dense(block.X))
    each, slope = losses(net, scores[-1], block.y)
    slope = slope * block.w[:, None]
    weights, biases = [], []
    for k in reversed(range(len(net.weights))):
        weights.append((inputs[k].T @ slope).ravel())
        biases.append(slope.sum(axis=0))
        if k:
            slope = (slope @ net.weights[k].T) * ACTIVATIONS[net.activation][1](scores[k - 1])
    return PerceptronSums(
        float(block.w.sum()), float(block.w @ each), np.concatenate([*reversed(weights), *reversed(biases)])
    )


def _loss_sum(net: PlainPerceptron, block: Block) -> Array:
    assert block.y is not None
    _, scores = activations(net, _dense(block.X))
    return np.array([block.w.sum(), block.w @ losses(net, scores[-1], block.y)[0]])


def _dense(X: Matrix) -> Array:
    return X.toarray() if sparse.issparse(X) else X


def whole_gradient(net: PlainPerceptron, found: PerceptronSums) -> Array:
    """Return the gradient (p,) of the mean loss plus the penalty."""
    gradient = found.gradient / found.weight
    n_weights = sum(W.size for W in net.weights)
    gradient[:n_weights] += net.shrinkage * np.concatenate([W.ravel() for W in net.weights])
    return gradient


def difference_error(net: PlainPerceptron, rows: Rows, gradient: Array, step: float = 1e-6) -> float:
    """Return by how much central differences contradict a gradient (p,), relative to it, at the worst tensor."""
    rng = np.random.default_rng(0)
    worst, start = 0.0, 0
    for k, tensor in enumerate(net.tensors):
        direction = rng.normal(size=tensor.shape) / np.sqrt(tensor.size)
        ends = []
        for sign in (1, -1):
            moved = net.moved(k, sign * step * direction)
            weight, loss = rows.sum(partial(_loss_sum, moved))
            ends.append(loss / weight + moved.penalty)
        part = gradient[start : start + tensor.size]
        start += tensor.size
        # Where a gradient is next to nothing, rounding of the loss is what is seen: it is measured against the loss.
        size = max(float(np.linalg.norm(part)) / np.sqrt(tensor.size), 1e-3 * max(map(abs, ends)), 1e-300)
        worst = max(worst, abs((ends[0] - ends[1]) / (2 * step) - float(part @ direction.ravel())) / size)
    return worst


@dataclass(frozen=True)
class PerceptronClaim:
    """What a fitted network says of itself; None where it says nothing."""

    only_stationary: bool = False  # whether nothing else than a vanishing gradient is worth a claim
    objective: float | None = None  # mean loss plus penalty
    largest_slope: float | None = None  # of that, in any weight or bias
    gradient: Array | None = None  # (p,) as the fit back-propagated it on `some_rows`


def certify_perceptron(
    net: PlainPerceptron, claim: PerceptronClaim, rows: Rows, some_rows: Rows, tol: float
) -> Certificate:
    """Check the loss and gradient of a network on `rows`, and back-propagation on a sample of them."""
    found = rows.sum(partial(measure, net))
    objective = found.loss / found.weight + net.penalty
    slope = float(np.abs(whole_gradient(net, found)).max())
    here = whole_gradient(net, some_rows.sum(partial(measure, net)))
    checks = [Check("gradients against differences", difference_error(net, some_rows, here), 1e-3)]
    if claim.gradient is not None:
        size = max(float(np.linalg.norm(here)), 1e-3 * abs(objective), 1e-300)
        checks.append(Check("back-propagated gradients", float(np.linalg.norm(claim.gradient - here)) / size, 1e-3))
    # Both were computed here before, in float64 and from the same sums: the limits are for other blocks of rows.
    scale = abs(objective) + net.penalty
    if claim.objective is not None:
        checks.append(Check("loss, as it says", abs(claim.objective - objective), 1e-9 * scale))
    if claim.largest_slope is not None:
        checks.append(Check("largest slope, as it says", abs(claim.largest_slope - slope), 1e-7 * (slope + scale)))
    facts = {"largest slope": slope, "weights and biases": float(sum(t.size for t in net.tensors))}
    if slope <= tol * max(1.0, abs(objective)):
        words = "no slope of the training loss is larger than asked for; nothing is said of other weights"
        return Certificate("stationary", words, objective, tol=tol, checks=tuple(checks), facts=facts)
    if claim.only_stationary:
        checks.append(Check("largest slope of the loss", slope, tol * max(1.0, abs(objective))))
        words = "one more step changes the training loss by next to nothing"
        return Certificate("stationary", words, objective, tol=tol, checks=tuple(checks), facts=facts)
    words = "loss and gradient are those of these weights; not that no others are better"
    return Certificate("exact", words, objective, tol=tol, checks=tuple(checks), facts=facts)
