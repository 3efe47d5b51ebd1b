"""The compiled loops of boosting over rows: slopes and curvatures of the loss, sums of leaves, and scores moved."""

from __future__ import annotations

import math

import numpy as np

from certifit.numerics.compiling import called_from_python

SQUARES, SIGNS, POISSON, GAMMA, LOGISTIC, EXPONENTIAL = range(6)


@called_from_python
def find_gradients(loss, targets, span, pairs, found):
    """Fill in the pairs (g, h) = (w φ', w φ") of a span of rows; `found` (3,) are Σ |g|, Σ h and the largest h.

    `loss` is its kind and, of quantiles, the slopes below and above y; `targets` are scores F, y and weights w.
    Quantiles have no curvature: their rows count by their weights.
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


@called_from_python
def add_leaf_sums(rows, runs, leaves, pairs, scales, sums):
    """Add gradients and Hessians of each leaf's rows, as whole numbers of fine units, which add up in any order.

    `runs` (m, 2) are this chunk's places of the nodes, `pairs` (2, n) are g and h, `sums` (leaves, 2).
    """
    for a in range(len(leaves)):
        G, H = np.int64(0), np.int64(0)
        for i in range(runs[leaves[a], 0], runs[leaves[a], 1]):
            r = rows[i]
            G += np.int64(np.rint(pairs[0, r] * scales[0]))
            H += np.int64(np.rint(pairs[1, r] * scales[1]))
        sums[a, 0] = G
        sums[a, 1] = H


@called_from_python
def move_scores(rows, runs, leaves, values, F):
    """Add to the score of each row the value of its leaf."""
    for a in range(len(leaves)):
        for i in range(runs[leaves[a], 0], runs[leaves[a], 1]):
            F[rows[i]] += values[a]
