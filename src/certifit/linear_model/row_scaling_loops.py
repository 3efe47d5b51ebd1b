"""Weighted Gram matrices: dense rows multiplied by roots of weights, and sparse rows entry by entry."""

from typing import NamedTuple

import numpy as np

from certifit.numerics.compiled.compiling import called_from_python, twin_of


@called_from_python
def root_rows(Z, h, out):
    """Write diag(√h) (Z, 1) to out (n, d1), whose product with itself is the weighted Gram matrix.

    Z is (n, d), h (n,) >= 0; where out has only d columns, the column of ones is left out.
    """
    n, d = Z.shape
    for i in range(n):
        s = np.sqrt(h[i])
        for j in range(d):
            out[i, j] = s * Z[i, j]
        for j in range(d, out.shape[1]):
            out[i, j] = s


@twin_of(root_rows)
def _root_rows_of_arrays(Z, h, out):
    s, d = np.sqrt(h)[:, None], Z.shape[1]
    out[:, :d] = s * Z
    out[:, d:] = s


class SparseEntries(NamedTuple):
    """The arrays of CSR rows."""

    indptr: np.ndarray  # (n + 1,)
    indices: np.ndarray
    data: np.ndarray


@called_from_python
def add_pairs(rows, h, place, out):
    """Add Σ h (z, 1) (z, 1)ᵀ of CSR rows to out, in the columns z with place >= 0, which is where they go.

    h is (n,), place (d,) with m numbers of at least 0; where out is (m, m), the column of ones is left out.
    """
    n, m = rows.indptr.shape[0] - 1, 0
    for j in range(place.shape[0]):
        m += place[j] >= 0
    where, value = np.empty(m + 1, np.int64), np.empty(m + 1)
    for i in range(n):
        used = 0
        for k in range(rows.indptr[i], rows.indptr[i + 1]):
            p = place[rows.indices[k]]
            if p >= 0:
                where[used], value[used] = p, rows.data[k]
                used += 1
        if out.shape[0] > m:
            where[used], value[used] = m, 1.0
            used += 1
        for a in range(used):
            v, to = h[i] * value[a], out[where[a]]
            for b in range(a + 1):
                to[where[b]] += v * value[b]
    for p in range(out.shape[0]):  # in which of the two triangles a pair is depends on the order of the entries
        for q in range(p):
            out[p, q] += out[q, p]
            out[q, p] = out[p, q]
