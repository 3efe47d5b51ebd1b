"""The checker of singular triplets and low-rank approximations (Eckart & Young), without squaring the matrix.

Claim: U s Vᵀ is within the gap of the nearest matrix of rank k, and each singular value is in its place. With L and Q
orthonormal bases of the left and right vectors' spans, A is [[M, C₂ᵀ], [C₁, G]] in bases that begin with them:
M = LᵀAQ with singular values θ, C₁ and C₂ the leaks, G the remainder. [[0, A], [Aᵀ, 0]] has the singular values of A
as its leading eigenvalues, so they obey `eigenvalue_bounds`: at most θ_i + (|G|₂ - θ_i)₊ + |C|₂, or where |G|₂ < θ_i
at most θ_i + |C|₂² / (θ_i - |G|₂). No matrix of rank k is closer to A than
- in the Frobenius norm, the root of |A|² - Σ of the k largest squares (Eckart & Young 1936); also, by Mirsky's
  theorem, the same of [[M, 0], [0, G]], minus |C|_F, which does not cancel where the distance is small;
- in the spectral norm, the smallest singular value of A [Q g], for any unit vector g outside Q (Courant-Fischer).
|G|₂ is bounded by a Cholesky factor of τ² I - GᵀG, or for large matrices by Lanczos from a random start.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import svdvals

from certifit.checkers.linalg.eigenpairs import SpectralCheckTuning, check_left_out
from certifit.checkers.linalg.eigenvalue_bounds import (
    EPS,
    eigenvalue_excess,
    largest_entry,
    longest_column,
    orthonormal_basis,
    proved_largest,
    worst_entry,
)
from certifit.checkers.plain.largest_eigenvalue import largest_eigenvalue, sharpen
from certifit.core import Certificate, Check
from certifit.core.certificate import Kind
from certifit.rows import Array


@dataclass(frozen=True)
class LowRankDistances:
    """How far U s Vᵀ is from A, and how close any matrix of rank k can be."""

    frobenius: float
    frobenius_bound: float
    spectral: float  # an upper bound, proved or likely
    spectral_bound: float
    certificate: Certificate


def certify(
    A: Any, U: Array, s: Array, Vt: Array, tol: float = 1e-8, *, tuning: SpectralCheckTuning = SpectralCheckTuning()
) -> LowRankDistances:
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
    if sparse.issparse(A) and max(m, n) <= tuning.proof_order:
        A = A.toarray()
    unit = float(np.abs(A).max()) or 1.0
    A, s = A / unit, s / unit
    proof = isinstance(A, np.ndarray) and min(m, n) <= tuning.proof_order
    known = _measure(A, U, s, V, proof, tuning)
    distance = _frobenius_distance(A, U * s, V, tuning.dense_rows)
    share = 8 * max(m, n) * (min(m, n) if proof else 8) * EPS
    allowed, rounding = tol + share, share * known.size * unit
    limit = allowed * (known.size or 1.0) * unit
    near_one = max(1e-10, min(allowed, 1e-6))
    rises = np.maximum(np.diff(s), 0.0)
    checks = [
        Check("left vectors orthonormal to", largest_entry(U.T @ U - np.eye(k)), near_one),
        Check("right vectors orthonormal to", largest_entry(V.T @ V - np.eye(k)), near_one),
        Check("|Av - σu|, |Aᵀu - σv| at most", known.residual * unit, limit),
        Check("values not descending by", largest_entry(rises) * unit, 8 * EPS * known.size * unit),
    ]
    facts: dict[str, float | str] = {
        "spectral distance, at most": known.spectral * unit,
        "spectral distance of any, at least": known.spectral_bound * unit,
    }
    if proof:
        off = np.abs(s - known.theta) + known.top - known.theta
        checks += [
            # Each value is right relative to itself.
            worst_entry("values off the singular values by at most", off * unit, tol * known.theta * unit + rounding),
            Check(
                "spectral distance above its bound by",
                max(0.0, known.spectral - known.spectral_bound) * unit,
                limit,
            ),
        ]
        claim = f"Frobenius distance to A within gap of the least that any matrix of rank {k} reaches, "
        claim += "each value in its place"
    else:
        smallest = float(known.theta.min(initial=np.inf))
        above = max(0.0, known.rest_seen - smallest), max(0.0, known.rest - smallest)
        checks += check_left_out(above, allowed, known.size, unit, tuning)
        facts["assumes"] = (
            "a random start of Lanczos that A does not know; the lower bound on the spectral distance is proved"
        )
        claim = f"singular triplets, and with probability 1 - {tuning.failure:g} no other singular value exceeds "
        claim += f"{known.rest * unit:.6g}"
    kind: Kind = "optimal" if proof else "statistical"
    bound = known.frobenius_bound * unit
    gap_limit = tol * distance * unit + math.sqrt(max(1, k)) * rounding
    scale = _frobenius_norm(A.data if sparse.issparse(A) else A) * unit
    certificate = Certificate(kind, claim, distance * unit, bound, tol, gap_limit, tuple(checks), facts, scale=scale)
    return LowRankDistances(distance * unit, bound, known.spectral * unit, known.spectral_bound * unit, certificate)


@dataclass(frozen=True)
class _MeasuredTriplets:
    """What the checker measures of A with orthonormal bases of the vectors' spans."""

    size: float  # about |A|₂
    residual: float  # the longest of Av - σu and Aᵀu - σv
    theta: Array  # (k,) singular values of M
    top: Array  # (k,) upper bounds on the singular values of A
    rest: float  # an upper bound on |G|₂
    rest_seen: float  # |Gg| for a unit vector g
    spectral: float  # an upper bound on |A - U s Vᵀ|₂
    frobenius_bound: float  # no matrix of rank k is closer to A in the Frobenius norm
    spectral_bound: float  # nor in the spectral norm


def _measure(A: Any, U: Array, s: Array, V: Array, proof: bool, tuning: SpectralCheckTuning) -> _MeasuredTriplets:
    L, Q = orthonormal_basis(U), orthonormal_basis(V)
    AV, AU = A @ V, A.T @ U
    AQ, AL = AV if Q is V else A @ Q, AU if L is U else A.T @ L
    residual = max(longest_column(AV - U * s), longest_column(AU - V * s))
    M = L.T @ AQ
    leaks = np.concatenate([_leak_sizes(AQ - L @ M), _leak_sizes(AL - Q @ M.T)])
    theta = svdvals(M)
    k, narrow = len(theta), min(A.shape)
    norm = _frobenius_norm(A.data if sparse.issparse(A) else A)
    size = max(largest_entry(theta), norm / math.sqrt(narrow))
    relative = 4 * max(A.shape) * EPS
    rounding = relative * size
    # How far U s Vᵀ is from L M Qᵀ, plus the leaks.
    astray = largest_entry(leaks) + _frobenius_norm(M - (L.T @ U * s) @ (V.T @ Q)) + rounding
    if k == narrow:
        return _MeasuredTriplets(size, residual, theta, theta + largest_entry(leaks), 0.0, 0.0, astray, 0.0, 0.0)

    left, right = np.hstack([L, AQ - L @ M]), np.hstack([AL, Q])
    G = _GramOfDifference(A, left, right)
    found = sharpen(G, largest_eigenvalue(G, failure=tuning.failure, steps=tuning.lanczos_steps))
    rest = rounding + (proved_norm(A - left @ right.T) if proof else math.sqrt(max(0.0, found.upper)))
    smallest = float(theta.min(initial=np.inf))
    top = theta + eigenvalue_excess(rest, theta, largest_entry(leaks))
    bound = math.sqrt(max(0.0, norm**2 * (1 - relative) - float(top @ top) * (1 + relative)))
    if proof:
        G_norm = _frobenius_distance(A, left, right, tuning.dense_rows)
        tail = G_norm**2 - (k * max(0.0, rest**2 - smallest**2) if k else 0.0)
        bound = max(bound, math.sqrt(max(0.0, tail)) - _frobenius_norm(leaks) - math.sqrt(narrow) * rounding)
    one_more = np.linalg.qr(np.column_stack([Q, found.vector]))[0]
    rest_seen = math.sqrt(max(0.0, found.value))
    spectral_bound = max(0.0, float(svdvals(A @ one_more)[-1]) - rounding)
    return _MeasuredTriplets(size, residual, theta, top, rest, rest_seen, rest + astray, bound, spectral_bound)


@dataclass(frozen=True)
class _GramOfDifference:
    """The operator XᵀX with X = A - left rightᵀ, which is never formed."""

    A: Any
    left: Array  # (m, r)
    right: Array  # (n, r)

    @property
    def shape(self) -> tuple[int, int]:
        return (self.A.shape[1], self.A.shape[1])

    def __matmul__(self, x: Array) -> Array:
        z = self.A @ x - self.left @ (self.right.T @ x)
        return self.A.T @ z - self.right @ (self.left.T @ z)


def _frobenius_distance(A: Any, left: Array, right: Array, dense_rows: int) -> float:
    """Return |A - left rightᵀ| in the Frobenius norm, from the entries, a few rows at a time."""
    lengths = []
    for start in range(0, A.shape[0], dense_rows):
        rows = slice(start, start + dense_rows)
        block = A[rows].toarray() if sparse.issparse(A) else A[rows]
        lengths.append(_frobenius_norm(block - left[rows] @ right.T))
    return _frobenius_norm(np.array(lengths))


def proved_norm(X: Array) -> float:
    """Return a number τ that |X|₂ does not exceed, because τ² I - XᵀX (or XXᵀ, if smaller) has a Cholesky factor.

    >>> bool(0 <= proved_norm(np.array([[3.0, 0.0], [4.0, 0.0]])) - 5 < 1e-13)
    True
    """
    size = largest_entry(X)
    if size == 0:
        return 0.0
    X = X / size
    S = X.T @ X if X.shape[0] >= X.shape[1] else X @ X.T
    return size * math.sqrt(proved_largest(S) + max(X.shape) * EPS * float(np.trace(S)))


def _leak_sizes(C: Array) -> Array:
    """Return the singular values of C, or where there are many, only the root of the sum of their squares."""
    return svdvals(C) if C.shape[1] <= 100 else np.array([_frobenius_norm(C)])


def _frobenius_norm(X: Array) -> float:
    size = largest_entry(X) or 1.0
    return size * float(np.linalg.norm(X / size))
