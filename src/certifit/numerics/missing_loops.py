"""Probabilistic PCA row by row: sums of packed matrices over some of the rows, codes.

A symmetric matrix (k, k) is packed as its lower triangle, row after row: k (k + 1) / 2 numbers.
"""

from __future__ import annotations

import numpy as np
from numba import njit


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
