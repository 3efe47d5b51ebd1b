"""k-means of a single column, solved exactly: on a line clusters are intervals.

    D_m(j) = min_i D_{m-1}(i) + scatter of the i-th to the (j-1)-th number in order

is the smallest objective of m clusters of the first j numbers. The best i does not fall as j rises, so a layer takes
n log n scatters by halving; small tables just try every i.
References: Wu, Optimal quantization by matrix searching (1991); Wang & Song, Ckmeans.1d.dp: optimal k-means
clustering in one dimension by dynamic programming, R Journal 3 (2011).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from certifit.cluster import one_column_loops as kernel
from certifit.cluster.distance_bounds import EPS, power_of_two
from certifit.cluster.lloyd import check_range
from certifit.rows import Array, Rows

SMALL = 512  # distinct numbers up to which compiling costs more than it saves
LARGEST = 2**20  # distinct numbers x clusters that are solved exactly; more are first rounded to fewer
MOST = 1024  # clusters, beyond which even that takes too long
LOADED = 2**23  # rows that are sorted at all

_running_sums: Any = kernel.running_sums
_next_layer: Any = kernel.next_layer


class Exact(NamedTuple):
    """The best clusters."""

    centres: Array  # (k, 1)
    bound: float  # a number that no k centres get below: but for rounding, what these reach


def best_intervals(rows: Rows, k: int) -> Exact | None:
    """The best k clusters of a single column; None of more columns or `MOST` clusters, or of as many as numbers.

    Of more numbers than `LARGEST` / k, neighbours are taken together: the centres are then a very good start.

    >>> from certifit.rows import as_rows
    >>> best_intervals(as_rows([[1.0], [2.0], [9.0], [10.0]]), 2).centres.ravel()
    array([1.5, 9.5])
    """
    if rows.n_features != 1 or rows.n_rows > LOADED or k > MOST:
        return None
    data = rows.load()
    X: Any = data.X
    column = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)[:, 0]
    x, which = np.unique(column[data.w > 0], return_inverse=True)
    w = np.bincount(which, data.w[data.w > 0])
    moved = 0.0
    if len(x) * k > LARGEST:
        x, w, moved = _merged(x, w, max(LARGEST // k, 2 * k))
    n = len(x)
    if n <= k:
        return None
    scale = power_of_two(float(np.abs(x).max()))  # exact; squares neither over- nor underflow
    starts, best = (_every if n <= SMALL else _halving)(x * scale, w, k)
    edges = [n]
    for start in starts[::-1]:
        edges.append(int(start[edges[-1]]))
    bound = max(0.0, best**0.5 - moved**0.5 * scale) ** 2 / scale / scale  # distances shrink by what numbers moved
    check_range(bound)
    return Exact(_means(x, w, np.array(edges[:0:-1]))[:, None], bound * (1 - 64 * (np.log2(n) + k) * EPS))


def _means(x: Array, w: Array, first: Array) -> Array:
    """Of the runs that begin with these numbers."""
    apart = x - np.repeat(x[first], np.diff(np.append(first, len(x))))
    return x[first] + np.add.reduceat(w * apart, first) / np.add.reduceat(w, first)


def _merged(x: Array, w: Array, most: int) -> tuple[Array, Array, float]:
    """At most `most` runs of neighbours at their means, their weights, and Σ w (x - mean)² or a little more.

    Numbers in a run go with their density^(2/3), which moves them least (Panter & Dite, Quantization distortion in
    pulse-count modulation with nonuniform spacing of levels, 1951).
    """
    place = np.append(0.0, np.cumsum(np.diff(x) ** (2 / 3)))
    first = np.unique(np.searchsorted(place, np.linspace(0.0, place[-1], most, endpoint=False)))
    mean = _means(x, w, first)
    moved = w @ (x - np.repeat(mean, np.diff(np.append(first, len(x))))) ** 2
    return mean, np.add.reduceat(w, first), float(moved) * (1 + 1e-10)


def _every(x: Array, w: Array, k: int) -> tuple[list[Array], float]:
    """For each layer the first number of the last interval (n+1,), and the smallest objective, by trying every i."""
    n = len(x)
    cost = np.full((n, n + 1), np.inf)  # of the i-th to the (j-1)-th
    total, W, mean = np.zeros(n), np.zeros(n), np.zeros(n)  # of runs that begin with each i; means less the i-th
    for j in range(n):  # joins them; where sums of squares cancel, light numbers would vanish
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


def _halving(x: Array, w: Array, k: int) -> tuple[list[Array], float]:
    """The same, compiled."""
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
