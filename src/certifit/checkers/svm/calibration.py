"""Slopes of probabilities re-checked: the derivative of their likelihood is zero, row weights and all.

What follows from slopes is recomputed too: pairs of classes are joined by the p that agrees best with them (Wu, Lin &
Weng 2004), and the class that is predicted leads by the least change.

Values of machines become probabilities softmax(a s). For pairs of classes the scores s are (value, 0), on the rows of
the two classes; where every class has a column of values, s is that row. The negative log-likelihood of targets (one
row more than the data, of the other classes in equal parts) is convex in a > 0, so a zero derivative is the minimum.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.special import expit, softmax

from certifit.core import Check
from certifit.rows import Array

CLAIM = "slopes of probabilities are the likeliest given held_out_values_, the values of rows left out"
INSIDE = 1e-7  # from 0 and 1, for probabilities of pairs
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


def probabilities(values: Array, slopes: Array, k: int, pairs: bool, winner: Array) -> Array:
    """(n, k) of machines' values (n, machines), led by the classes that are predicted.

    >>> values, slopes = np.array([[0.0], [2.0]]), np.array([np.log(3) / 2])
    >>> probabilities(values, slopes, 2, True, np.array([0, 1])).round(3).tolist()
    [[0.5, 0.5], [0.25, 0.75]]
    """
    if not pairs:
        p = softmax(slopes * values, axis=1)
    elif k == 2:
        p = np.column_stack([expit(-slopes * values), expit(slopes * values)])
    else:
        p = np.array([_joined(row, k) for row in slopes * values])
    return np.array([_led(*row) for row in zip(p, winner, strict=True)])


def _joined(log_odds: Array, k: int) -> Array:
    """min Σᵢⱼ (rⱼᵢ pᵢ - rᵢⱼ pⱼ)² with Σ p = 1, by a multiplier for the sum."""
    r, A = np.zeros((k, k)), np.ones((k + 1, k + 1))
    for odds, (i, j) in zip(log_odds, combinations(range(k), 2), strict=True):
        r[i, j] = np.clip(expit(odds), INSIDE, 1 - INSIDE)
        r[j, i] = 1.0 - r[i, j]
    A[:k, :k] = np.diag((r**2).sum(axis=0)) - r * r.T
    A[k, k] = 0.0
    p = np.maximum(np.linalg.solve(A, np.eye(k + 1)[k])[:k], 0.0)
    return p / p.sum()


def _led(p: Array, winner: int) -> Array:
    """The nearest probabilities whose largest is the winner's: it shares evenly with as many others as it takes."""
    others = [i for i in np.argsort(-p, kind="stable") if i != winner]
    for count in range(len(p)):
        pool = [winner, *others[:count]]
        shared = p.copy()
        shared[pool] = p[pool].mean()
        if shared[winner] >= shared.max():
            break
    return shared
