"""Compiled loops over rows with hinges of several classes at once: their losses, smoothed, and how these curve.

F (n, k) are scores, y (n,) class numbers, u (n,) weights; a hinge arrives as its `MulticlassHinge` (margin, shared).
"""

import numpy as np

from certifit.numerics.compiled.compiling import called_from_python, written_into_loops


@called_from_python
def multiclass_loss(F, y, u, hinge):
    """Sum u L over rows: L is the largest slack of a row where `shared`, else the sum of its slacks.

    The slack of a wrong class is max(0, margin + f - f_y).
    """
    margin, shared = hinge
    total = 0.0
    for i in range(F.shape[0]):
        own_score, loss = F[i, y[i]], 0.0
        for j in range(F.shape[1]):
            if j != y[i]:
                z = max(0.0, margin + F[i, j] - own_score)
                loss = max(loss, z) if shared else loss + z
        total += u[i] * loss
    return total


@called_from_python
def smoothed_multiclass_loss(F, y, u, hinge, smoothing, D, q):
    """Sum the smoothed loss max over q of q·z - h/2u |q - centre|² over rows, and write its maximisers q (n, k).

    z = margin + f - f_y, and 0 for a row's own class. q lies in [0, u] class by class and is 0 for the own class; or,
    where `shared`, q >= 0 with Σ q = u, own class included. Returns the loss, its slope along a change D (n, k) of
    the scores, and Σ h/2u |q - centre|².
    """
    margin, shared = hinge
    h, centre = smoothing
    k = F.shape[1]
    value, slope, distance = 0.0, 0.0, 0.0
    for i in range(F.shape[0]):
        own = y[i]
        if u[i] == 0.0:
            q[i] = 0.0
            continue
        stiffness = h / u[i]
        for j in range(k):
            z = 0.0 if j == own else margin + F[i, j] - F[i, own]
            q[i, j] = centre[i, j] + z / stiffness
        level = _simplex_level(q[i], u[i]) if shared else 0.0
        for j in range(k):
            if j == own:
                q[i, j] = max(q[i, j] - level, 0.0) if shared else 0.0
            else:
                q[i, j] = max(q[i, j] - level, 0.0) if shared else min(max(q[i, j], 0.0), u[i])
                value += q[i, j] * (margin + F[i, j] - F[i, own])
                slope += q[i, j] * (D[i, j] - D[i, own])
            distance += 0.5 * stiffness * (q[i, j] - centre[i, j]) ** 2
    return value - distance, slope, distance


@called_from_python
def apply_curvature(S, y, free, curvature, shared):
    """Turn changes S (m, k) of scores into the changes of -α that the smoothed loss answers with, in place.

    `free` (m, k) says which q lie strictly within their limits; curvature (m,) is u / h.
    """
    k = S.shape[1]
    for i in range(S.shape[0]):
        own, total, count = y[i], 0.0, 0
        own_change = 0.0 if shared else S[i, own]
        for j in range(k):
            S[i, j] = (S[i, j] - own_change) * curvature[i] if free[i, j] else 0.0
            total += S[i, j]
            count += free[i, j]
        if not shared:
            S[i, own] = -total
        elif count > 0:
            for j in range(k):
                S[i, j] -= total / count if free[i, j] else 0.0


@written_into_loops
def _simplex_level(v, u):
    """The level t with Σ max(v - t, 0) = u: raised until no further entry falls below it (Michelot 1986)."""
    k = v.shape[0]
    level, above = -np.inf, k + 1
    while True:
        total, count = 0.0, 0
        for j in range(k):
            if v[j] > level:
                total += v[j]
                count += 1
        if count >= above or count == 0:  # rounding alone can make the count grow
            return level
        above, level = count, (total - u) / count
