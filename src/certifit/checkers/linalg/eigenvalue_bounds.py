"""Inequalities about eigenvalues that the checkers use, and their proof in floating point.

With Q (d, k) an orthonormal basis, H = QᵀAQ with eigenvalues θ_1 >= … >= θ_k, C = (I - QQᵀ) A Q and `rest` an upper
bound on the eigenvalues of A outside the span of Q:
- the i-th largest eigenvalue of A is at least θ_i (Cauchy), and at most θ_i + (rest - θ_i)₊ + |C|₂; where rest < θ_i
  also at most θ_i + |C|₂² / (θ_i - rest);
- the sum of the k largest is at most tr H + k (rest - θ_k)₊ + |C|_* (Ky Fan); where rest < θ_k also at most
  tr H + |C|_F² / (θ_k - rest);
- no eigenvalue of E exceeds τ where τ I - E has a Cholesky factor.
References: Parlett, The Symmetric Eigenvalue Problem (1998), chapters 10 and 11; Rump, "Verification of positive
definiteness" (2006).
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigh
from scipy.sparse.linalg import ArpackError, eigsh

from certifit.core import Check
from certifit.rows import Array

EPS = float(np.finfo(np.float64).eps)


def eigenvalue_excess(rest: float, theta: Array, leak: float) -> Array:
    """Return by how much the i-th largest eigenvalue can exceed θ_i, (k,); `leak` is |C|₂."""
    room = theta - rest
    linear = np.maximum(-room, 0.0) + leak
    return np.where(room > leak, leak * (leak / np.where(room > 0, room, 1.0)), linear)


def ky_fan_excess(k: int, rest: float, smallest: float, sigma: Array) -> float:
    """Return by how much the sum of the k largest eigenvalues can exceed tr H; sigma are the singular values of C."""
    more = k * max(0.0, rest - smallest) + float(sigma.sum())
    return min(more, float((sigma**2).sum()) / (smallest - rest)) if smallest > rest else more


def proved_largest(E: Array) -> float:
    """Return a number τ that no eigenvalue of E (d, d) exceeds, because τ I - E has a Cholesky factor.

    Where the factorisation of M in floating point succeeds, the eigenvalues of M are no less than
    -(d + 2) eps tr M (Rump 2006).

    >>> bool(0 <= proved_largest(np.array([[1.0, 2.0], [2.0, 1.0]])) - 3 < 1e-13)
    True
    """
    d = len(E)
    tau, by_lanczos = _lanczos_largest(E), True
    if tau is None or not has_cholesky_factor((tau + _cholesky_slack(E, tau)) * np.eye(d) - E):
        tau, by_lanczos = computed_largest(E), False
    slack = _cholesky_slack(E, tau)
    while not by_lanczos and not has_cholesky_factor((tau + slack) * np.eye(d) - E):
        slack *= 2
    return tau + 2 * slack


def _cholesky_slack(E: Array, tau: float) -> float:
    """Return what must be added to τ so that a Cholesky factorisation of τ I - E need not fail by rounding."""
    d = len(E)
    return 2 * (d + 2) * EPS * (d * abs(tau) + float(np.abs(np.diag(E)).sum())) + float(np.finfo(float).tiny)


def _lanczos_largest(E: Array, order: int = 300) -> float | None:
    """Return the largest eigenvalue by restarted Lanczos, without proof; None for a small E, or where it fails."""
    if len(E) <= order:
        return None
    start = np.random.default_rng(0).normal(size=len(E))
    try:
        return float(eigsh(E, 1, which="LA", v0=start, maxiter=300, return_eigenvectors=False)[0])
    except ArpackError:
        return None


def computed_largest(E: Array) -> float:
    """Return the largest eigenvalue of E as LAPACK computes it, without proof."""
    last = len(E) - 1
    try:
        return float(eigh(E, eigvals_only=True, subset_by_index=[last, last])[0])
    except LinAlgError:
        # LAPACK's selective driver can fail where eigenvalues coincide.
        return float(np.linalg.eigvalsh(E)[-1])


def has_cholesky_factor(M: Array) -> bool:
    """Say whether the Cholesky factorisation of M succeeds in floating point. M is overwritten."""
    try:
        cholesky(M, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return False
    return True


def orthonormal_basis(V: Array) -> Array:
    """Return V (d, k) where its columns are orthonormal to rounding, else an orthonormal basis of their span."""
    off = largest_entry(V.T @ V - np.eye(V.shape[1]))
    return V if off <= 8 * len(V) * EPS else np.linalg.qr(V)[0]


def largest_entry(X: Array) -> float:
    """Return the largest |x_ij|, 0 for an empty X."""
    return float(np.abs(X).max(initial=0.0))


def worst_entry(name: str, off: Array, limit: Array) -> Check:
    """Return the check of the number that is furthest beyond its limit, or nearest to it."""
    off = np.abs(np.asarray(off, np.float64))
    if not off.size:
        return Check(name, 0.0, 0.0)
    i = int(np.argmax(off / np.maximum(limit, np.finfo(float).tiny)))
    return Check(name, float(off[i]), float(limit[i]))


def longest_column(X: Array) -> float:
    """Return the length of the longest column."""
    return float(np.sqrt((X**2).sum(axis=0)).max(initial=0.0))
