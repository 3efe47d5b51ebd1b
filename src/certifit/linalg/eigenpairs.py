"""Eigenvalues and eigenvectors of symmetric matrices, largest first: A v = λ v.

LAPACK for all of them or for small matrices; ARPACK (Lanczos), LOBPCG, block Krylov or power iteration for a few of a
large one, by products alone. Whatever the method, the certificate says how far the values can be from the true ones.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, eigh
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh, lobpcg

from certifit.checkers.linalg import eigenpairs as spectral
from certifit.checkers.plain.largest_eigenvalue import largest_eigenvalue
from certifit.core import Certificate
from certifit.exceptions import CertificateWarning, DataError, warn_caller
from certifit.numerics.krylov import Trace, block_krylov, power
from certifit.numerics.matrix import DENSE, EPS, as_matrix, check_count, in_units, signed, symmetric, to_dense
from certifit.rows import Array

MAX_ITER = 1000
DEPTH = 40  # of the block Krylov space


@dataclass(frozen=True)
class Eigen:
    """The k largest eigenvalues of a symmetric matrix, descending."""

    values: Array  # (k,)
    vectors: Array  # (d, k) orthonormal columns
    certificate: Certificate
    trace: Trace | None = None  # how power iteration converged


class Pairs(NamedTuple):
    values: Array
    vectors: Array
    trace: Trace | None = None


def eigen(A: Any, k: int | None = None, *, method: str = "auto", tol: float = 1e-8, random_state: Any = 0) -> Eigen:
    """The k largest eigenvalues (None: all) of a symmetric A, and their vectors.

    Parameters
    ----------
    A : array, sparse matrix or linear operator (d, d), symmetric
    method : "lapack"; for some pairs only "arpack", "lobpcg", "krylov" (randomised block Krylov) or "power" (power
        iteration with deflation, whose convergence is in `trace`); "auto" takes LAPACK for small matrices or many
        pairs, else ARPACK
    tol : residuals |Av - λv| asked for, relative to |A|
    random_state : of the starting vectors; a whole number, a numpy Generator, or None

    Eigenvalues are taken in the order of their values, not of their size. A certificate of kind `statistical` (large
    sparse matrices, operators) rests on a random start; for others `optimal` is proved.

    >>> found = eigen([[2.0, 1.0], [1.0, 2.0]])
    >>> found.values.round(12), found.certificate.kind, found.certificate.holds
    (array([3., 1.]), 'optimal', True)
    """
    A = symmetric(as_matrix(A, square=True, operator=True))
    d = A.shape[0]
    k = check_count(k, d)
    scaled, unit = in_units(A)
    if method == "auto":
        small = d <= DENSE if isinstance(A, np.ndarray) else d <= DENSE // 10
        method = "lapack" if small or k > d // 10 else "arpack"
    if method not in METHODS:
        raise DataError(got=f"method={method!r}", wanted=f"one of {('auto', *METHODS)}")
    if k == 0:
        values, vectors, trace = Pairs(np.empty(0), np.empty((d, 0)))
    else:
        values, vectors, trace = METHODS[method](scaled, k, tol, np.random.default_rng(random_state))
    order = np.argsort(-values, kind="stable")
    values, vectors = values[order] * unit, vectors[:, order]
    vectors = vectors * signed(vectors)
    if trace is not None:
        trace = Trace(tuple(x * unit for x in trace.rayleigh), tuple(x * unit for x in trace.residual))
    certificate = spectral.certify(A, values, vectors, tol)
    warn_unless_holds(certificate, f"eigen (method={method!r})")
    return Eigen(values, vectors, certificate, trace)


def warn_unless_holds(certificate: Certificate, name: str) -> None:
    if not certificate.holds:
        message = f"{name}: {'; '.join(certificate.failures())}."
        warn_caller(message, CertificateWarning)


def _lapack(A: Any, k: int, _tol: float, _rng: np.random.Generator) -> Pairs:
    A = to_dense(A)
    d = len(A)
    if k < d // 3:
        try:
            return Pairs(*eigh(A, subset_by_index=[d - k, d - 1], driver="evr"))
        except LinAlgError:  # LAPACK's selective driver can fail where eigenvalues coincide
            pass
    values, vectors = eigh(A, driver="evd")
    return Pairs(values[d - k :], vectors[:, d - k :])


def _arpack(A: Any, k: int, tol: float, rng: np.random.Generator) -> Pairs:
    return arpack(A, k, tol, rng) if 0 < k < A.shape[0] and A.shape[0] > 3 else _lapack(A, k, tol, rng)


def arpack(A: Any, k: int, tol: float, rng: np.random.Generator) -> Pairs:
    """The k largest eigenvalues by restarted Lanczos, where k < d and d > 3.

    From one vector Lanczos sees one copy of a multiple eigenvalue; rounding brings in the others, or not in time. So
    we look for more outside of what was found, until nothing larger is there.
    """
    d = A.shape[0]
    try:
        pairs = Pairs(*eigsh(_operator(A), k, which="LA", v0=rng.normal(size=d), tol=tol / 4, maxiter=MAX_ITER * 10))
        for _ in range(k):
            values, V = pairs.values, pairs.vectors
            size = float(np.abs(values).max())
            outside = _operator(_Outside(A, V, size))
            value, v = eigsh(outside, 1, which="LA", v0=rng.normal(size=d), tol=tol / 4, maxiter=MAX_ITER)
            if value[0] <= values.min() + tol * size:
                break
            basis = np.linalg.qr(np.column_stack([V, v]))[0]
            values, Y = eigh(basis.T @ (A @ basis), subset_by_index=[1, k])
            pairs = Pairs(values, basis @ Y)
    except ArpackError:  # out of iterations, or an A with next to no different eigenvalues
        return _krylov(A, k, tol, rng)
    return pairs


def _lobpcg(A: Any, k: int, tol: float, rng: np.random.Generator) -> Pairs:
    d = A.shape[0]
    if 5 * k >= d:  # LOBPCG wants room for three blocks
        return _lapack(A, k, tol, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what it reached is for the certificate to say
        block = rng.normal(size=(d, min(k + 3, d // 5)))  # a few more than asked for converge faster
        values, vectors = lobpcg(A, block, tol=tol / 4, maxiter=MAX_ITER, largest=True)
    return Pairs(values[:k], vectors[:, :k])


def _krylov(A: Any, k: int, tol: float, rng: np.random.Generator) -> Pairs:
    ritz = block_krylov(A, k, rng=rng, depth=DEPTH, tol=tol / 2)
    return Pairs(ritz.values[:k], ritz.vectors[:, :k])


def _power(A: Any, k: int, tol: float, rng: np.random.Generator) -> Pairs:
    """On A + c I, with c enough that the largest eigenvalue is also the largest in size."""
    d = A.shape[0]
    lowest = largest_eigenvalue(_Affine(-1.0, A, 0.0), steps=30, seed=int(rng.integers(2**31)))
    c = lowest.value if lowest.value > 1e-12 else 0.0
    ritz, trace = power(_Affine(1.0, A, c), k, rng=rng, tol=max(tol / 8, d * EPS), max_iter=100 * MAX_ITER)
    return Pairs(ritz.values - c, ritz.vectors, Trace(tuple(x - c for x in trace.rayleigh), trace.residual))


METHODS = {"lapack": _lapack, "arpack": _arpack, "lobpcg": _lobpcg, "krylov": _krylov, "power": _power}


def _operator(A: Any) -> LinearOperator:
    return LinearOperator(A.shape, matvec=lambda x: A @ x.ravel(), matmat=lambda X: A @ X, dtype=np.float64)


class _Outside:
    """(I - VVᵀ) A (I - VVᵀ) - c VVᵀ: A with the eigenvectors V (d, k) put out of the way."""

    def __init__(self, A: Any, V: Array, c: float) -> None:
        self.A, self.V, self.c, self.shape = A, V, c, A.shape

    def __matmul__(self, x: Array) -> Array:
        inside = self.V.T @ x
        image = self.A @ (x - self.V @ inside)
        return image - self.V @ (self.V.T @ image + self.c * inside)


class _Affine:
    """a A + c I."""

    def __init__(self, a: float, A: Any, c: float) -> None:
        self.a, self.A, self.c, self.shape = a, A, c, A.shape

    def __matmul__(self, x: Array) -> Array:
        return self.a * (self.A @ x) + self.c * x
