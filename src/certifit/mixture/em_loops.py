"""Compiled loops of EM for any mixture: posteriors of rows, and two mixtures compared row by row.

Tables are (k, n), components by rows: every inner loop runs over the rows of one component, which lie side by side in
memory, so that the compiler handles several rows in one instruction.
"""

from __future__ import annotations

import numpy as np
from numba import njit


# Contraction lets a product and a sum run as one instruction; nothing is assumed about NaN or infinity.
@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _exp(y):
    """Return exp(y) for y <= 0, to two units in the last place; 0 below -700.

    With m the whole number nearest to y / log 2, exp(y) = 2^m exp(r), and exp(r) is a Taylor sum of degree 12. Unlike
    a library's exp this runs for several rows in one instruction. Even and odd terms are summed apart, so that
    neither sum waits for the other.
    """
    log2_e, smallest = 1.0 / np.log(2.0), -700.0
    # log 2 in two parts, as in fdlibm: a whole number times the first part is exact
    log_2_high, log_2_low = 6.93147180369123816490e-01, 1.90821492927058770002e-10
    # adding this leaves the nearest whole number, biased as an exponent, in the last bits of the sum
    rounder = 1.5 * 2.0**52 + 1023.0
    x = smallest if y < smallest else y
    t = x * log2_e + rounder
    m = t - rounder
    r = (x - m * log_2_high) - m * log_2_low
    s = r * r
    even = 1.0 / 479001600.0  # 1/12!, then 1/10! and so on
    even = even * s + 1.0 / 3628800.0
    even = even * s + 1.0 / 40320.0
    even = even * s + 1.0 / 720.0
    even = even * s + 1.0 / 24.0
    even = even * s + 1.0 / 2.0
    odd = 1.0 / 39916800.0  # 1/11!, then 1/9! and so on
    odd = odd * s + 1.0 / 362880.0
    odd = odd * s + 1.0 / 5040.0
    odd = odd * s + 1.0 / 120.0
    odd = odd * s + 1.0 / 6.0
    power = np.int64(np.float64(t).view(np.int64) << 52).view(np.float64)
    return 0.0 if y < smallest else ((odd * r + even) * s + r + 1.0) * power


@njit(cache=True, nogil=True)
def _largest(logf, log_weights):
    """Return the largest of log_weights + logf (k, n) in each column (n,)."""
    top = logf[0] + log_weights[0]
    for a in range(1, len(logf)):
        row, c = logf[a], log_weights[a]
        for i in range(len(row)):
            y = row[i] + c
            top[i] = top[i] if top[i] > y else y
    return top


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def softmax(logf, log_weights, w, log_p):
    """Overwrite logf (k, n) with w p / Σ p, p = exp(log_weights + logf), and log_p (n,) with log Σ p.

    Both are NaN in columns where a logarithm is.
    """
    k, n = logf.shape
    top, total = _largest(logf, log_weights), np.zeros(n)
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
def compare_rows(first, second, log_weights, log_weights_second, out):
    """Compare two mixtures row by row, given their log-densities (k, n); q is the posterior of the first.

    Writes four numbers of each row into out (4, n): log p of the first; log p of the second; Σ_k q log(π f / q) with
    the second's π and f; KL(q || posterior of the second).
    """
    never = -1e300  # stands for the logarithm of 0, where it is multiplied by 0
    k, n = first.shape
    before, after, bound, kl = out[0], out[1], out[2], out[3]
    top, top_second = _largest(first, log_weights), _largest(second, log_weights_second)
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
            log_q = max(x[i] + c, never) - before[i]  # a number, also where a component has no weight
            joint = max(y[i] + c_second, never)
            bound[i] += r * (joint - log_q)
            kl[i] += r * (log_q - (joint - after[i]))
