"""Leave-one-out predictions of ridge regression, worked out again from the rows by Cholesky factors.

With √w-scaled, centred rows X and hat matrix H = X (X'X + αI)⁻¹ X' + √w√w' / Σw (the last where an intercept is
free), the fit without row i predicts  yᵢ - rᵢ / (1 - Hᵢᵢ)  there, r being the residuals of the fit to all rows: an
identity of the inverse of a matrix less one row's product (Sherman & Morrison 1950; Allen's PRESS 1974).
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular

from certifit.checkers.linear_model.cross_validated.squares import centred
from certifit.rows import Array, ArrayRows


def predictions_without(data: ArrayRows, y: Array, alphas: Array, free: bool) -> tuple[Array, float]:
    """The prediction of every row by the fit without it (a, n, t), and how many digits rounding leaves them."""
    rows = centred(data, y, free)
    plain, root = rows.dense(), np.sqrt(rows.w)[:, None]
    X, Y = plain * root, rows.y * root
    n, d = X.shape
    wide = d > n
    G = X @ X.T if wide else X.T @ X
    found = []
    for alpha in alphas.tolist():
        L = cholesky(G + alpha * np.eye(len(G)), lower=True)
        if wide:
            inverse = cho_solve((L, True), np.eye(n))
            left, beta = alpha * (inverse @ Y), X.T @ (inverse @ Y)
            along = 1 - alpha * np.diag(inverse)
        else:
            beta = cho_solve((L, True), X.T @ Y)
            left = Y - X @ beta
            along = (solve_triangular(L, X.T, lower=True) ** 2).sum(axis=0)
        share = 1 - along - (rows.w / rows.w.sum() if free else 0.0)
        # A row without weight has its own residual, which no scaling gives back.
        left = np.where(root > 0, left / np.where(root > 0, root, 1.0), rows.y - plain @ beta)
        found.append(np.asarray(y, dtype=np.float64) - left / share[:, None])
    return np.array(found), float(np.finfo(float).eps * len(G) * np.trace(G) / alphas.min())
