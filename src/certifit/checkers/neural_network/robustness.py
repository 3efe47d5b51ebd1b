"""Lower bounds on a network's margins over all rows within eps of a given one, by backward linear bounds.

Let |x - x₀|∞ <= eps. Scores of the first layer are linear in x, so their least and largest values are known. Each
activation lies between two lines over the range of its scores; put in place of the activation, they make every later
score lie between two linear functions of x, whose extremes over the box are known again. A margin z_c - z_k whose
lower bound is positive proves that no row of the box is taken for k. All in float64, with a budget for rounding.
Reference: Zhang, Weng, Chen, Hsieh & Daniel, Efficient neural network robustness certification with general
activation functions (2018), called CROWN.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from certifit.checkers.neural_network.perceptron import PlainPerceptron
from certifit.rows import Array

BOUNDED_ACTIVATIONS = ("identity", "relu", "leaky_relu", "logistic", "tanh")


@dataclass(frozen=True)
class Lines:
    """Lines below and above an activation φ over ranges of scores: slope z + offset, each (n, units)."""

    low_slope: Array
    low_offset: Array
    high_slope: Array
    high_offset: Array


def bounding_lines(activation: str, low: Array, high: Array) -> Lines:
    """Return lines that φ lies between for scores in [low, high], each (n, units)."""
    if activation == "identity":
        one, zero = np.ones_like(low), np.zeros_like(low)
        return Lines(one, zero, one, zero)
    if activation in ("relu", "leaky_relu"):
        return _bent_lines(low, high, 0.01 if activation == "leaky_relu" else 0.0)
    value = expit if activation == "logistic" else np.tanh
    slope = (lambda z: expit(z) * expit(-z)) if activation == "logistic" else (lambda z: 1 - np.tanh(z) ** 2)
    # φ' is largest at 0 and falls to both sides: over a range it is smallest at one of the ends.
    least = np.minimum(slope(low), slope(high))
    return Lines(least, value(low) - least * low, least, value(high) - least * high)


def _bent_lines(low: Array, high: Array, leak: float) -> Lines:
    """Return the lines of max(z, leak z): the chord above, and below a line through 0 that is close to most of it."""
    active, idle = low >= 0, high <= 0
    width = np.where(high > low, high - low, 1.0)
    chord = np.where(active, 1.0, np.where(idle, leak, (high - leak * low) / width))
    below = np.where(active, 1.0, np.where(idle, leak, np.where(high >= -low, 1.0, leak)))
    crossing = ~(active | idle)
    offset = np.where(crossing, high - chord * high, 0.0)
    return Lines(below, np.zeros_like(low), chord, offset)


def score_bounds(net: PlainPerceptron, X: Array, eps: Array) -> list[tuple[Array, Array]]:
    """Return the least and largest scores (n, units) of every layer but the last, for rows within eps (n,) of X."""
    found: list[tuple[Array, Array]] = []
    lines: list[Lines] = []
    for k in range(len(net.weights) - 1):
        units = net.weights[k].shape[1]
        eye = np.broadcast_to(np.eye(units), (len(X), units, units))
        ends = _lower_bounds(net, lines, k, eye, X, eps), -_lower_bounds(net, lines, k, -eye, X, eps)
        found.append(ends)
        lines.append(bounding_lines(net.activation, *ends))
    return found


def margin_bounds(net: PlainPerceptron, X: Array, classes: Array, eps: Array) -> Array:
    """Return lower bounds (n,) on how far class `classes` (n,) stays ahead of all others for rows within eps (n,).

    Two classes have one score: class 1 is ahead where it is positive.
    """
    lines = [bounding_lines(net.activation, *ends) for ends in score_bounds(net, X, eps)]
    k, n = net.weights[-1].shape[1], len(X)
    last = len(net.weights) - 1
    if k == 1:
        C = np.where(classes == 1, 1.0, -1.0)[:, None, None]
    else:
        C = np.repeat(-np.eye(k)[None], n, axis=0)
        C[np.arange(n), :, classes] += 1.0  # row j of C z is z_c - z_j
        keep = np.arange(k)[None] != classes[:, None]
        C = C[keep].reshape(n, k - 1, k)
    return _lower_bounds(net, lines, last, C, X, eps).min(axis=1)


def _lower_bounds(net: PlainPerceptron, lines: list[Lines], layer: int, C: Array, X: Array, eps: Array) -> Array:
    """Return lower bounds (n, m) on C z over the boxes, C (n, m, units) and z the scores of a layer."""
    A = C
    offset = np.zeros(C.shape[:2])
    size = np.zeros(C.shape[:2])
    for k in range(layer, -1, -1):
        W, b = net.weights[k], net.biases[k]
        offset = offset + A @ b
        size = size + np.abs(A) @ np.abs(b)
        A = A @ W.T
        if k == 0:
            break
        here = lines[k - 1]
        up, down = np.maximum(A, 0), np.minimum(A, 0)
        offset = offset + _times(up, here.low_offset) + _times(down, here.high_offset)
        size = size + _times(up, np.abs(here.low_offset)) - _times(down, np.abs(here.high_offset))
        A = up * here.low_slope[:, None] + down * here.high_slope[:, None]
    reach = np.abs(A).sum(axis=2)
    centre = _times(A, X)
    size = size + _times(np.abs(A), np.abs(X)) + reach * eps[:, None]
    # Every number is a sum of products through all layers: rounding is at most this share of the sizes summed.
    budget = 4 * np.finfo(float).eps * sum(W.shape[0] for W in net.weights) * size
    return centre + offset - reach * eps[:, None] - budget


def _times(A: Array, v: Array) -> Array:
    """Return A v for each row: (n, m, units) and (n, units) give (n, m)."""
    return np.einsum("nmu,nu->nm", A, v)


def certified_radii(net: PlainPerceptron, X: Array, classes: Array, halvings: int = 20) -> Array:
    """Return for each row the largest eps found (n,) within which its class provably cannot change."""
    low = np.zeros(len(X))
    proved = margin_bounds(net, X, classes, low) > 0
    high = np.full(len(X), max(1.0, float(np.abs(X).max(initial=0.0))))
    for _ in range(halvings):
        middle = (low + high) / 2
        holds = margin_bounds(net, X, classes, middle) > 0
        low, high = np.where(holds, middle, low), np.where(holds, high, middle)
    return np.where(proved, low, 0.0)
