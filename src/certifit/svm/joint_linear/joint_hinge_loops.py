"""Inner loops of support vector machines for all classes at once: their losses, smoothed, and how these curve."""

import numpy as np
from numba import njit


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
def smooth_rows(F, y, u, margin, shared, h, old, D, q):
    """The smoothed loss Σ max over q of q·z - h/2u |q - old|², its slope along D, its last part; and q (n, k).

    z = margin + f - f_y, and 0 for the own class. q is in [0, u] class by class and 0 for the own; or, where
    `shared`, q >= 0 with Σ q = u, own class included.
    """
    k = F.shape[1]
    value, slope, away = 0.0, 0.0, 0.0
    for i in range(F.shape[0]):
        own = y[i]
        if u[i] == 0.0:
            q[i] = 0.0
            continue
        stiff = h / u[i]
        for j in range(k):
            z = 0.0 if j == own else margin + F[i, j] - F[i, own]
            q[i, j] = old[i, j] + z / stiff
        level = _level(q[i], u[i]) if shared else 0.0
        for j in range(k):
            if j == own:
                q[i, j] = max(q[i, j] - level, 0.0) if shared else 0.0
            else:
                q[i, j] = max(q[i, j] - level, 0.0) if shared else min(max(q[i, j], 0.0), u[i])
                value += q[i, j] * (margin + F[i, j] - F[i, own])
                slope += q[i, j] * (D[i, j] - D[i, own])
            away += 0.5 * stiff * (q[i, j] - old[i, j]) ** 2
    return value - away, slope, away


@njit(cache=True, nogil=True)
def curve_rows(S, y, free, stiff, shared):
    """Changes S (m, k) of scores into those of -α that the smoothed loss answers with, in place.

    `free` (m, k) says which q are within their limits; stiff (m,) is u / h.
    """
    k = S.shape[1]
    for i in range(S.shape[0]):
        own, total, count = y[i], 0.0, 0
        mine = 0.0 if shared else S[i, own]
        for j in range(k):
            S[i, j] = (S[i, j] - mine) * stiff[i] if free[i, j] else 0.0
            total += S[i, j]
            count += free[i, j]
        if not shared:
            S[i, own] = -total
        elif count > 0:
            for j in range(k):
                S[i, j] -= total / count if free[i, j] else 0.0


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
