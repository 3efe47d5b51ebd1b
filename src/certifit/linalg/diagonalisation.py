"""Can a square matrix be diagonalised, A = P D P⁻¹? P and D prove yes, a Jordan chain proves no.

Eigenvectors that nearly coincide are a sign of a Jordan block: for each such group we look for a vector v with
(A - λI)²v = 0 but (A - λI)v ≠ 0, both to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.linalg import eig, eigh, schur, svd

from certifit.checkers.linalg import diagonalisation as certificates
from certifit.core import Certificate
from certifit.numerics.matrix import EPS, as_matrix, to_dense
from certifit.rows import Array

Verdict = Literal["yes", "no", "not decided to rounding"]


@dataclass(frozen=True)
class Diagonalisable:
    """The answer, true where P and `values` diagonalise A; `verdict` also tells whether a no is proved.

    >>> from certifit.linalg import diagonalisable
    >>> answer = diagonalisable([[1.0, 1.0], [0.0, 1.0]])  # a Jordan block
    >>> bool(answer), answer.verdict, answer.eigenvalue
    (False, 'no', (1+0j))
    """

    verdict: Verdict
    certificate: Certificate
    values: Array  # (n,) eigenvalues, complex unless all are real
    P: Array  # (n, n) eigenvectors of length 1 as columns: A P = P diag(values) where the answer is yes
    condition: float  # of P: 1 for symmetric and normal matrices, infinite where no basis was found
    witness: Array | None = None  # (n,) v: (A - λI)²v = 0 to rounding, but (A - λI)v is not
    eigenvalue: complex | None = None  # λ of the witness

    def __bool__(self) -> bool:
        return self.verdict == "yes"

    def __str__(self) -> str:
        return f"{self.verdict}\n{self.certificate}"


def diagonalisable(A: Any, *, tol: float | None = None) -> Diagonalisable:
    """Decide whether A (n, n), array or sparse, has a basis of eigenvectors, real or complex.

    Diagonalisable matrices lie arbitrarily close to every matrix, so the question has a meaning only up to rounding.
    The answer is no where a matrix within tol |A|₂ of A has a Jordan chain, (A - λI)v = u and (A - λI)u = 0, and
    |u| / |v| is well above that distance, which the certificate states. Normal matrices are always diagonalisable.

    Parameters
    ----------
    A : array or sparse matrix (n, n)
    tol : relative distance below which matrices count as the same; None for rounding, 16 n eps

    >>> found = diagonalisable([[0.0, -1.0], [1.0, 0.0]])
    >>> bool(found), found.values.imag.round(12).tolist(), round(found.condition, 12)
    (True, [1.0, -1.0], 1.0)
    >>> found = diagonalisable([[2.0, 1.0], [0.0, 2.0]])
    >>> bool(found), found.witness.tolist(), found.eigenvalue
    (False, [0.0, 1.0], (2+0j))
    """
    A = to_dense(as_matrix(A, square=True))
    tol = 16 * len(A) * EPS if tol is None else tol
    unit = float(np.abs(A).max()) or 1.0
    scaled = A / unit
    values, P = _eigenvectors(scaled)
    smallest = float(np.linalg.svd(P, compute_uv=False)[-1])
    condition = float(np.linalg.norm(P, 2)) / smallest if smallest > 0 else np.inf
    # Two eigenvectors may lie within about sqrt(tol) of each other.
    near = condition * np.sqrt(tol) > 0.01
    value, v = _nearest_chain(scaled, values, P) if near else (0.0, None)
    if v is not None:
        refusal = certificates.certify_chain(A, value * unit, v, tol)
        if refusal.proved:
            return Diagonalisable("no", refusal, values * unit, P, condition, v, complex(value * unit))
    proof = certificates.certify_basis(A, values * unit, P)
    verdict: Verdict = "yes" if proof.holds else "not decided to rounding"
    return Diagonalisable(verdict, proof, values * unit, P, condition)


def _eigenvectors(A: Array) -> tuple[Array, Array]:
    """Return eigenvalues and eigenvectors; orthonormal ones where A is symmetric or normal."""
    if np.array_equal(A, A.T):
        return eigh(A)
    if np.linalg.norm(A @ A.T - A.T @ A) <= 4 * len(A) * EPS * np.linalg.norm(A) ** 2:
        T, Z = schur(A, output="complex")
        values, P = np.diag(T), Z
    else:
        values, P = eig(A)
    if not np.iscomplex(values).any() and not np.iscomplex(P).any():
        values, P = values.real, P.real
    return values, P / np.linalg.norm(P, axis=0)


def _nearest_chain(A: Array, values: Array, P: Array) -> tuple[complex, Array | None]:
    """Return the eigenvalue and vector of what is nearest to a Jordan chain of A, or None where nothing is near."""
    best: tuple[complex, Array | None] = (0.0, None)
    nearest = np.inf
    # Eigenvectors with a cosine above 0.99 may be the same one.
    for cluster in np.unique(np.abs(P.conj().T @ P) > 0.99, axis=0):
        if cluster.sum() < 2:
            continue
        # Rounding changes the mean of their eigenvalues much less than each of them.
        value = complex(values[cluster].mean())
        B = A - (value if value.imag else value.real) * np.eye(len(A))
        v = _chain_vector(B)
        u = B @ v
        link, away = float(np.linalg.norm(u)), float(np.linalg.norm(B @ u))
        if link > 0 and away / link < nearest:
            nearest, best = away / link, (value, v)
    return best


def _chain_vector(B: Array) -> Array:
    """Return the vector v of length 1 with the longest Bv, among those with B²v nearly 0."""
    _, s, Vt = svd(B @ B)
    flat = Vt[s <= max(s[-1], np.sqrt(EPS) * np.linalg.norm(B, 2) ** 2)].conj().T  # (n, dimensions)
    v = flat @ svd(B @ flat)[2][0].conj()
    largest = v[np.argmax(np.abs(v))]
    return v * np.abs(largest) / largest
