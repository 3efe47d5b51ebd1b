"""Slopes of probabilities re-checked: the derivative of their likelihood is zero, row weights and all.

Values of machines become probabilities softmax(a s). For pairs of classes the scores s are (value, 0), on the rows of
the two classes; where every class has a column of values, s is that row. The negative log-likelihood of targets (one
row more than the data, of the other classes in equal parts) is convex in a > 0, so a zero derivative is the minimum.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from certifit.core import Array, Check

CLOSE = 1e-7  # derivative by log a, as a share of the weight
FLATTEST = 1e-3  # no slope is smaller than this, for scores of size 1


def calibrated(values: Array, code: Array, weight: Array, slopes: Array, k: int, pairs: bool) -> tuple[Check, ...]:
    """values (n, machines) of rows with class numbers `code` (n,) that the machines have not seen."""
    worst = 0.0
    problems = _pairs(values, code, k) if pairs else [(np.arange(len(code)), values, list(range(k)))]
    for a, (rows, scores, classes) in zip(slopes, problems, strict=True):
        targets = _targets(code, weight, k)[rows][:, classes]
        targets /= targets.sum(axis=1, keepdims=True)
        worst = max(worst, _derivative(float(a), scores, targets, weight[rows]))
    return (
        Check("derivative of the probabilities' likelihood, relative", worst, CLOSE),
        Check("slopes of probabilities that are not above 0", float((slopes <= 0).sum()), 0.0),
    )


Problem = tuple[Array, Array, list[int]]  # rows, their scores, the classes of the columns


def _pairs(values: Array, code: Array, k: int) -> list[Problem]:
    out = []
    for column, (i, j) in enumerate([(1, 0)] if k == 2 else combinations(range(k), 2)):
        rows = np.flatnonzero((code == i) | (code == j))
        out.append((rows, np.column_stack([values[rows, column], np.zeros(len(rows))]), [i, j]))
    return out


def _targets(code: Array, weight: Array, k: int) -> Array:
    own = np.bincount(code, weight, k)
    table = np.repeat((1.0 / ((own + 2.0) * (k - 1)))[:, None], k, axis=1)  # (k, k)
    np.fill_diagonal(table, (own + 1.0) / (own + 2.0))
    return table[code]


def _derivative(a: float, scores: Array, targets: Array, weight: Array) -> float:
    """a dL/da as a share of the weight; at the smallest slope allowed, only what a larger one would gain."""
    size = float(np.abs(scores - scores[:, :1]).max())
    eta = a * scores
    p = np.exp(eta - eta.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    found = a * float(weight @ ((p - targets) * scores).sum(axis=1)) / float(weight.sum())
    flattest = a * size <= FLATTEST * (1 + 1e-9)
    return max(0.0, -found) if flattest and a * size >= FLATTEST * (1 - 1e-9) else abs(found)
