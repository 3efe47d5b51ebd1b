"""Mixtures: posteriors of rows, quadratic features of Gaussian components, and components on rows with holes.

Many rows at a time lie along the last axis, so that every inner loop runs over numbers side by side.
"""

from __future__ import annotations

import numpy as np
from numba import njit

LOG_2PI = float(np.log(2 * np.pi))
LOG2_E = 1.0 / np.log(2.0)
LOG_2_HIGH, LOG_2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # log 2 in two parts, as fdlibm has it
SMALLEST = -700.0  # logarithms below it count as those of 0
TAYLOR = 1.0 / np.array([6227020800.0, 479001600.0, 39916800.0, 3628800.0, 362880.0, 40320.0, 5040.0, 720.0, 120.0])


# Contraction lets products and sums run as one instruction; nothing is assumed about NaN or infinity.
@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def softmax(logits, w, log_p):
    """logits (k, n) become w exp(logits) / Σ exp(logits); log_p (n,) is log Σ exp(logits), NaN where a logit is.

    The exponential is a Taylor sum about the nearest power of 2, good to the last digit: unlike a library's, the
    compiler runs it for several rows at a time.
    """
    k, n = logits.shape
    top, total = logits[0].copy(), np.zeros(n)
    for a in range(1, k):
        row = logits[a]
        for i in range(n):
            top[i] = top[i] if top[i] > row[i] else row[i]
    for a in range(k):
        row = logits[a]
        for i in range(n):
            y = row[i] - top[i]
            x = SMALLEST if y < SMALLEST else y
            m = np.floor(x * LOG2_E + 0.5)
            r = (x - m * LOG_2_HIGH) - m * LOG_2_LOW
            p = TAYLOR[0]
            for c in range(1, len(TAYLOR)):
                p = p * r + TAYLOR[c]
            p = ((((p * r + 1.0 / 24.0) * r + 1.0 / 6.0) * r + 0.5) * r + 1.0) * r + 1.0
            power = np.int64((np.int64(m) + 1023) << 52).view(np.float64)
            e = 0.0 if y < SMALLEST else p * power
            row[i] = e
            total[i] += e
    for i in range(n):
        log_p[i] = top[i] + np.log(total[i])
        total[i] = w[i] / total[i]
    for a in range(k):
        row = logits[a]
        for i in range(n):
            row[i] *= total[i]


@njit(cache=True, nogil=True)
def shift_rows(X, shift, Z):
    """Z (d, n) = X (n, d) - shift, turned round; returns whether any entry is missing (NaN)."""
    holes = 0
    for j in range(X.shape[1]):
        z, s = Z[j], shift[j]
        for i in range(len(X)):
            z[i] = X[i, j] - s
        for i in range(len(X)):
            holes += z[i] != z[i]
    return holes > 0


@njit(cache=True, nogil=True)
def pair_features(Z, out):
    """The products z_i z_j, i >= j, of rows Z (d, n) in out (d (d + 1) / 2, n)."""
    a = 0
    for i in range(len(Z)):
        for j in range(i + 1):
            o, u, v = out[a], Z[i], Z[j]
            for t in range(len(o)):
                o[t] = u[t] * v[t]
            a += 1


# ------------------------------------------------------------------------------------------ rows with holes
# Rows Z (n, d) have 0 in their holes and come sorted by pattern: rows starts[p] to starts[p + 1] miss the columns
# that missing[p] (d,) marks. P (k, d, d) are the components' precisions. See `models.mixture_gaussian_holes`.
@njit(cache=True, nogil=True)
def _listed(marks, out):
    """The numbers of the marked columns; how many."""
    n = 0
    for j in range(len(marks)):
        out[n] = j
        n += 1 if marks[j] else 0
    return n


@njit(cache=True, nogil=True)
def _factor(P, M, q, L):
    """L (q, q), lower triangular, with L Lᵀ = P[M, M]; returns log |P[M, M]|."""
    log_det = 0.0
    for a in range(q):
        for b in range(a + 1):
            total = P[M[a], M[b]]
            for c in range(b):
                total -= L[a, c] * L[b, c]
            L[a, b] = np.sqrt(total) if a == b else total / L[b, b]
        log_det += 2.0 * np.log(L[a, a])
    return log_det


@njit(cache=True, nogil=True)
def complete(Z, missing, starts, P, Pm, squares, fill):
    """Turn squares (k, n), those of rows with 0 in their holes, into those of what is observed.

    fill (k, n, d), 0 before, gets the entries that are expected in the holes.
    """
    d = Z.shape[1]
    M, L, y = np.empty(d + 1, np.int64), np.empty((d, d)), np.empty(d)
    for p in range(len(missing)):
        q = _listed(missing[p], M)
        if q == 0:
            continue
        for k in range(len(P)):
            constant = _factor(P[k], M, q, L) - q * LOG_2PI
            for i in range(starts[p], starts[p + 1]):
                z = Z[i]
                square = 0.0
                for a in range(q):
                    row = P[k, M[a]]
                    g = -Pm[k, M[a]]
                    for j in range(d):
                        g += row[j] * z[j]
                    for b in range(a):
                        g -= L[a, b] * y[b]
                    y[a] = g / L[a, a]
                    square += y[a] * y[a]
                squares[k, i] += constant - square
                out = fill[k, i]
                for a in range(q - 1, -1, -1):
                    v = y[a]
                    for b in range(a + 1, q):
                        v -= L[b, a] * y[b]
                    y[a] = v / L[a, a]
                    out[M[a]] = -y[a]


@njit(cache=True, nogil=True)
def gather(Z, missing, starts, P, fill, R, first, second):
    """Add what the holes add to Σ r z, first (k, d), and to the lower triangles of Σ r z zᵀ, second (k, d, d)."""
    d = Z.shape[1]
    M, L, cross = np.empty(d + 1, np.int64), np.empty((d, d)), np.empty((d, d))
    for p in range(len(missing)):
        q = _listed(missing[p], M)
        if q == 0:
            continue
        for k in range(len(P)):
            weight = 0.0
            cross[:q] = 0.0
            for i in range(starts[p], starts[p + 1]):
                r = R[k, i]
                if r == 0.0:
                    continue
                weight += r
                z, v = Z[i], fill[k, i]
                for a in range(q):
                    scaled = r * v[M[a]]
                    first[k, M[a]] += scaled
                    row = cross[a]
                    for j in range(d):
                        row[j] += scaled * (z[j] + v[j])
            if weight == 0.0:
                continue
            _add_inverse(P[k], M, q, L, weight, cross)
            for a in range(q):
                i = M[a]
                for j in range(d):
                    if j <= i:
                        second[k, i, j] += cross[a, j]
                    elif not missing[p, j]:
                        second[k, j, i] += cross[a, j]


@njit(cache=True, nogil=True)
def _add_inverse(P, M, q, L, weight, out):
    """out[a, M[b]] += weight (P[M, M]⁻¹)[a, b]."""
    _factor(P, M, q, L)
    for c in range(q):  # L over its own inverse, column after column
        L[c, c] = 1.0 / L[c, c]
        for a in range(c + 1, q):
            total = 0.0
            for b in range(c, a):
                total -= L[a, b] * L[b, c]
            L[a, c] = total / L[a, a]
    for a in range(q):
        for b in range(q):
            total = 0.0
            for c in range(max(a, b), q):
                total += L[c, a] * L[c, b]
            out[a, M[b]] += weight * total
