"""The best k intervals of numbers on a line: dynamic programming, each layer by halving (see `cluster.one_column`).

Running sums cancel where numbers are far from zero or clusters narrow, so they are kept as pairs of floats; nothing
here may be reassociated.
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, inline="always")
def _add(a, b):
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


@njit(cache=True, nogil=True, inline="always")
def _product(a, b):
    """a b as a pair (Dekker 1971)."""
    p = a * b
    t, u = 134217729.0 * a, 134217729.0 * b
    a1, b1 = t - (t - a), u - (u - b)
    a2, b2 = a - a1, b - b1
    return p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2


@njit(cache=True, nogil=True)
def running_sums(x, w, S):
    """S (6, n+1): Σ w, Σ w x and Σ w x² of the first 0, 1, …, n numbers, each as a pair of rows."""
    S[:, 0] = 0.0
    for i in range(len(x)):
        p, e = _product(w[i], x[i])
        q, f = _product(p, x[i])
        terms = ((w[i], 0.0), (p, e), (q, f + e * x[i]))
        for m in range(3):
            s, t = _add(S[2 * m, i], terms[m][0])
            S[2 * m, i + 1], S[2 * m + 1, i + 1] = _add(s, t + (S[2 * m + 1, i] + terms[m][1]))


@njit(cache=True, nogil=True)
def _scatter(S, i, j):
    """Σ w (x - mean)² over the i-th to the (j-1)-th number."""
    W, e = _add(S[0, j], -S[0, i])
    W, V = _add(W, e + (S[1, j] - S[1, i]))
    a, e = _add(S[2, j], -S[2, i])
    a, b = _add(a, e + (S[3, j] - S[3, i]))
    q, e = _add(S[4, j], -S[4, i])
    q, r = _add(q, e + (S[5, j] - S[5, i]))
    p, e = _product(a, a)
    e += 2.0 * a * b
    ratio = p / W
    back, f = _product(ratio, W)
    rest = ((p - back) + (e - f - ratio * V)) / W
    return max(0.0, (q - ratio) + (r - rest))


@njit(cache=True, nogil=True)
def next_layer(S, m, D, new, start):
    """D_m `new` (n+1,) from D_{m-1} `D`, and the first number of the last interval, `start` (n+1,)."""
    n = len(D) - 1
    lows, highs = np.empty(128, np.int64), np.empty(128, np.int64)  # j still to do, and the i that may be theirs
    firsts, lasts = np.empty(128, np.int64), np.empty(128, np.int64)
    new[:m] = np.inf
    start[:m] = 0
    lows[0], highs[0], firsts[0], lasts[0] = m, n, m - 1, n - 1
    depth = 1
    while depth > 0:
        depth -= 1
        low, high, first, last = lows[depth], highs[depth], firsts[depth], lasts[depth]
        j = (low + high) // 2
        best, at = np.inf, first
        for i in range(first, min(last, j - 1) + 1):
            value = D[i] + _scatter(S, i, j)
            if value < best:
                best, at = value, i
        new[j], start[j] = best, at
        if j < high:
            lows[depth], highs[depth], firsts[depth], lasts[depth] = j + 1, high, at, last
            depth += 1
        if low < j:
            lows[depth], highs[depth], firsts[depth], lasts[depth] = low, j - 1, first, at
            depth += 1
