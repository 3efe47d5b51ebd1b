"""Compiled loop of coordinate descent on a Gram matrix."""

import math

import numpy as np

from certifit.numerics.compiled.compiling import called_from_python, twin_of


@called_from_python
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


@twin_of(descend)
def _descend_by_rows(G, lam1, positive, beta, slopes, sweeps, enough):
    curvatures = G.diagonal().tolist()
    for sweep in range(sweeps):
        largest = 0.0
        for j, curvature in enumerate(curvatures):
            if curvature <= 0.0:
                continue
            old = float(beta[j])
            pull = float(slopes[j]) + curvature * old
            new = 0.0
            if pull > lam1:
                new = (pull - lam1) / curvature
            elif pull < -lam1 and not positive:
                new = (pull + lam1) / curvature
            change = new - old
            if change != 0.0:
                beta[j] = new
                slopes -= G[j] * change
                largest = max(largest, abs(change) * math.sqrt(curvature))
        if largest <= enough:
            return sweep + 1
    return sweeps
