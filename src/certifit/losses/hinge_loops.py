"""Compiled loop over rows with hinge losses: from scores to losses, dual variables and curvature.

A hinge arrives as its `HingeShape` (κ, e, top): φ(z) = max over 0 <= a <= top of a (z + e) - a² / (2κ).
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def hinge_rows(eta, s, q, u, hinges, A, h):
    """Sum two hinges of the slacks z = q - s η over rows: one that is reported and one that is minimised.

    eta, s, q, u (n,) are scores, signs ±1, targets of the slacks and weights; `hinges` is the pair of shapes. Writes
    u a of the minimised hinge into column 0 of A (n, 2) where s > 0, else into column 1, and u κ into h (n,) where
    that hinge is curved, else 0. Returns Σ u φ of both hinges; Σ u a q and Σ u a² of the minimised one, for each sign
    (2, 2); and how many rows are curved.
    """
    reported_sum, minimised_sum, curved = 0.0, 0.0, 0
    sums = np.zeros((2, 2))
    reported, minimised = hinges
    kappa, e, top = minimised
    for i in range(eta.shape[0]):
        z = q[i] - s[i] * eta[i]
        reported_sum += u[i] * _value_and_slope(z, reported[0], reported[1], reported[2])[0]
        value, a = _value_and_slope(z, kappa, e, top)
        minimised_sum += u[i] * value
        side = 0 if s[i] > 0 else 1
        A[i, side] = u[i] * a
        A[i, 1 - side] = 0.0
        sums[side, 0] += u[i] * a * q[i]
        sums[side, 1] += u[i] * a * a
        h[i] = 0.0
        if u[i] > 0 and kappa < np.inf and 0.0 <= kappa * (z + e) <= top:
            h[i] = u[i] * kappa
            curved += 1
    return reported_sum, minimised_sum, sums, curved


@njit(cache=True, nogil=True, inline="always")
def _value_and_slope(z, kappa, e, top):
    if z + e <= 0.0:
        return 0.0, 0.0
    if kappa == np.inf:
        return top * (z + e), top
    a = min(kappa * (z + e), top)
    return a * (z + e) - a * a / (2.0 * kappa), a
