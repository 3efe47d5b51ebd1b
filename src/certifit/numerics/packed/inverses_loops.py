"""Inverses and log-determinants of many small positive definite matrices (k, k), 64 of them side by side.

T (k k, LANES) holds the lower triangles of LANES matrices, entry (i, j) in row i k + j, so that every step of the
Cholesky factorisation is a loop over numbers that are contiguous in memory. Outside of this file matrices are packed:
lower triangles row after row, k (k + 1) / 2 numbers.
"""

from __future__ import annotations

import numpy as np

from certifit.numerics.compiled.compiling import called_by_loops, called_from_python, written_into_loops

LANES = 64  # matrices that are factored side by side
# The bits of a float64 without sign and exponent, and the bits of 1.0.
MANTISSA, ONE = np.int64(2**52 - 1), np.int64(1023 * 2**52)
# Numba compiles a function anew for every literal number that it is called with: so this one is typed.
NEXT = np.int64(1)


@called_by_loops
def _subtract_products(T, out, a, step_a, b, step_b, n):
    """Subtract Σ T[a + h step_a] T[b + h step_b] over h < n from T[out], in every lane; four products at a time."""
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


@called_by_loops
def _scale(T, out, factor, sign):
    """Multiply T[out] by sign T[factor], in every lane."""
    o, f = T[out], T[factor]
    for lane in range(LANES):
        o[lane] *= sign * f[lane]


# With this error model a matrix that is not positive definite gives NaN or infinity instead of an exception.
@called_by_loops
def _factor(T, k):
    """Overwrite T by its Cholesky factor L, with the reciprocals of L's diagonal in the diagonal's place."""
    for i in range(k):
        for j in range(i):
            _subtract_products(T, i * k + j, i * k, NEXT, j * k, NEXT, j)
            _scale(T, i * k + j, j * k + j, 1.0)
        _subtract_products(T, i * k + i, i * k, NEXT, i * k, NEXT, i)
        o = T[i * k + i]
        for lane in range(LANES):
            o[lane] = 1.0 / np.sqrt(o[lane])


@called_by_loops
def _invert(T, k):
    """Overwrite L by (L Lᵀ)⁻¹: first R = L⁻¹, R_ij = -Σ_{j <= h < i} L_ih R_hj / L_ii, then RᵀR."""
    for i in range(k):
        for j in range(i):
            _scale(T, i * k + j, j * k + j, -1.0)
            _subtract_products(T, i * k + j, i * k + j + 1, NEXT, (j + 1) * k + j, k, i - j - 1)
            _scale(T, i * k + j, i * k + i, 1.0)
    for j in range(k):
        for i in range(j, k):
            _scale(T, i * k + j, i * k + i, -1.0)
            _subtract_products(T, i * k + j, (i + 1) * k + i, k, (i + 1) * k + j, k, k - i - 1)
            o = T[i * k + j]
            for lane in range(LANES):
                o[lane] = -o[lane]


@written_into_loops
def _log_determinants(T, k, out):
    """Write log-determinants to out (n,), n <= LANES, from the result of `_factor`; not finite where that is not.

    The diagonal entries are multiplied, with the power of 2 of the product kept apart: nothing overflows, and one
    logarithm for each matrix is enough.
    """
    product, power = np.ones(LANES), np.zeros(LANES)
    for i in range(k):
        diagonal = T[i * k + i]
        for lane in range(LANES):
            x = product[lane] * diagonal[lane]
            bits = np.float64(x).view(np.int64)
            power[lane] += np.float64((bits >> 52) - 1023) if x - x == 0.0 else x
            product[lane] = np.int64((bits & MANTISSA) | ONE).view(np.float64)
    for lane in range(len(out)):
        out[lane] = -2.0 * (np.log(product[lane]) + power[lane] * np.log(2.0))


@written_into_loops
def _invert_lanes(T, k, A, log_det):
    """Write the inverses of the matrices in T to A (n, >= k (k + 1) / 2), packed, and their log-determinants (n,)."""
    _factor(T, k)
    _log_determinants(T, k, log_det)
    _invert(T, k)
    for lane in range(len(A)):
        row, a = A[lane], 0
        for i in range(k):
            for j in range(i + 1):
                row[a] = T[i * k + j, lane]
                a += 1


@called_from_python
def invert_packed(A, k, log_det):
    """Invert packed positive definite matrices A (m, >= k (k + 1) / 2) in place; write log-determinants (m,)."""
    T = np.empty((k * k, LANES))
    for first in range(0, len(A), LANES):
        n = min(LANES, len(A) - first)
        for lane in range(LANES):
            # Lanes without a matrix of their own repeat the last one.
            row, a = A[first + min(lane, n - 1)], 0
            for i in range(k):
                for j in range(i + 1):
                    T[i * k + j, lane] = row[a]
                    a += 1
        _invert_lanes(T, k, A[first : first + n], log_det[first : first + n])


@called_from_python
def invert_blocks(P, columns, A, log_det):
    """Invert the blocks P[:, M, M] of positive definite matrices P (k, d, d), for each row M of columns (m, q).

    The inverses are written to A (m k, q (q + 1) / 2), packed, and their log-determinants to log_det (m k,).
    """
    q, k = columns.shape[1], len(P)
    T = np.empty((q * q, LANES))
    for first in range(0, len(A), LANES):
        n = min(LANES, len(A) - first)
        for lane in range(LANES):
            p, own = divmod(first + min(lane, n - 1), k)
            M = columns[p]
            for i in range(q):
                for j in range(i + 1):
                    T[i * q + j, lane] = P[own, M[i], M[j]]
        _invert_lanes(T, q, A[first : first + n], log_det[first : first + n])
