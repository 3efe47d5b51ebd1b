"""k-means of a single column, solved exactly: on a line clusters are intervals.

    D_m(j) = min_i D_{m-1}(i) + scatter of the i-th to the (j-1)-th number in order

is the smallest objective of m clusters of the first j numbers. The best i does not fall as j rises, so that a layer
D_m takes n log n scatters by halving.

    distinct numbers                      way
    up to compiled_numbers                `_try_every_start`: each i for each j, in NumPy
    more                                  `_halve`: compiled, see one_column_loops.py
    more than most_cells / clusters       the same, after neighbours were merged: a very good start, and a lower bound

(the limits are fields of `KMeansTuning`).
References: Wu, Optimal quantization by matrix searching (1991); Wang & Song, Ckmeans.1d.dp: optimal k-means
clustering in one dimension by dynamic programming, R Journal 3 (2011).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from certifit.checkers.plain.blocks import dense
from certifit.cluster import one_column_loops
from certifit.cluster.exact_sums import power_of_two
from certifit.cluster.lloyd import check_range
from certifit.cluster.lloyd_loops import EPS
from certifit.cluster.tuning import KMeansTuning
from certifit.rows import Array, Rows

_running_sums: Any = one_column_loops.running_sums
_next_layer: Any = one_column_loops.next_layer


class BestIntervals(NamedTuple):
    """The best clusters of a single column."""

    centres: Array  # (k, 1)
    bound: float  # a number that no k centres get below: but for rounding, what these reach


def best_intervals(rows: Rows, k: int, tuning: KMeansTuning = KMeansTuning()) -> BestIntervals | None:
    """Find the best k clusters of a single column.

    None where there are more columns, more rows or clusters than `tuning` allows, or as many clusters as numbers.

    >>> from certifit.rows import as_rows
    >>> best_intervals(as_rows([[1.0], [2.0], [9.0], [10.0]]), 2).centres.ravel()
    array([1.5, 9.5])
    """
    if rows.n_features != 1 or rows.n_rows > tuning.most_sorted or k > tuning.most_intervals:
        return None
    data = rows.load()
    x, which = np.unique(dense(data.X)[data.w > 0, 0], return_inverse=True)
    w = np.bincount(which, data.w[data.w > 0])
    moved = 0.0
    if len(x) * k > tuning.most_cells:
        x, w, moved = _merge_neighbours(x, w, max(tuning.most_cells // k, 2 * k))
    n = len(x)
    if n <= k:
        return None
    scale = power_of_two(float(np.abs(x).max()))  # exact; squares neither over- nor underflow
    solve = _try_every_start if n <= tuning.compiled_numbers else _halve
    starts, best = solve(x * scale, w, k)
    edges = [n]
    for start in starts[::-1]:
        edges.append(int(start[edges[-1]]))
    # The root of the smallest sum of squares moves by no more than the numbers do, all taken together.
    bound = max(0.0, best**0.5 - moved**0.5 * scale) ** 2 / scale / scale
    check_range(bound)
    centres = _run_means(x, w, np.array(edges[:0:-1]))[:, None]
    return BestIntervals(centres, bound * (1 - 64 * (np.log2(n) + k) * EPS))


def _run_means(x: Array, w: Array, first: Array) -> Array:
    """Return the means of the runs that begin with these numbers."""
    apart = x - np.repeat(x[first], np.diff(np.append(first, len(x))))
    return x[first] + np.add.reduceat(w * apart, first) / np.add.reduceat(w, first)


def _merge_neighbours(x: Array, w: Array, most: int) -> tuple[Array, Array, float]:
    """Replace runs of neighbours by their means, at most `most`; return these, their weights and Σ w (x - mean)².

    A run holds numbers in proportion to their density^(2/3), which moves them least (Panter & Dite, Quantization
    distortion in pulse-count modulation with nonuniform spacing of levels, 1951).
    """
    place = np.append(0.0, np.cumsum(np.diff(x) ** (2 / 3)))
    first = np.unique(np.searchsorted(place, np.linspace(0.0, place[-1], most, endpoint=False)))
    mean = _run_means(x, w, first)
    moved = w @ (x - np.repeat(mean, np.diff(np.append(first, len(x))))) ** 2
    return mean, np.add.reduceat(w, first), float(moved) * (1 + 1e-10)


def _try_every_start(x: Array, w: Array, k: int) -> tuple[list[Array], float]:
    """Try every i; return for each layer where the last interval starts (n+1,), and the smallest objective."""
    n = len(x)
    cost = np.full((n, n + 1), np.inf)  # of the i-th to the (j-1)-th
    total, W, mean = np.zeros(n), np.zeros(n), np.zeros(n)  # of runs that begin with each i; means less the i-th
    # Number j joins all runs: a difference of sums of squares would cancel, and light numbers would vanish.
    for j in range(n):
        i = slice(j + 1)
        away, before = (x[j] - x[i]) - mean[i], W[i].copy()
        W[i] += w[j]
        total[i] += w[j] * (before / W[i]) * away**2
        mean[i] += away * (w[j] / W[i])
        cost[i, j + 1] = total[i]
    D, starts = np.append(0.0, np.full(n, np.inf)), []
    for _ in range(k):
        total = D[:n, None] + cost
        starts.append(total.argmin(axis=0))
        D = total.min(axis=0)
    return starts, float(D[n])


def _halve(x: Array, w: Array, k: int) -> tuple[list[Array], float]:
    """Return the same by halving, compiled."""
    n = len(x)
    S = np.empty((6, n + 1))
    _running_sums(x, w, S)
    D, starts = np.append(0.0, np.full(n, np.inf)), []
    for m in range(1, k + 1):
        new, start = np.empty(n + 1), np.empty(n + 1, np.int32)
        _next_layer(S, m, D, new, start)
        starts.append(start)
        D = new
    doubt = k * (np.log2(n) + 2) * n * EPS**2 * float(w @ x**2)  # of running sums, which cancel
    return starts, max(0.0, float(D[n]) - doubt)
