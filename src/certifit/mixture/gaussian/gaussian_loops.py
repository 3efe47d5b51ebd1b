"""Compiled loops of Gaussian components: features of complete rows, and rows with missing entries.

Complete rows lie along the last axis, (d, n), so that every inner loop runs over rows side by side. Rows with missing
entries are sorted by their pattern, the set of columns that they miss. Their loops take patterns that miss the same
number q of columns: rows from rows[p, 0] up to rows[p, 1] miss columns[p] (q,), and P_MM⁻¹ is packed as its lower
triangle, row after row: inverses (patterns, k, q (q + 1) / 2). See `mixture.gaussian.missing_entries`.
"""

from __future__ import annotations

import numpy as np

from certifit.numerics.compiled.compiling import called_from_python, compiled_with, twin_of
from certifit.numerics.missing_loops import centre

LOG_2PI = float(np.log(2 * np.pi))


# ------------------------------------------------------------------------------------------ features of rows
@called_from_python
def shift_rows(X, shift, Z):
    """Write X (n, d) - shift, transposed, into Z (d, n) and return whether any entry is missing (NaN)."""
    missing = 0
    for j in range(X.shape[1]):
        z, s = Z[j], shift[j]
        for i in range(len(X)):
            z[i] = X[i, j] - s
        for i in range(len(X)):
            missing += z[i] != z[i]
    return missing > 0


@twin_of(shift_rows)
def _shift_rows_of_arrays(X, shift, Z):
    np.subtract(X.T, shift[:, None], out=Z)
    return bool(np.isnan(Z).any())


@called_from_python
def pair_products(Z, out):
    """Write the products z_i z_j, i >= j, of rows Z (d, n) into out (d (d + 1) / 2, n)."""
    a = 0
    for i in range(len(Z)):
        for j in range(i + 1):
            o, u, v = out[a], Z[i], Z[j]
            for t in range(len(o)):
                o[t] = u[t] * v[t]
            a += 1


@twin_of(pair_products)
def _pair_products_of_arrays(Z, out):
    at = 0
    for i in range(len(Z)):
        np.multiply(Z[i], Z[: i + 1], out=out[at : at + i + 1])
        at += i + 1


# ------------------------------------------------------------------------------------------ missing entries
@called_from_python
def subtract_means(X, m, E):
    """Write X (n, d) less each of the means m (k, d) into E (k, n, d), 0 where an entry is missing."""
    for k in range(len(m)):
        centre(X, m[k], E[k])


# Reassociation lets a sum of products run over several columns at a time.
@compiled_with(fastmath={"contract", "reassoc"})
def _dot(x, y):
    total = 0.0
    for j in range(len(x)):
        total += x[j] * y[j]
    return total


@called_from_python
def complete_rows(columns, rows, inverses, log_det, G, E, squares):
    """Fill the missing entries of E with their conditional means and write the observed part's squared distance.

    E (k, n, d) are rows less means, 0 where an entry is missing, and G is E P, P the precisions. squares (k, n) gets
    e_Oᵀ (C_OO)⁻¹ e_O + log |P_MM| - q log 2π; log_det (patterns, k) is log |P_MM|.
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
                # v = P_MM⁻¹ g, from the packed lower triangle
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


@called_from_python
def weigh_rows(E, R, out, first):
    """Write R E into out (k, n, d) and its sums over rows into first (k, d); R is (k, n)."""
    for k in range(len(E)):
        total = first[k]
        for j in range(len(total)):
            total[j] = 0.0
        for i in range(E.shape[1]):
            r, e, o = R[k, i], E[k, i], out[k, i]
            for j in range(len(total)):
                o[j] = r * e[j]
                total[j] += o[j]


@called_from_python
def add_conditional_covariances(columns, inverses, weights, second):
    """Add weights[k, p] P_MM⁻¹ to the lower triangles of second (k, d, d)."""
    for p in range(len(columns)):
        M = columns[p]
        for k in range(len(second)):
            own, inverse, weight, c = second[k], inverses[p, k], weights[k, p], 0
            for a in range(len(M)):
                for b in range(a + 1):
                    own[M[a], M[b]] += weight * inverse[c]
                    c += 1
