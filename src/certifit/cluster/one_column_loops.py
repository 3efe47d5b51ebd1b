"""Compiled loops of the best k intervals of numbers on a line: one layer of the dynamic programme in `one_column`.

A layer is solved by halving: the best start of the last interval for the middle j confines those on either side.
Scatters are differences of running sums, which cancel where numbers are far from zero or clusters narrow. So sums are
kept as pairs of floats, high + low (Dekker, A floating-point technique for extending the available precision, 1971),
and nothing here may be reassociated.
"""

import numpy as np

from certifit.numerics.compiled.compiling import called_from_python, written_into_loops


@written_into_loops
def _add(a, b):
    """Return a + b as a pair."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


@written_into_loops
def _product(a, b):
    """Return a b as a pair."""
    p = a * b
    t, u = 134217729.0 * a, 134217729.0 * b
    a1, b1 = t - (t - a), u - (u - b)
    a2, b2 = a - a1, b - b1
    return p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2


@called_from_python
def running_sums(x, w, S):
    """Write Σ w, Σ w x and Σ w x² of the first 0, 1, …, n numbers to S (6, n+1), each as a pair of rows."""
    S[:, 0] = 0.0
    for i in range(len(x)):
        p, e = _product(w[i], x[i])
        q, f = _product(p, x[i])
        terms = ((w[i], 0.0), (p, e), (q, f + e * x[i]))
        for m in range(3):
            s, t = _add(S[2 * m, i], terms[m][0])
            S[2 * m, i + 1], S[2 * m + 1, i + 1] = _add(s, t + (S[2 * m + 1, i] + terms[m][1]))


@called_from_python
def _scatter(S, i, j):
    """Return Σ w (x - mean)² over the i-th to the (j-1)-th number."""
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


@called_from_python
def next_layer(S, m, D, new, start):
    """Write D_m to `new` (n+1,), from D_{m-1} in `D`, and the first number of the last interval to `start` (n+1,)."""
    n = len(D) - 1
    # A stack of ranges of j still to do (low to high) and of the i that may be theirs (first to last).
    lows, highs = np.empty(128, np.int64), np.empty(128, np.int64)
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
