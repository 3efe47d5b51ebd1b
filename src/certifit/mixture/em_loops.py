"""Mixtures: posteriors of rows, quadratic features of Gaussian components, and components on rows with holes.

Many rows at a time lie along the last axis, so that every inner loop runs over numbers side by side.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from certifit.numerics.missing_loops import centre

LOG_2PI = float(np.log(2 * np.pi))
LOG2_E = 1.0 / np.log(2.0)
LOG_2_HIGH, LOG_2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # log 2 in two parts, as fdlibm has it
SMALLEST = -700.0  # logarithms below it count as those of 0
NEVER = -1e300  # stands for the logarithm of 0 in products with 0
ROUND = 1.5 * 2.0**52 + 1023.0  # added to a number it leaves, in the last bits, the nearest whole one as an exponent
EVEN = 1.0 / np.array([479001600.0, 3628800.0, 40320.0, 720.0, 24.0, 2.0])  # 1/12!, 1/10!, ...
ODD = 1.0 / np.array([39916800.0, 362880.0, 5040.0, 120.0, 6.0])


# Contraction lets products and sums run as one instruction; nothing is assumed about NaN or infinity.
@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _exp(y):
    """exp(y), y <= 0, to two units in the last place: a Taylor sum about the nearest power of 2.

    Unlike a library's, the compiler runs it for many rows at a time; even and odd terms do not wait for each other.
    """
    x = SMALLEST if y < SMALLEST else y
    t = x * LOG2_E + ROUND
    m = t - ROUND
    r = (x - m * LOG_2_HIGH) - m * LOG_2_LOW
    s = r * r
    even, odd = EVEN[0], ODD[0]
    for c in range(1, len(EVEN)):
        even = even * s + EVEN[c]
    for c in range(1, len(ODD)):
        odd = odd * s + ODD[c]
    power = np.int64(np.float64(t).view(np.int64) << 52).view(np.float64)
    return 0.0 if y < SMALLEST else ((odd * r + even) * s + r + 1.0) * power


@njit(cache=True, nogil=True)
def _peaks(logf, log_weights):
    """The largest of log_weights + logf (k, n) in each column (n,)."""
    top = logf[0] + log_weights[0]
    for a in range(1, len(logf)):
        row, c = logf[a], log_weights[a]
        for i in range(len(row)):
            y = row[i] + c
            top[i] = top[i] if top[i] > y else y
    return top


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def softmax(logf, log_weights, w, log_p):
    """logf (k, n) becomes w p / Σ p, p = exp(log_weights + logf); log_p (n,) is log Σ p, NaN where a logarithm is."""
    k, n = logf.shape
    top, total = _peaks(logf, log_weights), np.zeros(n)
    for a in range(k):
        row, c = logf[a], log_weights[a]
        for i in range(n):
            row[i] = _exp(row[i] + c - top[i])
            total[i] += row[i]
    for i in range(n):
        log_p[i] = top[i] + np.log(total[i])
        total[i] = w[i] / total[i]
    for a in range(k):
        row = logf[a]
        for i in range(n):
            row[i] *= total[i]


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def contrast(first, second, log_weights, log_weights_second, out):
    """Two mixtures' log-densities (k, n) row by row; out (4, n).

    log p of the first and the second; Σ q log(π f / q) of the second, q the first one's posterior; KL(q || posterior
    of the second).
    """
    k, n = first.shape
    before, after, bound, kl = out[0], out[1], out[2], out[3]
    top, top_second = _peaks(first, log_weights), _peaks(second, log_weights_second)
    Q, total, total_second = np.empty((k, n)), np.zeros(n), np.zeros(n)
    for a in range(k):
        x, y, q, c, c_second = first[a], second[a], Q[a], log_weights[a], log_weights_second[a]
        for i in range(n):
            q[i] = _exp(x[i] + c - top[i])
            total[i] += q[i]
        for i in range(n):
            total_second[i] += _exp(y[i] + c_second - top_second[i])
    for i in range(n):
        before[i] = top[i] + np.log(total[i])
        after[i] = top_second[i] + np.log(total_second[i])
        bound[i] = kl[i] = 0.0
    for a in range(k):
        x, y, q, c, c_second = first[a], second[a], Q[a], log_weights[a], log_weights_second[a]
        for i in range(n):
            r = q[i] / total[i]
            log_q = max(x[i] + c, NEVER) - before[i]  # a number, also where a component has no weight
            joint = max(y[i] + c_second, NEVER)
            bound[i] += r * (joint - log_q)
            kl[i] += r * (log_q - (joint - after[i]))


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
# Rows of the same pattern lie side by side: those from rows[p, 0] up to rows[p, 1] miss columns[p] (q,), the same
# number in all patterns here. P_MM⁻¹ is packed as its lower triangle, row after row: (patterns, k, q (q + 1) / 2).
# See `mixture.gaussian.missing_entries`.
@njit(cache=True, nogil=True)
def less_means(X, m, E):
    """E (k, n, d) = X (n, d) less each of the means m (k, d), 0 where X has a hole."""
    for k in range(len(m)):
        centre(X, m[k], E[k])


# Reassociation lets a sum of products run over several columns at a time.
@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def _dot(x, y):
    total = 0.0
    for j in range(len(x)):
        total += x[j] * y[j]
    return total


@njit(cache=True, nogil=True)
def complete(columns, rows, inverses, log_det, G, E, squares):
    """squares (k, n) of what is observed, less q log 2π, and with log |P_MM|.

    E (k, n, d), the rows less the means, gets the entries that are expected in the holes; G is E P.
    """
    q = columns.shape[1]
    g, v = np.empty(q), np.empty(q)
    for p in range(len(columns)):
        M = columns[p]
        for k in range(len(E)):
            inverse, constant = inverses[p, k], log_det[p, k] - q * LOG_2PI
            for i in range(rows[p, 0], rows[p, 1]):
                e, c, fall = E[k, i], 0, 0.0
                square = _dot(e, G[k, i])
                for a in range(q):
                    g[a] = G[k, i, M[a]]
                for a in range(q):
                    total = inverse[c + a] * g[a]
                    for b in range(a):
                        total += inverse[c + b] * g[b]
                        v[b] += inverse[c + b] * g[a]
                    v[a] = total
                    c += a + 1
                for a in range(q):
                    fall += g[a] * v[a]
                    e[M[a]] = -v[a]
                squares[k, i] = square + constant - fall


@njit(cache=True, nogil=True)
def weigh(E, R, out, first):
    """out (k, n, d) = R E, and first (k, d) its sums over rows."""
    for k in range(len(E)):
        total = first[k]
        total[:] = 0.0
        for i in range(E.shape[1]):
            r, e, o = R[k, i], E[k, i], out[k, i]
            for j in range(len(total)):
                o[j] = r * e[j]
                total[j] += o[j]


@njit(cache=True, nogil=True)
def add_blocks(columns, inverses, weights, second):
    """Add weights[k, p] P_MM⁻¹ to the lower triangles of second (k, d, d)."""
    for p in range(len(columns)):
        M = columns[p]
        for k in range(len(second)):
            own, inverse, weight, c = second[k], inverses[p, k], weights[k, p], 0
            for a in range(len(M)):
                for b in range(a + 1):
                    own[M[a], M[b]] += weight * inverse[c]
                    c += 1
