"""Factors of M - τ I, M sparse and symmetric: they solve, and they count the eigenvalues below τ.

SuperLU serves where the factor stays sparse, as for rows near a surface; dense blocks (`lle_fronts`) where it fills.
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
    Ordered,
    factor_fronts,
    make_plan,
    minimum_degree,
    on_diagonal,
)
from certifit.rows import Array

DENSE_WORK = 2e9  # multiplications from which dense blocks pay


class Factor(Protocol):
    """M - τ I, factored: to solve with, or for the count of its negative pivots."""

    @property
    def negative(self) -> int:
        """Eigenvalues of M below τ, up to `rounding`."""

    @property
    def rounding(self) -> float:
        """A bound on the norm of what the factors' product and M - τ I differ by."""

    def solve(self, V: Array) -> Array:
        """(M - τ I)⁻¹ V for V (n, m)."""


class Factoring(Protocol):
    """Factors M - τ I for any τ; to solve with it (`keep`), M - τ I must be positive definite."""

    def __call__(self, tau: float, keep: bool) -> Factor: ...


def factoring(M: Any) -> Factoring:
    """The quicker way to factor M - τ I, M (n, n) in CSC; the order of elimination is found once."""
    ordered = minimum_degree(M)
    if ordered.work < DENSE_WORK:
        return partial(_factor_sparse, ordered)
    return partial(factor_fronts, make_plan(ordered))


@dataclass(frozen=True)
class Sparse:
    """SuperLU's factors, in this order."""

    order: Array  # (n,)
    lu: Any
    negative: int
    rounding: float

    def solve(self, V: Array) -> Array:
        out = np.empty_like(V)
        out[self.order] = self.lu.solve(V[self.order])
        return out


def _factor_sparse(ordered: Ordered, tau: float, keep: bool) -> Sparse:
    shifted = ordered.M.copy()
    shifted.data[on_diagonal(shifted)] -= tau
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
        return Sparse(ordered.order, lu, 0, 0.0)
    L, U = lu.L, lu.U
    negative = int((U.diagonal() < 0).sum())
    L.data, U.data = np.abs(L.data), np.abs(U.data)
    growth = float((L @ (U @ np.ones(len(ordered.order)))).max())  # the largest row sum of |L||U|
    return Sparse(ordered.order, lu, negative, 2 * int(ordered.count.max()) * EPS * growth)
