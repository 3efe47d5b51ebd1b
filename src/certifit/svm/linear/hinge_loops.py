"""Row-wise mathematics of support vector machines: from scores to losses, dual variables and curvature."""

import numpy as np
from numba import njit

# Reassociation lets dot products run in vector lanes; nothing is assumed about NaN or infinity.
SUMS = {"reassoc", "contract", "nsz"}


@njit(cache=True, nogil=True)
def ramp_rows(eta, s, q, u, loss, used, A, h):
    """Two piecewise quadratic losses of the slack z = q - s η, one to report and one to minimise.

    A loss is (κ, e, top): max over 0 <= a <= top of a (z + e) - a² / (2κ); its slope is a = clip(κ (z + e), 0, top).
    κ = ∞ is the hinge. eta, s, q, u (n,): scores, sides ±1, where the slack begins, weights.

    Writes A (n, 2), u a of `used` in column 0 where s > 0, else in column 1, and h (n,), u κ where that is curved.
    Returns Σ u loss, Σ u used, and for each side Σ u a q and Σ u a² of `used` (2, 2), and how many rows are curved.
    """
    reported, minimised, curved = 0.0, 0.0, 0
    sides = np.zeros((2, 2))
    kappa, e, top = used
    for i in range(eta.shape[0]):
        z = q[i] - s[i] * eta[i]
        reported += u[i] * _ramp(z, loss[0], loss[1], loss[2])[0]
        value, a = _ramp(z, kappa, e, top)
        minimised += u[i] * value
        side = 0 if s[i] > 0 else 1
        A[i, side] = u[i] * a
        A[i, 1 - side] = 0.0
        sides[side, 0] += u[i] * a * q[i]
        sides[side, 1] += u[i] * a * a
        h[i] = 0.0
        if u[i] > 0 and kappa < np.inf and 0.0 <= kappa * (z + e) <= top:
            h[i] = u[i] * kappa
            curved += 1
    return reported, minimised, sides, curved


@njit(cache=True, nogil=True, inline="always")
def _ramp(z, kappa, e, top):
    """The loss and its slope."""
    if z + e <= 0.0:
        return 0.0, 0.0
    if kappa == np.inf:
        return top * (z + e), top
    a = min(kappa * (z + e), top)
    return a * (z + e) - a * a / (2.0 * kappa), a


@njit(cache=True, nogil=True, inline="always")
def _better(a, g, curvature, top):
    """Where the dual is largest along one coordinate."""
    return min(max(a + g / curvature, 0.0), top)


@njit(cache=True, nogil=True, fastmath=SUMS)
def sweep_dense(X, row, s, q, soft, top, norms, order, tau, a, beta, b):
    """One round of dual coordinate ascent over the sides in `order`; see `sweep_sparse`."""
    d = X.shape[1]
    for k in order:
        i = row[k]
        score = b[0]
        for j in range(d):
            score += X[i, j] * beta[j]
        g = q[k] - s[k] * score - soft[k] * a[k]
        new = _better(a[k], g, norms[i] + tau + soft[k], top[k])
        move = new - a[k]
        if move != 0.0:
            a[k] = new
            b[0] += tau * move * s[k]
            for j in range(d):
                beta[j] += move * s[k] * X[i, j]


@njit(cache=True, nogil=True, fastmath=SUMS)
def sweep_sparse(data, indices, indptr, row, s, q, soft, top, norms, order, tau, a, beta, b):
    """One round of dual coordinate ascent over the sides in `order`: each a is the best with all others as they are.

    max over 0 <= a <= top of a·q - Σ soft a² / 2 - ½ |Σ a s x|² - ½ τ (Σ a s)² - b₀ Σ a s. Side k is of row[k]; norms
    are |x|². Indices are of unsigned types, which compiled loops take without asking for their sign. Changes a,
    β = Σ a s x and b = b₀ + τ Σ a s in place.
    """
    for k in order:
        i = row[k]
        first, last = indptr[i], indptr[i + np.uint64(1)]
        score = b[0]
        for j in range(first, last):
            score += data[j] * beta[indices[j]]
        g = q[k] - s[k] * score - soft[k] * a[k]
        new = _better(a[k], g, norms[i] + tau + soft[k], top[k])
        move = new - a[k]
        if move != 0.0:
            a[k] = new
            b[0] += tau * move * s[k]
            for j in range(first, last):
                beta[indices[j]] += move * s[k] * data[j]
