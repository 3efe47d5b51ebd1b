"""Singular triplets and low-rank approximations re-checked (Eckart-Young), without squaring the matrix.

With L and Q orthonormal bases of the left and right vectors' spans, A is [[M, C₂ᵀ], [C₁, G]] in bases that begin with
them: M = LᵀAQ with singular values θ, C₁ and C₂ the leaks, G what is left. [[0, A], [Aᵀ, 0]] has the singular values
of A as its leading eigenvalues, so they obey the bounds of `spectral`: at most θ_i + (|G|₂ - θ_i)₊ + |C|₂, or where
|G|₂ < θ_i at most θ_i + |C|₂² / (θ_i - |G|₂). No matrix of rank k is closer to A than
- in the Frobenius norm, the root of |A|² - Σ of the k largest squares; also, by Mirsky's theorem, the same of
  [[M, 0], [0, G]], minus |C|_F, which does not cancel where the distance is small;
- in the spectral norm, the smallest singular value of A [Q g], for any unit vector g outside Q (Courant-Fischer).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import svdvals

from certifit.checkers.linalg.eigenpairs import (
    EPS,
    FAILURE,
    MISSED,
    PROOF,
    STEPS,
    excess,
    longest,
    most,
    orthonormal,
    proved_largest,
)
from certifit.checkers.plain.largest_eigenvalue import largest_eigenvalue, sharpened
from certifit.core import Certificate, Check
from certifit.rows import Array

ROWS = 1024  # of a sparse matrix that are dense at a time
CLAIM = "Frobenius distance to A within gap of the least that any matrix of rank {k} reaches, each value in its place"
LIKELY = "singular triplets, and with probability {p} no other singular value exceeds {upper:.6g}"
ASSUMES = "a random start of Lanczos that A does not know; the lower bound on the spectral distance is proved"


@dataclass(frozen=True)
class Distances:
    """Of a matrix of rank k to A, and how close any matrix of rank k can be."""

    frobenius: float
    frobenius_bound: float
    spectral: float  # an upper bound, proved or likely
    spectral_bound: float
    certificate: Certificate


def certify(A: Any, U: Array, s: Array, Vt: Array, tol: float = 1e-8) -> Distances:
    """Check the k largest singular values (k,) of A (m, n), array or sparse, their vectors (m, k), (k, n) and U s Vᵀ.

    >>> A, I = np.diag([3.0, 2.0, 1.0]), np.eye(3)
    >>> found = certify(A, I[:, :2], np.array([3.0, 2.0]), I[:2])
    >>> found.frobenius, round(found.frobenius_bound, 9), round(found.spectral_bound, 9), found.certificate.holds
    (1.0, 1.0, 1.0, True)
    >>> certify(A, I[:, [0, 2]], np.array([3.0, 1.0]), I[[0, 2]]).certificate.holds
    False
    """
    U, s, V = (np.asarray(x, np.float64) for x in (U, s, np.transpose(Vt)))
    (m, n), k = A.shape, len(s)
    if sparse.issparse(A) and max(m, n) <= PROOF:
        A = A.toarray()
    unit = float(np.abs(A).max()) or 1.0
    A, s = A / unit, s / unit
    proof = isinstance(A, np.ndarray) and min(m, n) <= PROOF
    known = _know(A, U, s, V, proof)
    distance = _Less(A, U * s, V).norm()
    loose = max(tol, 8 * max(m, n) * (min(m, n) if proof else 8) * EPS)
    allowed = loose * (known.size or 1.0) * unit

    checks = [
        Check("left vectors orthonormal to", most(U.T @ U - np.eye(k)), max(1e-10, min(loose, 1e-6))),
        Check("right vectors orthonormal to", most(V.T @ V - np.eye(k)), max(1e-10, min(loose, 1e-6))),
        Check("|Av - σu|, |Aᵀu - σv| at most", known.residual * unit, allowed),
        Check("values not descending by", most(np.maximum(np.diff(s), 0.0)) * unit, 8 * EPS * known.size * unit),
    ]
    facts: dict[str, float | str] = {
        "spectral distance, at most": known.spectral * unit,
        "spectral distance of any, at least": known.least_spectral * unit,
    }
    if proof:
        off = np.abs(s - known.theta) + known.top - known.theta
        checks += [
            Check("values off the singular values by at most", most(off) * unit, allowed),
            Check("spectral distance above its bound by", (known.spectral - known.least_spectral) * unit, allowed),
        ]
    else:
        smallest = float(known.theta.min(initial=np.inf))
        checks += [
            Check("left out, at least", known.seen * unit, (smallest + loose * known.size) * unit),
            Check("left out, at most", known.rest * unit, (smallest + max(loose, MISSED) * known.size) * unit),
        ]
        facts["assumes"] = ASSUMES
    certificate = Certificate(
        "optimal" if proof else "statistical",
        CLAIM.format(k=k) if proof else LIKELY.format(p=f"1 - {FAILURE:g}", upper=known.rest * unit),
        distance * unit,
        known.least * unit,
        tol,
        math.sqrt(max(1, k)) * allowed,
        tuple(checks),
        facts,
    )
    return Distances(
        distance * unit, known.least * unit, known.spectral * unit, known.least_spectral * unit, certificate
    )


@dataclass(frozen=True)
class _Known:
    """What bases of the vectors' spans tell of A."""

    size: float  # about |A|₂
    residual: float  # the longest of Av - σu and Aᵀu - σv
    theta: Array  # (k,) singular values of M
    top: Array  # (k,) upper bounds on the singular values of A
    rest: float  # an upper bound on |G|₂
    seen: float  # |Gg| for a unit vector g
    spectral: float  # an upper bound on |A - U s Vᵀ|₂
    least: float  # no matrix of rank k is closer to A in the Frobenius norm
    least_spectral: float  # nor in the spectral norm


def _know(A: Any, U: Array, s: Array, V: Array, proof: bool) -> _Known:
    L, Q = orthonormal(U), orthonormal(V)
    AV, AU = A @ V, A.T @ U
    AQ, AL = AV if Q is V else A @ Q, AU if L is U else A.T @ L
    residual = max(longest(AV - U * s), longest(AU - V * s))
    M = L.T @ AQ
    leaks = np.concatenate([_sizes(AQ - L @ M), _sizes(AL - Q @ M.T)])
    theta = svdvals(M)
    k, narrow = len(theta), min(A.shape)
    norm = _norm(A.data if sparse.issparse(A) else A)
    size = max(most(theta), norm / math.sqrt(narrow))
    order = 4 * max(A.shape) * EPS
    rounding = order * size
    astray = most(leaks) + _norm(M - (L.T @ U * s) @ (V.T @ Q)) + rounding
    if k == narrow:
        return _Known(size, residual, theta, theta + most(leaks), 0.0, 0.0, astray, 0.0, 0.0)

    left = _Less(A, np.hstack([L, AQ - L @ M]), np.hstack([AL, Q]))  # G, in the coordinates of A
    found = sharpened(left, largest_eigenvalue(left, failure=FAILURE, steps=STEPS))
    rest = rounding + (left.proved_norm() if proof else math.sqrt(max(0.0, found.upper)))
    smallest = float(theta.min(initial=np.inf))
    top = theta + excess(rest, theta, most(leaks))
    least = math.sqrt(max(0.0, norm**2 * (1 - order) - float(top @ top) * (1 + order)))
    if proof:
        tail = left.norm() ** 2 - (k * max(0.0, rest**2 - smallest**2) if k else 0.0)
        least = max(least, math.sqrt(max(0.0, tail)) - _norm(leaks) - math.sqrt(narrow) * rounding)
    one_more = np.linalg.qr(np.column_stack([Q, found.vector]))[0]
    return _Known(
        size,
        residual,
        theta,
        top,
        rest,
        math.sqrt(max(0.0, found.value)),
        rest + astray,
        least,
        max(0.0, float(svdvals(A @ one_more)[-1]) - rounding),
    )


@dataclass(frozen=True)
class _Less:
    """X = A - left rightᵀ, never formed where A is sparse; as an operator it is XᵀX."""

    A: Any
    left: Array  # (m, r)
    right: Array  # (n, r)

    @property
    def shape(self) -> tuple[int, int]:
        return (self.A.shape[1], self.A.shape[1])

    def __matmul__(self, x: Array) -> Array:
        z = self.A @ x - self.left @ (self.right.T @ x)
        return self.A.T @ z - self.right @ (self.left.T @ z)

    def norm(self) -> float:
        """|X| in the Frobenius norm, from the entries."""
        lengths = []
        for start in range(0, self.A.shape[0], ROWS):
            rows = slice(start, start + ROWS)
            block = self.A[rows].toarray() if sparse.issparse(self.A) else self.A[rows]
            lengths.append(_norm(block - self.left[rows] @ self.right.T))
        return _norm(np.array(lengths))

    def proved_norm(self) -> float:
        return proved_norm(self.A - self.left @ self.right.T)


def proved_norm(X: Array) -> float:
    """A number that |X|₂ does not exceed: τ² I - XᵀX has a Cholesky factor (or with XXᵀ, where that is smaller).

    >>> bool(0 <= proved_norm(np.array([[3.0, 0.0], [4.0, 0.0]])) - 5 < 1e-13)
    True
    """
    size = most(X)
    if size == 0:
        return 0.0
    X = X / size
    S = X.T @ X if X.shape[0] >= X.shape[1] else X @ X.T
    return size * math.sqrt(proved_largest(S) + max(X.shape) * EPS * float(np.trace(S)))


def _sizes(C: Array) -> Array:
    """The singular values of C, or where there are many, one number: their root sum of squares."""
    return svdvals(C) if C.shape[1] <= 100 else np.array([_norm(C)])


def _norm(X: Array) -> float:
    size = most(X) or 1.0
    return size * float(np.linalg.norm(X / size))
