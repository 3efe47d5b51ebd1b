"""Compiled loops of EM for any mixture: posteriors of rows, and two mixtures compared row by row.

Tables are (k, n), components by rows: every inner loop runs over the rows of one component, which lie side by side in
memory, so that the compiler handles several rows in one instruction.
"""

from __future__ import annotations

import numpy as np

from certifit.numerics.compiled.compiling import called_by_loops, called_from_python, twin_of
from certifit.numerics.compiled.whole_arrays import logarithms

LOG2_E, SMALLEST = 1.0 / float(np.log(2.0)), -700.0
# log 2 in two parts, as in fdlibm: a whole number times the first part is exact
LOG_2_HIGH, LOG_2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
# adding this leaves the nearest whole number, biased as an exponent, in the last bits of the sum
ROUNDER = 1.5 * 2.0**52 + 1023.0
NEVER = -1e300  # stands for the logarithm of 0, where it is multiplied by 0


def _exp_and_power(x):
    """Return exp(r) and the bits of m for x = m log 2 + r >= -700, m whole; of a number or of an array.

    exp(r) is a Taylor sum of degree 12. Even and odd terms are summed apart, so that neither sum waits for the other.
    """
    t = x * LOG2_E + ROUNDER
    m = t - ROUNDER
    r = (x - m * LOG_2_HIGH) - m * LOG_2_LOW
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
    return (odd * r + even) * s + r + 1.0, t


_exp_and_power_in_loops = called_by_loops(_exp_and_power)


@called_by_loops
def _exp(y):
    """Return exp(y) for y <= 0, to two units in the last place; 0 below -700.

    Unlike a library's exp this runs for several rows in one instruction.
    """
    found, t = _exp_and_power_in_loops(SMALLEST if y < SMALLEST else y)
    power = np.int64(np.float64(t).view(np.int64) << 52).view(np.float64)
    return 0.0 if y < SMALLEST else found * power


def _exp_of_arrays(y):
    found, t = _exp_and_power(np.where(y < SMALLEST, SMALLEST, y))
    return np.where(y < SMALLEST, 0.0, found * (t.view(np.int64) << 52).view(np.float64))


@called_by_loops
def _largest(logf, log_weights):
    """Return the largest of log_weights + logf (k, n) in each column (n,)."""
    top = np.empty(logf.shape[1])
    for i in range(len(top)):
        top[i] = logf[0, i] + log_weights[0]
    for a in range(1, len(logf)):
        row, c = logf[a], log_weights[a]
        for i in range(len(row)):
            y = row[i] + c
            top[i] = top[i] if top[i] > y else y
    return top


def _largest_of_arrays(joint):
    top = joint[0]
    for y in joint[1:]:
        top = np.where(top > y, top, y)
    return top


@called_from_python
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


@twin_of(softmax)
def _softmax_of_arrays(logf, log_weights, w, log_p):
    joint = logf + log_weights[:, None]
    top = _largest_of_arrays(joint)
    logf[:] = _exp_of_arrays(joint - top)
    total = logf[0].copy()
    for row in logf[1:]:
        total += row
    log_p[:] = top + logarithms(total)
    logf *= w / total


@called_from_python
def compare_rows(first, second, log_weights, log_weights_second, out):
    """Compare two mixtures row by row, given their log-densities (k, n); q is the posterior of the first.

    Writes four numbers of each row into out (4, n): log p of the first; log p of the second; Σ_k q log(π f / q) with
    the second's π and f; KL(q || posterior of the second).
    """
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
            log_q = max(x[i] + c, NEVER) - before[i]  # a number, also where a component has no weight
            joint = max(y[i] + c_second, NEVER)
            bound[i] += r * (joint - log_q)
            kl[i] += r * (log_q - (joint - after[i]))


@twin_of(compare_rows)
def _compare_rows_of_arrays(first, second, log_weights, log_weights_second, out):
    joint, joint_second = first + log_weights[:, None], second + log_weights_second[:, None]
    top, top_second = _largest_of_arrays(joint), _largest_of_arrays(joint_second)
    Q, Q_second = _exp_of_arrays(joint - top), _exp_of_arrays(joint_second - top_second)
    total, total_second = Q[0].copy(), Q_second[0].copy()
    for q, q_second in zip(Q[1:], Q_second[1:], strict=True):
        total += q
        total_second += q_second
    out[0], out[1] = top + logarithms(total), top_second + logarithms(total_second)
    out[2:] = 0.0
    for q, x, y in zip(Q, joint, joint_second, strict=True):
        log_q, own = np.where(x < NEVER, NEVER, x) - out[0], np.where(y < NEVER, NEVER, y)
        out[2] += q / total * (own - log_q)
        out[3] += q / total * (log_q - (own - out[1]))
