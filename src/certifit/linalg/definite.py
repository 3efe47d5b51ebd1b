"""Is a symmetric matrix A positive definite? A Cholesky factor proves yes, a vector v with vᵀAv <= 0 proves no.

The vector is the eigenvector of the smallest eigenvalue. Where the checker accepts neither because of rounding, small
matrices are decided by elimination in rational numbers.
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
    """The answer, true only where it is proved; `verdict` also tells whether a no is proved.

    >>> from certifit.linalg import positive_definite
    >>> answer = positive_definite([[1.0, 1.0], [1.0, 1.0]])  # v = (1, -1) has vᵀAv = 0
    >>> bool(answer), answer.verdict, answer.certificate.proved
    (False, 'no', True)
    """

    verdict: Verdict
    certificate: Certificate
    factor: Array | None = None  # (n, n) F with A = FFᵀ to rounding; lower triangular where A is definite
    witness: Array | None = None  # (n,) v with vᵀAv <= 0 (strict) or < 0

    def __bool__(self) -> bool:
        return self.verdict == "yes"

    def __str__(self) -> str:
        return f"{self.verdict}\n{self.certificate}"


def positive_definite(A: Any, *, strict: bool = True) -> Definite:
    """Decide whether vᵀAv > 0 for every v except 0 or, if not strict, that it is never below 0 but for rounding.

    Parameters
    ----------
    A : array or sparse matrix (n, n), symmetric
    strict : whether A must be definite, exactly as its numbers are stored; else semidefinite up to rounding

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
    # Up to this order elimination in rational numbers is fast.
    if not (proof.holds or refusal.proved) and len(A) <= 32:
        found = certificates.eliminate(A)
        if found.witness is None:
            proof = certificates.certify_elimination(A, strict)
        else:
            witness, refusal = found.witness, certificates.certify_elimination(A, strict, refuse=True)
    if proof.holds:
        return Definite("yes", proof, factor=factor)
    if refusal.proved:
        return Definite("no", refusal, witness=witness)
    return Definite("not decided to rounding", proof)


def _units(A: Array) -> Array:
    """Return the square roots of the diagonal (n,), or of the largest entry where the diagonal is not positive."""
    return np.sqrt(np.where(np.diag(A) > 0, np.diag(A), np.abs(A).max() or 1.0))


def _factor(A: Array) -> Array:
    """Return the Cholesky factor or, where there is none, a factor of the nearest semidefinite matrix."""
    units = _units(A)
    S = A / units / units[:, None]
    try:
        F = cholesky(S, lower=True)
    except LinAlgError:
        values, vectors = eigh(S)
        F = vectors * np.sqrt(np.maximum(values, 0.0))
    return units[:, None] * F


def _witness(A: Array) -> Array:
    """Return v with a small vᵀAv: a unit vector where a diagonal entry shows it, else an eigenvector."""
    worst = int(np.diag(A).argmin())
    if A[worst, worst] < 0 or not A[worst].any():
        return np.eye(len(A))[worst]
    units = _units(A)
    v = eigh(A / units / units[:, None], subset_by_index=[0, 0])[1][:, 0] / units
    return v / np.abs(v).max()
