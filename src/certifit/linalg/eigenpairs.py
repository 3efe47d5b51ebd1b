"""Eigenvalues and eigenvectors of symmetric matrices, largest first: A v = λ v.

| method | when "auto" takes it |
|---|---|
| "lapack" | small matrices, or more than a tenth of all pairs |
| "arpack" (restarted Lanczos) | a few pairs of a large matrix, by products alone |
| "lobpcg", "krylov" (randomised block Krylov), "power" (power iteration) | never |

The certificate does not depend on the method; it bounds how far the values can be from the true ones.
"""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, eigh
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh, lobpcg

from certifit.checkers.linalg import eigenpairs as spectral
from certifit.checkers.plain.largest_eigenvalue import largest_eigenvalue
from certifit.core import Certificate
from certifit.exceptions import CertificateWarning, DataError, warn_caller
from certifit.numerics.krylov import PowerTrace, block_krylov, power
from certifit.numerics.matrix import EPS, as_matrix, check_count, column_signs, in_units, symmetric, to_dense
from certifit.rows import Array


@dataclass(frozen=True)
class EigenTuning:
    """Numbers that steer how eigenpairs and singular triplets are found, never what they are."""

    lapack_order: int = 2000  # up to this order arrays go to LAPACK; sparse matrices up to a tenth or a fourth of it
    max_iter: int = 1000  # of LOBPCG; ten times as many restarts of ARPACK, a hundred times as many power iterations
    krylov_depth: int = 40  # most products of block Krylov iteration


@dataclass(frozen=True)
class Eigen:
    """The k largest eigenvalues of a symmetric matrix, descending.

    >>> from certifit.linalg import eigen
    >>> found = eigen([[2.0, 1.0], [1.0, 2.0]])
    >>> found.values.round(12).tolist(), found.vectors.shape, found.certificate.holds
    ([3.0, 1.0], (2, 2), True)
    """

    values: Array  # (k,)
    vectors: Array  # (d, k) orthonormal columns
    certificate: Certificate
    trace: PowerTrace | None = None  # how power iteration converged


class EigenPairs(NamedTuple):
    """Eigenpairs as a method found them, in any order."""

    values: Array  # (k,)
    vectors: Array  # (d, k)
    trace: PowerTrace | None = None


class EigenSearch(NamedTuple):
    """The settings of a method."""

    tol: float  # residuals asked for, relative to |A|
    rng: np.random.Generator  # of the starting vectors
    tuning: EigenTuning


def eigen(
    A: Any,
    k: int | None = None,
    *,
    method: str = "auto",
    tol: float = 1e-8,
    random_state: Any = 0,
    tuning: EigenTuning = EigenTuning(),
) -> Eigen:
    """Find the k largest eigenvalues (None: all) of a symmetric A, and their vectors.

    Parameters
    ----------
    A : array, sparse matrix or linear operator (d, d), symmetric
    k : how many eigenvalues; None for all
    method : "lapack"; for some pairs only "arpack", "lobpcg", "krylov" (randomised block Krylov) or "power" (power
        iteration with deflation, whose convergence is in `trace`); "auto" takes LAPACK for small matrices or many
        pairs, else ARPACK
    tol : residuals |Av - λv| asked for, relative to |A|
    random_state : seed of the starting vectors; a whole number, a numpy Generator, or None
    tuning : numbers that steer the methods

    Eigenvalues are ordered by value, not by absolute value. For large sparse matrices and operators the certificate
    is `statistical`, because it depends on a random start; for others it is `optimal`, a proof.

    >>> found = eigen([[2.0, 1.0], [1.0, 2.0]])
    >>> found.values.round(12), found.certificate.kind, found.certificate.holds
    (array([3., 1.]), 'optimal', True)
    """
    A = symmetric(as_matrix(A, square=True, operator=True))
    d = A.shape[0]
    k = check_count(k, d)
    scaled, unit = in_units(A)
    if method == "auto":
        small = d <= (tuning.lapack_order if isinstance(A, np.ndarray) else tuning.lapack_order // 10)
        method = "lapack" if small or k > d // 10 else "arpack"
    if method not in METHODS:
        raise DataError(got=f"method={method!r}", wanted=f"one of {('auto', *METHODS)}")
    if k == 0:
        values, vectors, trace = EigenPairs(np.empty(0), np.empty((d, 0)))
    else:
        search = EigenSearch(tol, np.random.default_rng(random_state), tuning)
        values, vectors, trace = METHODS[method](scaled, k, search)
    order = np.argsort(-values, kind="stable")
    values, vectors = values[order] * unit, vectors[:, order]
    vectors = vectors * column_signs(vectors)
    if trace is not None:
        trace = PowerTrace(tuple(x * unit for x in trace.rayleigh), tuple(x * unit for x in trace.residual))
    certificate = spectral.certify(A, values, vectors, tol)
    warn_unless_holds(certificate, f"eigen (method={method!r})")
    return Eigen(values, vectors, certificate, trace)


def warn_unless_holds(certificate: Certificate, name: str) -> None:
    """Warn the caller where a certificate does not hold."""
    if not certificate.holds:
        warn_caller(f"{name}: {'; '.join(certificate.failures())}.", CertificateWarning)


def _lapack(A: Any, k: int, _search: EigenSearch) -> EigenPairs:
    A = to_dense(A)
    d = len(A)
    if k < d // 3:
        # LAPACK's selective driver can fail where eigenvalues coincide.
        with suppress(LinAlgError):
            return EigenPairs(*eigh(A, subset_by_index=[d - k, d - 1], driver="evr"))
    values, vectors = eigh(A, driver="evd")
    return EigenPairs(values[d - k :], vectors[:, d - k :])


def _arpack(A: Any, k: int, search: EigenSearch) -> EigenPairs:
    return arpack(A, k, search) if 0 < k < A.shape[0] and A.shape[0] > 3 else _lapack(A, k, search)


def arpack(A: Any, k: int, search: EigenSearch) -> EigenPairs:
    """Return the k largest eigenvalues by restarted Lanczos, where k < d and d > 3.

    From one starting vector, Lanczos may find only one vector of a multiple eigenvalue. So we look for one more
    vector outside the span of those found, until none there has a larger eigenvalue.
    """
    d, (tol, rng, tuning) = A.shape[0], search
    try:
        restarts, start = tuning.max_iter * 10, rng.normal(size=d)
        pairs = EigenPairs(*eigsh(_operator(A), k, which="LA", v0=start, tol=tol / 4, maxiter=restarts))
        for _ in range(k):
            values, V = pairs.values, pairs.vectors
            size = float(np.abs(values).max())
            outside = _operator(_DeflatedOperator(A, V, size))
            value, v = eigsh(outside, 1, which="LA", v0=rng.normal(size=d), tol=tol / 4, maxiter=tuning.max_iter)
            if value[0] <= values.min() + tol * size:
                break
            basis = np.linalg.qr(np.column_stack([V, v]))[0]
            values, Y = eigh(basis.T @ (A @ basis), subset_by_index=[1, k])
            pairs = EigenPairs(values, basis @ Y)
    except ArpackError:
        # It ran out of iterations, or nearly all eigenvalues of A are equal.
        return _krylov(A, k, search)
    return pairs


def _lobpcg(A: Any, k: int, search: EigenSearch) -> EigenPairs:
    d = A.shape[0]
    # LOBPCG works with three blocks of vectors.
    if 5 * k >= d:
        return _lapack(A, k, search)
    with warnings.catch_warnings():
        # Warnings are not needed: the certificate says how accurate the result is.
        warnings.simplefilter("ignore")
        # With a few more vectors than asked for, it converges faster.
        block = search.rng.normal(size=(d, min(k + 3, d // 5)))
        values, vectors = lobpcg(A, block, tol=search.tol / 4, maxiter=search.tuning.max_iter, largest=True)
    return EigenPairs(values[:k], vectors[:, :k])


def _krylov(A: Any, k: int, search: EigenSearch) -> EigenPairs:
    ritz = block_krylov(A, k, rng=search.rng, depth=search.tuning.krylov_depth, tol=search.tol / 2)
    return EigenPairs(ritz.values[:k], ritz.vectors[:, :k])


def _power(A: Any, k: int, search: EigenSearch) -> EigenPairs:
    """Apply power iteration to A + c I, with c so large that its largest eigenvalue is largest in size."""
    d, (tol, rng, tuning) = A.shape[0], search
    lowest = largest_eigenvalue(_AffineOperator(-1.0, A, 0.0), steps=30, seed=int(rng.integers(2**31)))
    c = lowest.value if lowest.value > 1e-12 else 0.0
    shifted, most = _AffineOperator(1.0, A, c), 100 * tuning.max_iter
    ritz, trace = power(shifted, k, rng=rng, tol=max(tol / 8, d * EPS), max_iter=most)
    return EigenPairs(ritz.values - c, ritz.vectors, PowerTrace(tuple(x - c for x in trace.rayleigh), trace.residual))


METHODS = {"lapack": _lapack, "arpack": _arpack, "lobpcg": _lobpcg, "krylov": _krylov, "power": _power}


def _operator(A: Any) -> LinearOperator:
    return LinearOperator(A.shape, matvec=lambda x: A @ x.ravel(), matmat=lambda X: A @ X, dtype=np.float64)


class _DeflatedOperator:
    """The operator (I - VVᵀ) A (I - VVᵀ) - c VVᵀ, in which the eigenvectors V (d, k) have eigenvalue -c."""

    def __init__(self, A: Any, V: Array, c: float) -> None:
        self.A, self.V, self.c, self.shape = A, V, c, A.shape

    def __matmul__(self, x: Array) -> Array:
        inside = self.V.T @ x
        image = self.A @ (x - self.V @ inside)
        return image - self.V @ (self.V.T @ image + self.c * inside)


class _AffineOperator:
    """The operator a A + c I."""

    def __init__(self, a: float, A: Any, c: float) -> None:
        self.a, self.A, self.c, self.shape = a, A, c, A.shape

    def __matmul__(self, x: Array) -> Array:
        return self.a * (self.A @ x) + self.c * x
