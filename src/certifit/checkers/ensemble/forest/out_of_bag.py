"""Out-of-bag answers and their error, with an interval that covers.

A row is answered by the members that did not see it. Their errors are not independent, because rows are also what
members were grown on: by the delta method after the bootstrap (Efron & Tibshirani 1997), row i moves the error by

    D_i = (2 + 1/(n-1)) (e_i - ē)/n + a covariance of its counts with the members' errors,

where e_i is its own error. The second term takes about as many members as rows to be told from chance, and pulls the
other way for learners that one row hardly changes: without it the standard error √(Σ D_i²) is twice that of
independent errors, whose intervals cover too rarely (Rajanala, Bates, Hastie & Tibshirani 2022).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from certifit.rows import Array


@dataclass(frozen=True)
class OutOfBag:
    """What is known of rows that some member did not see."""

    score: float  # accuracy, or R²
    low: float  # of the interval for the score
    high: float


def row_losses(answers: Array, y: Array, classes: int) -> Array:
    """The error of each row (n,): 1 where the class is wrong, or the squared residual; NaN where none answered."""
    if classes:
        wrong = answers.argmax(axis=1) != y
        return np.where(np.isnan(answers).any(axis=1), np.nan, wrong.astype(np.float64))
    return np.asarray((answers[:, 0] - y) ** 2)


def target_losses(answers: Array, y: Array, classes: tuple[int, ...]) -> Array:
    """The error of each row (n,) from answers (n, t, k): 1 where any class is wrong, or the mean squared residual."""
    kinds = classes or (0,) * y.shape[1]
    losses = [row_losses(answers[:, t, : k or 1], y[:, t], k) for t, k in enumerate(kinds)]
    return np.asarray(np.max(losses, axis=0) if classes else np.mean(losses, axis=0))


def summarise_targets(answers: Array, y: Array, w: Array, classes: tuple[int, ...]) -> OutOfBag:
    """Score and interval from answers (n, t, k) about targets (n, t): the share of rows whose classes are all right,
    or the mean of the targets' R², which is that of residuals in units of their target's spread."""
    if y.shape[1] == 1:
        return summarise(answers[:, 0], y[:, 0], w, classes[0] if classes else 0)
    if classes:
        return _summary(target_losses(answers, y, classes), w, None)
    answers, y = _moderate(answers, y)
    here = ~np.isnan(answers).any(axis=(1, 2)) & (w > 0)
    if not here.any():
        return _summary(np.full(len(y), np.nan), w, None)
    centre = np.average(y[here], axis=0, weights=w[here])
    spread = np.average((y[here] - centre) ** 2, axis=0, weights=w[here])
    residual = answers[:, :, 0] - y
    # scikit-learn's R² of a target that does not vary: 1 where all is right, else 0.
    flat = np.where((residual[here] == 0).all(axis=0), 0.0, 1.0)
    share = np.where(spread > 0, residual**2 / np.where(spread > 0, spread, 1.0), flat + 0.0 * residual)
    return _summary(share.mean(axis=1), w, 1.0)


def _moderate(answers: Array, y: Array) -> tuple[Array, Array]:
    """Answers and targets in a unit near the largest target, a power of 2: R² has the same bits, and squares of
    squares stay finite."""
    size = float(np.abs(y).max(initial=0.0))
    exponent = max(-1000, min(1000, math.frexp(size)[1]))
    unit = 2.0**-exponent if 0 < size < np.inf else 1.0
    return answers * unit, y * unit


def summarise(answers: Array, y: Array, w: Array, classes: int, coverage: float = 0.95) -> OutOfBag:
    """Score and interval from out-of-bag answers (n, k), NaN for rows that every member saw."""
    if classes:
        return _summary(row_losses(answers, y, classes), w, None, coverage)
    answers, y = _moderate(answers, y)
    loss = row_losses(answers, y, classes)
    here = ~np.isnan(loss) & (w > 0)
    y, own = y[here], w[here]
    spread = float(np.average((y - np.average(y, weights=own)) ** 2, weights=own)) if len(y) else 0.0
    return _summary(loss, w, spread, coverage)


def _summary(loss: Array, w: Array, spread: float | None, coverage: float = 0.95) -> OutOfBag:
    """Score and interval from the errors of rows (n,), as shares of the targets' spread; None for rates of errors."""
    here = ~np.isnan(loss) & (w > 0)
    loss, w = loss[here], w[here]
    if not len(loss):
        return OutOfBag(float("nan"), float("nan"), float("nan"))
    mean = float(np.average(loss, weights=w))
    share = w / w.sum()
    n = 1 / float((share**2).sum())  # rows, or as many equal ones as these weights are worth
    error = (2 + 1 / max(n - 1, 1)) * float(np.sqrt((share**2 * (loss - mean) ** 2).sum()))
    if loss.min() == loss.max():
        # Errors that are all alike say nothing of their spread: the rule of three, with twice the standard error.
        error = max(error, 2 * 3 / n / norm.ppf(0.975)) if spread is None else error
    reach = float(norm.ppf((1 + coverage) / 2)) * error
    if spread is None:
        return OutOfBag(1 - mean, max(0.0, 1 - mean - reach), min(1.0, 1 - mean + reach))
    if spread == 0:
        return OutOfBag(1.0 if mean == 0 else 0.0, 1.0 if mean == 0 else 0.0, 1.0 if mean == 0 else 0.0)
    return OutOfBag(1 - mean / spread, 1 - (mean + reach) / spread, min(1.0, 1 - (mean - reach) / spread))
