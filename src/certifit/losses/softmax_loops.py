"""The logistic and softmax losses of a block in one compiled pass: from scores to loss, residuals and curvature.

Every exponential is of a number <= 0, so that nothing overflows, and small probabilities keep all their digits.
"""

import numpy as np

from certifit.numerics.compiled.compiling import called_from_python, twin_of
from certifit.numerics.compiled.whole_arrays import exponentials, logarithms, logarithms_of_one_more, running_total


@called_from_python
def binary_rows(eta, y, w, r, h):
    """Sum the logistic loss over rows with scores η (n,) and write residuals r (n,) and curvatures h (n,).

    loss = Σ w [log(1 + exp η) - y η];  r = w (p - y);  h = w p (1 - p);  p = 1 / (1 + exp(-η)).
    Returns the loss and the smallest margin (2y - 1) η over rows with a positive weight.
    """
    loss, margin = 0.0, np.inf
    for i in range(eta.shape[0]):
        m = eta[i] if y[i] else -eta[i]  # margin; the loss is log(1 + exp(-m))
        a = np.exp(-abs(m))
        q = 1.0 / (1.0 + a)
        miss = a * q if m >= 0 else q  # probability of the other class
        loss += w[i] * (np.log1p(a) - min(m, 0.0))
        r[i] = -w[i] * miss if y[i] else w[i] * miss
        h[i] = w[i] * a * q * q
        if m < margin and w[i] > 0:
            margin = m
    return loss, margin


@twin_of(binary_rows)
def _binary_rows_of_arrays(eta, y, w, r, h):
    m = np.where(y, eta, -eta)
    a = exponentials(-np.abs(m))
    q = 1.0 / (1.0 + a)
    miss = np.where(m >= 0, a * q, q)
    r[:] = np.where(y, -w * miss, w * miss)
    h[:] = w * a * q * q
    loss = running_total(w * (logarithms_of_one_more(a) - np.where(m > 0.0, 0.0, m)))
    return loss, _least(m, w)


def _least(margins, w):
    """Return the smallest margin of rows with a positive weight; NaN is none."""
    return float(np.fmin.reduce(margins[w > 0], initial=np.inf))


@called_from_python
def softmax_rows(eta, y, w, P, R):
    """Sum the softmax loss over rows with scores η (n, k) and write probabilities P (n, k) and residuals R (n, k).

    loss = Σ w [log Σ_k exp η_k - η_y];  R = w (P - onehot(y)). Returns the loss and the smallest margin
    η_y - max_{k≠y} η_k over rows with a positive weight. 1 - P_y is summed from the other classes, so that it stays
    accurate when P_y is nearly 1.
    """
    loss, margin = 0.0, np.inf
    n, k = eta.shape
    for i in range(n):
        c = y[i]
        rival = -np.inf
        for j in range(k):
            if j != c and eta[i, j] > rival:
                rival = eta[i, j]
        top = max(rival, eta[i, c])
        others = 0.0
        for j in range(k):
            P[i, j] = np.exp(eta[i, j] - top)
            if j != c:
                others += P[i, j]
        total = others + P[i, c]
        for j in range(k):
            P[i, j] /= total
            R[i, j] = w[i] * P[i, j]
        R[i, c] = -w[i] * others / total
        if eta[i, c] == top:
            loss += w[i] * np.log1p(others)
        else:
            loss += w[i] * (np.log(total) + top - eta[i, c])
        if eta[i, c] - rival < margin and w[i] > 0:
            margin = eta[i, c] - rival
    return loss, margin


@twin_of(softmax_rows)
def _softmax_rows_of_arrays(eta, y, w, P, R):
    rows = np.arange(len(eta))
    own, others_eta = eta[rows, y], eta.copy()
    others_eta[rows, y] = -np.inf
    rival = np.fmax.reduce(others_eta, axis=1, initial=-np.inf)
    top = np.where(own > rival, own, rival)
    P[:] = exponentials(eta - top[:, None])
    others = np.zeros(len(eta))
    for j in range(eta.shape[1]):
        others += np.where(y == j, 0.0, P[:, j])
    total = others + P[rows, y]
    P /= total[:, None]
    R[:] = w[:, None] * P
    R[rows, y] = -w * others / total
    straight = logarithms(total) + top - own
    loss = running_total(w * np.where(own == top, logarithms_of_one_more(others), straight))
    return loss, _least(own - rival, w)
