"""Factors of M - τ I, M sparse and symmetric: they solve, and they count the eigenvalues below τ.

| factor | where |
|---|---|
| SuperLU | the factor stays sparse, as for rows near a surface |
| dense blocks (`multifrontal`) | the factor fills up: from `SparseCholeskyTuning.dense_work` multiplications |

Both leave the pivots on the diagonal, so that their signs are those of the eigenvalues (Sylvester's law of inertia).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from scipy.linalg import LinAlgError
from scipy.sparse.linalg import splu

from certifit.numerics.sparse_cholesky.multifrontal import (
    EPS,
    OrderedMatrix,
    SparseCholeskyTuning,
    diagonal_places,
    factor_fronts,
    order_by_minimum_degree,
    plan_fronts,
)
from certifit.rows import Array


class ShiftedFactor(Protocol):
    """M - τ I, factored: to solve with, or for the count of its negative pivots."""

    @property
    def negative(self) -> int:
        """Eigenvalues of M below τ, where τ is known up to `rounding`."""

    @property
    def rounding(self) -> float:
        """A bound on the norm of the difference of the factors' product and M - τ I."""

    def solve(self, V: Array) -> Array:
        """Return (M - τ I)⁻¹ V for V (n, m)."""


class FactorAt(Protocol):
    """Factors M - τ I for any τ; to solve with it (`keep`), M - τ I must be positive definite."""

    def __call__(self, tau: float, keep: bool) -> ShiftedFactor: ...


def prepare_factor(M: Any, tuning: SparseCholeskyTuning = SparseCholeskyTuning()) -> FactorAt:
    """Choose the faster way to factor M - τ I, M (n, n) in CSC; the order of elimination is found here, once."""
    ordered = order_by_minimum_degree(M)
    if ordered.work < tuning.dense_work:
        return partial(_factor_sparse, ordered)
    return partial(factor_fronts, plan_fronts(ordered, tuning))


@dataclass(frozen=True)
class SuperLuFactor:
    """SuperLU's factors of M - τ I, with rows and columns in this order."""

    order: Array  # (n,)
    lu: Any
    negative: int
    rounding: float

    def solve(self, V: Array) -> Array:
        out = np.empty_like(V)
        out[self.order] = self.lu.solve(V[self.order])
        return out


def _factor_sparse(ordered: OrderedMatrix, tau: float, keep: bool) -> SuperLuFactor:
    shifted = ordered.M.copy()
    shifted.data[diagonal_places(shifted)] -= tau
    try:
        lu = splu(
            shifted,
            permc_spec="NATURAL",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
    except RuntimeError as error:  # a pivot that is exactly 0
        raise LinAlgError(str(error)) from error
    if (lu.perm_r != lu.perm_c).any():
        raise LinAlgError("rows were exchanged")
    if keep:
        return SuperLuFactor(ordered.order, lu, 0, 0.0)
    L, U = lu.L, lu.U
    negative = int((U.diagonal() < 0).sum())
    L.data, U.data = np.abs(L.data), np.abs(U.data)
    growth = float((L @ (U @ np.ones(len(ordered.order)))).max())  # the largest row sum of |L||U|
    return SuperLuFactor(ordered.order, lu, negative, 2 * int(ordered.count.max()) * EPS * growth)
