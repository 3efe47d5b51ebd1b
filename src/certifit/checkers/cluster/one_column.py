"""The smallest k-means objective of a single column, found without the solver: a clustering is measured against it.

On a line clusters are intervals, so with c(i, j) the scatter of the i-th to the (j-1)-th number in order,
    D_m(j) = min_i D_{m-1}(i) + c(i, j)
is the smallest objective of m clusters of the first j. Since c(i, j) + c(i', j') <= c(i, j') + c(i', j) for
i <= i' <= j <= j' (Monge), the best i does not fall as j rises, and each layer is solved by halving: the best i for
the middle j confines those on either side. An i that rounding makes a little worse than the best costs the others no
more than that (by the same inequality), so that rounding adds up over layers and halvings only.
References: Wu, Optimal quantization by matrix searching (1991); Wang & Song, Ckmeans.1d.dp (2011).

Scatters are differences of running sums, in pairs of floats (Dekker 1971) since these cancel: far from zero, or where
clusters are narrow, nearly all digits are lost. Few numbers are added to their clusters one by one, which loses none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from certifit.checkers.cluster.spectral_bound import EPS
from certifit.checkers.plain.blocks import dense
from certifit.rows import Array, Rows


@dataclass(frozen=True)
class LineTuning:
    """Up to which sizes the smallest objective is found."""

    most_numbers: int = 2**17  # distinct numbers for which the best intervals are found; more are merged to so many
    most_cells: int = 2**20  # numbers x clusters for which they are found; more numbers are merged likewise
    most_sorted: int = 2**23  # rows that are sorted at all
    few_numbers: int = 512  # distinct numbers up to which the scatter of every interval is found by itself


def line_bound(rows: Rows, k: int, *, tuning: LineTuning = LineTuning()) -> float:
    """Return a number that no k centres get below, but for rounding the largest such; 0 where there is no bound."""
    if rows.n_features != 1 or rows.n_rows > tuning.most_sorted:
        return 0.0
    data = rows.load()
    some = data.w > 0
    x, which = np.unique(dense(data.X)[some, 0], return_inverse=True)
    w = np.bincount(which.ravel(), data.w[some])
    if len(x) <= k:
        return 0.0
    size = float(np.abs(x).max())
    scale = 2.0 ** min(1023, -int(np.frexp(size)[1]))  # exact; squares neither over- nor underflow
    x = x * scale
    most, moved = min(tuning.most_numbers, tuning.most_cells // k), 0.0
    if len(x) > most:
        x, w, moved = _merge_neighbours(x, w, most)
    if len(x) <= k:
        return 0.0
    find = smallest_of_few if len(x) <= tuning.few_numbers else smallest_objective
    best = find(x, w, k)
    # The root of the smallest sum of squares moves by no more than the rows do, all taken together.
    return max(0.0, best**0.5 - moved**0.5) ** 2 / scale / scale


def _merge_neighbours(x: Array, w: Array, most: int) -> tuple[Array, Array, float]:
    """Replace runs of neighbours by their means, at most `most`; return these, their weights and Σ w (x - mean)².

    Runs are longer where numbers are dense, in proportion to density^(2/3), which costs least (Panter & Dite 1951).
    """
    place = np.append(0.0, np.cumsum(np.diff(x) ** (2 / 3)))
    first = np.unique(np.searchsorted(place, np.arange(most) * (place[-1] / most)))
    length = np.diff(np.append(first, len(x)))
    W = np.add.reduceat(w, first)
    mean = x[first] + np.add.reduceat(w * (x - np.repeat(x[first], length)), first) / W
    return mean, W, float(w @ (x - np.repeat(mean, length)) ** 2) * (1 + 1e-10)


def smallest_objective(x: Array, w: Array, k: int) -> float:
    """Return at most the smallest objective of k clusters of the numbers x (n,), ascending, from -1 to 1.

    >>> round(smallest_objective(np.array([-1.0, -0.75, 0.5, 1.0]), np.ones(4), 2), 12)  # {-1, -0.75} and {0.5, 1}
    0.15625
    """
    n = len(x)
    sums = [_running(w), _running(*_product(w, x)), _running(*_times(_product(x, x), (w, np.zeros(n))))]
    D = np.full(n + 1, np.inf)
    D[0] = 0.0
    for m in range(1, k + 1):
        D = _layer(D, sums, m)
    halvings = np.log2(n) + 2
    doubt = 4 * k * halvings * EPS * D[n] + k * halvings * n * EPS**2 * (w @ x**2)
    return max(0.0, float(D[n] - doubt))


def smallest_of_few(x: Array, w: Array, k: int) -> float:
    """Return the same of few numbers, with the scatter of every interval found by itself.

    >>> round(smallest_of_few(np.array([-1.0, -0.75, 0.5, 1.0]), np.ones(4), 2), 12)
    0.15625
    """
    n = len(x)
    scatter = np.full((n, n + 1), np.inf)  # of the i-th to the (j-1)-th
    total, W, mean = np.zeros(n), np.zeros(n), np.zeros(n)  # of the intervals that begin with i; means less the i-th
    for j in range(n):
        i = slice(j + 1)
        away, before = (x[j] - x[i]) - mean[i], W[i].copy()
        W[i] += w[j]
        total[i] += w[j] * (before / W[i]) * away**2
        mean[i] += away * (w[j] / W[i])
        # A mean is off by a few eps of the interval's length for each number; the root of a sum of squares moves by
        # no more than the numbers do, all taken together.
        moved = 4 * (j + 1 - np.arange(j + 1)) * EPS * (x[j] - x[i])
        scatter[i, j + 1] = np.maximum(np.sqrt(total[i]) - np.sqrt(W[i]) * moved, 0.0) ** 2
    D = np.append(0.0, np.full(n, np.inf))
    for _ in range(k):
        D = (D[:n, None] + scatter).min(axis=0)
    return float(D[n]) * (1 - 4 * (n + k) * EPS)


def _layer(D: Array, sums: list[FloatPair], m: int) -> Array:
    """Return D_m (n+1,) from D_{m-1}, halving the distance between the j that are solved."""
    n = len(D) - 1
    new, best = np.full(n + 1, np.inf), np.zeros(n + 1, dtype=np.int64)
    stride = 1 << int(np.ceil(np.log2(n + 1)))
    while stride:
        j = np.arange(stride, n + 1, 2 * stride)  # between those that are known
        j = j[j >= m]
        left, right = j - stride, j + stride
        low = np.where(left >= m, best[np.maximum(left, 0)], m - 1)
        high = np.where(right <= n, best[np.minimum(right, n)], n)
        high = np.minimum(high, j - 1)
        count = np.maximum(high - low + 1, 1)
        first = np.cumsum(count) - count
        i = np.arange(count.sum()) - np.repeat(first - low, count)
        value = D[i] + _scatter(sums, i, np.repeat(j, count))
        if len(j):
            new[j] = np.minimum.reduceat(value, first)
            best[j] = np.minimum.reduceat(np.where(value <= np.repeat(new[j], count), i, n), first)
        stride //= 2
    return new


def _scatter(sums: list[FloatPair], i: Array, j: Array) -> Array:
    """Return Σ w x² - (Σ w x)² / Σ w over the i-th to the (j-1)-th number."""
    W, first, second = (_minus(FloatPair(S.high[j], S.low[j]), FloatPair(S.high[i], S.low[i])) for S in sums)
    square = _times(first, first)
    ratio = square.high / W.high
    back = _times(FloatPair(ratio, np.zeros_like(ratio)), W)
    ratio_low = ((square.high - back.high) + (square.low - back.low)) / W.high
    return np.maximum((second.high - ratio) + (second.low - ratio_low), 0.0)


# ------------------------------------------------------------------------------------------------ pairs of floats
class FloatPair(NamedTuple):
    """Numbers high + low, with low below the last digit of high."""

    high: Array  # (n,)
    low: Array  # (n,)


def _add(a: Array, b: Array) -> FloatPair:
    s = a + b
    t = s - a
    return FloatPair(s, (a - (s - t)) + (b - t))


def _product(a: Array, b: Array) -> FloatPair:
    p = a * b
    a_high, b_high = (2.0**27 + 1) * a, (2.0**27 + 1) * b
    a_high, b_high = a_high - (a_high - a), b_high - (b_high - b)
    a_low, b_low = a - a_high, b - b_high
    return FloatPair(p, ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low)


def _minus(a: FloatPair, b: FloatPair) -> FloatPair:
    s = _add(a.high, -b.high)
    return _add(s.high, s.low + (a.low - b.low))


def _times(a: FloatPair, b: tuple[Array, Array]) -> FloatPair:
    p = _product(a.high, b[0])
    return _add(p.high, p.low + (a.high * b[1] + a.low * b[0]))


def _running(high: Array, low: Array | None = None) -> FloatPair:
    """Return the sums of the first 0, 1, …, n numbers (n+1,), by doubling."""
    total = FloatPair(np.append(0.0, high), np.append(0.0, np.zeros_like(high) if low is None else low))
    step = 1
    while step <= len(high):
        s = _add(total.high[step:], total.high[:-step])
        s = _add(s.high, s.low + (total.low[step:] + total.low[:-step]))
        total = FloatPair(np.append(total.high[:step], s.high), np.append(total.low[:step], s.low))
        step *= 2
    return total
