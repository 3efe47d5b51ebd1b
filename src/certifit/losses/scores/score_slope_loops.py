"""The compiled loops over rows that take slopes and curvatures of a loss of additive scores."""

from __future__ import annotations

import math

import numpy as np

from certifit.numerics.compiled.compiling import called_from_python, twin_of
from certifit.numerics.compiled.whole_arrays import exponentials, running_total

SQUARES, SIGNS, POISSON, GAMMA, LOGISTIC, EXPONENTIAL, CLIPPED = range(7)


@called_from_python
def find_gradients(loss, targets, span, pairs, found):
    """Fill in the pairs (g, h) = (w φ', w φ") of a span of rows; `found` (3,) are Σ |g|, Σ h and the largest h.

    `loss` is its kind and, of quantiles, the slopes below and above y, of Huber's loss the least and the largest;
    `targets` are scores F, y and weights w. Losses without a curvature everywhere count rows by their weights.
    """
    kind, slopes = loss
    F, y, w = targets
    g, h = pairs
    size, total, largest = 0.0, 0.0, 0.0
    for i in range(span[0], span[1]):
        t = F[i]
        if kind == SQUARES:
            a, b = t - y[i], 1.0
        elif kind == SIGNS:
            a, b = slopes[0] if t < y[i] else slopes[1], 1.0
        elif kind == CLIPPED:
            a, b = min(max(t - y[i], slopes[0]), slopes[1]), 1.0
        elif kind == POISSON:
            b = math.exp(t)
            a = b - y[i]
        elif kind == GAMMA:
            b = y[i] * math.exp(-t)
            a = 1.0 - b
        elif kind == LOGISTIC:
            # Of both probabilities the smaller keeps its digits.
            small = math.exp(-abs(t))
            large = 1.0 / (1.0 + small)
            small *= large
            b = small * large
            a = (-small if t >= 0 else -large) if y[i] > 0.5 else (large if t >= 0 else small)
        else:
            z = 2.0 * y[i] - 1.0
            b = math.exp(-z * t)
            a = -z * b
        a, b = a * w[i], b * w[i]
        g[i], h[i] = a, b
        size += abs(a)
        total += b
        largest = max(largest, b)
    found[0], found[1], found[2] = size, total, largest


@twin_of(find_gradients)
def _find_gradients_of_arrays(loss, targets, span, pairs, found):
    kind, slopes = loss
    F, y, w = (part[span[0] : span[1]] for part in targets)
    g, h = (part[span[0] : span[1]] for part in pairs)
    a, b = _slopes_and_curvatures(kind, slopes, F, y)
    g[:], h[:] = a * w, b * w
    found[0], found[1] = running_total(np.abs(a * w)), running_total(b * w)
    found[2] = np.fmax.reduce(b * w, initial=0.0)


def _slopes_and_curvatures(kind, slopes, F, y):
    if kind == SQUARES:
        return F - y, np.ones(len(F))
    if kind == SIGNS:
        return np.where(y > F, slopes[0], slopes[1]), np.ones(len(F))
    if kind == CLIPPED:
        return np.minimum(np.maximum(F - y, slopes[0]), slopes[1]), np.ones(len(F))
    if kind == POISSON:
        b = exponentials(F)
        return b - y, b
    if kind == GAMMA:
        b = y * exponentials(-F)
        return 1.0 - b, b
    if kind == LOGISTIC:
        small = exponentials(-np.abs(F))
        large = 1.0 / (1.0 + small)
        small *= large
        up, down = np.where(F >= 0, -small, -large), np.where(F >= 0, large, small)
        return np.where(y > 0.5, up, down), small * large
    z = 2.0 * y - 1.0
    b = exponentials(-z * F)
    return -z * b, b


@called_from_python
def find_class_gradients(F, y, w, start, stop, g, h):
    """Fill in w (p - [y]) and w p (1 - p) of rows [start, stop) for all classes: F, g and h are (n, k) and (k, n)."""
    classes = F.shape[1]
    for i in range(start, stop):
        top = F[i, 0]
        for c in range(1, classes):
            top = max(top, F[i, c])
        total = 0.0
        for c in range(classes):
            p = math.exp(F[i, c] - top)
            g[c, i] = p
            total += p
        for c in range(classes):
            p = g[c, i] / total
            g[c, i] = w[i] * (p - (1.0 if y[i] == c else 0.0))
            h[c, i] = w[i] * p * (1.0 - p)


@twin_of(find_class_gradients)
def _find_class_gradients_of_arrays(F, y, w, start, stop, g, h):
    scores, weights = F[start:stop], w[start:stop]
    found = exponentials(scores - scores.max(axis=1, keepdims=True)).T
    total = np.zeros(stop - start)
    for p in found:
        total += p
    for c, p in enumerate(found / total):
        g[c, start:stop] = weights * (p - np.where(y[start:stop] == c, 1.0, 0.0))
        h[c, start:stop] = weights * p * (1.0 - p)
