"""Compiled loops for sums and products of packed symmetric matrices, one for each row or column of a table.

A symmetric matrix (k, k) is packed as its lower triangle, row after row: k (k + 1) / 2 numbers.
"""

from __future__ import annotations

import numpy as np

from certifit.numerics.compiled.compiling import called_from_python


@called_from_python
def sum_unmarked(marks, subtract, source, total, base, out):
    """Write base + Σ source[j], over the j that marks[r] does not mark, to out[r].

    Where subtract[r] is true, the marked ones are subtracted from `total`, the sum over all j. Eight rows of `source`
    are added at a time, so that `out` is read and written less often.
    Shapes: marks (rows, m), subtract (rows,), source (m, p), total and base (p,), out (rows, >= p).
    """
    listed = np.empty(marks.shape[1], np.int64)
    for r in range(len(marks)):
        end = 0
        for j in range(marks.shape[1]):
            listed[end] = j
            end += marks[r, j] == subtract[r]
        o, a = out[r, : source.shape[1]], 0
        for c in range(len(o)):
            o[c] = 0.0
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
            o[c] = base[c] + (total[c] - o[c] if subtract[r] else o[c])


@called_from_python
def outer_packed(W, out):
    """Write w wᵀ of each row w of W (d, k), packed, to out (d, k (k + 1) / 2)."""
    for r in range(len(W)):
        row, o, a = W[r], out[r], 0
        for i in range(len(row)):
            for j in range(i + 1):
                o[a + j] = row[i] * row[j]
            a += i + 1


@called_from_python
def multiply_packed(A, which, b, z):
    """Write A[which[i]] b[i] to z[i]; A holds packed matrices (m, >= k (k + 1) / 2), b and z are (rows, k)."""
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


@called_from_python
def add_outer(which, w, z, T):
    """Add w[i] u uᵀ, packed, to T[which[i]], with u = (z[i], 1); T is (m, (k + 1) (k + 2) / 2)."""
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
