"""Is a symmetric matrix positive definite? Yes with a factor that proves it, no with a witness, or not decided.

The factor is Cholesky's, the witness the eigenvector of the smallest eigenvalue; where neither convinces the checker,
small matrices are decided by elimination in rational numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigh

from certifit.checkers.linalg import definite as certificates
from certifit.core import Certificate
from certifit.numerics.matrix import as_matrix, symmetric, to_dense
from certifit.rows import Array

Verdict = Literal["yes", "no", "not decided to rounding"]


@dataclass(frozen=True)
class Definite:
    """True only where it is proved; `verdict` tells a proved no from what floating point cannot decide."""

    verdict: Verdict
    certificate: Certificate
    factor: Array | None = None  # (n, n) F with A = FFᵀ to rounding; lower triangular where A is definite
    witness: Array | None = None  # (n,) v with vᵀAv <= 0 (strict) or < 0

    def __bool__(self) -> bool:
        return self.verdict == "yes"

    def __str__(self) -> str:
        return f"{self.verdict}\n{self.certificate}"


def positive_definite(A: Any, *, strict: bool = True) -> Definite:
    """Is vᵀAv > 0 for every v except 0? With strict=False: is it never below 0 by more than rounding?

    Parameters
    ----------
    A : array or sparse matrix (n, n), symmetric
    strict : ask of the numbers as they are stored, where vᵀAv = 0 counts against A; or else up to rounding

    >>> answer = positive_definite([[2.0, 1.0], [1.0, 2.0]])
    >>> bool(answer), (answer.factor @ answer.factor.T).round(12).tolist()
    (True, [[2.0, 1.0], [1.0, 2.0]])
    >>> answer = positive_definite([[1.0, 2.0], [2.0, 1.0]])
    >>> v = answer.witness
    >>> bool(answer), bool(v @ [[1.0, 2.0], [2.0, 1.0]] @ v < 0)
    (False, True)
    """
    A = symmetric(to_dense(as_matrix(A, square=True)))
    factor, witness = _factor(A), _witness(A)
    proof = certificates.certify_factor(A, factor, strict)
    refusal = certificates.certify_witness(A, witness, strict)
    # Up to this order elimination in rational numbers is quick.
    if not (proof.holds or refusal.holds) and len(A) <= 32:
        found = certificates.eliminate(A)
        if found.witness is None:
            proof = certificates.certify_elimination(A, strict)
        else:
            witness, refusal = found.witness, certificates.certify_elimination(A, strict, refuse=True)
    if proof.holds:
        return Definite("yes", proof, factor=factor)
    if refusal.holds:
        return Definite("no", refusal, witness=witness)
    return Definite("not decided to rounding", proof)


def _units(A: Array) -> Array:
    """Return the square roots of the diagonal (n,), or of the largest entry where the diagonal is not positive."""
    return np.sqrt(np.where(np.diag(A) > 0, np.diag(A), np.abs(A).max() or 1.0))


def _factor(A: Array) -> Array:
    """Return the Cholesky factor; where there is none, one of the nearest semidefinite matrix, not triangular."""
    units = _units(A)
    S = A / units / units[:, None]
    try:
        F = cholesky(S, lower=True)
    except LinAlgError:
        values, vectors = eigh(S)
        F = vectors * np.sqrt(np.maximum(values, 0.0))
    return units[:, None] * F


def _witness(A: Array) -> Array:
    """Return the axis of the smallest diagonal entry if that is not positive, else the direction of least vᵀAv."""
    worst = int(np.diag(A).argmin())
    if A[worst, worst] < 0 or not A[worst].any():
        return np.eye(len(A))[worst]
    units = _units(A)
    v = eigh(A / units / units[:, None], subset_by_index=[0, 0])[1][:, 0] / units
    return v / np.abs(v).max()
