"""Probabilities from the values of machines by one slope, so that the class with the largest value is the likeliest.

    min over a > 0 of   - Σᵢ wᵢ Σₖ tᵢₖ log softmax(a sᵢ)ₖ

with the scores s of rows that the machine was not trained on, and targets t a little inside (0, 1), without which
separable rows would send a to infinity. This is convex in a single number; at the best one the derivative is zero.

| step | function |
|---|---|
| put every row in one of five parts; machines trained on the other parts give it values | `folds` |
| the likeliest slope for these values | `smoothed_targets`, `fit_slope` |
| probabilities of pairs of classes joined into one for each class | `couple_pairs` |
| the predicted class made the likeliest | `with_winner` |

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

FOLDS = 5  # parts of the rows, each of which is left out once


def folds(X: Matrix, code: Array, k: int) -> Array:
    """The part 0 … 4 that each row is in (n,), every class spread evenly over all parts.

    Rows are dealt in an order that depends on nothing but their entries, and equal rows of a class go together: the
    order of the rows does not matter, a row given twice is a row of weight 2, and no row is judged by machines that
    were trained on a copy of it.
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


def _digests(X: Matrix, dense_rows: int = 1024) -> Array:
    """(n, 2) whole numbers, equal for equal rows; the first, which decides, even after rounding to float32.

    CSR rows are made dense `dense_rows` at a time.
    """
    found = []
    for start in range(0, X.shape[0], dense_rows):
        part = X[start : start + dense_rows]
        part = np.asarray(part.toarray() if sparse.issparse(part) else part, np.float64) + 0.0  # -0.0 is 0.0
        with np.errstate(over="ignore"):
            found += [[_digest(row.astype(np.float32)), _digest(row)] for row in part]
    return np.array(found, np.uint64)


def _digest(row: Array) -> int:
    return int.from_bytes(hashlib.blake2b(row.tobytes(), digest_size=8).digest())


def smoothed_targets(code: Array, weight: Array, k: int) -> Array:
    """Targets (n, k): the share of each class among the rows of a row's class and one more, of all other classes.

    >>> smoothed_targets(np.array([0, 0, 1]), np.ones(3), 2).round(3).tolist()
    [[0.75, 0.25], [0.75, 0.25], [0.333, 0.667]]
    """
    other = 1.0 / (np.bincount(code, weight, k)[code] + 2.0)
    out = np.repeat((other / (k - 1))[:, None], k, axis=1)
    out[np.arange(len(code)), code] = 1.0 - other
    return out


def fit_slope(scores: Array, targets: Array, weight: Array, flattest: float = 1e-3) -> float:
    """The likeliest a > 0 for probabilities softmax(a scores); scores and targets (n, k).

    It is no smaller than `flattest`, for scores of size 1: scores of rows left out may be worthless, but the order of
    the classes must remain.

    >>> scores, targets = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[0.75, 0.25], [0.25, 0.75]])
    >>> round(fit_slope(scores, targets, np.ones(2)), 9) == round(float(np.log(3)), 9)
    True
    """
    size = float(np.abs(scores - scores[:, :1]).max())
    if size == 0:
        return 1.0
    derivative = partial(_derivative, scores / size, targets, weight)
    low, high = flattest, 1.0
    if derivative(low) >= 0:
        return low / size
    while derivative(high) < 0:
        high *= 2
    return float(brentq(derivative, low, high, xtol=1e-15, rtol=1e-14)) / size


def _derivative(scores: Array, targets: Array, weight: Array, a: float) -> float:
    return float(weight @ np.einsum("ij,ij->i", softmax(a * scores) - targets, scores))


def softmax(scores: Array) -> Array:
    """exp(scores) of each row, divided by their sum."""
    return np.asarray(special.softmax(scores, axis=1))


def couple_pairs(log_odds: Array, pairs: Sequence[tuple[int, Any]], k: int, held_entries: int = 4_000_000) -> Array:
    """Probabilities p (n, k) that agree best with those of pairs, rᵢⱼ: min Σᵢⱼ (rⱼᵢ pᵢ - rᵢⱼ pⱼ)², Σ p = 1.

    log_odds (n, pairs) are those of the first class of each pair against the second; `held_entries` is how many
    entries of the rows' matrices r are in memory at a time.
    """
    if k == 2:
        return np.column_stack([special.expit(-log_odds[:, 0]), special.expit(log_odds[:, 0])])
    step = max(1, held_entries // k**2)
    return np.concatenate([_couple(log_odds[i : i + step], pairs, k) for i in range(0, len(log_odds), step)])


def _couple(log_odds: Array, pairs: Sequence[tuple[int, Any]], k: int) -> Array:
    r = np.zeros((len(log_odds), k, k))
    for column, (i, j) in enumerate(pairs):
        r[:, i, j] = np.clip(special.expit(log_odds[:, column]), 1e-7, 1 - 1e-7)  # neither is impossible
        r[:, j, i] = 1.0 - r[:, i, j]
    Q = -r * r.transpose(0, 2, 1)
    Q[:, np.arange(k), np.arange(k)] = np.square(r).sum(axis=1)
    p = np.linalg.solve(Q + 1.0, np.ones((len(r), k, 1)))[:, :, 0]  # Q p is constant, so p is a multiple of this
    p = np.maximum(p, 0.0)
    return p / p.sum(axis=1, keepdims=True)


def with_winner(p: Array, winner: Array) -> Array:
    """The probabilities nearest to p (n, k), by squares, under which every row's winner is the likeliest class.

    Where others are likelier, they and the winner all get their mean, the winner a last bit more.

    >>> with_winner(np.array([[0.5, 0.3, 0.2]]), np.array([1])).tolist()
    [[0.4, 0.4000000000000001, 0.2]]
    """
    p, rows = np.maximum(p, np.finfo(np.float64).tiny), np.arange(len(p))
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
