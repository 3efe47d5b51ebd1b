"""Slopes of probabilities re-checked: they are the likeliest ones given the values of rows that were left out.

**Claim.** Values of machines become probabilities softmax(a s). For pairs of classes the scores s are (value, 0), on
the rows of the two classes; where every class has a column of values, s is that row of values. The slope a > 0 is the
likeliest for smoothed targets: those of the data and of one more row, which has the other classes in equal parts.

**Proof.** The negative log-likelihood is convex in a, so a zero derivative is the minimum. No slope is smaller than
`flattest` for scores of size 1; there the derivative may be positive.

What follows from slopes is recomputed too: pairs of classes are joined by the p that agrees best with them (Wu, Lin &
Weng 2004), and the class that is predicted is made the likeliest by the least change.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.special import expit, softmax

from certifit.core import Check
from certifit.rows import Array

CLAIM = "slopes of probabilities are the likeliest given held_out_values_, by machines that have not seen the row"


def slope_checks(values: Array, code: Array, weight: Array, slopes: Array, k: int, pairs: bool) -> tuple[Check, ...]:
    """Whether slopes are the likeliest for values (n, machines) of rows that the machines were not trained on.

    code (n,) are class numbers; `pairs` says that machines are for pairs of classes.
    """
    worst = 0.0
    problems = _pair_problems(values, code, k) if pairs else [(np.arange(len(code)), values, list(range(k)))]
    for a, (rows, scores, classes) in zip(slopes, problems, strict=True):
        targets = _targets(code, weight, k)[rows][:, classes]
        targets /= targets.sum(axis=1, keepdims=True)
        worst = max(worst, _derivative(float(a), scores, targets, weight[rows]))
    return (
        Check("derivative of the probabilities' likelihood, relative", worst, 1e-7),
        Check("slopes of probabilities that are not above 0", float((slopes <= 0).sum()), 0.0),
    )


def _pair_problems(values: Array, code: Array, k: int) -> list[tuple[Array, Array, list[int]]]:
    """For each pair of classes its rows, their scores (rows, 2), and the classes of the columns."""
    out = []
    for column, (i, j) in enumerate([(1, 0)] if k == 2 else combinations(range(k), 2)):
        rows = np.flatnonzero((code == i) | (code == j))
        out.append((rows, np.column_stack([values[rows, column], np.zeros(len(rows))]), [i, j]))
    return out


def _targets(code: Array, weight: Array, k: int) -> Array:
    """Smoothed targets (n, k)."""
    own = np.bincount(code, weight, k)
    table = np.repeat((1.0 / ((own + 2.0) * (k - 1)))[:, None], k, axis=1)  # (k, k)
    np.fill_diagonal(table, (own + 1.0) / (own + 2.0))
    return table[code]


def _derivative(a: float, scores: Array, targets: Array, weight: Array, flattest: float = 1e-3) -> float:
    """|a dL/da| as a share of the weight; at the smallest slope allowed, only what a larger one would gain."""
    size = float(np.abs(scores - scores[:, :1]).max())
    eta = a * scores
    p = np.exp(eta - eta.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    found = a * float(weight @ ((p - targets) * scores).sum(axis=1)) / float(weight.sum())
    smallest = flattest * (1 - 1e-9) <= a * size <= flattest * (1 + 1e-9)
    return max(0.0, -found) if smallest else abs(found)


def probabilities(values: Array, slopes: Array, k: int, pairs: bool, winner: Array) -> Array:
    """Probabilities (n, k) of machines' values (n, machines), in which the predicted class is the likeliest.

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
    return np.array([_with_winner(*row) for row in zip(p, winner, strict=True)])


def _joined(log_odds: Array, k: int) -> Array:
    """The p (k,) with Σ p = 1 and the least Σᵢⱼ (rⱼᵢ pᵢ - rᵢⱼ pⱼ)², by a multiplier for the sum."""
    r, A = np.zeros((k, k)), np.ones((k + 1, k + 1))
    for odds, (i, j) in zip(log_odds, combinations(range(k), 2), strict=True):
        r[i, j] = np.clip(expit(odds), 1e-7, 1 - 1e-7)  # neither class of a pair is impossible
        r[j, i] = 1.0 - r[i, j]
    A[:k, :k] = np.diag((r**2).sum(axis=0)) - r * r.T
    A[k, k] = 0.0
    p = np.maximum(np.linalg.solve(A, np.eye(k + 1)[k])[:k], 0.0)
    return p / p.sum()


def _with_winner(p: Array, winner: int) -> Array:
    """The nearest probabilities whose largest is the winner's: it shares evenly with as many others as it takes."""
    others = [i for i in np.argsort(-p, kind="stable") if i != winner]
    for count in range(len(p)):
        pool = [winner, *others[:count]]
        shared = p.copy()
        shared[pool] = p[pool].mean()
        if shared[winner] >= shared.max():
            break
    return shared
