"""Poisson, Tweedie and gamma losses with a log link over dense rows: scores, losses and gradient in one reading.

A row is still in the processor's nearest cache when the gradient asks for it, and one call does the work of a block:
threads that call many small operations wait for each other.
"""

from typing import NamedTuple

import numpy as np

from certifit.numerics.compiled.compiling import compiled_with


class LogLinkRows(NamedTuple):
    """Dense rows and what belongs to them."""

    Z: np.ndarray  # (n, d)
    y: np.ndarray  # (n,)
    w: np.ndarray  # (n,) >= 0
    offset: np.ndarray  # (n,) added to the scores


class LogLinkSums(NamedTuple):
    """What the loop below returns, sums over rows but for the last two."""

    loss: float  # Σ w φ
    slope: float  # Σ w |φ'|
    curvature: float  # Σ w φ"
    score: float  # largest |η|
    squares: float  # largest Σ s z² of a row (z, 1); 0 where no weights s are given


# Sums of a row's products may be taken in any order: one order for each machine, the same for any number of threads.
@compiled_with(fastmath={"reassoc", "contract", "nsz"})
def add_log_link_rows(rows, theta, power, squares, g, wh):
    """Add Σ w φ' (z, 1) to the gradient g (m,), write w φ" to wh (n,) and return the sums above.

    The variance is μ^power, 1 <= power <= 2, and θ (m,) has an entry more than Z has columns where there is an
    intercept; squares is (m,), the weights s, or empty.
    """
    n, d = rows.Z.shape
    one, asked = theta.shape[0] > d, squares.shape[0] > 0
    b, s = theta[d] if one else 0.0, squares[d] if one and asked else 0.0
    loss, slope, curvature, score, reach, total = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(n):
        z, y, w = rows.Z[i], rows.y[i], rows.w[i]
        t = b + rows.offset[i]
        for j in range(d):
            t += z[j] * theta[j]
        if asked:
            length = s
            for j in range(d):
                length += squares[j] * (z[j] * z[j])
            reach = max(reach, length)
        if power == 1.0:
            h = np.exp(t)
            phi, u = h - y * t, h - y
        elif power == 2.0:
            h = y * np.exp(-t)
            phi, u = t + h, 1.0 - h
        else:
            rise, fall = np.exp((2.0 - power) * t), y * np.exp((1.0 - power) * t)
            phi, u = rise / (2.0 - power) + fall / (power - 1.0), rise - fall
            h = (2.0 - power) * rise + (power - 1.0) * fall
        r = w * u
        loss += w * phi
        slope += abs(r)
        curvature += w * h
        score = max(score, abs(t))
        total += r
        wh[i] = w * h
        for j in range(d):
            g[j] += r * z[j]
    if one:
        g[d] += total
    return loss, slope, curvature, score, reach
