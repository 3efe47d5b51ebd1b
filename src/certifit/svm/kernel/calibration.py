"""Probabilities of machines' values by one slope, so that the class with the largest value stays the likeliest.

    min over a > 0 of   - Σᵢ wᵢ Σₖ tᵢₖ log softmax(a sᵢ)ₖ

with the scores s of rows that the machine was not trained on, and targets t a little inside (0, 1), without which
separable rows would send a to infinity. Convex in a single number, whose derivative is brought to zero.
References: Platt, Probabilistic outputs for support vector machines (1999); Wu, Lin & Weng, Probability estimates for
multi-class classification by pairwise coupling (2004); Guo et al., On calibration of modern neural networks (2017).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse, special
from scipy.optimize import brentq

from certifit.rows import Array
from certifit.rows.block import Matrix

FOLDS = 5
ROWS = 1024  # rows that are made dense at a time
FLATTEST = 1e-3  # smallest slope, for scores of size 1: rows not seen may know nothing, but an order must remain
INSIDE = 1e-7  # from 0 and 1, for probabilities of pairs
STACK = 4_000_000  # entries of all rows' matrices of pairs held at a time
TINY = np.finfo(np.float64).tiny


def folds(X: Matrix, code: Array, k: int) -> Array:
    """(n,) 0 … 4: which part each row is in, every class spread evenly over all parts.

    Rows are dealt in an order that depends on nothing but what is in them, and equal rows of a class go together: the
    order of the rows does not matter, a row given twice is a row of weight 2, and no row's copy helps to judge it.
    The rows of a class that has but one distinct row are in no part, -1: without them there would be no such class.
    """
    out, digest = np.zeros(len(code), np.int64), _digests(X)
    dealt = 0
    for c in range(k):
        here = np.flatnonzero(code == c)
        distinct = np.unique(digest[here], axis=0, return_inverse=True)[1].ravel()
        out[here] = (distinct + dealt) % FOLDS if distinct.any() else -1
        dealt += int(distinct.max()) + 1
    return out


def _digests(X: Matrix) -> Array:
    """(n, 2) whole numbers, equal for equal rows; the first, which decides, even after rounding to float32."""
    found = []
    for start in range(0, X.shape[0], ROWS):
        part = X[start : start + ROWS]
        part = np.asarray(part.toarray() if sparse.issparse(part) else part, np.float64) + 0.0  # -0.0 is 0.0
        with np.errstate(over="ignore"):
            found += [[_digest(row.astype(np.float32)), _digest(row)] for row in part]
    return np.array(found, np.uint64)


def _digest(row: Array) -> int:
    return int.from_bytes(hashlib.blake2b(row.tobytes(), digest_size=8).digest())


def smoothed_targets(code: Array, weight: Array, k: int) -> Array:
    """(n, k): 1 for the row's class and 0 for others, after one more row, which has all other classes in equal parts.

    >>> smoothed_targets(np.array([0, 0, 1]), np.ones(3), 2).round(3).tolist()
    [[0.75, 0.25], [0.75, 0.25], [0.333, 0.667]]
    """
    other = 1.0 / (np.bincount(code, weight, k)[code] + 2.0)
    out = np.repeat((other / (k - 1))[:, None], k, axis=1)
    out[np.arange(len(code)), code] = 1.0 - other
    return out


def fit_slope(scores: Array, targets: Array, weight: Array) -> float:
    """The likeliest a > 0 for probabilities softmax(a scores); scores and targets (n, k).

    >>> scores, targets = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[0.75, 0.25], [0.25, 0.75]])
    >>> round(fit_slope(scores, targets, np.ones(2)), 9) == round(float(np.log(3)), 9)
    True
    """
    size = float(np.abs(scores - scores[:, :1]).max())
    if size == 0:
        return 1.0
    derivative = partial(_derivative, scores / size, targets, weight)
    low, high = FLATTEST, 1.0
    if derivative(low) >= 0:
        return low / size
    while derivative(high) < 0:
        high *= 2
    return float(brentq(derivative, low, high, xtol=1e-15, rtol=1e-14)) / size


def _derivative(scores: Array, targets: Array, weight: Array, a: float) -> float:
    return float(weight @ np.einsum("ij,ij->i", softmax(a * scores) - targets, scores))


def softmax(scores: Array) -> Array:
    return np.asarray(special.softmax(scores, axis=1))


def coupled(log_odds: Array, pairs: Sequence[tuple[int, Any]], k: int) -> Array:
    """(n, k) probabilities p that agree best with those of pairs, rᵢⱼ: min Σᵢⱼ (rⱼᵢ pᵢ - rᵢⱼ pⱼ)², Σ p = 1.

    log_odds (n, pairs) are those of the first class of each pair against the second.
    """
    if k == 2:
        return np.column_stack([special.expit(-log_odds[:, 0]), special.expit(log_odds[:, 0])])
    step = max(1, STACK // k**2)
    return np.concatenate([_couple(log_odds[i : i + step], pairs, k) for i in range(0, len(log_odds), step)])


def _couple(log_odds: Array, pairs: Sequence[tuple[int, Any]], k: int) -> Array:
    r = np.zeros((len(log_odds), k, k))
    for column, (i, j) in enumerate(pairs):
        r[:, i, j] = np.clip(special.expit(log_odds[:, column]), INSIDE, 1 - INSIDE)
        r[:, j, i] = 1.0 - r[:, i, j]
    Q = -r * r.transpose(0, 2, 1)
    Q[:, np.arange(k), np.arange(k)] = np.square(r).sum(axis=1)
    p = np.linalg.solve(Q + 1.0, np.ones((len(r), k, 1)))[:, :, 0]  # Q p is constant, so p is a multiple of this
    p = np.maximum(p, 0.0)
    return p / p.sum(axis=1, keepdims=True)


def led_by(p: Array, winner: Array) -> Array:
    """The probabilities nearest to p (n, k), by squares, under which every row's winner is the likeliest class.

    Where others are likelier, they and the winner get what they have on average, the winner a last bit more.

    >>> led_by(np.array([[0.5, 0.3, 0.2]]), np.array([1])).tolist()
    [[0.4, 0.4000000000000001, 0.2]]
    """
    p, rows = np.maximum(p, TINY), np.arange(len(p))
    wrong = np.flatnonzero(p.argmax(axis=1) != winner)
    for i in wrong:  # few: votes and values seldom disagree
        mine = p[i, winner[i]]
        for value in np.sort(p[i][p[i] > mine])[::-1]:
            pool = p[i] >= value
            mean = (p[i][pool].sum() + mine) / (pool.sum() + 1)
            below = p[i][(p[i] < value) & (np.arange(p.shape[1]) != winner[i])].max(initial=0.0)
            if mean >= below:
                p[i, pool], p[i, winner[i]] = mean, mean
                break
    top = p[rows, winner]
    p[rows, winner] = np.where(p.argmax(axis=1) != winner, np.nextafter(p.max(axis=1), 1.0), top)
    return p
