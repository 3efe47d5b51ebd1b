"""Coordinate descent on a quadratic with an L1 penalty: the inner problem of proximal Newton steps."""

from typing import NamedTuple

import numpy as np

from certifit.numerics.compiled.compiling import called_from_python, twin_of


@called_from_python
def shrink_quadratic(H, q, lam, x, tol, max_sweeps):
    """Minimise ½ x·Hx + q·x + Σ lam_j |x_j| over x, in place, coordinate after coordinate.

    H (m, m) symmetric positive semidefinite; lam (m,) >= 0. Sweeps over all coordinates alternate with sweeps over
    the non-zero ones until none moves by more than tol in units of the objective. Returns the number of sweeps.
    """
    m = x.shape[0]
    r = q.copy()  # Hx + q
    for j in range(m):
        if x[j] != 0.0:
            for i in range(m):
                r[i] += H[j, i] * x[j]
    full = True
    for sweep in range(max_sweeps):
        largest = 0.0
        for j in range(m):
            a = H[j, j]
            if a <= 0.0 or (not full and x[j] == 0.0):
                continue
            z = a * x[j] - r[j]
            new = 0.0
            if z > lam[j]:
                new = (z - lam[j]) / a
            elif z < -lam[j]:
                new = (z + lam[j]) / a
            move = new - x[j]
            if move != 0.0:
                x[j] = new
                for i in range(m):
                    r[i] += move * H[j, i]
                largest = max(largest, a * move * move)
        if largest <= tol:
            if full:
                return sweep + 1
            full = True
        else:
            full = False
    return max_sweeps


@twin_of(shrink_quadratic)
def _shrink_quadratic_by_rows(H, q, lam, x, tol, max_sweeps):
    r, curvatures, bounds = q.copy(), H.diagonal().tolist(), lam.tolist()
    for k in np.flatnonzero(x):
        r += H[k] * x[k]
    full = True
    for sweep in range(max_sweeps):
        largest = 0.0
        for j, (a, bound) in enumerate(zip(curvatures, bounds, strict=True)):
            old = float(x[j])
            if a <= 0.0 or (not full and old == 0.0):
                continue
            z = a * old - float(r[j])
            new = (z - bound) / a if z > bound else (z + bound) / a if z < -bound else 0.0
            move = new - old
            if move != 0.0:
                x[j] = new
                r += move * H[j]
                largest = max(largest, a * move * move)
        if largest <= tol and full:
            return sweep + 1
        full = largest <= tol
    return max_sweeps


class RootColumns(NamedTuple):
    """Sparse columns y of rows multiplied by roots of their curvatures h, and what a free intercept makes of them."""

    indptr: np.ndarray  # (m + 1,)
    indices: np.ndarray
    data: np.ndarray
    curvatures: np.ndarray  # (m,) Σ y² + ridge, less what the best intercept takes off
    totals: np.ndarray  # (m,) Σ √h y; 0 without an intercept
    weight: float  # Σ h; 1 without an intercept
    ridge: np.ndarray  # (m,)


@called_from_python
def root_columns(indptr, indices, data, picked, root):
    """The picked columns of a CSC table (n, d), their rows multiplied by root (n,).

    Returns indptr (m + 1,), indices and data, the sums of squares (m,) and those of products with root (m,).
    """
    m = picked.shape[0]
    ends, squares, totals = np.zeros(m + 1, indptr.dtype), np.zeros(m), np.zeros(m)
    for j in range(m):
        ends[j + 1] = ends[j] + indptr[picked[j] + 1] - indptr[picked[j]]
    # Numbers without a sign: of others each is compared with 0, since those below it count from the end.
    rows, values = np.empty(ends[m], np.uint32), np.empty(ends[m])
    for j in range(m):
        first, square, total = indptr[picked[j]], 0.0, 0.0
        for k in range(ends[j + 1] - ends[j]):
            i = indices[first + k]
            value = root[i] * data[first + k]
            rows[ends[j] + k], values[ends[j] + k] = i, value
            square += value * value
            total += value * root[i]
        squares[j], totals[j] = square, total
    return ends, rows, values, squares, totals


@called_from_python
def sweep_columns(columns, terms, x, v, moved, full):
    """Take each coordinate in turn to the minimum of q·d + ½ |d|²_S + Σ lam_j |x_j| over x = start + d, in place.

    S = YᵀY - totals totalsᵀ / weight + diag(ridge) with sparse columns Y (n, m); terms are q, lam and start (m,).
    v (n,) is Y d and `moved` Σ totals d: both follow. Unless `full`, coordinates that are 0 stay so. Returns the
    largest move, in units of the objective, and `moved`.
    """
    q, lam, start = terms
    largest = 0.0
    for j in range(x.shape[0]):
        a, old = columns.curvatures[j], x[j]
        if a <= 0.0 or (not full and old == 0.0):
            continue
        r = q[j] - columns.totals[j] * (moved / columns.weight) + columns.ridge[j] * (old - start[j])
        for k in range(columns.indptr[j], columns.indptr[j + 1]):
            r += columns.data[k] * v[columns.indices[k]]
        z = a * old - r
        new = 0.0
        if z > lam[j]:
            new = (z - lam[j]) / a
        elif z < -lam[j]:
            new = (z + lam[j]) / a
        move = new - old
        if move != 0.0:
            x[j] = new
            moved += move * columns.totals[j]
            for k in range(columns.indptr[j], columns.indptr[j + 1]):
                v[columns.indices[k]] += move * columns.data[k]
            largest = max(largest, a * move * move)
    return largest, moved


@called_from_python
def descend_nonnegative(H, q, x, tol, max_sweeps):
    """Minimise ½ x·Hx + q·x over x >= 0, in place, coordinate after coordinate; x starts there.

    H (m, m) symmetric positive semidefinite. Sweeps go on until no coordinate moves by more than tol in units of the
    objective. Returns the number of sweeps.
    """
    m = x.shape[0]
    r = q.copy()  # Hx + q
    for j in range(m):
        if x[j] != 0.0:
            for i in range(m):
                r[i] += H[j, i] * x[j]
    for sweep in range(max_sweeps):
        largest = 0.0
        for j in range(m):
            a = H[j, j]
            if a <= 0.0:
                continue
            new = max(0.0, x[j] - r[j] / a)
            move = new - x[j]
            if move != 0.0:
                x[j] = new
                for i in range(m):
                    r[i] += move * H[j, i]
                largest = max(largest, a * move * move)
        if largest <= tol:
            return sweep + 1
    return max_sweeps
