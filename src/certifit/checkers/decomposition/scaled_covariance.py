"""Eigenvalues, inverses and determinants of covariances with relative accuracy, whatever the units of the columns.

Let S = D A D, D its standard deviations and A its correlations. If every entry of S is right to a share e of D_i D_j,
no xᵀSx is off by more than  e (Σ D_i |x_i|)² <= e d |Dx|² <= xᵀSx e d / λ_min(A),  and so no eigenvalue by more than
that share: A, not S, must be far from singular. A Jacobi method keeps it (`dgejsv`, on the Cholesky factor of A times
D), where others are right to eps times the largest eigenvalue alone.
Reference: Demmel & Veselić, "Jacobi's method is more accurate than QR" (1992).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.linalg.lapack import dgejsv

from certifit.checkers.linalg.eigenvalue_bounds import EPS
from certifit.rows import Array


class ScaledCovariance(NamedTuple):
    """A positive definite S = D RᵀR D, and by what share any xᵀSx, or eigenvalue, may be off."""

    D: Array  # (d,)
    R: Array  # (d, d) upper triangle, of a matrix with ones on its diagonal
    share: float

    @classmethod
    def of(cls, S: Array, entries: float) -> ScaledCovariance | None:
        """Factor S (d, d), entries of which are right to this share of D_i D_j; None where it may be singular."""
        d = len(S)
        D = np.sqrt(np.diag(S))
        if not (np.isfinite(S).all() and (D > 1e-140).all()):
            return None
        A = S / D / D[:, None]
        try:
            R = cholesky(A)
        except LinAlgError:
            return None
        least = float(np.linalg.eigvalsh(A)[0]) - 8 * d * EPS
        # The factor is right to (d + 1) eps, and the rotations of a Jacobi method to a few eps for each column.
        share = d * (entries + 32 * d * EPS) / least if least > 0 else np.inf
        return cls(D, R, share) if share < 0.1 else None

    @property
    def values(self) -> Array:
        """The eigenvalues (d,) of S, ascending."""
        # 0: high relative accuracy for a well-conditioned matrix times a diagonal; no vectors (3), no cut-off (0).
        found, _, _, work, _, failed = dgejsv(self.R * self.D, joba=0, jobu=3, jobv=3, jobr=0)
        if failed:
            return np.full(len(self.D), np.nan)
        return np.sort((found * (work[0] / work[1])) ** 2)

    @property
    def log_determinant(self) -> float:
        """The logarithm of det S."""
        return 2 * float(np.log(np.diag(self.R)).sum() + np.log(self.D).sum())

    def trace_of_inverse_times(self, T: Array) -> float:
        """The trace of S⁻¹T (d, d)."""
        half = solve_triangular(self.R, T / self.D / self.D[:, None], trans="T")
        return float(np.trace(solve_triangular(self.R, half)))
