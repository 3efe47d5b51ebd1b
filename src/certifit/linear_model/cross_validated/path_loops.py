"""Compiled loop of coordinate descent on a Gram matrix."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def descend(G, lam1, positive, beta, slopes, sweeps, enough):
    """Change beta (d,) in place, a coefficient at a time, to minimise β'Gβ/2 - c·β + λ₁|β|₁.

    slopes (d,) = c - Gβ are kept as β changes. At most so many sweeps over all coefficients are made; one that
    changes none by more than `enough`, in units of its column's norm, is the last. Returns the number of sweeps made.
    """
    d = beta.shape[0]
    for sweep in range(sweeps):
        largest = 0.0
        for j in range(d):
            curvature = G[j, j]
            if curvature <= 0.0:  # a column without spread
                continue
            old = beta[j]
            pull = slopes[j] + curvature * old
            new = 0.0
            if pull > lam1:
                new = (pull - lam1) / curvature
            elif pull < -lam1 and not positive:
                new = (pull + lam1) / curvature
            change = new - old
            if change != 0.0:
                beta[j] = new
                for k in range(d):
                    slopes[k] -= G[j, k] * change
                largest = max(largest, abs(change) * np.sqrt(curvature))
        if largest <= enough:
            return sweep + 1
    return sweeps
