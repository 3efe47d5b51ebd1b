"""Leave-one-out predictions of ridge regression, worked out again from the rows by orthogonal factors.

With √w-scaled, centred rows X and hat matrix H = X (X'X + αI)⁻¹ X' + √w√w' / Σw (the last where an intercept is
free), the fit without row i predicts  yᵢ - rᵢ / (1 - Hᵢᵢ)  there, r being the residuals of the fit to all rows: an
identity of the inverse of a matrix less one row's product (Sherman & Morrison 1950; Allen's PRESS 1974).
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import qr, solve_triangular

from certifit.checkers.linear_model.cross_validated.squares import centred
from certifit.rows import Array, ArrayRows


def predictions_without(data: ArrayRows, y: Array, alphas: Array, free: bool) -> tuple[Array, float]:
    """The prediction of every row by the fit without it (a, n, t), and how many digits rounding leaves them."""
    rows = centred(data, y, free)
    plain, root = rows.dense(), np.sqrt(rows.w)[:, None]
    X, Y = plain * root, rows.y * root
    wide = X.shape[1] >= X.shape[0]
    Q, R = qr(X.T if wide else X, mode="economic")
    middle = np.sqrt(rows.w / rows.w.sum())[:, None] if free else np.zeros_like(root)
    found = []
    for alpha in alphas.tolist():
        # The orthogonal factor of the rows above √α I has H = Z Z' at its top, and I - H = B B' of wide rows below.
        basis, corner = qr(np.vstack([R, np.sqrt(alpha) * np.eye(len(R))]), mode="economic")
        if wide:
            B = basis[len(R) :]
            B = B - middle @ (middle.T @ B)
            left, share = B @ (B.T @ Y), (B**2).sum(axis=1)
            beta = X.T @ left / alpha
        else:
            Z = Q @ basis[: len(R)]
            left, share = Y - Z @ (Z.T @ Y), 1 - (Z**2).sum(axis=1) - middle[:, 0] ** 2
            beta = solve_triangular(corner, Z.T @ Y)
        # A row without weight has its own residual, which no scaling gives back.
        left = np.where(root > 0, left / np.where(root > 0, root, 1.0), rows.y - plain @ beta)
        found.append(np.asarray(y, dtype=np.float64) - left / share[:, None])
    size = float(np.linalg.norm(R) / np.sqrt(alphas.min()))
    return np.array(found), float(np.finfo(float).eps * len(R) * size)
