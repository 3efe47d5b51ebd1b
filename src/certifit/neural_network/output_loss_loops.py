"""Softmax and cross-entropy, before and after NumPy's exponentials: one pass over the scores each, compiled."""

from __future__ import annotations

import numpy as np

from certifit.numerics.compiled.compiling import called_from_python, twin_of
from certifit.rows import Array


@called_from_python
def shift_scores(scores: Array, y: Array, shifted: Array, aligned: Array) -> None:
    """Write scores (n, k) less the largest of their row, and the sum of these times targets for each row (n,)."""
    for i in range(len(scores)):
        largest = scores[i, 0]
        for k in range(1, scores.shape[1]):
            value = scores[i, k]
            largest = value if value > largest or value != value else largest
        total = scores.dtype.type(0)
        for k in range(scores.shape[1]):
            shifted[i, k] = scores[i, k] - largest
            total += y[i, k] * shifted[i, k]
        aligned[i] = total


@twin_of(shift_scores)
def _shift_scores_of_arrays(scores: Array, y: Array, shifted: Array, aligned: Array) -> None:
    np.subtract(scores, scores.max(axis=1, keepdims=True), out=shifted)
    aligned[...] = 0
    for k in range(scores.shape[1]):
        aligned += y[:, k] * shifted[:, k]


@called_from_python
def find_softmax_slopes(powers: Array, y: Array, factors: Array, totals: Array) -> None:
    """Make slopes (share - y) times the row's factor of powers (n, k) of e, whose sums (n,) are written too."""
    for i in range(len(powers)):
        total = powers.dtype.type(0)
        for k in range(powers.shape[1]):
            total += powers[i, k]
        totals[i] = total
        for k in range(powers.shape[1]):
            powers[i, k] = (powers[i, k] / total - y[i, k]) * factors[i]


@twin_of(find_softmax_slopes)
def _find_softmax_slopes_of_arrays(powers: Array, y: Array, factors: Array, totals: Array) -> None:
    totals[...] = 0
    for k in range(powers.shape[1]):
        totals += powers[:, k]
    powers /= totals[:, None]
    powers -= y
    powers *= factors[:, None]
