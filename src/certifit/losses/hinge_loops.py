"""Compiled loop over rows with hinge losses: from scores to losses, dual variables and curvature.

A hinge arrives as its `HingeShape` (κ, e, top): φ(z) = max over 0 <= a <= top of a (z + e) - a² / (2κ).
"""

import numpy as np

from certifit.numerics.compiled.compiling import called_from_python, twin_of, written_into_loops
from certifit.numerics.compiled.whole_arrays import running_total


@called_from_python
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


@written_into_loops
def _value_and_slope(z, kappa, e, top):
    if z + e <= 0.0:
        return 0.0, 0.0
    if kappa == np.inf:
        return top * (z + e), top
    a = min(kappa * (z + e), top)
    return a * (z + e) - a * a / (2.0 * kappa), a


@twin_of(hinge_rows)
def _hinge_rows_of_arrays(eta, s, q, u, hinges, A, h):
    reported, (kappa, e, top) = hinges
    z = q - s * eta
    value, a = _values_and_slopes(z, kappa, e, top)
    side, ua = np.where(s > 0, 0, 1), u * a
    A[:] = 0.0
    A[np.arange(len(z)), side] = ua
    sums = np.array([[running_total((ua * by)[side == k]) for by in (q, a)] for k in (0, 1)])
    bend = kappa * (z + e)
    curved = (u > 0) & (kappa < np.inf) & (bend >= 0.0) & (bend <= top)
    h[:] = np.where(curved, u * kappa, 0.0)
    reported_sum = running_total(u * _values_and_slopes(z, *reported)[0])
    return reported_sum, running_total(u * value), sums, int(curved.sum())


def _values_and_slopes(z, kappa, e, top):
    up = z + e
    if kappa == np.inf:
        return np.where(up <= 0.0, 0.0, top * up), np.where(up <= 0.0, 0.0, top)
    a = np.minimum(kappa * up, top)
    return np.where(up <= 0.0, 0.0, a * up - a * a / (2.0 * kappa)), np.where(up <= 0.0, 0.0, a)
