"""Singular values, and the nearest matrix of low rank: A ≈ U diag(s) Vᵀ.

LAPACK finds many triplets or those of small matrices, ARPACK or block Krylov iteration a few of large ones. The first
k triplets make the nearest matrix of rank k in the Frobenius and the spectral norm (Eckart & Young, "The
approximation of one matrix by another of lower rank", 1936); the certificate compares its distance with a lower
bound for all matrices of rank k.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg import svd as lapack_svd

from certifit.checkers.linalg import singular_values as certificates
from certifit.core import Certificate
from certifit.exceptions import DataError
from certifit.linalg.eigenpairs import EigenSearch, EigenTuning, arpack, warn_unless_holds
from certifit.numerics.krylov import block_krylov
from certifit.numerics.matrix import as_matrix, check_count, column_signs, in_units, to_dense
from certifit.rows import Array

Triplets: TypeAlias = tuple[Array, Array, Array]  # U (m, k), s (k,), Vt (k, n)


@dataclass(frozen=True)
class SVD:
    """The k largest singular values of a matrix, descending, and their vectors.

    >>> from certifit.linalg import svd
    >>> found = svd([[3.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    >>> found.s.tolist(), found.U.shape, found.Vt.shape, found.certificate.holds
    ([3.0, 1.0], (3, 2), (2, 2), True)
    """

    U: Array  # (m, k) orthonormal columns
    s: Array  # (k,)
    Vt: Array  # (k, n) orthonormal rows
    certificate: Certificate


@dataclass(frozen=True)
class LowRank:
    """The nearest matrix of rank at most k, as U diag(s) Vt, and how far it is from A.

    >>> from certifit.linalg import low_rank
    >>> found = low_rank([[3.0, 0.0], [0.0, 1.0]], 1)
    >>> found.toarray().tolist(), round(found.distance_frobenius, 12)
    ([[3.0, 0.0], [0.0, 0.0]], 1.0)
    """

    U: Array  # (m, k)
    s: Array  # (k,)
    Vt: Array  # (k, n)
    distance_frobenius: float  # from the entries of A - U diag(s) Vt
    distance_spectral: float  # an upper bound, sharp to rounding where proved, to a few percent where likely
    certificate: Certificate

    def toarray(self) -> Array:
        """Return the matrix as an array (m, n)."""
        return (self.U * self.s) @ self.Vt


def svd(A: Any, k: int | None = None, *, method: str = "auto", tol: float = 1e-8, random_state: Any = 0) -> SVD:
    """Find the k largest singular values (None: all) of a matrix (m, n), dense or sparse, and their vectors.

    Parameters
    ----------
    A : array or sparse matrix (m, n)
    k : how many singular values; None for all
    method : "lapack"; for some triplets only "arpack" or "randomized" (block Krylov from a random block, as many
        products as `tol` takes); "auto" takes LAPACK for small matrices or many triplets, else ARPACK
    tol : residuals |Av - σu| asked for, relative to |A|
    random_state : seed of the starting vectors; a whole number, a numpy Generator, or None

    The certificate does not depend on the method. For large matrices it is `statistical`: residuals, orthonormality
    and the lower bound on the spectral distance are proved; that no larger one was missed has the stated probability.

    >>> found = svd([[3.0, 0.0], [4.0, 5.0]])
    >>> (found.s**2).round(10), found.certificate.holds
    (array([45.,  5.]), True)
    """
    A, U, s, Vt = _triplets(A, k, method, tol, random_state)
    certificate = certificates.certify(A, U, s, Vt, tol).certificate
    warn_unless_holds(certificate, "svd")
    return SVD(U, s, Vt, certificate)


def low_rank(A: Any, k: int, *, method: str = "auto", tol: float = 1e-8, random_state: Any = 0) -> LowRank:
    """Find the nearest matrix of rank k to A (m, n), dense or sparse, and its distance.

    Parameters
    ----------
    A, method, tol, random_state : as for `svd`
    k : the rank

    >>> near = low_rank([[2.0, 0.0], [0.0, 1.0]], 1)
    >>> near.toarray().round(9) + 0.0
    array([[2., 0.],
           [0., 0.]])
    >>> near.distance_frobenius, round(near.certificate.bound, 9)
    (1.0, 1.0)
    """
    if k is None:
        raise DataError(got="k=None", wanted="the rank of the matrix to find", fix="For all triplets there is svd.")
    A, U, s, Vt = _triplets(A, k, method, tol, random_state)
    found = certificates.certify(A, U, s, Vt, tol)
    warn_unless_holds(found.certificate, "low_rank")
    return LowRank(U, s, Vt, found.frobenius, found.spectral, found.certificate)


def _triplets(A: Any, k: int | None, method: str, tol: float, random_state: Any) -> tuple[Any, Array, Array, Array]:
    """Return the checked A, and U, s and Vt."""
    A, tuning = as_matrix(A), EigenTuning()
    (m, n), k = A.shape, check_count(k, min(A.shape))
    if method == "auto":
        dense = isinstance(A, np.ndarray)
        small = min(m, n) <= tuning.lapack_order if dense else max(m, n) <= tuning.lapack_order // 4
        method = "lapack" if small or k > min(m, n) // 10 else "arpack"
    if method not in METHODS:
        raise DataError(got=f"method={method!r}", wanted=f"one of {('auto', *METHODS)}")
    if k == 0:
        return A, np.empty((m, 0)), np.empty(0), np.empty((0, n))
    scaled, unit = in_units(A)
    U, s, Vt = METHODS[method](scaled, k, EigenSearch(tol, np.random.default_rng(random_state), tuning))
    order = np.argsort(-s, kind="stable")
    U, s, Vt = U[:, order], s[order] * unit, Vt[order]
    sign = column_signs(Vt.T)
    return A, U * sign, s, Vt * sign[:, None]


def _lapack(A: Any, k: int, _search: EigenSearch) -> Triplets:
    A = to_dense(A)
    try:
        U, s, Vt = lapack_svd(A, full_matrices=False)
    except LinAlgError:
        # The divide-and-conquer driver can fail where the older one does not.
        U, s, Vt = lapack_svd(A, full_matrices=False, lapack_driver="gesvd")
    return U[:, :k], s[:k], Vt[:k]


def _arpack(A: Any, k: int, search: EigenSearch) -> Triplets:
    # ARPACK needs fewer pairs than the order of the matrix, and an order of at least 4.
    if k == min(A.shape) or min(A.shape) < 4:
        return _lapack(A, k, search)
    return _triplets_in_span(A, arpack(_SmallerGram(A), k, search._replace(tol=search.tol / 4)).vectors)


def _randomized(A: Any, k: int, search: EigenSearch) -> Triplets:
    # A smaller tolerance, because the squares of small singular values are smaller still.
    depth = search.tuning.krylov_depth
    ritz = block_krylov(_SmallerGram(A), k, rng=search.rng, depth=depth, tol=search.tol / 1000)
    U, s, Vt = _triplets_in_span(A, ritz.vectors)
    return U[:, :k], s[:k], Vt[:k]


def _triplets_in_span(A: Any, B: Array) -> Triplets:
    """Return triplets of A in the span of B, a basis on its shorter side, without square roots of eigenvalues."""
    if A.shape[0] < A.shape[1]:
        V, s, Ut = _triplets_in_span(A.T, B)
        return Ut.T, s, V.T
    L = np.linalg.qr(A @ B)[0]
    V, s, W = lapack_svd(A.T @ L, full_matrices=False)
    return L @ W.T, s, V.T


class _SmallerGram:
    """The operator AᵀA or AAᵀ, whichever is smaller."""

    def __init__(self, A: Any) -> None:
        self.A, self.shape = (A if A.shape[0] >= A.shape[1] else A.T), (min(A.shape), min(A.shape))

    def __matmul__(self, Q: Array) -> Array:
        return self.A.T @ (self.A @ Q)


METHODS = {"lapack": _lapack, "arpack": _arpack, "randomized": _randomized}
