"""Inner loops of support vector machines for all classes at once: dual ascent row by row, and their losses."""

import numpy as np
from numba import njit

# Reassociation lets sums run in vector lanes; nothing is assumed about NaN or infinity.
SUMS = {"reassoc", "contract", "nsz"}
LANES = 8  # numbers in a vector register
ROUNDING = 1e-14  # of q, relative to its limit


@njit(cache=True, nogil=True, fastmath=SUMS)
def sweep(data, indices, indptr, y, u, norms, order, margin, shared, offset, q, V):
    """One round over the rows in `order`: each row's q (k,) is set to its best value, the others being as they are.

    max over q of q·z - ½ |ΔV|², z = margin + f - f_y (0 for the own class), f = V x + offset; q is in [0, u] class by
    class, or, where `shared`, q >= 0 with Σ q = u, own class included. V = Σ x α is kept up to date, (d, k) and zeros
    up to whole vector registers; α = -q of the rivals, and their sum for the own class. Rows are CSR; indices are of
    unsigned types, which compiled loops take without asking for their sign. norms (n,) are |x|².
    """
    k, width = q.shape[1], V.shape[1]
    f, v = np.zeros(width), np.zeros(k)
    for i in order:
        first, last = indptr[i], indptr[i + np.uint64(1)]
        _scores(data, indices, first, last, V, f)
        own = y[i]
        mine = f[own] + offset[own]
        for j in range(k):
            z = 0.0 if j == own else margin + f[j] + offset[j] - mine
            v[j] = q[i, j] + z / norms[i]
        if shared:
            level = _level(v, u[i])
            for j in range(k):
                v[j] = max(v[j] - level, 0.0)
        else:
            shift = _shift(v, q[i], own, u[i])
            for j in range(k):
                v[j] = 0.0 if j == own else min(max(v[j] - shift, 0.0), u[i])
        moved, total = False, 0.0
        for j in range(k):
            f[j] = q[i, j] - v[j]
            moved |= abs(f[j]) > ROUNDING * u[i]
            total += 0.0 if j == own else f[j]
        if moved:
            f[own] = -total
            for j in range(k):
                q[i, j] = v[j]
            for p in range(first, last):
                x, column = data[p], indices[p]
                for j in range(width):
                    V[column, j] += x * f[j]


@njit(cache=True, nogil=True, fastmath=SUMS, inline="always")
def _scores(data, indices, first, last, V, f):
    """f = V x of one row; four entries at a time, or each would wait for the last one's sum."""
    width = V.shape[1]
    for j in range(width):
        f[j] = 0.0
    p = first
    while p + np.uint64(4) <= last:
        x0, x1 = data[p], data[p + np.uint64(1)]
        x2, x3 = data[p + np.uint64(2)], data[p + np.uint64(3)]
        i0, i1 = indices[p], indices[p + np.uint64(1)]
        i2, i3 = indices[p + np.uint64(2)], indices[p + np.uint64(3)]
        for j in range(width):
            f[j] += x0 * V[i0, j] + x1 * V[i1, j] + x2 * V[i2, j] + x3 * V[i3, j]
        p += np.uint64(4)
    while p < last:
        for j in range(width):
            f[j] += data[p] * V[indices[p], j]
        p += np.uint64(1)


@njit(cache=True, nogil=True, inline="always")
def _level(v, u):
    """The level above which v sums to u: raised until no more entries are below it (Michelot 1986)."""
    k = v.shape[0]
    level, above = -np.inf, k + 1
    while True:
        total, count = 0.0, 0
        for j in range(k):
            if v[j] > level:
                total += v[j]
                count += 1
        if count >= above or count == 0:  # more only by rounding
            return level
        above, level = count, (total - u) / count


@njit(cache=True, nogil=True, inline="always")
def _shift(v, old, own, u):
    """s with s = Σ (clip(v - s, 0, u) - old): the own class's share of the change. Newton's method in a bracket."""
    k = v.shape[0]
    low, high = -k * u, k * u
    s = 0.0
    for _ in range(100):
        excess, free = -s, 0
        for j in range(k):
            if j != own:
                t = v[j] - s
                if 0.0 < t < u:
                    free += 1
                excess += min(max(t, 0.0), u) - old[j]
        if excess > 0.0:
            low = s
        else:
            high = s
        following = s + excess / (1 + free)
        if following == s:
            break
        s = following if low < following < high else 0.5 * (low + high)
        if high - low <= 4e-16 * k * u:
            break
    return s


@njit(cache=True, nogil=True)
def loss_rows(F, y, u, margin, shared):
    """Σ u L: the largest slack of each row where `shared`, else their sum; slacks max(0, margin + f - f_y)."""
    total = 0.0
    for i in range(F.shape[0]):
        mine, loss = F[i, y[i]], 0.0
        for j in range(F.shape[1]):
            if j != y[i]:
                z = max(0.0, margin + F[i, j] - mine)
                loss = max(loss, z) if shared else loss + z
        total += u[i] * loss
    return total


@njit(cache=True, nogil=True)
def slopes(F, y, u, margin, shared, h, q):
    """q (n, k) that the scores F suggest: the nearest to u z / h within its limits."""
    k = F.shape[1]
    for i in range(F.shape[0]):
        for j in range(k):
            q[i, j] = 0.0 if j == y[i] else u[i] / h * (margin + F[i, j] - F[i, y[i]])
        level = _level(q[i], u[i]) if shared else 0.0
        for j in range(k):
            q[i, j] = max(q[i, j] - level, 0.0) if shared else min(max(q[i, j], 0.0), u[i])
