"""The function of one column: constant between thresholds, with a value of its own for missing entries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit.rows import Array


@dataclass(frozen=True, eq=False)
class ShapeFunction:
    """values[i] where thresholds[i - 1] < x <= thresholds[i]; rows weigh as many up as down, so its mean is 0."""

    thresholds: Array  # (k - 1,)
    values: Array  # (k,)
    missing: float  # where there is no entry; 0, the mean, if the fit met none
    counts: Array  # (k,) rows of the fit
    missing_count: int

    def __call__(self, x: Array) -> Array:
        """The values at x (n,)."""
        found = self.values[np.searchsorted(self.thresholds, x, side="left")]
        return np.where(np.isnan(x), self.missing, found)

    def extremes(self, x: Array, epsilon: float) -> tuple[Array, Array]:
        """The least and the largest value within epsilon of x (n,); missing entries stay missing."""
        first = np.searchsorted(self.thresholds, x - epsilon, side="left")
        last = np.searchsorted(self.thresholds, x + epsilon, side="left")
        low, high = range_extremes(self.values, first, last)
        gone = np.isnan(x)
        return np.where(gone, self.missing, low), np.where(gone, self.missing, high)


def range_extremes(values: Array, first: Array, last: Array) -> tuple[Array, Array]:
    """The least and largest of values[first … last] for each pair (n,), by runs of doubled length."""
    lows, highs = [values], [values]
    width = 1
    while 2 * width <= len(values):
        for runs, best in ((lows, np.minimum), (highs, np.maximum)):
            runs.append(best(runs[-1][:-width], runs[-1][width:]))
        width *= 2
    size = last - first + 1
    level = np.floor(np.log2(size)).astype(np.int64)
    low, high = np.empty(len(first)), np.empty(len(first))
    for k in np.unique(level):
        at = level == k
        end = last[at] - (1 << int(k)) + 1
        low[at] = np.minimum(lows[k][first[at]], lows[k][end])
        high[at] = np.maximum(highs[k][first[at]], highs[k][end])
    return low, high
