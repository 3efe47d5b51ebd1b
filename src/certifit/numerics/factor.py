"""Linear systems with a symmetric positive semidefinite matrix.

The matrix is scaled to a diagonal of ones, so that the units of its columns do not matter, and factored by Cholesky.
Where that fails or pivots are tiny, eigenvectors with eigenvalues above rounding give the shortest solution.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from certifit.rows import Array


@dataclass(frozen=True)
class Factor:
    """The factored inverse of A; where A is singular, its inverse on the range of A."""

    scale: Array  # (d,) 1 / sqrt(diag A)
    cholesky: tuple[Array, bool] | None  # the factor (d, d), and whether it is the lower one
    vectors: Array | None  # (d, rank), used where the Cholesky factorisation fails
    values: Array | None  # (rank,)

    def solve(self, b: Array) -> Array:
        """Return x with A x = b; where A is singular, the shortest one in scaled coordinates."""
        scaled = b * self.scale if b.ndim == 1 else b * self.scale[:, None]
        if self.cholesky is not None:
            # LAPACK itself: for few columns, what scipy.linalg does around it takes longer.
            x = dpotrs(self.cholesky[0], np.asarray_chkfinite(scaled), lower=1)[0] if scaled.size else scaled
        else:
            assert self.vectors is not None
            assert self.values is not None
            inverse = 1 / self.values
            coordinates = self.vectors.T @ scaled
            x = self.vectors @ (inverse * coordinates if b.ndim == 1 else inverse[:, None] * coordinates)
        return x * self.scale if b.ndim == 1 else x * self.scale[:, None]

    def inverse(self) -> Array:
        """Return A⁻¹ (d, d); where A is singular, the inverse on its range."""
        if self.cholesky is None or not len(self.scale):
            return self.solve(np.eye(len(self.scale)))
        # A third of the work of a solution for every column of the identity.
        lower, _ = dpotri(self.cholesky[0], lower=1)
        found = np.where(_lower_half(len(lower)), lower, lower.T)
        found *= self.scale
        found *= self.scale[:, None]
        return found


@lru_cache(maxsize=8)
def _lower_half(d: int) -> Array:
    """Return which entries (d, d) lie on or below the diagonal."""
    return np.tri(d, dtype=bool)


def factor(A: Array) -> Factor:
    """Factor a symmetric positive semidefinite matrix (d, d).

    >>> import numpy as np
    >>> factor(np.array([[4.0, 2.0], [2.0, 3.0]])).solve(np.array([2.0, 1.0]))
    array([0.5, 0. ])
    """
    diagonal = A.diagonal()
    scale = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    scaled = A * scale * scale[:, None]
    lower, failed = dpotrf(np.asarray_chkfinite(scaled), lower=1, clean=0) if scaled.size else (scaled, 0)
    # Smaller pivots are rounding.
    if failed == 0 and lower.diagonal().min(initial=1.0) > 1e-7:
        return Factor(scale, (lower, True), None, None)
    values, vectors = eigh(scaled, driver="evd")
    keep = values > len(A) * np.finfo(float).eps * max(values[-1], 0.0) * 16
    return Factor(scale, None, vectors[:, keep], values[keep])
