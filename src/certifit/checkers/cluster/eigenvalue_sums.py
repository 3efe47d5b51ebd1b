"""A proved upper bound on the sum of a symmetric matrix's largest eigenvalues.

Eigenvalues from LAPACK or ARPACK are approximations; a bound has to hold whatever their errors are. By Ky Fan's
theorem the sum of the m largest is the largest tr VᵀMV over orthonormal V (n, m). If M <= tI + F with F positive
semidefinite, it is at most m t + tr F. That tI + F - M has no eigenvalue below -δ is proved by a Cholesky
factorisation that runs through (Rump, Verification of positive definiteness, 2006).
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigh
from scipy.sparse.linalg import ArpackError, eigsh

from certifit.checkers.cluster.spectral_bound import EPS
from certifit.rows import Array


def bound_largest_eigenvalues(M: Array, m: int, guess: Array, dense_order: int = 512) -> float:
    """Return at least the sum of the m largest eigenvalues of M (n, n), close to it as a rule.

    Here t is near the next eigenvalue, and F = Σ (θ - t) vvᵀ over the m leading pairs; any θ and v give a bound.

    Parameters
    ----------
    guess : (n, m) orthonormal columns that span about what the eigenvectors span
    dense_order : up to this order n, eigenvectors come from a dense decomposition, beyond from Lanczos' method
    """
    n = len(M)
    if m == 0:
        return 0.0
    try:
        theta, V = _leading_pairs(M, m + 1, guess, dense_order)
        t, lift = float(theta[0]), theta[1:] - theta[0]
        F = (V[:, 1:] * lift) @ V[:, 1:].T
        over = 1.2 * (largest_eigenvalue(M - F, dense_order) - t) if n > dense_order else 0.0
    except ArpackError:
        return np.inf
    trace = float(lift @ (V[:, 1:] ** 2).sum(axis=0))
    size = float(np.linalg.norm(M)) + trace + n * abs(t)
    over = max(over, 16 * EPS * size + 1e-8 * abs(t))
    while True:
        S = F - M
        S[np.diag_indices(n)] += t + over
        try:
            cholesky(S, overwrite_a=True, check_finite=False)
        except LinAlgError:
            over *= 16
            continue
        doubt = 2 * (n + m + 8) * EPS * (size + n * over + abs(float(np.trace(M))))
        return m * (t + over + doubt) + trace


def largest_eigenvalue(M: Array, dense_order: int = 512) -> float:
    """Return about the largest eigenvalue; nothing is proved."""
    n = len(M)
    if n <= dense_order:
        return float(np.linalg.eigvalsh(M)[-1])
    return float(eigsh(M, 1, which="LA", v0=np.cos(np.arange(n)), tol=1e-3, return_eigenvectors=False)[0])


def _leading_pairs(M: Array, m: int, guess: Array, dense_order: int) -> tuple[Array, Array]:
    """Return about the m largest eigenvalues of M, ascending, and their vectors, orthonormal columns."""
    n = len(M)
    if n <= max(dense_order, 4 * m):
        try:
            return eigh(M, subset_by_index=[n - m, n - 1], check_finite=False)
        except LinAlgError:  # LAPACK's routine for some of them may fail where many are equal
            theta, V = np.linalg.eigh(M)
            return theta[-m:], V[:, -m:]
    # Lanczos' method overlooks copies of a multiple eigenvalue, so it searches only beside the guess.
    QM = guess.T @ M
    rest = M - guess @ QM - QM.T @ guess.T + guess @ (QM @ guess) @ guess.T
    V = eigsh(rest, m, ncv=min(n, 40 + 2 * m), which="LA", v0=np.cos(np.arange(n)), tol=1e-4, maxiter=50)[1]
    Q = np.linalg.qr(np.hstack([guess, V]))[0]
    theta, W = np.linalg.eigh(Q.T @ M @ Q)
    return theta[-m:], Q @ W[:, -m:]
