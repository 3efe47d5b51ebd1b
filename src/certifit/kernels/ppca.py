"""Probabilistic PCA row by row: sums of packed matrices over some of the rows, inverses, codes.

A symmetric matrix (k, k) is packed as its lower triangle, row after row: k (k + 1) / 2 numbers.
"""

from __future__ import annotations

import numpy as np
from numba import njit

LANES = 64  # matrices inverted side by side, so that each step is one loop over numbers that lie together


@njit(cache=True, nogil=True)
def centre(X, mean, Z):
    """Z = X - mean, 0 where X has a hole."""
    for r in range(len(X)):
        x, z = X[r], Z[r]
        for j in range(len(x)):
            away = x[j] - mean[j]
            z[j] = away if away == away else 0.0  # NaN is not equal to itself


@njit(cache=True, nogil=True)
def sum_unmarked(marks, less, source, total, base, out):
    """out[r] = base + Σ source[j] over the j that marks[r] leaves; marks (rows, m), source (m, p), out (rows, >= p).

    Where less[r], as `total`, the sum over all, less those marked. Eight at a time: `out` is then read and written an
    eighth as often.
    """
    listed = np.empty(marks.shape[1], np.int64)
    for r in range(len(marks)):
        end = 0
        for j in range(marks.shape[1]):
            listed[end] = j
            end += marks[r, j] == less[r]
        o, a = out[r, : source.shape[1]], 0
        o[:] = 0.0
        while a + 8 <= end:
            s0, s1, s2, s3 = source[listed[a]], source[listed[a + 1]], source[listed[a + 2]], source[listed[a + 3]]
            a += 4
            s4, s5, s6, s7 = source[listed[a]], source[listed[a + 1]], source[listed[a + 2]], source[listed[a + 3]]
            a += 4
            for c in range(len(o)):
                o[c] += ((s0[c] + s1[c]) + (s2[c] + s3[c])) + ((s4[c] + s5[c]) + (s6[c] + s7[c]))
        while a < end:
            s0 = source[listed[a]]
            for c in range(len(o)):
                o[c] += s0[c]
            a += 1
        for c in range(len(o)):
            o[c] = base[c] + (total[c] - o[c] if less[r] else o[c])


@njit(cache=True, nogil=True)
def outer_packed(W, out):
    """w wᵀ of each row w of W (d, k), packed: out (d, k (k + 1) / 2)."""
    for r in range(len(W)):
        row, o, a = W[r], out[r], 0
        for i in range(len(row)):
            for j in range(i + 1):
                o[a + j] = row[i] * row[j]
            a += i + 1


@njit(cache=True, nogil=True)
def _subtract_products(T, out, a, step_a, b, step_b, n):
    """T[out] -= Σ T[a + h step_a] T[b + h step_b] over h < n, in every lane; four products at a time."""
    o, h = T[out], 0
    while h + 4 <= n:
        x0, x1, x2, x3 = T[a], T[a + step_a], T[a + 2 * step_a], T[a + 3 * step_a]
        y0, y1, y2, y3 = T[b], T[b + step_b], T[b + 2 * step_b], T[b + 3 * step_b]
        for lane in range(LANES):
            o[lane] -= (x0[lane] * y0[lane] + x1[lane] * y1[lane]) + (x2[lane] * y2[lane] + x3[lane] * y3[lane])
        h, a, b = h + 4, a + 4 * step_a, b + 4 * step_b
    while h < n:
        x0, y0 = T[a], T[b]
        for lane in range(LANES):
            o[lane] -= x0[lane] * y0[lane]
        h, a, b = h + 1, a + step_a, b + step_b


@njit(cache=True, nogil=True)
def _scale(T, out, factor, sign):
    """T[out] *= sign T[factor] in every lane."""
    o, f = T[out], T[factor]
    for lane in range(LANES):
        o[lane] *= sign * f[lane]


@njit(cache=True, nogil=True, error_model="numpy")  # a matrix that is not positive definite gives NaN or infinity
def _factor(T, k):
    """The Cholesky factor L over T, with the reciprocals of its diagonal in the diagonal's place."""
    for i in range(k):
        for j in range(i):
            _subtract_products(T, i * k + j, i * k, 1, j * k, 1, j)
            _scale(T, i * k + j, j * k + j, 1.0)
        _subtract_products(T, i * k + i, i * k, 1, i * k, 1, i)
        o = T[i * k + i]
        for lane in range(LANES):
            o[lane] = 1.0 / np.sqrt(o[lane])


@njit(cache=True, nogil=True)
def _invert(T, k):
    """(L Lᵀ)⁻¹ over L: first R = L⁻¹, R_ij = -Σ_{j <= h < i} L_ih R_hj / L_ii, then RᵀR."""
    for i in range(k):
        for j in range(i):
            _scale(T, i * k + j, j * k + j, -1.0)
            _subtract_products(T, i * k + j, i * k + j + 1, 1, (j + 1) * k + j, k, i - j - 1)
            _scale(T, i * k + j, i * k + i, 1.0)
    for j in range(k):
        for i in range(j, k):
            _scale(T, i * k + j, i * k + i, -1.0)
            _subtract_products(T, i * k + j, (i + 1) * k + i, k, (i + 1) * k + j, k, k - i - 1)
            o = T[i * k + j]
            for lane in range(LANES):
                o[lane] = -o[lane]


@njit(cache=True, nogil=True)
def invert_packed(A, k, log_det):
    """Invert packed positive definite matrices A (m, >= k (k + 1) / 2) in place; their log-determinants (m,)."""
    T = np.empty((k * k, LANES))  # lower triangles, not packed: steps along a column are then even
    for first in range(0, len(A), LANES):
        n = min(LANES, len(A) - first)
        for lane in range(LANES):
            row, a = A[first + min(lane, n - 1)], 0  # lanes left over repeat the last matrix
            for i in range(k):
                for j in range(i + 1):
                    T[i * k + j, lane] = row[a]
                    a += 1
        _factor(T, k)
        for lane in range(n):
            total = 0.0
            for i in range(k):
                total -= 2.0 * np.log(T[i * k + i, lane])
            log_det[first + lane] = total
        _invert(T, k)
        for lane in range(n):
            row, a = A[first + lane], 0
            for i in range(k):
                for j in range(i + 1):
                    row[a] = T[i * k + j, lane]
                    a += 1


@njit(cache=True, nogil=True)
def multiply_packed(A, which, b, z):
    """z[i] = A[which[i]] b[i], A packed (m, >= k (k + 1) / 2), b and z (rows, k)."""
    for r in range(len(b)):
        row, x, o = A[which[r]], b[r], z[r]
        a = 0
        for i in range(len(x)):
            total = 0.0
            for j in range(i):
                total += row[a + j] * x[j]
                o[j] += row[a + j] * x[i]
            o[i] = total + row[a + i] * x[i]
            a += i + 1


@njit(cache=True, nogil=True)
def add_outer(which, w, z, T):
    """T[which[i]] += w[i] u uᵀ, packed, with u = (z[i], 1); T (m, (k + 1) (k + 2) / 2)."""
    k = z.shape[1]
    for r in range(len(z)):
        row, x = T[which[r]], z[r]
        a = 0
        for i in range(k):
            scaled = w[r] * x[i]
            for j in range(i + 1):
                row[a + j] += scaled * x[j]
            a += i + 1
        for j in range(k):
            row[a + j] += w[r] * x[j]
        row[a + k] += w[r]
